"""Rank-revealing answers of constrained mechanisms, on numbers: for states at which a fixed elimination does badly.

Accelerations and loads come from the complete orthogonal decomposition of J (`constraints.multipliers`), joint forces
from the projector on the motions that pass (`constraints.actuation`): no coordinates are chosen, so that singular
configurations, redundant rows and any number of drives are taken as they are. Whatever refers to coordinates is its own
text (`quantities.constrained`) over the motions that J leaves, which are inputs of its compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.constraints.actuation import actuator_loads
from polybody.constraints.minimal import Transfer, solve_minimal, transfer_to
from polybody.constraints.mobility import choose_independent
from polybody.constraints.motions import GivenMotions, ranked_motions, returning
from polybody.constraints.multipliers import Solved, solve_multipliers
from polybody.constraints.ranks import null_space, pseudo_inverse
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import actuated, direction_text, state_text, velocity_names
from polybody.mechanism.mechanism import GROUND
from polybody.model.assembly import Assembly
from polybody.model.batches import batch_shape
from polybody.model.engine import Request
from polybody.model.tracing import trace
from polybody.model.tree_engine import TreeEngine
from polybody.model.wrenches import on_bodies
from polybody.quantities.constrained import Closed
from polybody.quantities.frames import reactions
from polybody.quantities.quantity import Quantity, sizes_of
from polybody.quantities.table import QUANTITIES

Array = np.ndarray
ROUTES = ("multipliers", "minimal")
#: states from which on a text is compiled, unless J has more entries
FEW, LARGE = 2, 3000
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
        (q, v, tau), values = request.arrays, request.parameters
        self.assembly.require_closed(q, v, values)
        M, force = self.tree_terms(q, v, tau, request.wrenches, request.formulation, values)
        J, gamma = self.kernels.jacobian(q, values), self.kernels.bias(q, v, values)
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
        self, q: Array, v: Array, tau: Array, wrenches: Array | None, formulation: str | None = None,
        parameters: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(M, f) of the cut tree, f = tau + passive + Σ Jᵀw − C v − g."""
        needed = self._of_tree("inverse_dynamics", q, v, np.zeros(self.mechanism.nv), wrenches=wrenches,
                               formulation=formulation, parameters=parameters)  # fmt: skip
        M = self._of_tree("mass_matrix", q, formulation=formulation, parameters=parameters)
        return M, tau - needed

    def _of_tree(self, name: str, *arrays: Array, **options: Any) -> Array:
        return self.tree.answer(Request(QUANTITIES[name], arrays, **options))

    def inverse(self, request: Request) -> Array:
        """The least joint forces of the drives that make a motion."""
        (q, v, a), values = request.arrays, request.parameters
        self.assembly.require_closed(q, v, values)
        self.assembly.require_acceleration(q, v, a, values)
        required = self._of_tree("inverse_dynamics", q, v, a, wrenches=request.wrenches,
                                 formulation=request.formulation, parameters=values)  # fmt: skip
        return self.held_by(q, required, actuated(self.mechanism), request.weights, values)

    def held_by(
        self, q: Array, required: Array, driven: Array, weights: Array | None = None, parameters: Array | None = None
    ) -> Array:
        """The forces of least norm on driven velocities that do on every motion what `required` does; else an error."""
        tau, unmet = actuator_loads(self.kernels.jacobian(q, parameters), required, driven, weights)
        self.refuse_unheld(unmet, required, driven)
        return tau

    def by_formulation(self, request: Request, columns: tuple[int, ...]) -> Array:
        """Dynamics with the tree's terms from one of the five formulations."""
        name = request.quantity.name
        if name == "forward_dynamics":
            return self.solution(request).a
        if name == "inverse_dynamics":
            return self.inverse(request)
        (q, *more), values = request.arrays, request.parameters
        self.assembly.require_closed(q, more[0] if more else None, values)
        J = self.kernels.jacobian(q, values)
        gamma = self.kernels.bias(q, more[0], values) if more else np.zeros(J.shape[:-1])
        transfer = self.transfer(J, gamma, columns)
        back = np.swapaxes(transfer.G, -1, -2)
        M = self._of_tree("mass_matrix", q, formulation=request.formulation, parameters=values)
        if name == "mass_matrix":
            return back @ M @ transfer.G
        whole = self.tree.answer(replace(request, out=None, independent=None))
        return (back @ (whole[..., None] + M @ transfer.beta[..., None]))[..., 0]

    def transfer(self, J: Array, gamma: Array, columns: tuple[int, ...]) -> Transfer:
        """v = G u̇, a = G ü + β in these coordinates, refused where they are not independent."""
        found = transfer_to(J, gamma, columns)
        bad = ~_are_independent(J, found, 1e7)
        for index in np.argwhere(bad)[:1] if np.any(bad) else ():
            place = tuple(int(i) for i in index)
            self.assembly.require_independent(J[place], columns, place)
        return found

    def _loads(self, request: Request) -> tuple[Array, Array]:
        solved = self.solution(request)
        return solved.a, solved.multipliers

    def _by_text(self, request: Request, columns: tuple[int, ...]) -> Any:
        """A constrained text over motions with the rank that J has."""
        quantity, values = request.whole, request.parameters
        q, v = request.arrays[0], request.arrays[1] if "v" in quantity.arguments else None
        self.assembly.require_closed(q, v, values)
        if "a" in quantity.arguments:
            _, v, a = request.arrays[:3]
            self.assembly.require_acceleration(q, v, a, values)
        arrays = [*request.all_arrays, *(() if values is None else (values,))]
        lead = batch_shape(arrays)
        flat = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in arrays]
        J = self.kernels.jacobian(flat[0], *(() if values is None else (flat[-1],)))
        if refers_to_coordinates(quantity):
            self.transfer(J.reshape(*lead, *J.shape[1:]), np.zeros((*lead, J.shape[1])), columns)
        found: list[Array] = []
        for chosen, at in [(columns, np.arange(len(J)))] if refers_to_coordinates(quantity) else self._alike(J):
            places = np.stack(np.unravel_index(at, lead), axis=-1) if lead else np.zeros((len(at), 0), dtype=int)
            parts = self._along(request, chosen, J[at], [x[at] for x in flat], places)
            found = found or [np.empty((len(J), *x.shape[1:])) for x in parts]
            for whole, part in zip(found, parts, strict=True):
                whole[at] = part
        stacked = tuple(x.reshape(*lead, *x.shape[1:]) for x in found)
        return stacked[0] if len(stacked) == 1 else stacked

    def _alike(self, J: Array) -> list[tuple[tuple[int, ...], Array]]:
        """(columns that are independent at some states, those states): all of the states, each once."""
        groups, left = [], np.arange(len(J))
        while len(left):
            chosen = self.coordinates_at(J[left[0]])
            serves = _are_independent(J[left], transfer_to(J[left], np.zeros((len(left), J.shape[1])), chosen), 1e4)
            serves[0] = True
            groups.append((chosen, left[serves]))
            left = left[~serves]
        return groups

    def _along(
        self, request: Request, columns: tuple[int, ...], J: Array, arrays: Sequence[Array], places: Array
    ) -> tuple[Array, ...]:
        """The text at states (n, ...) in these coordinates: compiled for many states, on numbers for few.

        `places` (n, dimensions) are their indices in the batch.
        """
        ready = f"{self._title(request, len(columns))} {self.kernels.source.digest}" in self.tree._kernels
        few = len(J) < FEW and request.parameters is None and not ready
        if few or not columns or J[0].size > LARGE:
            return self._on_numbers(request, columns, J, arrays, places)
        E, G = returning(J, columns)
        weights = () if request.weights is None else (request.weights,)
        count = len(request.all_arrays)
        found = self._kernel(request, len(columns))(
            *arrays[:count], E.reshape(len(J), -1), G.reshape(len(J), -1), *weights,
            *self.tree.source.given(*arrays[count:]),
        )  # fmt: skip
        parts = found if isinstance(found, tuple) else (found,)
        broken = ~np.all([np.isfinite(x.reshape(len(J), -1)).all(axis=-1) for x in parts], axis=0)
        if np.any(broken):  # what has no answer is named by the text on numbers
            parts = tuple(np.array(x) for x in parts)
            again = self._on_numbers(request, columns, J[broken], [x[broken] for x in arrays], places[broken])
            for whole, part in zip(parts, again, strict=True):
                whole[broken] = part
        return parts

    @staticmethod
    def _title(request: Request, count: int) -> str:
        weighted = "" if request.weights is None else " weighted"
        return f"{request.whole.name} of {count} given motions{weighted}"

    def _kernel(self, request: Request, count: int) -> Any:
        """The text's kernel with E, G of `count` coordinates and the drives' weights as inputs."""
        quantity, m, rows = request.whole, self.tree.traced_mechanism, self.kernels.rows
        sizes = sizes_of(m, independent=count, rows=rows, pairs=len(self.kernels.constraints.pairs))
        driven = tuple(int(k) for k in actuated(self.mechanism))
        more = [("E", m.nv * rows), ("G", m.nv * count)]
        more += [] if request.weights is None else [("weights", len(driven))]
        inputs, number = [*quantity.inputs(sizes), *more], len(quantity.arguments)

        def body(*given: Array, domain: Any) -> Any:
            E, G, *weights = given[number:]
            motions = GivenMotions(E.reshape(m.nv, rows), G.reshape(m.nv, count))
            shares = weights[0] if weights else None
            closed = Closed(m, self.kernels.traced, lambda J, _: motions, driven, weights=shares)
            return quantity.constrained(closed, *given[:number], domain=domain)  # type: ignore[misc]

        name = self._title(request, count)
        make = lambda: trace(name, inputs, body, m.symbols)  # noqa: E731
        return self.tree.compile(f"{name} {self.kernels.source.digest}", inputs, quantity.shapes(sizes), make).kernel

    def _on_numbers(
        self, request: Request, columns: tuple[int, ...], J: Array, arrays: Sequence[Array], places: Array
    ) -> tuple[Array, ...]:
        """The text state by state."""
        quantity, count = request.whole, len(request.all_arrays)
        driven, found = tuple(int(k) for k in actuated(self.mechanism)), []
        for k, own in enumerate(J):
            state = [x[k] for x in arrays]
            ranked = self if len(state) == count else self._at(state[-1])
            closed = Closed(ranked.tree.mechanism, ranked.kernels.constraints,
                            lambda J, _, own=own: ranked_motions(own, columns), driven, weights=request.weights)
            try:
                values = quantity.constrained(closed, *state[:count], domain=FLOAT)  # type: ignore[misc]
            except np.linalg.LinAlgError:
                ranked._refuse_undriven(closed, state[0], tuple(int(i) for i in places[k]))
                raise
            found.append(values if isinstance(values, tuple) else (values,))
        return tuple(np.array([row[k] for row in found], dtype=float) for k in range(len(found[0])))

    def _at(self, values: Array) -> Ranked:
        """The same at values of the parameters."""
        tree, kernels = self.tree.at(values), self.kernels.at(self.kernels.source.at(values))
        return Ranked(tree, Assembly(tree, kernels))

    def coordinates_at(self, J: Array) -> tuple[int, ...]:
        """Independent columns at one state."""
        Z = null_space(J)
        return choose_independent(Z, actuated(self.mechanism), Z.shape[1])

    def _reactions(self, request: Request) -> tuple[Array, Array]:
        """Reactions of the tree under what its loops, rods and guides bear, and what those bear."""
        (q, v, a, *loads), values = request.arrays, request.parameters
        m, kernels, axes = self.mechanism, self.kernels, request.quantity.name.split(":")[1]
        lead = batch_shape([*request.arrays, *([] if values is None else [values])])
        if values is not None and axes == "joint":  # the axes of cut joints may be among the parameters
            return self._reactions_by_state(request, values, lead)
        on_frames = np.zeros((*lead, len(m.frames), 6))
        on_frames += loads[0].reshape(*loads[0].shape[:-1], -1, 6) if loads else 0.0
        given = [(frame, on_frames[..., k, :].copy()) for k, frame in enumerate(m.frames)] if loads else []
        wrenches = on_bodies(self.tree, q, given, values) if loads else None
        tau = self.inverse(Request(QUANTITIES["inverse_dynamics"], (q, v, a), wrenches, parameters=values))
        solved = self.solution(Request(QUANTITIES["forward_dynamics"], (q, v, tau), wrenches, parameters=values))
        borne, totals = kernels.wrenches(q, solved.multipliers, values)
        for k, link in enumerate(kernels.constraints.loaded_links):
            on_frames[..., m.frame_index[link], :] += totals[..., k, :]
        whole = reactions(m, axes, "loads")
        flat = on_frames.reshape(*on_frames.shape[:-2], -1)
        if axes == "joint":
            R = self.tree.answer(Request(QUANTITIES["body_rotations"], (q,)))
            for k, pair in enumerate(kernels.constraints.pairs):
                turn = pair.b.rotation if pair.b.body == GROUND else R[..., pair.b.body, :, :] @ pair.b.rotation
                parts = [np.einsum("...ji,...j->...i", turn, x) for x in (borne[..., k, :3], borne[..., k, 3:])]
                borne[..., k, :] = np.concatenate(parts, axis=-1)
        return self.tree.answer(Request(whole, (q, v, a, flat), parameters=values))[0], borne

    def _reactions_by_state(self, request: Request, values: Array, lead: tuple[int, ...]) -> tuple[Array, Array]:
        """Each state with a mechanism of its own parameters."""
        *wide, values = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (*request.arrays, values))
        states = list(np.ndindex(lead))
        found = [
            self._at(values[i])._reactions(replace(request, arrays=tuple(x[i] for x in wide), parameters=None))
            for i in states
        ]
        rows, borne = (np.array([x[k] for x in found]) for k in range(2))
        return rows.reshape(*lead, *rows.shape[1:]), borne.reshape(*lead, *borne.shape[1:])

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


def _are_independent(J: Array, found: Transfer, worst: float) -> Array:
    """Where the columns of a transfer are independent, and as many as motions."""
    broken = np.abs(J @ found.G).max(axis=(-1, -2), initial=0.0)  # by columns that are too many
    return (found.condition < worst) & (broken < 1e-6 * (1 + np.abs(J).max(axis=(-1, -2), initial=0.0)))


def refers_to_coordinates(quantity: Quantity) -> bool:
    """True where shapes have the independent coordinates in them."""
    return any("m" in shape for _, shape in quantity.results)


__all__ = ["ROUTES", "Ranked", "refers_to_coordinates"]
