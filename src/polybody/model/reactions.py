"""What joints bear, the whole wrench of every joint on its child; and the mechanism as a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.errors import InputError
from polybody.formulations.network import Network, network_of
from polybody.formulations.network.reactions import AXES, reaction_names, reactions
from polybody.mechanism.mechanism import GROUND
from polybody.model.arguments import choose, state_array
from polybody.model.batches import batch_shape
from polybody.model.dynamics import Wrenches
from polybody.model.loop_loads import LoopLoads
from polybody.model.tracing import compiled

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray


class ReactionAnswers(LoopLoads):
    """Reactions of joints, and the network they are through variables of."""

    def reactions(
        self, q: Any, v: Any, a: Any, wrenches: Wrenches | None = None, axes: str = "world"
    ) -> dict[str, Array]:
        """{joint: (..., 6)}: the wrench [moment; force] of each joint, fixed ones too, on its child.

        It is the whole wrench (motor, springs and bearing together) at the origin of the child's frame, in world axes
        or, with axes="joint", in those of the child's frame. `wrenches` maps a frame's name to a wrench on its link,
        at the frame's origin, in world axes.

        With loops, a must be an acceleration that they allow. Active joints drive, as `inverse_dynamics` says, and
        loops have reactions too: on body b at b's frame. Where constraints are redundant, their least loads are taken.
        """
        if axes not in AXES:
            raise InputError(f"axes is {axes!r}, wanted 'world' or 'joint'")
        if self.mechanism.constrained:
            return self._reactions_in_loops(q, v, a, wrenches, axes)
        arrays = self._states(("q", q), ("v", v), ("a", a))
        if wrenches:
            arrays.append(self._frame_wrenches(arrays, wrenches))
        rows = self._reaction_kernel(axes, bool(wrenches))(*arrays)
        return {name: rows[..., i, :] for i, name in enumerate(reaction_names(self.mechanism))}

    def _reactions_in_loops(
        self, q: Any, v: Any, a: Any, wrenches: Wrenches | None, axes: str
    ) -> dict[str, Array]:
        """Reactions of the tree under what its loops, rods and guides bear, then those of the loops themselves."""
        q, v, a = self._states(("q", q), ("v", v), ("a", a))
        tau = self.inverse_dynamics(q, v, a, wrenches=wrenches)
        multipliers = self.loop_solution(q, v, tau, wrenches=wrenches).multipliers
        loads = dict(self.constraint_wrenches(q, multipliers))
        for name, wrench in (wrenches or {}).items():
            given = state_array(f"wrenches[{name!r}]", wrench, 6)
            loads[name] = loads[name] + given if name in loads else given
        found: dict[str, Array] = self.tree.reactions(q, v, a, loads, axes)
        borne = self._loads(q, multipliers)
        for closure in self.mechanism.closures:
            wrench = borne[closure.name]
            if axes == "joint":
                b = closure.b
                R = b.rotation if b.body == GROUND else self.pose(q, self.body_names[b.body])[..., :3, :3] @ b.rotation
                wrench = np.concatenate([_turned_back(R, wrench[..., :3]), _turned_back(R, wrench[..., 3:])], axis=-1)
            found[closure.name] = wrench
        return found

    def network(self) -> Network:
        """The mechanism as a network of components, loops included; arrays q and v of the model serve it."""
        return network_of(self.mechanism)

    def _frame_wrenches(self, arrays: list[Array], wrenches: Wrenches) -> Array:
        """(..., 6·frames): one slot for every frame, so that one kernel serves all sets of frames."""
        table = self.mechanism.frame_index
        given = [(choose("frame", n, table), state_array(f"wrenches[{n!r}]", w, 6)) for n, w in wrenches.items()]
        loads = np.zeros((*batch_shape([*arrays, *(w for _, w in given)]), len(table), 6))
        for index, wrench in given:
            loads[..., index, :] += wrench
        return loads.reshape(*loads.shape[:-2], -1)

    def _reaction_kernel(self, axes: str, loaded: bool) -> Kernel:
        name = f"reactions {axes}{' wrenches' if loaded else ''}"
        if name not in self._kernels:
            m = self.mechanism
            inputs: list[str | tuple[str, int]] = ["q", "v", "a"]
            if loaded:
                inputs.append(("loads", 6 * len(m.frames)))

            def text(q: Array, v: Array, a: Array, *loads: Array, domain: Domain) -> Array:
                table = loads[0].reshape(-1, 6) if loads else None
                return reactions(m, q, v, a, table, axes=axes, domain=domain)

            shapes = (("reactions", (len(reaction_names(m)), 6)),)
            self._kernels[name] = compiled(m, name, inputs, shapes, text)
        return self._kernels[name]


def _turned_back(R: Array, x: Array) -> Array:
    """Rᵀ x over leading dimensions."""
    return np.einsum("...ji,...j->...i", R, x)


__all__ = ["ReactionAnswers"]
