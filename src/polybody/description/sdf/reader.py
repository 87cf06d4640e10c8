"""SDF (1.7 and later): a model, or a world of models, read into a `Description`.

The file's frames are resolved first (`frames`), so that every link and joint has its pose at the beginning; that is the
neutral configuration. Links become bodies, joints joints (`joints`); where they form loops, `cutting` chooses the joint
that becomes a loop. Elements of nested and included models are named by their scopes, "gripper::finger".

    base=None        as the file says: what no joint holds to the world floats, a static model stands
    base="fixed"     what floats is fixed where it stands
    base="floating"  what is static floats

A floating link's q is its place in the world, whose origin is neutral; the file's place is the configuration "initial"
of `description.configurations`. What acts on motion and is not modelled is named in one warning.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from polybody.algebra.rotations import matrix_quaternion
from polybody.algebra.spatial import inverse_pose
from polybody.description.cutting import Edge, components, spanning_tree
from polybody.description.limits import RECORDS
from polybody.description.problems import Problem, raise_errors
from polybody.description.records import (
    WORLD,
    Body,
    Configuration,
    Coupling,
    Description,
    Frame,
    Joint,
    Loop,
    frozen_array,
)
from polybody.description.sdf.frames import MODEL, SEPARATOR, Frames, Node
from polybody.description.sdf.includes import Includes
from polybody.description.sdf.joints import SdfJoint, read_joint
from polybody.description.sdf.shapes import read_inertial, read_visuals
from polybody.description.sdf.values import flag, numbers, pose, text
from polybody.description.xml.fields import Fields
from polybody.errors import InputError, warn
from polybody.names import listed

ROOT_JOINT = "root_joint"
#: Elements that act on motion and have no part here: where they stand, and what they are called in the warning.
UNMODELLED = {
    ".//link/inertial/fluid_added_mass": "fluid_added_mass",
    ".//link/velocity_decay": "velocity_decay",
    ".//joint/axis/limit/stiffness": "compliant limits",
    ".//joint/axis2/limit/stiffness": "compliant limits",
    ".//joint/physics": "solver settings of joints",
    ".//plugin": "plugins",
    ".//gripper": "grippers",
}
#: Booleans of links that act on motion where they differ from SDF's default.
UNMODELLED_FLAGS = {"kinematic": (True, "kinematic links"), "enable_wind": (True, "wind"),
                    "gravity": (False, "links without gravity")}  # fmt: skip


def read_sdf(path: str | os.PathLike[str], *, base: str | None = None) -> Description:
    """The description in an SDF file."""
    description, problems = scan_sdf(path, base=base)
    raise_errors(problems, Path(path).name)
    assert description is not None
    return description


def scan_sdf(path: str | os.PathLike[str], *, base: str | None = None) -> tuple[Description | None, list[Problem]]:
    """As `read_sdf`, but what is wrong inside a well-formed file is returned, not raised."""
    path = Path(path)
    fields = Fields(path.name)
    root = Includes(path).read(path, fields)
    world = root.find("world")
    models = (root if world is None else world).findall("model")
    if not models:
        raise InputError(f"{fields.source(root)}: <sdf> has no <model>")
    if world is not None and (len(root.findall("world")) > 1 or root.find("model") is not None):
        raise InputError(f"{fields.source(root)}: <sdf> has a <world> and more beside it; one world is read")
    for tag in ("link", "joint", "frame", "model", "visual"):
        count = sum(1 for _ in root.iter(tag))
        if count > RECORDS:
            raise InputError(f"{path.name}: has {count} <{tag}> elements; at most {RECORDS} are read")
    reader = _Reader(path, fields, base)
    for model in models:
        reader.take_model(model, "" if len(models) == 1 else f"{fields.name(model, 'a model')}{SEPARATOR}", WORLD)
    if world is not None:
        reader.frames.only = (models[0].get("name") or "").strip() if len(models) == 1 else ""
        reader.take_parts(world, "", WORLD)
    reader.resolve()
    _warn_unmodelled(root, path.name)
    name = (models[0] if world is None else world).get("name") or path.stem
    return reader.description(name.strip(), _gravity(world, fields)), fields.problems


class _Reader:
    """Collects the parts of all models, then makes records of them."""

    def __init__(self, path: Path, fields: Fields, base: str | None) -> None:
        self.path, self.fields, self.base = path, fields, base
        self.frames = Frames(fields)
        self.links: dict[str, Any] = {}
        self.joints: list[tuple[Any, str]] = []
        self.named: list[str] = []
        self.standing: dict[str, None] = {}
        self.later: list[tuple[str, str, Node, str]] = []  # (scope, name said in it, node, what it is of)

    def take_model(self, model: Any, scope: str, around: str) -> None:
        """A model whose parts are named `scope` + their names, in the frame `around`."""
        own, canonical = f"{scope}{MODEL}", _canonical(model, scope)
        placed, relative = pose(self.fields, model, f"model {model.get('name')!r}")
        node = Node(model, around, placed, canonical)
        self.frames.add(own, node, "a model")
        self.later.append((_above(scope), relative, node, "a model's pose"))
        self._take_placed(model, scope, own, node)
        if model.get("canonical_link") and canonical not in self.links:
            self.fields.problem(model, f"canonical_link: the model has no link {model.get('canonical_link')!r}")
        if flag(model, "static") and canonical is not None:
            self.standing |= {name: None for name in self.links if name.startswith(scope)}

    def _take_placed(self, model: Any, scope: str, own: str, node: Node) -> None:
        """The parts of a model, and which of them its pose places."""
        self.take_parts(model, scope, own)
        placement = (model.get("placement_frame") or "").strip()
        full = f"{scope}{placement}"
        if placement and not {full, f"{full}{SEPARATOR}{MODEL}"} & self.frames.nodes.keys():
            self.fields.problem(model, f"placement_frame {placement!r}: there is no such frame in the model")
        elif placement and placement != MODEL:
            node.placement = full if full in self.frames.nodes else f"{full}{SEPARATOR}{MODEL}"

    def take_parts(self, element: Any, scope: str, own: str) -> None:
        """Links, frames, joints and nested models; poses are relative to `own` where nothing else is said."""
        fields, frames, later = self.fields, self.frames, self.later
        for link in element.findall("link"):
            name = f"{scope}{fields.name(link, 'a link')}"
            placed, relative = pose(fields, link, f"link {name!r}")
            frames.add(name, node := Node(link, own, placed, None), "a link")
            self.links[name] = link
            later.append((scope, relative, node, f"link {name!r}"))
        if element.tag == "model":
            for model in element.findall("model"):
                merged = (model.get("merge") or "") == "true"
                inner = scope if merged else f"{scope}{fields.name(model, 'a model')}{SEPARATOR}"
                if merged:
                    self._merge(model, scope, own)
                else:
                    self.take_model(model, inner, own)
        for frame in element.findall("frame"):
            name = f"{scope}{fields.name(frame, 'a frame')}"
            placed, relative = pose(fields, frame, f"frame {name!r}")
            attached = (frame.get("attached_to") or "").strip()
            node = Node(frame, own, placed, own)
            frames.add(name, node, "a frame")
            if frames.nodes[name] is node:  # not a second one of that name, nor the world
                self.named.append(name)
            later.append((scope, relative or attached, node, f"frame {name!r}"))
            if attached:
                later.append((scope, attached, node, f"attached_to of frame {name!r}"))
        for joint in element.findall("joint"):
            name = f"{scope}{fields.name(joint, 'a joint')}"
            placed, relative = pose(fields, joint, f"joint {name!r}")
            child = text(joint, "child")
            node = Node(joint, own, placed, own)
            frames.add(name, node, "a joint")
            later.append((scope, relative or child, node, f"joint {name!r}"))
            later.append((scope, child, node, f"attached_to of joint {name!r}"))
            self.joints.append((joint, scope))

    def resolve(self) -> None:
        """Join the nodes by the names that were said; they may be used before they are defined, also around a model."""
        for scope, said, node, what in self.later:
            found = self.frames.named(scope, said, node.element, what) if said else ""
            if found and what.startswith("attached_to"):
                node.attached = found
            elif found:
                node.base = found

    def _merge(self, model: Any, scope: str, own: str) -> None:
        """An included model whose parts belong to the model around it; its pose is that of a frame in between."""
        placed, relative = pose(self.fields, model, "a merged model")
        proxy = f"_merged__{model.get('name') or 'model'}__"
        node = Node(model, own, placed, _canonical(model, scope))
        self.frames.add(f"{scope}{proxy}", node, "a merged model")
        self.later.append((scope, relative, node, "a merged model"))
        _name_own_frame(model, proxy)
        self._take_placed(model, scope, f"{scope}{proxy}", node)

    def description(self, name: str, gravity: Any) -> Description | None:
        fields, frames = self.fields, self.frames
        bodies = [self._body(link, element) for link, element in self.links.items()]
        found = [read_joint(element, scope, frames, fields) for element, scope in self.joints]
        stands = {WORLD, *self.standing} if self.base != "floating" else set()
        joints = [joint for joint in found if joint is not None and not {joint.parent, joint.child} <= stands]
        for joint in [joint for joint in found if joint is not None]:
            if joint.child == WORLD:
                fields.problem(joint.element, f"joint {joint.name!r} has the world as its child; swap parent and child")
            elif joint.parent == joint.child:
                fields.problem(joint.element, f"joint {joint.name!r} joins {joint.child!r} to itself")
        named = [self._frame(frame) for frame in self.named]
        if not self.links:
            fields.problem_at(self.path.name, "the model has no <link>")
        if fields.problems:
            return None
        followed = {joint.follows.source_joint for joint in joints if joint.follows is not None}
        edges = [Edge(j.parent, j.child, j.freedoms, j.carries or j.name in followed) for j in joints]
        grounded = [Joint(f"{link}_to_world" if i else ROOT_JOINT, "fixed", WORLD, link,
                          origin=frozen_array(frames.world_pose(link)))
                    for i, link in enumerate(self.standing)] if self.base != "floating" else []
        edges += [Edge(WORLD, joint.child, 0) for joint in grounded]
        kept = spanning_tree(edges)
        records, loops = list(grounded), []
        # Fixed joints are the first that the tree takes, so that one beside it joins what others hold already; poses
        # are those of the links in the file, so that it cannot contradict them.
        rigid: list[str] = []
        for joint, keep in zip(joints, kept, strict=False):
            if keep:
                more_bodies, more = self._tree_joint(joint)
                bodies, records = bodies + more_bodies, records + more
            elif joint.freedoms:
                loops.append(self._loop(joint))
            else:
                rigid.append(joint.name)
        if rigid:
            warn(f"{self.path.name}: closing cycles of fixed joints, without reactions of their own, and left out: "
                 f"{listed(rigid)}")  # fmt: skip
        records = self._free(edges) + records
        return Description(
            name=name, gravity=gravity, bodies=tuple(bodies), joints=tuple(records), frames=tuple(named),
            loops=tuple(loops), couplings=self._couplings(joints, loops), source=str(self.path),
            configurations=self._initial(records),
        )  # fmt: skip

    def _body(self, name: str, link: Any) -> Body:
        mass, com, inertia = read_inertial(link, f"link {name!r}", self.fields)
        visuals = read_visuals(link, f"link {name!r}", self.fields)
        return Body(name, mass, com, inertia, visuals=visuals, source=self.fields.source(link))

    def _frame(self, name: str) -> Frame:
        node = self.frames.nodes[name]
        link = self.frames.link_of(name) or WORLD
        placed = inverse_pose(self.frames.world_pose(link)) @ self.frames.world_pose(name)
        return Frame(name, link, frozen_array(placed), source=self.fields.source(node.element))

    def _in_link(self, link: str, joint: SdfJoint) -> Any:
        """The joint's frame in a link, at the beginning."""
        return inverse_pose(self.frames.world_pose(link)) @ self.frames.world_pose(joint.frame)

    def _tree_joint(self, joint: SdfJoint) -> tuple[list[Body], list[Joint]]:
        source, offset = self.fields.source(joint.element), self._in_link(joint.child, joint)
        aligned = np.allclose(offset, np.eye(4), rtol=0, atol=1e-14)
        child = joint.child if aligned else f"{joint.child}@{joint.name}"
        origin = frozen_array(self._in_link(joint.parent, joint))
        main = Joint(joint.name, parent=joint.parent, child=child, origin=origin, source=source, **joint.record)
        if aligned:
            return [], [main]
        weld = Joint(f"{joint.name}@{joint.child}", "fixed", child, joint.child,
                     origin=frozen_array(inverse_pose(offset)), source=source)
        return [Body(child, source=source)], [main, weld]

    def _loop(self, joint: SdfJoint) -> Loop:
        return Loop(
            joint.name, body_a=joint.parent, body_b=joint.child,
            origin_a=frozen_array(self._in_link(joint.parent, joint)),
            origin_b=frozen_array(self._in_link(joint.child, joint)), source=self.fields.source(joint.element),
            **joint.record,
        )  # fmt: skip

    def _free(self, edges: list[Edge]) -> list[Joint]:
        """Joints to the world of what nothing holds to it."""
        loose = [group[0] for group in components([WORLD, *self.links], edges) if WORLD not in group]
        kind = "fixed" if self.base == "fixed" else "floating"
        taken = ROOT_JOINT if self.standing and self.base != "floating" else ""
        joints = []
        for i, link in enumerate(loose):
            name = ROOT_JOINT if i == 0 and not taken else f"{link}_{ROOT_JOINT}"
            origin = self.frames.world_pose(link) if kind == "fixed" else np.eye(4)
            joints.append(Joint(name, kind, WORLD, link, origin=frozen_array(origin)))
        return joints

    def _initial(self, joints: list[Joint]) -> tuple[Configuration, ...]:
        """Where the file puts what floats."""
        places = []
        for joint in joints:
            T = self.frames.world_pose(joint.child) if joint.kind == "floating" else np.eye(4)
            if not np.array_equal(T, np.eye(4)):
                turn = matrix_quaternion(T[:3, :3])
                places.append((joint.name, (*T[:3, 3].tolist(), *turn.tolist())))
        return (Configuration("initial", tuple(places)),) if places else ()

    def _couplings(self, joints: list[SdfJoint], loops: list[Loop]) -> tuple[Coupling, ...]:
        cut = {loop.name for loop in loops}
        moving = {joint.name for joint in joints}
        found = [joint.follows for joint in joints if joint.follows is not None]
        still = [c.source_joint for c in found if c.source_joint not in moving and c.source_joint in self.frames.nodes]
        if still:
            raise InputError(f"{self.path.name}: mimic of {listed(still)}, whose links are static, is not read")
        lost = [c.joint for c in found if c.joint in cut or c.source_joint in cut]
        if lost:
            raise InputError(f"{self.path.name}: mimic of {listed(lost)}, which close loops, is not read")
        return tuple(found)


