"""A `Model` as a part: each velocity coordinate is a port to the ground, each motor's winding an electrical one.

    v of a coordinate   the across variable of its port (w where it turns, v where it slides)
    tau                 the through variable: what the rest of the network exerts on the joint
    q̇ = Γ(q) v,         a = FD(q, v, tau + Eᵀ K_t i)            forward form
                        ID(q, v, a) = tau + Eᵀ K_t i            inverse form: where rotors ride rigidly on the joints
    u = R i + L di/dt + K_e E v                                 each winding

A coordinate that nothing is connected to has tau = 0, a winding no current. The forward form is explicit where torques
come from springs and currents (elastic drives); where inertias are geared to the joints without elasticity the inverse
form makes the coupled equations M a + … that are solved together. `reduced` are sub-networks in their (m+1)-port form,
which then say ID, and with loops FD, in the model's place. Dry friction in the model's joints is the smooth law
of `forward_dynamics`, and limits do not act; in runs `joint_laws` adds both, as `pb.simulate(model)` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.description.coordinate_units import coordinate_units
from polybody.description.units import LENGTH
from polybody.mechanism.columns import velocity_names
from polybody.mechanism.friction import friction_forces
from polybody.model.diagnosed import doubtful
from polybody.model.model import Model
from polybody.networks.component import Component, Lookup, PartComponent, Port, Variable
from polybody.networks.energy import DOMAINS, GROUND, EnergyDomain
from polybody.networks.library import part_named
from polybody.networks.mechanism import model_of
from polybody.simulation.friction import Rubbing

if TYPE_CHECKING:
    from polybody.networks.network import Network
    from polybody.networks.reduced import ReducedDynamics

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ModelComponent:
    """A model with its ports. `prefix` leads the names of its variables and nodes ("arm." or nothing)."""

    name: str
    model: Model
    prefix: str
    places: dict[str, tuple[str, str]] = field(default_factory=dict)  # nodes of ports that are not at their own
    form: str = "forward"
    reduced: ReducedDynamics | None = None
    dry: tuple[Rubbing, ...] = ()  # whose friction is not the model's smooth law
    lawful: dict[Any, list[Component]] = field(init=False, default_factory=dict, repr=False)  # by `joint_laws`
    ports: tuple[Port, ...] = field(init=False)
    variables: tuple[Variable, ...] = field(init=False)

    def __post_init__(self) -> None:
        lead, put = self.prefix, object.__setattr__
        domains = coordinate_domains(self.model)
        names = velocity_names(self.model.mechanism)

        def port(name: str, own: str, domain: EnergyDomain) -> Port:
            return Port(name, own, *self.places.get(name, (name, GROUND)), domain, keep=5)

        ports = [port(f"{lead}{name}", f"v{k}", domain)
                 for k, (name, domain) in enumerate(zip(names, domains, strict=True))]
        motors = self.model.mechanism.motors
        for k, motor in enumerate(motors.names):
            label = winding_label(motor, names)
            ports.append(port(f"{lead}{label}", f"m{k}", DOMAINS["electrical"]))
        put(self, "ports", tuple(ports))
        starts, units = self.model.neutral(), []
        for joint in self.model.mechanism.independent_joints:
            if joint.nq == joint.nv:
                units += ["m" if domain.name == "translational" else "rad" for domain in domains[joint.v]]
            else:  # quaternions have no unit
                units += ["m"] * (joint.nq - 4) + [""] * 4
        put(self, "variables", tuple(
            Variable(full, f"q{k}", unit, float(start), keep=6)
            for k, (full, start, unit) in enumerate(zip(self.configuration_names, starts, units, strict=True))))

    @property
    def inputs(self) -> dict[str, Any]:
        """Parameters of a model made by `with_parameters`: they do not change in time."""
        made = self.model.parameters
        return {f"{self.prefix}{name}": float(x) for name, x in zip(made.names, made.nominal, strict=True)}

    def _parameters(self, lookup: Lookup) -> list[Any]:
        """[column of its parameters], or nothing: what its functions take after all other arguments."""
        import casadi as ca

        own = [lookup(name.removeprefix(f"{self.name}.")) for name in self.inputs]
        return [ca.vertcat(*own)] if own else []

    def _motors(self, lookup: Lookup) -> tuple[Any, Any, Any, Any]:
        """(torques, voltages, resistance, inductance) as expressions of its parameters."""
        import casadi as ca

        graph: Any
        own, mechanism = self._parameters(lookup), self.model.engine.traced_mechanism
        motors, graph, found = mechanism.motors, domain("casadi"), []
        for array in (motors.torques, motors.voltages, motors.resistance, motors.inductance):
            rows, columns = array.shape if array.ndim == 2 else (len(array), 1)
            if own:
                flat = graph.column([x + graph.const(0) for x in np.asarray(array).ravel()])
                column = ca.substitute(flat, mechanism.symbols[0], own[0])
            else:
                column = ca.SX(ca.DM(np.asarray(array, dtype=float).ravel()))
            found.append(ca.sparsify(ca.reshape(column, columns, rows).T))
        return found[0], found[1], found[2], found[3]

    @property
    def configuration_names(self) -> list[str]:
        names = []
        for joint in self.model.mechanism.independent_joints:
            names += [f"{self.prefix}{joint.name}.q"] if joint.nq == 1 else [
                f"{self.prefix}{joint.name}.q{k}" for k in range(joint.nq)]
        return names

    @property
    def velocity_names(self) -> list[str]:
        return [f"{port.name}.{port.domain.across}" for port in self.ports[: self.model.nv]]

    def _columns(self, lookup: Lookup) -> tuple[Any, Any, Any, Any]:
        import casadi as ca

        nv = self.model.nv
        q = ca.vertcat(*(lookup(f"q{k}") for k in range(self.model.nq)))
        v = ca.vertcat(*(lookup(f"{p.own}.{p.domain.across}") for p in self.ports[:nv]))
        tau = ca.vertcat(*(lookup(f"{p.own}.{p.domain.through}") for p in self.ports[:nv]))
        i = ca.vertcat(*(lookup(f"{p.own}.i") for p in self.ports[nv:]), ca.SX(0, 1))
        return q, v, tau, i

    def equations(self, mode: str | None, lookup: Lookup, der: Callable[[Any], Any]) -> list[Any]:
        import casadi as ca

        model = self.model
        q, v, tau, i = self._columns(lookup)
        motors, own = model.mechanism.motors, self._parameters(lookup)
        torques, voltages, resistance, inductance = self._motors(lookup)
        residuals = ca.vertsplit(der(q) - _call(model, "rate", q, v, *own))
        if len(motors):
            tau = tau + torques @ i
        tau = tau - self._smooth_friction(v)
        if self.form == "forward":
            found = (_call(model, "forward_dynamics", q, v, tau, *own) if self.reduced is None
                     else self.reduced.accelerations(q, v, tau))
            residuals += ca.vertsplit(der(v) - found)
        else:
            a = der(v)
            needed = self._needed(q, v, a, own) if self.reduced is None else self.reduced(q, v, a)
            residuals += ca.vertsplit(needed - tau)
        for k, port in enumerate(self.ports[model.nv :]):
            drop = resistance[k] * i[k] + voltages[k, :] @ v
            if motors.inductance[k]:
                drop = drop + inductance[k] * der(i[k])
            residuals.append(lookup(f"{port.own}.v") - drop)
        return residuals

    def _needed(self, q: Any, v: Any, a: Any, own: list[Any]) -> Any:
        """ID(q, v, a) as M a + ID(q, v, 0): who solves for accelerations reads M off it. To differentiate the text of
        ID by each of them takes several times as many operations as the text of M."""
        import casadi as ca

        nv = self.model.nv
        M = ca.sparsify(ca.reshape(_call(self.model, "mass_matrix", q, *own), nv, nv))  # symmetric: either order
        return M @ a + _call(self.model, "inverse_dynamics", q, v, ca.SX.zeros(nv), *own)

    def _smooth_friction(self, v: Any) -> Any:
        """What the smooth law exerts for the joints in `dry`: the model has it, and others take its place."""
        import casadi as ca

        graph: Any = domain("casadi")
        force = ca.SX.zeros(self.model.nv)
        for rub in self.dry:
            law, k = rub.law, rub.k
            own = graph.column(friction_forces(replace(law, viscous=0 * law.viscous), graph.scalars(
                ca.repmat(rub.factor * v[rub.v], len(law.coulomb), 1)), domain=graph))
            force[rub.v] += rub.factor * own[k]
        return force

    @property
    def may_invert(self) -> bool:
        """Whether there is an inverse form: with loops tau = ID(q, v, a) holds at active joints only."""
        return not self.model.mechanism.constrained and self.form == "forward"

    def inverted(self) -> ModelComponent:
        return replace(self, form="inverse")

    def power(self, lookup: Lookup) -> tuple[Any, Any]:
        """Kinetic and potential energy, springs and windings; what dampers and resistances turn into heat."""
        import casadi as ca

        tree = self.model.tree if self.model.mechanism.constrained else self.model
        q, v, _, i = self._columns(lookup)
        own = self._parameters(lookup)
        kinetic, potential = _function(tree, "energy").call([q, v, *own])
        slowing = _call(tree, "passive_forces", q, v, *own) - _call(tree, "passive_forces", q, 0 * v, *own)
        stored, heat = kinetic + potential, ca.dot(v, self._smooth_friction(v)) - ca.dot(v, slowing)
        if len(self.model.mechanism.motors):
            torques, voltages, resistance, inductance = self._motors(lookup)
            stored = stored + ca.dot(inductance, i**2) / 2
            heat = heat + ca.dot(resistance, i**2)
            heat = heat + ca.dot(i, ca.sparsify(ca.simplify(voltages - torques.T)) @ v)  # zero where K_e = K_t
        return stored, heat

    def reads(self, port: Port) -> bool:
        return False

    def character(self, port: Port) -> str:
        if port.domain.name != "electrical":
            return "across state"
        k = int(port.own[1:])
        return "through state" if self.model.mechanism.motors.inductance[k] else "plain"

    @property
    def projections(self) -> list[tuple[list[str], Callable[[Array], Array]]]:
        """Quaternions of unit length, loops closed."""
        model, nq = self.model, self.model.nq
        if model.mechanism.constrained:
            def closed(x: Array) -> Array:
                q = model.assemble(x[:nq], limits=False)  # limits are other parts
                return np.concatenate([q, model.assemble_velocity(q, x[nq:])])

            return [([*self.configuration_names, *self.velocity_names], closed)]
        if any(joint.nq != joint.nv for joint in model.mechanism.independent_joints):
            return [(self.configuration_names, lambda q: model.normalize(q))]
        return []


def doubtful_loops(components: Sequence[Component], inputs: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """Models with loops whose accelerations are not to be believed at some of the states in `values`, in words."""
    found = []
    for part in components:
        if not isinstance(part, ModelComponent) or not part.model.mechanism.constrained or part.reduced is not None:
            continue
        q, v = (np.array([values[name] for name in names]) for names in (part.configuration_names, part.velocity_names))
        if not q.size:
            continue
        own = [np.array([float(inputs[name]) for name in part.inputs])] if part.inputs else []
        told = np.array(_function(part.model, "forward_dynamics")(q, v, 0 * v, *own)[-1]).T
        if n := int(np.sum(doubtful(told))):
            found.append(f"{part.name!r} is near a singular configuration of its loops at {n} of {len(told)} states, "
                         "where its accelerations lose their digits; pb.simulate(model) passes such states")
    return found


def winding_label(motor: str, coordinates: Sequence[str]) -> str:
    """A motor's name, unless a coordinate has it."""
    return motor if motor not in coordinates else f"{motor} winding"


