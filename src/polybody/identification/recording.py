"""Measured motions: sample times, positions, velocities where they were measured, and joint forces or currents.

A table has the columns `t, q1, …, qn, v1, …, vn, tau1, …, taun` in the order of the model's joints, or named by joints
(`q_shoulder`, `tau_elbow`; the numbers of a joint with several are `q_base_0`, …). Velocities may be absent. Currents
`i1, …` (`i_shoulder`) become forces by drive gains, tau = gain · i. Joint forces may be those of all velocities, or of
the active ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.identification.tables import columns_of
from polybody.mechanism.columns import actuated, plain_columns, position_names, velocity_names
from polybody.model.model import Model
from polybody.names import counted, listed

Array = np.ndarray
#: what a column's first letters mean
KINDS = {"t": "t", "time": "t", "q": "q", "v": "v", "tau": "tau", "i": "i"}
COLUMN = re.compile(r"(?P<kind>tau|time|t|q|v|i)(?:_(?P<name>.+)|(?P<number>\d+))?", re.IGNORECASE)
#: a number larger than this is not measured on a robot
LARGEST = 1e12
#: longest recording, in samples of its usual spacing for each sample it has
MOST_GAPS = 100
#: what is told as a sign of other units: seconds between samples, parts of a joint's range beyond it, times the effort
SLOWEST, FAR, STRONG = 0.5, 0.5, 5.0


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


def recording(
    model: Model, data: Any, *, drive_gains: Sequence[float] | None = None, source: str | None = None
) -> Recording:
    """A recording from a file (.csv, .parquet), a mapping of arrays (t, q, v, tau or i), or a `Recording`."""
    if isinstance(data, Recording):
        return data
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        return _from_columns(model, columns_of(path), drive_gains, source or path.name)
    if isinstance(data, Mapping):
        if "q" in data:
            return _from_arrays(model, data, drive_gains, source or "data")
        return _from_columns(model, {str(k): np.asarray(v, dtype=float) for k, v in data.items()}, drive_gains,
                             source or "data")  # fmt: skip
    if hasattr(data, "t") and hasattr(data, "q") and hasattr(data, "tau"):  # a run of pb.simulate
        return _from_arrays(model, {"t": data.t, "q": data.q, "v": data.v, "tau": data.tau}, None, source or "run")
    raise InputError(f"data is {type(data).__name__}; expected a .csv or .parquet file, or a mapping of t, q, v, tau")


def _from_columns(
    model: Model, columns: Mapping[str, Array], drive_gains: Sequence[float] | None, source: str
) -> Recording:
    groups: dict[str, dict[str, Array]] = {"t": {}, "q": {}, "v": {}, "tau": {}, "i": {}}
    for name, values in columns.items():
        found = COLUMN.fullmatch(name)
        if found is None:
            warn(f"{source}: column {name!r} is not used; columns are t, q1, …, v1, …, tau1, … or i1, …, or q_JOINT, …")
            continue
        groups[KINDS[found["kind"].lower()]][found["name"] or found["number"] or ""] = values
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
    for name, (leader, factor, _) in followers.items():
        if kind == "tau" and leader in result:
            result[leader] = result[leader] + factor * group[name]
    return result


def _ordered(
    group: Mapping[str, Array], kind: str, size: int, names: Sequence[str], driven: Sequence[str], source: str
) -> Array:
    """The columns of one kind in the order of the model."""
    if all(key.isdigit() for key in group):
        numbers = sorted(int(key) for key in group)
        if numbers != list(range(1, len(numbers) + 1)) or len(numbers) not in (size, len(driven)):
            raise InputError(
                f"{source}: columns {kind}{numbers[0]} … {kind}{numbers[-1]}; expected {kind}1 … {kind}{size}"
            )
        return np.column_stack([group[str(k)] for k in numbers])
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
        _compare_rates(model, t, q, v, source)
    _compare_limits(model, t, q, tau, source)
    return Recording(t, q, v, tau, source, dropped)


def _compare_rates(model: Model, t: Array, q: Array, v: Array, source: str) -> None:
    """Warn where velocities are not the rates of positions: of other units, or of another joint."""
    columns = plain_columns(model.mechanism, range(model.nv)) if model.nq == model.nv else None
    if columns is None:
        return
    rates = np.gradient(q[:, columns], t, axis=0)
    size = np.linalg.norm(rates, axis=0)
    slope = np.sum(rates * v, axis=0) / np.maximum(size**2, 1e-300)
    names = velocity_names(model.mechanism)
    wrong = [k for k in range(model.nv) if size[k] > 1e-3 * size.max() and not 0.5 < slope[k] < 2.0]
    if wrong:
        told = ", ".join(f"{names[k]} {slope[k]:.3g}" for k in wrong[:4])
        warn(f"{source}: velocities are not the rates of positions (their ratio: {told}); expected s, rad and rad/s, "
             "columns in the order of the model's joints")


def _compare_limits(model: Model, t: Array, q: Array, tau: Array, source: str) -> None:
    """Warn where numbers are far beyond what the model's joints can do, as in degrees, milliseconds or N·mm."""
    limits, names = model.joint_limits(), velocity_names(model.mechanism)
    spacing = float(np.median(np.diff(t)))
    if spacing > SLOWEST:
        warn(f"{source}: samples are {spacing:g} s apart; expected t in seconds")
    if model.nq == model.nv:
        room = FAR * np.maximum(limits["upper"] - limits["lower"], 1e-3)
        out = np.flatnonzero((q.min(axis=0) < limits["lower"] - room) | (q.max(axis=0) > limits["upper"] + room))
        if len(out):
            k = out[0]
            warn(f"{source}: positions of {listed([names[k] for k in out])} are far beyond the joint limits "
                 f"({names[k]}: {q[:, k].min():.4g} to {q[:, k].max():.4g}, limits {limits['lower'][k]:.4g} to "
                 f"{limits['upper'][k]:.4g}); expected rad or m, columns in the order of the model's joints")
    largest = np.sqrt(np.mean(tau**2, axis=0))
    strong = np.flatnonzero((largest > STRONG * limits["effort"]) & (limits["effort"] > 0))
    if len(strong):
        k = strong[0]
        warn(f"{source}: joint forces of {listed([names[k] for k in strong])} are far beyond the effort limits "
             f"({names[k]}: rms {largest[k]:.4g}, limit {limits['effort'][k]:.4g}); expected N·m or N")


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


__all__ = ["Recording", "recording"]
