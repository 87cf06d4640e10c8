"""`pb.Network`: parts of any energy domain, connected at nodes, beside Tokad's rigid bodies connected at ports.

    net = pb.Network("drive")
    net.part("supply", "voltage_source", "plus", voltage=24)
    net.part("motor", "dc_motor", winding="plus", shaft="axle", torque_constant=0.05, resistance=1.2)
    net.part("flywheel", "inertia", "axle", inertia=1e-3)
    run = pb.simulate(net, 0.5)
    run["flywheel.w"]

A node is a name; "ground" is the reference of every domain. A port that is given one node has its other end there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError
from polybody.formulations.network import Network as BodyNetwork
from polybody.interrupts import interruptible
from polybody.model.arguments import require_model
from polybody.model.model import Model
from polybody.names import counted, nearest
from polybody.networks.component import Component, PartComponent
from polybody.networks.copies import MOST_PARTS, copied_components, copy_bodies, part_count
from polybody.networks.energy import DOMAINS, GROUND, EnergyDomain
from polybody.networks.library import part_named
from polybody.networks.mechanism import model_of
from polybody.networks.models import ModelComponent
from polybody.networks.part import Part

if TYPE_CHECKING:
    from pathlib import Path

    from polybody.linearization import StateSpace
    from polybody.networks.trajectory import NetworkTrajectory

Array = np.ndarray
_GROUNDS = (GROUND, "world")


class Network(BodyNetwork):
    """A system of parts: rigid bodies and joints of `formulations.network`, and one-dimensional parts of any domain."""

    def __init__(self, name: str = "network", gravity: Any = (0.0, 0.0, -9.81)) -> None:
        super().__init__(name, gravity)
        #: one-dimensional parts and models, by name
        self.components: dict[str, Component] = {}
        #: the domain of each node, and the part that said so
        self.nodes: dict[str, tuple[EnergyDomain, str]] = {}
        #: names under which nodes are seen from outside, where this is a sub-network
        self.terminals: dict[str, str] = {}
        #: start values that a file says
        self.initial: dict[str, float] = {}
        #: sub-networks of bodies that are kept as (m+1)-ports of their own in motion, by name
        self.reductions: dict[str, Network] = {}
        #: sub-networks that were used, by name: (as they were then, nodes of their terminals, reduced)
        self.used: dict[str, tuple[Network, dict[str, str], bool]] = {}
        #: what was assembled last, and from what
        self.kept_systems: tuple[Any, dict[Any, Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what was assembled: expression graphs cannot be pickled, and are made again."""
        return {**vars(self), "kept_systems": None}

    def __repr__(self) -> str:
        bodies = super().__repr__()
        return bodies if not self.components else f"{bodies[:-1]}, {counted(len(self.components), 'part')}>"

    @interruptible
    def part(self, name: str, kind: str | Part, *nodes: Any, source: str = "", **given: Any) -> None:
        """Add a part of the library (`kind` a name; `pb.parts()` lists them) or of your own (a `pb.Part`).

        A part with one port takes its two nodes (the second defaults to ground); one with several takes a node or a
        pair of nodes per port, by position or by the port's name. Parameters are passed by name: numbers in SI units,
        or strings with a unit ("2.2 kohm"); inputs may be functions of time, or expressions in `time`.
        """
        owner = f"{source}: part {name!r}" if source else f"part {name!r}"
        try:
            chosen = part_named(kind) if isinstance(kind, str) else kind
        except InputError as error:
            raise InputError(f"{owner}: {error}") from None
        self._fresh(name, owner)
        ports = {key: given.pop(key) for key in list(given) if key in chosen.domains}
        placed = _placed(owner, chosen, nodes, ports)
        values = chosen.values(owner, given)
        for own, ends in placed.items():
            for node in ends:
                self._node(node, chosen.domains[own], name, owner)
        self.components[name] = PartComponent(name, chosen, placed, values, source)

    @interruptible
    def mechanism(self, name: str, model: Model) -> None:
        """Add a `Model` as a part: its velocity coordinates are nodes `name.JOINT`, its motor windings `name.MOTOR`."""
        self._fresh(name, f"model {name!r}")
        require_model("Network.mechanism", model)
        component = ModelComponent(name, model, f"{name}.")
        for port in component.ports:
            self._node(port.head, port.domain, name, f"model {name!r}")
        self.components[name] = component

    def own_model(self, model: Model) -> None:
        """Add a `Model` whose joints are nodes under their own names, as in a mechanism file with a network."""
        component = ModelComponent(model.name, model, "")
        self._fresh(component.name, f"model {model.name!r}")
        for port in component.ports:
            self._node(port.head, port.domain, component.name, f"model {model.name!r}")
        self.components[component.name] = component

    def model(self) -> Model:
        """Convert bodies, joints and constraints of the network to a `Model`.

        Components that a model cannot express raise an error.
        """
        models = [part.model for part in self.components.values() if isinstance(part, ModelComponent)]
        return models[0] if len(models) == 1 and not self.parts.bodies else model_of(self)

    def terminal(self, name: str, node: str) -> None:
        """Name a node as a terminal, to be connected where this network is used as a sub-network."""
        self._electric_nodes()
        if node not in self.nodes:
            raise InputError(f"terminal {name!r}: no node {node!r}{nearest(node, self.nodes)}; connect a part to it")
        if name in self.terminals:
            raise InputError(f"the terminal {name!r} exists already")
        self.terminals[name] = node

    def use(self, name: str, other: Network, *, reduced: bool = False, **nodes: str) -> None:
        """Add a copy of another network as a sub-network, its terminals connected to `nodes`.

        With `reduced` its bodies stay one component, the (m+1)-port of (18)-(39) at each state with q and v of its own,
        with its loops eliminated by itself. Anything may connect to its ports: joints with any law, also those that
        close loops, springs, rods, guides, gears and relations. The motion is the same.

        Names of its parts, bodies, joints, models and inner nodes are prefixed: `name.R1`; ports of its bodies are
        `name.BODY.PORT`, to be connected by joints.
        """
        for terminal in nodes:
            if terminal not in other.terminals:
                has = ", ".join(other.terminals) or "none"
                near = nearest(terminal, other.terminals)
                raise InputError(f"{name!r}: {other.name!r} has no terminal {terminal!r}{near}; it has {has}")
        missing = [terminal for terminal in other.terminals if terminal not in nodes]
        if missing:
            raise InputError(f"{name!r}: the terminal {missing[0]!r} of {other.name!r} is open; give it a node")
        count = part_count(self) + part_count(other)
        if count > MOST_PARTS:
            raise InputError(f"{name!r}: with the parts of {other.name!r} the network has {count} parts; at most "
                             f"{MOST_PARTS} are assembled")
        inner = {node: nodes[terminal] for terminal, node in other.terminals.items()}

        def outside(node: str) -> str:
            return inner.get(node, node if node == GROUND else f"{name}.{node}")

        for made in copied_components(name, other, outside):
            self._fresh(made.name, f"part {made.name!r}")
            for port in made.ports:
                for node in (port.head, port.tail):
                    self._node(node, port.domain, made.name, f"part {made.name!r}")
            self.components[made.name] = made
        copy_bodies(self, name, other, outside)
        self._electric_nodes()
        if reduced:
            if not other.parts.bodies:
                raise InputError(f"{name!r}: {other.name!r} has no bodies; `net.part(name, other.as_part(), …)` "
                                 "reduces a network of one-dimensional parts")
            self.reductions[name] = other
        self.reductions |= {f"{name}.{word}": inner for word, inner in other.reductions.items()}
        self.used[name] = other.with_component(), dict(nodes), reduced
        self.initial |= {f"{name}.{variable}": x for variable, x in other.initial.items()}

    def simulated(self, *arguments: Any, **options: Any) -> NetworkTrajectory:
        """Implements `pb.simulate` for a network: see `networks.running.simulate_network`."""
        from polybody.networks.running import simulate_network

        return simulate_network(self, *arguments, **options)

    def linearized(self, *arguments: Any, **options: Any) -> StateSpace:
        """Implements `pb.linearize` for a network: see `networks.linear.linearize_network`."""
        from polybody.networks.linear import linearize_network

        return linearize_network(self, *arguments, **options)

    def exported_c(self, *arguments: Any, **options: Any) -> list[Path]:
        """Implements `pb.export_c` for a network: see `networks.export.library.export_network`."""
        from polybody.networks.export.library import export_network

        return export_network(self, *arguments, **options)

    def exported_fmu(self, *arguments: Any, **options: Any) -> Path:
        """Implements `pb.export_fmu` for a network: see `networks.export.fmu.export_network_fmu`."""
        from polybody.networks.export.fmu import export_network_fmu

        return export_network_fmu(self, *arguments, **options)

    def equations(self, form: str = "text") -> str:
        """Graph, tree with reasons, matrices, terminal equations and assembled system as "text", "latex" or "html"."""
        from polybody.networks.equations import equations

        return equations(self, form)

    def port_equations(self, ports: Sequence[str], form: str = "text") -> str:
        """The (m+1)-port of the network's mechanism in closed form, ẋ = A(q) y + b(q, v), with A and b as expressions.

        `ports` are free ports of bodies; `form` is "text", "latex" or "html". `multiport` evaluates it at a state.
        """
        from polybody.networks.port_equations import port_equations

        return port_equations(self, ports, form)

    def port_wrenches(self, q: ArrayLike, v: ArrayLike, forces: ArrayLike) -> tuple[Array, dict[str, Array]]:
        """(a, {joint: wrench}) of a network with reduced sub-networks at one state, by their terminal equations.

        q, v, joint forces and the accelerations a are arrays in the order of `model()`. Wrenches [moment; force], of
        joints, rods and guides between sub-networks, act on port b, at it, in world axes.
        """
        from polybody.networks.pieces import reduced_dynamics

        if not self.reductions:
            raise InputError(f"network {self.name!r} has no reduced sub-networks; `solve` reports all reactions")
        return reduced_dynamics(self, self.model()).at(q, v, forces)

    def as_part(self, name: str | None = None) -> Part:
        """Reduce this network to one `Part`, its m-port in closed form; its ports are the terminals.

        Linear or not, with memory or without, as long as its equations can be solved explicitly; parts that switch and
        equations that need iteration raise an error by name.
        """
        from polybody.networks.multiport import multiport_part

        return multiport_part(self, name)

    def function(self) -> Any:
        """Right-hand side as a casadi.Function (y, u, t) -> rates of the states, for export or optimisation.

        y are the states and u the inputs, in the order of `pb.linearize(network)`; parts that switch are in their first
        modes.
        """
        from polybody.networks.linear import rate_function

        return rate_function(self)

    def with_component(self, *more: Component) -> Network:
        """Return a copy with more components; what is added to one later is not in the other."""
        copy = Network(self.name, self.gravity)
        copy.parts = type(self.parts)(**{key: dict(table) for key, table in vars(self.parts).items()})
        copy.ports, copy.connections = dict(self.ports), dict(self.connections)
        copy.reductions, copy.used, copy.initial = dict(self.reductions), dict(self.used), dict(self.initial)
        copy.terminals, copy.nodes = dict(self.terminals), dict(self.nodes)
        copy.components = {**self.components, **{component.name: component for component in more}}
        return copy

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write a mechanism file with a `network:` section that `pb.load_network` reads back.

        Inputs that are Python functions, force and velocity drivers and multiports at a state raise an error by name.
        """
        from polybody.networks.writing import save_network

        return save_network(self, path, force=force)

    def _electric_nodes(self) -> None:
        """Windings of motors and the electrical parts of bodies' networks are at nodes too."""
        for part in (*self.parts.windings().values(), *self.parts.electric.values()):
            for node in (part.plus, part.minus):
                self._node(node or GROUND, DOMAINS["electrical"], part.name, f"part {part.name!r}")

    def _fresh(self, name: str, owner: str) -> None:
        if not name or name in self.components or name in self.parts.names() or name in _GROUNDS:
            raise InputError(f"{owner}: the name {name!r} is taken; parts need names of their own")

    def _node(self, node: str, domain: EnergyDomain, part: str, owner: str) -> None:
        if node == GROUND:
            return
        known, first = self.nodes.setdefault(node, (domain, part))
        if known is not domain:
            raise InputError(f"{owner} is {domain.name}, but node {node!r} is {known.name}, by {first!r}; a transducer "
                             "(a motor, a rack, a pump) connects two domains")


