"""The nodes of a long chain by kind, with the numbers in which nodes of one kind differ.

Straight-line code grows with the mechanism until compiling it and fetching it cost more than its folded zeros save.
Here each *kind* of node is traced once, from the texts of `mechanism` and `formulations`, and `kernels.scan` runs the
steps over the tree. A kind is a joint model together with the pattern of its constants: entries that are 0, 1 or −1 are
folded into the code, every other number is read from a table. A quantity names the groups of constants it needs, so
that joints that differ in nothing else are of one kind.

Nodes are the joints with their bodies, in the mechanism's order, and after them what is not in the tree:

    frame      a child of its body
    spring     between two points: a child of one body, the partner of the other
    coupling   one number of armature or motor damping that couples velocity b to the force on velocity a: a child of
               the joint of a, with b as its part of v and a
    end        one child of the root, for what is computed from totals
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array
from polybody.formulations.denoc.links import inertial
from polybody.late import dataclass
from polybody.mechanism.friction import numbers_of
from polybody.mechanism.geared import GearedJoint
from polybody.mechanism.joints import JointModel, ReversedJoint
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism, PointSpring, TreeJoint
from polybody.mechanism.turned import TurnedJoint
from polybody.quantities.derivatives import graph_domain

#: Numbers folded into the code of a kind; all others come from its table.
FOLDED = (0.0, 1.0, -1.0)
#: Groups of a joint's constants: where it is, what it moves (about O_i, or about the mass centre), what acts in it.
PLACE = ("placement", "offset")
LINK = (*PLACE, "mass", "moment", "inertia")
BODY = (*PLACE, "mass", "com", "central")
FORCES = ("stiffness", "damping", "friction", "rest")

JOINT, FRAME, SPRING, COUPLING, END = "joint", "frame", "spring", "coupling", "end"
_TRIANGLE = np.triu_indices(3)


@dataclass(frozen=True)
class Kind:
    """What a node is, and for each of its numbers the value folded into code or None."""

    role: str
    model: Hashable
    pattern: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """A node before it has a kind: its numbers, and what it represents."""

    role: str
    model: Hashable
    numbers: Array
    parent: int = GROUND
    partner: int = GROUND
    joint: TreeJoint | None = None
    frame: BodyFrame | None = None
    spring: PointSpring | None = None
    dofs: tuple[int, int] = (0, 0)  # of a coupling: a, b


def model_key(model: JointModel) -> Hashable:
    """Equal for joint models that are written alike."""
    if isinstance(model, ReversedJoint):
        return ("reversed", model_key(model.joint))
    if isinstance(model, GearedJoint):
        return ("geared", model_key(model.model), model.factor, model.offset)
    if isinstance(model, TurnedJoint):
        return ("turned", model_key(model.model), model.offset)
    joint_map = getattr(model, "map", None)
    if joint_map is None:
        return model.kind
    return (type(model).__name__, joint_map.H.shape[1], joint_map.H.tobytes(), joint_map.stages)


def group_sizes(joint: TreeJoint) -> dict[str, int]:
    """How many numbers each group of constants has."""
    r = joint.nv
    return {
        "placement": 9, "offset": 3, "mass": 1, "moment": 3, "inertia": 6, "com": 3, "central": 6, "armature": r * r,
        "stiffness": r * r, "damping": r * r, "friction": 6 * r, "rest": joint.nq,
    }  # fmt: skip


def _joint_numbers(mechanism: Mechanism, joint: TreeJoint, groups: Sequence[str]) -> Array:
    body = mechanism.bodies[joint.index]
    mass, moment, inertia = inertial(mechanism, joint.index, domain=FLOAT)
    owns = float(not joint.follows)  # rotors and bearings are said of slots: they count once
    known = {
        "placement": joint.rotation, "offset": joint.position, "mass": [mass], "moment": moment,
        "inertia": inertia[_TRIANGLE], "com": body.com, "central": body.inertia[_TRIANGLE],
        "armature": owns * mechanism.armature_entries.block(joint.v), "stiffness": joint.stiffness,
        "damping": joint.damping + owns * mechanism.motor_damping_entries.block(joint.v), "rest": joint.rest,
        "friction": numbers_of(joint.friction, joint.nv),
    }  # fmt: skip
    return np.concatenate([np.zeros(0), *(np.ravel(known[group]) for group in groups)])


def joint_nodes(mechanism: Mechanism, groups: Sequence[str], only: Sequence[int] | None = None) -> list[Node]:
    """A node for each joint, or for those of `only`, which must hold every joint below them."""
    kept = range(len(mechanism.joints)) if only is None else only
    number = {GROUND: GROUND} | {i: k for k, i in enumerate(kept)}
    return [
        Node(JOINT, model_key(joint.model), _joint_numbers(mechanism, joint, groups), number[joint.parent], joint=joint)
        for joint in (mechanism.joints[i] for i in kept)
    ]


def independent_nodes(mechanism: Mechanism) -> list[Node]:
    """A node for each joint that owns its slices of q and v: no constants, and nothing passes between them."""
    return [Node(JOINT, model_key(joint.model), np.zeros(0), joint=joint) for joint in mechanism.independent_joints]


def frame_node(frame: BodyFrame, parent: int) -> Node:
    return Node(FRAME, None, np.concatenate([np.ravel(frame.rotation), frame.position]), parent, frame=frame)


def spring_nodes(mechanism: Mechanism) -> list[Node]:
    return [
        Node(SPRING, None, np.array([*s.point_a, *s.point_b, s.stiffness, s.length, s.damping]), s.body_a, s.body_b,
             spring=s)
        for s in mechanism.springs
    ]  # fmt: skip


def coupling_nodes(mechanism: Mechanism, *, within: bool = False) -> list[Node]:
    """What rotors and motors' bearings couple between different joints, and within them if asked, number by number."""
    owner = {k: joint for joint in mechanism.independent_joints for k in range(joint.v.start, joint.v.stop)}
    both: dict[tuple[int, int], Array] = {}
    for k, entries in enumerate((mechanism.armature_entries, mechanism.motor_damping_entries)):
        for a, b, value in zip(entries.rows.tolist(), entries.columns.tolist(), entries.values, strict=True):
            both.setdefault((a, b), np.zeros(2))[k] = value
    nodes = []
    for (a, b), numbers in sorted(both.items(), key=lambda item: item[0]):
        joint = owner[a]
        if within or owner[b] is not joint:
            nodes.append(Node(COUPLING, (a - joint.v.start, joint.nv), numbers, joint.index, joint=joint, dofs=(a, b)))
    return nodes


