"""A network as a machine for other programs: continuous states x, algebraic unknowns a, inputs u, and its modes.

In each combination k of modes that can be reached from the first

    ẋ = f_k(x, a, u, t),      0 = g_k(x, a, u, t),      z = h_k(x, a, u, t),      leave k where w_k(x, a, u, t) > 0

x has every variable that is a state in any combination, a every iterated one; where one of them is neither, it follows
from the others (`complete`). Parts whose modes differ in right sides only, limits and friction of models' joints, and
clutches do not multiply the combinations: their modes are numbers d in the equations (`modes`, `selected`). Chosen
numbers of parts are parameters p: as inputs, but constant in time.

Where the choice of states depends on the configuration, no choice is made: all variables with a memory are states, and
the constraints among them hold by projection after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.interrupts import interruptible
from polybody.names import listed, nearest
from polybody.networks.assembly import Assembly
from polybody.networks.component import PartComponent
from polybody.networks.export.functions import Texts
from polybody.networks.export.impacts import Limit, limits_of, released_values
from polybody.networks.export.modes import MOST_COMBINATIONS, Switch, TooManyCombinations, explored, whole, with_data
from polybody.networks.export.selected import SelectedComponent, derives, regular
from polybody.networks.export.tuned import Tunable, margins, may_become_poor, tunable, tunable_names
from polybody.networks.expressions import NUMBERS, Text
from polybody.networks.models import ModelComponent
from polybody.networks.motion import Motion
from polybody.networks.system import InputRateNeeded, System
from polybody.simulation.arguments import number

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray


@dataclass(eq=False)
class Machine:
    """All that is written about a network in another language. `functions` are CasADi's, of (x, a, u, d, p, t)."""

    name: str
    states: list[str]
    algebraic: list[str]
    inputs: list[str]
    parameters: list[str]
    selectors: list[str]
    observed: list[str]
    combinations: list[dict[str, str]]
    switches: list[list[Switch]]
    counts: list[int]  # algebraic unknowns that are iterated in each combination
    places: list[list[int]]  # and which of a they are
    held: list[int]  # constraints among the states of each combination
    functions: list[Any]
    quaternions: list[list[int]]  # places in x
    loops: list[tuple[list[int], list[int]]]  # places of q and v in x of each model with loops
    x: Array
    a: Array
    u: Array
    d: Array
    p: Array
    bounds: list[Tunable]  # of each parameter
    margins: int  # functions of p that report numbers which are not possible together
    limits: list[Limit]
    restitution: float
    free: list[int]  # of each combination: that in which nothing sticks
    released: list[list[int]]  # of each selector and mode: that in which it does not stick
    units: dict[str, str] = field(default_factory=dict)
    modes: dict[str, list[str]] = field(default_factory=dict)  # of each part that switches

    @property
    def conditions(self) -> int:
        """The most conditions that any combination has."""
        return max((len(row) for row in self.switches), default=0)

    def mode_table(self) -> list[tuple[str, list[int] | int]]:
        """[(part, its mode in each combination, or the place in d that has it)]."""
        table: list[tuple[str, list[int] | int]] = []
        for part, names in self.modes.items():
            if part in self.selectors:
                table.append((part, self.selectors.index(part)))
            else:
                table.append((part, [names.index(c[part]) for c in self.combinations]))
        return table


