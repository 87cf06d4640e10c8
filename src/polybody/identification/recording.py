"""Measured motions: sample times, positions, velocities where they were measured, and joint forces or currents.

A table has the columns `t, q1, …, qn, v1, …, vn, tau1, …, taun` in the order of the model's joints, or named by joints
(`q_shoulder`, `tau_elbow`; the numbers of a joint with several are `q_base_0`, …), with units where they are not those
of SI (`headers`). Velocities may be absent. Currents `i1, …` (`i_shoulder`) become forces by drive gains, tau = gain ·
i. Joint forces may be those of all velocities, or of the active ones. Where samples are missing for longer than a
filter should bridge, a recording becomes several.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.identification.headers import column, factor, factors
from polybody.identification.recording_checks import check_forces, check_limits, check_rates
from polybody.identification.tables import columns_of
from polybody.late import dataclass
from polybody.mechanism.columns import actuated, plain_columns, position_names, velocity_names
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.names import counted, listed

Array = np.ndarray
#: a number larger than this is not measured on a robot
LARGEST = 1e12
#: longest recording, in samples of its usual spacing for each sample it has
MOST_GAPS = 100
#: a gap: so many times the usual spacing, and so many seconds; and samples that a part must have
GAP, GAP_SECONDS, PART = 10, 0.1, 50


@dataclass(frozen=True, eq=False)
class Recording:
    """One recorded motion: t (N,), q (N, nq), v (N, nv) or None, tau (N, nv)."""

    t: Array
    q: Array
    v: Array | None
    tau: Array
    source: str = "data"
    dropped: int = 0  # rows with missing numbers

    def __len__(self) -> int:
        return len(self.t)


def recordings(
    model: Model, data: Any, *, drive_gains: Sequence[float] | None = None, units: Mapping[str, str] | None = None
) -> list[Recording]:
    """The parts without gaps of one or several recordings."""
    many = [] if data is None else data if isinstance(data, list | tuple) else [data]
    read = [recording(model, x, drive_gains=drive_gains, units=units) for x in many]
    return [part for record in read for part in without_gaps(record)]


def recording(
    model: Model, data: Any, *, drive_gains: Sequence[float] | None = None, units: Mapping[str, str] | None = None
) -> Recording:
    """A recording from a file (.csv, .parquet), a mapping of arrays (t, q, v, tau or i), a table of
    pandas or polars with the columns of a file, or a `Recording`.

    `units` are those of t, q, v, tau and i where they are not those of SI: {"t": "ms", "q": "deg"}; a unit in the
    header of a column comes before.
    """
    if isinstance(data, Recording):
        return data
    known = factors(units)
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        return _from_columns(model, columns_of(path), drive_gains, path.name, known)
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):  # a table of pandas or polars
        data = {str(name): np.asarray(data[name]) for name in data.columns}
    if isinstance(data, Mapping):
        if "q" in data and np.ndim(data["q"]) == 2:
            for name in sorted(set(map(str, data)) - {"t", "q", "v", "tau", "i"}):
                warn(f"data: {name!r} is not used; expected t, q, v, tau or i")
            parts = {k: x if x is None else float_array(f"data: {k}", x) * known.get(k, 1.0) for k, x in data.items()}
            return _from_arrays(model, parts, drive_gains, "data")
        columns = {str(k): float_array(f"data: {k}", v) for k, v in data.items()}
        return _from_columns(model, columns, drive_gains, "data", known)
    if hasattr(data, "t") and hasattr(data, "q") and hasattr(data, "tau"):  # a run of pb.simulate
        return _from_arrays(model, {"t": data.t, "q": data.q, "v": data.v, "tau": data.tau}, None, "run")
    raise InputError(f"data is {type(data).__name__}; expected a .csv or .parquet file, a table of pandas "
                     "or polars, or a mapping of t, q, v, tau")


def without_gaps(record: Recording) -> list[Recording]:
    """The stretches between gaps: across one, positions and forces would be invented."""
    steps = np.diff(record.t)
    gaps = np.flatnonzero(steps > max(GAP * float(np.median(steps)), GAP_SECONDS))
    if not len(gaps):
        return [record]
    ends = [0, *(int(k) + 1 for k in gaps), len(record)]
    parts = [slice(a, b) for a, b in pairwise(ends) if b - a >= PART]
    if not parts:
        raise InputError(f"{record.source}: {counted(len(gaps), 'gap')} leave no {PART} samples in a row")
    left = len(record) - sum(x.stop - x.start for x in parts)
    k = int(gaps[0])
    warn(f"{record.source}: {counted(len(gaps), 'gap')} without samples, the first from {record.t[k]:.4g} to "
         f"{record.t[k + 1]:.4g} s; used in {counted(len(parts), 'part')}"
         + (f", {counted(left, 'sample')} in shorter ones left out" if left else ""))  # fmt: skip
    return [
        replace(record, t=record.t[x], q=record.q[x], v=None if record.v is None else record.v[x], tau=record.tau[x],
                source=f"{record.source}, part {k + 1}", dropped=record.dropped if k == 0 else 0)
        for k, x in enumerate(parts)
    ]  # fmt: skip


def _from_columns(
    model: Model, columns: Mapping[str, Array], drive_gains: Sequence[float] | None, source: str,
    known: Mapping[str, float],
) -> Recording:
    groups: dict[str, dict[str, Array]] = {"t": {}, "q": {}, "v": {}, "tau": {}, "i": {}}
    for name, values in columns.items():
        found = column(name)
        if found is None:
            warn(f"{source}: column {name!r} is not used; columns are t, q1, …, v1, …, tau1, … or i1, …, or q_JOINT, …")
            continue
        if found.key in groups[found.kind]:
            raise InputError(f"{source}: column {name!r} says {found.kind}{found.key} again")
        scale = known.get(found.kind, 1.0)
        if found.unit is not None:
            scale = factor(found.kind, found.unit, f"{source}: column {name!r}")
        groups[found.kind][found.key] = values * scale
    if "" not in groups["t"]:
        raise InputError(f"{source}: no column t; available: {listed(columns)}")
    parts: dict[str, Any] = {"t": groups["t"][""]}
    names = velocity_names(model.mechanism)
    driven = [names[k] for k in actuated(model.mechanism)]
    places = position_names(model.mechanism)
    for kind, own in (("q", places), ("v", names), ("tau", names), ("i", names)):
        if groups[kind]:
            group = _without_followers(model, groups[kind], kind, source)
            parts[kind] = _ordered(group, kind, len(own), own, driven, source)
    return _from_arrays(model, parts, drive_gains, source)


def _without_followers(model: Model, group: Mapping[str, Array], kind: str, source: str) -> Mapping[str, Array]:
    """Columns by name without those of joints that follow others: their forces act on the leader, the rest is known."""
    followers = {name: law for name, law in model.mechanism.followers.items() if name in group}
    if not followers:
        return group
    result = {name: values for name, values in group.items() if name not in followers}
    if kind == "i":
        name = next(iter(followers))
        raise InputError(f"{source}: column i_{name}: the joint follows another and has no drive of its own")
    warn(f"{source}: {', '.join(f'{kind}_{name}' for name in followers)}: "
         + ("added to the leader by its ratio" if kind == "tau" else "follows another joint; its column is not used"))
    for name, (leader, ratio, _) in followers.items():
        if kind == "tau" and leader in result:
            result[leader] = result[leader] + ratio * group[name]
    return result


def _ordered(
    group: Mapping[str, Array], kind: str, size: int, names: Sequence[str], driven: Sequence[str], source: str
) -> Array:
    """The columns of one kind in the order of the model."""
    if list(group) == [""] and 1 in (size, len(driven)):  # the only joint needs no number
        return group[""][:, None]
    if all(key.isdigit() for key in group):
        numbers = sorted(group, key=int)
        counted_up = [int(key) for key in numbers]
        first = counted_up[0]
        whole = counted_up == list(range(first, first + len(numbers))) and first in (0, 1)
        if not whole or len(numbers) not in (size, len(driven)):
            raise InputError(
                f"{source}: columns {kind}{numbers[0]} … {kind}{numbers[-1]}; expected {kind}1 … {kind}{size}"
            )
        return np.column_stack([group[key] for key in numbers])
    if any(key.isdigit() and key not in names for key in group):
        raise InputError(f"{source}: columns of {kind} are numbered in part and named in part; expected either")
    for key in group:
        if key not in names:
            raise InputError(f"{source}: column {kind}_{key}: no joint {key!r}; available: {listed(names)}")
    order = names if len(group) == len(names) else driven
    missing = [name for name in order if name not in group]
    if missing:
        raise InputError(f"{source}: no column {', '.join(f'{kind}_{x}' for x in missing)}")
    return np.column_stack([group[name] for name in order])


def _from_arrays(
    model: Model, parts: Mapping[str, Any], drive_gains: Sequence[float] | None, source: str
) -> Recording:
    missing = [name for name in ("t", "q") if parts.get(name) is None]
    if missing:
        raise InputError(f"{source}: no {'sample times t' if missing[0] == 't' else 'positions q1, …'}")
    t, q = np.asarray(parts["t"], dtype=float).ravel(), np.atleast_2d(np.asarray(parts["q"], dtype=float))
    v = None if parts.get("v") is None else np.atleast_2d(np.asarray(parts["v"], dtype=float))
    tau = _forces(model, parts, drive_gains, source)
    for name, x in (("q", q), ("v", v), ("tau", tau)):
        if x is not None and len(x) != len(t):
            raise InputError(f"{source}: {name} has {counted(len(x), 'row')}, t has {len(t)}")
    for name, x in (("t", t), ("q", q), ("v", v), ("tau", tau)):
        size = 0.0 if x is None else float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
        if size > LARGEST:
            raise InputError(f"{source}: {name} has numbers up to {size:.1e}; expected s, rad or m, N·m or N")
    good = np.isfinite(t) & np.isfinite(q).all(axis=1) & np.isfinite(tau).all(axis=1)
    if v is not None:
        good &= np.isfinite(v).all(axis=1)
    dropped = int(np.sum(~good))
    if dropped:
        warn(f"{source}: {dropped} of {len(t)} rows have missing or non-finite numbers and are left out")
    t, q, tau, v = t[good], q[good], tau[good], None if v is None else v[good]
    order = np.argsort(t, kind="stable")
    t, first = np.unique(t[order], return_index=True)
    if len(first) < len(order):
        warn(f"{source}: {counted(len(order) - len(first), 'sample')} repeat the time of another and are left out; "
             "times that begin again belong to another recording")
    q, tau, v = q[order][first], tau[order][first], None if v is None else v[order][first]
    if len(t) < 20:
        raise InputError(f"{source}: {counted(len(t), 'usable sample')}; at least 20 are needed")
    q = _whole(model, q, source)
    if v is not None and v.shape[1] != model.nv:
        v = None  # of the active joints only: velocities of all follow from positions
    if not np.ptp(q, axis=0).any():
        raise InputError(f"{source}: no joint moves; parameters show in motions only")
    if t[-1] - t[0] > MOST_GAPS * len(t) * float(np.median(np.diff(t))):
        raise InputError(f"{source}: times go from {t[0]:g} to {t[-1]:g} s, and most of the {len(t)} samples are "
                         "far closer; split the recording, or correct its times")
    if v is not None:
        check_rates(model, t, q, v, source)
    check_limits(model, t, q, tau, source)
    check_forces(model, q, tau, source)
    return Recording(t, q, v, tau, source, dropped)


def _forces(model: Model, parts: Mapping[str, Any], drive_gains: Sequence[float] | None, source: str) -> Array:
    """tau (N, nv), from joint forces or currents; zeros at velocities that nothing drives."""
    driven = actuated(model.mechanism)
    given = parts.get("tau")
    if given is None and parts.get("i") is None:
        raise InputError(f"{source}: neither joint forces (tau1, …) nor currents (i1, …)")
    if given is not None and (parts.get("i") is not None or drive_gains is not None):
        warn(f"{source}: has joint forces; currents and drive gains are not used")
    if given is None:
        if drive_gains is None:
            raise InputError(
                f"{source}: has currents; drive gains (N·m/A, one per current) convert them to joint forces"
            )
        currents, gains = np.atleast_2d(np.asarray(parts["i"], dtype=float)), np.asarray(drive_gains, dtype=float)
        if gains.shape not in ((currents.shape[1],), ()):
            raise InputError(f"{source}: {currents.shape[1]} currents and {counted(gains.size, 'drive gain')}")
        if not np.all(np.isfinite(gains)) or not np.all(gains):
            raise InputError(f"{source}: drive gains are {gains.tolist()}; expected finite numbers other than zero")
        given = currents * gains
    tau = np.atleast_2d(np.asarray(given, dtype=float))
    if tau.shape[1] == model.nv:
        return tau
    if tau.shape[1] != len(driven):
        there = f"the model has {counted(model.nv, 'velocity', 'velocities')}, {len(driven)} of them active"
        raise InputError(f"{source}: {tau.shape[1]} joint forces; {there}")
    whole = np.zeros((len(tau), model.nv))
    whole[:, driven] = tau
    return whole


def _whole(model: Model, q: Array, source: str) -> Array:
    """q of all joints: as it is, or assembled from the active joints' where loops let the others follow."""
    if q.shape[1] == model.nq:
        return model.normalize(q)
    driven = actuated(model.mechanism)
    columns = plain_columns(model.mechanism, driven)
    if not model.mechanism.constrained or q.shape[1] != len(driven) or columns is None:
        raise InputError(f"{source}: {q.shape[1]} positions; the model has {model.nq}")
    names = velocity_names(model.mechanism)
    held = [names[k] for k in driven]
    rows, guess = [], model.assemble()
    for row in q:
        guess = guess.copy()
        guess[columns] = row
        guess = model.assemble(guess, hold=held, limits=False)
        rows.append(guess)
    return np.array(rows)


__all__ = ["Recording", "recording", "recordings", "without_gaps"]
