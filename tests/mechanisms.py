"""Random mechanisms for tests: seeded trees of every kind of joint, physically possible, in general position.

    rng = np.random.default_rng(7)
    mechanism = mechanism_from(random_tree(rng, 6))
    mechanism = mechanism_from(random_tree(rng, 4, kinds=ONE_NUMBER, springs=0, damping=False))

The same seed and arguments give the same description. `descriptions()` is a hypothesis strategy over these trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from polybody.algebra.rotations import quaternion_matrix
from polybody.algebra.spatial import adjoint, inverse_pose
from polybody.description import shapes
from polybody.description.records import (
    WORLD,
    Body,
    Coupling,
    Description,
    Frame,
    Guide,
    Joint,
    Limits,
    Loop,
    Motor,
    Rod,
    Spring,
    Transmission,
    frozen_array,
)
from polybody.mechanism.kinds import joint_model, joint_size
from polybody.model.validation import model_from

Array = np.ndarray

ONE_NUMBER = ("revolute", "continuous", "prismatic", "screw")
NAMED = (*ONE_NUMBER, "cylindrical", "universal", "spherical", "planar", "floating")
#: "custom" is a simple joint (closed under the bracket), "compound" a custom joint of several stages
ALL_KINDS = (*NAMED, "custom", "compound")
#: joints that close the circuits of `closed_tree`
CLOSING = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "planar")


def random_rotation(rng: np.random.Generator) -> Array:
    q = rng.normal(size=4)
    return quaternion_matrix(q / np.linalg.norm(q))


def random_pose(rng: np.random.Generator, reach: float = 0.6) -> Array:
    """A general rotation, and a shift of up to `reach` in each direction."""
    T = np.eye(4)
    T[:3, :3] = random_rotation(rng)
    T[:3, 3] = rng.uniform(-reach, reach, size=3)
    return T


def random_axis(rng: np.random.Generator) -> Array:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_body(rng: np.random.Generator, name: str) -> Body:
    """Mass, com and inertia of a few random points of mass: always physically possible."""
    masses = rng.uniform(0.2, 0.8, size=5)
    points = rng.normal(scale=0.15, size=(5, 3)) + rng.uniform(-0.3, 0.3, size=3)
    mass = float(masses.sum())
    com = masses @ points / mass
    arms = points - com
    inertia = sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))
    return Body(name, mass, frozen_array(com), frozen_array((inertia + np.transpose(inertia)) / 2))


def _closed_maps(rng: np.random.Generator) -> list[Array]:
    """Bases of subalgebras of se(3) in standard position."""
    e, zero = np.eye(3), np.zeros(3)
    turns = [np.concatenate([e[k], zero]) for k in range(3)]
    slides = [np.concatenate([zero, e[k]]) for k in range(3)]
    helix = np.concatenate([e[2], rng.uniform(-0.3, 0.3) * e[2]])
    return [
        np.column_stack([turns[2], slides[2]]),  # cylinder
        np.column_stack([slides[0], slides[1]]),  # two slides
        np.column_stack([turns[0], turns[1], turns[2]]),  # ball
        np.column_stack([turns[2], slides[0], slides[1]]),  # plane
        np.column_stack([helix, slides[0], slides[1]]),  # screw and plane
        np.column_stack([slides[0], slides[1], slides[2]]),  # three slides
        np.column_stack([turns[2], slides[0], slides[1], slides[2]]),  # Schoenflies
    ]


def random_simple_map(rng: np.random.Generator) -> Array:
    """6×r, closed under the bracket, off the joint's origin and axes."""
    maps = _closed_maps(rng)
    place = random_pose(rng, 0.2)
    H = adjoint(place[:3, :3], place[:3, 3]) @ maps[int(rng.integers(len(maps)))]
    return H * rng.uniform(0.7, 1.3, size=H.shape[1])


def random_compound_map(rng: np.random.Generator) -> tuple[Array, tuple[int, ...]]:
    """6×r in two or three stages, each closed under the bracket; together they span r directions."""
    while True:
        stages = [
            random_simple_map(rng) if rng.random() < 0.3 else rng.normal(size=(6, 1)) for _ in range(rng.integers(2, 4))
        ]
        H = np.column_stack(stages)
        if H.shape[1] <= 5 and np.linalg.cond(H) < 10:
            return H, tuple(s.shape[1] for s in stages)


