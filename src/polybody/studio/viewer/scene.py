"""The three-dimensional part of the page: bodies that move, and what can be shown about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.mechanism import kinematics
from polybody.model.model import Model
from polybody.studio.viewer.shapes import Shape, body_shapes, extent, inertia_ellipsoid

Array = np.ndarray


def quaternion(rotation: Array) -> Array:
    """(w, x, y, z) of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return np.array([w, x, y, z])


class Scene:
    """A mechanism on a viser server."""

    def __init__(self, server: Any, model: Model, configurations: Array) -> None:
        """`configurations` (n, nq) are those the page will be opened with: they say how large it all is."""
        self.server, self.model = server, model
        self.size = extent(model, configurations[:1])[1]
        self.middle, self.span = extent(model, configurations)
        m = model.mechanism
        gravity = np.asarray(model.gravity)
        if np.linalg.norm(gravity) > 0:
            server.scene.set_up_direction(tuple(-gravity / np.linalg.norm(gravity)))
        plane = "xz" if abs(gravity[1]) > max(abs(gravity[0]), abs(gravity[2])) else "xy"
        server.scene.add_grid("/grid", 20, 20, plane=plane, cell_size=0.25 * _round(self.size),
                              section_size=_round(self.size), fade_distance=12 * self.size,
                              cell_color=(226, 232, 240), section_color=(203, 213, 225))  # fmt: skip
        self.bodies = [server.scene.add_frame(f"/bodies/{b.name}", show_axes=False) for b in m.bodies]
        self.ellipsoids: list[Any] = []
        shapes = body_shapes(model, self.size)
        for body, own in zip(m.bodies, shapes, strict=False):
            for k, shape in enumerate(own):
                add_shape(server, f"/bodies/{body.name}/shape{k}", shape)
            self._add_ellipsoid(body)
        for k, shape in enumerate(shapes[-1]):
            add_shape(server, f"/ground/shape{k}", shape)
        self.frames = [
            server.scene.add_frame(f"/frames/{f.name}", axes_length=0.09 * self.size, axes_radius=0.004 * self.size,
                                   visible=False)
            for f in m.frames
        ]  # fmt: skip
        self.com = server.scene.add_icosphere("/com", 0.03 * self.size, (250, 204, 21), visible=False)
        self.has_mass = sum(b.mass for b in m.bodies) > 0
        nothing = np.zeros((1, 2, 3))
        look = {"shaft_radius": 0.006 * self.size, "head_radius": 0.016 * self.size, "head_length": 0.04 * self.size}
        self.torques = server.scene.add_arrows("/torques", nothing, (220, 38, 38), visible=False, **look)
        self.reactions = server.scene.add_arrows("/reactions", nothing, (22, 163, 74), visible=False, **look)

    def _add_ellipsoid(self, body: Any) -> None:
        found = inertia_ellipsoid(body)
        if found is not None:
            half, pose = found
            self.ellipsoids.append(
                self.server.scene.add_icosphere(
                    f"/bodies/{body.name}/inertia", 1.0, (124, 58, 237), scale=tuple(half), opacity=0.35,
                    wxyz=quaternion(pose[:3, :3]), position=pose[:3, 3], visible=False, cast_shadow=False,
                )
            )  # fmt: skip

    def show(self, q: Array, v: Array | None = None, a: Array | None = None, tau: Array | None = None) -> None:
        """Put everything where it is at q; arrows where speeds, accelerations and torques are known."""
        m = self.model.mechanism
        poses = kinematics.body_poses(m, q)
        with self.server.atomic():
            for handle, (R, p) in zip(self.bodies, poses, strict=True):
                handle.wxyz, handle.position = quaternion(R), p
            for handle, frame in zip(self.frames, m.frames, strict=True):
                if handle.visible:
                    R, p = kinematics.frame_pose(frame, poses)
                    handle.wxyz, handle.position = quaternion(R), p
            if self.com.visible and self.has_mass:
                self.com.position = self.model.center_of_mass(q)
            if self.torques.visible and tau is not None:
                self.torques.points = self._torque_arrows(q, tau, poses)
            if self.reactions.visible and v is not None and a is not None:
                self.reactions.points = self._reaction_arrows(q, v, a, poses)

    def _torque_arrows(self, q: Array, tau: Array, poses: list[Any]) -> Array:
        """Along each joint's axes, as long as its torque compared with the largest the page has seen."""
        arrows = []
        for joint in self.model.mechanism.independent_joints:
            R, p = poses[joint.index]
            H = joint.model.velocity_map(q[joint.q])
            for k in range(joint.nv):
                axis = H[:3, k] if np.any(H[:3, k]) else H[3:, k]
                arrows.append((p, R @ axis / np.linalg.norm(axis) * tau[joint.v.start + k]))
        return self._scaled(arrows, "torque")

    def _reaction_arrows(self, q: Array, v: Array, a: Array, poses: list[Any]) -> Array:
        """The force of every joint on its child, at the joint."""
        wrenches = self.model.reactions(q, v, a)
        arrows = []
        for joint in self.model.mechanism.joints:
            if joint.name in wrenches:
                arrows.append((poses[joint.index][1], np.asarray(wrenches[joint.name])[3:]))
        return self._scaled(arrows, "reaction")

    def _scaled(self, arrows: list[tuple[Array, Array]], kind: str) -> Array:
        largest = max((float(np.linalg.norm(x)) for _, x in arrows), default=0.0)
        scales = self.__dict__.setdefault("_largest", {})
        scales[kind] = max(scales.get(kind, 1e-12), largest)
        length = 0.45 * self.size / scales[kind]
        points = [np.stack([p, p + x * length]) for p, x in arrows]
        return np.array(points) if points else np.zeros((1, 2, 3))


def add_shape(server: Any, name: str, shape: Shape) -> None:
    place = {"wxyz": quaternion(_orthonormal(shape.pose[:3, :3])), "position": shape.pose[:3, 3]}
    if shape.kind == "mesh":
        add_mesh(server, name, shape, place)
    elif shape.kind == "box":
        server.scene.add_box(name, shape.color, shape.size, **place)
    elif shape.kind == "cylinder":
        server.scene.add_cylinder(name, shape.size[0], shape.size[1], shape.color, **place)
    else:
        server.scene.add_icosphere(name, shape.size[0], shape.color, **place)


def add_mesh(server: Any, name: str, shape: Shape, place: dict[str, Any]) -> None:
    scale = shape.size if len(shape.size) == 3 else (1.0, 1.0, 1.0)
    mesh = shape.mesh.to_geometry() if hasattr(shape.mesh, "to_geometry") else shape.mesh
    plain = not hasattr(mesh.visual, "kind") or mesh.visual.kind is None
    if plain:
        server.scene.add_mesh_simple(name, np.asarray(mesh.vertices) * scale, np.asarray(mesh.faces),
                                     color=shape.color, flat_shading=False, side="double", **place)  # fmt: skip
    else:
        mesh = mesh.copy()
        mesh.apply_transform(np.diag([*scale, 1.0]))
        server.scene.add_mesh_trimesh(name, mesh, **place)


def _orthonormal(rotation: Array) -> Array:
    u, _, vt = np.linalg.svd(rotation)
    return u @ vt


def _round(x: float) -> float:
    """1, 2 or 5 times a power of ten, near x."""
    power = 10 ** np.floor(np.log10(x))
    return float(power * min((1, 2, 5, 10), key=lambda k: abs(np.log(x / (k * power)))))


__all__ = ["Scene", "add_shape", "quaternion"]
