"""Kernels of long chains by the names of `quantities.table`: which passes answer which quantity.

    kernel(mechanism, "bias_forces")                      a Kernel, or None where this quantity has no recursion here
    kernel(mechanism, "inverse_dynamics_wrenches")        with a wrench on each body: world axes, at the body's origin
    kernel(mechanism, "pose:tip"), kernel(mechanism, "jacobian:tip:world")

Beside the table's there are some that others are composed of: "inverse_directional", the change of joint forces along
one direction, "mass_product", (q, a) -> M a, "momentum_rate", (q, v) -> Ṁ v, "mass_solve", (q, tau) -> M⁻¹ tau, and
with joints that are held "forward_held", forward dynamics, and "mass_solve_held".
Joints that share slots of v (followers) add up their parts.

The time per state is proportional to the number of joints, and to its square for matrices. Compile time depends on the
number of kinds of joint, not on the number of joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.kernels import scan
from polybody.kernels.scan import Pass, View
from polybody.late import dataclass, field
from polybody.mechanism.joints import closed_manifold
from polybody.mechanism.mechanism import GROUND, Mechanism
from polybody.mechanism.reduction import reduced
from polybody.model.long_chains.configurations import configuration_pass
from polybody.model.long_chains.dynamics import Acting, Dynamics
from polybody.model.long_chains.kinds import (
    BODY,
    COUPLING,
    END,
    FORCES,
    LINK,
    PLACE,
    Chain,
    Node,
    coupling_nodes,
    frame_node,
    independent_nodes,
    joint_nodes,
    spring_nodes,
)
from polybody.model.long_chains.lone import Carrier
from polybody.model.long_chains.matrices import Matrices
from polybody.model.long_chains.places import Places
from polybody.model.long_chains.tangents import tangent_pass
from polybody.names import counted
from polybody.quantities.quantity import ARGUMENTS, sized, sizes_of

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray
Shapes = list[tuple[str, tuple[int, ...]]]
RecipeMaker = Callable[[Mechanism, str, bool], "Recipe | None"]  # mechanism, axes and frame, with wrenches


@dataclass
class Recipe:
    """A recursion before it is built: the chain, its passes, and where the results are."""

    chain: Chain
    passes: list[Pass]
    fields: dict[str, int]
    inputs: tuple[str, ...]
    outputs: Shapes
    root: dict[str, list[float]] = field(default_factory=dict)
    slices: dict[str, list[int]] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    totals: dict[str, str] = field(default_factory=dict)
    blank: tuple[str, ...] = ()
    carried: dict[str, int] = field(default_factory=dict)
    walkers: list[tuple[int, int, int]] = field(default_factory=list)
    slots: tuple[str, ...] = ()  # labels whose parts are slots of v, which followers share with their leaders
    results: dict[str, str] = field(default_factory=dict)
    code: str = ""  # what the steps depend on beside the kinds and the passes' fields


def kernel(mechanism: Mechanism, name: str, dtype: Any = float, lanes: int | None = None) -> Kernel | None:
    """The rolled kernel of a quantity, or None where it cannot be made for this mechanism."""
    word, _, rest = name.partition(":")
    wrenched, word = word.endswith("_wrenches"), word.removesuffix("_wrenches")
    if word not in RECIPES or (wrenched and word not in LOADED):
        return None
    recipe = RECIPES[word](mechanism, rest, wrenched)
    return None if recipe is None else _build(mechanism, name, recipe, dtype, lanes)


def _build(mechanism: Mechanism, name: str, recipe: Recipe, dtype: Any, lanes: int | None) -> Kernel:
    chain = recipe.chain
    shared = recipe.slots if mechanism.followers else ()
    blank = {*recipe.blank, *(recipe.views[x].port if x in recipe.views else x for x in shared)}
    used = {label for one in recipe.passes for label in (*one.reads, *one.gives, *one.begin.values())}
    carried = {label: width for label, width in recipe.carried.items() if label in used}
    fields = {label: width for label, width in recipe.fields.items() if label in used | set(recipe.totals.values())}
    plain = [label for label in (*recipe.inputs, *(label for label, _ in recipe.outputs)) if label in used]
    recursion = scan.Scan(
        parents=[node.parent for node in chain.nodes],
        partners=[node.partner for node in chain.nodes],
        kinds=chain.kinds,
        constants={"c": chain.table},
        fields=fields,
        slices={label: _starts(chain.nodes, label) for label in plain if label not in recipe.slices} | recipe.slices,
        views=recipe.views,
        passes=recipe.passes,
        root={label: values for label, values in recipe.root.items() if label in fields},
        root_outputs=recipe.totals,
        blank=sorted(blank),
        carried=carried,
        walkers=recipe.walkers,
        shared=shared,
        results=recipe.results,
    )
    words = sizes_of(mechanism)
    sizes = [(x, sized(ARGUMENTS.get(x, "nv"), words)) for x in recipe.inputs]  # directions are of nv numbers
    plain_name = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    # A frame's name is not part of what is compiled: all frames of one pattern share their code.
    key = f"long chain:{name.partition(':')[0]}:{recipe.code}"
    return scan.build(f"{plain_name}_rolled", sizes, recipe.outputs, recursion, key, dtype=dtype, lanes=lanes)


def _starts(nodes: Sequence[Node], label: str) -> list[int]:
    """Where each node's part of an argument begins; a coupling's is the velocity it takes effect from."""

    def start(node: Node) -> int:
        if node.role == COUPLING:
            return 0 if label.startswith("q") else node.dofs[1]
        if node.joint is None:
            return 0
        if label == "wrenches":
            return 6 * node.joint.index
        return node.joint.q.start if label.startswith("q") else node.joint.v.start

    return [start(node) for node in nodes]


def _vector(mechanism: Mechanism, label: str) -> Shapes:
    return [(label, (mechanism.nv,))]


# dynamics


def _acting(mechanism: Mechanism, wrenched: bool, *, passive: bool = True) -> Acting:
    springs = passive and bool(mechanism.springs)
    return Acting(
        wrenches=wrenched, springs=springs, damped=springs and any(s.damping for s in mechanism.springs),
        coupled=passive and bool(coupling_nodes(mechanism)), passive=passive,
    )  # fmt: skip


def _dynamics(mechanism: Mechanism, acting: Acting, groups: tuple[str, ...]) -> tuple[Mechanism, Dynamics]:
    if not acting.loaded and mechanism.inertials is None:
        mechanism = reduced(mechanism, alike=True)
    nodes = joint_nodes(mechanism, groups)
    if acting.springs:
        nodes += spring_nodes(mechanism)
    if acting.coupled:
        nodes += coupling_nodes(mechanism)
    return mechanism, Dynamics(Chain(mechanism, groups, nodes), acting)


def _ground(gravity: Array, width: int = 9) -> dict[str, list[float]]:
    """The root's record: the ground accelerates against gravity, and is where it is."""
    return {"motion": [*[0.0] * (width - 3), *(float(-g) for g in gravity)], "pose": Carrier().neutral().tolist()}


