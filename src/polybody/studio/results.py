"""A run's folder: written whole or not at all, never over another one unless told to.

    trajectory.npz   arrays t, q, v, tau, kinetic, potential[, work, currents]
    trajectory.csv   the same, a column a number, a row a time
    run.json         model and its hash, versions, options, audit, what happened
    model.yaml       the mechanism, so that the folder can be looked at on its own
    joints, speeds, torques, energies as .png and .svg; report.html, which needs no network
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import tempfile
import time
import zipfile
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.studio.record import Record, q_labels, v_labels

Array = np.ndarray
SCHEMA = 1


def check_folder(folder: str | os.PathLike[str], force: bool = False) -> Path:
    """The folder a run may be written to; said before anything is computed."""
    path = Path(folder)
    if path.exists():
        if not path.is_dir():
            raise InputError(f"{path}: is a file; a folder for the run is wanted")
        if any(path.iterdir()):
            if not force:
                raise InputError(f"{path}: exists; give another --output, or --force to replace it")
            if not (path / "run.json").is_file():
                raise InputError(f"{path}: is not the folder of a run, so it is not replaced; give another --output")
    above = path.parent
    try:
        above.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=above, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path


def write_run(
    record: Record, folder: str | os.PathLike[str], *, force: bool = False, source: str | None = None
) -> Path:
    """Write everything into a neighbour folder, then rename it."""
    path = check_folder(folder, force)
    staged = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        _fill(record, staged, source)
        os.chmod(staged, 0o755)
        _swap(staged, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)  # gone once it was renamed
    return path


def _swap(staged: Path, path: Path) -> None:
    old = None
    if path.exists():
        old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old."))
        os.replace(path, old / "run")
    try:
        os.replace(staged, path)
    except OSError:
        if old is not None:
            with contextlib.suppress(OSError):
                os.replace(old / "run", path)
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _fill(record: Record, folder: Path, source: str | None) -> None:
    from polybody.description.mechanism_file.writer import mechanism_text
    from polybody.studio.plots import write_plots
    from polybody.studio.report import report_text

    columns = _columns(record)
    np.savez_compressed(folder / "trajectory.npz", allow_pickle=False, **_arrays(record))
    header = ",".join(columns)
    table = np.column_stack(list(columns.values()))
    np.savetxt(folder / "trajectory.csv", table, delimiter=",", header=header, comments="", fmt="%.17g")
    (folder / "model.yaml").write_text(mechanism_text(_portable(record.model.description)), encoding="utf-8")
    facts = _facts(record, source)
    (folder / "run.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_plots(record, folder)
    (folder / "report.html").write_text(report_text(record, folder, facts), encoding="utf-8")


def _portable(description: Any) -> Any:
    """The description with meshes by their full addresses, so that it can be read from another folder."""
    from polybody.studio.viewer.shapes import find_mesh

    def addressed(visual: Any) -> Any:
        found = find_mesh(visual.mesh, description.source)
        return visual if found is None else replace(visual, mesh=Path(found).resolve().as_uri())

    def kept(visual: Any) -> bool:
        return visual.mesh is None or "://" in visual.mesh

    bodies = [replace(b, visuals=tuple(v for v in map(addressed, b.visuals) if kept(v))) for b in description.bodies]
    return replace(description, bodies=tuple(bodies))


def _arrays(record: Record) -> dict[str, Array]:
    kinetic, potential = record.energies
    arrays = {"t": record.t, "q": record.q, "v": record.v, "tau": record.tau, "a": record.accelerations,
              "kinetic": kinetic, "potential": potential}  # fmt: skip
    for name in ("work", "currents"):
        values = getattr(record, name)
        if values is not None:
            arrays[name] = values
    return arrays


def _columns(record: Record) -> dict[str, Array]:
    kinetic, potential = record.energies
    columns = {"t": record.t}
    for letter, values, labels in (
        ("q", record.q, q_labels(record.model)),
        ("v", record.v, v_labels(record.model)),
        ("tau", record.tau, v_labels(record.model)),
    ):
        columns |= {f"{letter}:{label}".replace(",", ";"): values[:, k] for k, label in enumerate(labels)}
    columns |= {"kinetic": kinetic, "potential": potential}
    return columns | ({} if record.work is None else {"work": record.work})


def _facts(record: Record, source: str | None) -> dict[str, Any]:
    import scipy

    from polybody import __version__

    return {
        "polybody_run": SCHEMA,
        "kind": record.kind,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "model": {"name": record.model.name, "hash": record.model.mechanism.digest, "source": source},
        "versions": {"polybody": __version__, "python": platform.python_version(), "numpy": np.__version__,
                     "scipy": scipy.__version__, "casadi": metadata.version("casadi")},
        "options": _plain(record.options),
        "audit": _plain(record.audit),
        "happenings": _plain(record.happenings),
        "stopped": record.stopped,
        "states": len(record.t),
    }  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def read_run(folder: str | os.PathLike[str]) -> Record:
    """A run's folder as a record; damage is named."""
    from polybody.model.load import load

    path = Path(folder)
    if not (path / "run.json").is_file():
        raise InputError(f"{path}: is not the folder of a run (it has no run.json)")
    try:
        facts = json.loads((path / "run.json").read_text(encoding="utf-8"))
        with np.load(path / "trajectory.npz", allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        missing = {"t", "q", "v", "tau"} - set(arrays)
        if missing or not isinstance(facts, dict) or facts.get("polybody_run") != SCHEMA:
            raise InputError(f"{path}: lacks {', '.join(sorted(missing)) or 'a known version in run.json'}")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read as a run ({error})") from None
    model = load(path / "model.yaml")
    n = len(arrays["t"])
    for name, size in (("q", model.nq), ("v", model.nv), ("tau", model.nv)):
        if arrays[name].shape != (n, size):
            raise InputError(f"{path}: {name} has shape {arrays[name].shape}; its model wants ({n}, {size})")
    record = Record(
        model, str(facts["kind"]), arrays["t"], arrays["q"], arrays["v"], arrays["tau"], arrays.get("work"),
        arrays.get("currents"), facts.get("options") or {}, facts.get("audit"), facts.get("happenings") or [],
        facts.get("stopped"),
    )  # fmt: skip
    if "a" in arrays:
        record.accelerations = arrays["a"]
    return record


__all__ = ["check_folder", "read_run", "write_run"]
