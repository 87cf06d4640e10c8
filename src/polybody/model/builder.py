"""`Builder`: a mechanism described in Python, call by call.

    build = pb.Builder("pendulum")
    build.body("bob", mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.001))
    build.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    model = build.model()

Each call checks what it is given and raises at once, so that the traceback points at the line that is wrong. What only
the whole can show (unknown names, cycles, bodies that nothing reaches) is raised by `model()`, all of it in one error.
Bodies may be named before they are made. Units are SI and radians; conventions are those of docs/notation.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from polybody.description import record_checks, shapes, velocity_checks
from polybody.description.actuators import actuator_problems
from polybody.description.bases import Base, with_base
from polybody.description.expressions import parse
from polybody.description.flexible import flexible_link_records
from polybody.description.joining import placed
from polybody.description.problems import Problem, errors_of
from polybody.description.records import (
    KINDS,
    WORLD,
    Actuator,
    Body,
    Contact,
    Coupling,
    Description,
    Frame,
    Guide,
    Joint,
    Loop,
    Motor,
    Relation,
    Rod,
    Rolling,
    Spring,
    Transmission,
    VelocityRelation,
    joint_size,
)
from polybody.description.vehicles import vehicle_records
from polybody.errors import InputError
from polybody.model.model import Model
from polybody.model.readiness import make_ready
from polybody.model.validation import map_problem, model_from, with_unit_axes
from polybody.names import listed, nearest


class Builder:
    """Collect bodies, joints, frames, loops and other constraints, springs and motors, then build a `Model`."""

    def __init__(self, name: str, gravity: Any = (0, 0, -9.81)) -> None:
        """`gravity` in m/s², world axes. "world" is the ground."""
        if not isinstance(name, str) or not name:
            raise InputError(f"a mechanism needs a name, got {name!r}")
        self.name = name
        self.gravity = shapes.numbers("gravity", gravity, 3)
        if not np.isfinite(self.gravity).all():
            raise InputError(f"gravity is {self.gravity}, expected three finite numbers")
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._frames: dict[str, Frame] = {}
        self._loops: dict[str, Loop] = {}
        self._springs: dict[str, Spring] = {}
        self._contacts: dict[str, Contact] = {}
        self._rolling: dict[str, Rolling] = {}
        self._actuators: dict[str, Actuator] = {}
        self._velocity_relations: dict[str, VelocityRelation] = {}
        self._motors: dict[str, Motor] = {}
        self._transmissions: dict[str, Transmission] = {}
        self._couplings: dict[str, Coupling] = {}
        self._rods: dict[str, Rod] = {}
        self._guides: dict[str, Guide] = {}
        self._relations: dict[str, Relation] = {}

    def body(self, name: str, mass: float, com: Any = (0, 0, 0), inertia: Any = (0, 0, 0)) -> None:
        """Add a rigid body: mass in kg, mass centre in its frame, inertia about the mass centre in body axes.

        `inertia` is (xx, yy, zz), (xx, yy, zz, xy, xz, yz) or 3×3; off-diagonal entries are those of the matrix.
        """
        owner = f"body {name!r}: "
        self._fresh("body", name, self._bodies, self._frames)
        body = Body(
            name,
            shapes.number(owner + "mass", mass),
            shapes.numbers(owner + "com", com, 3),
            shapes.inertia_matrix(owner + "inertia", inertia),
        )
        self._refuse(record_checks.body_problems(body))
        self._bodies[name] = body

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        origin: Any = None,
        axis: Any = (0, 0, 1),
        *,
        pitch: float | None = None,
        map: Any = None,
        stages: Iterable[int] | None = None,
        stiffness: Any = 0,
        damping: Any = 0,
        rest: Any = 0,
        armature: Any = 0,
        friction: Any = 0,
        limits: Any = None,
        active: Any = True,
    ) -> None:
        """Add a joint; `origin` (4×4, or a translation) places it in the parent, `axis` is in the joint's frame.

        `kind` is one of the joint types of docs/notation.md. `stiffness` and `damping` are a number, nv numbers or
        nv×nv; `rest` is the configuration where the spring is relaxed (0: neutral); `armature` is a number or nv
        numbers; `friction` is a Coulomb level (N or N·m), or a mapping of coulomb, static, stribeck (speed), exponent,
        viscous, regularisation (speed) and load; `limits` is (lower, upper), or a mapping of lower, upper, velocity,
        effort, power, stiffness and damping (the last two make the stops compliant); `active` selects the velocities
        that are driven. `pitch` (m/rad) applies to a screw joint; `map` (6×r, columns from the child outwards) and
        `stages` to a custom joint.
        """
        owner = f"joint {name!r}: "
        self._fresh("joint", name, *self._connections())
        motion = _motion(owner, kind, axis, pitch, map, stages)
        bare = Joint(name, parent=parent, child=child, origin=_origin(owner + "origin", origin), **motion)
        self._refuse(record_checks.joint_problems(bare), map_problem(bare))
        nq, nv = joint_size(bare)
        joint = Joint(
            **{
                **bare.__dict__,
                "stiffness": _unless_zero(stiffness, shapes.square_matrix(owner + "stiffness", stiffness, nv)),
                "damping": _unless_zero(damping, shapes.square_matrix(owner + "damping", damping, nv)),
                "rest": _unless_zero(rest, shapes.rest_configuration(owner + "rest", rest, nq)),
                "armature": _unless_zero(armature, shapes.vector(owner + "armature", armature, nv)),
                "friction": shapes.friction(owner + "friction", friction, nv),
                "limits": None if limits is None else shapes.joint_limits(owner + "limits", limits, nv),
                "active": None if active is True else shapes.active_flags(owner + "active", active, nv),
            }
        )
        self._refuse(record_checks.joint_problems(joint))
        self._joints[name] = joint

    def frame(self, name: str, body: str, origin: Any = None) -> None:
        """Add a named frame fixed to a body; `origin` (4×4, or a translation) is its pose in the body."""
        self._fresh("frame", name, self._bodies, self._frames)
        frame = Frame(name, body, _origin(f"frame {name!r}: origin", origin))
        self._refuse(record_checks.frame_problems(frame))
        self._frames[name] = frame

    def loop(
        self,
        name: str,
        kind: str,
        body_a: str,
        body_b: str,
        origin_a: Any = None,
        origin_b: Any = None,
        axis: Any = (0, 0, 1),
        *,
        pitch: float | None = None,
        map: Any = None,
        stages: Iterable[int] | None = None,
        stiffness: Any = 0,
        damping: Any = 0,
        rest: Any = 0,
        armature: Any = 0,
        friction: Any = 0,
        limits: Any = None,
    ) -> None:
        """Close a loop by a cut joint of this kind between a frame on body_a (its parent side) and one on body_b.

        `stiffness`, `damping`, `rest`, `armature`, `friction` and `limits` are those of `joint`, in the cut joint's
        coordinates. Springs, dampers and friction are supported in revolute, continuous, prismatic, screw and
        cylindrical cut joints; angles are measured from `rest`, between −π and π. With armature, limits, load-dependent
        friction, a motor, or springs in other kinds, the cut joint has coordinates of its own in q and v, under its
        name.
        """
        self._fresh("loop", name, *self._connections())
        owner = f"loop {name!r}: "
        bare = Loop(
            name,
            body_a=body_a,
            body_b=body_b,
            origin_a=_origin(owner + "origin_a", origin_a),
            origin_b=_origin(owner + "origin_b", origin_b),
            **_motion(owner, kind, axis, pitch, map, stages),
        )
        self._refuse(record_checks.loop_problems(bare), map_problem(bare))
        nq, nv = joint_size(bare)
        drive = {
            "stiffness": _unless_zero(stiffness, shapes.square_matrix(owner + "stiffness", stiffness, nv)),
            "damping": _unless_zero(damping, shapes.square_matrix(owner + "damping", damping, nv)),
            "rest": _unless_zero(rest, shapes.rest_configuration(owner + "rest", rest, nq)),
            "armature": _unless_zero(armature, shapes.vector(owner + "armature", armature, nv)),
            "friction": shapes.friction(owner + "friction", friction, nv),
            "limits": None if limits is None else shapes.joint_limits(owner + "limits", limits, nv),
        }
        loop = Loop(**{**bare.__dict__, **drive})
        self._refuse(record_checks.loop_problems(loop))
        self._loops[name] = loop

    def couple(self, joint: str, source: str, ratio: float = 1, offset: float = 0) -> None:
        """Let q of `joint` follow q of `source`: ratio · q + offset. Both joints have one coordinate."""
        owner = f"coupling of {joint!r}: "
        if joint in self._couplings:
            raise InputError(f"{owner}it follows {self._couplings[joint].source_joint!r} already")
        numbers = shapes.number(owner + "ratio", ratio), shapes.number(owner + "offset", offset)
        coupling = Coupling(joint, source, *numbers)
        self._refuse(record_checks.coupling_problems(coupling, self._joints))
        self._couplings[joint] = coupling

    def rod(self, name: str, body_a: str, point_a: Any, body_b: str, point_b: Any, length: float) -> None:
        """Add a massless rod: two points, each in its body's frame, stay `length` metres apart."""
        owner = f"rod {name!r}: "
        self._fresh("rod", name, *self._connections())
        points = (shapes.numbers(owner + f"point_{k}", p, 3) for k, p in (("a", point_a), ("b", point_b)))
        a, b = points
        rod = Rod(name, body_a, a, body_b, b, shapes.number(owner + "length", length))
        self._refuse(record_checks.rod_problems(rod))
        self._rods[name] = rod

    def point_on_line(
        self, name: str, body_a: str, point_a: Any, direction: Any, body_b: str, point_b: Any
    ) -> None:
        """Keep a point of body_b on the line of body_a through point_a; points are in their bodies' frames."""
        self._guide(name, "line", body_a, point_a, direction, body_b, point_b)

    def point_in_plane(self, name: str, body_a: str, point_a: Any, normal: Any, body_b: str, point_b: Any) -> None:
        """Keep a point of body_b in the plane of body_a through point_a; points are in their bodies' frames."""
        self._guide(name, "plane", body_a, point_a, normal, body_b, point_b)

    def _guide(self, name: str, kind: str, body_a: str, point_a: Any, axis: Any, body_b: str, point_b: Any) -> None:
        owner = f"guide {name!r}: "
        self._fresh("guide", name, *self._connections())
        a, along = shapes.numbers(owner + "point_a", point_a, 3), shapes.numbers(owner + "axis", axis, 3)
        guide = Guide(name, kind, body_a, a, along, body_b, shapes.numbers(owner + "point_b", point_b, 3))
        self._refuse(record_checks.guide_problems(guide))
        self._guides[name] = guide

    def relation(self, name: str, expression: str) -> None:
        """Add a constraint: a differentiable function of joint coordinates that is zero, "rocker - 2*sin(crank)".

        Joints are written by name, or q["any name"]; entry k of a joint with several coordinates is q["ball"][k].
        Functions are sin, cos, tan, asin, acos, atan, atan2 and sqrt.
        """
        self._fresh("relation", name, *self._connections())
        relation = Relation(name, str(expression))
        parse(relation.expression)
        self._relations[name] = relation

    def _connections(self) -> tuple[dict[str, Any], ...]:
        """Everything that shares one table of names with joints."""
        bodies = (self._joints, self._loops, self._springs, self._contacts, self._rolling, self._rods, self._guides)
        return (*bodies, self._relations, self._velocity_relations)

    def spring(
        self,
        name: str,
        body_a: str,
        point_a: Any,
        body_b: str,
        point_b: Any,
        stiffness: float,
        length: float = 0,
        damping: float = 0,
    ) -> None:
        """Add a spring and damper along the line between two points, each in its body's frame; N/m, m, N·s/m."""
        owner = f"spring {name!r}: "
        self._fresh("spring", name, *self._connections())
        spring = Spring(
            name,
            body_a,
            shapes.numbers(owner + "point_a", point_a, 3),
            body_b,
            shapes.numbers(owner + "point_b", point_b, 3),
            shapes.number(owner + "stiffness", stiffness),
            shapes.number(owner + "length", length),
            shapes.number(owner + "damping", damping),
        )
        self._refuse(record_checks.spring_problems(spring))
        self._springs[name] = spring

    def contact(
        self,
        name: str,
        body: str,
        points: Any = (0, 0, 0),
        *,
        stiffness: float,
        damping: float = 0,
        friction: float = 0,
        radius: float = 0,
        exponent: float = 1.5,
        slip: float = 0.01,
        point: Any = (0, 0, 0),
        normal: Any = (0, 0, 1),
        terrain: str | None = None,
        heights: Any = None,
        extent: Any = None,
    ) -> None:
        """Add compliant contact between the ground and points of a body, or spheres of `radius` around them.

        `points` is one point or n×3 (a foot), in the body's frame. The ground is the world's plane through `point` with
        `normal`; or the terrain z = h(x, y), an expression such as "0.1*sin(3*x)"; or `heights` (nx, ny) on a grid over
        `extent` (x_low, x_high, y_low, y_high). The normal force is stiffness δ^exponent (1 + damping δ̇); `friction`
        is Coulomb's coefficient, regularised below the speed `slip`.
        """
        owner = f"contact {name!r}: "
        self._fresh("contact", name, *self._connections())
        values = {"stiffness": stiffness, "damping": damping, "friction": friction, "radius": radius,
                  "exponent": exponent, "slip": slip}  # fmt: skip
        numbers: dict[str, Any] = {key: shapes.number(owner + key, value) for key, value in values.items()}
        direction = shapes.numbers(owner + "normal", normal, 3)
        contact = Contact(
            name, body, shapes.points(owner + "points", points), **numbers,
            point=shapes.numbers(owner + "point", point, 3), normal=shapes.unit_axis(direction),
            terrain=None if terrain is None else str(terrain),
            heights=None if heights is None else shapes.table(owner + "heights", heights),
            extent=None if extent is None else shapes.numbers(owner + "extent", extent, 4),
        )  # fmt: skip
        self._refuse(record_checks.contact_problems(contact))
        self._contacts[name] = contact

    def rolling(
        self,
        name: str,
        kind: str,
        body: str,
        radius: Any = 0,
        point: Any = (0, 0, 0),
        axis: Any = (0, 1, 0),
        *,
        normal: Any = (0, 0, 1),
        ground: Any = (0, 0, 0),
        lateral: bool = True,
    ) -> None:
        """Add rolling without slipping of a wheel, disk, sphere or ellipsoid, or a blade, on the ground plane.

        The plane passes through `ground` with `normal`. `point` is the centre in the body's frame, `axis` the wheel's
        axis or the blade's direction there. Disks, spheres and ellipsoids (`radius`: three semi-axes) also stay on the
        ground; wheels and blades leave that to other joints. A wheel with lateral=False may slide along its axis.
        """
        owner = f"rolling {name!r}: "
        self._fresh("rolling", name, *self._connections())
        along = shapes.unit_axis(shapes.numbers(owner + "axis", axis, 3))
        up = shapes.unit_axis(shapes.numbers(owner + "normal", normal, 3))
        below = shapes.numbers(owner + "ground", ground, 3)
        size = 3 if kind == "ellipsoid" else 1
        rolling = Rolling(
            name, body, str(kind), shapes.vector(owner + "radius", radius, size),
            shapes.numbers(owner + "point", point, 3), along, up, below, bool(lateral),
        )  # fmt: skip
        self._refuse(velocity_checks.rolling_problems(rolling))
        self._rolling[name] = rolling

    def actuator(
        self,
        name: str,
        joint: str,
        *,
        gain: float = 1,
        bias: Any = (0, 0, 0),
        gear: float = 1,
        control: Any = (-np.inf, np.inf),
        limit: Any = (-np.inf, np.inf),
        coordinate: int = 0,
    ) -> None:
        """Add an actuator from a control u to a joint force: gear · (gain u + bias · (1, l, l̇)), l = gear q.

        `control` bounds u and `limit` the force. A motor has gain and gear; a position servo gain kp and bias (0, −kp,
        −kd). See `pb.controllers.Actuators`.
        """
        owner = f"actuator {name!r}: "
        self._fresh("actuator", name, self._actuators)
        arrays = {"bias": bias, "control": control, "limit": limit}
        made: dict[str, Any] = {k: shapes.numbers(owner + k, x, 3 if k == "bias" else 2) for k, x in arrays.items()}
        ratio = {"gain": shapes.number(owner + "gain", gain), "gear": shapes.number(owner + "gear", gear)}
        actuator = Actuator(name, joint, **ratio, **made, coordinate=int(coordinate))
        self._refuse(actuator_problems(actuator, self._joints))
        self._actuators[name] = actuator

    def vehicle(
        self,
        name: str,
        kind: str = "car",
        *,
        mass: float = 50,
        size: tuple[float, float, float] = (0.8, 0.5, 0.3),
        radius: float = 0.1,
        wheel_mass: float = 2,
        track: float = 0.5,
        wheelbase: float = 0.7,
    ) -> None:
        """Add a mobile base on wheels that roll without slipping: "car" (single track, steered) or "differential".

        Its chassis is the body `name`, on a planar joint of that name; see `description.vehicles` for the other names.
        """
        bodies, joints, rolling = vehicle_records(
            name, kind, mass=mass, size=size, radius=radius, wheel_mass=wheel_mass, track=track, wheelbase=wheelbase
        )
        for group, records in (("bodies", bodies), ("joints", joints), ("rolling", rolling)):
            self._take(group, records)

    def velocity_relation(self, name: str, terms: Mapping[str, Any], equals: Any = 0) -> None:
        """Add Σ coefficient · velocity = equals, {"joint" or "joint[k]": a number or an expression in coordinates}.

        `equals` is a number or an expression too; the joint of `clock` in it is time.
        """
        self._fresh("velocity relation", name, *self._connections())
        listed_terms = tuple((*shapes.velocity_name(str(key)), str(value)) for key, value in terms.items())
        relation = VelocityRelation(name, listed_terms, equals=str(equals))
        self._refuse(velocity_checks.velocity_relation_problems(relation, self._joints))
        self._velocity_relations[name] = relation

    def clock(self, name: str = "clock") -> None:
        """Add a joint without mass whose coordinate is time, for right sides of velocity relations: its rate is 1."""
        self.body(name, 0.0)
        self.joint(name, "prismatic", "world", name)
        self.velocity_relation(f"{name}_runs", {name: 1}, 1)

    def motor(
        self,
        joint: str,
        resistance: float,
        inductance: float,
        torque_constant: float,
        speed_constant: float | None = None,
        rotor_inertia: float = 0,
        damping: float = 0,
        gear: float = 1,
        *,
        name: str | None = None,
        coordinate: int = 0,
    ) -> None:
        """Add a DC motor to a joint: ohm, henry, N·m/A, V·s/rad, kg·m² and N·m·s/rad at the motor shaft.

        `speed_constant` defaults to the torque constant; `gear` is motor speed over joint speed; `name` defaults to the
        joint's; `coordinate` selects the velocity of a joint with several.
        """
        name = joint if name is None else name
        owner = f"motor {name!r}: "
        self._fresh("motor", name, self._motors)
        given = {
            "resistance": resistance, "inductance": inductance, "torque_constant": torque_constant,
            "speed_constant": torque_constant if speed_constant is None else speed_constant,
            "rotor_inertia": rotor_inertia, "damping": damping, "gear": gear,
        }
        values: dict[str, Any] = {key: shapes.number(owner + key, value) for key, value in given.items()}
        self._motors[name] = Motor(name, joint, **values, coordinate=int(coordinate))

    def transmission(self, name: str, joints: Iterable[str], matrix: Any) -> None:
        """Add a transmission that couples the motors of several joints: joint speeds = matrix · motor speeds."""
        joints = tuple(joints)
        self._fresh("transmission", name, self._transmissions)
        matrix = shapes.numbers(f"transmission {name!r}: matrix", matrix, len(joints), len(joints))
        self._transmissions[name] = Transmission(name, joints, matrix)

    def flexible_link(
        self,
        name: str,
        length: float,
        mass_per_length: float,
        EI: Any,
        GJ: float | None = None,
        *,
        damping: float = 0,
        segments: int = 10,
        axis: Any = (0, 0, 1),
        polar_inertia: float | None = None,
        rotary_inertia: float = 0,
    ) -> str:
        """Add a flexible link along x as a chain of elastic joints; returns the name of its last segment.

        Its first segment is the body `name`, its end the frame `<name>_tip`. It bends about `axis` or, with GJ (and
        `polar_inertia`, kg·m), about y and z, and twists. EI and GJ are in N·m², `damping` in seconds (Kelvin-Voigt).
        Its joints are passive. The error decreases with the square of the number of `segments`. `rotary_inertia` (kg·m,
        ρ I of the section) adds to the segments' inertia across x, as in Rayleigh's beam; it is zero by default.
        """
        bodies, joints, frames = flexible_link_records(
            name, length, mass_per_length, EI, GJ, damping=damping, segments=segments, axis=axis,
            polar_inertia=polar_inertia, rotary_inertia=rotary_inertia,
        )  # fmt: skip
        for group, records in (("bodies", bodies), ("joints", joints), ("frames", frames)):
            self._take(group, records)
        return bodies[-1].name

    def add(self, model: Model, prefix: str, parent: str = WORLD, origin: Any = None) -> None:
        """Add a whole model as a part: its names get the prefix, its ground is fixed to `parent` at `origin`.

        `origin` is 4×4 or a translation. Gravity is that of this builder. `add(arm, "left_")` and `add(arm, "right_")`
        put two copies of an arm into one model.
        """
        if not isinstance(prefix, str) or not prefix:
            raise InputError(f"a part needs a prefix for its names, got {prefix!r}")
        part = placed(model.description, prefix, parent, _origin(f"part {prefix!r}: origin", origin))
        for group in ("bodies", "joints", "frames", "loops", "springs", "contacts", "rolling", "motors", "actuators",
                      "transmissions", "rods", "guides"):  # fmt: skip
            self._take(group, getattr(part, group))
        self._couplings.update({coupling.joint: coupling for coupling in part.couplings})

    def _take(self, group: str, records: Iterable[Any]) -> None:
        """Records made elsewhere, under names that are still free."""
        mine = getattr(self, f"_{group}")
        taken = (self._bodies, self._frames) if group in ("bodies", "frames") else self._connections()
        for record in records:
            own = (mine,) if group in ("motors", "transmissions", "actuators") else taken
            self._fresh(type(record).__name__.lower(), record.name, *own)
            mine[record.name] = record

    def description(self) -> Description:
        """The description collected so far, as records."""
        return with_unit_axes(
            Description(
                self.name,
                self.gravity,
                tuple(self._bodies.values()),
                tuple(self._joints.values()),
                tuple(self._frames.values()),
                tuple(self._loops.values()),
                tuple(self._springs.values()),
                contacts=tuple(self._contacts.values()),
                rolling=tuple(self._rolling.values()),
                actuators=tuple(self._actuators.values()),
                velocity_relations=tuple(self._velocity_relations.values()),
                motors=tuple(self._motors.values()),
                transmissions=tuple(self._transmissions.values()),
                couplings=tuple(self._couplings.values()),
                rods=tuple(self._rods.values()),
                guides=tuple(self._guides.values()),
                relations=tuple(self._relations.values()),
            )
        )

    def model(self, *, base: str | Base | None = None) -> Model:
        """Build the model; raises one `InputError` that lists every error, and warns about unusual values.

        `base` replaces the base type: "fixed", "planar", "floating", "flying", or a `pb.Base`.
        """
        said = self.description()
        model = model_from(said if base is None else with_base(said, base))
        make_ready()
        return model

    @staticmethod
    def _fresh(what: str, name: str, *taken: dict[str, Any]) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"a {what} needs a name, got {name!r}")
        if name == WORLD:
            raise InputError(f"a {what} is named {WORLD!r}, which is the name of the ground")
        for records in taken:
            if name in records:
                other = type(records[name]).__name__.lower()
                raise InputError(f"{what} {name!r}: a {other} of that name exists already")

    @staticmethod
    def _refuse(problems: Iterable[Problem], more: str | None = None) -> None:
        """Raise the first error; warnings wait for `model()`."""
        for message in [*(str(problem) for problem in errors_of(problems)), *([more] if more else [])]:
            raise InputError(message)


def _motion(
    owner: str, kind: str, axis: Any, pitch: float | None, map: Any, stages: Iterable[int] | None
) -> dict[str, Any]:
    """The fields of a joint or a loop that decide how it moves."""
    if kind not in KINDS:
        raise InputError(f"{owner}no kind {kind!r}{nearest(str(kind), KINDS)}; available: {listed(KINDS)}")
    return {
        "kind": kind,
        "axis": shapes.numbers(owner + "axis", axis, 3),
        "pitch": None if pitch is None else shapes.number(owner + "pitch", pitch),
        "map": None if map is None else shapes.numbers(owner + "map", map, *np.shape(map)),
        "stages": None if stages is None else tuple(int(n) for n in stages),
    }


def _origin(what: str, origin: Any) -> Any:
    return shapes.pose_matrix(what, np.eye(4) if origin is None else origin)


def _unless_zero(given: Any, record: Any) -> Any:
    """None where the caller left the default 0: nothing was said."""
    return None if np.ndim(given) == 0 and given == 0 else record


__all__ = ["Builder"]
