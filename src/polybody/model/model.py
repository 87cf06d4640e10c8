"""`Model`, what a user holds: names, checking of arguments, and one short method for each public quantity.

It holds an engine and delegates; the methods do not know whether it is that of a tree or of a mechanism with loops.
Every array argument may have leading batch dimensions, `(n,)` or `(..., n)`, and results have them alike. What is asked
less often is in namespaces that exist on every model: `constraints`, `actuation`, `coefficients`, `motors`,
`regressor`, `base`, `parameters`.

nv is the number of velocities, m that of independent coordinates: m = nv where nothing is constrained.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.constraints.mobility import Mobility
from polybody.description.records import Description
from polybody.errors import InputError
from polybody.garbage import uncollected
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.variation import Variation
from polybody.model import configurations, drawing
from polybody.model import wrenches as loads
from polybody.model.actuation import Actuation
from polybody.model.arguments import float_array, precision, state_array
from polybody.model.assembly import Assembly, column_indices
from polybody.model.base import Base
from polybody.model.batches import batch_shape, in_pieces
from polybody.model.coefficients import Coefficients
from polybody.model.constrained_engine import ConstrainedEngine
from polybody.model.constraints import ModelConstraints
from polybody.model.engine import Engine, Request, by_double, in_parts
from polybody.model.motors import ModelMotors
from polybody.model.parameters import Parameters
from polybody.model.regressors import Regressor
from polybody.model.source import Source
from polybody.model.tree_engine import SPARING, TreeEngine
from polybody.model.wrenches import Wrenches
from polybody.names import counted
from polybody.outlets import outlet
from polybody.properties import cached_property
from polybody.quantities import frames
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES, quantity

if TYPE_CHECKING:
    from polybody.symbolic import SymbolicModel

Array = np.ndarray
#: `parameters=` of a call: (k,) or (..., k), see `with_parameters`
Values = ArrayLike | None


#: Methods whose positional arguments are exactly their kernel's: a single state goes to machine code without Python.
FAST = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "coriolis_matrix", "bias_forces",
    "gravity_forces", "passive_forces", "energy", "momentum", "center_of_mass", "poses",
    "difference",
)  # fmt: skip


class Model:
    """Kinematics, dynamics and constraints of a mechanism, as methods that accept single states or batches.

    Made by `pb.load`, `pb.from_dh` or `pb.Builder.model`, and immutable: `with_gravity`, `with_payload` and the like
    return new models. Array arguments have shape (n,) or (..., n); leading dimensions broadcast, and results have the
    same leading dimensions. `parameters=` takes the values of a model made by `with_parameters`, `out=` an array that
    receives the result. nq and nv are the sizes of q and v; m is the number of independent coordinates, which is nv
    unless constraints reduce it.
    """

    __slots__ = ("__dict__", "__weakref__", *(f"_lone_{name}" for name in FAST))

    def __init__(self, mechanism: Mechanism, engine: Engine | None = None) -> None:
        self.mechanism = mechanism
        self._plain: dict[tuple[str, str], Any] = {}  # kernels that answer alone, by quantity and kind of numbers
        self._asked: set[tuple[str, str]] = set()
        self._notes: dict[str, Any] = {}  # what analyses have found out about this model, by name
        self.engine: Engine = engine or engine_of(Source(mechanism))

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {counted(len(self.body_names), 'body', 'bodies')}, nq={self.nq}, nv={self.nv}>"

    def _repr_html_(self) -> str:  # in notebooks
        return outlet("model", "html")(self)

    def __reduce__(self) -> Any:
        source = self.engine.source
        if source.variation is None:
            return type(self), (self.mechanism,)
        return varied_model, (self.mechanism, source.variation, source.values)

    # Shape.

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.mechanism.name

    @property
    def description(self) -> Description:
        """The description that the model was built from, before links joined by fixed joints were merged."""
        return self.mechanism.description

    @property
    def nq(self) -> int:
        """Number of configuration coordinates, the size of q."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates, the size of v."""
        return self.mechanism.nv

    @property
    def gravity(self) -> Array:
        """Gravitational acceleration in world axes, m/s², (3,)."""
        return self.mechanism.gravity.copy()

    @property
    def total_mass(self) -> float:
        """Total mass of the moving bodies, kg."""
        return float(sum(body.mass for body in self.mechanism.bodies))

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints that have coordinates of their own, in depth-first order: the order of q and v."""
        return [joint.name for joint in self.mechanism.independent_joints]

    @property
    def body_names(self) -> list[str]:
        """Names of the moving bodies."""
        return [body.name for body in self.mechanism.bodies]

    @property
    def frame_names(self) -> list[str]:
        """Names of all frames: world, then every link, then the named frames."""
        return [frame.name for frame in self.mechanism.frames]

    @property
    def followers(self) -> dict[str, tuple[str, float, float]]:
        """{follower: (leader, factor, offset)} of joints without coordinates of their own: q_f = factor · q_l + offset.
        """
        return dict(self.mechanism.followers)

    def joint_slices(self) -> dict[str, tuple[slice, slice]]:
        """Return {joint name: (slice of q, slice of v)}."""
        return {joint.name: (joint.q, joint.v) for joint in self.mechanism.independent_joints}

    def joint_limits(self) -> dict[str, Array]:
        """Return {"lower", "upper", "velocity", "effort"}: nv values each, ±inf where there is no limit.

        Joints with different numbers of entries in q and v have no position limits.
        """
        parts = [joint.limits for joint in self.mechanism.independent_joints]
        return {
            key: np.concatenate([np.zeros(0), *(np.asarray(getattr(limits, key), dtype=float) for limits in parts)])
            for key in ("lower", "upper", "velocity", "effort")
        }

    @cached_property
    def tree(self) -> Model:
        """The spanning tree as a model of its own: the same mechanism with every loop cut."""
        return Model(self.mechanism.cut(), None if self.engine.source.variation is None else self.engine.tree)

    # Configurations.

    def neutral(self) -> Array:
        """Neutral configuration, (nq,): every child frame coincides with its joint frame. Loops may be open there."""
        return configurations.neutral(self.mechanism)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None, *,
        parameters: Values = None,
    ) -> Array:  # fmt: skip
        """Draw random configurations within the joint limits, quaternions uniformly; shape (nq,) or (*size, nq).

        `rng` is a NumPy generator or a seed. With loops, each configuration is assembled from the random one, with
        `parameters` if they are given, and drawn again where that is singular (up to ten times).
        """
        return drawing.assembled(self, rng, size, self._parameters(parameters))

    def integrate(self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = 1.0, *, out: Array | None = None) -> Array:
        """Integrate a constant velocity v from q for the time dt on the configuration manifold, (..., nq).

        Quaternions keep unit length.
        """
        dtype = precision((q, v))
        q, v, time = self._q(q, dtype=dtype), state_array("v", v, self.nv, dtype), float_array("dt", dt, dtype)
        batch_shape([q, v, time[..., None]])
        if not time.ndim and time == 1:
            return self._ask("integrate", (q, v), out=out)
        step = lambda some: self._ask("integrate", (some[0], some[1] * some[2]))  # noqa: E731
        return in_pieces(step, [q, v, time[..., None]], 8 * (self.nq + self.nv), out)

    def difference(self, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None) -> Array:
        """Constant velocity that leads from q0 to q1 in unit time, (..., nv); the inverse of `integrate`."""
        return self._ask("difference", (q0, q1), out=out)

    def normalize(self, q: ArrayLike) -> Array:
        """Return q with its quaternions normalised, (..., nq); a zero quaternion raises an error."""
        return configurations.normalized(self.mechanism, state_array("q", q, self.nq))

    def assemble(
        self, q: ArrayLike | None = None, hold: Iterable[str] = (), *, limits: bool = True, restarts: int = 30,
        parameters: Values = None,
    ) -> Array:  # fmt: skip
        """Find a configuration, (..., nq), that closes all loops, near the guess q (default: neutral).

        Quaternions of the guess are normalised first. Joints in `hold` keep their values. Joint limits are respected
        unless `limits` is False. If the solver does not converge from the guess, up to `restarts` other guesses are
        tried; if none converges, `AssemblyError` reports which loop stays open and by how much.
        """
        guess = self.neutral() if q is None else state_array("q", q, self.nq)
        held, given = [hold] if isinstance(hold, str) else list(hold), self._parameters(parameters)

        def some(parts: Sequence[Array]) -> Array:
            return self._assembly.assembled(self.normalize(parts[0]), held, limits, restarts, *parts[1:])

        return in_pieces(some, [guess, *(() if given is None else (given,))], 8 * self.nq * 16)

    def assemble_velocity(
        self, q: ArrayLike, v: ArrayLike, hold: Iterable[str] = (), *, parameters: Values = None
    ) -> Array:
        """Velocity nearest to v, (..., nv), that keeps the loops closed at q; joints in `hold` keep theirs."""
        given = self._q(q), state_array("v", v, self.nv)
        return self._assembly.velocity(*given, hold, self._parameters(parameters))

    def assemble_acceleration(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, hold: Iterable[str] = (), *, parameters: Values = None
    ) -> Array:
        """Acceleration nearest to a, (..., nv), that keeps the loops closed at (q, v); joints in `hold` keep theirs."""
        given = self._q(q), state_array("v", v, self.nv), state_array("a", a, self.nv)
        return self._assembly.acceleration(*given, hold, self._parameters(parameters))

    def mobility(
        self, q: ArrayLike | None = None, independent: Sequence[str] | None = None, *, parameters: Values = None
    ) -> Mobility:
        """Analyse the mobility at the assembled configuration q (default: assembled from neutral).

        The result can be printed. It holds Gruebler's count and the true (rank-based) mobility, the redundant
        constraints by name, singularities of the constraints and of the actuators with their directions, and the
        independent coordinates (checked if they are given). `parameters` is one set, (k,).
        """
        if parameters is not None:
            return self.parameters.at(parameters).mobility(q, independent)
        place = self.assemble() if q is None else self._q(q)
        if place.ndim != 1:
            raise InputError(f"mobility takes one configuration, got shape {place.shape}")
        return self._assembly.mobility(place, self._columns(independent))

    # Kinematics.

    def pose(
        self, q: ArrayLike, frame: str, reference: str = "world", *, parameters: Values = None, out: Array | None = None
    ) -> Array:
        """Pose of a frame in the world or in the frame `reference`, (..., 4, 4)."""
        if reference == "world":
            return self._ask(frames.pose(self.mechanism, frame), (q,), out=out, parameters=parameters)
        return self._ask(frames.relative_pose(self.mechanism, frame, reference), (q,), out=out, parameters=parameters)

    def poses(self, q: ArrayLike, *, parameters: Values = None, out: Array | None = None) -> Array:
        """Poses of all frames in the world, (..., frames, 4, 4), in the order of `frame_names`."""
        return self._ask("poses", (q,), out=out, parameters=parameters)

    def jacobian(
        self, q: ArrayLike, frame: str, axes: str = "world", *, parameters: Values = None, out: Array | None = None
    ) -> Array:
        """Jacobian of a frame at its origin, (..., 6, nv): rows [angular; linear], in world axes or the frame's own."""
        return self._ask(frames.jacobian(self.mechanism, frame, axes), (q,), out=out, parameters=parameters)

    def jacobian_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        frame: str,
        axes: str = "world",
        *,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Time derivative of `jacobian` along v, (..., 6, nv)."""
        return self._ask(frames.jacobian_rate(self.mechanism, frame, axes), (q, v), out=out, parameters=parameters)

    def frame_velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        frame: str,
        axes: str = "world",
        *,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Velocity [angular; linear] of a frame at its origin, (..., 6), in world axes or the frame's own."""
        return self._ask(frames.velocity(self.mechanism, frame, axes), (q, v), out=out, parameters=parameters)

    def frame_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: str,
        axes: str = "world",
        *,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Acceleration [angular; linear] of a frame at its origin, (..., 6): the rate of its velocity in world axes.

        With axes="frame" the same vector is expressed in the frame's axes. Gravity is not included.
        """
        return self._ask(frames.acceleration(self.mechanism, frame, axes), (q, v, a), out=out, parameters=parameters)

    def center_of_mass(self, q: ArrayLike, *, parameters: Values = None, out: Array | None = None) -> Array:
        """Centre of mass of the moving bodies in world coordinates, (..., 3)."""
        self._require_mass("centre of mass")
        return self._ask("center_of_mass", (q,), out=out, parameters=parameters)

    # Dynamics: M a + C v + gravity_forces = tau + passive_forces + Σ Jᵀ w.

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, wrenches: Wrenches | None = None,
        formulation: str | None = None, weights: ArrayLike | None = None, parameters: Values = None,
        out: Array | None = None,
        check: bool = False,
    ) -> Array:  # fmt: skip
        """Joint forces tau, (..., nv), that produce the accelerations a.

        `wrenches` maps a frame name to an external wrench [moment; force] on its body, at the frame's origin, in world
        axes. `formulation` selects one of `pb.formulations()` instead of compiled code. `check` raises an error for
        non-finite input, which otherwise gives non-finite output.

        With loops, only active joints exert forces. If there are more of them than the mobility requires, the solution
        of least norm is returned (`weights`, one per active coordinate: least Σ w τ²). If they cannot produce the
        motion, an error names the uncontrolled motion.
        """
        return self._ask(
            "inverse_dynamics", (q, v, a), wrenches=wrenches, formulation=formulation, weights=weights, out=out,
            check=check, parameters=parameters,
        )  # fmt: skip

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
        formulation: str | None = None, parameters: Values = None, out: Array | None = None, check: bool = False,
    ) -> Array:  # fmt: skip
        """Accelerations a, (..., nv), under the joint forces tau. Options as in `inverse_dynamics`."""
        return self._ask(
            "forward_dynamics", (q, v, tau), wrenches=wrenches, formulation=formulation, out=out, check=check,
            parameters=parameters,
        )  # fmt: skip

    def mass_matrix(
        self, q: ArrayLike, *, formulation: str | None = None, independent: Sequence[str] | None = None,
        parameters: Values = None, out: Array | None = None,
    ) -> Array:  # fmt: skip
        """Mass matrix M(q), (..., m, m), with armature and reflected rotor inertia.

        With loops: M* of the independent coordinates, `independent` or `model.constraints.independent`.
        """
        return self._ask(
            "mass_matrix", (q,), formulation=formulation, independent=independent, out=out, parameters=parameters
        )

    def inverse_mass_matrix(
        self,
        q: ArrayLike,
        *,
        independent: Sequence[str] | None = None,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Inverse mass matrix M(q)⁻¹, (..., m, m); with loops the inverse of M*."""
        return self._ask("inverse_mass_matrix", (q,), independent=independent, out=out, parameters=parameters)

    def coriolis_matrix(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        independent: Sequence[str] | None = None,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Coriolis matrix C(q, v) after Saha, (..., m, m): Ṁ − 2C is skew-symmetric. With loops C* = Gᵀ(C G + M Ġ)."""
        return self._ask("coriolis_matrix", (q, v), independent=independent, out=out, parameters=parameters)

    def bias_forces(
        self, q: ArrayLike, v: ArrayLike, *, formulation: str | None = None, independent: Sequence[str] | None = None,
        parameters: Values = None, out: Array | None = None,
    ) -> Array:  # fmt: skip
        """Bias forces C v + gravity_forces, (..., m); with loops C* u̇ + g* in independent coordinates."""
        return self._ask(
            "bias_forces", (q, v), formulation=formulation, independent=independent, out=out, parameters=parameters
        )

    def gravity_forces(
        self,
        q: ArrayLike,
        *,
        independent: Sequence[str] | None = None,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Joint forces, (..., m), that balance gravity at rest; springs are not included.

        With loops: the generalised forces on the independent coordinates.
        """
        return self._ask("gravity_forces", (q,), independent=independent, out=out, parameters=parameters)

    def passive_forces(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        independent: Sequence[str] | None = None,
        parameters: Values = None,
        out: Array | None = None,
    ) -> Array:
        """Generalised forces of springs, dampers, friction and contact, (..., m).

        With loops: on the independent coordinates.
        """
        return self._ask("passive_forces", (q, v), independent=independent, out=out, parameters=parameters)

    def energy(
        self, q: ArrayLike, v: ArrayLike, *, parameters: Values = None, out: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Kinetic and potential energy, each (...); springs, armature and rotors are included."""
        return self._ask("energy", (q, v), out=out, parameters=parameters)

    def momentum(self, q: ArrayLike, v: ArrayLike, *, parameters: Values = None, out: Array | None = None) -> Array:
        """Momentum [angular; linear] about the centre of mass, in world axes, (..., 6)."""
        self._require_mass("momentum about a centre of mass")
        return self._ask("momentum", (q, v), out=out, parameters=parameters)

    def compute(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, quantities: Sequence[str],
        tau: ArrayLike | None = None, parameters: Values = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Compute several quantities at the same states with one kernel, and return {name: result}.

        `quantities` are names as `casadi` accepts them: ["inverse_dynamics", "mass_matrix", "jacobian:tool"]. Each uses
        those of q, v, a and tau that its method takes; common subexpressions are evaluated once. With loops, and on
        long chains, the quantities are computed one after the other.
        """
        from polybody.model import together

        return together.compute(self, {"q": q, "v": v, "a": a, "tau": tau}, quantities, parameters)

    def reactions(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches | None = None, axes: str = "world", *,
        parameters: Values = None,
    ) -> dict[str, Array]:  # fmt: skip
        """Reaction wrenches {joint: (..., 6)}: [moment; force] of each joint, including fixed joints, on its child.

        Each is the total wrench (motor, springs and bearing) at the origin of the child's frame, in world axes or, with
        axes="joint", in the axes of the child's frame. `wrenches` maps a frame name to an external wrench on its link,
        at the frame's origin, in world axes.

        With loops, a must be an acceleration that the loops allow. Active joints drive the motion as in
        `inverse_dynamics`, and loops have reactions too: on body b at b's frame. If constraints are redundant, the
        loads of least norm are returned.
        """
        return self.constraints._reactions(q, v, a, wrenches, axes, self._parameters(parameters))

    # Derivatives.

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, wrenches: Wrenches | None = None,
        independent: Sequence[str] | None = None, weights: ArrayLike | None = None,
        parameters: Values = None, out: tuple[Array, Array, Array] | None = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Derivatives (dtau_dq, dtau_dv, dtau_da) of inverse dynamics, each (..., nv, m), with q in tangent space.

        `wrenches` stay constant in world axes. With loops: derivatives of the forces of the active joints (least norm
        if they are redundant, weighted by `weights`; the other rows are zero) with respect to displacements, velocities
        and accelerations of the independent coordinates, while the dependent ones follow.
        """
        return self._ask(
            "inverse_dynamics_derivatives", (q, v, a), wrenches=wrenches, independent=independent, weights=weights,
            out=out, parameters=parameters,
        )  # fmt: skip

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
        independent: Sequence[str] | None = None, parameters: Values = None,
        out: tuple[Array, Array, Array] | None = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Derivatives (da_dq, da_dv, da_dtau) of forward dynamics, (..., nv, m) twice and (..., nv, nv).

        q is in tangent space, and `wrenches` stay constant in world axes. With loops: derivatives of all accelerations
        with respect to displacements and velocities of the independent coordinates, while the dependent ones follow and
        v stays consistent.
        """
        return self._ask(
            "forward_dynamics_derivatives", (q, v, tau), wrenches=wrenches, independent=independent, out=out,
            parameters=parameters,
        )  # fmt: skip

    # Namespaces.

    @cached_property
    def constraints(self) -> ModelConstraints:
        """Loops, rods, guides and relations: residuals, constraint loads, independent coordinates. Empty for a tree."""
        return ModelConstraints(self)

    @cached_property
    def actuation(self) -> Actuation:
        """Active and passive coordinates: hybrid dynamics, actuator forces, internal loads."""
        return Actuation(self)

    @cached_property
    def coefficients(self) -> Coefficients:
        """Freeman's influence coefficients and dynamic arrays, and the spatial operators of Swain and Morris."""
        return Coefficients(self)

    @cached_property
    def motors(self) -> ModelMotors:
        """Motor currents and voltages."""
        return ModelMotors(self)

    @cached_property
    def regressor(self) -> Regressor:
        """Regressor: `model.regressor(q, v, a)` returns Y, tau + passive_forces = Y p + armature a.

        It also has regressors of energy and momentum.
        """
        return Regressor(self)

    @cached_property
    def base(self) -> Base:
        """Free-floating systems: momentum, motion of the free base, change of the base link."""
        return Base(self)

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters that `with_parameters` made inputs: names, units, nominal values, bounds."""
        return Parameters(self.engine, lambda engine: Model(engine.mechanism, engine))

    # Other models.

    def with_parameters(self, *patterns: str) -> Model:
        """Return the same model with some of its parameters as inputs: `parameters=` of every call, (k,) or (..., k).

        A pattern is a name ("forearm.mass", "elbow.origin", "spring1.stiffness") or contains wildcards ("*.com"). See
        `polybody.description.parameters` for the available names, and `parameters` of the result for the selected ones.
        Changing values never recompiles anything. Calls without `parameters=` use the current values. The patterns
        replace parameters that the model has already; `with_parameters(*model.parameters.names, …)` adds to them.
        """
        from polybody.model import variants

        return variants.with_parameters(self, patterns)

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """Return the same model under another gravitational acceleration, in world axes, m/s²."""
        from polybody.model import variants

        return variants.with_gravity(self, gravity)

    def with_frame(self, name: str, body: str, origin: ArrayLike | None = None) -> Model:
        """Return the same model with a further frame, placed in the link `body` by a 4×4 pose (default: identity)."""
        from polybody.model import variants

        return variants.with_frame(self, name, body, origin)

    def with_payload(
        self, frame: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Model:
        """Return the same model with a rigid payload attached to a frame.

        `mass` is in kg, `com` the centre of mass in the frame, `inertia` the inertia about that centre in the frame's
        axes: (xx, yy, zz), (xx, yy, zz, xy, xz, yz) or 3×3.
        """
        from polybody.model import variants

        return variants.with_payload(self, frame, mass, com, inertia)

    def lock(self, joints: str | Sequence[str], q: ArrayLike | None = None) -> Model:
        """Return the same model with some joints locked at their positions in q (default: neutral)."""
        from polybody.model import variants

        return variants.lock(self, joints, q)

    def save(self, path: str | os.PathLike[str], *, force: bool = False, lossy: bool = False) -> Path:
        """Write the description to a .yaml (mechanism file), .urdf or .xml (MJCF) file, and return its path.

        Features that URDF or MJCF cannot express raise an error that names them; with `lossy` they are left out, and a
        warning lists them. An existing file is replaced only with `force`.
        """
        from polybody.model import variants

        return variants.save(self, path, force=force, lossy=lossy)

    # Other readings of the same equations.

    def casadi(self, name: str) -> Any:
        """Return a quantity as a `casadi.Function` with named inputs and outputs, matrices in row-major order.

        Names are those of the methods ("mass_matrix"), for a frame "pose:FRAME", "jacobian:FRAME:frame", …. With loops
        the result is computed by elimination and has a second output `diagnostics` (see `quantities.constrained`).
        Where ranks may change, use "augmented_system", K [a; −λ] = r, or "implicit_residual" (q, v, a, tau,
        multipliers).
        """
        from polybody.kernels.locks import tracing

        with tracing:
            return self.engine.function(quantity(self.mechanism, name))

    def symbolic(
        self,
        symbols: str | Iterable[str] = "all",
        *,
        joints: str | Mapping[str, str] | None = None,
        q: Sequence[str] | None = None,
        p: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> SymbolicModel:
        """Equations of motion as SymPy expressions: 𝓜(q) ṗ + 𝓒(q, p) p + 𝓕(q) = Q_p, q̇ = V(q) p.

        `symbols` selects the parameters that stay symbolic: "all", "none", or a list of "masses", "lengths",
        "inertias", "gravity" and single names such as "m1"; the others become exact rationals where their decimals
        allow. `joints` is "simple" or "compound" for every joint that can be both, or {joint name: choice}. `q` and `p`
        name the coordinates and quasi-velocities (q1 … and p1 … by default), `names` renames parameters. `progress` is
        called with a short text at each step. A model with loops returns its equations with multipliers, and
        `minimal()` in independent coordinates: see `symbolic.loops`.
        """
        with uncollected():  # SymPy's import is all that the first answer for a small model takes
            from polybody.symbolic import symbolic_model

        options: dict[str, Any] = {"symbols": symbols, "joints": joints, "q": q, "p": p, "names": names}
        return symbolic_model(self.mechanism, self.constraints._plan, progress=progress, **options)

    # Inside.

    @cached_property
    def _assembly(self) -> Assembly:
        return Assembly(self.engine.tree, self.engine.constraints)

    def _q(self, q: ArrayLike, name: str = "q", dtype: type[np.floating] = np.float64) -> Array:
        array = state_array(name, q, self.nq, dtype)
        if self.nq != self.nv:
            configurations.require_unit(self.mechanism, name, array)
        return array

    def _vector(self, name: str, values: ArrayLike, dtype: type[np.floating]) -> Array:
        return state_array(name, values, self.nv, dtype)

    def _columns(self, names: Sequence[str] | None) -> tuple[int, ...] | None:
        return None if names is None else column_indices(self.mechanism, names)

    def _arrays(self, wanted: Quantity, values: Sequence[Any]) -> tuple[Array, ...]:
        dtype = precision(values)
        return tuple(
            self._q(value, name, dtype)
            if name in configurations.CONFIGURATIONS
            else state_array(name, value, self.nv, dtype)
            for name, value in zip(wanted.arguments, values, strict=True)
        )

    def _ask(
        self, wanted: str | Quantity, values: Sequence[Any], *, wrenches: Wrenches | None = None,
        formulation: str | None = None, independent: Sequence[str] | None = None, weights: ArrayLike | None = None,
        out: Any = None, check: bool = False, parameters: Values = None,
    ) -> Any:  # fmt: skip
        if not check and wrenches is formulation is independent is weights is parameters is None:
            found = self._answered_plainly(wanted if isinstance(wanted, str) else wanted.name, values, out)
            if found is not None:
                return found
        asked = QUANTITIES[wanted] if isinstance(wanted, str) else wanted
        arrays = self._arrays(asked, values)
        given = loads.checked(self.mechanism, wrenches, check)
        chosen = self._parameters(parameters)
        shares = None if weights is None else self.actuation._weights(weights)
        request = Request(asked, arrays, None, formulation, self._columns(independent), shares, out, check, chosen)
        if given:
            return self._loaded(request, given)
        found = self.engine.answer(request)
        if asked.name in _PLAIN or (asked.group == "kinematics" and not self.mechanism.constrained):
            key = asked.name, arrays[0].dtype.char
            if key not in self._plain and (not SPARING.get() or self._has_kernel(asked, key)):
                if key in self._asked:  # not at the first call, whose answer is waited for
                    self._shorten(asked, key)
                self._asked.add(key)
        return found

    def _has_kernel(self, asked: Quantity, key: tuple[str, str]) -> bool:
        """Whether a tree's kernel is there: where nothing is to be compiled, calls may go straight to it all the same.
        """
        return key[1] == "d" and not self.mechanism.constrained and self.engine.tree.has_kernel(asked)

    def _answered_plainly(self, name: str, values: Sequence[Any], out: Any) -> Any:
        """The answer by a kernel alone where all arguments are plain arrays, as they mostly are; else None."""
        if type(values[0]) is not np.ndarray:
            return None
        kernel = self._plain.get((name, values[0].dtype.char))
        return None if kernel is None else kernel.plain(values, out)

    def _loaded(self, request: Request, given: loads.Given) -> Any:
        """The request under wrenches on frames, in pieces: those on all bodies are many numbers."""
        frames = [frame for frame, _ in given]

        def some(part: Request, *wrenches: Array) -> Any:
            here = list(zip(frames, wrenches, strict=True))
            felt = loads.on_bodies(self.engine.tree, part.arrays[0], here, part.parameters)
            own = replace(part, wrenches=felt)
            if request.quantity.group != "derivatives":
                return self.engine.answer(own)
            levered = lambda asked: self.constraints._with_levers(asked, here)  # noqa: E731
            return by_double(self.engine, own, levered) if request.is_single else levered(own)

        numbers = 18 * len(self.mechanism.bodies)
        return in_parts(self.engine, request, some, numbers, [wrench for _, wrench in given])

    def _parameters(self, values: Values) -> Array | None:
        return None if values is None else self.parameters.checked(values)

    def _shorten(self, asked: Quantity, key: tuple[str, str]) -> None:
        """Let the next calls go straight to a kernel, single ones to its machine code; it looks at quaternions."""
        is_double = key[1] == "d"
        kernel = self._plain[key] = self.engine.plain(asked, np.float64 if is_double else np.float32)
        if asked.name in _PLAIN and is_double and kernel is not None and kernel.lone is not None:
            from polybody.kernels.methods import fast_method

            setattr(self, f"_lone_{asked.name}", kernel.lone)
            fast_method(Model, asked.name, f"_lone_{asked.name}", _PLAIN[asked.name])

    def _require_mass(self, what: str) -> None:
        if self.total_mass == 0:
            where = "; what is welded to the ground does not count" if not self.mechanism.bodies else ""
            raise InputError(f"nothing that moves in {self.name!r} has mass, so it has no {what}{where}")


def engine_of(source: Source) -> Engine:
    """The engine of a tree, or of a mechanism with constraints."""
    return ConstrainedEngine(source) if source.mechanism.constrained else TreeEngine(source)


def varied_model(mechanism: Mechanism, variation: Variation, values: Array) -> Model:
    """The model of a mechanism some of whose numbers are inputs, at these values."""
    return Model(mechanism, engine_of(Source(mechanism, variation, values)))


#: the methods as written here: what fast ones fall back to
_PLAIN: dict[str, Any] = {name: Model.__dict__[name] for name in FAST}

__all__ = ["Model", "varied_model"]
