"""Swain & Morris' operators of a model, active and passive columns, and hybrid dynamics."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.errors import InputError
from polybody.formulations import operators as formulation
from polybody.formulations.operators.named import reduced, whole
from polybody.formulations.operators.split import Split
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.model.arguments import choose, state_array
from polybody.model.dynamics import DynamicAnswers, Wrenches
from polybody.quantities.table import Quantity

Array = np.ndarray

_STRUCTURE = tuple(f.name for f in fields(formulation.Structure))
_COEFFICIENTS = tuple(f.name for f in fields(formulation.Coefficients))


class Operators:
    """The operators of a model at (q, v) by the paper's names; computed when asked for, batched like q and v.

    X, X_b, Phi, Phi_b, B, D, M_q, M_b, V, V_b, c, b, b_b: of the links beyond the base, see
    `polybody.formulations.operators.named`. M_a, M_ap, M_p, J_a, J_p, C_a, C_p, T_a, T_p, T_hat, M (generalised
    inertia), J (generalised Jacobian), J_D (disturbance Jacobian), C, H: coefficients of (28) and (48).
    """

    def __init__(self, model: OperatorAnswers, q: Array, v: Array, tau: Array, chosen: Split) -> None:
        self._model, self._q, self._v, self._tau, self._split = model, q, v, tau, chosen
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
        m = self._model.mechanism
        return "world" if self._split.base == GROUND else m.bodies[self._split.base].name

    @property
    def frames(self) -> list[str]:
        """The end effectors, in the order of the rows of J."""
        return [frame.name for frame in self._split.tips]

    @property
    def links(self) -> list[str]:
        """The links beyond the base, in the order of the rows of X."""
        m = self._model.mechanism
        return [m.bodies[i].name for i in self._split.links(m)]

    def __getattr__(self, name: str) -> Array:
        if name in _COEFFICIENTS:
            self._known.update(self._coefficients())
        elif name in _STRUCTURE:
            self._known[name] = getattr(self._stack, name)
        else:
            raise AttributeError(f"no operator {name!r}; there are {', '.join((*_STRUCTURE, *_COEFFICIENTS))}")
        self.__dict__.update(self._known)
        return self._known[name]

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *_STRUCTURE, *_COEFFICIENTS]

    def _coefficients(self) -> dict[str, Array]:
        M, bias, T, J = self._model.answer(whole_quantity(self._split.tips), self._q, self._v, self._tau)
        found = reduced(M, bias, T, J, self._split)
        return {name: getattr(found, name) for name in _COEFFICIENTS}

    @cached_property
    def _stack(self) -> formulation.Stack:
        given = formulation.Pieces(*self._model.answer(PIECES, self._q, self._v))
        return formulation.Stack(self._model.mechanism, self._split, given)


def _pieces(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> tuple[Array, ...]:
    return tuple(formulation.pieces(m, q, v, domain=domain))


def _piece_shapes(m: Mechanism) -> tuple[tuple[str, tuple[int, ...]], ...]:
    n = len(m.bodies)
    return ("X", (n, 6, 6)), ("Phi", (6, len(m.slots))), ("V", (n, 6)), ("zeta", (n, 6)), ("b", (n, 6))


#: What the structure matrices are stacked from.
PIECES = Quantity("operator pieces", ("q", "v"), _piece_shapes, _pieces)


def whole_quantity(tips: tuple[BodyFrame, ...]) -> Quantity:
    """Mass matrix, bias forces, T and end-effector Jacobian of all columns, as one compiled quantity."""

    def text(m: Mechanism, q: Array, v: Array, tau: Array, *, domain: Domain) -> tuple[Array, ...]:
        return whole(m, q, v, tau, tips, domain=domain)

    def shapes(m: Mechanism) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return ("M", (m.nv, m.nv)), ("bias", (m.nv,)), ("T", (m.nv,)), ("J", (6 * len(tips), m.nv))

    return Quantity(f"operators {tips_key(tips)}", ("q", "v", "tau"), shapes, text)


def tips_key(tips: tuple[BodyFrame, ...]) -> str:
    """What tells the kernels of two sets of end effectors apart."""
    places = [(f.body, f.rotation.tolist(), f.position.tolist()) for f in tips]
    return hashlib.sha256(repr(places).encode()).hexdigest()[:16]


def hybrid_quantity(mask: Array, loaded: bool) -> Quantity:
    """Hybrid dynamics for one choice of active columns."""

    def text(m: Mechanism, q: Array, v: Array, a: Array, tau: Array, *more: Array, domain: Domain) -> Any:
        wrenches = more[0].reshape(-1, 6) if more else None
        return formulation.hybrid_dynamics(m, q, v, mask, a, tau, wrenches, domain=domain)

    bits = "".join("1" if x else "0" for x in mask)
    arguments = ("q", "v", "a", "tau", "wrenches") if loaded else ("q", "v", "a", "tau")
    name = f"hybrid {bits}{' wrenches' if loaded else ''}"
    return Quantity(name, arguments, lambda m: (("a", (m.nv,)), ("tau", (m.nv,))), text)


class OperatorAnswers(DynamicAnswers):
    """Active and passive columns; the operators by name."""

    @property
    def active(self) -> Array:
        """Which columns of v are driven, (nv,) booleans; a free base's are not."""
        return formulation.active_mask(self.mechanism)

    def active_mask(self, active: Sequence[str] | Any | None = None) -> Array:
        """Booleans of the active columns: the model's own, those of the named joints, or a mask of nv booleans."""
        m = self.mechanism
        if active is None:
            return self.active
        given = list(active)
        if given and all(isinstance(x, str) for x in given):
            mask = np.zeros(m.nv, dtype=bool)
            for name in given:
                mask[m.joints[choose("joint", name, m.joint_index)].v] = True
            return mask
        if len(given) != m.nv or not all(isinstance(x, (bool, np.bool_)) for x in given):
            raise InputError(f"active must be joint names or {m.nv} booleans, got {active!r}")
        return np.array(given, dtype=bool)

    def operators(
        self, q: Any, v: Any, tau: Any = None, *, frames: Sequence[str] | None = None, active: Any = None
    ) -> Operators:
        """The spatial operators and the coefficients of the unified model at (q, v), by the paper's names.

        `frames` are the end effectors (default: the outermost links), `active` the driven columns (default: the
        model's own). tau (default 0) enters T_a, T_p and T_hat only.
        """
        q, v, tau = self._states(("q", q), ("v", v), ("tau", np.zeros(self.mechanism.nv) if tau is None else tau))
        tips = None if frames is None else tuple(self.frame(name) for name in frames)
        return Operators(self, q, v, tau, formulation.split(self.mechanism, self.active_mask(active), tips))

    def hybrid_dynamics(
        self, q: Any, v: Any, a: Any, tau: Any = None, *, active: Any = None, wrenches: Wrenches | None = None
    ) -> tuple[Array, Array]:
        """(a, tau), each (..., nv): active columns follow the given a, passive ones the given tau (default 0).

        a is (..., nv), of which only active columns are read, or (..., number of active columns) in their order; tau
        likewise with the passive columns. The result holds all columns: the active forces that the motion takes, and
        the passive accelerations that follow. `active` chooses other columns than the model's own.
        """
        mask = self.active_mask(active)
        q, v = self._states(("q", q), ("v", v))
        a = self._scattered("a", a, mask)
        tau = np.zeros(self.mechanism.nv) if tau is None else self._scattered("tau", tau, ~mask)
        if not mask.all():
            self._refuse_singular()
        if wrenches:
            loads = self.body_wrenches(q, wrenches)
            return self.kernel(hybrid_quantity(mask, True))(q, v, a, tau, loads)
        return self.kernel(hybrid_quantity(mask, False))(q, v, a, tau)

    def _scattered(self, name: str, values: Any, mask: Array) -> Array:
        """(..., nv) with zeros outside the mask, from all columns or from those of the mask alone."""
        array, nv, some = np.asarray(values, dtype=float), self.mechanism.nv, int(mask.sum())
        if array.ndim and array.shape[-1] == some != nv:
            full = np.zeros((*array.shape[:-1], nv))
            full[..., mask] = array
            return full
        return np.where(mask, state_array(name, array, nv), 0.0)

    def active_forces(
        self, q: Any, v: Any, a: Any, tau: Any = None, *, active: Any = None, tolerance: float = 1e-9
    ) -> Array:
        """tau, (..., nv), that makes the whole motion a with active forces alone; passive ones are the given tau.

        A motion that the passive columns would not make by themselves is refused, with the coordinate that stands out.
        """
        mask = self.active_mask(active)
        q, v, a = self._states(("q", q), ("v", v), ("a", a))
        given = np.zeros(self.mechanism.nv) if tau is None else self._scattered("tau", tau, ~mask)
        needed = self.inverse_dynamics(q, v, a)
        lacking = np.where(mask, 0.0, np.abs(needed - given))
        share = lacking / (1.0 + np.abs(needed).max(axis=-1, keepdims=True, initial=0.0))
        if np.any(share > tolerance):
            at = np.unravel_index(int(np.argmax(np.nan_to_num(share))), share.shape)
            given = np.broadcast_to(given, needed.shape)
            raise InputError(self._impossible(at, needed[at], given[at]))
        return np.where(mask, needed, given)

    def _impossible(self, at: tuple[Any, ...], needed: float, given: float) -> str:
        *index, column = (int(i) for i in at)
        state = f" in state {tuple(index)}" if index else ""
        return (
            f"{self.column_name(column)} is passive: this motion{state} needs the force {needed:.6g} there, and "
            f"{given:.6g} is given; take the passive accelerations from hybrid_dynamics, or make that coordinate active"
        )

    def column_name(self, column: int) -> str:
        """How messages call a column of v."""
        for joint in self.mechanism.independent_joints:
            if joint.v.start <= column < joint.v.stop:
                part = "" if joint.nv == 1 else f", column {column - joint.v.start} of {joint.nv}"
                return f"v[{column}] (joint {joint.name!r}{part})"
        raise InputError(f"no column {column}; v has {self.mechanism.nv}")


__all__ = ["OperatorAnswers", "Operators", "hybrid_quantity", "tips_key", "whole_quantity"]
