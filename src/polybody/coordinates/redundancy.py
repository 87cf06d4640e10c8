"""Redundant systems: fewer coordinates u than velocities φ, and a criterion that chooses (Freeman (4-65)-(4-75)).

The motion with least φ̇ᵀWφ̇ among those with G φ̇ = u̇ is φ̇ = G⁻ᴿ u̇,

    G⁻ᴿ = W⁻¹Gᵀ(G W⁻¹Gᵀ)⁻¹                                                                      (4-69), (4-70)

with W = I* ("energy": least kinetic energy), W = 1 ("least squares") or a weight of one's own. For accelerations there
are two choices, which differ by a motion that u does not see:

    paper       φ̈ = G⁻ᴿ ü + u̇ᵀHu̇,  H = −G⁻ᴿᵀ(G⁻ᴿ • H)G⁻ᴿ, the least φ̈ for the given velocities     (4-71), (4-72)
    integrable  φ̈ = G⁻ᴿ ü + (d/dt G⁻ᴿ) u̇, the derivative of φ̇ = G⁻ᴿ u̇

Integrating the paper's accelerations does not keep φ̇ = G⁻ᴿ u̇; integrating the others does. Loads at the joints:

    T_φ = I*_φu ü + u̇ᵀP*_φuu u̇ − T^L,   I*_φu = I* G⁻ᴿ,   P*_φuu = G⁻ᴿᵀ{P* − I*_φu • H}G⁻ᴿ      (4-73)-(4-75)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.coordinates.arrays import apply, combine, quadratic, sandwich, transposed
from polybody.coordinates.conditioning import CONDITION_LIMIT, SingularTransferError, direction_text
from polybody.coordinates.optimising import gradient, least_torques
from polybody.coordinates.sets import CoordinateSet, coordinate_set
from polybody.coordinates.spaces import JointSpace, space_of
from polybody.coordinates.transfer import check_independent
from polybody.coordinates.weights import rate_of_function
from polybody.errors import InputError
from polybody.mechanism import kinematics
from polybody.model.arguments import state_array
from polybody.model.model import Model
from polybody.model.sets import one_set
from polybody.names import counted

Array = np.ndarray
Weight = Array | Callable[[Array], Array]


class Redundant:
    """A model driven through fewer coordinates than it has velocities. Made by `redundant`."""

    def __init__(self, space: JointSpace, coordinates: CoordinateSet, criterion: Any, limit: float) -> None:
        self.space, self.model, self.coordinates = space, space.model, coordinates
        self.names = coordinates.names(space.model)
        self.criterion, self.limit = criterion, limit
        self.written = callable(criterion) and _takes_domain(criterion)

    def weight(self, q: Array) -> Array:
        """W of the criterion, (..., nv, nv)."""
        n = len(self.space.names)
        if isinstance(self.criterion, str):
            return self.space.mass_matrix(q) if self.criterion == "energy" else np.eye(n)
        if self.written:
            W = over_states(lambda q: self.criterion(q, FLOAT), q)
        else:
            W = np.asarray(self.criterion(q) if callable(self.criterion) else self.criterion, dtype=float)
        if W.ndim == 1 or (self.written and W.shape == (*q.shape[:-1], n) and W.ndim == q.ndim):
            W = W[..., None] * np.eye(W.shape[-1])
        if W.shape[-2:] != (n, n):
            raise InputError(f"the weight has shape {W.shape}, expected {(n, n)} or {counted(n, 'number')}")
        least = np.linalg.eigvalsh((W + transposed(W)) / 2)[..., 0].min()
        if not least > 0:
            raise InputError(f"the weight is not positive definite: its least eigenvalue is {least:.3g}")
        return W

    def _u(self, name: str, values: Any) -> Array:
        """Values of the coordinates, checked for their number."""
        return state_array(name, values, len(self.names))

    def _weight_rate(self, q: Array, v: Array) -> Array:
        """dW/dt along v: vᵀP* + (vᵀP*)ᵀ for I*, exact by jets for a weight written over domains; else see `weights`."""
        if isinstance(self.criterion, str) and self.criterion == "energy":
            _, P = self.space.arrays(q)
            half = np.einsum("...imn,...m->...in", P, v)
            return half + transposed(half)
        if not callable(self.criterion):
            return np.zeros((v.shape[-1],) * 2)
        v = self.space.velocity(q, v)
        if self.written:
            return over_states(self._exact_rate, q, v)
        rates, _ = self._function_rate(q, v)
        return rates[..., None] * np.eye(v.shape[-1]) if rates.ndim == 1 else rates

    def _function_rate(self, q: Array, v: Array) -> tuple[Array, str]:
        """dW/dt of a function of q alone, in its own shape, and how it was found."""
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = np.broadcast_to(q, (*lead, q.shape[-1])), np.broadcast_to(v, (*lead, v.shape[-1]))
        q_dot = over_states(lambda q, v: kinematics.rate(self.model.mechanism, q, v), q, v)
        return rate_of_function(self.criterion, q, q_dot, lambda t: self.model.integrate(q, v, t))

    def weight_rate_found_by(self, q: Any) -> str:
        """Method by which the weight is differentiated at q.

        "exact": the built-in ones, constants and weight(q, domain). A function of q alone: "traced" (exact too),
        "complex step" or "differences", see `coordinates.weights`.
        """
        if not callable(self.criterion) or self.written:
            return "exact"
        q = self.model._q(q)
        v = self.space.velocity(q, np.ones((*q.shape[:-1], len(self.space.names))))
        return self._function_rate(q, v)[1]

    def _exact_rate(self, q: Array, v: Array) -> Array:
        jets = JetDomain(FLOAT)
        moved = jets.lift(q, kinematics.rate(self.model.mechanism, q, v, domain=FLOAT))
        W = np.asarray(self.criterion(moved, jets), dtype=object)
        rates = np.asarray(jets.rates(W), dtype=float)
        return np.diag(rates) if rates.ndim == 1 else rates

    def right_inverse(self, q: Any) -> Array:
        """G⁻ᴿ, (..., nv, k), by (4-70)."""
        q = self.model._q(q)
        (G,) = self.space.coefficients(q, self.coordinates, 1)
        return self._right(G, self.weight(q))[0]

    def _right(self, G: Array, W: Array) -> tuple[Array, Array]:
        """(G⁻ᴿ, W⁻¹)."""
        U, s, _ = np.linalg.svd(G)
        bad = ~(s[..., -1] * self.limit > s[..., 0])
        if np.any(bad):
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            lost = U[index][:, -1]
            raise SingularTransferError(
                f"these coordinates are singular here: singular values {np.array2string(s[index], precision=3)}; "
                f"lost: the motion {direction_text(lost, self.names)}", s[index], lost, np.zeros(0), index,
            )
        Wi = np.linalg.inv(W)
        WiGt = Wi @ transposed(G)
        return WiGt @ np.linalg.inv(G @ WiGt), Wi

    def null_projector(self, q: Any) -> Array:
        """1 − G⁻ᴿG: joint motions that the coordinates do not see, (..., nv, nv)."""
        q = self.model._q(q)
        (G,) = self.space.coefficients(q, self.coordinates, 1)
        return np.eye(G.shape[-1]) - self._right(G, self.weight(q))[0] @ G

    def velocity(self, q: Any, u_dot: Any, *, null: Any = None) -> Array:
        """φ̇ by (4-68); `null` adds the part of a joint motion that the coordinates do not see."""
        return self.space.velocity(self.model._q(q), self._own_velocity(q, u_dot, null))

    def _own_velocity(self, q: Any, u_dot: Any, null: Any = None) -> Array:
        found = apply(self.right_inverse(q), self._u("u_dot", u_dot))
        if null is None:
            return found
        return found + apply(self.null_projector(q), state_array("null", null, len(self.space.names)))

    def acceleration(self, q: Any, u_dot: Any, u_ddot: Any, choice: str = "integrable") -> Array:
        """φ̈ for u̇, ü: choice "integrable" differentiates φ̇ = G⁻ᴿ u̇, "paper" is (4-71), (4-72)."""
        q = self.model._q(q)
        return self.space.acceleration(
            q, self._own_velocity(q, u_dot), self._own_acceleration(q, u_dot, u_ddot, choice)
        )

    def _own_acceleration(self, q: Array, u_dot: Any, u_ddot: Any, choice: str) -> Array:
        q, u_dot, u_ddot = self.model._q(q), self._u("u_dot", u_dot), self._u("u_ddot", u_ddot)
        G, H = self.space.coefficients(q, self.coordinates, 2)
        W = self.weight(q)
        R, Wi = self._right(G, W)
        v = apply(R, u_dot)
        if choice == "paper":
            return apply(R, u_ddot - quadratic(v, H, v))
        if choice != "integrable":
            raise InputError(f"choice is {choice!r}, expected 'integrable' or 'paper'")
        G_dot, W_dot = np.einsum("...imn,...m->...in", H, v), self._weight_rate(q, v)
        # W G⁻ᴿ = GᵀΛ and G G⁻ᴿ = 1 differentiated: the seen part −G⁻ᴿĠG⁻ᴿ, the unseen part projected
        back = np.eye(G.shape[-1]) - R @ G
        Lambda = np.linalg.inv(G @ Wi @ transposed(G))
        R_dot = -R @ G_dot @ R + back @ Wi @ (transposed(G_dot) @ Lambda - W_dot @ R)
        return apply(R, u_ddot) + apply(R_dot, u_dot)

    def climbing_velocity(self, q: Any, u_dot: Any, criterion: Any = "manipulability", gain: float = 1.0) -> Array:
        """φ̇ by (4-68) whose self-motion climbs a criterion: "manipulability", "limits", or a function of q, ∇h(q)."""
        return self.velocity(q, u_dot, null=gain * gradient(self, q, criterion))

    def least_torques(
        self, q: Any, v: Any, u_ddot: Any, *, norm: Any = 2, limits: Any = None, weights: Any = None,
        damping: float = 0.0,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(a, tau), (..., nv): the accelerations with the wanted ü whose torques are least in `norm` 1, 2 or "inf".

        Trees, loops and free bases; v are all joints' velocities, tau those of the active joints. `limits` as in
        `pb.actuator_forces` ("drives", "effort", numbers, a pair); `weights`, one per actuator, what torques cost;
        `damping`, 1/s, slows the self-motion, which least torques alone do not.
        """
        return least_torques(
            self, q, v, u_ddot, norm=norm, limits=limits, weights=weights, damping=damping
        )

    def arrays(self, q: Any) -> tuple[Array, Array]:
        """(I*_φu, P*_φuu) by (4-74), (4-75), which go with the paper's choice of accelerations."""
        q = self.model._q(q)
        G, H = self.space.coefficients(q, self.coordinates, 2)
        R, _ = self._right(G, self.weight(q))
        I, P = self.space.arrays(q)
        IR = I @ R
        return IR, sandwich(R, P - combine(IR, H))

    def loads(self, q: Any, u_dot: Any, u_ddot: Any, choice: str = "integrable") -> Array:
        """Joint forces that produce the motion of the coordinates, (4-73); with loops those of active joints."""
        q = self.model._q(q)
        return self.model.inverse_dynamics(q, self.velocity(q, u_dot), self.acceleration(q, u_dot, u_ddot, choice))