def random_joint(
    rng: np.random.Generator,
    name: str,
    kind: str,
    parent: str,
    child: str,
    *,
    stiffness: bool = False,
    damping: bool = False,
    armature: bool = False,
    limits: bool = False,
) -> Joint:
    """A joint of the kind in general position; stiffness, damping, rest and armature where asked for."""
    joint_map, stages = None, None
    if kind == "custom":
        joint_map = random_simple_map(rng)
    elif kind == "compound":
        kind, (joint_map, stages) = "custom", random_compound_map(rng)
    bare = Joint(
        name,
        kind,
        parent,
        child,
        origin=frozen_array(random_pose(rng)),
        axis=frozen_array(
            (0, 0, 1) if kind in ("fixed", "universal", "spherical", "floating", "custom") else random_axis(rng)
        ),
        pitch=float(rng.uniform(-0.3, 0.3)) if kind == "screw" else None,
        map=None if joint_map is None else frozen_array(joint_map),
        stages=stages,
    )
    nv = joint_size(bare)[1]
    if nv == 0:
        return bare

    def positive() -> Array:
        root = rng.normal(size=(nv, nv))
        return root @ root.T + 0.1 * np.eye(nv)

    more: dict[str, object] = {}
    if stiffness:
        model = joint_model(bare)
        more["stiffness"] = frozen_array(5 * positive())
        more["rest"] = frozen_array(model.integrate(model.neutral(), rng.uniform(-0.4, 0.4, size=nv)))
    if damping:
        more["damping"] = frozen_array(0.3 * positive())
        # numbers of no draw, so that mechanisms of a seed stay the same; smooth enough for differences
        law = {"coulomb": 0.2, "static": 0.35, "viscous": 0.05, "stribeck": 0.7, "exponent": 1.5, "regularisation": 0.4}
        more["friction"] = shapes.friction("friction", law, nv)
    if armature:
        more["armature"] = frozen_array(rng.uniform(0.01, 0.3, size=nv))
    if limits:
        more["limits"] = Limits(
            frozen_array(np.where(rng.random(nv) < 0.2, -np.inf, -rng.uniform(0.5, 3, size=nv))),
            frozen_array(np.where(rng.random(nv) < 0.2, np.inf, rng.uniform(0.5, 3, size=nv))),
            frozen_array(rng.uniform(1, 5, size=nv)),
            frozen_array(np.full(nv, np.inf)),
        )
        more["friction"] = shapes.friction("friction", rng.uniform(0, 0.2, size=nv), nv)
        more["active"] = tuple(bool(x) for x in rng.random(nv) < 0.7)
    return Joint(**{**bare.__dict__, **more})


def _random_motors(
    rng: np.random.Generator, joints: Sequence[Joint], chance: float
) -> tuple[tuple[Motor, ...], tuple[Transmission, ...]]:
    """Motors on active joints of one number, the first two coupled by a transmission."""
    able = [j for j in joints if j.kind in ONE_NUMBER and (j.active is None or j.active[0])]
    driven = [j.name for j in able if rng.random() < chance]
    motors = tuple(Motor(f"motor{i}", name, *rng.uniform(0.1, 1, size=6).tolist()) for i, name in enumerate(driven))
    gears = Transmission("gears", tuple(driven[:2]), frozen_array(rng.normal(size=(2, 2)) + 2 * np.eye(2)))
    return motors, (gears,) if len(driven) >= 2 else ()


