"""States that honour loops: velocities that follow from given ones, configurations that close the loops.

The gap of a loop changes at the rate of its slip, which is linear in v: with J the slips of unit velocities,

    J v = 0            velocities that keep loops, gears, rods, guides and relations
    J δ = −gap         a Newton step on the joints' manifolds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array
from polybody.errors import InputError, PolybodyError
from polybody.formulations.network.situation import Situation, gear_gaps, held_gaps, joint_values, situation

if TYPE_CHECKING:
    from polybody.formulations.network.builder import NetworkBuilder


def _slips(net: NetworkBuilder, state: Situation, also: Sequence[str] = ()) -> Array:
    """Slips of all that holds, and the velocities of the closing joints in `also`."""
    return np.concatenate([*_held(net, state, 1), *(state.joints[name].v for name in also)])


def _held(net: NetworkBuilder, state: Situation, which: int) -> list[Array]:
    """Gaps (which 0) or slips (1) of loops, gears, rods, guides and relations, in that order."""
    gears = np.array([gear_gaps(gear, state)[which] for gear in net.parts.gears.values()], dtype=float)
    held = held_gaps(net, state).values()
    return [*(pair[which] for pair in state.gaps.values()), gears, *(pair[which] for pair in held)]


def loop_jacobian(
    net: NetworkBuilder, q: Mapping[str, Array], names: Sequence[str], also: Sequence[str] = ()
) -> Array:
    """J: a column for each velocity of `names`, a row for each direction that is held, and those of `also`."""
    rest = {name: np.zeros(net.parts.joints[name].nv) for name in q}
    columns = []
    for name in names:
        for k in range(net.parts.joints[name].nv):
            unit = np.eye(net.parts.joints[name].nv)[k]
            columns.append(_slips(net, situation(net, q, {**rest, name: unit}, closed=False), also))
    if not columns:
        return np.zeros((len(_slips(net, situation(net, q, rest, closed=False), also)), 0))
    return np.column_stack(columns)


def complete_velocities(net: NetworkBuilder, q: Any, v: Any) -> dict[str, Array]:
    """v of every joint that has a configuration: given ones kept, the others from the loops."""
    known_q, known_v = joint_values(net, "q", q, FLOAT), joint_values(net, "v", v, FLOAT)
    free = [name for name in known_q if name not in known_v]
    if not free:
        return known_v
    rest = {name: np.zeros(net.parts.joints[name].nv) for name in free}
    state = situation(net, known_q, {**rest, **known_v}, closed=False)
    free = [name for name in free if name not in state.gaps]  # a joint that closes a loop is found anyway
    given = [name for name in known_v if name in state.gaps]
    held = sum(len(part) for part in _held(net, state, 1))
    wanted = np.concatenate([np.zeros(held), *(known_v[name] for name in given)])
    J = loop_jacobian(net, known_q, free, given)
    found, _, rank, _ = np.linalg.lstsq(J, wanted - _slips(net, state, given), rcond=1e-9)
    if rank < J.shape[1]:
        raise InputError(
            f"the velocities of {', '.join(map(repr, free))} do not follow from the given ones; "
            f"{J.shape[1] - rank} more must be given"
        )
    sizes = np.cumsum([net.parts.joints[name].nv for name in free])[:-1]
    return {**known_v, **dict(zip(free, np.split(found, sizes), strict=True))}


def close_loops(net: NetworkBuilder, q: Any, hold: Sequence[str] = (), tolerance: float = 1e-12) -> dict[str, Array]:
    """The configuration near q that closes every loop, with the joints in `hold` left as they are."""
    values = joint_values(net, "q", q, FLOAT)
    for name in hold:
        if name not in values:
            raise InputError(f"hold names {name!r}, which has no configuration in q")
    free = [name for name in values if name not in hold and net.parts.joints[name].nv]
    rest = {name: np.zeros(net.parts.joints[name].nv) for name in values}
    for _ in range(50):
        state = situation(net, values, rest, closed=False)
        gap = np.concatenate(_held(net, state, 0))
        if np.abs(gap).max(initial=0.0) < tolerance:
            return values
        step = np.linalg.lstsq(loop_jacobian(net, values, free), -gap, rcond=1e-9)[0]
        step *= min(1.0, 0.5 / max(np.abs(step).max(initial=0.0), 1e-300))  # far from closed, half a radian at a time
        sizes = np.cumsum([net.parts.joints[name].nv for name in free])[:-1]
        for name, part in zip(free, np.split(step, sizes), strict=True):
            model = net.parts.joints[name].model
            assert model is not None
            values[name] = model.integrate(values[name], part)
    gaps = {**state.gaps, **held_gaps(net, state)}
    worst = max(gaps, key=lambda name: float(np.abs(gaps[name][0]).max()))
    raise PolybodyError(
        f"the loops could not be closed from here: {worst!r} stays {np.abs(gaps[worst][0]).max():.3g} "
        "(m or rad) apart; start nearer, or hold fewer joints"
    )


__all__ = ["close_loops", "complete_velocities", "loop_jacobian"]