@interruptible
def machine(
    net: Network, initial: Mapping[str, Any] | None = None, inputs: Sequence[str] | None = None,
    parameters: Sequence[str] = (), most: int = MOST_COMBINATIONS, limits: str = "stop", restitution: float = 0.0,
    friction: str = "stick",
) -> Machine:  # fmt: skip
    """The machine of a network from start values.

    `parameters` names numbers of parts ("R1.resistance", "*.damping") that stay free, `inputs` the sources that become
    inputs; by default those that are numbers or Python functions. Others stay what they are: expressions in time are
    part of the code. At most `most` combinations of modes are written. `limits`, `restitution` and `friction` as in
    `pb.simulate`.
    """
    started = {**net.initial, **(initial or {})}
    bounce = number("restitution", restitution)
    if not 0 <= bounce <= 1:
        raise InputError(f"restitution is {restitution!r}; expected a number from 0 to 1")
    plain = Motion(net, None, frozenset(started), laws=(limits, friction))
    own = {name for part in plain.components if isinstance(part, ModelComponent) or getattr(part, "law", False)
           for name in part.inputs}  # fmt: skip
    free = _free({name: said for name, said in plain.inputs.items() if name not in own}, inputs)
    tuned = tunable_names(plain.components, parameters, friction == "stick")
    named = [tunable(part, tuned) for part in plain.components]
    coded = frozenset[str]()  # parts whose modes cannot be data
    widened = False
    while True:
        components = with_data(named, coded, most)
        motion = _with_symbols(plain, whole(components, coded) if widened else components, free, tuned)
        try:
            bad = _not_regular(motion)
            if bad:
                coded |= bad
                continue
            system, y = motion.start(0.0, started)
            systems, switches, released = explored(motion, system, most)
        except TooManyCombinations:
            if widened or all(a is b for a, b in zip(components, whole(components, coded), strict=True)):
                raise
            widened = True
            continue
        except InputRateNeeded as needed:  # what answers to the rate of an input cannot have it free
            name = needed.name
            if name not in free:
                coded |= {p.name for p in motion.components if isinstance(p, SelectedComponent) and p.selector == name}
                continue
            if inputs is not None or callable(plain.inputs[name]):
                raise InputError(f"the network answers to the time derivative of {name!r}, so it cannot be an input; "
                                 "put a resistance or compliance beside the source, or leave it out") from None
            warn(f"the network answers to the time derivative of {name!r}: it is constant in what is exported")
            free = [other for other in free if other != name]
            continue
        return _written(net, motion, systems, switches, released, free, tuned, y, bounce)


def _free(sources: Mapping[str, Any], wanted: Sequence[str] | None) -> list[str]:
    """The sources that become inputs."""
    for name in wanted or ():
        if name not in sources:
            raise InputError(f"inputs: no input {name!r}{nearest(name, sources)}; available: {listed(sources)}")
    numbers = [name for name, said in sources.items() if callable(said) or isinstance(said, (int, float))]
    free = numbers if wanted is None else list(wanted)
    kept = [name for name, said in sources.items() if callable(said) and name not in free]
    if kept:
        raise InputError(f"{kept[0]!r} is a Python function, which cannot be written in C; let it be an input, or give "
                         "it as an expression in `time`")
    return free


def _with_symbols(plain: Motion, components: list[Any], free: list[str], tuned: Mapping[str, Tunable]) -> Motion:
    """A motion of these components, whose free inputs, parameters and selectors are functions of time, so symbols."""
    inputs: dict[str, Any] = {name: _constant(_value(plain.inputs[name])) for name in free}
    selected = [p for p in components if isinstance(p, SelectedComponent)]
    inputs |= {p.selector: _constant(0.0) for p in selected}
    inputs |= {limit.push: _constant(0.0) for limit in limits_of(selected)}
    given = {name: said for p in components for name, said in p.inputs.items()}
    inputs |= {name: _constant(given[name]) for name in tuned}
    motion = Motion(plain.net, inputs, plain.started, components)
    motion.constant = frozenset(tuned)
    return motion


def _value(said: Any) -> float:
    """What an input is at the start."""
    if callable(said):
        value: Any = said(0.0)
        return float(value)
    return float(said.value({"time": 0.0}.__getitem__, NUMBERS)) if isinstance(said, Text) else float(said)


def _constant(value: Any) -> Callable[[float], float]:
    return lambda t: float(value)


