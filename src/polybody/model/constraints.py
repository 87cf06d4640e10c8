"""`model.constraints`: loops, rods, guides and relations of a model; a tree has none, and all its velocities are
independent.

Independent coordinates u are some columns of v, as many as the mechanism is mobile: v = G u̇.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.constraints.coefficients import joint_third_order
from polybody.constraints.motions import returning
from polybody.constraints.multipliers import Solved
from polybody.constraints.plan import Plan
from polybody.constraints.ranks import ranks
from polybody.errors import InputError
from polybody.formulations.influence.coefficients import Influence, check_order
from polybody.formulations.network.reactions import reaction_names
from polybody.mechanism import couplings
from polybody.mechanism.columns import velocity_names
from polybody.model import wrenches as loads
from polybody.model.arguments import into, state_array
from polybody.model.assembly import MATRICES, column_indices
from polybody.model.batches import in_pieces
from polybody.model.engine import Request, in_parts
from polybody.model.plans import Plans
from polybody.model.ranked import Ranked
from polybody.model.sets import each_set, large, one_set
from polybody.model.wrenches import Given, Wrenches
from polybody.quantities import frames
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray


class ModelConstraints:
    """Constraints of a mechanism beyond those of its tree joints."""

    def __init__(self, model: Model) -> None:
        self._model, self._engine, self._kernels = model, model.engine, model.engine.constraints

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._kernels.constraints)

    @property
    def names(self) -> list[str]:
        """Names of the constrained directions, "loop: direction", in the order of residuals and multipliers."""
        return [str(row) for row in self._kernels.constraints.rows]

    @property
    def independent(self) -> list[str]:
        """Independent coordinates, in which `mass_matrix` and similar quantities are expressed; for a tree all of them.
        """
        names = velocity_names(self._model.mechanism)
        return [names[k] for k in self._engine.independent]

    def indices(self, names: Sequence[str]) -> tuple[int, ...]:
        """Indices in v of coordinates by name: "joint", or "joint_k" for a joint with several."""
        return column_indices(self._model.mechanism, names)

    def residual(self, q: ArrayLike, *, parameters: ArrayLike | None = None) -> Array:
        """Constraint residual at q, (..., rows): metres and radians, in the order of `names`."""
        return self._kernels.residual(self._model._q(q), self._model._parameters(parameters))

    @large
    def jacobian(self, q: ArrayLike, *, parameters: ArrayLike | None = None) -> Array:
        """Constraint Jacobian J, (..., rows, nv): J v = 0 for velocities that the constraints allow."""
        return self._kernels.jacobian(self._model._q(q), self._model._parameters(parameters))

    def bias(self, q: ArrayLike, v: ArrayLike, *, parameters: ArrayLike | None = None) -> Array:
        """Constraint bias γ = J̇ v, (..., rows): J a + γ = 0 for accelerations that satisfy the constraints."""
        v = state_array("v", v, self._model.nv)
        return self._kernels.bias(self._model._q(q), v, self._model._parameters(parameters))

    def rank(self, q: ArrayLike, *, parameters: ArrayLike | None = None) -> Array:
        """Rank of J per state, (...). nv − rank is the instantaneous mobility; a drop marks a singular configuration.
        """
        values = self._model._parameters(parameters)
        given = [self._model._q(q), *(() if values is None else (values,))]
        cost = 8 * MATRICES * self._kernels.rows * self._model.nv
        return in_pieces(lambda some: ranks(self._kernels.jacobian(*some)), given, cost)

    @each_set
    def joint_positions(self, q: ArrayLike, *, parameters: ArrayLike | None = None) -> dict[str, Array]:
        """{joint: (..., nq of the joint)} of all joints, including followers."""
        return couplings.joint_positions(self._model.mechanism, self._model._q(q))

    @one_set
    def assembly_modes(
        self, q: ArrayLike | None = None, hold: Iterable[str] = (), *, limits: bool = True, restarts: int = 60,
        parameters: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        """Distinct assembled configurations, (modes, nq), found from many starting points; the one nearest to q first.

        Hold as many coordinates as the mobility: the modes are then isolated, and each is listed once. `parameters` is
        one set, (k,), as other sets may have another number of modes.
        """
        place = self._model.neutral() if q is None else self._model.normalize(q)
        if place.ndim != 1:
            raise InputError(f"assembly_modes takes one configuration, got shape {place.shape}")
        return self._model._assembly.modes(place, hold, limits, restarts)

    @large
    def assemble_dependent(
        self, q: ArrayLike, independent: Sequence[str] | None = None, *, parameters: ArrayLike | None = None
    ) -> Array:
        """Assembled configuration near q, (..., nq), with the independent coordinates unchanged.

        Newton's method on batches of configurations that are nearly closed; `model.assemble` starts from any guess.
        """
        values = self._model._parameters(parameters)
        return self._model._assembly.dependent(self._model._q(q), self._columns(independent), values)

    def projection_step(
        self, q: ArrayLike, v: ArrayLike, *, parameters: ArrayLike | None = None,
        out: tuple[Array, Array] | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(step of q, change of v), (..., nv) each: a Newton step towards the constraints, φ + J step = 0."""
        return self._model._ask("projection_step", (q, v), parameters=parameters, out=out)

    @large
    def joint_motion(
        self, q: ArrayLike, u_dot: ArrayLike, u_ddot: ArrayLike | None = None, *,
        independent: Sequence[str] | None = None, parameters: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Velocities v of all joints, (..., nv), for independent velocities u̇; with ü also accelerations: (v, a)."""
        if self._model.mechanism.paced:
            raise InputError("joint_motion: velocity relations have right sides; use model.assemble_velocity(q, v)")
        m = len(self._columns(independent))
        u_dot = state_array("u_dot", u_dot, m)
        joints = self.joint_influence(q, 1 if u_ddot is None else 2, independent, parameters=parameters)
        v = joints.velocity(u_dot)
        return v if u_ddot is None else (v, joints.acceleration(u_dot, state_array("u_ddot", u_ddot, m)))

    @large
    def joint_influence(
        self, q: ArrayLike, order: int = 2, independent: Sequence[str] | None = None, *,
        parameters: ArrayLike | None = None,
    ) -> Influence:  # fmt: skip
        """G (..., nv, m), H (..., nv, m, m), D (..., nv, m, m, m) of all joints over the independent coordinates.

        H[:, m, n] is the derivative of G[:, n] along u_m, D[:, l, m, n] that of H[:, m, n] along u_l. `velocity`,
        `acceleration` and `jerk` of the result map u̇, ü and its rate to those of all joints.
        """
        order, q, kernels = check_order(order), self._model._q(q), self._kernels
        values = self._model._parameters(parameters)
        self._engine.require_closed(q, None, values)
        J, columns = kernels.jacobian(q, values), self._columns(independent)
        found = self._ranked.transfer(J, np.zeros(J.shape[:-1]), columns)
        E, G = found.E, found.G
        if order == 1:
            return Influence(G)
        T = kernels.jacobian_changes(q, G, values)
        H = np.einsum("...ir,...krj,...jn->...ikn", E, T, G, optimize=True)
        if order == 2:
            return Influence(G, H)
        D = joint_third_order(
            E, T, G, H, lambda X: kernels.jacobian_changes(q, X, values),
            lambda X, Y: kernels.jacobian_seconds(q, X, Y, values),
        )  # fmt: skip
        return Influence(G, H, D)

    @large
    def solution(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
        route: str = "multipliers", independent: Sequence[str] | None = None, formulation: str | None = None,
        parameters: ArrayLike | None = None,
    ) -> Solved:  # fmt: skip
        """Accelerations (..., nv), multipliers (..., rows) and the rank of the constraints, under joint forces tau.

        Computed by singular value decomposition. Multipliers are loads on the mechanism in the order of `names`; if
        constraints are redundant, those of least norm. `route` is "multipliers" or "minimal" (transfer to independent
        coordinates); both return the same result.
        """
        arrays = self._model._arrays(QUANTITIES["forward_dynamics"], (q, v, tau))
        values = self._model._parameters(parameters)
        felt = self._on_bodies(arrays[0], wrenches, values)
        request = Request(QUANTITIES["forward_dynamics"], arrays, felt, formulation, parameters=values)
        columns = self._engine.coordinates(arrays[0]) if independent is None else self.indices(independent)
        return self._ranked.solution(request, route, columns)

    @large
    def loads(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
        route: str = "elimination", parameters: ArrayLike | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """Constraint loads {constraint: loads} of the motion under tau.

        For a loop: the wrench (..., 6) [moment; force] of its cut joint on body b at the origin of b's frame, world
        axes. For a rod: its force (..., 1), positive in compression. For others: their multipliers. If constraints are
        redundant, the loads of least norm are returned. `route` "elimination" is compiled; "multipliers" and "minimal"
        are those of `solution`, with the same result.
        """
        if route == "elimination":
            asked = (q, v, tau)
            _, multipliers = self._model._ask("constraint_loads", asked, wrenches=wrenches, parameters=parameters)
        else:
            solved = self.solution(q, v, tau, wrenches=wrenches, route=route, parameters=parameters)
            multipliers = solved.multipliers
        return self._by_name(self._model._q(q), multipliers, self._model._parameters(parameters))

    def coupling_forces(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, wrenches: Wrenches | None = None,
        parameters: ArrayLike | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """{follower: (...)}: the force that its coupling exerts on the follower's own coordinate during a motion.

        The leader carries minus the factor times that force. Motors on followers' own joints are counted as part of the
        coupling.
        """
        found = self._model._ask("coupling_forces", (q, v, a), wrenches=wrenches, parameters=parameters)
        return {name: found[..., k] for k, name in enumerate(self._model.mechanism.followers)}

    def motion_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
        independent: Sequence[str] | None = None, parameters: ArrayLike | None = None,
        out: tuple[Array, ...] | None = None,
    ) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
        """(da_dq, da_dv, da_dtau, G, V): derivatives of forward dynamics, and of the dependent coordinates.

        δφ = G δu and δv = G δu̇ + V δu for displacements δu and velocities δu̇ of the independent coordinates.
        """
        return self._model._ask(
            "motion_derivatives", (q, v, tau), wrenches=wrenches, independent=independent, parameters=parameters,
            out=out,
        )  # fmt: skip

    # Inside.

    @property
    def _ranked(self) -> Ranked:
        return Ranked(self._engine.tree, self._model._assembly)

    def _plan(self) -> Plan:
        """The elimination of the model's own coordinates at a general place."""
        place = self._model._assembly.general_place(self._model.assemble())
        plan = Plans(self._kernels.jacobian, lambda q: q).of_columns(self._engine.independent, place)
        if plan is None:
            raise InputError(f"{self._model.name!r} has no place where {', '.join(self.independent)} are independent")
        return plan

    def _columns(self, independent: Sequence[str] | None) -> tuple[int, ...]:
        return self._engine.independent if independent is None else self.indices(independent)

    def _on_bodies(self, q: Array, wrenches: Wrenches | None, parameters: Array | None) -> Array | None:
        given = loads.checked(self._model.mechanism, wrenches)
        return loads.on_bodies(self._engine.tree, q, given, parameters) if given else None

    def _by_name(self, q: Array, multipliers: Array, parameters: Array | None) -> dict[str, Array]:
        system = self._kernels.constraints
        found = {name: multipliers[..., part] for name, part in system.slices.items()}
        if system.pairs:
            borne, _ = self._kernels.wrenches(q, multipliers, parameters)
            loops = {closure.name for closure in self._model.mechanism.closures}
            found |= {pair.name: borne[..., k, :] for k, pair in enumerate(system.pairs) if pair.name in loops}
        return found

    def _reactions(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches | None, axes: str,
        parameters: Array | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        m = self._model.mechanism
        given = loads.checked(m, wrenches)
        quantity = frames.reactions(m, axes, "loads" if given else "")
        arrays = self._model._arrays(QUANTITIES["inverse_dynamics"], (q, v, a))

        def answer(part: Request, *felt: Array) -> Any:  # one slot for every frame: many numbers
            here = [(frame, w) for (frame, _), w in zip(given, felt, strict=True)]
            table = (loads.on_frames(m, part.arrays, here),) if here else ()
            return self._engine.answer(replace(part, arrays=(*part.arrays, *table)))

        request = Request(quantity, arrays, parameters=parameters)
        if given:
            rows, borne = in_parts(self._engine, request, answer, 12 * len(m.frames), [w for _, w in given])
        else:
            rows, borne = self._engine.answer(request)
        found = {name: rows[..., i, :] for i, name in enumerate(reaction_names(m))}
        closures = {closure.name for closure in m.closures}
        for k, pair in enumerate(self._kernels.constraints.pairs):
            if pair.name in closures:
                found[pair.name] = borne[..., k, :]
        return found

    def _with_levers(self, request: Request, given: Given) -> Any:
        """Derivatives under wrenches whose levers turn with their bodies."""
        out, request = request.out, replace(request, out=None)
        found = list(self._engine.answer(request))
        shifts = loads.lever_shifts(self._engine.tree, request.arrays[0], given, request.parameters)
        if shifts is not None:
            q = request.arrays[0]
            values = request.parameters
            if len(self):
                columns = request.independent if request.independent is not None else self._engine.independent
                shifts = shifts @ returning(self._kernels.jacobian(q, values), columns)[1]
            if request.quantity.name.startswith("inverse"):
                extra = shifts
                if len(self):
                    mask = np.flatnonzero(self._model.actuation.active)
                    rows = np.swapaxes(shifts, -1, -2)
                    each = None if values is None else values[..., None, :]
                    held = self._ranked.held_by(q[..., None, :], rows, mask, request.weights, each)
                    extra = np.swapaxes(held, -1, -2)
                found[0] = found[0] + extra
            else:
                found[0] = found[0] - found[2] @ shifts
        return into(out, tuple(found))


__all__ = ["ModelConstraints"]
