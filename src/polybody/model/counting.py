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

from polybody.errors import InputError
from polybody.kernels.counts import Counts, operation_counts
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
COUNTED = tuple(name for name, x in QUANTITIES.items() if x.group == "dynamics" or name == "center_of_mass")


def model_counts(model: Model) -> dict[str, Counts]:
    """Counts of every quantity of a model; with loops those of its elimination, without its diagnostics."""
    found = {}
    for name in COUNTED:
        try:
            made = model.engine.function(QUANTITIES[name])
        except InputError:  # drives that cannot hold every motion have no inverse dynamics
            continue
        found[name] = operation_counts(_without_diagnostics(made))
    return found


def _without_diagnostics(made: Any) -> Any:
    import casadi

    inputs, names = made.sx_in(), made.name_out()
    outputs = [x for x, name in zip(made.call(inputs), names, strict=True) if name != "diagnostics"]
    return casadi.Function(made.name(), inputs, outputs)


__all__ = ["COUNTED", "FORWARD", "INVERSE", "TABLES", "General", "model_counts"]