def _call(model: Model, name: str, *arguments: Any) -> Any:
    """A quantity's first result as an expression of its arguments."""
    found = _function(model, name).call(list(arguments))
    return found[0]


@lru_cache(maxsize=32)
def _function(model: Model, name: str) -> Any:
    return model.casadi(name)


def coordinate_domains(model: Model) -> list[EnergyDomain]:
    """Rotational or translational, for each number of v."""
    domains = []
    records = {joint.name: joint for joint in model.mechanism.description.joints}
    for joint in model.mechanism.independent_joints:
        if joint.name in records:
            units = coordinate_units(records[joint.name], "v")
        else:  # a base that was put under the model
            units = (("angle",),) * 3 + ((LENGTH,),) * 3 if joint.nv == 6 else (("angle",),) * joint.nv
        domains += [DOMAINS["translational" if LENGTH in unit else "rotational"] for unit in units]
    return domains


def flat_components(net: Network) -> list[Component]:
    """All components: parts and models, and the network's own bodies, motors and electrical parts as such."""
    components: list[Component] = []
    if net.parts.bodies or net.parts.joints:
        model = model_of(net)
        names = velocity_names(model.mechanism)
        places = {winding_label(name, names): (motor.plus, motor.minus) for name, motor in net.parts.motors.items()
                  if motor.plus is not None and motor.minus is not None}
        form, reduced = "forward", None
        if net.reductions:
            from polybody.networks.pieces import reduced_dynamics

            form = "forward" if model.mechanism.constrained else "inverse"
            reduced = reduced_dynamics(net, model)
        name = net.name if net.name not in net.components else f"{net.name} (bodies)"
        components.append(ModelComponent(name, model, "", places, form, reduced))
    kinds = {"voltage": ("voltage_source", "voltage"), "current": ("current_source", "current"),
             "resistor": ("resistor", "resistance")}
    for part in net.parts.electric.values():
        kind, parameter = kinds[part.kind]
        chosen = part_named(kind)
        values = chosen.values(f"part {part.name!r}", {parameter: float(part.value)})
        components.append(PartComponent(part.name, chosen, {"": (part.plus, part.minus)}, values))
    return components + list(net.components.values())


__all__ = ["ModelComponent", "coordinate_domains", "doubtful_loops", "flat_components"]
