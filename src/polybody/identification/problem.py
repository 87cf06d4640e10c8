"""The linear problem that recordings make: A x = b, x the base parameters and the coefficients of the joints.

Rows are those of independent coordinates (all velocities of a tree): with loops Gᵀ Y p = G_Aᵀ τ_A holds however the
drives share the load. Springs that the model has are taken as known, and are on the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polybody.description.records import Description
from polybody.identification.base_parameters import BaseParameters, base_parameters
from polybody.identification.joint_terms import MORE, PLAIN, Speeds, term_values
from polybody.identification.signals import States
from polybody.late import dataclass
from polybody.mechanism.columns import actuated, velocity_names
from polybody.model.model import Model
from polybody.model.validation import model_from

Array = np.ndarray


def bare(model: Model) -> Model:
    """The model without what is to be estimated in its joints: friction, damping, armature."""
    d: Description = model.description
    joints = tuple(replace(j, damping=None, friction=None, armature=None) for j in d.joints)
    return model_from(replace(d, joints=joints), warn=False)


@dataclass(frozen=True, eq=False)
class Rows:
    """One recording as rows of the problem before friction's choice: (N, m, …)."""

    states: States
    bodies: Array  # regressor of the bodies' base columns
    G: Array | None  # (N, nv, m) with loops
    b: Array  # filtered forces on independent coordinates, springs taken off
    raw: Array  # the same of forces as measured


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its terms and what they are columns of."""

    model: Model  # bare
    base: BaseParameters
    terms: tuple[str, ...]
    joints: tuple[int, ...]  # velocities with terms
    speeds: Speeds

    @property
    def names(self) -> tuple[str, ...]:
        """Of all parameters: bodies' and joints', then those of terms that are no columns of the model's regressor."""
        return (*self.base.names, *self._more_names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The formulas of what is estimated."""
        return (*self.base.formulas, *self._more_names)

    @property
    def _more_names(self) -> list[str]:
        names = velocity_names(self.model.mechanism)
        return [f"{names[k]}.{term}" for term in self.more for k in self.joints]

    @property
    def more(self) -> tuple[str, ...]:
        return tuple(t for t in MORE if t in self.terms)

    @property
    def matrix(self) -> Array:
        """x = matrix p, all parameters."""
        count = len(self.more) * len(self.joints)
        (r, n), K = self.base.matrix.shape, self.base.matrix
        return np.block([[K, np.zeros((r, count))], [np.zeros((count, n)), np.eye(count)]])

    def rows(self, states: States) -> Rows:
        n = 10 * len(self.model.mechanism.bodies)
        kept = [int(k) for k in self.base.pivots if k < n]
        Y = self.model.regressor(states.q, states.v, states.a)[..., kept]
        springs = self.model.tree.passive_forces(states.q, states.v)
        b, raw = states.tau + states.filtered(springs), states.raw + springs
        G = None
        if self.model.mechanism.constrained:
            G = self.model.constraints.joint_influence(states.q, 1).G
            # forces are filtered before the loops share them: G changes slowly
            b, raw = (np.einsum("tnm,tn->tm", G, x) for x in (b, raw))
        return Rows(states, Y, G, b, raw)

    def columns(self, rows: Rows, load: Array) -> Array:
        """A (N, m, columns), not yet filtered; `load` (N, nv) is the bodies' joint force."""
        s = rows.states
        parts = [rows.bodies]
        n, count = 10 * len(self.model.mechanism.bodies), len(self.joints)
        pivots = [int(k) for k in self.base.pivots if k >= n]
        for block, term in enumerate(self.base.terms):
            own = [k - n - block * count for k in pivots if block * count <= k - n < (block + 1) * count]
            parts.append(self._spread(rows, term_values(term, s.v, s.a, self.speeds, load), own))
        for term in self.more:
            parts.append(self._spread(rows, term_values(term, s.v, s.a, self.speeds, load), range(count)))
        return np.concatenate(parts, axis=-1)

    def _spread(self, rows: Rows, values: Array, own: Sequence[int]) -> Array:
        """Columns (N, m, len(own)) of a term's values (N, nv) at velocities `joints[own]`."""
        at = [self.joints[k] for k in own]
        if rows.G is not None:
            return np.einsum("tkm,tk->tmk", rows.G[:, at], values[:, at])
        result = np.zeros((len(values), values.shape[1], len(at)))
        result[:, at, range(len(at))] = values[:, at]
        return result

    def load(self, rows: Rows, x: Array) -> Array:
        """|τ_b| at the velocities of the joints: the bodies' joint forces by the estimate, (N, nv)."""
        forces = rows.bodies @ x[: rows.bodies.shape[-1]]
        if rows.G is None:
            return forces
        driven = list(self.joints)
        result = np.zeros((len(forces), self.model.nv))
        GA = rows.G[:, driven]
        result[:, driven] = np.einsum("tkm,tm->tk", np.linalg.pinv(GA.swapaxes(1, 2)), forces)
        return result


def make_problem(model: Model, terms: Sequence[str], speeds: Speeds, base: BaseParameters | None = None) -> Problem:
    """The problem of a model whose driven joints have these terms."""
    joints = tuple(int(k) for k in actuated(model.mechanism))
    plain = tuple(t for t in PLAIN if t in terms)
    found = base_parameters(model, plain, joints=joints) if base is None else base
    return Problem(model, found, tuple(terms), joints, speeds)


__all__ = ["Problem", "Rows", "bare", "make_problem"]
