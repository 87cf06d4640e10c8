"""Inverse and forward dynamics of long chains as rolled kernels: the steps of `denoc`, one joint at a time.

Straight-line code grows with the mechanism until compiling it and fetching it cost more than its folded zeros save.
Here each *kind* of joint is traced once, from the same step functions, and `kernels.scan` runs the steps over the tree.
A kind is a joint model together with the pattern of its constants: entries that are 0, 1 or −1 are folded into the
code, every other number is read from a table. What a later pass needs of the joint's configuration (R, r, H) is stored
with the node, not computed again.

    inverse   outwards: motion, wrench            inwards: γ_j += B_ijᵀγ_i, τ_i = H_iᵀγ_i
    forward   outwards: motion, wrench            inwards: eliminate, γ_j += B_ijᵀ(γ_i + ψ_i τ̂_i)      outwards: θ̈_i

(η of (35) and the bias wrench γ obey the same recursion, so one field carries their sum.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, GraphDomain
from polybody.algebra.graph import Node
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.articulated import articulated_to_parent, body_matrix, eliminate
from polybody.formulations.denoc.inverse import Motion, body_wrench, joint_force, outward_motion
from polybody.formulations.denoc.links import Crossing, Link, crossing, inertial
from polybody.mechanism.joints import JointModel, ReversedJoint
from polybody.mechanism.mechanism import Mechanism, TreeJoint
from polybody.model.tracing import graph_domain, source_digest

if TYPE_CHECKING:
    from polybody.kernels import Kernel

#: Numbers folded into the code of a kind; all others come from its table.
FOLDED = (0.0, 1.0, -1.0)
#: Numbers of joints from which rolled code pays: for chains of few kinds of joint, and for any mechanism.
FEW_KINDS_FROM, ANY_FROM = 16, 60
_UPPER = [(i, j) for i in range(6) for j in range(i, 6)]


def can_roll(mechanism: Mechanism) -> bool:
    """Point springs, springs on curved manifolds and rotors that couple joints need the whole mechanism at once."""
    curved = any(j.stiffness.any() and not j.model.rates_are_velocities for j in mechanism.joints)
    return not mechanism.springs and not curved and mechanism.separable


def worth_rolling(mechanism: Mechanism) -> bool:
    """Where rolled code was measured to be no slower than straight-line code, and to compile faster.

    A chain of few kinds gains from about 16 joints on; a robot of many kinds from about 60 (benchmarks/README.md).
    """
    n = len(mechanism.joints)
    if n < FEW_KINDS_FROM or not can_roll(mechanism):
        return False
    return n >= ANY_FROM or len(set(Roller(mechanism).kinds)) * 5 <= n


def _model_key(model: JointModel) -> Hashable:
    if isinstance(model, ReversedJoint):
        return ("reversed", _model_key(model.joint))
    joint_map = getattr(model, "map", None)
    if joint_map is None:
        return model.kind
    return (type(model).__name__, joint_map.H.shape[1], joint_map.H.tobytes(), joint_map.stages)


@dataclass(frozen=True)
class Kind:
    """A joint model and, for each number of its link, the value folded into code or None."""

    model: Hashable
    pattern: tuple[float | None, ...]


def _numbers(mechanism: Mechanism, joint: TreeJoint) -> Array:
    """All constants of one link in a row: placement, offset, mass, moment, inertia, armature, spring, damper, rest."""
    mass, moment, inertia = inertial(mechanism, joint.index, domain=FLOAT)
    parts = (
        joint.rotation, joint.position, [mass], moment, inertia[np.triu_indices(3)],
        mechanism.armature[joint.v, joint.v], joint.stiffness, joint.damping, joint.rest,
    )  # fmt: skip
    return np.concatenate([np.ravel(part) for part in parts])


class _Constants:
    """A link rebuilt from a kind's pattern and its table's numbers, as nodes."""

    def __init__(self, kind: Kind, joint: TreeJoint, table: Array, domain: GraphDomain) -> None:
        free = iter(table)
        values = np.array([next(free) if value is None else value for value in kind.pattern], dtype=object)
        r = joint.nv
        ends = np.cumsum([9, 3, 1, 3, 6, r * r, r * r, r * r, joint.nq])
        place, offset, mass, moment, six, armature, stiffness, damping, rest = np.split(values, ends[:-1])
        inertia = domain.zeros(3, 3)
        for value, (i, j) in zip(six, zip(*np.triu_indices(3), strict=True), strict=True):
            inertia[i, j] = inertia[j, i] = value
        self.link = Link(
            parent=0, placement=place.reshape(3, 3), offset=offset, mass=mass[0], moment=moment, inertia=inertia,
            armature=armature.reshape(r, r), joint=joint,
        )  # fmt: skip
        self.stiffness, self.damping, self.rest = stiffness.reshape(r, r), damping.reshape(r, r), rest

    def passive(self, q: Array, v: Array) -> Array:
        """What the joint's own spring and damper exert; the spring only where ξ = q − rest."""
        force = -(self.damping @ v)
        return force - self.stiffness @ (q - self.rest) if len(q) == len(v) else force


