"""Where every component of a network is and how it moves, from the joints' q and v.

Bodies are placed along a spanning tree of joints whose q is known. A joint left over closes a loop: its q and v follow
from the ports it joins, by Gauss-Newton on the joint's manifold, and what remains is the loop's gap. A state whose gap
is not zero raises an error, with how far off it is and where.

Port a of a joint is taken where port b is now: where the joint slides, the port slides on its body (Ξ of (29)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.algebra.spatial import twist_log
from polybody.errors import InputError
from polybody.formulations.network.fitting import fit_configuration, lesser_way
from polybody.formulations.network.graph import Groups, node_of
from polybody.formulations.network.holding import held_gap, relation_gap
from polybody.formulations.network.parts import WORLD, GearPart, JointPart, Port
from polybody.formulations.network.terminals import across_at
from polybody.late import dataclass, field
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.formulations.network.builder import NetworkBuilder

#: a loop may be open by this much (metres and radians; per second), relative to the mechanism's size and speed
LOOP_TOLERANCE = 1e-7

#: (joint, R and p of the pose between its ports) to its configuration
Fit = Callable[[JointPart, Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Placed:
    """A frame in the world: axes R, origin p, across variable x = [v; ω] of its origin."""

    R: Array
    p: Array
    x: Array


@dataclass(frozen=True, eq=False)
class JointState:
    """A joint at its state: the free directions Φ at port b, and Φ̇ v, in world axes."""

    q: Array
    v: Array
    directions: Array
    drift: Array


@dataclass(eq=False)
class Situation:
    """All frames and joints of a network at one state."""

    domain: Domain  # scalars of all numbers
    frames: dict[str, Placed] = field(default_factory=dict)  # bodies and the ground
    joints: dict[str, JointState] = field(default_factory=dict)
    #: joints that close loops: (gap in configuration, gap in velocity), each a twist
    gaps: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    currents: dict[str, Any] = field(default_factory=dict)  # of motors, by name

    def port(self, net: NetworkBuilder, full: str) -> Placed:
        """A port's frame."""
        port = net.ports[full]
        if port.component in net.parts.multiports:
            return net.parts.multiports[port.component].frames[port.name]
        return carried(self.frames[port.component], port, self.domain)


def carried(frame: Placed, port: Port, domain: Domain) -> Placed:
    """A port's frame from its component's."""
    r = frame.R @ domain.array(port.place)
    return Placed(frame.R @ domain.array(port.axes), frame.p + r, across_at(frame.x, r))


def situation(
    net: NetworkBuilder,
    q: Any = None,
    v: Any = None,
    *,
    currents: Mapping[str, Any] | None = None,
    closed: bool = True,
    domain: Domain = FLOAT,
    fit: Fit | None = None,
) -> Situation:
    """Place everything. q and v map joints to their values, or are arrays over the joints in order of connection.

    `closed` rejects a state that leaves a loop open. `fit` finds configurations of joints that close loops in scalars
    that are no plain numbers.
    """
    known_q = joint_values(net, "q", q, domain)
    known_v = joint_values(net, "v", v, domain)
    place = _Placing(net, Situation(domain), known_q, known_v, fit or _must_be_given)
    place.walk()
    place.close()
    if closed and domain is FLOAT:
        place.refuse_open_loops()
        place.refuse_slipped_gears()
        place.refuse_broken_holds()
    result = place.result
    result.currents = {name: domain.const(0) if currents is None else currents.get(name, domain.const(0))
                       for name in net.parts.windings()}
    return result


