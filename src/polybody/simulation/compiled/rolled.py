"""The field of a long chain: what acts on it as straight lines, its dynamics by recursions over the tree.

    before    w = [q; v; tau; (wrenches on bodies); (free); rest]      (x, constants, row) as in `field`
    kernels   a = FD(q, v, tau), held joints frozen; λ = ID(q, v, a)   where what holds joints is watched
    after     ẋ and what is recorded beside it, from w

Where rotors or followers couple joints there is no elimination joint by joint: there a = M⁻¹(tau − ID(q, v, 0)) with
the whole of M, which takes n³/6 multiplications.

Straight-line code of forward dynamics takes minutes to compile above some 130 velocities. Here only what grows with the
number of joints is straight: the controller's law, friction, power, rates of quaternions, and forces that have no step
of their own in the recursions (contacts, compliant stops, springs of cut joints), which are added to tau.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.formulations.denoc.inverse import applied_wrenches, inward_forces
from polybody.formulations.denoc.links import crossings, links
from polybody.kernels.stepping_rolled import Between, Call, Solve
from polybody.late import dataclass
from polybody.mechanism import kinematics
from polybody.mechanism.compliant_stops import compliant, stop_forces
from polybody.mechanism.forces import spring_energy
from polybody.mechanism.mechanism import Mechanism
from polybody.model import long_chains
from polybody.model.model import Model
from polybody.simulation.failures import NotCompiled

if TYPE_CHECKING:
    from polybody.simulation.compiled.field import Acting
    from polybody.simulation.compiled.watch import Watch

Array = np.ndarray
#: velocities above which straight-line code of dynamics takes too long to compile, and from which rolled code is no
#: slower: of 100 joints a step of rk4 takes 30 µs instead of 34, and code for it 1.5 s instead of 10
MOST_STRAIGHT, ROLLED_FROM = 130, 60


def require_rolled(model: Model) -> None:
    """Raise `NotCompiled` where the dynamics of so many velocities have no recursion in compiled code."""
    if model.mechanism.constrained:  # straight lines along the plan of elimination, as single answers of the model have
        return
    many = f"{model.nv} velocities are too many for straight-line code"
    if model.engine.tree.source.variation is not None:
        raise NotCompiled(f"{many}, and parameters of the model are no inputs of their recursions")


def is_rolled(model: Model, bears: bool) -> bool:
    """Whether a run takes its dynamics from recursions; `bears` where friction depends on loads of joints."""
    if model.nv > MOST_STRAIGHT:
        return not model.mechanism.constrained
    if model.nv < ROLLED_FROM or bears or model.mechanism.constrained or not long_chains.is_long(bare(model.mechanism)):
        return False
    return model.engine.tree.source.variation is None and model.mechanism.separable


@lru_cache(maxsize=32)
def bare(mechanism: Mechanism) -> Mechanism:
    """The tree without the forces that recursions do not know (`beside`)."""
    joints = tuple(
        replace(joint, limits=replace(joint.limits, stiffness=None, damping=None)) if compliant(joint.limits) else joint
        for joint in mechanism.joints
    )
    if not mechanism.contacts and not mechanism.closure_springs and joints == mechanism.joints:
        return mechanism
    return replace(mechanism, joints=joints, contacts=(), closure_springs=())


def beside(mechanism: Mechanism, q: Array, v: Array, graph: Any) -> Array:
    """What contacts, compliant stops and springs of cut joints exert on v."""
    force = graph.zeros(mechanism.nv)
    for joint in mechanism.joints:
        if compliant(joint.limits) and not joint.follows:
            force[joint.v] = force[joint.v] + stop_forces(joint.limits, q[joint.q], v[joint.v], domain=graph)
    if not mechanism.contacts and not mechanism.closure_springs:
        return force
    m = replace(mechanism, springs=())
    chain = links(m, domain=graph)
    across = crossings(m, chain, q, domain=graph)
    applied = applied_wrenches(m, chain, across, q, v, None, graph)
    assert applied is not None
    return force + inward_forces(m, chain, across, applied, graph)


def stored_beside(mechanism: Mechanism, q: Array, graph: Any) -> Any:
    """The energy of what `bare` leaves out."""
    if bare(mechanism) is mechanism:
        return graph.const(0)
    joints = tuple(replace(joint, stiffness=np.zeros_like(joint.stiffness)) for joint in mechanism.joints)
    only = replace(mechanism, joints=joints, springs=())
    return spring_energy(only, q, kinematics.body_poses(only, q, domain=graph), domain=graph)


@dataclass(frozen=True)
class Places:
    """Where everything is in w."""

    nq: int
    nv: int
    wrenches: int  # numbers
    free: int
    rest: int

    @property
    def loads(self) -> int:
        return self.nq + 2 * self.nv

    @property
    def held(self) -> int:
        return self.loads + self.wrenches

    @property
    def others(self) -> int:
        return self.held + self.free

    @property
    def a(self) -> int:
        return self.others + self.rest

    @property
    def needed(self) -> int:
        """What holds the motion a: inverse dynamics."""
        return self.a + self.nv

    @property
    def size(self) -> int:
        return self.needed + self.nv


def places_of(acting: Acting) -> Places:
    nq, nv = acting.model.nq, acting.model.nv
    bodies = len(acting.mechanism.bodies)
    rest = acting.size - nv + acting.recorded + 2  # of ẏ all but a; recorded; doubts
    holds = acting.holding.frozen and not acting.holding.loose
    return Places(nq, nv, 6 * bodies if acting.frames else 0, nv if holds else 0, rest)


def parts(acting: Acting) -> dict[str, Callable[[], Between]]:
    """The kernels of long chains, and the parts of a loop that run them."""
    if not acting.rolled:
        return {}
    m, nq, nv = bare(acting.mechanism), acting.model.nq, acting.model.nv
    found = {"field": lambda: between(acting, False)}
    found["energy"] = lambda: Between(nq + nv + 2, (Call(kernel(m, "energy"), (0, nq, nq + nv, nq + nv + 1)),))
    if acting.holding.frozen:
        found["watch"] = lambda: between(acting, True)
        found["loose"] = lambda: between(loosened(acting), False)
        found["solve"] = lambda: Between(*mass_solve(m, nq + 2 * nv, 0, nq, nq + nv))
    return found


def mass_solve(
    m: Mechanism, size: int, q: int, f: int, x: int, free: int | None = None
) -> tuple[int, tuple[Call | Solve, ...]]:
    """(how large w is after all, kernels that find x = M⁻¹ f) of places in a w that has `size` numbers without."""
    if not m.separable:
        return size + m.nv**2, (Call(kernel(m, "mass_matrix"), (q, size)), Solve(m.nv, (size, f, None, free, x)))
    if free is None:
        return size, (Call(kernel(m, "mass_solve"), (q, f, x)),)
    return size, (Call(kernel(m, "mass_solve_held"), (q, f, free, x)),)


def loosened(acting: Acting) -> Acting:
    """The same while nothing is held."""
    free = acting.renumbered(holding=replace(acting.holding, loose=True))
    free.__dict__.pop("_motion", None)
    return free


def between(acting: Acting, watched: bool) -> Between:
    """The kernels of the field; with λ where joints are watched."""
    at, m = places_of(acting), bare(acting.mechanism)
    q, v, tau = 0, at.nq, at.nq + at.nv
    loads = (at.loads,) if at.wrenches else ()
    suffix = "_wrenches" if at.wrenches else ""
    word, size, free = "forward_held" if at.free else "forward_dynamics", at.size, at.held if at.free else None
    needed = lambda a: Call(kernel(m, "inverse_dynamics" + suffix), (q, v, a, *loads, at.needed))  # noqa: E731
    calls: list[Call | Solve] = []
    if m.separable:
        calls.append(Call(kernel(m, word + suffix), (q, v, tau, *loads, *(() if free is None else (free,)), at.a)))
    else:
        still, M, size = size, size + at.nv, size + at.nv + at.nv**2
        calls += [Call(kernel(m, "mass_matrix"), (q, M)), needed(still)]
        calls.append(Solve(at.nv, (M, tau, at.needed, free, at.a)))
    return Between(size, (*calls, *([needed(at.a)] if watched else [])))


@lru_cache(maxsize=64)
def kernel(mechanism: Mechanism, name: str) -> Any:
    made = long_chains.kernel(mechanism, name, lanes=1)
    assert made is not None  # `require_rolled`
    return made


# Texts.


def texts(acting: Acting) -> dict[str, Callable[[], Any]]:
    """Of the tapes around the kernels; that of `watch_after` needs what is watched."""
    return {
        "field_before": lambda: before(acting), "field_after": lambda: after(acting),
        "watch_before": lambda: before(acting), "loose_before": lambda: before(loosened(acting)),
        "loose_after": lambda: after(loosened(acting)), "solve_before": lambda: before_inertia(acting),
        "solve_after": lambda: after_inertia(acting, False), "energy_before": lambda: before_inertia(acting),
        "energy_after": lambda: after_inertia(acting, True),
    }  # fmt: skip


def before(acting: Acting) -> Any:
    """(x, constants, row) -> w up to a."""
    from polybody.simulation.compiled.field import on_bodies_text

    graph: Any = domain("casadi")
    columns, x, c, row = acting.columns(graph)
    q, v, i, t = acting.state(x, graph)
    loads = acting.loads(t, c, graph)
    tau, currents, rates = acting.drive(q, v, i, t, c, row, graph)
    whole, _ = acting.rubbed(q, v, tau, loads, c, graph)
    power = acting.power(q, v, whole, loads, c, graph)
    moved = kinematics.rate(acting.mechanism, q, v, domain=graph)
    on = [on_bodies_text(acting.mechanism, q, acting.frames, loads, graph).ravel()] if acting.frames else []
    free = acting.holding.free(acting.model.nv, acting.split_constants(c)[3], graph)
    told = np.array([acting.doubt(graph), graph.const(0)], dtype=object)
    rest = [moved, rates, [power], tau, currents, told]
    whole = whole + beside(acting.mechanism, q, v, graph)
    w = np.concatenate([q, v, whole, *on, *([] if free is None else [free]), *rest])
    return acting.made("before", columns, columns[1], [w], graph)


def after(acting: Acting) -> Any:
    """(x, constants, row, w) -> ẋ and what is recorded beside it."""
    graph: Any = domain("casadi")
    columns = acting.columns(graph)[0]
    at = places_of(acting)
    column, w = graph.variables("w", at.size)
    rest, a = w[at.others : at.a], w[at.a : at.a + at.nv]
    state = acting.size - at.nv  # q̇, di/dt and power
    rate = np.concatenate([rest[: at.nq], a, rest[at.nq : state], [1.0]])
    return acting.made("after", [*columns, column], columns[1], [rate, rest[state:]], graph)


def after_watch(acting: Acting, watch: Watch) -> Any:
    """(x, constants, row, w) -> what is watched, with λ."""
    graph: Any = domain("casadi")
    columns, x, c, _ = acting.columns(graph)
    at = places_of(acting)
    column, w = graph.variables("w", at.size)
    q, v, _, t = acting.state(x, graph)
    load = _holding_forces(w, at)
    values = [*watch(t, q, v, graph), *watch.holding.watched(q, v, acting.split_constants(c)[3], load, graph, None)]
    return acting.made("watch", [*columns, column], columns[1], [np.array(values, dtype=object)], graph)


def before_inertia(acting: Acting) -> Any:
    """(x, constants, f or v) -> w of `solve` and `energy`."""
    graph: Any = domain("casadi")
    columns, x, _, _ = acting.columns(graph)
    column, given = graph.variables("given", acting.model.nv)
    w = np.concatenate([acting.state(x, graph)[0], given])
    return acting.made("before", [*columns[:2], column], columns[1], [w], graph)


def after_inertia(acting: Acting, energy: bool) -> Any:
    """(x, constants, f or v, w) -> M⁻¹ f, or the sum of both energies."""
    graph: Any = domain("casadi")
    (columns, x, _, _), nq, nv = acting.columns(graph), acting.model.nq, acting.model.nv
    given = graph.variables("given", nv)[0]
    column, w = graph.variables("w", nq + nv + (2 if energy else nv))
    result = w[nq + nv :]
    if energy:
        beside = stored_beside(acting.mechanism, acting.state(x, graph)[0], graph)
        result = np.array([result[0] + result[1] + beside], dtype=object)
    return acting.made("after", [*columns[:2], given, column], columns[1], [result], graph)


def _holding_forces(w: Array, at: Places) -> Array:
    return w[at.needed : at.needed + at.nv] - w[at.nq + at.nv : at.nq + 2 * at.nv]


__all__ = [
    "MOST_STRAIGHT", "after_watch", "bare", "beside", "is_rolled", "kernel", "loosened", "mass_solve", "parts",
    "require_rolled", "texts",
]  # fmt: skip
