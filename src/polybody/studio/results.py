"""A run's folder: written whole or not at all, never over another one unless asked to, and then only over a run.

    trajectory.npz   arrays t, q, v, tau, kinetic, potential[, work, currents]
    trajectory.csv   the same, a column a number, a row a time
    run.json         model and its hash, versions, options, audit, what happened
    model.yaml       the mechanism, so that the folder can be looked at on its own
    joints, speeds, torques, energies as .png and .svg; report.html, which needs no network

`run.json` lists the files of its folder: only a folder that holds these and nothing else is replaced. Data come first:
where plots or report fail, the run is kept without them, and a warning says so.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polybody.description.files import read_bytes
from polybody.description.limits import MB, RUN_ARRAY_BYTES, RUN_FACTS_BYTES
from polybody.errors import InputError, warn
from polybody.staging import put, staged
from polybody.studio.channels import Channel, Item
from polybody.studio.record import Record, q_labels, v_labels

Array = np.ndarray
SCHEMA = 1


def check_folder(folder: str | os.PathLike[str], force: bool = False) -> Path:
    """The folder a run may be written to; said before anything is computed."""
    path = Path(folder)
    if path.exists():
        if not path.is_dir():
            raise InputError(f"{path}: is a file; expected a folder for the run")
        if any(path.iterdir()):
            if not force:
                raise InputError(f"{path}: exists; give another --output, or --force to replace it")
            _refuse_foreign(path)
    above = path.parent
    try:
        above.mkdir(parents=True, exist_ok=True)
        with staged(path):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path


def _refuse_foreign(path: Path) -> None:
    """A folder is replaced only if a manifest of ours lists everything in it."""
    advice = "so it is not replaced; give another --output"
    try:
        listed = _read_facts(path)["files"]
    except (InputError, KeyError):
        raise InputError(f"{path}: is not the folder of a run, {advice}") from None
    with os.scandir(path) as entries:
        foreign = [e.name for e in entries if e.name not in listed or not e.is_file(follow_symlinks=False)]
    if foreign:
        shown = ", ".join(repr(name) for name in sorted(foreign)[:5])
        raise InputError(f"{path}: holds {shown}, which the run did not write, {advice}")


def write_run(
    record: Record, folder: str | os.PathLike[str], *, force: bool = False, source: str | None = None
) -> Path:
    """Write everything into a neighbour folder, then rename it."""
    path = check_folder(folder, force)
    try:
        with staged(path) as fresh:
            facts = facts_of(record, source)
            fill_data(record, fresh)
            try:
                _fill_pictures(record, fresh, facts)
            except Exception as error:  # whatever a drawing library raises: the data are worth more than the pictures
                warn(f"{path}: plots or report could not be made ({type(error).__name__}: {error}); the data are kept")
            finally:  # an interrupt keeps the data too
                facts["files"] = sorted({"run.json", *os.listdir(fresh)})
                write_json(fresh / "run.json", facts)
                put(fresh, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """run.json."""
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def fill_data(record: Record, folder: Path) -> None:
    """The arrays of a run, and its model."""
    from polybody.description.mechanism_file.writer import mechanism_text

    np.savez_compressed(folder / "trajectory.npz", allow_pickle=False, **_arrays(record))
    columns = _columns(record)
    with open(folder / "trajectory.csv", "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerow(_distinct([name for name, _ in columns]))
        np.savetxt(stream, np.column_stack([values for _, values in columns]), delimiter=",", fmt="%.17g")
    (folder / "model.yaml").write_text(mechanism_text(_portable(record.model.description)), encoding="utf-8")


def _distinct(names: list[str]) -> list[str]:
    """Names of columns, a number added where two are the same."""
    taken: dict[str, None] = {}
    for name in names:
        free, k = name, 2
        while free in taken:
            free, k = f"{name} ({k})", k + 1
        taken[free] = None
    return list(taken)


def _fill_pictures(record: Record, folder: Path, facts: dict[str, Any]) -> None:
    from polybody.studio.plots import write_plots
    from polybody.studio.report import report_text

    write_plots(record, folder)
    (folder / "report.html").write_text(report_text(record, facts), encoding="utf-8")


def _portable(description: Any) -> Any:
    """The description with meshes by their full addresses, so that it can be read from another folder."""
    from polybody.studio.stage.shapes import find_mesh

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
    return arrays | {f"channel {k}": table for k, (_, table) in enumerate(record.more)}


def _columns(record: Record) -> list[tuple[str, Array]]:
    kinetic, potential = record.energies
    columns = [("t", record.t)]
    for letter, values, labels in (
        ("q", record.q, q_labels(record.model)),
        ("v", record.v, v_labels(record.model)),
        ("tau", record.tau, v_labels(record.model)),
    ):
        columns += [(f"{letter}:{label}", values[:, k]) for k, label in enumerate(labels)]
    columns += [("kinetic", kinetic), ("potential", potential)]
    return columns + ([] if record.work is None else [("work", record.work)])


def facts_of(record: Record, source: str | None) -> dict[str, Any]:
    return {
        **heading(record.kind),
        "model": {"name": record.model.name, "hash": record.model.mechanism.digest, "source": source},
        "options": plain(record.options),
        "audit": plain(record.audit),
        "happenings": plain(record.happenings),
        "stopped": record.stopped,
        "states": len(record.t),
        **({"channels": [channel.as_dict() for channel, _ in record.more]} if record.more else {}),
    }  # fmt: skip


def heading(kind: str) -> dict[str, Any]:
    """What run.json says of every kind of run."""
    import casadi
    import scipy

    from polybody import __version__

    return {
        "polybody_run": SCHEMA,
        "kind": kind,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "versions": {"polybody": __version__, "python": platform.python_version(), "numpy": np.__version__,
                     "scipy": scipy.__version__, "casadi": casadi.CasadiMeta.version()},
    }  # fmt: skip


def plain(value: Any) -> Any:
    """What JSON can say: lists and numbers; what is not finite is null."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def read_run(folder: str | os.PathLike[str]) -> Record:
    """A run's folder as a record; damage is named."""
    from polybody.model.load import load

    path = Path(folder)
    facts, arrays = _read_facts(path), _read_arrays(path / "trajectory.npz")
    missing = {"t", "q", "v", "tau"} - set(arrays)
    if missing:
        raise InputError(f"{path}: cannot be read as a run: trajectory.npz lacks {', '.join(sorted(missing))}")
    model = load(path / "model.yaml")
    n = arrays["t"].size
    sizes = {"t": (n,), "q": (n, model.nq), **dict.fromkeys(("v", "tau", "a"), (n, model.nv)),
             **dict.fromkeys(("work", "kinetic", "potential"), (n,))}  # fmt: skip
    for name, values in arrays.items():
        if name in sizes and values.shape != sizes[name]:
            raise InputError(f"{path}: {name} has shape {values.shape}; its model needs {sizes[name]}")
    if not n or not np.isfinite(arrays["t"]).all() or np.any(np.diff(arrays["t"]) < 0):
        raise InputError(f"{path}: cannot be read as a run: its times are not finite and increasing")
    record = Record(
        model, facts["kind"], arrays["t"], arrays["q"], arrays["v"], arrays["tau"], arrays.get("work"),
        arrays.get("currents"), facts["options"], facts["audit"], facts["happenings"], facts["stopped"],
    )  # fmt: skip
    if "a" in arrays:
        record.accelerations = arrays["a"]
    record.more = _more(path, facts.get("channels", []), arrays, n)
    return record