def random_tree(
    rng: np.random.Generator | int,
    n: int,
    kinds: Sequence[str] = ALL_KINDS,
    *,
    branching: float = 0.4,
    reversed_joints: float = 0.25,
    fixed: float = 0.25,
    stiffness: float = 0.4,
    damping: float = 0.4,
    armature: float = 0.4,
    limits: float = 0.0,
    springs: int = 1,
    frames: int = 2,
    loops: int = 0,
    couplings: bool = False,
    motors: float = 0.0,
    gravity: Sequence[float] | None = None,
    floating_base: bool = False,
) -> Description:
    """A tree with n moving joints, drawn from `kinds`, each kind as often as the others while n allows.

    Numbers between 0 and 1 are probabilities: that a joint starts from any earlier body rather than the last one
    (`branching`), is given child-to-parent, has stiffness (with a rest position), damping, armature, limits, a motor
    (if it has one number); that a body carries another one welded to it (`fixed`). `springs` point springs, `frames`
    named frames and `loops` cut joints are added. Pass zeros for a plain tree. `floating_base` makes the first joint a
    floating `root_joint`.
    """
    rng = np.random.default_rng(rng)
    order = [k for _ in range(-(-n // len(kinds))) for k in rng.permutation(list(kinds))][:n]
    bodies: list[Body] = []
    joints: list[Joint] = []

    def near() -> str:
        if not bodies or rng.random() < 0.1:
            return WORLD if not (floating_base and bodies) else bodies[0].name
        return bodies[int(rng.integers(len(bodies)))].name if rng.random() < branching else bodies[-1].name

    def attach(name: str, kind: str, parent: str, child: str) -> None:
        ends = (child, parent) if rng.random() < reversed_joints and name != "root_joint" else (parent, child)
        passive = {"stiffness": stiffness, "damping": damping, "armature": armature, "limits": limits}
        chosen = {key: bool(rng.random() < chance) for key, chance in passive.items()}
        if name == "root_joint":
            chosen = dict.fromkeys(chosen, False)
        joints.append(random_joint(rng, name, kind, *ends, **chosen))
        bodies.append(random_body(rng, child))

    for i, kind in enumerate(order):
        root = floating_base and i == 0
        attach("root_joint" if root else f"joint{i}", "floating" if root else str(kind), near(), f"body{i}")
        if rng.random() < fixed:
            attach(f"weld{i}", "fixed", f"body{i}", f"part{i}")
    names = [body.name for body in bodies]

    def any_two() -> tuple[str, str]:
        moving = [name for name in names if name.startswith("body")]
        first = str(rng.choice(moving))
        others = [name for name in [WORLD, *moving] if name != first]
        return first, str(rng.choice(others))

    def point() -> Array:
        return frozen_array(rng.uniform(-0.3, 0.3, size=3))

    point_springs = []
    for i in range(springs):
        a, b = any_two()
        point_springs.append(
            Spring(
                f"spring{i}", a, point(), b, point(), *(float(x) for x in rng.uniform(0.2, 2, size=3) * (20, 0.4, 1))
            )
        )
    cut = []
    for i in range(loops):
        a, b = any_two()
        kind = str(rng.choice([k for k in ALL_KINDS if k != "floating"] + ["fixed"]))
        j = random_joint(rng, f"loop{i}", kind, a, b)
        place = frozen_array(random_pose(rng))
        cut.append(Loop(f"loop{i}", j.kind, a, b, j.origin, place, j.axis, j.pitch, j.map, j.stages))
    mimics = ()
    single = [joint.name for joint in joints if joint.kind in ONE_NUMBER]
    if couplings and len(single) > 1:
        # random limits hold what is near zero, so that a small offset leaves positions that both limits hold
        mimics = (Coupling(single[1], single[0], float(rng.normal()), float(rng.uniform(-0.4, 0.4))),)
    machines, gears = _random_motors(rng, joints, motors) if motors else ((), ())
    return Description(
        name="random",
        gravity=frozen_array(rng.normal(scale=5, size=3) if gravity is None else gravity),
        bodies=tuple(bodies),
        joints=tuple(joints),
        frames=tuple(
            Frame(f"frame{i}", str(rng.choice([WORLD, *names])), frozen_array(random_pose(rng))) for i in range(frames)
        ),
        loops=tuple(cut),
        springs=tuple(point_springs),
        couplings=mimics,
        motors=machines,
        transmissions=gears,
    )


def with_followers(rng: np.random.Generator, description: Description, most: int = 3) -> Description:
    """Up to `most` joints of one number made followers: of one leader or in a chain, before or after it in the tree,
    some with a negative factor, some with zero; limits are left out."""
    single = [str(name) for name in rng.permutation([j.name for j in description.joints if j.kind in ONE_NUMBER])]
    couplings = []
    for k, name in enumerate(single[1 : most + 1]):
        leader = single[k] if rng.random() < 0.5 else single[0]
        factor = 0.0 if rng.random() < 0.15 else float(rng.normal())
        couplings.append(Coupling(name, leader, factor, float(rng.normal())))
    joints = tuple(replace(joint, limits=None) for joint in description.joints)
    return replace(description, joints=joints, couplings=tuple(couplings))


def closed_tree(rng: np.random.Generator) -> tuple[Description, dict[str, np.ndarray]]:
    """A random tree whose bodies belong to two sub-networks or none, and what closes circuits where it is: (…, q)."""
    tree = random_tree(rng, 5, motors=0.5, frames=0)
    tree = with_followers(rng, tree, 2) if rng.random() < 0.5 else tree
    homes = {body.name: f"{rng.choice(['s0.', 's1.', ''])}{body.name}" for body in tree.bodies} | {"world": "world"}
    tree = replace(
        tree, bodies=tuple(replace(body, name=homes[body.name]) for body in tree.bodies),
        joints=tuple(replace(j, parent=homes[j.parent], child=homes[j.child]) for j in tree.joints),
        springs=tuple(replace(s, body_a=homes[s.body_a], body_b=homes[s.body_b]) for s in tree.springs))
    model = model_from(tree, warn=False)
    q = model.random_configuration(rng)
    moving = [homes[name] for name in homes if name.startswith("body")]
    loops, rods, guides = [], [], []
    for k in range(2):
        a, b = (str(name) for name in rng.choice(moving, 2, replace=False))
        T_a, T_b = model.pose(q, a), model.pose(q, b)
        here, there = rng.uniform(-0.3, 0.3, size=(2, 3))
        what = rng.choice(["loop", "loop", "rod", "line", "plane"])
        if what == "loop":
            joint = random_joint(rng, f"loop{k}", str(rng.choice(CLOSING)), a, b, stiffness=rng.random() < 0.5,
                                 damping=rng.random() < 0.5, armature=rng.random() < 0.3)
            origin = random_pose(rng)
            loops.append(Loop(joint.name, joint.kind, a, b, origin, inverse_pose(T_b) @ T_a @ origin, joint.axis,
                              stiffness=joint.stiffness, damping=joint.damping, rest=joint.rest,
                              armature=joint.armature))
        elif what == "rod":
            length = np.linalg.norm(T_a[:3, :3] @ here + T_a[:3, 3] - T_b[:3, :3] @ there - T_b[:3, 3])
            rods.append(Rod(f"rod{k}", a, here, b, there, float(length)))
        else:
            at = T_b[:3, :3].T @ (T_a[:3, :3] @ here + T_a[:3, 3] - T_b[:3, 3])
            guides.append(Guide(f"guide{k}", str(what), a, here, random_axis(rng), b, at))
    closed = replace(tree, loops=tuple(loops), rods=tuple(rods), guides=tuple(guides))
    return closed, {name: q[own] for name, (own, _) in model.joint_slices().items()}


@st.composite
def descriptions(draw: st.DrawFn, most: int = 8, kinds: Sequence[str] = ALL_KINDS, **options: object) -> Description:
    """Trees of 1 to `most` moving joints with loops, springs, limits and couplings; `options` go to `random_tree`."""
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(1, most))
    chosen = draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=len(kinds), unique=True))
    drawn: dict[str, object] = {
        "loops": draw(st.integers(0, 2)),
        "springs": draw(st.integers(0, 2)),
        "limits": draw(st.sampled_from([0.0, 0.5])),
        "couplings": draw(st.booleans()),
        "floating_base": draw(st.booleans()),
    }
    return random_tree(seed, n, chosen, **{**drawn, **options})  # type: ignore[arg-type]


__all__ = [
    "ALL_KINDS",
    "NAMED",
    "ONE_NUMBER",
    "closed_tree",
    "descriptions",
    "random_body",
    "random_joint",
    "random_pose",
    "random_tree",
    "with_followers",
]
