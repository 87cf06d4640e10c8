"""Parameters that a person can slide while the simulation runs: masses, springs and dampers that the model has.

The first move makes the variant with parameters (`model.with_parameters`), whose kernels take the numbers as inputs;
after that nothing is compiled anew. Of robots with many bodies only the mass of the last one is offered: what it
carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.model import Model

FEW_BODIES = 8
UNITS = {"mass": "kg", "length": "m"}


@dataclass(frozen=True)
class Slider:
    key: str
    name: str
    unit: str
    value: float

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, "label": self.name, "unit": self.unit, "low": 0.0, "high": 4 * self.value}


class Tuning:
    """The sliders of a model, and the model under their numbers."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sliders = [Slider(f"parameter {name}", name, unit, value) for name, unit, value in offered(model)]
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
        self.values[key] = float(
            np.clip(value, 0.0 if not key.endswith(".mass") else 1e-3 * slider.value, 1e3 * slider.value)
        )
        if self._variant is None:
            self._variant = self.model.with_parameters(*(s.name for s in self.sliders))
        wanted = {s.name: self.values[s.key] for s in self.sliders}
        return self._variant.parameters.at(self._variant.parameters.values(wanted))


def offered(model: Model) -> list[tuple[str, str, float]]:
    """(name, unit, number) of what can be slid."""
    m = model.mechanism
    heavy = [body for body in m.bodies if body.mass > 0 and len(body.links) == 1]
    bodies = heavy if len(heavy) <= FEW_BODIES else heavy[-1:]
    found = [(f"{body.links[0]}.mass", "kg", float(body.mass)) for body in bodies]
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


__all__ = ["Slider", "Tuning", "offered"]
