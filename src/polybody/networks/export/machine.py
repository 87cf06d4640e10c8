"""A network as a machine for other programs: continuous states x, algebraic unknowns a, inputs u, and its modes.

In each combination k of modes that can be reached from the first

    ẋ = f_k(x, a, u, t),      0 = g_k(x, a, u, t),      z = h_k(x, a, u, t),      leave k where w_k(x, a, u, t) > 0

x has every variable that is a state in any combination, a every iterated one; where one of them is neither, it follows
from the others (`complete`). Parts whose modes differ in right sides only do not multiply the combinations: their modes
are numbers d in the equations (`selected`). Chosen numbers of parts are parameters p: as inputs, but constant in time.
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
from polybody.networks.export.selected import SelectedComponent, selectable, selectable_whole
from polybody.networks.export.tuned import choice_quality, may_become_poor, tunable, tunable_names
from polybody.networks.expressions import NUMBERS, Text
from polybody.networks.joint_laws import not_acting
from polybody.networks.models import ModelComponent
from polybody.networks.motion import Motion
from polybody.networks.part import Parameter
from polybody.networks.system import InputRateNeeded, System

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
#: combinations of modes whose code is written
MOST_COMBINATIONS = 64


class TooManyCombinations(InputError):
    """More combinations of modes than may be written."""


@dataclass(frozen=True)
class Switch:
    """Where a condition leads: to a combination (−1: a singular one), or a part with its mode as a number."""

    combination: int
    selector: int
    value: int


@dataclass(eq=False)
class Machine:
    """All that is written about a network in another language. `functions` are CasADi's, of (x, a, u, d, t)."""

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
    functions: list[Any]
    quaternions: list[list[int]]  # places in x
    loops: list[tuple[list[int], list[int]]]  # places of q and v in x of each model with loops
    x: Array
    a: Array
    u: Array
    d: Array
    p: Array
    positive: list[bool]  # of each parameter: whether it must be
    first: int
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
    parameters: Sequence[str] = (), most: int = MOST_COMBINATIONS,
) -> Machine:  # fmt: skip
    """The machine of a network from start values.

    `parameters` names numbers of parts ("R1.resistance", "*.damping") that stay free, `inputs` the sources that become
    inputs; by default those that are numbers or Python functions. Others stay what they are: expressions in time are
    part of the code. At most `most` combinations of modes are written.
    """
    started = {**net.initial, **(initial or {})}
    plain = Motion(net, None, frozenset(started))
    if rough := not_acting(plain.components):
        warn(f"in what is exported of {net.name!r} {'; '.join(rough)}; put stops and clutches on the joints' nodes "
             "where they matter")
    free = _free(plain.inputs, inputs)
    tuned = tunable_names(plain.components, parameters)
    components = [SelectedComponent(part) if isinstance(part, PartComponent) and selectable(part) else part
                  for part in (tunable(part, tuned) for part in plain.components)]
    while True:
        motion = _with_symbols(plain, components, free, tuned)
        try:
            system, y = motion.start(0.0, started)
            systems, switches = _explored(motion, system, most)
        except TooManyCombinations:
            wide = [SelectedComponent(p, whole=True) if isinstance(p, PartComponent) and selectable_whole(p) else p
                    for p in components]
            if all(a is b for a, b in zip(components, wide, strict=True)):
                raise
            components = wide
            continue
        except InputRateNeeded as needed:  # what answers to the rate of an input cannot have it free
            name = needed.name
            if name not in free:
                components = [p.inner if isinstance(p, SelectedComponent) and p.selector == name else p
                              for p in components]
                continue
            if inputs is not None or callable(plain.inputs[name]):
                raise InputError(f"the network answers to the time derivative of {name!r}, so it cannot be an input; "
                                 "put a resistance or compliance beside the source, or leave it out") from None
            warn(f"the network answers to the time derivative of {name!r}: it is constant in what is exported")
            free = [other for other in free if other != name]
            continue
        if any(may_become_poor(made) for made in systems):
            warn(f"which variables of {net.name!r} can be states depends on its configuration; what is exported keeps "
                 f"the choice of its start ({', '.join(system.states)}) and stops where that becomes singular "
                 "(status POOR_STATES)")
        return _written(net, motion, systems, switches, free, tuned, y)


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