class Roller:
    """The kinds of one mechanism, their tables, and the step functions of the passes."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.graph = graph_domain()
        rows = [_numbers(mechanism, joint) for joint in mechanism.joints]
        self.kinds = [
            Kind(_model_key(joint.model), tuple(float(x) if x in FOLDED else None for x in row))
            for joint, row in zip(mechanism.joints, rows, strict=True)
        ]
        free = [
            [x for x, folded in zip(row, kind.pattern, strict=True) if folded is None]
            for row, kind in zip(rows, self.kinds, strict=True)
        ]
        self.table = np.zeros((len(rows), max(1, *(len(numbers) for numbers in free))))
        for i, numbers in enumerate(free):
            self.table[i, : len(numbers)] = numbers
        #: one joint of each kind, to trace from
        self.sample = {kind: joint for kind, joint in zip(self.kinds, mechanism.joints, strict=True)}
        self.geometry = lru_cache(None)(self._geometry)

    def _variables(self, *sizes: tuple[str, int]) -> tuple[list[Any], list[Array]]:
        pairs = [self.graph.variables(name, size) for name, size in sizes]
        return [column for column, _ in pairs], [array for _, array in pairs]

    def _function(self, columns: list[Any], outputs: list[Any]) -> Any:
        import casadi

        results = [self.graph.column(np.concatenate([np.ravel(x) for x in group])) for group in outputs]
        return casadi.Function("step", columns, results)

    def _geometry(self, kind: Kind) -> tuple[int, Callable[[Array, Array], tuple[Crossing, list[Any]]]]:
        """How many numbers a kind's crossing stores, and a maker of crossings that lists them."""
        count = len(self._stored(kind)[1])
        return count, lambda q, table: self._crossing(kind, q, table)

    def _crossing(self, kind: Kind, q: Array, table: Array) -> tuple[Crossing, list[Any]]:
        joint = self.sample[kind]
        constants = _Constants(kind, joint, table, self.graph)
        step = crossing(constants.link, q, domain=self.graph)
        return step, _distinct([step.factors[1], step.r, step.H])

    def _stored(self, kind: Kind) -> tuple[Crossing, list[Any]]:
        joint = self.sample[kind]
        _, (q, table) = self._variables(("q", joint.nq), ("c", self.table.shape[1]))
        return self._crossing(kind, q, table)

    def _reread(self, kind: Kind, table: Array, stored: Array) -> Crossing:
        """The crossing with its variable entries replaced by what the first pass stored."""
        step, entries = self._stored(kind)
        lookup = {entry: stored[k] for k, entry in enumerate(entries)}

        def swap(array: Array) -> Array:
            flat = [lookup[x] if isinstance(x, Node) else x for x in array.ravel()]
            return np.array(flat, dtype=object).reshape(array.shape)

        placement = _Constants(kind, self.sample[kind], table, self.graph).link.placement
        return Crossing((placement, swap(step.factors[1])), swap(step.r), swap(step.H), step.trivial)

    @property
    def stored_width(self) -> int:
        return max(1, *(self.geometry(kind)[0] for kind in self.sample))

    def outward(self, kind: Kind, with_acceleration: bool) -> Any:
        """(constants, q, v[, a], parent's motion) -> motion, wrench, stored geometry."""
        joint = self.sample[kind]
        more = [("a", joint.nv)] if with_acceleration else []
        columns, arrays = self._variables(
            ("c", self.table.shape[1]), ("q", joint.nq), ("v", joint.nv), *more, ("before", 9)
        )
        table, q, v, before = *arrays[:3], arrays[-1]
        a = arrays[3] if with_acceleration else None
        step, entries = self._crossing(kind, q, table)
        link = _Constants(kind, joint, table, self.graph).link
        motion = outward_motion(
            link, step, Motion(before[:3], before[3:6], before[6:]), q, v, a, domain=self.graph
        )
        n, f = body_wrench(link, motion)
        padding = [0.0] * (self.stored_width - len(entries))
        stored = np.array([*entries, *padding], dtype=object)
        return self._function(columns, [[motion.omega, motion.alpha, motion.a], [n, f], [stored]])

    def project(self, kind: Kind) -> Any:
        """(constants, q, v, a, γ, stored) -> γ for the parent, τ."""
        joint = self.sample[kind]
        columns, (table, q, v, a, gamma, stored) = self._variables(
            ("c", self.table.shape[1]), ("q", joint.nq), ("v", joint.nv), ("a", joint.nv),
            ("gamma", 6), ("stored", self.stored_width),
        )  # fmt: skip
        constants, step = _Constants(kind, joint, table, self.graph), self._reread(kind, table, stored)
        tau = joint_force(step, gamma[:3], gamma[3:]) + constants.link.armature @ a - constants.passive(q, v)
        return self._function(columns, [list(step.wrench_to_parent(gamma[:3], gamma[3:])), [tau]])

    def eliminated(self, kind: Kind) -> Any:
        """(constants, q, v, τ, γ, stored, M̂) -> ψ, m̂⁻¹τ̂, γ and M̂ for the parent."""
        joint = self.sample[kind]
        columns, (table, q, v, tau, gamma, stored, packed) = self._variables(
            ("c", self.table.shape[1]), ("q", joint.nq), ("v", joint.nv), ("tau", joint.nv),
            ("gamma", 6), ("stored", self.stored_width), ("M", 21),
        )  # fmt: skip
        constants, step = _Constants(kind, joint, table, self.graph), self._reread(kind, table, stored)
        M_hat = body_matrix(constants.link, domain=self.graph) + _unpacked(packed)
        factors, rest = eliminate(constants.link, step, M_hat, domain=self.graph)
        tau_hat = tau + constants.passive(q, v) - joint_force(step, gamma[:3], gamma[3:])
        pushed = gamma + factors.psi @ tau_hat
        n, f = step.wrench_to_parent(pushed[:3], pushed[3:])
        upward = articulated_to_parent(step, rest, domain=self.graph)
        padding = np.full(36 - factors.psi.size, 0.0, dtype=object)
        own = np.array([*(factors.inverse @ tau_hat), *[0.0] * (6 - joint.nv)], dtype=object)
        return self._function(columns, [[factors.psi, padding], [own], [n, f], [[upward[ij] for ij in _UPPER]]])

    def accelerated(self, kind: Kind) -> Any:
        """(constants, stored, ψ, m̂⁻¹τ̂, parent's μ) -> μ, θ̈."""
        joint = self.sample[kind]
        columns, (table, stored, psi, own, mu) = self._variables(
            ("c", self.table.shape[1]), ("stored", self.stored_width), ("psi", 36), ("own", 6), ("mu", 6)
        )
        step = self._reread(kind, table, stored)
        psi = psi[: 6 * joint.nv].reshape(6, joint.nv)
        w, u = mu[:3], mu[3:]
        turned = step.to_child(w)
        moved = step.to_child(u + cross(w, step.r))
        acceleration = own[: joint.nv] - (psi[:3].T @ turned + psi[3:].T @ moved)
        jump = step.H @ acceleration
        return self._function(columns, [[turned + jump[:3], moved + jump[3:]], [acceleration]])


