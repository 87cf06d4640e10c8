"""`network:` in a mechanism file: parts, own kinds of parts, sub-networks and models, with the line of every problem.

    polybody: 1
    name: drive
    network:
      kinds:                                   # kinds of parts of one's own, as `pb.Part`
        varistor: {ports: electrical, parameters: {level: V!}, equations: ["i = (v/level)^3"]}
      networks:                                # sub-networks, used by name
        filter: {terminals: {in: a, out: b}, parts: {R: {kind: resistor, nodes: [a, b], resistance: 1 kohm}, …}}
        leg: {bodies: …, joints: …}            # multi-port bodies and joints: `mechanism_file.port_parts`
      models: {arm: puma560}                   # models as parts: a shipped name, or a file beside this one
      parts:
        supply: {kind: voltage_source, nodes: plus, voltage: 24 V}
        motor: {kind: dc_motor, winding: plus, shaft: arm.joint1, torque_constant: 0.05 N m/A, resistance: 1.2 ohm}
        stage: {use: filter, in: plus, out: smooth}
        left: {use: leg, reduced: true}        # its bodies as one (m+1)-port
      bodies: … ground: … joints: {hip: {kind: revolute, a: world.hip, b: left.thigh.top}}
      initial: {motor.winding.i: 0.5}

Bodies and joints of the same file are the network's own model: a joint's name is its node, as that of a joint between
ports in `network:`. Every problem is collected, and raised as one error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from polybody.description.fields import Fields, Notes, as_text
from polybody.description.files import read_text
from polybody.description.limits import YAML_BYTES
from polybody.description.mechanism_file.constants import work_out_expressions
from polybody.description.mechanism_file.reader import inner_mechanism, read_mechanism
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, compose, describe, plain
from polybody.description.naming import name_problem, shown
from polybody.description.problems import raise_errors
from polybody.description.reading import YAML_SUFFIXES, find_source, shipped_models
from polybody.errors import InputError
from polybody.model.load import load
from polybody.model.model import Model
from polybody.model.validation import model_from
from polybody.networks.library import PARTS
from polybody.networks.network import Network
from polybody.networks.part import Part
from polybody.networks.reading_bodies import BODY_KEYS, BodyReader

KIND_KEYS = ("ports", "parameters", "variables", "inputs", "equations", "modes", "energy", "loss", "doc")
SECTION_KEYS = ("kinds", "networks", *BODY_KEYS, "models", "parts", "initial")
INNER_KEYS = ("terminals", *BODY_KEYS, "models", "parts", "initial")


def has_network(source: str | os.PathLike[str]) -> bool:
    """Whether a file (or shipped model) has a `network:` section."""
    path = find_source(source)
    if path.suffix.lower() not in YAML_SUFFIXES:
        return False
    root = compose(read_text(path, YAML_BYTES), str(path))
    return isinstance(root, Mapping) and "network" in root.pairs


def load_network(source: str | os.PathLike[str]) -> Network:
    """Load the network of a mechanism file with a `network:` section.

    All problems, with their lines, are reported in one `InputError`.
    """
    path = find_source(source)
    if path.suffix.lower() not in YAML_SUFFIXES:
        raise InputError(f"{path}: a network is read from a mechanism file, {' or '.join(YAML_SUFFIXES)}; "
                         "pb.network(pb.load(...)) makes one of a robot file")
    text = read_text(path, YAML_BYTES)
    description = read_mechanism(text, str(path))
    root = compose(text, str(path))
    assert isinstance(root, Mapping)
    if "network" not in root.pairs:
        raise InputError(f"{path}: there is no `network:` in it; pb.network(pb.load({str(source)!r})) is the network "
                         "of its mechanism")
    work_out_expressions(root, str(path))
    notes = Notes(str(path))
    net = Network(description.name, description.gravity)
    if description.bodies:
        net.own_model(model_from(replace(description, network=None)))
    _Reader(notes, path.parent).fill(net, root.pairs["network"][1])
    raise_errors(notes.problems, str(path))
    return net


class _Reader:
    """Reads a section into a network; what goes wrong is noted with its line, and reading goes on."""

    def __init__(self, notes: Notes, folder: Path) -> None:
        self.notes, self.folder = notes, folder
        self.kinds: dict[str, Part] = dict(PARTS)
        self.networks: dict[str, Network] = {}
        self.bodies = BodyReader(notes, self._entries)

    def fill(self, net: Network, node: Node) -> None:
        section = Fields(self.notes, "network", node, SECTION_KEYS)
        for name, line, value in self._entries(section, "kinds"):
            self._try(line, lambda n=name, v=value: self._kind(n, v))
        for name, line, value in self._entries(section, "networks"):
            self._try(line, lambda n=name, v=value: self._network(n, v))
        self._contents(net, section)

    def _contents(self, net: Network, section: Fields) -> None:
        """Bodies, models, parts, joints and start values, of the network or of a sub-network."""
        self.bodies.bodies(net, section)
        for name, line, value in self._entries(section, "models"):
            self._try(line, lambda n=name, v=value: self._model(net, n, v))
        self._parts(net, section)
        self.bodies.connections(net, section)
        for name, line, value in self._entries(section, "initial"):
            self._try(line, lambda n=name, v=value: net.initial.__setitem__(n, _number(n, v)))

    def _parts(self, net: Network, section: Fields) -> None:
        for name, line, value in self._entries(section, "parts"):
            self._try(line, lambda n=name, v=value: self._part(net, n, v))

    def _entries(self, section: Fields, key: str) -> list[tuple[str, int, Node]]:
        node = section.node(key)
        if node is None or (isinstance(node, Scalar) and node.text in ("", "~", "null")):
            return []
        if not isinstance(node, Mapping):
            self.notes.error(node.line, f"network: {key} must be a mapping from names, got {describe(node)}")
            return []
        self.notes.count(key, len(node.pairs))
        found = []
        for name, (line, value) in node.pairs.items():
            problem = name_problem(name)
            if problem is not None:
                self.notes.error(line, f"network: {key}: the name {shown(name)} {problem}")
            else:
                found.append((name, line, value))
        return found

    def _try(self, line: int, work: Callable[[], Any]) -> None:
        try:
            work()
        except InputError as error:
            self.notes.error(line, str(error))

    def _kind(self, name: str, node: Node) -> None:
        given = plain(node)
        if not isinstance(given, dict) or "ports" not in given:
            raise InputError(f"kind {name!r} needs at least `ports` and `equations`")
        unknown = [key for key in given if key not in KIND_KEYS]
        if unknown:
            raise InputError(f"kind {name!r} has no field {unknown[0]!r}; available: {', '.join(KIND_KEYS)}")
        if name in self.kinds:
            raise InputError(f"kind {name!r} is in the library already; give it another name")
        for key in ("parameters", "variables"):
            given[key] = {k: _unit(name, k, said) for k, said in (given.get(key) or {}).items()}
        self.kinds[name] = Part(name, **given)

    def _network(self, name: str, node: Node) -> None:
        inner = Network(name)
        section = Fields(self.notes, f"network {name!r}", node, INNER_KEYS)
        self._contents(inner, section)
        for terminal, line, value in self._entries(section, "terminals"):
            self._try(line, lambda t=terminal, v=value: inner.terminal(t, _word(t, v)))
        self.networks[name] = inner

    def _model(self, net: Network, name: str, node: Node) -> None:
        """A model by a shipped name or a file beside this one, or written out in this file."""
        if not isinstance(node, Mapping):
            net.mechanism(name, self._loaded(_word(name, node)))
            return
        before = len(self.notes.problems)
        description = inner_mechanism(self.notes, name, node)
        if len(self.notes.problems) == before:
            net.mechanism(name, model_from(description))

    def _loaded(self, source: str) -> Model:
        beside = self.folder / source
        if not os.path.isfile(beside):  # unlike Path.is_file, it does not raise for names that no file can have
            return load(source if source in shipped_models() else beside)
        if not beside.resolve().is_relative_to(self.folder.resolve()):
            raise InputError(f"{source!r} is outside the folder of the network's file; move it there")
        return load(beside)

    def _part(self, net: Network, name: str, node: Node) -> None:
        if not isinstance(node, Mapping):
            raise InputError(f"part {name!r} must be a mapping with its kind, got {describe(node)}")
        given = {key: plain(value) for key, (_, value) in node.pairs.items()}
        for key in ("use", "multiport"):
            if key in given:
                self._used(net, name, key, given)
                return
        fields = Fields(self.notes, f"part {name!r}", node, tuple(given))
        kind = fields.need("kind", as_text, "")
        if not kind:
            return
        given.pop("kind")
        nodes = given.pop("nodes", ())
        if isinstance(nodes, dict):
            raise InputError(f"part {name!r}: nodes must be a name or a list of names, got a mapping")
        nodes = (nodes,) if isinstance(nodes, str) else tuple(tuple(n) if isinstance(n, list) else n for n in nodes)
        chosen = self.kinds.get(kind, kind)
        ports = chosen.domains if isinstance(chosen, Part) else {}
        for key in list(given):
            if key in ports and isinstance(given[key], list):
                given[key] = tuple(given[key])
        net.part(name, chosen, *nodes, **given)

    def _used(self, net: Network, name: str, key: str, given: dict[str, Any]) -> None:
        """A sub-network as it is (`use`), or reduced to its terminals (`multiport`)."""
        used = given.pop(key)
        if not isinstance(used, str) or used not in self.networks:
            raise InputError(f"part {name!r} uses the network {used!r}, which is not defined above; available: "
                             f"{', '.join(self.networks) or 'none'}")
        inner = self.networks[used]
        reduced = given.pop("reduced", "false") if key == "use" else "false"
        if str(reduced).lower() not in ("true", "false"):
            raise InputError(f"part {name!r}: reduced must be true or false, got {reduced!r}")
        for terminal, node in given.items():
            if isinstance(node, dict | list):
                raise InputError(f"terminal {terminal!r} of part {name!r} must be the name of a node, got {node!r}")
        nodes: dict[str, Any] = {terminal: str(node) for terminal, node in given.items()}
        if key == "use":
            net.use(name, inner, reduced=str(reduced).lower() == "true", **nodes)
        else:
            net.part(name, inner.as_part(), **nodes)


def _word(what: str, node: Node) -> str:
    return as_text(what, node)


def _number(what: str, node: Node) -> float:
    text = as_text(what, node)
    try:
        return float(text)
    except ValueError:
        raise InputError(f"initial: {what!r} is {text!r}, expected a number in SI units") from None


def _unit(kind: str, name: str, said: Any) -> Any:
    if isinstance(said, str):
        return said
    if isinstance(said, list) and len(said) == 2 and all(isinstance(x, str) for x in said):
        return said[0], said[1]
    raise InputError(f"kind {kind!r}: {name!r} needs a unit, or [unit, default], got {said!r}")


__all__ = ["has_network", "load_network"]
