"""Parameters that a person can slide while the simulation runs: a payload, masses, springs and dampers.

The first move makes the variant with parameters (`model.with_parameters`), whose kernels take the numbers as inputs;
after that nothing is compiled anew. The payload is a point mass at the frame that carries things: the last named one,
or the platform (`design.task.default_frame`). Of mechanisms with many bodies only the mass of that body is offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.design.task import default_frame
from polybody.errors import InputError
from polybody.model.model import Model
from polybody.studio.stage.sizes import round_down

FEW_BODIES = 8
UNITS = {"mass": "kg", "length": "m"}


@dataclass(frozen=True)
class Slider:
    key: str
    name: str
    unit: str
    value: float
    high: float
    label: str

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, "label": self.label, "unit": self.unit, "low": 0.0, "high": self.high}


class Tuning:
    """The sliders of a model, and the model under their numbers."""

    def __init__(self, model: Model) -> None:
        self.model, self.carrier = model, carrier(model)
        self.sliders = [Slider(f"parameter {name}", name, unit, value, 4 * value, name)
                        for name, unit, value in offered(model, self.carrier)]  # fmt: skip
        if self.carrier is not None and model.total_mass > 0:
            label = f"payload at {self.carrier}"
            most = round_down(model.total_mass)
            self.sliders.insert(0, Slider("parameter payload.mass", "payload.mass", "kg", 0.0, most, label))
        self.values = {slider.key: slider.value for slider in self.sliders}
        self._variant: Model | None = None

    @property
    def made(self) -> bool:
        """True once the variant with parameters is there."""
        return self._variant is not None

    def set(self, key: str, value: float) -> Model:
        """The model with one number changed."""
        slider = next((s for s in self.sliders if s.key == key), None)
        if slider is None:
            raise InputError(f"no parameter {key.removeprefix('parameter ')!r} has a slider")
        least = 1e-3 * slider.value if key.endswith(".mass") else 0.0  # bodies keep some mass
        self.values[key] = float(np.clip(value, least, 250 * slider.high))
        if self._variant is None:
            model = self.model
            if self.carrier is not None and any(s.name == "payload.mass" for s in self.sliders):
                model = model.with_payload(self.carrier, 1.0)
            self._variant = model.with_parameters(*(s.name for s in self.sliders))
        wanted = {s.name: self.values[s.key] for s in self.sliders}
        return self._variant.parameters.at(self._variant.parameters.values(wanted))


def carrier(model: Model) -> str | None:
    """The frame that a payload is attached to; None where nothing moves, or where a body is called payload already."""
    links = {body.name for body in model.description.bodies}
    moving = [frame for frame in model.mechanism.frames if frame.body >= 0]
    return default_frame(model) if moving and "payload" not in links else None


def offered(model: Model, frame: str | None) -> list[tuple[str, str, float]]:
    """(name, unit, number) of what can be slid."""
    m = model.mechanism
    heavy = [body for body in m.bodies if body.mass > 0 and len(body.links) == 1]
    if len(heavy) > FEW_BODIES:
        place = m.frames[m.frame_index[frame]].body if frame is not None else -1
        heavy = [body for body in heavy if body.index == place]
    found = [(f"{body.links[0]}.mass", "kg", float(body.mass)) for body in heavy]
    for joint in m.independent_joints:
        if joint.nv != 1 or len(found) > 2 * FEW_BODIES:
            continue
        turns = bool(np.any(joint.model.velocity_map(joint.model.neutral())[:3, 0]))
        for what, number in (("stiffness", float(joint.stiffness[0, 0])), ("damping", float(joint.damping[0, 0]))):
            if number > 0:
                unit = ("N m" if turns else "N") + (" s" if what == "damping" else "") + ("/rad" if turns else "/m")
                found.append((f"{joint.name}.{what}", unit, number))
    for spring in m.springs[:FEW_BODIES]:
        found.append((f"{spring.name}.stiffness", "N/m", float(spring.stiffness)))
    return found


__all__ = ["Slider", "Tuning", "carrier", "offered"]