def _canonical(model: Any, scope: str) -> str | None:
    """The link that a model's frame moves with."""
    said = (model.get("canonical_link") or "").strip()
    if said:
        return f"{scope}{said}"
    first = model.find("link")
    if first is not None:
        return f"{scope}{(first.get('name') or '').strip()}"
    for nested in model.findall("model"):
        merged = nested.get("merge") == "true"
        found = _canonical(nested, scope if merged else f"{scope}{(nested.get('name') or '').strip()}{SEPARATOR}")
        if found is not None:
            return found
    return WORLD


def _name_own_frame(model: Any, name: str) -> None:
    """Inside a merged model `__model__` means that model's frame, not the one of the model around it."""
    for part in (part for child in model if child.tag != "model" for part in child.iter()):
        for key in ("relative_to", "attached_to", "expressed_in"):
            if part.get(key) == MODEL:
                part.set(key, name)
        if part.tag in ("parent", "child") and (part.text or "").strip() == MODEL:
            part.text = name
    for nested in model.findall("model"):
        for placed in nested.findall("pose"):
            if placed.get("relative_to") == MODEL:
                placed.set("relative_to", name)


def _above(scope: str) -> str:
    """The scope around a scope."""
    return scope[:-2].rpartition(SEPARATOR)[0] + SEPARATOR if SEPARATOR in scope[:-2] else ""


def _gravity(world: Any, fields: Fields) -> Any:
    said = None if world is None else world.find("gravity")
    values = None if said is None else numbers(fields, said, 3, "world")
    return frozen_array((0.0, 0.0, -9.81) if values is None else values)


def _warn_unmodelled(root: Any, name: str) -> None:
    found = [what for path, what in UNMODELLED.items() if root.find(path) is not None]
    for tag, (acts, what) in UNMODELLED_FLAGS.items():
        found += [what for link in root.iter("link") if flag(link, tag, not acts) == acts]
    if found:
        warn(f"{name}: not modelled: {listed(list(dict.fromkeys(found)))}")


__all__ = ["read_sdf", "scan_sdf"]
