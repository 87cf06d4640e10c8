"""Mobile bases as records: a chassis on a planar joint, with wheels that roll without slipping.

    differential   two driven wheels on one axle under the chassis' origin; a caster is understood and has no mass
    car            a rear wheel and a steered front wheel, each for two: the single-track model

Joints: `<name>` (planar: heading, x, y), `<name>_left`, `<name>_right`; or `<name>_rear`, `<name>_steer`,
`<name>_front`. The chassis is the body `<name>`, its origin on the ground between the driven wheels; x is ahead. Wheels
are solid disks. Passive are the planar joint and, on a car, the front wheel's rotation.
"""

from __future__ import annotations

import numpy as np

from polybody.description.records import Body, Joint, Rolling, frozen_array
from polybody.errors import InputError
from polybody.names import nearest

VEHICLES = ("differential", "car")
Records = tuple[list[Body], list[Joint], list[Rolling]]


def vehicle_records(
    name: str, kind: str, *, mass: float, size: tuple[float, float, float], radius: float, wheel_mass: float,
    track: float, wheelbase: float,
) -> Records:  # fmt: skip
    """The records of a base; `size` (length, width, height) is the chassis' box, for its inertia and mass centre."""
    if kind not in VEHICLES:
        near = nearest(str(kind), VEHICLES)
        raise InputError(f"vehicle {name!r}: no kind {kind!r}{near}; available: {', '.join(VEHICLES)}")
    numbers = {"mass": mass, "radius": radius, "wheel_mass": wheel_mass, "track": track, "wheelbase": wheelbase}
    for what, value in (*numbers.items(), *zip(("length", "width", "height"), size, strict=True)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"vehicle {name!r}: {what} is {value}; expected a positive number")
    length, width, height = size
    box = np.diag([width**2 + height**2, length**2 + height**2, length**2 + width**2]) * mass / 12
    ahead = 0.0 if kind == "differential" else wheelbase / 2
    bodies = [Body(name, mass, frozen_array((ahead, 0, radius)), frozen_array(box))]
    joints = [Joint(name, "planar", "world", name, active=(False, False, False))]
    rolling: list[Rolling] = []

    def wheel(label: str, parent: str, place: tuple[float, float, float], lateral: bool, active: bool) -> None:
        disk = np.diag([0.25, 0.5, 0.25]) * wheel_mass * radius**2
        bodies.append(Body(f"{name}_{label}", wheel_mass, inertia=frozen_array(disk)))
        origin = np.eye(4)
        origin[:3, 3] = place
        axis = frozen_array((0.0, 1.0, 0.0))
        joints.append(Joint(f"{name}_{label}", "continuous", parent, f"{name}_{label}", frozen_array(origin), axis,
                            active=(active,)))  # fmt: skip
        body = f"{name}_{label}"
        rolling.append(Rolling(f"{body}_rolls", body, "wheel", frozen_array([radius]), lateral=lateral))

    if kind == "differential":
        wheel("left", name, (0, track / 2, radius), True, True)
        wheel("right", name, (0, -track / 2, radius), False, True)  # one of them says that the axle does not slide
        return bodies, joints, rolling
    wheel("rear", name, (0, 0, radius), True, True)
    fork = np.eye(4)
    fork[:3, 3] = (wheelbase, 0, radius)
    light = np.eye(3) * 0.01 * wheel_mass * radius**2
    bodies.append(Body(f"{name}_steer", 0.1 * wheel_mass, inertia=frozen_array(light)))
    joints.append(Joint(f"{name}_steer", "revolute", name, f"{name}_steer", frozen_array(fork)))
    wheel("front", f"{name}_steer", (0, 0, 0), True, False)
    return bodies, joints, rolling


__all__ = ["VEHICLES", "vehicle_records"]
