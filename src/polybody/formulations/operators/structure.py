"""The paper's operators by name, for reading: X, X_b, Φ, B, D and the stacked vectors.

Links beyond the base are stacked in the order of the mechanism; twists and wrenches are in link axes at the link's
origin, those of end effectors in the end effector's own axes at its own origin.

    V  = X Φ v_q + X_b V_b,      V_b = Φ_b v_b,     V^e = B V = J_a v_a + J_p v_p       (11), (14), (A4)
    V̇  = X Φ v̇_q + X_b V̇_b + c,  c = ẊΦ v_q + Ẋ_b V_b (+ XΦ̇ v_q where a joint map varies)     (15)
    b  = V* M_q V − M_q [0; Rᵀg]       the wrench for V̇ = 0, the weight included         (16), corrected
    C_a, C_p = rows of Φᵀ Xᵀ (b + M_q c) (+ b_b on the base)                             ERRATA

What varies from state to state is gathered link by link (`pieces`, O(n) operations) and then stacked (`Stack`): over a
batch of numbers the pieces come from one kernel, and stacking goes over links, never over states.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.links import link_inertias
from polybody.formulations.operators.named import frame_crossing, stack_rows
from polybody.formulations.operators.split import Split
from polybody.formulations.operators.sweeps import state
from polybody.late import dataclass
from polybody.mechanism.kinematics import body_poses
from polybody.mechanism.mechanism import GROUND, Mechanism
from polybody.properties import cached_property


@dataclass(frozen=True, eq=False)
class Structure:
    """The operators as matrices; n links beyond the base, m end effectors, d columns that move the links."""

    X: Array  # 6n×6n
    X_b: Array  # 6n×6
    Phi: Array  # 6n×d
    Phi_b: Array  # 6×(columns of the base), 6×0 for a fixed base
    B: Array  # 6m×6n
    D: Array  # 6n×6m
    M_q: Array  # 6n×6n
    M_b: Array  # 6×6; zeros for a fixed base, whose inertia plays no part
    V: Array  # 6n
    V_b: Array  # 6
    c: Array  # 6n, ẊΦv + Ẋ_b V_b
    b: Array  # 6n
    b_b: Array  # 6


class Pieces(NamedTuple):
    """What varies with the state, N links of the mechanism: numbers may have leading batch dimensions."""

    X: Array  # N×6×6, between each link and its parent
    Phi: Array  # 6×columns of all joints, joint after joint, in the axes of its link
    V: Array  # N×6
    zeta: Array  # N×6, the part of V̇ that comes from velocities, joint by joint
    b: Array  # N×6, the weight included


def pieces(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Pieces:
    """The pieces of one state."""
    at = state(mechanism, q, v, domain=domain, springs=False)
    n, g = len(at.M), domain.array(mechanism.gravity)
    X, V, zeta, b = domain.zeros(n, 6, 6), domain.zeros(n, 6), domain.zeros(n, 6), domain.zeros(n, 6)
    Phi = domain.zeros(6, len(mechanism.slots))
    for i, (R, _) in enumerate(body_poses(mechanism, q, domain=domain)):
        X[i], V[i], zeta[i] = at.across[i].matrix(), at.V[i], at.zeta[i]
        b[i] = at.b[i] - at.M[i][:, 3:] @ (R.T @ g)
        Phi[:, mechanism.columns[i]] = at.across[i].Phi
    return Pieces(X, Phi, V, zeta, b)


class Stack:
    """The operators from their pieces, each made when asked for; leading batch dimensions as the pieces have them."""

    def __init__(self, mechanism: Mechanism, chosen: Split, given: Pieces, *, domain: Domain = FLOAT) -> None:
        self.mechanism, self.chosen, self.given, self.domain = mechanism, chosen, given, domain
        self.lead, self.links = given.V.shape[:-2], chosen.links(mechanism)
        self.row = {i: k for k, i in enumerate(self.links)}

    def _zeros(self, *shape: int) -> Array:
        return self.domain.zeros(*self.lead, *shape)

    @cached_property
    def X(self) -> Array:
        X = self._zeros(6 * len(self.links), 6 * len(self.links))
        X[...] = self.domain.eye(X.shape[-1])
        for i, k in self.row.items():
            above = self.row.get(self.mechanism.joints[i].parent)
            if above is not None:
                X[..., stack_rows(k), : 6 * k] = self.given.X[..., i, :, :] @ X[..., stack_rows(above), : 6 * k]
        return X

    @cached_property
    def X_b(self) -> Array:
        X_b = self._zeros(6 * len(self.links), 6)
        for i, k in self.row.items():
            parent, step = self.mechanism.joints[i].parent, self.given.X[..., i, :, :]
            if parent in self.row:
                X_b[..., stack_rows(k), :] = step @ X_b[..., stack_rows(self.row[parent]), :]
            elif parent == self.chosen.base:  # a link that stands on the ground beside the base does not follow it
                X_b[..., stack_rows(k), :] = step
        return X_b

    @cached_property
    def Phi(self) -> Array:
        columns = self.chosen.link_columns(self.mechanism)
        Phi = self._zeros(6 * len(self.links), len(columns))
        for i, k in self.row.items():
            own = self.mechanism.joints[i].v
            if own.stop > own.start:
                first = columns.index(own.start)
                here = slice(first, first + own.stop - own.start)
                Phi[..., stack_rows(k), here] = self.given.Phi[..., self.mechanism.columns[i]]
        return Phi

    @cached_property
    def Phi_b(self) -> Array:
        if self.chosen.base == GROUND:
            return self._zeros(6, 0)
        return self.given.Phi[..., self.mechanism.columns[self.chosen.base]]

    @cached_property
    def B(self) -> Array:
        B = self._zeros(6 * len(self.chosen.tips), 6 * len(self.links))
        for j, frame in enumerate(self.chosen.tips):
            step = frame_crossing(frame, domain=self.domain).matrix()
            B[..., stack_rows(j), stack_rows(self.row[frame.body])] = step
        return B

    @cached_property
    def D(self) -> Array:
        return np.swapaxes(self.B, -1, -2)

    @cached_property
    def M_q(self) -> Array:
        M_q, own = self._zeros(6 * len(self.links), 6 * len(self.links)), self._inertias
        for i, k in self.row.items():
            M_q[..., stack_rows(k), stack_rows(k)] = own[i]
        return M_q

    @cached_property
    def M_b(self) -> Array:
        M_b = self._zeros(6, 6)
        if self.chosen.base != GROUND:
            M_b[...] = self._inertias[self.chosen.base]
        return M_b

    @cached_property
    def _inertias(self) -> list[Array]:
        return link_inertias(self.mechanism, domain=self.domain)

    @cached_property
    def V(self) -> Array:
        return self._stacked(self.given.V)

    @cached_property
    def V_b(self) -> Array:
        return self._of_base(self.given.V)

    @cached_property
    def b(self) -> Array:
        return self._stacked(self.given.b)

    @cached_property
    def b_b(self) -> Array:
        return self._of_base(self.given.b)

    @cached_property
    def c(self) -> Array:
        """Accumulated outwards; the base's own part comes by X_b."""
        carried: dict[int, Array] = {self.chosen.base: self._of_base(self.given.zeta)}
        for i in self.links:
            before = carried.get(self.mechanism.joints[i].parent)
            own = self.given.zeta[..., i, :]
            carried[i] = own if before is None else own + (self.given.X[..., i, :, :] @ before[..., None])[..., 0]
        return np.concatenate([carried[i] for i in self.links], axis=-1) if self.links else self._zeros(0)

    def _stacked(self, parts: Array) -> Array:
        return parts[..., self.links, :].reshape(*self.lead, 6 * len(self.links))

    def _of_base(self, parts: Array) -> Array:
        return self._zeros(6) if self.chosen.base == GROUND else parts[..., self.chosen.base, :]


def structure(mechanism: Mechanism, q: Array, v: Array, chosen: Split, *, domain: Domain = FLOAT) -> Structure:
    """All operators of (11)-(19) as matrices, at one state."""
    stack = Stack(mechanism, chosen, pieces(mechanism, q, v, domain=domain), domain=domain)
    return Structure(**{field.name: getattr(stack, field.name) for field in fields(Structure)})


__all__ = ["Pieces", "Stack", "Structure", "pieces", "structure"]
