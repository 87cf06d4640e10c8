"""Poses, Jacobians, mass centre, momentum and energy of long chains: one pass outwards from the ground, with sums.

The texts are those of `mechanism.kinematics` and `mechanism.energy`, for a joint on a carried body. Energy and first
moments are sums over bodies, kept as totals in the root's record. Momentum about the mass centre is not:

    L = Σ (L_i + c_i × p_i) − c × p,     p = Σ p_i                       L_i, p_i of one body about its own centre

so its last term waits for the totals. The Jacobian of a frame needs the joints below its body only; its origin (and its
rotation) goes inwards from the frame, past each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array
from polybody.algebra.rotations import cross
from polybody.algebra.spatial import pose
from polybody.kernels.scan import INWARD, OUTWARD, Pass
from polybody.mechanism import energy, kinematics
from polybody.mechanism.kinematics import Pose
from polybody.model.long_chains.kinds import COUPLING, END, FRAME, JOINT, SPRING, Chain, Kind
from polybody.model.long_chains.lone import carried, lone, lone_frame, lone_spring, mirrored
from polybody.quantities.trees import momentum_columns, world_inertia

WIDTHS = {
    "pose": 12, "turn": 9, "twist": 6, "first": 3, "mass": 1, "spin": 3, "linear": 3, "kinetic": 1, "potential": 1,
    "place": 12, "whole": 10,
}  # fmt: skip

_TRIANGLE = np.triu_indices(3)


def as_pose(twelve: Array) -> Pose:
    return twelve[:9].reshape(3, 3), twelve[9:]


class Places:
    """The passes of a chain's kinematics, energy and momentum."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.graph = chain, chain.graph

    @property
    def fields(self) -> dict[str, int]:
        return WIDTHS | {"columns": 6 * self.chain.most_velocities}

    def _joint_step(self, kind: Kind, names: str, fields: tuple[str, ...], text: Any) -> Any:
        joint = self.chain.joint(kind)
        sizes = [(x, joint.nq if x == "q" else joint.nv) for x in names]
        return self.chain.function([*sizes, *((x, WIDTHS[x]) for x in fields)], text)

    def _reached(self, kind: Kind, table: Array, q: Array, before: Array) -> Pose:
        q = np.concatenate([before, q])
        return kinematics.body_poses(carried(self.chain, kind, table), q, domain=self.graph)[1]

    # poses

    def rotations(self, output: str) -> Pass:
        """Rotations of the bodies."""

        def step(kind: Kind) -> Any:
            def text(table: Array, q: Array, before: Array) -> list[Any]:
                R, _ = self._reached(kind, table, q, np.concatenate([before, self.graph.zeros(3)]))
                return [[R], [R]]

            return self._joint_step(kind, "q", ("turn",), text)

        return Pass("rotations", OUTWARD, step, constants=["c"], inputs=["q"], parent=["turn"], writes=["turn"],
                    outputs=[output])  # fmt: skip

    def poses(self) -> Pass:
        """Poses of the bodies."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            return self._joint_step(kind, "q", ("pose",), lambda *given: [self._reached(kind, *given)])

        return Pass("poses", OUTWARD, step, constants=["c"], inputs=["q"], parent=["pose"], writes=["pose"])

    def frames(self, output: str) -> Pass:
        """The frames' poses as 4×4 matrices."""

        def text(kind: Kind, table: Array, before: Array) -> list[Any]:
            frame = lone_frame(self.chain, kind, table)
            return [[pose(*kinematics.frame_pose(frame, [as_pose(before)], domain=self.graph), domain=self.graph)]]

        def step(kind: Kind) -> Any:
            if kind.role != FRAME:
                return None
            return self.chain.function([("pose", 12)], lambda table, before: text(kind, table, before))

        return Pass("frames", OUTWARD, step, constants=["c"], parent=["pose"], outputs=[output])

    # Jacobians

    def columns(self) -> Pass:
        """Poses, and each joint's columns as twists in world axes at the world's origin."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None

            def text(table: Array, q: Array, before: Array) -> list[Any]:
                mechanism, q = carried(self.chain, kind, table), np.concatenate([before, q])
                poses = kinematics.body_poses(mechanism, q, domain=self.graph)
                return [poses[1], [kinematics.world_maps(mechanism, q, poses, domain=self.graph)[1]]]

            return self._joint_step(kind, "q", ("pose",), text)

        return Pass("columns", OUTWARD, step, constants=["c"], inputs=["q"], parent=["pose"],
                    writes=["pose", "columns"])  # fmt: skip

    def observe(self) -> Pass:
        """The frame's pose, given to its body as the field "place"."""

        def step(kind: Kind) -> Any:
            if kind.role != FRAME:
                return None

            def text(table: Array, before: Array) -> list[Any]:
                frame = lone_frame(self.chain, kind, table)
                return [kinematics.frame_pose(frame, [as_pose(before)], domain=self.graph)]

            return self.chain.function([("pose", 12)], text)

        return Pass("observe", INWARD, step, constants=["c"], parent=["pose"], adds=["place"])

    def jacobian(self, axes: str, rows: list[str]) -> Pass:
        """The frame's place goes on inwards; the joint's columns, moved to it, become columns of the Jacobian."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            r = self.chain.joint(kind).nv

            def text(table: Array, place: Array, columns: Array) -> list[Any]:
                R, point = as_pose(place)
                maps = [columns.reshape(6, r)]
                J = kinematics.point_jacobian(lone(self.chain, kind, table), 0, point, maps, domain=self.graph)
                if axes == "frame":
                    J = np.concatenate([R.T @ J[:3], R.T @ J[3:]])
                return [[place], *([row] for row in J)]

            return self.chain.function([("place", 12), ("columns", 6 * r)], text)

        return Pass("jacobian", INWARD, step, constants=["c"], own=["place", "columns"], adds=["place"],
                    outputs=rows)  # fmt: skip

    # sums over bodies

    def first_moments(self) -> Pass:
        """Poses, and totals of mass and first moment."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None

            def text(table: Array, q: Array, before: Array) -> list[Any]:
                reached = self._reached(kind, table, q, before)
                mass, center = self._mass(kind, table), self._center(kind, table, reached)
                return [reached, [center * mass], [np.array([mass], dtype=object)]]

            return self._joint_step(kind, "q", ("pose",), text)

        return Pass("moments", OUTWARD, step, constants=["c"], inputs=["q"], parent=["pose"], writes=["pose"],
                    totals=["first", "mass"])  # fmt: skip

    def _mass(self, kind: Kind, table: Array) -> Any:
        return lone(self.chain, kind, table).bodies[0].mass

    def _center(self, kind: Kind, table: Array, reached: Pose) -> Array:
        """The mass centre of one body at its pose."""
        R, p = reached
        return p + R @ self.graph.array(lone(self.chain, kind, table).bodies[0].com)

    def center_of_mass(self, output: str) -> Pass:
        def text(table: Array, first: Array, mass: Array) -> list[Any]:
            return [[first / mass[0]]]

        return self._end("center", ("first", "mass"), text, output)

    def momenta(self) -> Pass:
        """Poses and twists, and totals of momentum about the origin, mass and first moment."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None

            def text(table: Array, q: Array, v: Array, before: Array, twist: Array) -> list[Any]:
                mechanism = carried(self.chain, kind, table)
                q, v = np.concatenate([before, q]), np.concatenate([twist, v])
                reached = kinematics.body_poses(mechanism, q, domain=self.graph)[1]
                twist = kinematics.body_twists(mechanism, q, v, domain=self.graph)[1]
                mass, center = self._mass(kind, table), self._center(kind, table, reached)
                ((w, c_dot),) = energy.center_twists(lone(self.chain, kind, table), [twist], domain=self.graph)
                R, inertia = reached[0], self.graph.array(mechanism.bodies[1].inertia)
                linear = (R @ c_dot) * mass
                spin = R @ (inertia @ w) + cross(center, linear)
                return [reached, [twist], [spin], [linear], [center * mass], [np.array([mass], dtype=object)]]

            return self._joint_step(kind, "qv", ("pose", "twist"), text)

        return Pass("momenta", OUTWARD, step, constants=["c"], inputs=["q", "v"], parent=["pose", "twist"],
                    writes=["pose", "twist"], totals=["spin", "linear", "first", "mass"])  # fmt: skip

    def momentum(self, output: str) -> Pass:
        """About the mass centre."""

        def text(table: Array, spin: Array, linear: Array, first: Array, mass: Array) -> list[Any]:
            return [[spin - cross(first / mass[0], linear), linear]]

        return self._end("momentum", ("spin", "linear", "first", "mass"), text, output)

    # the centroidal momentum matrix

    def composites(self) -> list[Pass]:
        """Columns of the joints, composite bodies about the world's origin, and totals of mass and first moment."""

        def step(kind: Kind) -> Any:
            def text(table: Array, q: Array, before: Array) -> list[Any]:
                mechanism, q = carried(self.chain, kind, table), np.concatenate([before, q])
                poses = kinematics.body_poses(mechanism, q, domain=self.graph)
                mass, first, inertia = world_inertia(mechanism.bodies[1], poses[1], domain=self.graph)
                maps = kinematics.world_maps(mechanism, q, poses, domain=self.graph)[1]
                whole = [*_one(mass), first, inertia[_TRIANGLE]]
                return [poses[1], [maps], whole, [first], _one(mass)]

            return self._joint_step(kind, "q", ("pose",), text)

        def fold(kind: Kind) -> Any:
            return self.chain.function([("whole", 10)], lambda table, whole: [[whole]])

        return [
            Pass("bodies", OUTWARD, step, constants=["c"], inputs=["q"], parent=["pose"],
                 writes=["pose", "columns", "whole"], totals=["first", "mass"]),
            Pass("composites", INWARD, fold, constants=["c"], own=["whole"], adds=["whole"]),
        ]  # fmt: skip

    def momentum_matrix(self, rows: list[str]) -> Pass:
        """Momenta of unit velocities about the mass centre; the totals go outwards from the root."""

        def step(kind: Kind) -> Any:
            r = self.chain.joint(kind).nv

            def text(table: Array, columns: Array, whole: Array, first: Array, mass: Array) -> list[Any]:
                part = whole[0], whole[1:4], mirrored(whole[4:])
                A = momentum_columns(part, columns.reshape(6, r), first / mass[0])
                return [[first], [mass], *([row] for row in A)]

            sizes = [("columns", 6 * r), *((x, WIDTHS[x]) for x in ("whole", "first", "mass"))]
            return self.chain.function(sizes, text)

        return Pass("momentum matrix", OUTWARD, step, constants=["c"], own=["columns", "whole"],
                    parent=["first", "mass"], writes=["first", "mass"], outputs=rows)  # fmt: skip

    def _end(self, name: str, fields: tuple[str, ...], text: Any, output: str) -> Pass:
        def step(kind: Kind) -> Any:
            return self.chain.function([(x, WIDTHS[x]) for x in fields], text) if kind.role == END else None

        return Pass(name, OUTWARD, step, constants=["c"], parent=fields, outputs=[output])

    # energy

    def energies(self) -> Pass:
        """Poses and twists, and the bodies' and joints' parts of kinetic and potential energy."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None

            def text(table: Array, q: Array, v: Array, before: Array, twist: Array) -> list[Any]:
                mechanism, only = carried(self.chain, kind, table), lone(self.chain, kind, table)
                far, fast = np.concatenate([before, q]), np.concatenate([twist, v])
                reached = kinematics.body_poses(mechanism, far, domain=self.graph)[1]
                twist = kinematics.body_twists(mechanism, far, fast, domain=self.graph)[1]
                kinetic = energy.kinetic_energy(only, [twist], v, domain=self.graph)
                potential = energy.potential_energy(only, q, [reached], domain=self.graph)
                return [reached, [twist], _one(kinetic), _one(potential)]

            return self._joint_step(kind, "qv", ("pose", "twist"), text)

        return Pass("energies", OUTWARD, step, constants=["c"], inputs=["q", "v"], parent=["pose", "twist"],
                    writes=["pose", "twist"], totals=["kinetic", "potential"])  # fmt: skip

    def spring_energies(self) -> Pass:
        def step(kind: Kind) -> Any:
            if kind.role != SPRING:
                return None

            def text(table: Array, one: Array, other: Array) -> list[Any]:
                spring, poses = lone_spring(self.chain, kind, table), [as_pose(one), as_pose(other)]
                return [_one(energy.spring_energy(spring, self.graph.zeros(0), poses, domain=self.graph))]

            return self.chain.function([("a", 12), ("b", 12)], text)

        return Pass("springs", OUTWARD, step, constants=["c"], parent=["pose"], partner=["pose"], totals=["potential"])

    def coupled_energies(self) -> Pass:
        """½ v_a A_ab v_b of rotors that couple joints."""

        def step(kind: Kind) -> Any:
            if kind.role != COUPLING:
                return None

            def text(table: Array, one: Array, other: Array) -> list[Any]:
                return [_one(self.chain.values(kind, table)[0] * one[0] * other[0] * 0.5)]

            return self.chain.function([("v", 1), ("other", 1)], text)

        return Pass("couplings", OUTWARD, step, constants=["c"], inputs=["v", "v_acted"], totals=["kinetic"])


def _one(number: Any) -> list[Array]:
    return [np.array([number], dtype=object)]


__all__ = ["Places"]
