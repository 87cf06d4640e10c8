"""Inverse and forward dynamics of long chains, and their terms: the steps of `denoc`, one joint at a time.

    inverse   outwards: motion, wrench            inwards: γ_j += B_ijᵀγ_i, τ_i = H_iᵀγ_i
    forward   outwards: motion, wrench            inwards: eliminate, γ_j += B_ijᵀ(γ_i + ψ_i τ̂_i)      outwards: θ̈_i

(η of (35) and the bias wrench γ obey the same recursion, so one field carries their sum.) Where wrenches act, the
outward pass gives poses too, and twists where springs join two points: each spring then adds its wrenches to the fields
"load" of its two bodies. Rotors and bearings that couple joints add to the field "coupled" of the joint they act on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import Array
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.articulated import articulated_to_parent, body_matrix, eliminate
from polybody.formulations.denoc.inverse import Motion, applied_wrenches, body_wrench, joint_force, outward_motion
from polybody.formulations.denoc.links import Crossing
from polybody.kernels.scan import INWARD, OUTWARD, Pass
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces, spring_wrenches
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.model.long_chains.crossings import Crossings
from polybody.model.long_chains.kinds import COUPLING, JOINT, SPRING, Chain, Kind
from polybody.model.long_chains.lone import carried, lone, lone_link, lone_spring

UPPER = [(i, j) for i in range(6) for j in range(i, 6)]
#: Widths of the fields of a record that do not depend on the joints.
WIDTHS = {"gamma": 6, "pose": 12, "twist": 6, "load": 6, "M": 21, "mu": 6}


@dataclass(frozen=True)
class Acting:
    """What acts on a chain beside its joints' motion."""

    wrenches: bool = False  # an argument: world axes, at the bodies' origins
    springs: bool = False  # between points
    damped: bool = False  # of these some have dampers
    coupled: bool = False  # armature or motor damping between joints
    passive: bool = True  # joint springs and dampers count
    held: bool = False  # an argument `free`: 1 for each velocity, 0 for one that is held and does not accelerate

    @property
    def loaded(self) -> bool:
        return self.wrenches or self.springs

    @property
    def inputs(self) -> list[str]:
        return ["wrenches"] if self.wrenches else []

    @property
    def fields(self) -> list[str]:
        """Fields that the inward pass reads of a node."""
        return [*(["pose"] if self.loaded else []), *(["load"] if self.springs else []),
                *(["coupled"] if self.coupled else [])]  # fmt: skip


