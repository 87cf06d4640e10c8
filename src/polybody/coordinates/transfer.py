"""`transfer(model, coordinates)`: the whole model in other generalised coordinates.

The configuration stays q; velocities and accelerations become u̇ and ü of the chosen coordinates (orientations need not
integrate, so there is no "u" to be a configuration). All by `arrays`, from the joints' own model:

    φ̇ = G⁻¹ u̇,   φ̈ = G⁻¹(ü − φ̇ᵀHφ̇)                                                          (3-12)-(3-18)
    dφ̈/dt = G⁻¹(d ü/dt − φ̈ᵀHφ̇ − 2 φ̇ᵀHφ̈ − (φ̇ᵀDφ̇)φ̇)                                                (3-46)

The linearised model (3-52): with δu = G δφ and J = ∂u̇/∂φ, the states change by x̂ = S x,

    S = [G 0 0; J G 0; 0 0 1],     Â = (Ṡ + S A) S⁻¹,     B̂ = S B

which is (3-49)-(3-53) as the errata correct them where velocity directions commute, and holds where they do not. With
loops φ are the model's independent coordinates (`spaces`), and answers about joints are of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.coordinates.arrays import Dynamics, apply, dependent_coefficients, quadratic, transposed
from polybody.coordinates.conditioning import CONDITION_LIMIT, direction_text, inverse
from polybody.coordinates.sets import CoordinateSet, coordinate_set
from polybody.coordinates.spaces import JointSpace, space_of
from polybody.errors import InputError
from polybody.linearization.state_space import StateSpace
from polybody.model.arguments import float_array, state_array
from polybody.model.model import Model
from polybody.model.sets import one_set
from polybody.names import counted

Array = np.ndarray


class Transferred:
    """A model in the coordinates u. Made by `transfer`; transfers again."""

    def __init__(
        self, below: JointSpace | Transferred, coordinates: CoordinateSet, damping: float | None, limit: float
    ) -> None:
        self.below = below
        self.space: JointSpace = below if isinstance(below, JointSpace) else below.space
        self.model: Model = below.model
        self.coordinates = coordinates
        self.names = coordinates.names(self.model)
        self.damping, self.limit = damping, limit
        self._joints = self.space.names

    @property
    def nv(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    def _q(self, q: Any) -> Array:
        return self.model._q(q)

    def _u(self, name: str, values: Any) -> Array:
        return state_array(name, values, self.nv)

    def coefficients(self, q: Any, order: int = 2) -> list[Array]:
        """[G_φ^u, H_φφ^u, …] of these coordinates over the joints' velocities, with loops the independent ones."""
        return self.space.coefficients(self._q(q), self.coordinates, order)

    def _inverse(self, G: Array, old: Sequence[str]) -> Array:
        return inverse(G, self.names, old, damping=self.damping, limit=self.limit)

    def velocity(self, q: Any, u_dot: Any) -> Array:
        """Joint velocities φ̇ for u̇, (3-12)."""
        return self.space.velocity(self._q(q), self._own_velocity(q, u_dot))

    def _own_velocity(self, q: Any, u_dot: Any) -> Array:
        (G,) = self.coefficients(q, 1)
        return apply(self._inverse(G, self._joints), self._u("u_dot", u_dot))

    def acceleration(self, q: Any, u_dot: Any, u_ddot: Any) -> Array:
        """Joint accelerations φ̈ for u̇ and ü, (3-16)."""
        v, a, _ = self._motion(q, u_dot, u_ddot)
        return self.space.acceleration(self._q(q), v, a)

    def jerk(self, q: Any, u_dot: Any, u_ddot: Any, u_dddot: Any) -> Array:
        """Joint jerk dφ̈/dt, (3-46)."""
        G, H, D = self.coefficients(q, 3)
        Gi = self._inverse(G, self._joints)
        v = apply(Gi, self._u("u_dot", u_dot))
        a = apply(Gi, self._u("u_ddot", u_ddot) - quadratic(v, H, v))
        mixed = quadratic(a, H, v) + 2 * quadratic(v, H, a)
        cubic = quadratic(v, np.einsum("...plmn,...n->...plm", D, v), v)
        return self.space.jerk(self._q(q), v, a, apply(Gi, self._u("u_dddot", u_dddot) - mixed - cubic))

    def _motion(self, q: Any, u_dot: Any, u_ddot: Any) -> tuple[Array, Array, Array]:
        G, H = self.coefficients(q, 2)
        Gi = self._inverse(G, self._joints)
        v = apply(Gi, self._u("u_dot", u_dot))
        return v, apply(Gi, self._u("u_ddot", u_ddot) - quadratic(v, H, v)), Gi

    def parameter(self, q: Array, coordinates: Any) -> tuple[Array, Array]:
        """G_u^p and H_uu^p of dependent parameters p over these coordinates, (3-22), (3-26)."""
        q, wanted = self._q(q), coordinate_set(coordinates)
        G, H = self.below.parameter(q, self.coordinates)
        G_p, H_p = self.below.parameter(q, wanted)
        return dependent_coefficients(G_p, H_p, self._inverse(G, self.below.names), H)

    def dynamics(self, q: Any, u_dot: Any, wrenches: Any = None) -> Dynamics:
        """I*_uu, P*_uuu and T_u^L by (3-34)-(3-36)."""
        q = self._q(q)
        G, H = self.below.parameter(q, self.coordinates)
        Gi = self._inverse(G, self.below.names)
        return self.below.dynamics(q, apply(Gi, self._u("u_dot", u_dot)), wrenches).transferred(Gi, H)

    def mass_matrix(self, q: Any) -> Array:
        """I*_uu by (3-34)."""
        q = self._q(q)
        return self.dynamics(q, np.zeros((*q.shape[:-1], self.nv))).I

    def inverse_dynamics(self, q: Any, u_dot: Any, u_ddot: Any, *, wrenches: Any = None) -> Array:
        """The generalised forces T_u at the coordinates, (3-33)."""
        v, a, Gi = self._motion(q, u_dot, u_ddot)
        return apply(transposed(Gi), self.space.effort(self._q(q), v, a, wrenches))

    def forward_dynamics(self, q: Any, u_dot: Any, T_u: Any, *, wrenches: Any = None) -> Array:
        """ü under the generalised forces T_u."""
        G, H = self.coefficients(q, 2)
        v = apply(self._inverse(G, self._joints), self._u("u_dot", u_dot))
        a = self.space.motion(self._q(q), v, apply(transposed(G), self._u("T_u", T_u)), wrenches)
        return apply(G, a) + quadratic(v, H, v)

    def linearize(
        self, q: Any, u_dot: Any, tau: Any = None, *, inputs: str = "torque", wrenches: Any = None,
        disturbances: Sequence[str] = (),
    ) -> StateSpace:  # fmt: skip
        """States δu = G δφ, δu̇ and currents; inputs stay at the joints (tau) or motors (3-52).

        `wrenches` and `disturbances` are those of `pb.linearize`; `nominal_load` stays that of the joints' coordinates.
        """
        q = self._q(q)
        G, H, D = self.coefficients(q, 3)
        Gi = self._inverse(G, self._joints)
        v = apply(Gi, self._u("u_dot", u_dot))
        options = {"inputs": inputs, "wrenches": wrenches, "disturbances": disturbances}
        plain, a = self.space.linearize(q, v, None if tau is None else float_array("tau", tau), options)
        J = np.einsum("...iln,...n->...il", H, v)
        G_dot = np.einsum("...iln,...l->...in", H, v)
        J_dot = np.einsum("...ikln,...k,...n->...il", D, v, v) + np.einsum("...iln,...n->...il", H, a)
        S, S_dot = _state_change(G, J, plain.A.shape), _state_change(G_dot, J_dot, plain.A.shape, zero=True)
        A = (S_dot + S @ plain.A) @ np.linalg.inv(S)
        B = S @ plain.B
        k = A.shape[-1] - 2 * self.nv
        names = [f"u_{n}" for n in self.names] + [f"du_{n}" for n in self.names] + list(plain.states[-k:] if k else [])
        C = np.broadcast_to(np.eye(A.shape[-1]), A.shape)
        return replace(
            plain, A=A, B=B, C=C, D=np.zeros_like(B), states=tuple(names), outputs=tuple(names), E=S @ plain.E
        )


