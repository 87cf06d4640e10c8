"""Steps of the midpoint rule of long chains (`middle`): their equations by recursions over the tree.

    r(u) = 2 (p_m − p₀) − h (Ṁu − ID(q_m, u, 0) + tau),    p_m = M(q_m) u,    p₀ = M(q₀) v₀
    v₁ = 2 M(q₁)⁻¹p_m − M(q₁)⁻¹p₀

ID, inverse dynamics without acceleration, is C u + gravity less passive forces and wrenches. The two parts of v₁ are
found one by one, so that nothing straight is between two kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.kernels.stepping_rolled import Between, Call
from polybody.late import dataclass
from polybody.properties import cached_property
from polybody.simulation.compiled import middle
from polybody.simulation.compiled.middle import after, given_of, middle_of
from polybody.simulation.compiled.rolled import bare, beside, kernel, mass_solve

if TYPE_CHECKING:
    from polybody.simulation.compiled.field import Acting

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Places:
    """{name: where it begins in w} of numbers one behind the other; `texts` give those before `computed`."""

    sizes: dict[str, int]
    computed: str

    @cached_property
    def at(self) -> dict[str, int]:
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        return dict(zip([*self.sizes, ""], ends, strict=True))

    @property
    def size(self) -> int:
        return self.at[""]

    def of(self, w: Array, name: str) -> Array:
        return w[self.at[name] : self.at[name] + self.sizes[name]]

    def joined(self, given: dict[str, Array]) -> Array:
        """The beginning of w, up to what is computed."""
        names = list(self.sizes)
        return np.concatenate([given[name] for name in names[: names.index(self.computed)] if self.sizes[name]])


def _of_balance(acting: Acting) -> Places:
    nq, nv, loads = acting.model.nq, acting.model.nv, 6 * len(acting.mechanism.bodies) if acting.frames else 0
    return Places({"q_m": nq, "u": nv, "q": nq, "v": nv, "loads": loads, "tau": nv, "still": nv, "p_m": nv, "p": nv,
                   "turned": nv, "needed": nv}, "still")  # fmt: skip


def _of_end(acting: Acting) -> Places:
    nq, nv, holds = acting.model.nq, acting.model.nv, acting.holding.frozen and not acting.holding.loose
    rest = acting.size + 1 - nq - nv
    return Places({"q_m": nq, "u": nv, "q": nq, "v": nv, "q_1": nq, "free": nv if holds else 0, "rest": rest,
                   "p_m": nv, "p": nv, "v_m": nv, "v_0": nv}, "p_m")  # fmt: skip


def parts(acting: Acting) -> dict[str, Callable[[], Between]]:
    """The kernels of both parts."""
    return {"balance": lambda: _balance(acting), "end": lambda: _end(acting)} if acting.rolled else {}


def _balance(acting: Acting) -> Between:
    m, places = bare(acting.mechanism), _of_balance(acting)
    at, loads = places.at, bool(places.sizes["loads"])
    needed = kernel(m, "inverse_dynamics_wrenches" if loads else "inverse_dynamics")
    return Between(places.size, (
        Call(kernel(m, "mass_product"), (at["q_m"], at["u"], at["p_m"])),
        Call(kernel(m, "mass_product"), (at["q"], at["v"], at["p"])),
        Call(kernel(m, "momentum_rate"), (at["q_m"], at["u"], at["turned"])),
        Call(needed, (at["q_m"], at["u"], at["still"], *((at["loads"],) if loads else ()), at["needed"])),
    ))  # fmt: skip


def _end(acting: Acting) -> Between:
    m, places = bare(acting.mechanism), _of_end(acting)
    at, free = places.at, places.at["free"] if places.sizes["free"] else None
    product = kernel(m, "mass_product")
    calls = [Call(product, (at["q_m"], at["u"], at["p_m"])), Call(product, (at["q"], at["v"], at["p"]))]
    size, first = mass_solve(m, places.size, at["q_1"], at["p_m"], at["v_m"], free)
    _, second = mass_solve(m, places.size, at["q_1"], at["p"], at["v_0"], free)
    return Between(size, (*calls, *first, *second))


def texts(acting: Acting) -> dict[str, Callable[[], Any]]:
    """Of the tapes around the kernels, and of steps without."""
    return {
        "middle": lambda: middle.middle(acting), "ends": lambda: middle.ends(acting),
        "balance": lambda: middle.balance(acting), "end": lambda: middle.end(acting),
        "balance_before": lambda: _before_balance(acting), "balance_after": lambda: _after_balance(acting),
        "end_before": lambda: _before_end(acting), "end_after": lambda: _after_end(acting),
    }  # fmt: skip


def _before_balance(acting: Acting) -> Any:
    from polybody.simulation.compiled.field import on_bodies_text

    graph: Any = domain("casadi")
    at, m = middle_of(acting, graph), acting.mechanism
    given, known = at.given, {}
    if acting.frames:
        known["loads"] = on_bodies_text(m, at.q_m, acting.frames, at.loads, graph).ravel()
    known |= {"q_m": at.q_m, "u": given.u, "q": given.q, "v": given.v}
    known["tau"] = at.tau + beside(m, at.q_m, given.u, graph)
    return acting.made("before", given.columns, given.columns[3], [_of_balance(acting).joined(known)], graph)


def _after_balance(acting: Acting) -> Any:
    graph: Any = domain("casadi")
    given, places = given_of(acting, graph), _of_balance(acting)
    column, w = graph.variables("w", places.size)
    p_m, p, turned, needed, tau = (places.of(w, name) for name in ("p_m", "p", "turned", "needed", "tau"))
    r = given.held((p_m - p) * graph.const(2) - (turned - needed + tau) * given.h, graph)
    return acting.made("after", [*given.columns, column], given.columns[3], [r], graph)


def _before_end(acting: Acting) -> Any:
    graph: Any = domain("casadi")
    at, nq, nv = middle_of(acting, graph), acting.model.nq, acting.model.nv
    given, (new, moved) = at.given, after(acting, at, graph)
    known = {"q_m": at.q_m, "u": given.u, "q": given.q, "v": given.v, "q_1": moved, "rest": new[nq + nv :]}
    if given.free is not None:
        known["free"] = given.free
    return acting.made("before", given.columns, given.columns[3], [_of_end(acting).joined(known)], graph)


def _after_end(acting: Acting) -> Any:
    graph: Any = domain("casadi")
    given, places = given_of(acting, graph), _of_end(acting)
    column, w = graph.variables("w", places.size)
    v = places.of(w, "v_m") * graph.const(2) - places.of(w, "v_0")
    new = np.concatenate([places.of(w, "q_1"), v, places.of(w, "rest")])
    return acting.made("after", [*given.columns, column], given.columns[3], [new], graph)


__all__ = ["parts", "texts"]
