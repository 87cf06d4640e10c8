"""Study files: a study as YAML, with a published schema (`schema`, `polybody study --schema`).

    study: 1                                   # the format's version
    name: payloads
    model: puma560                             # a file beside this one, or the name of a shipped model
    payload: {frame: link6, mass: 1}           # optional: a body to vary
    vary:
      payload.mass: {uniform: [0, 3]}
      q: {normal: [[0, 0, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]]}
    samples: 10000
    design: sobol
    do: {quantity: inverse_dynamics, at: {v: [1, 1, 1, 1, 1, 1]}}
    keep: [tau, peak(tau)]

In place of `model`, `template: arm.xacro` names a xacro file whose arguments are the varied names that are no states,
for machines that differ in structure. The file is data: numbers may be written as in mechanism files (90deg, 10cm). A
function "module:name" (in `do: function`, `template` or `controller`) is code of yours, and is imported only where that
is allowed.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, compose, describe
from polybody.description.units import ANGLE, LENGTH, MASS, dimension_of, quantity
from polybody.description.xacro.packages import files_of
from polybody.errors import InputError
from polybody.model.load import load
from polybody.model.model import Model
from polybody.names import listed, nearest
from polybody.studies.axes import DESIGNS, DISTRIBUTIONS
from polybody.studies.study import OPTIONS, Study, named_function
from polybody.studies.tasks import KINDS
from polybody.studies.units import Said, check_given, check_units

VERSION = 1
KEYS = (
    "study", "name", "model", "template", "base", "payload", "vary", "samples", "design", "seed", "chunk", "do", "keep",
    "folder",
)  # fmt: skip
LARGEST = 2_000_000  # characters
WORDS = ("model", "name", "frame", "design", "quantity", "function", "method", "limits", "inputs", "outputs", "folder",
         "names", "keep", "base", "independent", "template", "controller")  # fmt: skip


@dataclass(frozen=True)
class XacroTemplate:
    """A model for each case: a xacro file with the case's values as arguments; it can be sent to other processes."""

    path: str
    base: str

    def __call__(self, values: dict[str, Any]) -> Model:
        # whole numbers without ".0": macros count with them
        arguments = {name: int(x) if isinstance(x, float) and x == int(x) else x for name, x in values.items()}
        return load(self.path, base=self.base, arguments=arguments)

    @property
    def digest(self) -> str:
        """Of the file's text and of all files that it may include or load, for the study's identity."""
        digest = hashlib.sha256()
        own = Path(self.path).resolve().parent
        for file in files_of(Path(self.path), os.environ):
            content = file.read_bytes()
            digest.update(f"{os.path.relpath(file, own)}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class StudyFile:
    """A study, and the folder its results go to."""

    study: Study
    folder: Path


def read_study(path: str | Path, *, allow_code: bool = False) -> StudyFile:
    """The study of a file; what is wrong with it is an error before anything is computed."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    if len(text) > LARGEST:
        raise InputError(f"{path}: has {len(text)} characters; at most {LARGEST} are read")
    node = compose(text, str(path))
    if not isinstance(node, Mapping):
        raise InputError(f"{path}: a study file is a mapping, got {describe(node)}")
    for key, (line, _) in node.pairs.items():
        if key not in KEYS:
            raise InputError(f"{path}:{line}: no key {key!r}{nearest(key, KEYS)}; available: {listed(KEYS, 20)}")
    said = {key: plain(value, key, str(path)) for key, (_, value) in node.pairs.items()}
    if said.get("study") != VERSION:
        raise InputError(f"{path}: the first line must be 'study: {VERSION}', the version of the format")
    return _built(path, said, allow_code)


def _built(path: Path, said: dict[str, Any], allow_code: bool) -> StudyFile:
    where = str(path)
    check_given(said, where)
    for key in ("vary", "do"):
        if not isinstance(said.get(key), dict):
            raise InputError(f"{where}: needs {key!r}, a mapping")
    do = dict(said["do"])
    kinds = [word for word in do if word in KINDS]
    if len(kinds) != 1:
        raise InputError(f"{where}: do has {', '.join(do) or 'nothing'}; expected one of {', '.join(KINDS)}")
    if kinds[0] == "function":
        do["function"] = _code(where, "do: function", do["function"], allow_code)
    options = do[kinds[0]]
    if isinstance(options, dict) and isinstance(options.get("controller"), str | list):
        law = options["controller"]
        made = [_code(where, "controller", x, allow_code) for x in (law if isinstance(law, list) else [law])]
        do[kinds[0]] = {**options, "controller": made if isinstance(law, list) else made[0]}
    for word in do:
        if word not in (kinds[0], *(["at"] if kinds[0] == "quantity" else [])):
            raise InputError(f"{where}: do has {word!r} beside {kinds[0]!r}")
    more: dict[str, Any] = {key: said[key] for key in ("samples", "seed", "chunk") if key in said}
    for key, value in more.items():
        if not isinstance(value, float) or not value.is_integer():
            raise InputError(f"{where}: {key} is {value}; expected a whole number")
    keep = said.get("keep", [])
    whole: dict[str, Any] = {key: int(value) for key, value in more.items()}
    try:
        study = Study(
            _model(path, said, allow_code), said["vary"], **do, keep=keep, design=said.get("design", "random"),
            name=str(said.get("name", path.stem)), **whole,
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    check_units(study, said, where)
    return StudyFile(study, path.parent / str(said.get("folder", f"{path.stem}.results")))


def _code(where: str, what: str, name: Any, allowed: bool) -> Any:
    if not allowed:
        raise InputError(f"{where}: {what} runs code of {name!r}; allow it with --allow-code")
    return named_function(str(name))


def _template(path: Path, said: dict[str, Any], allow_code: bool) -> Any:
    for key in ("model", "payload"):
        if key in said:
            raise InputError(f"{key!r} stands beside 'template', which makes the models; remove one of them")
    name = str(said["template"])
    if Path(name).suffix.lower() != ".xacro":
        return _code(str(path), "template", name, allow_code)
    if not os.path.isfile(path.parent / name):
        raise InputError(f"template {name!r} is not a file in {path.parent}")
    return XacroTemplate(str(path.parent / name), str(said.get("base", "fixed")))


def _model(path: Path, said: dict[str, Any], allow_code: bool) -> Any:
    if "template" in said:
        return _template(path, said, allow_code)
    if "model" not in said:
        return None
    beside = path.parent / str(said["model"])  # os.path: names too long for the system are no files, not errors
    model = load(str(beside) if os.path.exists(beside) else str(said["model"]), base=said.get("base", "fixed"))
    payload = said.get("payload")
    if payload is None:
        return model
    known = {"frame", "mass", "com", "inertia"}
    if not isinstance(payload, dict) or "frame" not in payload or not set(payload) <= known:
        raise InputError("payload needs frame, mass, com, inertia")
    return model.with_payload(payload["frame"], payload.get("mass", 0.0), payload.get("com", (0, 0, 0)),
                              payload.get("inertia", (0, 0, 0)))  # fmt: skip


def plain(node: Node, key: str, where: str) -> Any:
    """Numbers, texts, lists and mappings; scalars are numbers unless their key says that they are words."""
    if isinstance(node, Mapping):
        return {name: plain(value, name, where) for name, (_, value) in node.pairs.items()}
    if not isinstance(node, Scalar):
        return [plain(item, key, where) for item in node.items]
    if key in WORDS:
        return node.text
    if node.text in ("true", "false"):
        return node.text == "true"
    try:
        return Said(quantity(node.text, (ANGLE, LENGTH, MASS)), node.line, dimension_of(node.text))
    except InputError as error:
        raise InputError(f"{where}:{node.line}: {key}: {error}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of study files."""
    number: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string"}]}
    numbers = {"anyOf": [number, {"type": "array", "items": number}]}
    rows = {"type": "array", "items": numbers}
    axis = {
        "anyOf": [
            rows,
            {"type": "object", "additionalProperties": False, "minProperties": 1, "maxProperties": 1, "properties": {
                "list": rows, "grid": {"type": "array", "items": number, "minItems": 3, "maxItems": 3},
                **{kind: {"type": "array", "items": numbers, "minItems": len(n), "maxItems": len(n)}
                   for kind, n in DISTRIBUTIONS.items()}}},
            {"type": "object", "additionalProperties": False, "required": ["covariance", "mean", "names"],
             "properties": {"covariance": rows, "mean": numbers,
                            "names": {"type": "array", "items": {"type": "string"}}}},
        ]
    }  # fmt: skip
    whole = {"type": "integer", "minimum": 1}
    options = {
        kind: {"type": "object", "additionalProperties": False, "properties": {x: {} for x in OPTIONS[kind] or ()}}
        for kind in ("rollout", "simulate", "linearize")
    }
    do = {
        "type": "object", "additionalProperties": False, "minProperties": 1,
        "properties": {
            "quantity": {"type": "string"}, "at": {"type": "object"}, "function": {"type": "string"}, **options,
        },
    }  # fmt: skip
    payload = {"type": "object", "additionalProperties": False, "required": ["frame"],
               "properties": {"frame": {"type": "string"}, "mass": number, "com": rows, "inertia": rows}}  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "polybody study", "type": "object",
        "additionalProperties": False, "required": ["study", "vary", "do"],
        "properties": {
            "study": {"const": VERSION}, "name": {"type": "string"}, "model": {"type": "string"},
            "template": {"type": "string"},
            "base": {"type": "string"}, "payload": payload,
            "vary": {"type": "object", "minProperties": 1, "additionalProperties": axis}, "samples": whole,
            "design": {"enum": list(DESIGNS)}, "seed": {"type": "integer", "minimum": 0}, "chunk": whole, "do": do,
            "keep": {"type": "array", "items": {"type": "string"}}, "folder": {"type": "string"},
        },
    }  # fmt: skip


__all__ = ["StudyFile", "XacroTemplate", "plain", "read_study", "schema"]