class Dynamics:
    """The passes of a chain's dynamics."""

    def __init__(self, chain: Chain, acting: Acting) -> None:
        self.chain, self.acting = chain, acting
        self.graph = chain.graph
        self.crossings = Crossings(chain)

    @property
    def fields(self) -> dict[str, int]:
        r = self.chain.most_velocities
        return WIDTHS | {"stored": self.crossings.width, "psi": 6 * r, "own": r, "coupled": r}

    # outwards

    def outward(self, inputs: str) -> Pass:
        """Motion and wrench of every body from q, v, a, of those that `inputs` names; what is not named is zero."""
        width = 9 if "v" in inputs else 6 if "a" in inputs else 3
        places = [*(["pose"] if self.acting.loaded else []), *(["twist"] if self.acting.damped else [])]

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            joint = self.chain.joint(kind)
            sizes = [(x, joint.nq if x == "q" else joint.nv) for x in inputs]
            sizes += [("before", width), *((x, WIDTHS[x]) for x in places)]

            def text(table: Array, *arrays: Array) -> list[Any]:
                given = dict(zip(inputs, arrays, strict=False))
                after = dict(zip(["before", *places], arrays[len(inputs) :], strict=True))
                q, zero = given["q"], self.graph.zeros(3)
                v = given.get("v", self.graph.zeros(joint.nv))
                before = np.concatenate([*[zero] * (3 - width // 3), after["before"]])
                ahead = Motion(before[:3], before[3:6], before[6:])
                link = lone_link(self.chain, kind, table)
                crossing, stored = self.crossings.at(kind, q, table)
                motion = outward_motion(link, crossing, ahead, q, v, given.get("a"), domain=self.graph)
                moved = [motion.omega, motion.alpha, motion.a][-(width // 3) :]
                result = [moved, body_wrench(link, motion), [stored]]
                return result + self._places(kind, table, q, v, after)

            return self.chain.function(sizes, text)

        return Pass("motion", OUTWARD, step, constants=["c"], inputs=list(inputs), parent=["motion", *places],
                    writes=["motion", "gamma", "stored", *places])  # fmt: skip

    def outward_places(self) -> Pass:
        """Crossings, poses and twists of every body, without wrenches."""
        places = ["pose", *(["twist"] if self.acting.damped else [])]

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            joint = self.chain.joint(kind)
            sizes = [("q", joint.nq), ("v", joint.nv), *((x, WIDTHS[x]) for x in places)]

            def text(table: Array, q: Array, v: Array, *before: Array) -> list[Any]:
                stored = self.crossings.at(kind, q, table)[1]
                return [[stored], *self._places(kind, table, q, v, dict(zip(places, before, strict=True)))]

            return self.chain.function(sizes, text)

        return Pass("places", OUTWARD, step, constants=["c"], inputs=["q", "v"], parent=places,
                    writes=["stored", *places])  # fmt: skip

    def _places(self, kind: Kind, table: Array, q: Array, v: Array, before: dict[str, Array]) -> list[Any]:
        """[pose], [twist] of the body, as far as they are needed."""
        result: list[Any] = []
        if "pose" in before:
            mechanism = carried(self.chain, kind, table)
            q = np.concatenate([before["pose"], q])
            result.append(body_poses(mechanism, q, domain=self.graph)[1])
            if "twist" in before:
                v = np.concatenate([before["twist"], v])
                result.append([body_twists(mechanism, q, v, domain=self.graph)[1]])
        return result

    # between bodies

    def between(self, first: str | None, second: str | None) -> list[Pass]:
        """Wrenches of point springs, and forces of coupled rotors (times `second`) and bearings (times `first`)."""
        passes = []
        if self.acting.springs:
            places = ["pose", *(["twist"] if self.acting.damped else [])]
            passes.append(Pass("springs", INWARD, self._spring, constants=["c"], parent=places, partner=places,
                               adds=["load"], partner_adds=["load"]))  # fmt: skip
        if self.acting.coupled:
            inputs = [x for x in (first, second) if x]
            passes.append(Pass("couplings", INWARD, lambda kind: self._coupling(kind, bool(first), bool(second)),
                               constants=["c"], inputs=inputs, adds=["coupled"]))  # fmt: skip
        return passes

    def _spring(self, kind: Kind) -> Any:
        if kind.role != SPRING:
            return None
        sizes = [(x, WIDTHS[x]) for x in ("pose", *(["twist"] if self.acting.damped else []))]

        def text(table: Array, *arrays: Array) -> list[Any]:
            half = len(arrays) // 2
            ends = (arrays[:half], arrays[half:])
            poses = [(end[0][:9].reshape(3, 3), end[0][9:]) for end in ends]
            twists = [end[1] for end in ends] if self.acting.damped else None
            spring = lone_spring(self.chain, kind, table)
            return [[wrench] for wrench in spring_wrenches(spring, poses, twists, domain=self.graph)]

        return self.chain.function(sizes * 2, text)

    def _coupling(self, kind: Kind, damped: bool, accelerated: bool) -> Any:
        if kind.role != COUPLING:
            return None
        place, size = kind.model  # type: ignore[misc]

        def text(table: Array, *given: Array) -> list[Any]:
            armature, damping = self.chain.values(kind, table)
            force = self.graph.zeros(size)
            factors = [*([damping] if damped else []), *([armature] if accelerated else [])]
            force[place] = sum((factor * x[0] for factor, x in zip(factors, given, strict=True)), self.graph.const(0))
            return [[force]]

        return self.chain.function([*([("v", 1)] if damped else []), *([("a", 1)] if accelerated else [])], text)

    # inwards

    def project(self, inputs: str, output: str, *, sign: float = 1.0) -> Pass:
        """τ_i = H_iᵀ γ_i with what acts taken off, times `sign`."""
        acting = self.acting

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            joint = self.chain.joint(kind)
            sizes = [(x, joint.nq if x == "q" else joint.nv) for x in inputs] + [(x, 6) for x in acting.inputs]
            fields = [(x, joint.nv if x == "coupled" else WIDTHS[x]) for x in acting.fields]
            sizes += [("gamma", 6), ("stored", self.crossings.width), *fields]

            def text(table: Array, *arrays: Array) -> list[Any]:
                given = dict(zip([name for name, _ in sizes], arrays, strict=True))
                step = self.crossings.again(kind, table, given["stored"])
                gamma = self._remaining(kind, table, given)
                tau = joint_force(step, gamma[:3], gamma[3:])
                tau = tau + self._own_forces(kind, table, given)
                return [step.wrench_to_parent(gamma[:3], gamma[3:]), [tau * sign]]

            return self.chain.function(sizes, text)

        return Pass("project", INWARD, step, constants=["c"], inputs=[*inputs, *acting.inputs],
                    own=["gamma", "stored", *acting.fields], adds=["gamma"], outputs=[output])  # fmt: skip

    def own_forces(self, output: str) -> Pass:
        """What the joints' own springs and dampers exert, and what couplings do, where nothing acts on bodies."""
        coupled = ["coupled"] if self.acting.coupled else []

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            joint = self.chain.joint(kind)

            def text(table: Array, q: Array, v: Array, *more: Array) -> list[Any]:
                given = {"q": q, "v": v} | dict(zip(coupled, more, strict=True))
                return [[self.graph.zeros(joint.nv) - self._own_forces(kind, table, given)]]

            return self.chain.function([("q", joint.nq), ("v", joint.nv), *((x, joint.nv) for x in coupled)], text)

        return Pass("own forces", OUTWARD, step, constants=["c"], inputs=["q", "v"], own=coupled, outputs=[output])

    def _remaining(self, kind: Kind, table: Array, given: dict[str, Array]) -> Array:
        """γ less the wrenches that act on the body."""
        gamma = given["gamma"]
        if not self.acting.loaded:
            return gamma
        total = given.get("wrenches", self.graph.zeros(6)) + given.get("load", self.graph.zeros(6))
        body = replace(lone_link(self.chain, kind, table), parent=-1)
        R, eye, zero = given["pose"][:9].reshape(3, 3), self.graph.eye(3), self.graph.zeros(3)
        there = Crossing((R, eye), zero, self.graph.zeros(6, 0), False)
        only = lone(self.chain, kind, table)
        applied = applied_wrenches(only, [body], [there], zero, None, total.reshape(1, 6), self.graph)
        assert applied is not None
        return gamma - np.concatenate(applied[0])

    def _own_forces(self, kind: Kind, table: Array, given: dict[str, Array]) -> Any:
        """Armature times acceleration, less what the joint's springs and dampers exert, and what couplings ask for."""
        only = lone(self.chain, kind, table)
        force: Any = given.get("coupled", 0.0)
        if "a" in given and only.armature.any():
            force = force + self.graph.array(only.armature) @ given["a"]
        if self.acting.passive:
            force = force - joint_passive_forces(only, given["q"], given["v"], domain=self.graph)
        return force

    def eliminate(self, inputs: str = "qv") -> Pass:
        """(constants, q, v, τ, γ, stored, M̂) -> ψ, m̂⁻¹τ̂, γ and M̂ for the parent."""
        acting, held = self.acting, ["free"] if self.acting.held else []

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            joint = self.chain.joint(kind)
            sizes = [(x, joint.nq if x == "q" else joint.nv) for x in (*inputs, "tau")]
            sizes += [(x, 6) for x in acting.inputs] + [(x, joint.nv) for x in held]
            fields = [(x, joint.nv if x == "coupled" else WIDTHS[x]) for x in acting.fields]
            sizes += [("gamma", 6), ("stored", self.crossings.width), ("M", 21), *fields]

            def text(table: Array, *arrays: Array) -> list[Any]:
                given = dict(zip([name for name, _ in sizes], arrays, strict=True))
                link, step = lone_link(self.chain, kind, table), self.crossings.again(kind, table, given["stored"])
                M_hat = body_matrix(link, domain=self.graph) + unpacked(given["M"])
                factors, rest = eliminate(link, step, M_hat, given.get("free"), domain=self.graph)
                gamma = self._remaining(kind, table, given)
                tau_hat = given["tau"] - self._own_forces(kind, table, given) - joint_force(step, gamma[:3], gamma[3:])
                pushed = gamma + factors.psi @ tau_hat
                upward = articulated_to_parent(step, rest, domain=self.graph)
                return [
                    [factors.psi], [factors.inverse @ tau_hat], step.wrench_to_parent(pushed[:3], pushed[3:]),
                    [np.array([upward[ij] for ij in UPPER], dtype=object)],
                ]  # fmt: skip

            return self.chain.function(sizes, text)

        return Pass(
            "eliminate", INWARD, step, constants=["c"], inputs=[*inputs, "tau", *acting.inputs, *held],
            own=["gamma", "stored", "M", *acting.fields], writes=["psi", "own"], adds=["gamma", "M"],
        )  # fmt: skip

    def accelerate(self) -> Pass:
        """(constants, stored, ψ, m̂⁻¹τ̂, parent's μ) -> μ, θ̈ by (36), (37)."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            r = self.chain.joint(kind).nv

            def text(table: Array, stored: Array, psi: Array, own: Array, mu: Array) -> list[Any]:
                step = self.crossings.again(kind, table, stored)
                turned, moved = step.to_child(mu[:3]), step.to_child(mu[3:] + cross(mu[:3], step.r))
                psi = psi.reshape(6, r)
                acceleration = own - (psi[:3].T @ turned + psi[3:].T @ moved)
                jump = step.H @ acceleration
                return [[turned + jump[:3], moved + jump[3:]], [acceleration]]

            sizes = [("stored", self.crossings.width), ("psi", 6 * r), ("own", r), ("mu", 6)]
            return self.chain.function(sizes, text)

        return Pass("accelerate", OUTWARD, step, constants=["c"], own=["stored", "psi", "own"], parent=["mu"],
                    writes=["mu"], outputs=["a"])  # fmt: skip


def unpacked(packed: Array) -> Array:
    """A symmetric 6×6 matrix from its upper triangle."""
    M = np.empty((6, 6), dtype=object)
    for value, (i, j) in zip(packed, UPPER, strict=True):
        M[i, j] = M[j, i] = value
    return M


__all__ = ["Acting", "Dynamics"]