def _inverse(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    acting = _acting(mechanism, wrenched)
    m, made = _dynamics(mechanism, acting, (*LINK, "armature", *FORCES))
    passes = [made.outward("qva"), *made.between("v", "a"), made.project("qva", "tau")]
    return Recipe(made.chain, passes, made.fields | {"motion": 9}, ("q", "v", "a", *acting.inputs),
                  _vector(m, "tau"), _ground(m.gravity), slots=("tau",))  # fmt: skip


def _forward(mechanism: Mechanism, rest: str, wrenched: bool, held: bool = False) -> Recipe | None:
    if not mechanism.separable:
        return None  # rotors and followers that couple joints make one pivot of many joints
    acting = replace(_acting(mechanism, wrenched), held=held)
    m, made = _dynamics(mechanism, acting, (*LINK, "armature", *FORCES))
    passes = [made.outward("qv"), *made.between("v", None), made.eliminate(), made.accelerate()]
    free = ("free",) if held else ()
    return Recipe(made.chain, passes, made.fields | {"motion": 9}, ("q", "v", "tau", *acting.inputs, *free),
                  _vector(m, "a"), _ground(m.gravity))  # fmt: skip


def _forward_held(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe | None:
    """(q, v, tau[, wrenches], free) -> a, zero where `free` is: of joints that are held."""
    return _forward(mechanism, rest, wrenched, held=True)


def _mass_solve(mechanism: Mechanism, rest: str, wrenched: bool, held: bool = False) -> Recipe | None:
    """(q, tau) -> M⁻¹ tau: forward dynamics at rest, without gravity and springs."""
    if not mechanism.separable:
        return None
    acting = replace(_acting(mechanism, False, passive=False), held=held)
    m, made = _dynamics(mechanism, acting, (*LINK, "armature"))
    passes = [made.crossings.store(), made.eliminate(""), made.accelerate()]
    return Recipe(made.chain, passes, made.fields, ("q", "tau", *(("free",) if held else ())), _vector(m, "a"))


def _mass_solve_held(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe | None:
    """(q, tau, free) -> the same, zero where `free` is: forces on joints that are held move nothing."""
    return _mass_solve(mechanism, rest, wrenched, held=True)


def _mass_product(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    """(q, a) -> M a: inverse dynamics at rest, without gravity and springs."""
    coupled = any(node.numbers[0] for node in coupling_nodes(mechanism))
    acting = replace(_acting(mechanism, False, passive=False), coupled=coupled)
    m, made = _dynamics(mechanism, acting, (*LINK, "armature"))
    passes = [made.outward("qa"), *made.between(None, "a"), made.project("a", "tau")]
    return Recipe(made.chain, passes, made.fields | {"motion": 6}, ("q", "a"), _vector(m, "tau"), slots=("tau",))


def _momentum_rate(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    """(q, v) -> Ṁ v: the tangent of M(q) a along v, with a = v; armature does not depend on q."""
    m, made = _dynamics(mechanism, _acting(mechanism, False, passive=False), LINK)
    passes = [tangent_pass(one, made.chain, ("q",)) for one in (made.outward("qa"), made.project("", "tau"))]
    fields = made.fields | {"motion": 6}
    starts = _starts(made.chain.nodes, "v")
    views = {"dq": View("v", starts), "a": View("v", starts), "dtau": View("rate", starts)}
    return Recipe(made.chain, passes, fields | {f"d{label}": width for label, width in fields.items()}, ("q", "v"),
                  _vector(m, "rate"), views=views, slots=("dtau",))  # fmt: skip


def _bias(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    m, made = _dynamics(mechanism, _acting(mechanism, False, passive=False), LINK)
    passes = [made.outward("qv"), made.project("", "bias")]
    return Recipe(made.chain, passes, made.fields | {"motion": 9}, ("q", "v"), _vector(m, "bias"), _ground(m.gravity),
                  slots=("bias",))  # fmt: skip


def _gravity(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    m, made = _dynamics(mechanism, _acting(mechanism, False, passive=False), LINK)
    passes = [made.outward("q"), made.project("", "gravity")]
    return Recipe(made.chain, passes, made.fields | {"motion": 3}, ("q",), _vector(m, "gravity"),
                  _ground(m.gravity, 3), slots=("gravity",))  # fmt: skip


def _passive(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    acting = _acting(mechanism, False)
    m, made = _dynamics(mechanism, acting, (*PLACE, *FORCES) if acting.springs else FORCES)
    if acting.springs:
        passes = [made.outward_places(), *made.between("v", None), made.project("qv", "passive", sign=-1.0)]
    else:
        passes = [*made.between("v", None), made.own_forces("passive")]
    return Recipe(made.chain, passes, made.fields, ("q", "v"), _vector(m, "passive"), _ground(m.gravity),
                  slots=("passive",))  # fmt: skip


def _inverse_directional(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    """(q, δq, v, δv, a, δa[, wrenches]) -> δτ: each step with its tangent."""
    recipe = _inverse(mechanism, rest, wrenched)
    moving = ("q", "v", "a")
    recipe.passes = [tangent_pass(one, recipe.chain, moving) for one in recipe.passes]
    recipe.fields |= {f"d{label}": width for label, width in recipe.fields.items()}
    recipe.inputs = (*(x for name in moving for x in (name, f"d{name}")), *recipe.inputs[3:])
    recipe.outputs = [(f"d{label}", shape) for label, shape in recipe.outputs]
    recipe.slots = ("dtau",)
    return recipe


# matrices


def _matrix(made: Matrices, label: str, inputs: tuple[str, ...], passes: list[Pass], **more: View) -> Recipe:
    """nv×nv, filled by rows and columns; entries between branches are left out by all walkers."""
    chain, mechanism = made.chain, made.chain.mechanism
    n, starts = mechanism.nv, _starts(chain.nodes, "v")
    views = {"row": View(label, starts, walk=n), "column": View(label, [n * s for s in starts], stride=n, walk=1)}
    walkers = [(joint.index, k, joint.v.start + k) for joint in mechanism.joints for k in range(joint.nv)]
    serial = all(joint.parent == joint.index - 1 for joint in mechanism.joints)
    return Recipe(chain, passes, made.fields, inputs, [(label, (n, n))], views=views | more, carried=made.carried,
                  walkers=walkers, blank=() if serial else (label,), slots=("row", "column"))  # fmt: skip


def _mass_matrix(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    m = mechanism if mechanism.inertials is not None else reduced(mechanism, alike=True)
    coupled = [node for node in coupling_nodes(m, within=True) if node.numbers[0]]
    chain = Chain(m, LINK, [*joint_nodes(m, LINK), *coupled])
    made = Matrices(chain)
    places = [node.dofs[0] * m.nv + node.dofs[1] if node.role == COUPLING else 0 for node in chain.nodes]
    passes = [made.crossings.store(), made.gather(), made.inertia("row", "column")]
    passes += [made.armature("entry")] if coupled else []
    return _matrix(made, "M", ("q",), passes, entry=View("M", places))


def _coriolis_matrix(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    chain = Chain(mechanism, BODY, joint_nodes(mechanism, BODY))
    made = Matrices(chain)
    return _matrix(made, "C", ("q", "v"), [made.turn(), made.drift(), made.coriolis("row", "column")])


# places


def _here(mechanism: Mechanism) -> dict[str, list[float]]:
    return _ground(mechanism.gravity)


def _body_rotations(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    chain = Chain(mechanism, ("placement",), joint_nodes(mechanism, ("placement",)))
    made, n = Places(chain), len(mechanism.bodies)
    return Recipe(chain, [made.rotations("R")], made.fields, ("q",), [("R", (n, 3, 3))],
                  {"turn": np.eye(3).ravel().tolist()}, slices={"R": list(range(0, 9 * n, 9))})  # fmt: skip


def _poses(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    """All frames, in their order."""
    joints = joint_nodes(mechanism, PLACE)
    chain = Chain(mechanism, PLACE, [*joints, *(frame_node(frame, frame.body) for frame in mechanism.frames)])
    made, n = Places(chain), len(mechanism.frames)
    places = [*[0] * len(joints), *(16 * i for i in range(n))]
    return Recipe(chain, [made.poses(), made.frames("T")], made.fields, ("q",), [("T", (n, 4, 4))], _here(mechanism),
                  slices={"T": places})  # fmt: skip


def _seen(mechanism: Mechanism, name: str) -> Chain:
    """The joints below one frame, and the frame."""
    if name not in mechanism.frame_index:
        raise InputError(f"frame {name!r} is not one of the mechanism's {counted(len(mechanism.frames), 'frame')}")
    frame = mechanism.frames[mechanism.frame_index[name]]
    support = () if frame.body == GROUND else mechanism.supports[frame.body]
    joints = joint_nodes(mechanism, PLACE, support)
    return Chain(mechanism, PLACE, [*joints, frame_node(frame, len(joints) - 1)])


def _pose(mechanism: Mechanism, frame: str, wrenched: bool) -> Recipe:
    chain = _seen(mechanism, frame)
    made = Places(chain)
    return Recipe(chain, [made.poses(), made.frames("T")], made.fields, ("q",), [("T", (4, 4))], _here(mechanism),
                  slices={"T": [0] * len(chain.nodes)})  # fmt: skip


def _six_rows(chain: Chain, label: str) -> dict[str, View]:
    """Views of a 6×nv matrix, row by row."""
    n, starts = chain.mechanism.nv, _starts(chain.nodes, "v")
    return {f"row{k}": View(label, [k * n + start for start in starts]) for k in range(6)}


def _jacobian(mechanism: Mechanism, frame_and_axes: str, wrenched: bool) -> Recipe:
    frame, _, axes = frame_and_axes.rpartition(":")
    chain, n = _seen(mechanism, frame), mechanism.nv
    made, views = Places(chain), _six_rows(chain, "J")
    rows = list(views)
    blank = () if len(chain.nodes) > len(mechanism.joints) else ("J",)
    passes = [made.columns(), made.observe(), made.jacobian(axes, rows)]
    return Recipe(chain, passes, made.fields, ("q",), [("J", (6, n))], _here(mechanism), views=views, blank=blank,
                  slots=tuple(rows), code=axes)  # fmt: skip


def _jacobian_rate(mechanism: Mechanism, frame_and_axes: str, wrenched: bool) -> Recipe:
    """(q, v) -> the tangent of the Jacobian's steps along v."""
    recipe = _jacobian(mechanism, frame_and_axes, wrenched)
    recipe.passes = [tangent_pass(one, recipe.chain, ("q",)) for one in recipe.passes]
    recipe.fields |= {f"d{label}": width for label, width in recipe.fields.items()}
    recipe.inputs, recipe.outputs = ("q", "v"), [("J_rate", recipe.outputs[0][1])]
    recipe.views = {f"d{label}": replace(view, port="J_rate") for label, view in recipe.views.items()}
    recipe.views["dq"] = View("v", _starts(recipe.chain.nodes, "v"))
    recipe.blank, recipe.slots = ("J_rate",) if recipe.blank else (), tuple(f"d{row}" for row in recipe.slots)
    return recipe


def _center_of_mass(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    groups = (*PLACE, "mass", "com")
    chain = Chain(mechanism, groups, [*joint_nodes(mechanism, groups), Node(END, None, np.zeros(0))])
    made = Places(chain)
    passes = [made.first_moments(), made.center_of_mass("com")]
    return Recipe(chain, passes, made.fields, ("q",), [("com", (3,))], _here(mechanism))


def _momentum(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    chain = Chain(mechanism, BODY, [*joint_nodes(mechanism, BODY), Node(END, None, np.zeros(0))])
    made = Places(chain)
    passes = [made.momenta(), made.momentum("momentum")]
    return Recipe(chain, passes, made.fields, ("q", "v"), [("momentum", (6,))], _here(mechanism))


def _momentum_matrix(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    chain = Chain(mechanism, BODY, joint_nodes(mechanism, BODY))
    made, views = Places(chain), _six_rows(chain, "A")
    passes = [*made.composites(), made.momentum_matrix(list(views))]
    return Recipe(chain, passes, made.fields, ("q",), [("A", (6, mechanism.nv))], _here(mechanism), views=views,
                  slots=tuple(views))  # fmt: skip


def _energy(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe:
    groups = (*BODY, "armature", "stiffness", "rest")
    springs, couplings = spring_nodes(mechanism), [c for c in coupling_nodes(mechanism) if c.numbers[0]]
    chain = Chain(mechanism, groups, [*joint_nodes(mechanism, groups), *springs, *couplings])
    made = Places(chain)
    passes = [made.energies()]
    passes += [made.spring_energies()] if springs else []
    passes += [made.coupled_energies()] if couplings else []
    views = {"v_acted": View("v", [node.dofs[0] for node in chain.nodes])} if couplings else {}
    return Recipe(chain, passes, made.fields, ("q", "v"), [("kinetic", ()), ("potential", ())], _here(mechanism),
                  views=views, totals={"kinetic": "kinetic", "potential": "potential"},
                  code=repr(mechanism.gravity.tolist()))  # fmt: skip


# configurations


def _configuration(
    name: str, inputs: tuple[str, str], output: str, results: dict[str, str] | None = None
) -> RecipeMaker:
    def recipe(mechanism: Mechanism, rest: str, wrenched: bool) -> Recipe | None:
        if name != "rate" and not all(closed_manifold(joint.model) for joint in mechanism.joints):
            return None  # charts of joint maps have closed forms in numbers only
        chain = Chain(mechanism, (), independent_nodes(mechanism))
        size = mechanism.nq if output.startswith("q") else mechanism.nv
        return Recipe(chain, [configuration_pass(chain, name, inputs, output)], {}, inputs, [(output, (size,))],
                      results=results or {})  # fmt: skip

    return recipe


RECIPES: dict[str, RecipeMaker] = {
    "inverse_dynamics": _inverse,
    "inverse_directional": _inverse_directional,
    "mass_solve": _mass_solve,
    "mass_solve_held": _mass_solve_held,
    "mass_product": _mass_product,
    "momentum_rate": _momentum_rate,
    "forward_dynamics": _forward,
    "forward_held": _forward_held,
    "bias_forces": _bias,
    "gravity_forces": _gravity,
    "passive_forces": _passive,
    "mass_matrix": _mass_matrix,
    "coriolis_matrix": _coriolis_matrix,
    "energy": _energy,
    "momentum": _momentum,
    "center_of_mass": _center_of_mass,
    "centroidal_momentum_matrix": _momentum_matrix,
    "poses": _poses,
    "body_rotations": _body_rotations,
    "pose": _pose,
    "jacobian": _jacobian,
    "jacobian_rate": _jacobian_rate,
    "integrate": _configuration("integrate", ("q", "d"), "q1", {"q1": "q_next"}),
    "difference": _configuration("difference", ("q0", "q1"), "d"),
    "rate": _configuration("rate", ("q", "v"), "qdot"),
}
#: Of these some take wrenches.
LOADED = ("inverse_dynamics", "inverse_directional", "forward_dynamics", "forward_held")
NAMES = frozenset({*RECIPES, *(f"{name}_wrenches" for name in LOADED)})

__all__ = ["NAMES", "kernel"]