def _state_change(G: Array, J: Array, shape: tuple[int, ...], zero: bool = False) -> Array:
    n = G.shape[-1]
    S = np.zeros(shape) if zero else np.broadcast_to(np.eye(shape[-1]), shape).copy()
    S[..., :n, :n], S[..., n : 2 * n, :n], S[..., n : 2 * n, n : 2 * n] = G, J, G
    return S


@one_set
def transfer(
    model: Model, coordinates: Any, *, damping: float | None = None, condition_limit: float = CONDITION_LIMIT,
    independent: Sequence[str] | None = None, parameters: ArrayLike | None = None,
) -> Transferred:
    """Express a model in other generalised coordinates, as many as its velocities or, with loops, its mobility.

    `coordinates` is a `Position`, `Orientation`, `Pose`, `Joints`, `Function` or a joint's name, or a sequence of them.
    At singular configurations methods raise `SingularTransferError`, which names the lost direction; with `damping` λ
    they use Gᵀ(GGᵀ + λ²)⁻¹ instead of G⁻¹. A transferred model can be transferred again. For a model with loops,
    `independent` names the joints that the transfer starts from; default: the model's own. `parameters`, (k,), are
    values of the parameters of `model.with_parameters`.
    """
    below = model if isinstance(model, Transferred) else space_of(model, independent)
    chosen = coordinate_set(coordinates)
    names, wanted = chosen.names(below.model), len(below.names)
    if len(names) != wanted:
        gap = wanted - len(names)
        short = f"{gap} missing" if gap > 0 else f"{-gap} too many"
        more = "; redundant() takes fewer coordinates than velocities" if gap > 0 else ""
        given = f"{counted(len(names), 'coordinate')} ({', '.join(names)})"
        raise InputError(f"{given} for {counted(wanted, 'velocity', 'velocities')}: {short}{more}")
    check_independent(below if isinstance(below, JointSpace) else below.space, chosen, names)
    return Transferred(below, chosen, damping, condition_limit)