class Chain:
    """Nodes with their kinds, and the table of the numbers that are not folded."""

    def __init__(self, mechanism: Mechanism, groups: Sequence[str], nodes: Iterable[Node]) -> None:
        self.mechanism, self.groups = mechanism, tuple(groups)
        self.nodes = list(nodes)
        self.graph = graph_domain()
        self.kinds = [
            Kind(node.role, node.model, tuple(float(x) if x in FOLDED else None for x in node.numbers))
            for node in self.nodes
        ]
        free = [
            [x for x, folded in zip(node.numbers, kind.pattern, strict=True) if folded is None]
            for node, kind in zip(self.nodes, self.kinds, strict=True)
        ]
        self.table = np.zeros((len(free), max([1, *(len(numbers) for numbers in free)])))
        for i, numbers in enumerate(free):
            self.table[i, : len(numbers)] = numbers
        #: one node of each kind, to trace from
        self.sample = dict(zip(self.kinds, self.nodes, strict=True))

    def joint(self, kind: Kind) -> TreeJoint:
        """The joint that a kind of joint is traced from."""
        joint = self.sample[kind].joint
        assert joint is not None
        return joint

    @property
    def joint_kinds(self) -> list[Kind]:
        return [kind for kind in self.sample if kind.role == JOINT]

    @property
    def most_velocities(self) -> int:
        """The largest number of velocities of a joint."""
        return max([1, *(self.joint(kind).nv for kind in self.joint_kinds)])

    def values(self, kind: Kind, table: Array) -> Array:
        """All numbers of a kind: folded ones, and nodes of the table."""
        free = iter(table)
        return np.array([next(free) if value is None else value for value in kind.pattern], dtype=object)

    def function(self, inputs: Sequence[tuple[str, int]], text: Callable[..., Sequence[Any]]) -> Any:
        """The casadi.Function (table, *inputs) -> one column for each group of arrays that `text` returns."""
        import casadi

        pairs = [self.graph.variables(name, size) for name, size in [("c", self.table.shape[1]), *inputs]]
        outputs = text(*(array for _, array in pairs))
        results = [self.graph.column(np.concatenate([np.zeros(0, dtype=object), *map(np.ravel, group)]))
                   for group in outputs]  # fmt: skip
        return casadi.Function("step", [column for column, _ in pairs], results)


__all__ = [
    "BODY", "COUPLING", "END", "FORCES", "FRAME", "JOINT", "LINK", "PLACE", "SPRING", "Chain", "Kind", "Node",
    "coupling_nodes", "frame_node", "group_sizes", "independent_nodes", "joint_nodes", "model_key", "spring_nodes",
]  # fmt: skip