def _more(path: Path, said: Any, arrays: dict[str, Array], n: int) -> list[tuple[Channel, Array]]:
    """Channels besides the model's own, with their tables."""
    found = []
    try:
        for k, entry in enumerate(said):
            items = tuple(Item(str(item["label"]), str(item["unit"])) for item in entry["items"])
            channel = Channel(str(entry["key"]), str(entry["title"]), str(entry["short"]), items)
            found.append((channel, arrays[f"channel {k}"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a run: a channel lacks {error}") from None
    for channel, table in found:
        if table.shape != (n, len(channel.items)):
            raise InputError(f"{path}: channel {channel.key!r:.60} has shape {table.shape}; expected "
                             f"{(n, len(channel.items))}")
    return found


#: What run.json must hold to be used, and what stands for it where it says nothing.
_FACTS: dict[str, tuple[type | tuple[type, ...], Any]] = {
    "kind": (str, "simulation"),
    "options": (dict, {}),
    "audit": ((dict, type(None)), None),
    "happenings": (list, []),
    "stopped": ((str, type(None)), None),
}


def _read_facts(path: Path) -> dict[str, Any]:
    """run.json of a folder, its entries of the kinds they should have."""
    if not (path / "run.json").is_file():
        raise InputError(f"{path}: is not the folder of a run (it has no run.json)")
    try:
        facts = json.loads(read_bytes(path / "run.json", RUN_FACTS_BYTES, "run.json"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as a run ({error})") from None
    if not isinstance(facts, dict) or facts.get("polybody_run") != SCHEMA:
        raise InputError(f"{path}: cannot be read as a run: run.json has no known version")
    for key, (kind, default) in _FACTS.items():
        value = facts.setdefault(key, default)
        if value is None and default is not None:
            facts[key] = default
        elif not isinstance(value, kind):
            raise InputError(f"{path}: cannot be read as a run: {key} in run.json is {value!r:.60}")
    whole = all(isinstance(h, dict) and {"time", "name", "detail"} <= set(h) for h in facts["happenings"])
    files = facts.get("files", [])
    if not whole or not isinstance(files, list):
        raise InputError(f"{path}: cannot be read as a run: run.json has invalid lists of events or files")
    return facts


def _read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file: plain numbers, each as long as its header says, all together within bounds."""
    arrays: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path, RUN_ARRAY_BYTES, ".npz"))) as packed:
            if sum(part.file_size for part in packed.infolist()) > RUN_ARRAY_BYTES:
                raise InputError(f"{path}: unpacks to more than {RUN_ARRAY_BYTES // MB} MB")
            for part in packed.infolist():
                data = io.BytesIO(packed.read(part))
                version = np.lib.format.read_magic(data)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(data)
                left = data.getbuffer().nbytes - data.tell()
                if dtype.kind not in "fiu" or dtype.itemsize * int(np.prod(shape, dtype=object)) != left:
                    raise ValueError(f"{part.filename} is not an array of numbers of the size it states")
                data.seek(0)
                values = np.lib.format.read_array(data, allow_pickle=False)
                arrays[part.filename.removesuffix(".npy")] = values.astype(float)
    except InputError:
        raise
    except Exception as error:  # whatever the parsers of zip files and of NumPy's headers raise on damaged data
        raise InputError(f"{path}: cannot be read as a run ({type(error).__name__}: {error})") from None
    return arrays


__all__ = ["check_folder", "facts_of", "fill_data", "heading", "plain", "read_run", "write_json", "write_run"]