def _distinct(arrays: list[Array]) -> list[Any]:
    """The different nodes among the entries, in order of appearance."""
    found: dict[Any, None] = {}
    for array in arrays:
        for entry in array.ravel():
            if isinstance(entry, Node):
                found.setdefault(entry)
    return list(found)


def _unpacked(packed: Array) -> Array:
    M = np.empty((6, 6), dtype=object)
    for value, (i, j) in zip(packed, _UPPER, strict=True):
        M[i, j] = M[j, i] = value
    return M


def rolled_kernel(mechanism: Mechanism, name: str) -> Kernel:
    """The rolled kernel of "inverse_dynamics" or "forward_dynamics"."""
    from polybody.kernels import scan

    roller = Roller(mechanism)
    third = "a" if name == "inverse_dynamics" else "tau"
    result = "tau" if name == "inverse_dynamics" else "a"
    slices = {"q": [j.q.start for j in mechanism.joints]}
    slices |= {key: [j.v.start for j in mechanism.joints] for key in ("v", "tau", "a")}
    fields = {"motion": 9, "gamma": 6, "stored": roller.stored_width}
    if name == "inverse_dynamics":
        passes = _inverse_passes(roller, scan)
    else:
        passes = _forward_passes(roller, scan)
        fields |= {"M": 21, "psi": 36, "own": 6, "mu": 6}
    recursion = scan.Scan(
        parents=[j.parent for j in mechanism.joints],
        kinds=roller.kinds,
        constants={"c": roller.table},
        fields=fields,
        slices=slices,
        passes=passes,
        root={"motion": [0.0] * 6 + [float(-g) for g in mechanism.gravity]},
    )
    nq, nv = mechanism.nq, mechanism.nv
    return scan.build(
        f"{name}_rolled", [("q", nq), ("v", nv), (third, nv)], [(result, (nv,))], recursion,
        f"rolled:{name}:{source_digest()}",
    )  # fmt: skip


