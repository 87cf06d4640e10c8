"""Rank-revealing answers of constrained mechanisms, on numbers: for states at which a fixed elimination does badly.

Accelerations and loads come from the complete orthogonal decomposition of J (`constraints.multipliers`), joint forces
from the projector on the motions that pass (`constraints.actuation`): no coordinates are chosen, so that singular
configurations, redundant rows and any number of drives are taken as they are. Whatever refers to coordinates is its own
text (`quantities.constrained`) over `RankedMotions`, state by state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.constraints.actuation import actuator_loads
from polybody.constraints.minimal import Transfer, solve_minimal, transfer_to
from polybody.constraints.mobility import choose_independent
from polybody.constraints.motions import RankedMotions
from polybody.constraints.multipliers import Solved, solve_multipliers
from polybody.constraints.ranks import null_space, pseudo_inverse
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import actuated, direction_text, state_text, velocity_names
from polybody.mechanism.mechanism import GROUND
from polybody.model.assembly import Assembly
from polybody.model.batches import batch_shape
from polybody.model.engine import Request
from polybody.model.tree_engine import TreeEngine
from polybody.model.wrenches import on_bodies
from polybody.quantities.constrained import Closed
from polybody.quantities.frames import reactions
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES

Array = np.ndarray
ROUTES = ("multipliers", "minimal")
#: a motion whose inertia is this part of the largest, or less, moves no mass
MASSLESS = 1e-14


class Ranked:
    """Answers of one mechanism by singular values."""

    def __init__(self, tree: TreeEngine, assembly: Assembly) -> None:
        self.tree, self.assembly, self.kernels = tree, assembly, assembly.kernels
        self.mechanism = assembly.mechanism
        self._by_name: dict[str, Callable[[Request], Any]] = {
            "forward_dynamics": lambda r: self.solution(r).a,
            "inverse_dynamics": self.inverse,
            "constraint_loads": self._loads,
        }

    def answer(self, request: Request, columns: tuple[int, ...]) -> Any:
        """The quantity of a request, with these independent columns where it refers to some."""
        direct = self._by_name.get(request.quantity.name)
        if request.quantity.name.startswith("reactions"):
            return self._reactions(request)
        return self._by_text(request, columns) if direct is None else direct(request)

    def solution(self, request: Request, route: str = "multipliers", columns: tuple[int, ...] = ()) -> Solved:
        """Accelerations, multipliers and ranks under joint forces."""
        if route not in ROUTES:
            raise InputError(f"route is {route!r}, expected 'multipliers' or 'minimal'")
        q, v, tau = request.arrays
        self.assembly.require_closed(q, v)
        M, force = self.tree_terms(q, v, tau, request.wrenches, request.formulation)
        J, gamma = self.kernels.jacobian(q), self.kernels.bias(q, v)
        solved = solve_multipliers(M, J, gamma, force)
        for index in np.argwhere(solved.inertia < MASSLESS)[:1]:
            wide = [np.broadcast_to(x, (*solved.inertia.shape, *x.shape[-2:])) for x in (M, J)]
            self.refuse_massless(wide[0][tuple(index)], wide[1][tuple(index)], tuple(int(i) for i in index))
        gap = (J @ solved.a[..., None])[..., 0] + gamma
        slack = 1e-6 * (1 + np.square(v).max(axis=-1, keepdims=True, initial=0.0))
        self.assembly.require_small(
            "no acceleration keeps", gap, slack, "at singular states v must lead along a branch"
        )
        if route == "minimal":
            a = solve_minimal(M, self.transfer(J, gamma, columns), force)
            net = (M @ a[..., None])[..., 0] - force
            multipliers = (pseudo_inverse(np.swapaxes(J, -1, -2)) @ net[..., None])[..., 0]
            solved = replace(solved, a=a, multipliers=multipliers)
        return solved

    def tree_terms(
        self, q: Array, v: Array, tau: Array, wrenches: Array | None, formulation: str | None = None
    ) -> tuple[Array, Array]:
        """(M, f) of the cut tree, f = tau + passive + Σ Jᵀw − C v − g."""
        rest = np.zeros(self.mechanism.nv)
        needed = self.tree.answer(Request(QUANTITIES["inverse_dynamics"], (q, v, rest), wrenches, formulation))
        return self.tree.answer(Request(QUANTITIES["mass_matrix"], (q,), None, formulation)), tau - needed

    def inverse(self, request: Request) -> Array:
        """The least joint forces of the drives that make a motion."""
        q, v, a = request.arrays
        self.assembly.require_closed(q, v)
        self.assembly.require_acceleration(q, v, a)
        required = self.tree.answer(
            Request(QUANTITIES["inverse_dynamics"], (q, v, a), request.wrenches, request.formulation)
        )
        return self.held_by(q, required, actuated(self.mechanism), request.weights)

    def held_by(self, q: Array, required: Array, driven: Array, weights: Array | None = None) -> Array:
        """The forces of least norm on driven velocities that do on every motion what `required` does; else an error."""
        tau, unmet = actuator_loads(self.kernels.jacobian(q), required, driven, weights)
        self.refuse_unheld(unmet, required, driven)
        return tau

    def by_formulation(self, request: Request, columns: tuple[int, ...]) -> Array:
        """Dynamics with the tree's terms from one of the five formulations."""
        name = request.quantity.name
        if name == "forward_dynamics":
            return self.solution(request).a
        if name == "inverse_dynamics":
            return self.inverse(request)
        q, *more = request.arrays
        self.assembly.require_closed(q, *more)
        J = self.kernels.jacobian(q)
        gamma = self.kernels.bias(q, *more) if more else np.zeros(J.shape[:-1])
        transfer = self.transfer(J, gamma, columns)
        back = np.swapaxes(transfer.G, -1, -2)
        M = self.tree.answer(Request(QUANTITIES["mass_matrix"], (q,), None, request.formulation))
        if name == "mass_matrix":
            return back @ M @ transfer.G
        whole = self.tree.answer(replace(request, out=None, independent=None))
        return (back @ (whole[..., None] + M @ transfer.beta[..., None]))[..., 0]

    def transfer(self, J: Array, gamma: Array, columns: tuple[int, ...]) -> Transfer:
        """v = G u̇, a = G ü + β in these coordinates, refused where they are not independent."""
        found = transfer_to(J, gamma, columns)
        broken = np.abs(J @ found.G).max(axis=(-1, -2), initial=0.0)  # by columns that are too many
        bad = ~((found.condition < 1e7) & (broken < 1e-6 * (1 + np.abs(J).max(axis=(-1, -2), initial=0.0))))
        for index in np.argwhere(bad)[:1] if np.any(bad) else ():
            place = tuple(int(i) for i in index)
            self.assembly.require_independent(J[place], columns, place)
        return found

    def _loads(self, request: Request) -> tuple[Array, Array]:
        solved = self.solution(request)
        return solved.a, solved.multipliers

    def _by_text(self, request: Request, columns: tuple[int, ...]) -> Any:
        """A constrained text on numbers, state by state, over motions with the rank that J has."""
        quantity = request.whole
        q = request.arrays[0]
        self.assembly.require_closed(q, request.arrays[1] if "v" in quantity.arguments else None)
        if "a" in quantity.arguments:
            self.assembly.require_acceleration(*request.arrays[:3])
        lead = batch_shape(request.all_arrays)
        wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in request.all_arrays]
        found: list[Any] = []
        every = self.kernels.jacobian(wide[0])
        if refers_to_coordinates(quantity):
            self.transfer(every, np.zeros(every.shape[:-1]), columns)
        for index in np.ndindex(lead):
            chosen = columns if refers_to_coordinates(quantity) else self.coordinates_at(every[index])
            driven = tuple(int(k) for k in actuated(self.mechanism))
            closed = Closed(
                self.tree.mechanism, self.kernels.constraints, lambda J, _, u=chosen: RankedMotions(J, u), driven,
                weights=request.weights,
            )  # fmt: skip
            try:
                values = quantity.constrained(closed, *(x[index] for x in wide), domain=FLOAT)  # type: ignore[misc]
            except np.linalg.LinAlgError:
                self._refuse_undriven(closed, wide[0][index], index)
                raise
            found.append(values if isinstance(values, tuple) else (values,))
        stacked = tuple(
            np.array([row[k] for row in found], dtype=float).reshape((*lead, *np.shape(found[0][k])))
            for k in range(len(found[0]))
        )
        return stacked[0] if len(stacked) == 1 else stacked

    def coordinates_at(self, J: Array) -> tuple[int, ...]:
        """Independent columns at one state."""
        Z = null_space(J)
        return choose_independent(Z, actuated(self.mechanism), Z.shape[1])

    def _reactions(self, request: Request) -> tuple[Array, Array]:
        """Reactions of the tree under what its loops, rods and guides bear, and what those bear."""
        q, v, a, *loads = request.arrays
        m, kernels = self.mechanism, self.kernels
        on_frames = np.zeros((*batch_shape(request.arrays), len(m.frames), 6))
        on_frames += loads[0].reshape(*loads[0].shape[:-1], -1, 6) if loads else 0.0
        given = [(frame, on_frames[..., k, :].copy()) for k, frame in enumerate(m.frames)] if loads else []
        wrenches = on_bodies(self.tree, q, given) if loads else None
        tau = self.inverse(Request(QUANTITIES["inverse_dynamics"], (q, v, a), wrenches))
        solved = self.solution(Request(QUANTITIES["forward_dynamics"], (q, v, tau), wrenches))
        borne, totals = kernels.wrenches(q, solved.multipliers)
        for k, link in enumerate(kernels.constraints.loaded_links):
            on_frames[..., m.frame_index[link], :] += totals[..., k, :]
        axes = request.quantity.name.split(":")[1]
        whole = reactions(m, axes, "loads")
        flat = on_frames.reshape(*on_frames.shape[:-2], -1)
        if axes == "joint":
            R = self.tree.answer(Request(QUANTITIES["body_rotations"], (q,)))
            for k, pair in enumerate(kernels.constraints.pairs):
                turn = pair.b.rotation if pair.b.body == GROUND else R[..., pair.b.body, :, :] @ pair.b.rotation
                parts = [np.einsum("...ji,...j->...i", turn, x) for x in (borne[..., k, :3], borne[..., k, 3:])]
                borne[..., k, :] = np.concatenate(parts, axis=-1)
        return self.tree.answer(Request(whole, (q, v, a, flat)))[0], borne

    # Refusals.

    def refuse_massless(self, M: Array, J: Array, index: tuple[int, ...]) -> None:
        """Raise where a motion that the constraints allow at one state has no inertia, naming what leads it."""
        Z = null_space(J)
        values, vectors = np.linalg.eigh(Z.T @ M @ Z)
        idle = Z @ vectors[:, values < MASSLESS * max(values[-1:].sum(), 1e-300)]
        if not idle.shape[1]:
            return
        names = velocity_names(self.mechanism)
        leaders = [names[k] for k in choose_independent(idle, np.arange(len(names)), idle.shape[1])]
        raise PolybodyError(
            f"{self.mechanism.name!r}: nothing that moves with {' or '.join(leaders)} has mass{state_text(index)}, so "
            "no force determines the acceleration; give the bodies mass, or one of the joints armature"
        )

    def refuse_unheld(self, unmet: Array, required: Array, driven: Array) -> None:
        """Raise where drives leave a part of the required forces, naming the motion it works on."""
        bad = np.abs(unmet).max(axis=-1, initial=0.0) > 1e-8 * (1e-3 + np.abs(required).max(axis=-1, initial=0.0))
        if not np.any(bad):
            return
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        motion, names = unmet[index] / np.linalg.norm(unmet[index]), velocity_names(self.mechanism)
        told = ", ".join(names[k] for k in driven) or "none"
        raise PolybodyError(
            f"the active joints ({told}) cannot give this motion{state_text(index)}: no force of theirs acts on "
            f"{direction_text(motion, names)}, where {np.linalg.norm(unmet[index]):.3g} is needed; make another joint "
            "active, or take the motion that forward_dynamics gives"
        )

    def _refuse_undriven(self, closed: Closed, q: Array, index: tuple[int, ...]) -> None:
        """Raise where some motion moves no drive, or no mass: there the text's equations are singular."""
        G = closed.motions(q, FLOAT).G
        _, s, Vt = np.linalg.svd(G[list(closed.driven)])
        names = velocity_names(self.mechanism)
        if len(s) < G.shape[1] or s[-1] <= 1e-9 * s[0]:
            motion = G @ Vt[-1]
            told = ", ".join(names[k] for k in closed.driven) or "none"
            raise PolybodyError(
                f"the active joints ({told}) do not move along {direction_text(motion / np.linalg.norm(motion), names)}"
                f"{state_text(index)}, so their forces have no derivatives there; make another joint active"
            )
        M = self.tree.answer(Request(QUANTITIES["mass_matrix"], (q,)))
        self.refuse_massless(M, self.kernels.jacobian(q), index)


def refers_to_coordinates(quantity: Quantity) -> bool:
    """True where shapes have the independent coordinates in them."""
    return any("m" in shape for _, shape in quantity.results)


__all__ = ["ROUTES", "Ranked", "refers_to_coordinates"]