def _placed(owner: str, part: Part, nodes: tuple[Any, ...], ports: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """{port: (head, tail)}."""
    names = list(part.domains)
    if len(names) == 1:
        if names[0] in ports:
            nodes = (ports[names[0]],) if isinstance(ports[names[0]], str) else tuple(ports[names[0]])
        if not 1 <= len(nodes) <= 2:
            raise InputError(
                f"{owner}: a {part.name} has one port; expected its node or its two nodes, got {len(nodes)}"
            )
        return {names[0]: _ends(owner, names[0], nodes if len(nodes) == 2 else nodes[0])}
    free = [name for name in names if name not in ports]
    if len(nodes) > len(free):
        raise InputError(f"{owner}: a {part.name} has {counted(len(names), 'port')}, "
                         f"{', '.join(repr(n) for n in names)}; got {len(nodes) + len(ports)}")
    placed = {**ports, **dict(zip(free, nodes, strict=False))}
    for name in names:
        if name not in placed:
            raise InputError(f"{owner}: its port {name!r} is open; give it a node ({name}=NODE)")
    return {name: _ends(owner, name, placed[name]) for name in names}


def _ends(owner: str, port: str, said: Any) -> tuple[str, str]:
    ends = (said, GROUND) if isinstance(said, str) else tuple(said)
    if len(ends) != 2 or not all(isinstance(node, str) and node for node in ends):
        raise InputError(f"{owner}: port {port!r} is at {said!r}, expected a node's name or two")
    head, tail = (GROUND if node in _GROUNDS else node for node in ends)
    return head, tail


__all__ = ["Network"]
