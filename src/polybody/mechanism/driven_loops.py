"""Cut joints that store kinetic energy, have limits or are driven: they get coordinates of their own.

A cut joint's springs, dampers and friction are force elements between its frames (`closure_springs`) as long as they
need no coordinate. Armature, limits, motors, friction by load, and springs and dampers of kinds without such an element
do: the joint then goes from body a to a body without mass, `<name>_end`, and the loop `<name>_weld` fixes that to body
b. So it is a joint of the tree like any other, with its own numbers in q and v, driven where a motor or transmission
names it; the motion is the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polybody.description.records import (
    LOOP_DRIVE,
    LOOP_SPRING,
    SPRUNG_LOOPS,
    Body,
    Description,
    Joint,
    Loop,
    joint_size,
)


def needs_coordinates(loop: Loop, driven: frozenset[str] = frozenset()) -> bool:
    """Whether a cut joint has more than springs, dampers and friction between its frames."""
    if loop.kind in ("fixed", "floating"):
        return False
    if loop.name in driven or (loop.friction is not None and np.any(loop.friction.load)):
        return True
    plain = LOOP_SPRING if loop.kind in SPRUNG_LOOPS else ()
    return any(getattr(loop, key) is not None for key in LOOP_DRIVE if key not in plain)


def with_driven_loops(description: Description) -> Description:
    """The description with such loops as joints and welds; itself where there are none."""
    motors = {motor.joint for motor in description.motors}
    driven = frozenset(motors | {name for t in description.transmissions for name in t.joints})
    chosen = {loop.name for loop in description.loops if needs_coordinates(loop, driven)}
    if not chosen:
        return description
    bodies, joints, loops = list(description.bodies), list(description.joints), []
    for loop in description.loops:
        if loop.name not in chosen:
            loops.append(loop)
            continue
        end = f"{loop.name}_end"
        bodies.append(Body(end, source=loop.source))
        said = {key: getattr(loop, key) for key in (*LOOP_DRIVE, "axis", "pitch", "map", "stages", "source")}
        active = (loop.name in driven,) * joint_size(loop)[1]
        joints.append(Joint(loop.name, loop.kind, loop.body_a, end, loop.origin_a, **said, active=active))
        weld = Loop(f"{loop.name}_weld", "fixed", end, loop.body_b, origin_b=loop.origin_b, source=loop.source)
        loops.append(weld)
    return replace(description, bodies=tuple(bodies), joints=tuple(joints), loops=tuple(loops))


__all__ = ["needs_coordinates", "with_driven_loops"]