def _takes_domain(function: Callable[..., Any]) -> bool:
    """Whether a weight is written over domains: weight(q, domain), both without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # builtins that tell no signature
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.default is p.empty and p.kind in plain for p in parameters) == 2


def over_states(function: Callable[..., Any], *arrays: Array) -> Array:
    """function(one state of each array) for every state of the broadcast batch."""
    lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    wide = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]
    found = [np.asarray(function(*(a[index] for a in wide)), dtype=float) for index in np.ndindex(lead)]
    return np.array(found).reshape(*lead, *found[0].shape)


@one_set
def redundant(
    model: Model, coordinates: Any, criterion: Any = "energy", *, condition_limit: float = CONDITION_LIMIT,
    parameters: ArrayLike | None = None,
) -> Redundant:
    """Control a model through fewer coordinates than it has velocities.

    `criterion` is "energy" (least kinetic energy), "least squares" (least φ̇ᵀφ̇), or a weight W: nv numbers, nv×nv, or
    a function of q. A function `weight(q, domain)` of two arguments, written over a scalar domain like `pb.Function`,
    is differentiated exactly. So is a function of q alone if its NumPy code can be traced or accepts complex numbers;
    otherwise the integrable acceleration uses finite differences (`Redundant.weight_rate_found_by` reports which).
    `parameters`, (k,), are values of the parameters of `model.with_parameters`.
    """
    if isinstance(criterion, str) and criterion not in ("energy", "least squares"):
        raise InputError(f"criterion is {criterion!r}, expected 'energy', 'least squares' or a weight")
    chosen = coordinate_set(coordinates)
    space = space_of(model)
    names, n = chosen.names(model), len(space.names)
    if len(names) > n:
        raise InputError(
            f"{counted(len(names), 'coordinate')} for {counted(n, 'velocity', 'velocities')}: {len(names) - n} too many"
        )
    check_independent(space, chosen, names)
    return Redundant(space, chosen, criterion, condition_limit)


__all__ = ["Redundant", "redundant"]