def joint_values(net: NetworkBuilder, what: str, values: Any, domain: Domain) -> dict[str, Array]:
    """{joint: array} of configurations (what "q") or of numbers along its freedoms (any other).

    Arrays go over the joints that follow no other; q and v of followers come from their leaders.
    """
    joints = net.parts.joints
    if values is None:
        return {name: domain.zeros(j.nv) for name, j in joints.items()} if what == "v" else {}
    if isinstance(values, Mapping):
        unknown = [name for name in values if name not in joints]
        if unknown:
            raise InputError(f"{what} names {unknown[0]!r}, which is not a joint of {net.name!r}")
        result = {name: domain.array(np.atleast_1d(np.asarray(x, dtype=object))) for name, x in values.items()}
    else:
        flat, result, start = np.asarray(values, dtype=object), {}, 0
        followers = net.parts.followers()
        for name, joint in ((n, j) for n, j in joints.items() if n not in followers):
            size = joint.nq if what == "q" else joint.nv
            if start + size > len(flat):
                break
            result[name] = domain.array(flat[start : start + size])
            start += size
        if start != len(flat):
            raise InputError(f"{what} has {counted(len(flat), 'number')}, which end inside a joint; joints have "
                             f"{', '.join(str(j.nq if what == 'q' else j.nv) for j in joints.values())}")
    for name, array in result.items():
        size = joints[name].nq if what == "q" else joints[name].nv
        if array.shape != (size,):
            raise InputError(f"{what} of joint {name!r} has shape {array.shape}, expected ({size},)")
        if domain is FLOAT and not np.isfinite(array).all():
            raise InputError(f"{what} of joint {name!r} is {array.tolist()}, expected finite numbers")
    if what in ("q", "v"):
        for gear in net.parts.gears.values():
            if gear.follower not in result and gear.leader in result:
                k, c = domain.array([gear.factor, gear.offset if what == "q" else 0])
                result[gear.follower] = result[gear.leader] * k + c
    return result