def _not_regular(motion: Motion) -> frozenset[str]:
    """Parts whose modes decide what is a state: as data they would leave something open."""
    doubtful = [p for p in motion.components if isinstance(p, SelectedComponent) and p.whole and derives(p.inner)
                and not p.inner.law]
    if not doubtful:
        return frozenset()
    system = motion.system(motion.first_modes())
    return frozenset(part.name for part in doubtful if not regular(system, part))


def _written(
    net: Network, motion: Motion, systems: list[System], switches: list[list[Switch]], released: list[int],
    free: list[str], tuned: Mapping[str, Tunable], y: Array, restitution: float,
) -> Machine:  # fmt: skip
    told = systems[0].values(0.0, y)
    if any(may_become_poor(made) for made in systems):
        motion.every, motion.systems = True, {}
        systems = [motion.system(made.modes) for made in systems]
    selected = [p for p in motion.components if isinstance(p, SelectedComponent)]
    limits = limits_of(selected)
    texts = Texts(systems, free, list(tuned), selected, limits)
    states, algebraic = texts.states, texts.algebraic
    functions = [f for k, system in enumerate(systems) for f in texts.functions(k, system)]
    models = [part for part in motion.components if isinstance(part, ModelComponent)]
    quaternions, loops, more = _manifolds(models, states, list(tuned))
    checks = margins(models, list(tuned))
    first = systems[0]
    modes = {part.name: list(part.part.alternatives) for part in motion.components
             if isinstance(part, PartComponent) and part.part.alternatives}
    modes |= {part.name: part.modes for part in selected}
    units = Assembly([p.inner if isinstance(p, SelectedComponent) else p for p in motion.components], {}).units()
    return Machine(
        net.name, states, algebraic, free, list(tuned), [p.name for p in selected], texts.observed,
        [dict(s.modes) for s in systems], switches, [s.m for s in systems],
        [[algebraic.index(n) for n in s.algebraic] for s in systems],
        [len(s.equations.reduced.invariants) for s in systems], functions + more + checks, quaternions,
        loops,
        np.array([told.get(name, 0.0) for name in states]), np.array([told.get(name, 0.0) for name in algebraic]),
        np.array([first.called[name](0.0) for name in free]), np.zeros(len(selected)),
        np.array([first.called[name](0.0) for name in tuned]), list(tuned.values()), len(checks), limits,
        restitution, released, released_values(selected), units | {name: said.unit for name, said in tuned.items()},
        modes,
    )  # fmt: skip


def _manifolds(
    models: list[ModelComponent], states: list[str], tuned: list[str]
) -> tuple[list[Any], list[Any], list[Any]]:
    """(places of quaternions, places of q and v of models with loops, functions of the way back to them)."""
    import casadi as ca

    quaternions: list[list[int]] = []
    loops: list[tuple[list[int], list[int]]] = []
    functions: list[Any] = []
    p = ca.SX.sym("p", len(tuned))
    for part in models:
        model = part.model
        if not all(name in states for name in part.configuration_names):
            continue
        q = [states.index(name) for name in part.configuration_names]
        for joint in model.mechanism.independent_joints:
            if joint.nq != joint.nv:
                quaternions.append(q[joint.q.stop - 4 : joint.q.stop])
        if not model.mechanism.constrained:
            continue
        v = [states.index(name) for name in part.velocity_names]
        k = len(loops)
        loops.append((q, v))
        own = [ca.vertcat(*(p[tuned.index(name)] for name in part.inputs))] if part.inputs else []
        back, walk = model.casadi("projection_step"), model.casadi("integrate")
        sq, sv, sd = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("d", model.nv)))
        functions.append(ca.Function(f"back_{k}", [sq, sv, p], back.call([sq, sv, *own]), ["q", "v", "p"],
                                     ["step", "change", "trust"]))
        functions.append(ca.Function(f"walk_{k}", [sq, sd, p], walk.call([sq, sd, *own]), ["q", "d", "p"], ["q_next"]))
    return quaternions, loops, functions


__all__ = ["MOST_COMBINATIONS", "Machine", "machine"]