def _with_symbols(plain: Motion, components: list[Any], free: list[str], tuned: Mapping[str, Parameter]) -> Motion:
    """A motion of these components, whose free inputs, parameters and selectors are functions of time, so symbols."""
    inputs: dict[str, Any] = {name: _constant(_value(plain.inputs[name])) for name in free}
    inputs |= {p.selector: _constant(0.0) for p in components if isinstance(p, SelectedComponent)}
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


def _explored(motion: Motion, first: System, most: int) -> tuple[list[System], list[list[Switch]]]:
    """The systems of all combinations that switches lead to, and where each condition leads."""
    systems, index = [first], {tuple(first.modes.items()): 0}
    switches: list[list[Switch]] = []
    selected = [p for p in motion.components if isinstance(p, SelectedComponent)]
    for at in range(10**6):
        if at >= len(systems):
            return systems, switches
        row = []
        for part, mode in systems[at].conditions:
            modes = {**systems[at].modes, part: mode}
            key = tuple(modes.items())
            if key not in index:
                try:
                    made = motion.system(modes)
                except InputRateNeeded:
                    raise
                except InputError:
                    index[key] = -1  # singular: entering it is an error of the run, as in `pb.simulate`
                else:
                    if len(systems) >= most:
                        raise TooManyCombinations(
                            f"the network's parts that switch ({', '.join(systems[0].modes)}) have more than {most} "
                            "combinations of modes, each of which is written as code of its own; allow more by "
                            f"combinations={2 * most}, or use parts whose modes have no derivatives (stops, diodes), "
                            "which are data and not code")
                    index[key] = len(systems)
                    systems.append(made)
            row.append(Switch(index[key], -1, 0))
        for k, part in enumerate(selected):
            for alternatives in part.inner.part.alternatives.values():
                row += [Switch(at, k, part.modes.index(other)) for other in alternatives.to]
        switches.append(row)
    raise AssertionError


def _written(
    net: Network, motion: Motion, systems: list[System], switches: list[list[Switch]], free: list[str],
    tuned: Mapping[str, Parameter], y: Array,
) -> Machine:  # fmt: skip
    import casadi as ca

    selected = [p for p in motion.components if isinstance(p, SelectedComponent)]
    states = list(dict.fromkeys(name for system in systems for name in system.states))
    algebraic = list(dict.fromkeys(name for system in systems for name in system.algebraic))
    observed = [name for name in systems[0].observed if name not in states]
    sizes = {"x": len(states), "a": len(algebraic), "u": len(free), "d": len(selected), "p": len(tuned), "t": 1}
    columns = [ca.SX.sym(name, size) for name, size in sizes.items()]
    functions = [f for k, system in enumerate(systems)
                 for f in _functions(k, system, columns, states, algebraic, observed, free, list(tuned), selected)]
    models = [part for part in motion.components if isinstance(part, ModelComponent)]
    quaternions, loops, more = _manifolds(models, states)
    first = systems[0]
    told = first.values(0.0, y)
    modes = {part.name: list(part.part.alternatives) for part in motion.components
             if isinstance(part, PartComponent) and part.part.alternatives}
    modes |= {part.name: part.modes for part in selected}
    units = Assembly([p.inner if isinstance(p, SelectedComponent) else p for p in motion.components], {}).units()
    return Machine(
        net.name, states, algebraic, free, list(tuned), [p.name for p in selected], observed,
        [dict(s.modes) for s in systems], switches, [s.m for s in systems],
        [[algebraic.index(n) for n in s.algebraic] for s in systems],
        functions + more, quaternions, loops,
        np.array([told.get(name, 0.0) for name in states]), np.array([told.get(name, 0.0) for name in algebraic]),
        np.array([first.called[name](0.0) for name in free]), np.zeros(len(selected)),
        np.array([first.called[name](0.0) for name in tuned]), [said.positive for said in tuned.values()], 0,
        units, modes,
    )  # fmt: skip


