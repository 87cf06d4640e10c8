"""What is done with an input of the fuzzers: read it as a user would, and ask what was read for answers.

Allowed are a `PolybodyError`, and answers that are finite. Anything else is a defect.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import polybody as pb
from polybody.description.expressions import parse
from polybody.studies.file import read_study
from polybody.studio.results import read_run

SUFFIX = {"mechanism": "yaml", "urdf": "urdf", "sdf": "sdf", "mjcf": "xml", "study": "yaml", "network": "yaml"}
#: larger models are only read: answers of reference formulations take their time
ANSWERED = 12


def attempt(kind: str, data: Any, folder: Path) -> str:
    """"read" or "refused"; whatever is raised besides `PolybodyError` goes through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer(read(kind, data, folder))
        except pb.PolybodyError as error:
            if not str(error).strip():
                raise AssertionError("an error says something") from error
            return "refused"
    return "read"


def read(kind: str, data: Any, folder: Path) -> pb.Model | None:
    if kind == "dh":
        return pb.from_dh(data)
    if kind == "expression":
        parse(data.decode("utf-8", "replace"))
        return None
    if kind == "run":
        for name, content in data.items():
            (folder / name).write_bytes(content)
        return read_run(folder).model
    path = folder / f"input.{SUFFIX[kind]}"
    path.write_bytes(data)
    if kind == "study":
        read_study(path)  # draws the first case
        return None
    if kind == "network":
        net = pb.load_network(path)
        if not net.parts.bodies:
            return None
        again = pb.load_network(net.save(folder / "again.yaml", force=True))
        assert again.parts.bodies.keys() == net.parts.bodies.keys(), "a written network is read back"
        return net.model() if net.parts.joints else None
    return pb.load(path)


def answer(model: pb.Model | None) -> None:
    """The reference dynamics of the tree, at rest and in motion, must be finite."""
    if model is None or not 0 < model.nv <= ANSWERED:
        return
    tree = model.tree
    rng = np.random.default_rng(0)
    q = tree.random_configuration(rng)
    v, a = rng.uniform(-1, 1, (2, tree.nv))
    tau = tree.inverse_dynamics(q, v, a, formulation="denoc")
    M = tree.mass_matrix(q, formulation="denoc")
    assert np.isfinite(tau).all(), "finite forces"
    assert np.isfinite(M).all(), "a finite mass matrix"


__all__ = ["attempt"]
