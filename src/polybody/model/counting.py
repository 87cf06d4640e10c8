"""Operation counts: what the papers' general formulas say of n revolute joints, and what this mechanism really takes.

The general counts are Saha's Tables 1 and 2 (the errata's additions for Walker & Orin): M multiplications and
divisions, A additions and subtractions, n the number of joints of an all-revolute serial chain. The actual counts are
of the traced expression graph, in which this mechanism's zeros, ones and shared subexpressions are gone. With loops
they are those of the closed mechanism, elimination included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polybody.kernels.counts import Counts, operation_counts
from polybody.mechanism.mechanism import Mechanism
from polybody.model.tracing import argument_size, trace
from polybody.quantities.constrained import LoopTexts
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.model.model import Model

Formula = Callable[[int], float]


@dataclass(frozen=True)
class General:
    """A row of Table 1 or 2: an algorithm's counts for n revolute joints."""

    algorithm: str
    multiplications: Formula
    additions: Formula


INVERSE = (
    General("Hollerbach 1980", lambda n: 412 * n - 277, lambda n: 320 * n - 201),
    General("Luh, Walker, Paul 1980", lambda n: 150 * n - 48, lambda n: 131 * n + 48),
    General("Walker, Orin 1982", lambda n: 137 * n - 22, lambda n: 101 * n - 11),
    General("Saha 1999", lambda n: 120 * n - 44, lambda n: 97 * n - 55),
    General("Khalil 1986", lambda n: 105 * n - 92, lambda n: 94 * n - 86),
    General("Angeles 1989", lambda n: 105 * n - 109, lambda n: 90 * n - 105),
    General("Balafoutis 1988", lambda n: 93 * n - 69, lambda n: 81 * n - 65),
)

FORWARD = (
    General("Saha 1999", lambda n: 201 * n - 335, lambda n: 193 * n - 361),
    General("Featherstone 1983", lambda n: 199 * n - 198, lambda n: 174 * n - 173),
    General(
        "Walker, Orin 1982",
        lambda n: n**3 / 6 + 11.5 * n**2 + 38 * n + n / 3 - 47,
        lambda n: n**3 / 6 + 7 * n**2 + 38 * n + 5 * n / 6 - 46,
    ),
)

TABLES = {"inverse_dynamics": INVERSE, "forward_dynamics": FORWARD}
COUNTED = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "coriolis_matrix",
    "bias_forces",
    "gravity_forces",
    "center_of_mass",
    "energy",
    "momentum",
)


#: What loops do not change: functions of q and v of all joints.
FREE = ("center_of_mass", "energy", "momentum")


def traced_counts(mechanism: Mechanism, lean: Mechanism, name: str) -> Counts:
    """Counts of one quantity traced over this mechanism (`lean` for joint-space dynamics)."""
    quantity = QUANTITIES[name]
    chosen = lean if quantity.lean else mechanism
    sized = [(argument, argument_size(mechanism, argument)) for argument in quantity.arguments]

    def body(*arrays: Any, domain: Any) -> Any:
        return quantity.text(chosen, *arrays, domain=domain)

    return operation_counts(trace(name, sized, body))


def model_counts(model: Model) -> dict[str, Counts]:
    """Counts of every quantity of a model; with loops those of its elimination (`loop_quantities`)."""
    m = model.mechanism
    plain = FREE if m.constrained else COUNTED
    found = {name: traced_counts(m, model.lean_mechanism, name) for name in plain}
    if not m.constrained:
        return found
    texts = LoopTexts(model)
    for name in COUNTED:
        if name in FREE or (name == "inverse_dynamics" and not texts.holds):
            continue
        quantity = texts.quantity(name)
        sized = [(argument, argument_size(m, argument)) for argument in quantity.arguments]

        def body(*arrays: Any, domain: Any, text: Any = quantity.text) -> Any:
            return text(m, *arrays, domain=domain)[0]

        found[name] = operation_counts(trace(name, sized, body))
    return {name: found[name] for name in COUNTED if name in found}


__all__ = ["COUNTED", "FORWARD", "INVERSE", "TABLES", "General", "model_counts", "traced_counts"]
