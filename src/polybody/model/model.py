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
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.constraints.mobility import Mobility
from polybody.description.records import Description
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import state_text
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.variation import Variation
from polybody.model import configurations
from polybody.model import wrenches as loads
from polybody.model.actuation import Actuation
from polybody.model.arguments import float_array, precision, state_array
from polybody.model.assembly import Assembly, column_indices
from polybody.model.base import Base
from polybody.model.batches import batch_shape
from polybody.model.coefficients import Coefficients
from polybody.model.constrained_engine import ConstrainedEngine
from polybody.model.constraints import ModelConstraints
from polybody.model.engine import Engine, Request, by_double
from polybody.model.motors import ModelMotors
from polybody.model.parameters import Parameters
from polybody.model.regressors import Regressor
from polybody.model.source import Source
from polybody.model.tree_engine import TreeEngine
from polybody.model.wrenches import Wrenches
from polybody.outlets import outlet
from polybody.quantities import frames
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES, quantity

if TYPE_CHECKING:
    from polybody.symbolic import SymbolicModel

Array = np.ndarray
#: `parameters=` of a call: (k,) or (..., k), see `with_parameters`
Values = ArrayLike | None


#: Methods whose positional arguments are exactly their kernel's: a lone state goes to machine code without Python.
FAST = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "coriolis_matrix", "bias_forces",
    "gravity_forces", "passive_forces", "energy", "momentum", "center_of_mass", "poses",
    "difference",
)  # fmt: skip


