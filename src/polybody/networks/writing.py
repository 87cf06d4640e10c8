"""`Network.save`: a network as a mechanism file with a `network:` section, which `pb.load_network` reads back.

Sub-networks that were used keep their structure: each is written once under `networks:` and used by name. Numbers are
in SI. What a file cannot express (Python functions as inputs, force and velocity drivers, multiports at a state)
raises an error that names it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.mechanism_file.yaml_nodes import compose, plain
from polybody.description.reading import write_description
from polybody.description.records import FRICTION_DEFAULTS, UNLIMITED, Description, frozen_array
from polybody.errors import PolybodyError, warn
from polybody.formulations.network.parts import CENTRE, JointPart, MotorPart, Port
from polybody.networks.component import PartComponent
from polybody.networks.library import PARTS
from polybody.networks.mechanism import joint_words
from polybody.networks.models import ModelComponent
from polybody.networks.part import Part

if TYPE_CHECKING:
    from polybody.networks.network import Network

Data = dict[str, Any]


def save_network(net: Network, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write the file; one that exists is kept unless `force`."""
    own = [part.model.description for part in net.components.values() if isinstance(part, ModelComponent)
           and not part.prefix]
    base = own[0] if own else Description(net.name, gravity=frozen_array(np.asarray(net.gravity, dtype=float)))
    if own and net.parts.bodies and not np.array_equal(base.gravity, net.gravity):
        raise PolybodyError(f"network {net.name!r} and its model {base.name!r} have different gravity; a file has one")
    lost = write_description(replace(base, name=net.name, network=_Writer().network(net)), path, force=force)
    if lost:
        warn(f"{path}: left out: {'; '.join(lost)}")
    return Path(path)


class _Writer:
    def __init__(self) -> None:
        self.kinds: dict[str, Data] = {}
        self.networks: dict[str, Data] = {}

    def network(self, net: Network) -> Data:
        contents = self.contents(net)
        return {key: value for key, value in (("kinds", self.kinds), ("networks", self.networks)) if value} | contents

    def contents(self, net: Network) -> Data:
        """All that is not copied from a used sub-network."""
        parts = net.parts
        _refuse(net)

        def own(table: dict[str, Any]) -> dict[str, Any]:
            return {word: part for word, part in table.items() if not any(word.startswith(f"{u}.") for u in net.used)}

        models = {n: m for n, m in own(net.components).items() if isinstance(m, ModelComponent)}
        made: Data = {
            "ground": {word: _pose(port) for word, port in own(parts.ground).items()},
            "bodies": {word: {
                "mass": float(body.mass), "com": _numbers(body.com), "inertia": _numbers(body.inertia),
                "ports": {key: _pose(port) for key, port in body.ports.items() if key != CENTRE},
            } for word, body in own(parts.bodies).items()},
            "models": {word: _model(part.model.description) for word, part in models.items() if part.prefix},
            "parts": {word: self.used(*said) for word, said in net.used.items()}
            | {word: self.part(p) for word, p in own(net.components).items() if isinstance(p, PartComponent)}
            | {word: _electric(part) for word, part in own(parts.electric).items()},
            "joints": {word: _joint(joint) for word, joint in own(parts.joints).items()},
            "springs": {word: {"a": s.a, "b": s.b, "stiffness": float(s.stiffness), "length": float(s.length),
                               "damping": float(s.damping)} for word, s in own(parts.springs).items()},
            "rods": {word: {"a": h.a, "b": h.b, "length": float(h.length)}
                     for word, h in own(parts.holds).items() if h.kind == "rod"},
            "guides": {word: {"kind": h.kind, "a": h.a, "b": h.b, "axis": _numbers(h.axis)}
                       for word, h in own(parts.holds).items() if h.kind != "rod"},
            "gears": {word: {"follower": g.follower, "leader": g.leader, "factor": float(g.factor),
                             "offset": float(g.offset)} for word, g in own(parts.gears).items()},
            "relations": {word: r.expression.text for word, r in own(parts.relations).items()},
            "motors": {word: _motor(motor) for word, motor in own(parts.motors).items()},
            "terminals": dict(net.terminals),
        }  # fmt: skip
        copied = {f"{u}.{key}": x for u, (other, *_) in net.used.items() for key, x in other.initial.items()}
        made["initial"] = {key: float(x) for key, x in net.initial.items() if copied.get(key) != x}
        return {key: value for key, value in made.items() if value}

    def used(self, other: Network, nodes: dict[str, str], reduced: bool) -> Data:
        return {"use": self._named(self.networks, other.name, self.contents(other)), **nodes,
                **({"reduced": True} if reduced else {})}

    def part(self, component: PartComponent) -> Data:
        part = component.part
        kind = part.name if PARTS.get(part.name) is part else self._named(self.kinds, part.name, _kind(part))
        ends = {own or "nodes": list(nodes) for own, nodes in component.nodes.items()}
        values = {}
        for name, value in component.values.items():
            if callable(value):
                raise PolybodyError(f"{name!r} of part {component.name!r} is a Python function; a file states inputs "
                                    "as numbers or expressions in `time`")
            values[name] = value if isinstance(value, (int, float)) else value.text
        return {"kind": kind, **ends, **values}

    @staticmethod
    def _named(table: dict[str, Data], name: str, data: Data) -> str:
        """The name under which a table has the data: its own, or the next that is free."""
        chosen, k = name, 2
        while (chosen in table and table[chosen] != data) or chosen in PARTS:
            chosen, k = f"{name}_{k}", k + 1
        table[chosen] = data
        return chosen


