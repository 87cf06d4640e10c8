"""The symbolic face of a model (Kwatny & Blankenship): closed forms people can read, and what is made from them."""

from collections.abc import Callable
from typing import Any

from polybody.constraints.plan import Plan
from polybody.mechanism.mechanism import Mechanism
from polybody.symbolic.equations import Equations, Linearization
from polybody.symbolic.loops import SymbolicLoops
from polybody.symbolic.model import Size, SymbolicModel
from polybody.symbolic.program import Program


def symbolic_model(mechanism: Mechanism, plan: Callable[[], Plan], **options: Any) -> SymbolicModel:
    """The symbolic model of a mechanism; `plan()` is asked for the elimination of its loops, where it has any."""
    if not mechanism.constrained:
        return SymbolicModel(mechanism, **options)
    return SymbolicLoops(mechanism, plan=plan(), **options)


__all__ = ["Equations", "Linearization", "Program", "Size", "SymbolicModel", "symbolic_model"]
