"""Forces and moments as arrows: where each acts and how large it is, in layers that share a unit.

An arrow is six numbers: the point it starts at and the vector, world axes, in the unit of its layer. How long a
newton is drawn is the outlet's business; it shows the scale.

    joint torques, joint forces      what drives: tau along each axis of a joint, by whether it turns or slides
    reaction forces, moments         the wrench of each joint on its child, at the child's origin
    closure forces, moments          the wrench of each loop on its body b, at b's frame
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.mechanism.mechanism import GROUND
from polybody.model.model import Model

Array = np.ndarray


@dataclass(frozen=True)
class Layer:
    """Arrows of one kind: `names` say whose they are."""

    key: str
    unit: str
    names: tuple[str, ...]
    moment: bool = False

    def as_dict(self) -> dict[str, object]:
        return {"key": self.key, "unit": self.unit, "names": list(self.names), "moment": self.moment}


class Loads:
    """The layers of one model; `arrows` fills them for states (n, …)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        m = model.mechanism
        self.columns: dict[str, list[tuple[int, int]]] = {
            "joint torques": [],
            "joint forces": [],
        }  # (joint, its column)
        for joint in m.independent_joints:
            H = joint.model.velocity_map(joint.model.neutral())
            for k in range(joint.nv):
                self.columns["joint torques" if np.any(H[:3, k]) else "joint forces"].append((joint.index, k))
        self.joints = [joint for joint in m.joints if joint.kind != "floating"]
        self.closures = list(m.closures)
        self.layers = [
            Layer(key, unit, tuple(self._column_name(*c) for c in self.columns[key]), unit == "N m")
            for key, unit in (("joint torques", "N m"), ("joint forces", "N"))
            if self.columns[key]
        ]
        own = tuple(joint.name for joint in self.joints)
        if own:
            self.layers += [Layer("reaction forces", "N", own), Layer("reaction moments", "N m", own, True)]
        if self.closures:
            loops = tuple(closure.name for closure in self.closures)
            self.layers += [Layer("closure forces", "N", loops), Layer("closure moments", "N m", loops, True)]

    def _column_name(self, index: int, k: int) -> str:
        joint = self.model.mechanism.joints[index]
        return joint.name if joint.nv == 1 else f"{joint.name}.{k}"

    def drives(self, key: str, poses: Array, q: Array, tau: Array) -> Array:
        """(n, arrows, 6) of joint torques or joint forces; poses (n, bodies, 4, 4)."""
        found = np.zeros((len(q), len(self.columns[key]), 6))
        for place, (index, k) in enumerate(self.columns[key]):
            joint = self.model.mechanism.joints[index]
            if joint.nv == 1:
                H = np.broadcast_to(joint.model.velocity_map(q[0, joint.q]), (len(q), 6, 1))
            else:
                H = np.array([joint.model.velocity_map(row[joint.q]) for row in q])
            axis = H[:, :3, k] if key == "joint torques" else H[:, 3:, k]
            length = np.linalg.norm(axis, axis=-1, keepdims=True)
            axis = axis / np.where(length > 0, length, 1.0)
            found[:, place, :3] = poses[:, index, :3, 3]
            found[:, place, 3:] = np.einsum("nij,nj->ni", poses[:, index, :3, :3], axis) * tau[:, [joint.v.start + k]]
        return found

    def reactions(self, poses: Array, q: Array, v: Array, a: Array) -> dict[str, Array]:
        """{layer: (n, arrows, 6)} of reactions and closures; raises where the model cannot report them."""
        wrenches = self.model.reactions(q, v, a)
        found = {}
        places = [poses[:, joint.index, :3, 3] for joint in self.joints]
        groups = [("reaction", [joint.name for joint in self.joints], places)]
        ends = []
        for closure in self.closures:
            at = closure.b.position
            if closure.b.body != GROUND:
                T = poses[:, closure.b.body]
                ends.append(np.einsum("nij,j->ni", T[:, :3, :3], at) + T[:, :3, 3])
            else:
                ends.append(np.broadcast_to(at, (len(q), 3)))
        groups.append(("closure", [closure.name for closure in self.closures], ends))
        for kind, names, points in groups:
            if not names:
                continue
            both = np.array([np.broadcast_to(wrenches[name], (len(q), 6)) for name in names]).swapaxes(0, 1)
            at = np.array(points).swapaxes(0, 1)
            found[f"{kind} forces"] = np.concatenate([at, both[..., 3:]], axis=-1)
            found[f"{kind} moments"] = np.concatenate([at, both[..., :3]], axis=-1)
        return found

    def arrows(
        self, poses: Array, q: Array, v: Array, a: Array, tau: Array, wanted: set[str] | None = None
    ) -> dict[str, Array]:
        """{layer: (n, arrows, 6)} of the layers wanted, all where none are named."""
        keys = {layer.key for layer in self.layers}
        keys = keys if wanted is None else keys & wanted
        found = {key: self.drives(key, poses, q, tau) for key in self.columns if key in keys}
        if keys - set(found):
            found |= {key: value for key, value in self.reactions(poses, q, v, a).items() if key in keys}
        return found


__all__ = ["Layer", "Loads"]
