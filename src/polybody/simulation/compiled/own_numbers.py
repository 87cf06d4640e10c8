"""Controllers that compute with a model of their own: the machine's numbers differ from those the controller knows.

A controller made with the nominal model drives a machine with another payload, or with other `parameters=`. Its text is
read with the numbers its own model has, as constants; only the state is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.constraints.assembly import AssemblyError
from polybody.mechanism.geometry import geometry
from polybody.model.model import Model
from polybody.simulation.compiled.law import Law
from polybody.simulation.compiled.rolled import MOST_STRAIGHT
from polybody.simulation.failures import NotCompiled

Array = np.ndarray


def known_to(model: Model, owner: Model) -> tuple[Model, Any]:
    """(the model that a controller of `owner` computes with, its mechanism), for a machine `model` with as many
    coordinates; the mechanism is None where that is the machine's own."""
    if owner is model or owner.mechanism is model.mechanism:
        return model, None
    if (owner.nq, owner.nv) != (model.nq, model.nv):
        raise NotCompiled("the controller is that of another model, with other coordinates")
    known = numbers_of(owner)
    if known.mechanism.constrained or model.mechanism.constrained:
        _require_same_loops(model, known)
    return known, known.engine.tree.traced_mechanism


def of_own_numbers(model: Model, controller: Any, make: Callable[[Model, Any], Law]) -> Law:
    """The law of a controller of another model."""
    known, _ = known_to(model, controller.model)
    law, mechanism = make(known, controller), known.engine.tree.traced_mechanism  # frames are given in its bodies

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
        return law.text(mechanism, t, q, v, c, row, domain)

    return replace(law, key=f"{law.key} of {mechanism.digest[:24]}", text=text)


def _require_same_loops(model: Model, known: Model) -> None:
    """A controller puts a state that is off its own loops onto them, by iteration: that is done in Python."""
    if geometry(model.mechanism) != geometry(known.mechanism):
        raise NotCompiled("the controller's own model has other loops, or loops of other lengths")


def numbers_of(owner: Model) -> Model:
    """The model with all its numbers as constants, and with a plan of elimination if it has loops."""
    if owner.engine.source.variation is None:
        return _planned(owner)
    if "numbers" not in owner._notes:
        owner._notes["numbers"] = Model(owner.mechanism)
    return _planned(owner._notes["numbers"])


def has_recursions(model: Model) -> bool:
    """Whether a run of so many velocities goes by recursions, which have their numbers in tables: no code depends on
    them, and none has parameters as inputs."""
    return model.nv > MOST_STRAIGHT and not model.mechanism.constrained


def _planned(known: Model) -> Model:
    engine: Any = known.engine
    if known.mechanism.constrained and engine.is_compiled and not engine.plans.is_made:
        try:
            engine.plans.free(engine.assembly.general_place(engine.assembly.from_neutral()))
        except AssemblyError as error:
            raise NotCompiled(f"the controller's own model cannot be assembled: {error}") from None
    return known


__all__ = ["has_recursions", "known_to", "numbers_of", "of_own_numbers"]