def _functions(
    k: int, system: System, columns: list[Any], states: list[str], algebraic: list[str], observed: list[str],
    free: list[str], tuned: list[str], selected: list[SelectedComponent],
) -> list[Any]:  # fmt: skip
    """The functions of one combination, named by its number."""
    import casadi as ca

    x, a, u, d, p, t = columns
    given = {**{name: u[i] for i, name in enumerate(free)}, **{name: p[i] for i, name in enumerate(tuned)},
             **{part.selector: d[i] for i, part in enumerate(selected)}}
    at = ca.vertcat(*(x[states.index(n)] for n in system.states), *(a[algebraic.index(n)] for n in system.algebraic),
                    *(given[name] for name in system.called), t)

    def read(expressions: list[Any]) -> list[Any]:
        return ca.vertsplit(ca.densify(system.function("part", expressions)(at))) if expressions else []

    def column(entries: list[Any]) -> Any:
        return ca.densify(ca.vertcat(*entries, ca.SX(0, 1)))

    def rows(of: Any, by: Any) -> Any:
        return ca.vec(ca.densify(ca.jacobian(of, by)).T) if of.numel() and by.numel() else ca.SX(0, 1)

    assembly, symbols = system.assembly, system.equations.reduced.symbols
    by_name = {assembly.key_name(key): symbol for key, symbol in symbols.items()}
    rates = dict(zip(system.states, read(system.rate_expressions[:-1]), strict=True))
    f = column([rates.get(name, ca.SX(0.0)) for name in states])
    g = column(read(system.algebraic_expressions))
    known = [name for name in (*states, *algebraic) if name in by_name]
    values = dict(zip(known, read(system.closed([by_name[name] for name in known])), strict=True))
    own = {*system.states, *system.algebraic}
    full = [column([values[n] if n in values and n not in own else symbol[i] for i, n in enumerate(names)])
            for names, symbol in ((states, x), (algebraic, a))]
    table = assembly.observables()
    z = column(read(system.closed([table[name] for name in observed])))
    watch = [expression for *_, expression in assembly.conditions()]
    watch += [expression for part in selected for _, expression in part.conditions(assembly.lookup(part))]
    w = column(read(system.closed(watch)))
    own_a = column([a[algebraic.index(n)] for n in system.algebraic])
    names = ["x", "a", "u", "d", "p", "t"]
    seeds = [ca.SX.sym("dx", x.numel()), ca.SX.sym("du", u.numel()), ca.SX.sym("da", a.numel())]
    by, along = ca.vertcat(x, u, own_a), ca.vertcat(*seeds[:2], seeds[2][: own_a.numel()])
    tangent = [ca.densify(ca.jtimes(of, by, along)) for of in (f, z, g)]
    made = {
        "rates": ([f], ["rates"]),
        "observe": ([z], ["values"]),
        "watch": ([w], ["conditions"]),
        "complete": (full, ["x_full", "a_full"]),
        "algebra": ([g, rows(g, own_a)], ["g", "slopes"]),
        "choice": ([choice_quality(system, read)], ["quality"]),
        "slopes": ([rows(f, x), rows(f, own_a), rows(f, t), rows(g, x), rows(g, t)],
                   ["f_x", "f_a", "f_t", "g_x", "g_t"]),
    }
    return [*(ca.Function(f"{name}_{k}", columns, results, names, labels, {"cse": True})
              for name, (results, labels) in made.items()),
            ca.Function(f"tangent_{k}", [*columns, *seeds], tangent, [*names, "dx", "du", "da"], ["df", "dz", "dg"],
                        {"cse": True})]


def _manifolds(models: list[ModelComponent], states: list[str]) -> tuple[list[Any], list[Any], list[Any]]:
    """(places of quaternions, places of q and v of models with loops, functions of the way back to them)."""
    import casadi as ca

    quaternions: list[list[int]] = []
    loops: list[tuple[list[int], list[int]]] = []
    functions: list[Any] = []
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
        back, walk = model.casadi("projection_step"), model.casadi("integrate")
        sq, sv, sd = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("d", model.nv)))
        functions.append(ca.Function(f"back_{k}", [sq, sv], back.call([sq, sv]), ["q", "v"],
                                     ["step", "change", "trust"]))
        functions.append(ca.Function(f"walk_{k}", [sq, sd], walk.call([sq, sd]), ["q", "d"], ["q_next"]))
    return quaternions, loops, functions


__all__ = ["MOST_COMBINATIONS", "Machine", "Switch", "machine"]
