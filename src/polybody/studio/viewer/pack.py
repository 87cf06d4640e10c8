"""Bytes for the page: a JSON text and the arrays that it names, in one piece; `web/pack.js` opens it.

    [length of the text, uint32][text, padded to 4][arrays, each padded to 4]

An array in the text is {"at": offset, "n": count, "type": "f4" | "u4" | "u2" | "i1" | "u1"}. Numbers that are not
finite are null in the text.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from polybody.studio.stage.meshes import Triangles

Array = np.ndarray
TYPES = {np.dtype("f4"): "f4", np.dtype("u4"): "u4", np.dtype("u2"): "u2", np.dtype("i1"): "i1", np.dtype("u1"): "u1"}


def packed(content: dict[str, Any]) -> bytes:
    """The content with its arrays beside it."""
    pieces: list[bytes] = []
    size = 0

    def named(node: Any) -> Any:
        nonlocal size
        if isinstance(node, np.ndarray):
            array = np.ascontiguousarray(node if node.dtype in TYPES else node.astype(np.float32))
            data = array.tobytes()
            place = {"at": size, "n": int(array.size), "type": TYPES[array.dtype]}
            data += bytes(-len(data) % 4)
            pieces.append(data)
            size += len(data)
            return place
        if isinstance(node, dict):
            return {key: named(value) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return [named(value) for value in node]
        if isinstance(node, (float, np.floating)):
            return float(node) if math.isfinite(node) else None
        if isinstance(node, (np.integer, np.bool_)):
            return node.item()
        return node

    text = json.dumps(named(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return b"".join([struct.pack("<I", len(text)), text, bytes(-len(text) % 4), *pieces])


def compressed(content: dict[str, Any], level: int = 6) -> bytes:
    return gzip.compress(packed(content), level, mtime=0)


def mesh_content(mesh: Triangles) -> dict[str, Any]:
    """Places as 16-bit steps of the mesh's box, normals as bytes: a third of the numbers' size, finer than a pixel."""
    low = mesh.positions.min(axis=0) if len(mesh.positions) else np.zeros(3)
    span = float(np.ptp(mesh.positions, axis=0).max()) if len(mesh.positions) else 1.0
    step = max(span, 1e-9) / 65535
    faces = mesh.faces.astype(np.uint16 if len(mesh.positions) < 65536 else np.uint32)
    content = {
        "places": np.round((mesh.positions - low) / step).astype(np.uint16).ravel(),
        "low": [float(x) for x in low],
        "step": step,
        "normals": np.clip(np.round(mesh.normals * 127), -127, 127).astype(np.int8).ravel(),
        "faces": faces.ravel(),
    }
    if mesh.colors is not None:
        content["colors"] = mesh.colors.astype(np.uint8).ravel()
    return content


__all__ = ["compressed", "mesh_content", "packed"]