def _inverse_passes(roller: Roller, scan: Any) -> list[Any]:
    return [
        scan.Pass("motion", scan.OUTWARD, lambda kind: roller.outward(kind, True), constants=["c"],
                  inputs=["q", "v", "a"], parent=["motion"], writes=["motion", "gamma", "stored"]),
        scan.Pass("project", scan.INWARD, roller.project, constants=["c"], inputs=["q", "v", "a"],
                  own=["gamma", "stored"], adds=["gamma"], outputs=["tau"]),
    ]  # fmt: skip


def _forward_passes(roller: Roller, scan: Any) -> list[Any]:
    return [
        scan.Pass("motion", scan.OUTWARD, lambda kind: roller.outward(kind, False), constants=["c"],
                  inputs=["q", "v"], parent=["motion"], writes=["motion", "gamma", "stored"]),
        scan.Pass("eliminate", scan.INWARD, roller.eliminated, constants=["c"], inputs=["q", "v", "tau"],
                  own=["gamma", "stored", "M"], writes=["psi", "own"], adds=["gamma", "M"]),
        scan.Pass("accelerate", scan.OUTWARD, roller.accelerated, constants=["c"], own=["stored", "psi", "own"],
                  parent=["mu"], writes=["mu"], outputs=["a"]),
    ]  # fmt: skip


__all__ = ["ANY_FROM", "Roller", "can_roll", "rolled_kernel", "worth_rolling"]
