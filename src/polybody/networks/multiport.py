"""A sub-network as one part: its m-port in closed form, seen from its terminals.

At each terminal (against the ground) either the through variable that flows into the sub-network is the input, or the
across variable; u are the inputs and z the other ones:

    ẋ = f(x, u, t),      z = h(x, u, t)

are the equations of the part: states are the sub-network's. Of linear parts they are ẋ = A x + B u + f, z = C x + D u + h.
All through variables are tried as inputs first, then all across (an inductor in line with a terminal), then the
mixed forms (an ideal transformer has no other). A closed form exists where every block of equations between terminals
is solved explicitly; where unknowns must be iterated, or a part switches, the sub-network raises an error with the
reason, and `Network.use` takes it as it is. The bodies of a mechanism have their (m+1)-port, (18)-(39), in
`Network.closed_form`, `multiport` and `hybrid`.
"""  # noqa: E501

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.networks.component import PartComponent
from polybody.networks.library import part_named
from polybody.networks.linear import PROBES, linearize_network
from polybody.networks.models import ModelComponent
from polybody.networks.motion import Motion
from polybody.networks.part import Part
from polybody.networks.system import System
from polybody.networks.written import written

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
#: terminals up to which mixed forms are tried
MOST_MIXED = 6


def multiport_part(net: Network, name: str | None = None) -> Part:
    """The sub-network as a `Part` whose ports are its terminals; refused where it has no closed form, or switches."""
    if not net.terminals:
        raise InputError(f"network {net.name!r} has no terminals; name some with net.terminal(name, node)")
    odd = [terminal for terminal in net.terminals if not terminal.isidentifier()]
    if odd:
        raise InputError(f"terminal {odd[0]!r} of {net.name!r} cannot be a port of a part, whose equations name it; "
                         "use letters, digits and _")
    m, failure = len(net.terminals), None
    sides = [(0,) * m, (1,) * m]
    if m <= MOST_MIXED:
        sides += [s for s in itertools.product((0, 1), repeat=m) if len(set(s)) > 1]
    for which in sides:
        try:
            return _Port(net, which).part(name or net.name)
        except PolybodyError as reason:
            failure = failure or reason
    assert failure is not None
    raise failure