def check_independent(space: JointSpace, chosen: CoordinateSet, names: Sequence[str]) -> None:
    """Refuse coordinates that depend on each other at every configuration, naming them.

    Most are independent at the place in general position that a model with loops has already been looked at.
    """
    model = space.model
    beside = model._assembly.general_place(model.assemble())[None]
    if not _dependent(space, chosen, beside)[0].all():
        return
    q = model.random_configuration(np.random.default_rng(0), 5)
    small, U, quality = _dependent(space, chosen, q)
    if np.all(small):
        direction = U[int(np.argmax(quality))][:, len(names) - 1]
        involved = [name for name, x in zip(names, direction, strict=True) if abs(x) > 1e-6]
        raise InputError(
            f"coordinates {', '.join(involved)} depend on each other at every configuration: "
            f"{direction_text(direction, names)} cannot move"
        )


def _dependent(space: JointSpace, chosen: CoordinateSet, q: Array) -> tuple[Array, Array, Array]:
    """(whether the coordinates depend on each other, left singular vectors, least singular value by the largest)."""
    (G,) = space.coefficients(q, chosen, 1)
    U, s, _ = np.linalg.svd(G)
    quality = s[..., G.shape[-2] - 1] / np.maximum(s[..., 0], 1e-300)
    return quality <= 1e-10, U, quality


__all__ = ["JointSpace", "Transferred", "check_independent", "transfer"]
