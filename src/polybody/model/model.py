"""`Model`, the façade a user holds.

Its methods are grouped in mixins, one concept a file; this file only puts them together. Every array argument may have
leading batch dimensions, `(n,)` or `(..., n)`, and results have them alike.
"""

from __future__ import annotations

from polybody.mechanism.mechanism import Mechanism
from polybody.model.control import ControlAnswers
from polybody.model.free_floating import FreeFloatingAnswers
from polybody.model.loop_arrays import LoopArrays
from polybody.model.loop_derivatives import LoopDerivatives
from polybody.model.loop_motion import LoopMotion
from polybody.model.loop_operators import LoopOperators
from polybody.model.operators import OperatorAnswers
from polybody.model.reactions import ReactionAnswers
from polybody.model.shape import ShapeAnswers
from polybody.model.symbolic import SymbolicAnswers


class Model(
    LoopArrays,
    LoopDerivatives,
    LoopOperators,
    LoopMotion,
    ReactionAnswers,
    ControlAnswers,
    FreeFloatingAnswers,
    OperatorAnswers,
    SymbolicAnswers,
    ShapeAnswers,
):
    """A mechanism and its answers, by name."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._kernels = {}

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.body_names)} bodies, nq={self.nq}, nv={self.nv}>"


__all__ = ["Model"]
