"""Measured motions: sample times, positions, velocities where they were measured, and joint forces or currents.

A table has the columns `t, q1, …, qn, v1, …, vn, tau1, …, taun` in the order of the model's joints, or named by joints
(`q_shoulder`, `tau_elbow`). Velocities may be absent. Currents `i1, …` (`i_shoulder`) become forces by drive gains,
tau = gain · i. Joint forces may be those of all velocities, or of the active ones.
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
from polybody.mechanism.columns import actuated, plain_columns, velocity_names
from polybody.model.model import Model
from polybody.names import counted, listed

Array = np.ndarray
#: what a column's first letters mean
KINDS = {"t": "t", "time": "t", "q": "q", "v": "v", "tau": "tau", "i": "i"}
COLUMN = re.compile(r"(?P<kind>tau|time|t|q|v|i)(?:_(?P<name>.+)|(?P<number>\d+))?")
#: a table larger than this is not a recording of a robot
LARGEST_FILE = 2_000_000_000


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
        return _from_columns(model, _columns_of(path), drive_gains, source or path.name)
    if isinstance(data, Mapping):
        if "q" in data:
            return _from_arrays(model, data, drive_gains, source or "data")
        return _from_columns(model, {str(k): np.asarray(v, dtype=float) for k, v in data.items()}, drive_gains,
                             source or "data")  # fmt: skip
    if hasattr(data, "t") and hasattr(data, "q") and hasattr(data, "tau"):  # a run of pb.simulate
        return _from_arrays(model, {"t": data.t, "q": data.q, "v": data.v, "tau": data.tau}, None, source or "run")
    raise InputError(f"data is {type(data).__name__}; expected a .csv or .parquet file, or a mapping of t, q, v, tau")


def _columns_of(path: Path) -> dict[str, Array]:
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: larger than {LARGEST_FILE / 1e9:g} GB, not read")
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise InputError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
        table = parquet.read_table(path)
        return {name: np.asarray(table[name], dtype=float) for name in table.column_names}
    with path.open(encoding="utf-8-sig") as file:
        header = [x.strip().strip('"') for x in file.readline().split(",")]
        try:
            rows = np.genfromtxt(file, delimiter=",", dtype=float, ndmin=2)
        except ValueError as problem:
            raise InputError(f"{path}: not a table of numbers ({str(problem).splitlines()[-1].strip()})") from None
    if rows.shape[1] != len(header):
        raise InputError(f"{path}: the header has {counted(len(header), 'column')}, the rows {rows.shape[1]}")
    return dict(zip(header, rows.T, strict=True))


def _from_columns(
    model: Model, columns: Mapping[str, Array], drive_gains: Sequence[float] | None, source: str
) -> Recording:
    groups: dict[str, dict[str, Array]] = {"t": {}, "q": {}, "v": {}, "tau": {}, "i": {}}
    for name, values in columns.items():
        found = COLUMN.fullmatch(name)
        if found is None:
            warn(f"{source}: column {name!r} is not used; columns are t, q1, …, v1, …, tau1, … or i1, …, or q_JOINT, …")
            continue
        groups[KINDS[found["kind"]]][found["name"] or found["number"] or ""] = values
    if "" not in groups["t"]:
        raise InputError(f"{source}: no column t; available: {listed(columns)}")
    parts: dict[str, Any] = {"t": groups["t"][""]}
    names = velocity_names(model.mechanism)
    driven = [names[k] for k in actuated(model.mechanism)]
    for kind, size in (("q", model.nq), ("v", model.nv), ("tau", model.nv), ("i", model.nv)):
        if groups[kind]:
            parts[kind] = _ordered(groups[kind], kind, size, names, driven, source)
    return _from_arrays(model, parts, drive_gains, source)


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
    t, q = np.asarray(parts["t"], dtype=float).ravel(), np.atleast_2d(np.asarray(parts["q"], dtype=float))
    v = None if parts.get("v") is None else np.atleast_2d(np.asarray(parts["v"], dtype=float))
    tau = _forces(model, parts, drive_gains, source)
    for name, x in (("q", q), ("v", v), ("tau", tau)):
        if x is not None and len(x) != len(t):
            raise InputError(f"{source}: {name} has {counted(len(x), 'row')}, t has {len(t)}")
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
    return Recording(t, q, v, tau, source, dropped)


def _forces(model: Model, parts: Mapping[str, Any], drive_gains: Sequence[float] | None, source: str) -> Array:
    """tau (N, nv), from joint forces or currents; zeros at velocities that nothing drives."""
    driven = actuated(model.mechanism)
    given = parts.get("tau")
    if given is None and parts.get("i") is None:
        raise InputError(f"{source}: neither joint forces (tau1, …) nor currents (i1, …)")
    if given is None:
        if drive_gains is None:
            raise InputError(
                f"{source}: has currents; drive gains (N·m/A, one per current) convert them to joint forces"
            )
        currents, gains = np.atleast_2d(np.asarray(parts["i"], dtype=float)), np.asarray(drive_gains, dtype=float)
        if gains.shape not in ((currents.shape[1],), ()):
            raise InputError(f"{source}: {currents.shape[1]} currents and {counted(gains.size, 'drive gain')}")
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