class _Port:
    """A network with a probe at each terminal: `which` is 0 where its through variable is the input, 1 where across."""

    def __init__(self, net: Network, which: tuple[int, ...]) -> None:
        self.net, self.which, self.probed = net, which, net
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.by: list[float] = []  # of an input as the part has it: what the probe is given
        self.out: list[float] = []  # of what the probe tells: what the part answers
        self.given: list[str] = []
        self.answer: list[str] = []
        self.domains: dict[str, str] = {}
        for (terminal, node), side in zip(net.terminals.items(), which, strict=True):
            domain = net.nodes[node][0]
            if domain.name not in PROBES:
                raise InputError(f"terminal {terminal!r} is a {domain.name}; terminals of a multiport carry power")
            kind, key = PROBES[domain.name][2 * side : 2 * side + 2]
            probe = PartComponent(f"terminal {terminal}", part_named(kind), {"": (node, "ground")}, {key: 0.0})
            self.probed = self.probed.with_component(probe)
            self.inputs.append(f"{probe.name}.{key}")
            self.outputs.append(f"{probe.name}.{(domain.across, domain.through)[side]}")
            # a current source drives its current out of its first terminal, other drivers into the network there; what
            # flows into the sub-network is the opposite of what flows into the probe
            self.by.append(-1.0 if kind == "current_source" else 1.0)
            self.out.append(-1.0 if side == 1 else 1.0)
            self.given.append(f"{terminal}.{(domain.through, domain.across)[side]}")
            self.answer.append(f"{terminal}.{(domain.across, domain.through)[side]}")
            self.domains[terminal] = domain.name

    def part(self, name: str) -> Part:
        """The part; its equations are linear ones in numbers where the sub-network is linear."""
        motion = Motion(self.probed, {each: _zero for each in self.inputs})
        if motion.first_modes():
            raise InputError(f"network {self.net.name!r} has parts that switch ({', '.join(motion.first_modes())}), so "
                             "it has no closed form; take it as it is with `use`")
        models = [part.name for part in motion.components if isinstance(part, ModelComponent)]
        if models:
            raise InputError(f"network {self.net.name!r} has the model {models[0]!r}; add it by `mechanism` where the "
                             "sub-network is used: its joints are nodes there")
        system, y = motion.start(0.0, {})
        if system.m:
            raise InputError(f"network {self.net.name!r} has no closed form: {', '.join(system.algebraic)} follow from "
                             "nonlinear equations that are solved by iteration; take it as it is with `use`")
        states = [f"x{k}" for k in range(len(system.states))]
        starts = {state: ("", float(x)) for state, x in zip(states, y, strict=False)}
        space = self._linear()
        if space is None:
            equations, more = self._nonlinear(system, states)
        else:
            equations, more = self._by_matrices(system, y, space, states), {}
        return Part(name, self.domains, {}, equations, {**starts, **more},
                    doc=f"Multiport with the states {', '.join(system.states) or 'none'}.")

    def _linear(self) -> Any:
        """A, B, C, D where they are the same at two states, else None."""
        space = linearize_network(self.probed, inputs=self.inputs, outputs=self.outputs)
        elsewhere = {name: 0.7 + 0.1 * k for k, name in enumerate(space.states)}
        sources = {name: 0.3 + 0.2 * k for k, name in enumerate(self.inputs)}
        moved = linearize_network(self.probed, elsewhere, inputs=self.inputs, outputs=self.outputs, sources=sources)
        for one, two in ((space.A, moved.A), (space.B, moved.B), (space.C, moved.C), (space.D, moved.D)):
            if not np.allclose(one, two, rtol=1e-9, atol=1e-12 * (1 + np.abs(one).max(initial=0.0))):
                return None
        timed = [name for name, said in Motion(self.net).inputs.items() if not isinstance(said, (int, float))]
        return None if timed else space

    def _by_matrices(self, system: System, y: Array, space: Any, states: list[str]) -> list[str]:
        rest = np.zeros_like(y)
        f, told = system.rate(0.0, rest)[:-1], system.values(0.0, rest)
        h = np.array([told[o] for o in self.outputs])

        def total(row: Any, constant: float) -> str:
            terms = [f"({float(x)!r})*{n}" for x, n in zip(row, [*states, *self.given], strict=True) if x]
            return " + ".join([*terms, repr(float(constant))])

        by = np.array(self.by)
        lines = [f"der({s}) = {total([*a, *(b * by)], c)}"
                 for s, a, b, c in zip(states, space.A, space.B, f, strict=True)]
        return lines + [f"{target} = {total([*(o * c), *(o * d * by)], o * k)}"
                        for target, c, d, k, o in zip(self.answer, space.C, space.D, h, self.out, strict=True)]

    def _nonlinear(self, system: System, states: list[str]) -> tuple[list[str], dict[str, Any]]:
        """Equations by the expressions themselves, and variables for what they share."""
        import casadi as ca

        called = [name for name in system.called if name not in self.inputs]
        if called:
            raise InputError(f"network {self.net.name!r}: {called[0]!r} is a Python function, which equations of a "
                             "part cannot state; give it as an expression in `time`")
        table = system.assembly.observables()
        rates = system.rate_expressions[:-1]
        told = system.closed([table[o] for o in self.outputs])
        signs = dict(zip(self.inputs, self.by, strict=True))
        symbols = [*ca.vertsplit(system.y), *ca.vertsplit(system.c), system.t]
        names = {symbol.name(): state for symbol, state in zip(ca.vertsplit(system.y), states, strict=True)}
        for name in system.called:
            given = self.given[self.inputs.index(name)]
            names[system.assembly.inputs[name].name()] = given if signs[name] > 0 else f"(-{given})"
        names[system.t.name()] = "time"
        texts, shared = written([*rates, *told], names, symbols, "shared")
        equations = [f"der({state}) = {text}" for state, text in zip(states, texts, strict=False)]
        equations += [f"{target} = {text if o > 0 else f'-({text})'}" for target, text, o in
                      zip(self.answer, texts[len(states) :], self.out, strict=True)]
        return [*equations, *(f"{name} = {text}" for name, text in shared)], {name: "" for name, _ in shared}


def _zero(t: float) -> float:
    return 0.0


__all__ = ["multiport_part"]
