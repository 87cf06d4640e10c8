"""What the page is given: the stage, its names and facts, coordinates, runs and first state, as one content to pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError, warn
from polybody.model.model import Model
from polybody.studio.channels import channels, holding, tables
from polybody.studio.record import Record
from polybody.studio.stage.shapes import KINDS, PALETTE
from polybody.studio.stage.stage import Stage, as_poses
from polybody.studio.stage.welding import distinct
from polybody.studio.viewer.pack import mesh_content
from polybody.studio.viewer.posing import Posing

Array = np.ndarray
#: states of a run that the page keeps: more are thinned out evenly
MOST_STATES = 1500


def stage_content(stage: Stage) -> dict[str, Any]:
    """Everything that does not change while one looks, but for the triangles, which `with_meshes` adds."""
    model, m = stage.model, stage.model.mechanism
    bodies = []
    count = 0
    for index, figure in enumerate(stage.figures):
        parts = []
        for part in figure.parts:
            parts.append({"mesh": count, "color": list(part.color), "label": part.label, "joint": part.joint})
            count += 1
        moves = index < len(m.bodies)
        body = m.bodies[index] if moves else None
        bodies.append({
            "name": figure.name, "color": list(PALETTE[index % len(PALETTE)]) if moves else [110, 118, 130],
            "mass": body.mass if body else 0.0, "com": [float(x) for x in body.com] if body else [0.0, 0.0, 0.0],
            "facts": body_facts(model, index), "hull": figure.hull.astype(np.float32).ravel(), "parts": parts,
        })  # fmt: skip
    ellipsoids = [
        {"body": index, "half": [float(x) for x in half], "pose": [float(x) for x in as_poses(pose[None])[0]]}
        for index, half, pose in stage.ellipsoids
    ]
    layers = [layer.as_dict() for layer in stage.loads.layers]
    if m.constrained:  # shown by the analysis of that name alone
        layers.append({"key": "internal loads", "unit": "of the load", "names": [], "moment": False, "offered": False})
    return {
        "format": 1, "name": model.name, "up": _floats(stage.up), "size": stage.size, "low": _floats(stage.low),
        "high": _floats(stage.high), "ground": stage.ground, "ellipsoid_scale": stage.ellipsoid_scale,
        "view": best_view(stage), "bodies": bodies, "meshes": [], "joints": joint_list(model),
        "loops": [{"name": loop.name, "kind": loop.kind} for loop in m.description.loops], "frames": stage.frames(),
        "layers": layers, "ellipsoids": ellipsoids, "live": None,
        "configurations": [], "runs": [], "coordinates": [], "analyses": None,
    }  # fmt: skip


def with_meshes(stage: Stage, content: dict[str, Any]) -> dict[str, Any]:
    """The content with the triangles of all parts, in the order of `stage_content`."""
    return content | {"meshes": [mesh_content(part.mesh) for figure in stage.figures for part in figure.parts]}


def best_view(stage: Stage) -> list[float]:
    """Azimuth and elevation to begin with: a mechanism that lies in an upright plane is looked at squarely."""
    spread = stage.high - stage.low
    thin = int(np.argmin(spread))
    if spread[thin] < 0.16 * np.sort(spread)[1] and abs(stage.up[thin]) < 0.5:
        side = np.cross([0.0, 1.0, 0.0] if abs(stage.up[1]) < 0.9 else [0.0, 0.0, 1.0], stage.up)
        side = side / np.linalg.norm(side)
        other, normal = np.cross(stage.up, side), np.eye(3)[thin]
        if normal @ np.array([1.0, -1.0, 1.0]) < 0:
            normal = -normal
        return [float(np.arctan2(normal @ other, normal @ side)) - 0.22, 0.2]
    return [-0.72, 0.36]


def _floats(values: Any) -> list[float]:
    return [float(x) for x in values]


def _text(values: Any, unit: str) -> str:
    return f"{', '.join(f'{x:.4g}' for x in np.ravel(values))} {unit}".replace("-", "−")


def body_facts(model: Model, index: int) -> list[list[str]]:
    m = model.mechanism
    if index >= len(m.bodies):
        return [["the ground", "does not move"]]
    body = m.bodies[index]
    facts = [["mass", _text(body.mass, "kg")]]
    if body.mass > 0:
        facts += [["mass centre in body", _text(body.com, "m")],
                  ["principal inertias", _text(np.linalg.eigvalsh(body.inertia), "kg m²")]]  # fmt: skip
    merged = [name for name in body.links if name != body.name]
    if merged:
        facts.append(["fixed to it", ", ".join(merged)])
    return facts


def joint_list(model: Model) -> list[dict[str, Any]]:
    m = model.mechanism
    found = []
    for joint in m.joints:
        H = joint.model.velocity_map(joint.model.neutral())
        axes = []
        if joint.nv <= 2:
            for column in H.T:
                turns = bool(np.any(column[:3]))
                part = column[:3] if turns else column[3:]
                axes.append({"direction": _floats(part / np.linalg.norm(part)), "turns": turns})
        units = ["rad" if np.any(column[:3]) else "m" for column in H.T]
        facts = [["kind", joint.kind], ["from, to", f"{joint.record.parent} → {joint.record.child}"]]
        if joint.follows:
            leader, factor, offset = m.followers[joint.name]
            facts.append(["follows", f"{leader} × {factor:.4g} + {offset:.4g}"])
        elif joint.nq == joint.nv:
            for k, unit in enumerate(units):
                low, high = float(joint.limits.lower[k]), float(joint.limits.upper[k])
                if np.isfinite(low) or np.isfinite(high):
                    facts.append(["limits", f"{low:.4g} to {high:.4g} {unit}".replace("-", "−")])
        for label, matrix in (("stiffness", joint.stiffness), ("damping", joint.damping)):
            if np.any(matrix):
                force = "N m" if units[0] == "rad" else "N"
                per = ("/" + units[0]) if label == "stiffness" else f" s/{units[0]}"
                facts.append([label, _text(np.diag(np.atleast_2d(matrix)), force + per)])
        facts.append(["driven", "yes" if np.any(joint.active) else "no"])
        found.append({
            "name": joint.name, "kind": joint.kind, "color": list(KINDS.get(joint.kind, KINDS["custom"])),
            "body": joint.index, "axes": axes, "facts": facts,
        })  # fmt: skip
    return found


def state_content(
    stage: Stage, posing: Posing, q: Array, v: Array, a: Array | None, tau: Array | None, t: float, wanted: set[str]
) -> tuple[dict[str, Any], str | None]:
    """One state as the page takes it, and why layers are missing from it, where they are."""
    T = stage.matrices(q)
    told = tables(stage.model, q[None], v[None], None if a is None else a[None], None if tau is None else tau[None])
    values = {key: np.asarray(table, dtype=np.float32)[0] for key, table in told.items()}
    values["coordinates"] = posing.values(q).astype(np.float32)
    layers: dict[str, Array] = {}
    problem = None
    if wanted:
        zero = np.zeros(stage.model.nv)
        try:
            found = stage.loads.arrows(T[None], q[None], v[None], (zero if a is None else a)[None],
                                       (zero if tau is None else tau)[None], wanted)  # fmt: skip
            layers = {key: array[0].astype(np.float32).ravel() for key, array in found.items()}
        except PolybodyError as error:
            problem = f"forces cannot be shown here: {error}"
    return {"t": t, "poses": as_poses(T).ravel(), "values": values, "layers": layers}, problem


def posed_content(stage: Stage, posing: Posing) -> dict[str, Any]:
    """A mechanism without a run."""
    tau = holding(stage.model, posing.q)
    zero = np.zeros(stage.model.nv)
    state, _ = state_content(stage, posing, posing.q, zero, zero, tau, 0.0, set())
    return stage_content(stage) | {
        "mode": "pose", "coordinates": [c.as_dict() for c in posing.coordinates], "state": state,
        "channels": [c.as_dict() for c in channels(stage.model)],
    }  # fmt: skip


def run_content(stage: Stage, record: Record, name: str) -> dict[str, Any]:
    """One run: poses, channels and loads at its states, thinned out evenly in time where there are too many."""
    keep = np.arange(len(record.t))
    if len(keep) > MOST_STATES:
        even = np.linspace(record.t[0], record.t[-1], MOST_STATES)
        keep = distinct(np.clip(np.searchsorted(record.t, even), 0, len(record.t) - 1))
    q, v, a, tau = record.q[keep], record.v[keep], record.accelerations[keep], record.tau[keep]
    T = stage.matrices(q)
    series: dict[str, Array] = {"poses": as_poses(T).ravel()}
    for key, table in record.tables(keep).items():
        series[key] = np.asarray(table, dtype=np.float32).ravel()
    try:
        loads = stage.loads.arrows(T, q, v, a, tau)
    except PolybodyError as error:
        warn(f"reactions of the run cannot be shown: {error}")
        loads = {key: stage.loads.drives(key, T, q, tau) for key in stage.loads.columns if stage.loads.columns[key]}
    series |= {f"layer:{key}": array.astype(np.float32).ravel() for key, array in loads.items()}
    facts = [["states", str(len(record.t))], ["kind", record.kind]]
    facts += [[key.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value)]
              for key, value in record.options.items()]  # fmt: skip
    if record.audit is not None:
        facts += [
            ["energy error", f"{record.audit['energy_error']:.3g} J"],
            ["trusted", "yes" if record.audit["trusted"] else "no"],
        ]
    if record.stopped:
        facts.append(["stopped", record.stopped])
    events = [{"time": float(h["time"]), "name": str(h["name"]), "detail": str(h["detail"])} for h in record.happenings]
    return {"name": name, "t": record.t[keep].astype(np.float32), "series": series, "events": events, "facts": facts}


def require_one_model(records: Sequence[Record], names: Sequence[str]) -> None:
    """Raise where runs are of different models."""
    first = records[0].model
    for record, name in zip(records, names, strict=True):
        if record.model.body_names != first.body_names or record.model.nq != first.nq:
            raise InputError(
                f"{name}: is a run of {record.model.name!r}; runs shown together are of one model, here {first.name!r}"
            )


def runs_content(stage: Stage, records: Sequence[Record], names: Sequence[str]) -> dict[str, Any]:
    """Runs of one model, the first in full and the others beside it."""
    first = records[0]
    runs = [run_content(stage, record, name) for record, name in zip(records, names, strict=True)]
    told = {channel.key: channel for record in reversed(records) for channel in record.channels()}
    bodies = len(stage.figures) - 1
    state = {"t": float(first.t[0]), "poses": runs[0]["series"]["poses"][: 7 * bodies], "values": {}, "layers": {}}
    return stage_content(stage) | {
        "mode": "run", "runs": runs, "state": state, "channels": [c.as_dict() for c in told.values()],
    }  # fmt: skip


__all__ = [
    "posed_content", "require_one_model", "run_content", "runs_content", "stage_content", "state_content",
    "with_meshes",
]  # fmt: skip
