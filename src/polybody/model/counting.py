"""Operation counts: what the papers' general formulas say of n revolute joints, and what this mechanism really takes.

The general counts are Saha's Tables 1 and 2 (the errata's additions for Walker & Orin): M multiplications and
divisions, A additions and subtractions, n the number of joints of an all-revolute serial chain. The actual counts are
of the traced expression graph, in which this mechanism's zeros, ones and shared subexpressions are gone. With loops
they are those of the closed mechanism, elimination included.

Like with like. Table 2 counts θ̈ = (UDUᵀ)⁻¹φ with φ = τ − Cθ̇ − g given: section 5.2 lists φ among the inputs, "to be
computed from any recursive inverse dynamics scheme". His own steps (34)-(37), (47)-(50), written about mass centres in
Denavit-Hartenberg frames and counted without φ (tests/papers/test_saha_counts.py), take

    200 n − 323 M   193 n − 341 A       Saha 201 n − 335 M, 193 n − 361 A

so the slopes are his, but for one multiplication (the half of a constant). How he counts the ends he does not say: his
constants lie between this reading, where body 1 has its matrix M̂_1 as (50) says, and one where only the number m̂_1 is
computed for it (200 n − 342 M, 193 n − 368 A). His printed formulas give 67 M and 25 A for two joints and less than
nothing for one, so that they are compared from `SHORTEST` joints on. φ would add 90 n. So it is
`GIVEN` that Table 2 is held against: our text, traced with φ as an input. And formulas of general chains are held
against the same text on a general chain (`general_chain`: every parameter other than 0 and 1). Of two eliminations the
shorter is taken (`quantities.shortest`): up to ten joints from the elements of the inertia matrix, as Walker & Orin do,
beyond by articulated bodies,

    6R     466 M    344 A      Walker & Orin 633, 475; Saha 871, 797
    12R   1822 M   1325 A      Saha 2077, 1955; Walker & Orin 2357, 1716
    n > 10: factors ψ, m̂ (47)-(50) 128 n − 236 M, 93 n − 178 A; sweeps (34)-(37) 50 n − 78 M, 38 n − 69 A
    φ, bias forces: 90 n − 128 M, 72 n − 112 A

What a mechanism takes is less still, by its zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.kernels.counts import Counts, operation_counts
from polybody.model.tracing import trace
from polybody.quantities import shortest
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
    General("Saha 1999, his steps counted", lambda n: 200 * n - 323, lambda n: 193 * n - 341),
    General("Featherstone 1983", lambda n: 199 * n - 198, lambda n: 174 * n - 173),
    General(
        "Walker, Orin 1982",
        lambda n: n**3 / 6 + 11.5 * n**2 + 38 * n + n / 3 - 47,
        lambda n: n**3 / 6 + 7 * n**2 + 38 * n + 5 * n / 6 - 46,
    ),
)

#: forward dynamics with φ = τ − Cθ̇ − g given: what Table 2 counts
GIVEN = "forward_dynamics, bias given"
TABLES = {"inverse_dynamics": INVERSE, GIVEN: FORWARD}
#: joints from which on the printed formulas are those of a chain
SHORTEST = 3
#: joints up to which a general chain is traced; longer ones are counted by the slope of articulated bodies
TRACED = 12
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
    if not len(model.constraints) and model.nv:
        found[GIVEN] = operation_counts(_given(model))
    return found


def _given(model: Model, text: Any = shortest) -> Any:
    """θ̈ = M⁻¹φ as one function of (q, φ), by the text of forward dynamics."""
    mechanism = model.engine.tree.reduced_mechanism

    def solved(q: Any, phi: Any, *, domain: Any) -> Any:
        return text.solve_mass_matrix(mechanism, q, phi, domain=domain)

    return trace("given", [("q", model.nq), ("phi", model.nv)], solved)


def _forward(model: Model, text: Any) -> Any:
    """Forward dynamics as one function of (q, v, τ)."""
    mechanism = model.engine.tree.reduced_mechanism

    def moved(q: Any, v: Any, tau: Any, *, domain: Any) -> Any:
        return text.forward_dynamics(mechanism, q, v, tau, domain=domain)

    return trace("forward", [("q", model.nq), ("v", model.nv), ("tau", model.nv)], moved)


def general_counts(n: int) -> dict[str, Counts]:
    """Our text on a general chain of n revolute joints: inverse dynamics, M⁻¹φ, and forward dynamics with its bias."""
    if n < 1:
        raise InputError(f"a chain has at least one joint, got {n}")
    if n > TRACED:
        half, whole = _general(TRACED // 2, denoc), _general(TRACED, denoc)  # both by articulated bodies
        return {name: _extended(half[name], whole[name], n - TRACED) for name in whole}
    return _general(n, shortest)


def _extended(one: Counts, two: Counts, more: int) -> Counts:
    """Counts of `more` joints beyond TRACED, along the slope from half as many."""

    def at(a: int, b: int) -> int:
        return b + (b - a) * more // (TRACED - TRACED // 2)

    return Counts(
        at(one.multiplications, two.multiplications), at(one.additions, two.additions), at(one.sines, two.sines),
        at(one.others, two.others),
    )  # fmt: skip


def _general(n: int, text: Any) -> dict[str, Counts]:
    model = general_chain(n)
    return {
        "inverse_dynamics": operation_counts(model.engine.function(QUANTITIES["inverse_dynamics"])),
        "forward_dynamics": operation_counts(_forward(model, text)),
        GIVEN: operation_counts(_given(model, text)),
    }


def general_chain(n: int) -> Model:
    """n revolute joints with Denavit-Hartenberg parameters, centres and inertias in general position."""
    import numpy as np

    from polybody.model.load import from_dh

    rng = np.random.default_rng(0)
    rows = []
    for _ in range(n):
        skewed = rng.uniform(0.02, 0.05, size=3)
        rows.append({
            "alpha": rng.uniform(0.3, 1.2), "a": rng.uniform(0.2, 0.6), "d": rng.uniform(0.2, 0.6),
            "mass": rng.uniform(1.0, 3.0), "com": tuple(rng.uniform(0.1, 0.4, size=3)),
            "inertia": (*rng.uniform(0.5, 0.6, size=3), *skewed),
        })  # fmt: skip
    return from_dh(rows, name=f"general {n}R")


def _without_diagnostics(made: Any) -> Any:
    import casadi

    inputs, names = made.sx_in(), made.name_out()
    outputs = [x for x, name in zip(made.call(inputs), names, strict=True) if name != "diagnostics"]
    return casadi.Function(made.name(), inputs, outputs)


__all__ = [
    "COUNTED",
    "FORWARD",
    "GIVEN",
    "INVERSE",
    "SHORTEST",
    "TABLES",
    "General",
    "general_chain",
    "general_counts",
    "model_counts",
]