def _refuse(net: Network) -> None:
    parts = net.parts
    lost = [f"force driver {name!r}" for name in parts.forces]
    lost += [f"velocity driver {name!r}" for name, joint in parts.joints.items() if joint.driven]
    lost += [f"multiport {name!r}" for name in parts.multiports]
    lost += [f"motor {name!r} of several coordinates" for name, motor in parts.motors.items() if _turned(motor) is None]
    lost += [f"armature of {name!r} that couples its coordinates" for name, joint in parts.joints.items()
             if np.any(joint.armature - np.diag(np.diag(joint.armature)))]
    if lost:
        raise PolybodyError(f"a file of network {net.name!r} cannot express {', '.join(lost)}")


def _kind(part: Part) -> Data:
    def unit(said: Any) -> Any:
        text = f"{said.unit}{'!' if said.positive else ''}"
        return text if said.default is None else [text, said.default]

    ports = {own: domain.name for own, domain in part.domains.items()}
    data: Data = {
        "ports": ports[""] if list(ports) == [""] else ports,
        "parameters": {name: unit(said) for name, said in part.parameters.items()},
        "variables": {name: [unit, start] if start else unit for name, (unit, start) in part.variables.items()},
        "inputs": [name for name, said in part.parameters.items() if said.input],
        "equations": list(part.equations), "modes": None if part.modes is None else _data(part.modes),
        "energy": part.energy, "loss": part.loss, "doc": part.doc,
    }  # fmt: skip
    return {key: value for key, value in data.items() if value}


def _data(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _data(x) for key, x in value.items()}
    return list(value) if isinstance(value, (list, tuple)) else value


def _model(description: Description) -> Data:
    data = plain(compose(mechanism_text(description), description.name))
    return {key: value for key, value in data.items() if key != "polybody"}


def _electric(part: Any) -> Data:
    kind, key = {"voltage": ("voltage_source", "voltage"), "current": ("current_source", "current"),
                 "resistor": ("resistor", "resistance")}[part.kind]
    return {"kind": kind, "nodes": [part.plus, part.minus], key: float(part.value)}


def _joint(joint: JointPart) -> Data:
    data: Data = {"kind": joint.kind, "a": joint.a, "b": joint.b}
    data |= {key: _numbers(value) for key, value in joint_words(joint).items()}
    for key in ("stiffness", "damping"):
        if getattr(joint, key).any():
            data[key] = _numbers(getattr(joint, key))
    if joint.stiffness.any():
        data["rest"] = _numbers(joint.rest)
    if joint.armature.any():
        data["armature"] = _numbers(np.diag(joint.armature))
    if joint.friction is not None:
        data["friction"] = {key: _numbers(getattr(joint.friction, key)) for key in FRICTION_DEFAULTS}
    if joint.limits is not None:
        found = {key: getattr(joint.limits, key) for key in UNLIMITED}
        data["limits"] = {key: _numbers(value) for key, value in found.items() if value is not None}
    return data


def _turned(motor: MotorPart) -> tuple[str, int] | None:
    """(joint, coordinate) of a motor that turns with one."""
    found = [(joint, int(k)) for joint, E in motor.speeds.items() for k in np.flatnonzero(E)]
    return found[0] if len(found) == 1 else None


def _motor(motor: MotorPart) -> Data:
    (joint, k), = (found for found in (_turned(motor),) if found is not None)
    keys = {"torque_constant": "torque_constant", "speed_constant": "speed_constant", "resistance": "resistance",
            "inductance": "inductance", "rotor_inertia": "inertia", "damping": "damping"}
    nodes = {} if motor.plus is None else {"nodes": [motor.plus, motor.minus]}
    return {"joint": joint, **nodes, **{key: float(getattr(motor, own)) for key, own in keys.items()},
            "gear": float(motor.speeds[joint][k]), "coordinate": k}


def _pose(port: Port) -> Any:
    place, axes = _numbers(port.place), np.asarray(port.axes, dtype=float)
    return place if np.array_equal(axes, np.eye(3)) else {"xyz": place, "rotation": _numbers(axes)}


def _numbers(values: Any) -> Any:
    if isinstance(values, tuple):  # stages are whole numbers
        return [int(x) for x in values]
    return np.asarray(values, dtype=float).tolist()


__all__ = ["save_network"]