class _Placing:
    def __init__(
        self, net: NetworkBuilder, result: Situation, q: dict[str, Array], v: dict[str, Array], fit: Fit
    ) -> None:
        self.net, self.result, self.q, self.v, self.fit = net, result, q, v, fit
        self.domain = result.domain
        zero = self.domain.zeros
        result.frames[WORLD] = Placed(self.domain.eye(3), zero(3), zero(6))

    def walk(self) -> None:
        """Place bodies outwards from the ground and from multiports, along joints whose q is known."""
        net, groups = self.net, Groups()
        for name, multiport in net.parts.multiports.items():
            for port in multiport.ports:
                groups.join(WORLD, f"{name}.{port}")
        self.tree = []
        for joint in sorted(net.parts.joints.values(), key=lambda j: j.nq > 0 and j.name not in self.q):
            if groups.join(node_of(net, joint.a), node_of(net, joint.b)):
                self.tree.append(joint)
        waiting = list(self.tree)
        while waiting:
            ready = [j for j in waiting if self._is_placed(j.a) or self._is_placed(j.b)]
            if not ready:
                break
            for joint in ready:
                self._cross(joint)
                waiting.remove(joint)

    def _is_placed(self, port: str) -> bool:
        component = self.net.ports[port].component
        return component in self.result.frames or component in self.net.parts.multiports

    def _cross(self, joint: JointPart) -> None:
        forward = self._is_placed(joint.a)
        near, far = (joint.a, joint.b) if forward else (joint.b, joint.a)
        body = self.net.ports[far].component
        for what, table, size in (("configuration", self.q, joint.nq), ("velocity", self.v, joint.nv)):
            if size and joint.name not in table:
                raise InputError(f"no {what} is given for joint {joint.name!r}, and {body!r} cannot be placed without")
        frame, domain = self.result.port(self.net, near), self.domain
        if joint.model is None:
            X, shift = domain.eye(3), domain.zeros(3)
        else:
            X, shift = joint.model.configuration(self.q[joint.name], domain=domain)
        if forward:
            R, p = frame.R @ X, frame.p + frame.R @ shift
            R_b, p_b = R, p
        else:
            R = frame.R @ X.T
            p = frame.p - R @ shift
            R_b, p_b = frame.R, frame.p
        state = self._state(joint, self.q.get(joint.name), self.v.get(joint.name), R_b)
        relative = state.directions @ state.v
        x_at_b = across_at(frame.x, p_b - frame.p) + (relative if forward else -relative)
        x = across_at(x_at_b, p - p_b)
        self._place_body(body, far, R, p, x)
        self.result.joints[joint.name] = self._with_drift(joint, state, R_b, x_at_b[3:] if forward else frame.x[3:])

    def _place_body(self, body: str, port: str, R: Array, p: Array, x: Array) -> None:
        local, domain = self.net.ports[port], self.domain
        R_body = R @ domain.array(local.axes).T
        r = -(R_body @ domain.array(local.place))
        self.result.frames[body] = Placed(R_body, p + r, across_at(x, r))

    def _state(self, joint: JointPart, q: Array | None, v: Array | None, R_b: Array) -> JointState:
        """Φ = [R H_v; R H_ω]; its drift is added once the child's turning is known."""
        domain = self.domain
        if joint.model is None:
            return JointState(domain.zeros(0), domain.zeros(0), domain.zeros(6, 0), domain.zeros(6))
        assert q is not None
        assert v is not None
        H = joint.model.velocity_map(q, domain=domain)
        return JointState(q, v, np.concatenate([R_b @ H[3:], R_b @ H[:3]]), domain.zeros(6))

    def _with_drift(self, joint: JointPart, state: JointState, R_b: Array, omega_b: Array) -> JointState:
        """Φ̇ v = Ω_b Φ v + R_b Ḣ v."""
        if joint.model is None:
            return state
        local = joint.model.velocity_map_rate(state.q, state.v, domain=self.domain) @ state.v
        jump = state.directions @ state.v
        drift = np.concatenate(
            [R_b @ local[3:] + cross(omega_b, jump[:3]), R_b @ local[:3] + cross(omega_b, jump[3:])]
        )
        return JointState(state.q, state.v, state.directions, drift)

    def close(self) -> None:
        """Fit the joints that close loops."""
        for joint in self.net.parts.joints.values():
            if joint.name in self.result.joints:
                continue
            a, b = self.result.port(self.net, joint.a), self.result.port(self.net, joint.b)
            X, shift = a.R.T @ b.R, a.R.T @ (b.p - a.p)
            relative = b.x - across_at(a.x, b.p - a.p)
            V = np.concatenate([b.R.T @ relative[3:], b.R.T @ relative[:3]])
            q, gap = self._fit(joint, X, shift)
            if joint.model is None:
                v, slip = self.domain.zeros(0), V
            else:
                H = joint.model.velocity_map(q, domain=self.domain)
                v = self.domain.solve(H.T @ H, H.T @ V)
                slip = V - H @ v
            self.result.gaps[joint.name] = (gap, slip)
            state = self._state(joint, q, v, b.R)
            self.result.joints[joint.name] = self._with_drift(joint, state, b.R, b.x[3:])

    def _fit(self, joint: JointPart, X: Array, shift: Array) -> tuple[Array, Array]:
        """(q, gap): the joint's configuration nearest to the pose between its ports, and the twist that is left."""
        given = self.q.get(joint.name)
        if self.domain is not FLOAT:
            if joint.model is None:
                return self.domain.zeros(0), self.domain.zeros(6)
            if given is None and _needs_configuration(joint):
                given = self.fit(joint, X, shift)
            return self.domain.array(joint.model.neutral()) if given is None else given, self.domain.zeros(6)
        if joint.model is None:
            return np.zeros(0), twist_log(X, shift)
        q, gap = (x[0] for x in fit_configuration(joint, np.concatenate([X.ravel(), shift])[None], given))
        return (lesser_way(joint, q) if given is None else q), gap

    def refuse_open_loops(self) -> None:
        size = max([1e-3, *(float(np.abs(f.p).max()) for f in self.result.frames.values())])
        speed = max([1.0, *(float(np.abs(f.x).max()) for f in self.result.frames.values())])
        for name, (gap, slip) in self.result.gaps.items():
            kinds = ((gap, max(size, 1.0), "configuration", ""), (slip, speed, "velocity", "/s"))
            for twist, scale, noun, unit in kinds:
                if np.abs(twist).max() > LOOP_TOLERANCE * scale:
                    raise InputError(
                        f"the {noun} does not satisfy the loop that joint {name!r} closes ({self._loop(name)}): "
                        f"it is off by {np.linalg.norm(twist[3:]):.3g} m{unit} and "
                        f"{np.linalg.norm(twist[:3]):.3g} rad{unit}"
                    )
        for name in self.result.gaps:
            self._refuse_other_claims(name, speed)

    def refuse_slipped_gears(self) -> None:
        """q and v of a follower must be what its gear makes of its leader's."""
        for gear in self.net.parts.gears.values():
            gap, slip = gear_gaps(gear, self.result)
            off = max(abs(float(gap)), abs(float(slip)))
            if off > LOOP_TOLERANCE * (1 + float(np.abs(self.result.joints[gear.leader].v).max())):
                raise InputError(f"joints {gear.follower!r} and {gear.leader!r} are {off:.3g} off what gear "
                                 f"{gear.name!r} requires; leave {gear.follower!r} out, it follows")

    def refuse_broken_holds(self) -> None:
        """Rods, guides and relations must hold in q and v."""
        net, state = self.net, self.result
        speed = max([1.0, *(float(np.abs(j.v).max(initial=0.0)) for j in state.joints.values())])
        for name, (gap, slip) in held_gaps(net, state).items():
            for off, scale, noun in ((gap, 1.0, "configuration"), (slip, speed, "velocity")):
                if np.abs(off).max() > LOOP_TOLERANCE * scale:
                    raise InputError(f"the {noun} is {np.abs(off).max():.3g} off what {name!r} holds; "
                                     "Network.close and Network.velocities find states that agree with it")

    def _refuse_other_claims(self, name: str, speed: float) -> None:
        """A closing joint whose q or v is given too must have what the loop says."""
        joint, state = self.net.parts.joints[name], self.result.joints[name]
        if joint.model is None:
            return
        if name in self.q:
            off = float(np.abs(joint.model.difference(self.q[name], state.q)).max())
            turns = joint.nq == joint.nv and abs(off / (2 * np.pi) - round(off / (2 * np.pi))) < LOOP_TOLERANCE
            if off > LOOP_TOLERANCE and not turns:
                raise InputError(f"the configuration given for joint {name!r} is {off:.3g} (rad or m) off what its "
                                 f"loop requires ({self._loop(name)}); leave it out, or give {state.q.tolist()}")
        if name in self.v and np.abs(self.v[name] - state.v).max() > LOOP_TOLERANCE * speed:
            raise InputError(f"the velocity given for joint {name!r} is {np.abs(self.v[name] - state.v).max():.3g} off "
                             f"what its loop requires ({self._loop(name)}); leave it out, or give {state.v.tolist()}")

    def _loop(self, name: str) -> str:
        import networkx as nx

        graph = nx.Graph()
        for joint in self.tree:
            graph.add_edge(node_of(self.net, joint.a), node_of(self.net, joint.b))
        joint = self.net.parts.joints[name]
        ends = node_of(self.net, joint.a), node_of(self.net, joint.b)
        if not all(graph.has_node(x) for x in ends) or not nx.has_path(graph, *ends):
            return " - ".join(ends)
        path = nx.shortest_path(graph, *ends)
        return " - ".join([*path, path[0]])