class Model:
    """A mechanism and its answers, by name."""

    __slots__ = ("__dict__", "__weakref__", *(f"_lone_{name}" for name in FAST))

    def __init__(self, mechanism: Mechanism, engine: Engine | None = None) -> None:
        self.mechanism = mechanism
        self._prepared: set[str] = set()
        self._asked: set[str] = set()
        self.engine: Engine = engine or engine_of(Source(mechanism))

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.body_names)} bodies, nq={self.nq}, nv={self.nv}>"

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
        """The mechanism's name."""
        return self.mechanism.name

    @property
    def description(self) -> Description:
        """What was said, before fixed joints were merged."""
        return self.mechanism.description

    @property
    def nq(self) -> int:
        """How many numbers a configuration has."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """How many numbers a velocity has."""
        return self.mechanism.nv

    @property
    def gravity(self) -> Array:
        """Gravity in world axes, m/s²."""
        return self.mechanism.gravity.copy()

    @property
    def total_mass(self) -> float:
        """Mass of everything that moves, kg."""
        return float(sum(body.mass for body in self.mechanism.bodies))

    @property
    def joint_names(self) -> list[str]:
        """Joints with coordinates of their own in depth-first preorder: those of q and v."""
        return [joint.name for joint in self.mechanism.independent_joints]

    @property
    def body_names(self) -> list[str]:
        """Moving bodies."""
        return [body.name for body in self.mechanism.bodies]

    @property
    def frame_names(self) -> list[str]:
        """world, every link, then named frames."""
        return [frame.name for frame in self.mechanism.frames]

    @property
    def followers(self) -> dict[str, tuple[str, float, float]]:
        """{follower: (leader, factor, offset)}: joints without coordinates, q_f = factor · q_l + offset."""
        return dict(self.mechanism.followers)

    def joint_slices(self) -> dict[str, tuple[slice, slice]]:
        """{joint name: (slice of q, slice of v)}."""
        return {joint.name: (joint.q, joint.v) for joint in self.mechanism.independent_joints}

    def joint_limits(self) -> dict[str, Array]:
        """{"lower", "upper", "velocity", "effort"}: nv numbers each, ±inf where there is no limit.

        Positions of joints whose q has another number of entries than their v are not limited.
        """
        parts = [joint.limits for joint in self.mechanism.independent_joints]
        return {
            key: np.concatenate([np.zeros(0), *(np.asarray(getattr(limits, key), dtype=float) for limits in parts)])
            for key in ("lower", "upper", "velocity", "effort")
        }

    @cached_property
    def tree(self) -> Model:
        """The model of the tree alone, as if every loop were cut."""
        return Model(self.mechanism.cut(), None if self.engine.source.variation is None else self.engine.tree)

    # Configurations.

    def neutral(self) -> Array:
        """The configuration, (nq,), in which every joint's child is at its origin; with loops it may be open."""
        return configurations.neutral(self.mechanism)

    def random_configuration(self, rng: np.random.Generator | int | None = None, size: Any = None) -> Array:
        """Configurations drawn within joint limits, quaternions uniformly; shape (nq,) or (*size, nq).

        Where the model has loops, each is assembled from there.
        """
        return self._assembly.assembled(configurations.draw(self.mechanism, rng, size))

    def integrate(self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = 1.0, *, out: Array | None = None) -> Array:
        """Move from q with constant velocity v for the time dt, on the manifold, (..., nq): quaternions stay unit."""
        dtype = precision((q, v))
        q, v, time = self._q(q, dtype=dtype), state_array("v", v, self.nv, dtype), float_array("dt", dt, dtype)
        batch_shape([q, v, time[..., None]])
        return self._ask("integrate", (q, v * time[..., None]), out=out)

    def difference(self, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None) -> Array:
        """The constant velocity that leads from q0 to q1 in unit time, (..., nv)."""
        return self._ask("difference", (q0, q1), out=out)

    def normalize(self, q: ArrayLike) -> Array:
        """q with its quaternions made unit, (..., nq); a zero quaternion is an error."""
        return configurations.normalized(self.mechanism, state_array("q", q, self.nq))

    def assemble(
        self, q: ArrayLike | None = None, hold: Iterable[str] = (), *, limits: bool = True, restarts: int = 30,
        parameters: Values = None,
    ) -> Array:  # fmt: skip
        """A configuration, (..., nq), that meets all loops, near the guess q (default: neutral), made unit first.

        Joints in `hold` keep their q. Limits are kept unless `limits` is False. Where the guess leads nowhere, up to
        `restarts` others are tried; if none closes, `AssemblyError` says which loop fails, and by how much.
        """
        guess = self.neutral() if q is None else self.normalize(q)
        if parameters is None:
            return self._assembly.assembled(guess, hold, limits, restarts)
        return self._each(
            parameters, (guess,), lambda model, x: model.assemble(x, hold, limits=limits, restarts=restarts)
        )

    def assemble_velocity(
        self, q: ArrayLike, v: ArrayLike, hold: Iterable[str] = (), *, parameters: Values = None
    ) -> Array:
        """The velocity nearest to v, (..., nv), that keeps the loops closed at q; joints in `hold` keep theirs."""
        q, v = self._q(q), state_array("v", v, self.nv)
        if parameters is None:
            return self._assembly.velocity(q, v, hold)
        return self._each(parameters, (q, v), lambda model, *x: model.assemble_velocity(*x, hold))

    def assemble_acceleration(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, hold: Iterable[str] = (), *, parameters: Values = None
    ) -> Array:
        """The acceleration nearest to a, (..., nv), that keeps the loops closed at (q, v)."""
        given = self._q(q), state_array("v", v, self.nv), state_array("a", a, self.nv)
        if parameters is None:
            return self._assembly.acceleration(*given, hold)
        return self._each(parameters, given, lambda model, *x: model.assemble_acceleration(*x, hold))

    def mobility(self, q: ArrayLike | None = None, independent: Sequence[str] | None = None) -> Mobility:
        """What the mechanism is at the assembled configuration q (default: assembled from neutral). Printable.

        Gruebler's count and the true mobility, redundant constraints by name, singularities of constraints and
        actuators with their directions, and independent coordinates (checked, where they are given).
        """
        place = self.assemble() if q is None else self._q(q)
        if place.ndim != 1:
            raise InputError(f"mobility takes one configuration, got shape {place.shape}")
        return self._assembly.mobility(place, self._columns(independent))

    # Kinematics.

    def pose(
        self, q: ArrayLike, frame: str, reference: str = "world", *, parameters: Values = None, out: Array | None = None
    ) -> Array:
        """Pose of a frame in the world, or in another frame, (..., 4, 4)."""
        if reference == "world":
            return self._ask(frames.pose(self.mechanism, frame), (q,), out=out, parameters=parameters)
        return self._ask(frames.relative_pose(self.mechanism, frame, reference), (q,), out=out, parameters=parameters)

    def poses(self, q: ArrayLike, *, parameters: Values = None, out: Array | None = None) -> Array:
        """Pose of every frame in the world, (..., frames, 4, 4), in the order of `frame_names`."""
        return self._ask("poses", (q,), out=out, parameters=parameters)

    def jacobian(
        self, q: ArrayLike, frame: str, axes: str = "world", *, parameters: Values = None, out: Array | None = None
    ) -> Array:
        """Jacobian of the frame's origin, (..., 6, nv): rows [angular; linear], in world axes or the frame's own."""
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
        """Velocity [angular; linear] of the frame's origin, (..., 6), in world axes or the frame's own."""
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
        """Acceleration [angular; linear] of the frame's origin, (..., 6): the rate of its velocity in world axes.

        axes="frame" gives its components in the frame's axes. Gravity is not part of it.
        """
        return self._ask(frames.acceleration(self.mechanism, frame, axes), (q, v, a), out=out, parameters=parameters)

    def center_of_mass(self, q: ArrayLike, *, parameters: Values = None, out: Array | None = None) -> Array:
        """Centre of mass of everything that moves, in the world, (..., 3)."""
        self._require_mass("centre of mass")
        return self._ask("center_of_mass", (q,), out=out, parameters=parameters)

    # Dynamics: M a + C v + gravity_forces = tau + passive_forces + Σ Jᵀ w.

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, wrenches: Wrenches | None = None,
        formulation: str | None = None, weights: ArrayLike | None = None, parameters: Values = None,
        out: Array | None = None,
        check: bool = False,
    ) -> Array:  # fmt: skip
        """tau, (..., nv): the joint forces for the accelerations a.

        `wrenches` maps a frame's name to a wrench [moment; force] on its body, at the frame's origin, in world axes.
        `formulation` names one of `pb.formulations()` in place of compiled code. `check` refuses non-finite input,
        which otherwise comes out non-finite. With loops, forces are found at active joints only: where there are more
        than the mobility, the least ones (`weights`, one for each active coordinate: the least Σ w τ²); where they
        cannot do it, an error names the motion they do not hold.
        """
        return self._ask(
            "inverse_dynamics", (q, v, a), wrenches=wrenches, formulation=formulation, weights=weights, out=out,
            check=check, parameters=parameters,
        )  # fmt: skip

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
        formulation: str | None = None, parameters: Values = None, out: Array | None = None, check: bool = False,
    ) -> Array:  # fmt: skip
        """a, (..., nv): the accelerations under the joint forces tau. Options as in `inverse_dynamics`."""
        return self._ask(
            "forward_dynamics", (q, v, tau), wrenches=wrenches, formulation=formulation, out=out, check=check,
            parameters=parameters,
        )  # fmt: skip

    def mass_matrix(
        self, q: ArrayLike, *, formulation: str | None = None, independent: Sequence[str] | None = None,
        parameters: Values = None, out: Array | None = None,
    ) -> Array:  # fmt: skip
        """M(q), (..., m, m), with armature and reflected rotors; with loops M* of the independent coordinates."""
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
        """M(q)⁻¹, (..., m, m); with loops that of M*."""
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
        """Saha's C(q, v), (..., m, m), such that Ṁ − 2C is skew; with loops C* = Gᵀ(C G + M Ġ)."""
        return self._ask("coriolis_matrix", (q, v), independent=independent, out=out, parameters=parameters)

    def bias_forces(
        self, q: ArrayLike, v: ArrayLike, *, formulation: str | None = None, independent: Sequence[str] | None = None,
        parameters: Values = None, out: Array | None = None,
    ) -> Array:  # fmt: skip
        """C v + gravity_forces, (..., m); with loops C* u̇ + g* of the independent coordinates."""
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
        """What holds the mechanism still against gravity, (..., m); springs not counted.

        With loops: what the independent coordinates must exert.
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
        """What springs and dampers exert, (..., m); with loops on the independent coordinates."""
        return self._ask("passive_forces", (q, v), independent=independent, out=out, parameters=parameters)

    def energy(
        self, q: ArrayLike, v: ArrayLike, *, parameters: Values = None, out: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """(kinetic, potential), each (...): springs, armature and rotors included."""
        return self._ask("energy", (q, v), out=out, parameters=parameters)

    def momentum(self, q: ArrayLike, v: ArrayLike, *, parameters: Values = None, out: Array | None = None) -> Array:
        """[angular; linear] momentum about the centre of mass, world axes, (..., 6)."""
        self._require_mass("momentum about a centre of mass")
        return self._ask("momentum", (q, v), out=out, parameters=parameters)

    def compute(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, quantities: Sequence[str],
        tau: ArrayLike | None = None, parameters: Values = None,
    ) -> dict[str, Any]:  # fmt: skip
        """{name: answer} of several quantities at the same states, by one kernel that shares what they have in common.

        `quantities` are names as of `casadi`: ["inverse_dynamics", "mass_matrix", "jacobian:tool"]. Each takes of q, v,
        a and tau what its method takes. With loops, and on long chains, they are computed one after the other.
        """
        from polybody.model import together

        return together.compute(self, {"q": q, "v": v, "a": a, "tau": tau}, quantities, parameters)

    def reactions(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches | None = None, axes: str = "world", *,
        parameters: Values = None,
    ) -> dict[str, Array]:  # fmt: skip
        """{joint: (..., 6)}: the wrench [moment; force] of each joint, fixed ones too, on its child.

        It is the whole wrench (motor, springs and bearing together) at the origin of the child's frame, in world axes
        or, with axes="joint", in those of the child's frame. `wrenches` maps a frame's name to a wrench on its link,
        at the frame's origin, in world axes.

        With loops, a must be an acceleration that they allow. Active joints drive, as `inverse_dynamics` says, and
        loops have reactions too: on body b at b's frame. Where constraints are redundant, their least loads are taken.
        """
        return self.constraints._reactions(q, v, a, wrenches, axes, self._parameters(parameters))

    # Derivatives.

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, wrenches: Wrenches | None = None,
        independent: Sequence[str] | None = None, weights: ArrayLike | None = None,
        parameters: Values = None, out: tuple[Array, Array, Array] | None = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """(dtau_dq, dtau_dv, dtau_da), each (..., nv, m), q in tangent space; wrenches constant in world axes.

        With loops: derivatives of the active joints' forces (the least where there are more than needed, as `weights`
        say; other rows are zero) by the independent coordinates' displacements, velocities and accelerations, while the
        other joints follow.
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
        """(da_dq, da_dv, da_dtau), (..., nv, m) twice and (..., nv, nv), q in tangent space.

        With loops: derivatives of all accelerations by the independent coordinates' displacements and velocities,
        while the other joints follow and v stays consistent. Wrenches stay constant in world axes.
        """
        return self._ask(
            "forward_dynamics_derivatives", (q, v, tau), wrenches=wrenches, independent=independent, out=out,
            parameters=parameters,
        )  # fmt: skip

    # Namespaces.

    @cached_property
    def constraints(self) -> ModelConstraints:
        """Loops, rods, guides and relations: residuals, loads, independent coordinates. Empty for a tree."""
        return ModelConstraints(self)

    @cached_property
    def actuation(self) -> Actuation:
        """Active and passive coordinates: hybrid dynamics, forces of active joints, internal loads."""
        return Actuation(self)

    @cached_property
    def coefficients(self) -> Coefficients:
        """Freeman's influence coefficients and dynamic arrays, Swain & Morris' operators."""
        return Coefficients(self)

    @cached_property
    def motors(self) -> ModelMotors:
        """Currents and voltages."""
        return ModelMotors(self)

    @cached_property
    def regressor(self) -> Regressor:
        """`model.regressor(q, v, a)` is Y, tau + passive_forces = Y p + armature a; energy and momentum too."""
        return Regressor(self)

    @cached_property
    def base(self) -> Base:
        """Free-floating systems: momentum, the base that follows, other bases."""
        return Base(self)

    @cached_property
    def parameters(self) -> Parameters:
        """The numbers that are inputs, made so by `with_parameters`: names, units, nominal values, bounds."""
        return Parameters(self.engine, lambda engine: Model(engine.mechanism, engine))

    # Other models.

    def with_parameters(self, *patterns: str) -> Model:
        """The same model with some of its numbers as inputs: `parameters=` of every call, (k,) or (..., k).

        A pattern is a name ("forearm.mass", "elbow.origin", "spring1.stiffness") or has wildcards ("*.com"); see
        `polybody.description.parameters` for what there is, and `parameters` of the result for what was picked. Nothing
        is compiled when values change. Calls without `parameters=` take the present numbers.
        """
        from polybody.model import variants

        return variants.with_parameters(self, patterns)

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """The same model under another gravity, world axes, m/s²."""
        from polybody.model import variants

        return variants.with_gravity(self, gravity)

    def with_frame(self, name: str, body: str, origin: ArrayLike | None = None) -> Model:
        """The same model with one more frame, placed in a link by a 4×4 pose (default: at its origin)."""
        from polybody.model import variants

        return variants.with_frame(self, name, body, origin)

    def with_payload(
        self, frame: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Model:
        """The same model with a rigid body held at a frame: mass, centre in the frame, inertia about that centre.

        `inertia` is (xx, yy, zz), (xx, yy, zz, xy, xz, yz) or 3×3, in the frame's axes.
        """
        from polybody.model import variants

        return variants.with_payload(self, frame, mass, com, inertia)

    def lock(self, joints: str | Sequence[str], q: ArrayLike | None = None) -> Model:
        """The same model with some joints fixed where they are at q (default: neutral)."""
        from polybody.model import variants

        return variants.lock(self, joints, q)

    def save(self, path: str | os.PathLike[str], *, force: bool = False, lossy: bool = False) -> Path:
        """Write the description to a .yaml (mechanism file), .urdf or .xml (MJCF) file.

        What URDF or MJCF cannot express is refused by name, or with `lossy` left out, which a warning lists.
        """
        from polybody.model import variants

        return variants.save(self, path, force=force, lossy=lossy)

    # Other readings of the same equations.

    def casadi(self, name: str) -> Any:
        """The quantity of that name as a `casadi.Function` with named inputs and outputs, matrices row by row.

        Names are those of the methods ("mass_matrix"); of a frame "pose:FRAME", "jacobian:FRAME:frame", …. With loops
        the result by elimination has `diagnostics` beside it (see `quantities.constrained`); where ranks may change
        take "augmented_system", K [a; −λ] = r, or "implicit_residual" (q, v, a, tau, multipliers).
        """
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
        """The model's equations as SymPy expressions: 𝓜(q) ṗ + 𝓒(q, p) p + 𝓕(q) = Q_p, q̇ = V(q) p.

        `symbols`: which parameters stay symbols: "all", "none", or a list of "masses", "lengths", "inertias",
        "gravity" and single names such as "m1"; the others are exact rationals where their decimals allow. `joints`:
        "simple" or "compound" for every joint that can be both, or {joint name: choice}. `q` and `p` name the
        coordinates and quasi-velocities (q1 … and p1 … by default), `names` renames parameters. `progress` is called
        with a word about each step. A model with loops has its equations with multipliers, and `minimal()` in
        independent coordinates: see `symbolic.loops`.
        """
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
        asked = QUANTITIES[wanted] if isinstance(wanted, str) else wanted
        arrays = self._arrays(asked, values)
        given = loads.checked(self.mechanism, wrenches, check)
        chosen = self._parameters(parameters)
        on_bodies = loads.on_bodies(self.engine.tree, arrays[0], given, chosen) if given else None
        shares = None if weights is None else self.actuation._weights(weights)
        request = Request(asked, arrays, on_bodies, formulation, self._columns(independent), shares, out, check, chosen)
        if given and asked.group == "derivatives":
            levered = lambda asked: self.constraints._with_levers(asked, given)  # noqa: E731
            return by_double(request, levered) if request.is_single else levered(request)
        found = self.engine.answer(request)
        if asked.name in _PLAIN and asked.name not in self._prepared:
            if asked.name in self._asked:  # not at the first call, whose answer is waited for
                self._shorten(asked)
            self._asked.add(asked.name)
        return found

    def _parameters(self, values: Values) -> Array | None:
        return None if values is None else self.parameters.checked(values)

    def _each(self, parameters: ArrayLike, arrays: Sequence[Array], answer: Callable[..., Array]) -> Array:
        """answer(model at the parameters, *state) for every state, one by one."""
        values = self.parameters.checked(parameters)
        lead = batch_shape([*arrays, values])
        *wide, values = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (*arrays, values))
        if not np.prod(lead, dtype=int):
            return np.empty((*lead, arrays[-1].shape[-1]))
        found: list[Array] = []
        for index in np.ndindex(lead):
            try:
                found.append(answer(self.parameters.at(values[index]), *(x[index] for x in wide)))
            except PolybodyError as error:
                if lead:
                    error.args = (f"{error}{state_text(index)}", *error.args[1:])
                raise
        return np.array(found).reshape(*lead, -1)

    def _shorten(self, asked: Quantity) -> None:
        """Let the next single calls go straight to machine code, which looks at quaternions itself."""
        self._prepared.add(asked.name)
        lone = self.engine.lone(asked)
        if lone is not None:
            from polybody.kernels.methods import fast_method

            setattr(self, f"_lone_{asked.name}", lone)
            fast_method(Model, asked.name, f"_lone_{asked.name}", _PLAIN[asked.name])

    def _require_mass(self, what: str) -> None:
        if self.total_mass == 0:
            where = "; what is welded to the ground has no part in it" if not self.mechanism.bodies else ""
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
