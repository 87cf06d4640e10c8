"""The quantities of a model with loops as texts over any domain, by one fixed elimination: what C code is written from.

Matrices and forces are those of the model's independent coordinates u, accelerations and joint forces those of all
joints. Straight-line code cannot look for pivots, so beside its answer each function gives `trust`, [‖φ‖², ‖J v‖²,
growth, leftover, narrow] (`elimination`): the state is on the loops where the first two vanish, and the answer may be
believed where growth and narrow are below 1e10 and leftover below 1e-14.

    M* = GᵀMG,    C* = Gᵀ(C G + M Ġ),    bias* = Gᵀ(bias + M β),    gravity* = Gᵀ gravity,    passive* = Gᵀ passive
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints import elimination
from polybody.constraints.plan import Plan, plan_elimination
from polybody.errors import InputError, PolybodyError
from polybody.formulations import denoc
from polybody.quantities.table import Quantity

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
TRUST = 5


class LoopTexts:
    """The texts of one model, along a plan whose independent columns are the model's own."""

    def __init__(self, model: Model) -> None:
        self.model, self.tree = model, model.tree.mechanism
        self.system = model.constraint_kernels.constraints
        q = model.general_place(model.close())
        self.driven = tuple(int(k) for k in np.flatnonzero(model.active))
        samples = model.constraint_kernels.jacobian(q)[None]
        self.plan = plan_elimination(samples, wanted=model.independent_columns)
        u = list(self.plan.independent)
        GA = model.joint_influence(q, 1, model.independent).G[None, list(self.driven)]
        square = len(self.driven) == len(u)
        self.shares = plan_elimination(np.swapaxes(GA, -1, -2)) if square else Plan((), (), (), ())
        self.holds = len(self.shares.pivots) == len(u) if square else len(self.driven) > len(u)
        if sorted(u) != sorted(model.independent_columns):
            raise PolybodyError(f"{model.name!r} has no place where {', '.join(model.independent)} are independent")

    def quantity(self, name: str) -> Quantity:
        """A quantity by its full name."""
        m, n = len(self.plan.independent), self.tree.nv
        trust = ("trust", (TRUST,))
        table: dict[str, tuple[tuple[str, ...], tuple[tuple[str, tuple[int, ...]], ...], Callable[..., Any]]] = {
            "forward_dynamics": (("q", "v", "tau"), (("a", (n,)), trust), self._forward),
            "inverse_dynamics": (("q", "v", "a"), (("tau", (n,)), ("trust", (TRUST + 1,))), self._inverse),
            "mass_matrix": (("q",), (("M", (m, m)), trust), self._mass),
            "coriolis_matrix": (("q", "v"), (("C", (m, m)), trust), self._coriolis),
            "bias_forces": (("q", "v"), (("bias", (m,)), trust), self._bias),
            "gravity_forces": (("q",), (("gravity", (m,)), trust), self._gravity),
            "passive_forces": (("q", "v"), (("passive", (m,)), trust), self._passive),
            "way_back": (("q", "v"), (("step", (n,)), ("speed", (n,)), ("trust", (3,))), self._way_back),
        }
        if name == "inverse_dynamics" and not self.holds:
            raise InputError("inverse: the active joints cannot hold every motion, so there is no such function")
        arguments, shapes, text = table[name]
        return Quantity(name, arguments, lambda _: shapes, text)

    def _forward(self, _: Any, q: Array, v: Array, tau: Array, *, domain: Any) -> Any:
        return elimination.forward(self.tree, self.system, self.plan, q, v, tau, None, domain=domain)

    def _inverse(self, _: Any, q: Array, v: Array, a: Array, *, domain: Any) -> Any:
        return elimination.inverse(
            self.tree, self.system, self.plan, self.shares, self.driven, q, v, a, None, domain=domain
        )

    def _way_back(self, _: Any, q: Array, v: Array, *, domain: Any) -> Any:
        return elimination.way_back(self.system, self.plan, q, v, domain=domain)[:3]

    def _followed(self, q: Array, v: Array | None, domain: Any) -> tuple[Any, Array]:
        gamma = None if v is None else self.system.bias(q, v, domain=domain)
        found = elimination.eliminate(self.system.jacobian(q, domain=domain), gamma, self.plan, domain)
        speed = domain.zeros(self.tree.nv) if v is None else v
        return found, elimination.trust(self.system, q, speed, found, domain)

    def _mass(self, _: Any, q: Array, *, domain: Any) -> Any:
        found, trust = self._followed(q, None, domain)
        return elimination.sandwiched(found.G, denoc.mass_matrix(self.tree, q, domain=domain), domain), trust

    def _coriolis(self, _: Any, q: Array, v: Array, *, domain: Any) -> Any:
        found, trust = self._followed(q, v, domain)
        G, J = found.G, self.system.jacobian(q, domain=domain)
        J_rate = self._jacobian_rate(q, v, domain)
        G_rate = domain.zeros(*G.shape)
        for k in range(G.shape[1]):
            G_rate[:, k] = elimination.eliminate(J, J_rate @ G[:, k], self.plan, domain).beta
        M = denoc.mass_matrix(self.tree, q, domain=domain)
        inner = denoc.coriolis_matrix(self.tree, q, v, domain=domain) @ G + M @ G_rate
        return G.T @ inner, trust

    def _jacobian_rate(self, q: Array, v: Array, domain: Any) -> Array:
        rates = self.system.entry_rates(q, v, domain=domain)
        result = domain.zeros(len(self.system), self.tree.nv)
        for row, column, rate in zip(*self.system.filled, rates, strict=True):
            result[row, column] = rate
        return result

    def _bias(self, _: Any, q: Array, v: Array, *, domain: Any) -> Any:
        found, trust = self._followed(q, v, domain)
        drift = denoc.mass_matrix(self.tree, q, domain=domain) @ found.beta
        whole = denoc.bias_forces(self.tree, q, v, domain=domain) + drift
        return elimination.carried_back(found.G, whole, domain), trust

    def _gravity(self, _: Any, q: Array, *, domain: Any) -> Any:
        found, trust = self._followed(q, None, domain)
        return elimination.carried_back(found.G, denoc.gravity_forces(self.tree, q, domain=domain), domain), trust

    def _passive(self, _: Any, q: Array, v: Array, *, domain: Any) -> Any:
        found, trust = self._followed(q, v, domain)
        return elimination.carried_back(found.G, denoc.passive_forces(self.tree, q, v, domain=domain), domain), trust


__all__ = ["LoopTexts"]