def _must_be_given(joint: JointPart, _X: Array, _shift: Array) -> Array:
    raise InputError(f"joint {joint.name!r} closes a loop; in symbols its configuration must be given")


def _needs_configuration(joint: JointPart) -> bool:
    """Whether a joint's directions or what acts along them depend on its configuration."""
    assert joint.model is not None
    return joint.model.constant_map is None or bool(joint.stiffness.any()) or joint.limits is not None


def held_gaps(net: NetworkBuilder, state: Situation) -> dict[str, tuple[Array, Array]]:
    """{rod, guide or relation: (gap, slip)}."""
    gaps = {name: held_gap(net, part, state) for name, part in net.parts.holds.items()}
    for name, part in net.parts.relations.items():
        gap, slip = relation_gap(net, part, state)
        gaps[name] = np.atleast_1d(gap), np.atleast_1d(slip)
    return gaps


def gear_gaps(gear: GearPart, state: Situation) -> tuple[Any, Any]:
    """q_f − k q_l − c and v_f − k v_l."""
    k, c = state.domain.array([gear.factor, gear.offset])
    follower, leader = state.joints[gear.follower], state.joints[gear.leader]
    return follower.q[0] - leader.q[0] * k - c, follower.v[0] - leader.v[0] * k


__all__ = [
    "LOOP_TOLERANCE",
    "JointState",
    "Placed",
    "Situation",
    "gear_gaps",
    "held_gaps",
    "joint_values",
    "situation",
]
