"""`Network`: build it from parts, look at its graph, solve it, or make it a component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.errors import InputError
from polybody.formulations.network.builder import NetworkBuilder
from polybody.formulations.network.closed import ClosedForm, closed_form
from polybody.formulations.network.graph import SystemGraph, system_graph
from polybody.formulations.network.loops import close_loops, complete_velocities
from polybody.formulations.network.multiport import HybridMultiport, Multiport
from polybody.formulations.network.parts import CENTRE, WORLD, ForceDriver, JointPart
from polybody.formulations.network.situation import Situation, joint_values, situation
from polybody.formulations.network.solution import Solution, read_solution, solve_tableau
from polybody.formulations.network.tableau import Problem, Tableau
from polybody.formulations.network.terminals import TerminalForm, active_port, terminal_form


class Network(NetworkBuilder):
    """Rigid bodies, joints, springs, drivers and motors, connected at ports, open or closed."""

    def graph(self, driven: Sequence[str] = ()) -> SystemGraph:
        """The system graph with its formulation tree; joints in `driven` are velocity drivers."""
        return system_graph(self, driven)

    def situation(self, q: Any = None, v: Any = None, *, domain: Domain = FLOAT) -> Situation:
        """Where everything is and how it moves; rejects a state that leaves a loop open."""
        return situation(self, q, v, domain=domain)

    def solve(
        self,
        q: Any = None,
        v: Any = None,
        *,
        forces: Any = None,
        accelerations: Mapping[str, Any] | None = None,
        wrenches: Mapping[str, Any] | None = None,
        sources: Mapping[str, Any] | None = None,
        currents: Mapping[str, Any] | None = None,
        domain: Domain = FLOAT,
    ) -> Solution:
        """Accelerations and all through variables at one state: forward, inverse or any mix.

        q, v            {joint: values}, or arrays over the joints in the order they were put in; joints that close
                        loops may be left out, and velocities that follow from the others through loops
        forces          {joint: nv numbers}, or such an array: joint forces; zero where not given
        accelerations   {joint: nv numbers}: these joints are velocity drivers, their forces are answers
        wrenches        {force driver: [moment; force]}; else the value it was put in with
        sources         {voltage or current source: value};  currents {motor with inductance: its current}
        """
        if domain is FLOAT and v is not None:
            v = complete_velocities(self, q, v)
        state = situation(self, q, v, currents=currents, domain=domain)
        problem = Problem(
            self._joint_values("forces", forces, domain),
            self._accelerations(accelerations, domain),
            {name: domain.array(w) for name, w in self._known("wrenches", wrenches, self.parts.forces).items()},
            dict(self._known("sources", sources, self.parts.electric)),
        )
        tableau = Tableau(self, self.graph(tuple(problem.accelerations)), state, problem, domain)
        return read_solution(tableau, solve_tableau(tableau))

    def close(self, q: Any, hold: Sequence[str] = ()) -> dict[str, Array]:
        """The configuration near q that closes every loop; the joints in `hold` stay as they are."""
        return close_loops(self, q, hold)

    def velocities(self, q: Any, v: Any) -> dict[str, Array]:
        """v of all joints in q: the given ones, and those that follow from them through the loops."""
        return complete_velocities(self, q, v)

    def multiport(
        self,
        ports: Sequence[str],
        q: Any = None,
        v: Any = None,
        *,
        forces: Any = None,
        name: str | None = None,
        domain: Domain = FLOAT,
    ) -> Multiport:
        """The whole network as one component, seen from some of its free ports, at one state.

        Its ports keep their names: port `arm.tip` of a multiport named `half` is `half.arm.tip`.
        """
        H, h, state = self._reduced(ports, (), q, v, forces, domain)
        frames = {port: state.port(self, port) for port in ports}
        return Multiport(name or self.name, tuple(ports), H, h, frames, domain)

    def hybrid(
        self,
        ports: Sequence[str],
        across: Sequence[str],
        q: Any = None,
        v: Any = None,
        *,
        forces: Any = None,
        name: str | None = None,
        domain: Domain = FLOAT,
    ) -> HybridMultiport:
        """As `multiport`, with across inputs at the ports in `across`. The name of a joint opens it as a port, (20)."""
        H, h, _ = self._reduced(ports, across, q, v, forces, domain)
        return HybridMultiport(name or self.name, tuple(ports), tuple(across), H, h)

    def terminal_form(
        self, body: str, base: str = CENTRE, q: Any = None, v: Any = None, *, domain: Domain = FLOAT
    ) -> TerminalForm:
        """The terminal equations of a body at a state with `base` in the co-tree: (1) for "G", (5) or (6) for a port.

        Its `active` part is the one-port moved there, P, Q and u of (49), (50); `ideal` the ideal transformer.
        """
        if body not in self.parts.bodies:
            raise InputError(f"there is no body {body!r}; available: {', '.join(self.parts.bodies)}")
        part = self.parts.bodies[body]
        if base not in part.ports:
            raise InputError(f"body {body!r} has no port {base!r}; it has {', '.join(part.ports)}")
        state = situation(self, q, v, domain=domain)
        centre, R = state.port(self, f"{body}.{CENTRE}"), state.frames[body].R
        places = {name: state.port(self, port.full).p - centre.p for name, port in part.ports.items()}
        J, omega = R @ domain.array(part.inertia) @ R.T, centre.x[3:]
        mass = domain.array([part.mass])[0]
        kinetic = active_port(mass, J, omega, domain.array(self.gravity), domain=domain)
        return terminal_form(places, base, kinetic, omega, domain=domain)

    def closed_form(
        self, q: Any = None, v: Any = None, ends: Sequence[str] = (), *, domain: Domain = FLOAT
    ) -> ClosedForm:
        """K, K', S, P, Q, u of (18)-(24) for a network without loops; `ends` are the load ports."""
        return closed_form(self, situation(self, q, v, domain=domain), tuple(ends))

    def _reduced(
        self, ports: Sequence[str], across: Sequence[str], q: Any, v: Any, forces: Any, domain: Domain
    ) -> tuple[Array, Array, Situation]:
        """(H, h): outputs of the opened ports as linear functions of their inputs."""
        if len(set(ports)) != len(ports):
            raise InputError(f"the ports {', '.join(map(repr, ports))} are not independent: one is named twice")
        for port in across:
            if port not in ports:
                raise InputError(f"{port!r} has an across input, but is not among the ports {', '.join(ports)}")
        opened = self._opened_copy(ports)
        edges = {port: self._driver(port) for port in ports}
        kinds = {edges[port]: "across" if port in across else "through" for port in ports}
        state = situation(opened, q, v, domain=domain)
        problem = Problem(opened._joint_values("forces", forces, domain), opened=kinds)
        tableau = Tableau(opened, opened.graph(tuple(across)), state, problem, domain)
        z = solve_tableau(tableau).z
        rows = []
        for port in ports:
            answer = tableau.read("through" if port in across else "across", edges[port], z)
            rows.append(-answer if port in across else answer)
        stacked = np.concatenate(rows)
        return stacked[:, :-1], stacked[:, -1], state

    def _opened_copy(self, ports: Sequence[str]) -> Network:
        """The same parts, with a driver at each free port."""
        copy = Network(self.name, self.gravity)
        copy.parts, copy.ports = _copied(self.parts), dict(self.ports)
        copy.connections = dict(self.connections)
        for port in ports:
            if port in self.parts.joints:
                continue
            copy._check_port(port, "multiport")
            if copy.ports[port].component == WORLD:
                raise InputError(f"port {port!r} is on the ground; a multiport is seen from ports that move")
            name = self._driver(port)
            copy.connections[port] = name
            copy.parts.forces[name] = ForceDriver(name, None, port, np.zeros(6))
        return copy

    def _driver(self, port: str) -> str:
        """The driver that excites an opened port: the joint itself, or the paper's (p*)."""
        return port if port in self.parts.joints else f"{port}*"

    def _joint_values(self, what: str, values: Any, domain: Domain) -> dict[str, Array]:
        return {} if values is None else joint_values(self, what, values, domain)

    def _accelerations(self, given: Mapping[str, Any] | None, domain: Domain) -> dict[str, Array]:
        result = self._joint_values("accelerations", given, domain) if given else {}
        silent = [name for name, joint in self.parts.joints.items() if joint.driven and name not in result]
        if silent:
            raise InputError(f"velocity driver {silent[0]!r} has no acceleration; give it in `accelerations`")
        return result

    @staticmethod
    def _known(what: str, given: Mapping[str, Any] | None, table: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in given or {}:
            if name not in table:
                raise InputError(f"{what} names {name!r}; available: {', '.join(table) or 'none'}")
        return given or {}

    def refuse_sliding_multiport(self, joint: JointPart, state: Situation) -> None:
        """Port a of a joint must not slide when it belongs to a multiport, whose ports are fixed points."""
        a, b = state.port(self, joint.a), state.port(self, joint.b)
        if state.domain is FLOAT and np.abs(a.p - b.p).max() > 1e-9:
            raise InputError(
                f"joint {joint.name!r} slides away from port {joint.a!r} of a multiport; give the multiport's side as "
                "the joint's port b, or keep the sliding joint inside the multiport"
            )


def _copied(parts: Any) -> Any:
    return type(parts)(**{key: dict(value) for key, value in vars(parts).items()})


__all__ = ["Network"]
