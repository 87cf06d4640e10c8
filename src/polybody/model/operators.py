"""Swain & Morris' operators of a tree at states, by the paper's names; Saha's inertias beside them.

    G      = (M_q⁻¹ + X_b M_b⁻¹X_bᵀ)⁻¹ = M_q − M_q X_b (M_b + X_bᵀM_q X_b)⁻¹X_bᵀM_q                       (26)
    V̇_open = J_a v̇_a + J_p v̇_p + B c,  v̇_a = M⁻¹(T̂ − C),  v̇_p = M_p⁻¹(T_p − C_p) − J_D v̇_a          (44),
    corrected

On a fixed base M_b is infinite, and G = M_q. V̇_open is the acceleration of the end effectors that hold nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from polybody.algebra.domains import Domain
from polybody.formulations import operators as formulation
from polybody.formulations.denoc.named import named_inertias
from polybody.formulations.operators.named import reduced, whole
from polybody.formulations.operators.split import Split
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.model.engine import Request
from polybody.model.tree_engine import TreeEngine
from polybody.properties import cached_property
from polybody.quantities.quantity import Quantity

Array = np.ndarray

_STRUCTURE = tuple(f.name for f in fields(formulation.Structure))
_COEFFICIENTS = tuple(f.name for f in fields(formulation.Coefficients))


class Operators:
    """The operators of a model at (q, v) by the paper's names; computed when asked for, batched like q and v.

    X, X_b, Phi, Phi_b, B, D, M_q, M_b, V, V_b, c, b, b_b: of the links beyond the base, see
    `polybody.formulations.operators.named`. M_a, M_ap, M_p, J_a, J_p, C_a, C_p, T_a, T_p, T_hat, M (generalised
    inertia), J (generalised Jacobian), J_D (disturbance Jacobian), C, H: coefficients of (28) and (48). G of (26),
    V_dot_open of (44). Saha's: M_tilde and M_hat (..., bodies, 6, 6), composite and articulated bodies about their
    origins in the order of `model.body_names`, psi (..., 6, nv) and m_hat (..., nv, nv).
    """

    def __init__(self, engine: TreeEngine, q: Array, v: Array, tau: Array, chosen: Split) -> None:
        self._engine, self._q, self._v, self._tau, self._split = engine, q, v, tau, chosen
        self._known: dict[str, Array] = {}

    @property
    def active(self) -> Array:
        """Indices in v of the active columns."""
        return self._split.active.copy()

    @property
    def passive(self) -> Array:
        """Indices in v of the passive columns."""
        return self._split.passive.copy()

    @property
    def base(self) -> str:
        """The base: a body's name, or "world" for a fixed base."""
        m = self._engine.mechanism
        return "world" if self._split.base == GROUND else m.bodies[self._split.base].name

    @property
    def frames(self) -> list[str]:
        """The end effectors, in the order of the rows of J."""
        return [frame.name for frame in self._split.tips]

    @property
    def links(self) -> list[str]:
        """The links beyond the base, in the order of the rows of X."""
        m = self._engine.mechanism
        return [m.bodies[i].name for i in self._split.links(m)]

    def __getattr__(self, name: str) -> Array:
        if name in _COEFFICIENTS:
            self._known.update(self._coefficients())
        elif name in _STRUCTURE:
            self._known[name] = getattr(self._stack, name)
        elif name in _INERTIAS:
            self._known.update(zip(_INERTIAS, self._engine.answer(Request(INERTIAS, (self._q,))), strict=True))
        elif name in _DERIVED:
            self._known[name] = getattr(self, f"_{name}")()
        else:
            every = (*_STRUCTURE, *_COEFFICIENTS, *_DERIVED, *_INERTIAS)
            raise AttributeError(f"no operator {name!r}; available: {', '.join(every)}")
        self.__dict__.update(self._known)
        return self._known[name]

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *_STRUCTURE, *_COEFFICIENTS, *_DERIVED, *_INERTIAS]

    def _G(self) -> Array:
        if self._split.base == GROUND:
            return self.M_q
        across = np.swapaxes(self.X_b, -1, -2) @ self.M_q
        return self.M_q - np.swapaxes(across, -1, -2) @ np.linalg.solve(self.M_b + across @ self.X_b, across)

    def _V_dot_open(self) -> Array:
        active = _solved(self.M, self.T_hat - self.C)
        passive = _solved(self.M_p, self.T_p - self.C_p) - _applied(self.J_D, active)
        return _applied(self.J_a, active) + _applied(self.J_p, passive) + _applied(self.B, self.c)

    def _coefficients(self) -> dict[str, Array]:
        M, bias, T, J = self._engine.answer(Request(whole_quantity(self._split.tips), (self._q, self._v, self._tau)))
        found = reduced(M, bias, T, J, self._split)
        return {name: getattr(found, name) for name in _COEFFICIENTS}

    @cached_property
    def _stack(self) -> formulation.Stack:
        given = formulation.Pieces(*self._engine.answer(Request(PIECES, (self._q, self._v))))
        return formulation.Stack(self._engine.mechanism, self._split, given)


def _applied(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _solved(A: Array, x: Array) -> Array:
    return np.linalg.solve(A, x[..., None])[..., 0] if x.size else x


def _inertias(m: Mechanism, q: Array, *, domain: Domain) -> tuple[Array, ...]:
    return named_inertias(m, q, domain=domain)


_INERTIAS = ("M_tilde", "M_hat", "psi", "m_hat")
_DERIVED = ("G", "V_dot_open")
#: Saha's composite and articulated bodies.
INERTIAS = Quantity(
    "named inertias", ("q",),
    (("M_tilde", ("bodies", 6, 6)), ("M_hat", ("bodies", 6, 6)), ("psi", (6, "nv")), ("m_hat", ("nv", "nv"))),
    _inertias,
)  # fmt: skip


def _pieces(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> tuple[Array, ...]:
    return tuple(formulation.pieces(m, q, v, domain=domain))


#: What the structure matrices are stacked from.
PIECES = Quantity(
    "operator pieces", ("q", "v"),
    (("X", ("bodies", 6, 6)), ("Phi", (6, "slots")), *((name, ("bodies", 6)) for name in ("V", "zeta", "b"))),
    _pieces,
)  # fmt: skip


def whole_quantity(tips: tuple[BodyFrame, ...]) -> Quantity:
    """Mass matrix, bias forces, T and end-effector Jacobian of all columns, as one compiled quantity."""

    def text(m: Mechanism, q: Array, v: Array, tau: Array, *, domain: Domain) -> tuple[Array, ...]:
        return whole(m, q, v, tau, tips, domain=domain)

    shapes = (("M", ("nv", "nv")), ("bias", ("nv",)), ("T", ("nv",)), ("J", (6 * len(tips), "nv")))
    return Quantity(f"operators {tips_key(tips)}", ("q", "v", "tau"), shapes, text)


def tips_key(tips: tuple[BodyFrame, ...]) -> str:
    """What distinguishes the kernels of two sets of end effectors."""
    places = [(f.body, f.rotation.tolist(), f.position.tolist()) for f in tips]
    return hashlib.sha256(repr(places).encode()).hexdigest()[:16]


__all__ = ["Operators", "tips_key", "whole_quantity"]
