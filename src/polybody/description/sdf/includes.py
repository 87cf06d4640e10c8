"""<include> of SDF: the named file's model takes the element's place.

    <uri>part.sdf</uri>  <uri>model://part</uri>      a file, or a folder with what its model.config names

A URI is looked for below the file's own folder, in the models beside it (where it has a `model.config` itself), and
below the folders of GZ_SIM_RESOURCE_PATH and SDF_PATH; what lies elsewhere, links followed, raises an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from polybody.description.limits import INCLUDED_FILES
from polybody.description.sdf.values import text
from polybody.description.xml.fields import SOURCE, Fields
from polybody.description.xml.safety import parse_xml
from polybody.errors import InputError

CONFIG, MODEL = "model.config", "model.sdf"
#: What <include> says in place of what the included model says itself.
OVERRIDES = ("pose", "static")
CARRIED_OUT = ("uri", "name", "placement_frame", "plugin", *OVERRIDES)
DEEPEST = 16


class Includes:
    """Reads SDF files and puts what they include in place."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        folder = path.resolve().parent
        beside = [folder.parent] if (folder / CONFIG).is_file() else []
        named = [os.environ.get(key, "").split(os.pathsep) for key in ("GZ_SIM_RESOURCE_PATH", "SDF_PATH")]
        self.folders = [folder, *beside, *(Path(x).resolve() for part in named for x in part if x)]

    def read(self, path: Path, fields: Fields, depth: int = 0) -> Any:
        """The <sdf> element of a file with its includes carried out; elements of other files know their place."""
        self.count += 1
        if self.count > INCLUDED_FILES or depth > DEEPEST:
            raise InputError(
                f"{path.name}: more than {INCLUDED_FILES} files are included, or one includes itself"
            )
        root = parse_xml(path, kind="SDF")
        if root.tag != "sdf":
            raise InputError(f"{path.name}:{root.sourceline}: the root element is <{root.tag}>, an SDF file has <sdf>")
        _require_version(root, path)
        if depth:
            for element in root.iter():
                element.set(SOURCE, f"{path.name}:{element.sourceline}")
        for include in list(root.iter("include")):
            self._replace(include, path, fields, depth)
        return root

    def _replace(self, include: Any, path: Path, fields: Fields, depth: int) -> None:
        uri = text(include, "uri")
        found = self._find(uri, path.resolve().parent)
        if found is None:
            fields.problem(
                include, f"<include>: no file for {uri!r} below {self.folders[0]}, in the models beside it, or on "
                "GZ_SIM_RESOURCE_PATH; others are not included"
            )  # fmt: skip
            return
        model = self.read(found, fields, depth + 1).find("model")
        if model is None:
            fields.problem(include, f"<include>: {found.name} has no <model>")
            return
        for tag in OVERRIDES:
            said = include.find(tag)
            if said is not None:
                for old in model.findall(tag):
                    model.remove(old)
                model.insert(0, said)
        name = text(include, "name")
        if name:
            model.set("name", name)
        if include.get("placement_frame") or text(include, "placement_frame"):
            model.set("placement_frame", include.get("placement_frame") or text(include, "placement_frame"))
        if include.get("merge", "").lower() in ("1", "true"):
            model.set("merge", "true")
        for plugin in include.findall("plugin"):
            model.append(plugin)  # named among what is not modelled, like the model's own
        for other in include:
            if isinstance(other.tag, str) and other.tag not in CARRIED_OUT:
                tag = other.tag.rpartition("}")[2]
                fields.problem(other, f"<include>: <{tag}> changes what is included and is not read")
        include.getparent().replace(include, model)

    def _find(self, uri: str, here: Path) -> Path | None:
        name = uri.removeprefix("model://").removeprefix("file://")
        if not name or "://" in name or "\0" in name:
            return None
        for folder in (here, *self.folders):
            try:
                place = (folder / name).resolve()
                place = _model_file(place) if place.is_dir() else place
                found = place.is_file()
            except OSError:  # a name that no file can have
                continue
            if found and any(place.is_relative_to(allowed) for allowed in self.folders):
                return place
        return None


def _model_file(folder: Path) -> Path:
    """The SDF file of a model's folder: what its model.config names, else model.sdf."""
    config = folder / CONFIG
    if config.is_file():
        name = text(parse_xml(config, kind="model.config"), "sdf", MODEL)
        if name == Path(name).name:
            return (folder / name).resolve()
    return (folder / MODEL).resolve()


def _require_version(root: Any, path: Path) -> None:
    said = (root.get("version") or "").strip()
    parts = said.split(".")
    if not (len(parts) >= 2 and all(part.isdigit() for part in parts[:2])):
        raise InputError(f"{path.name}:{root.sourceline}: <sdf version={said!r}>; expected a version such as '1.9'")
    if (int(parts[0]), int(parts[1])) < (1, 7):
        raise InputError(
            f"{path.name}:{root.sourceline}: SDF {said}; 1.7 and later are read, whose frames are defined differently "
            "(gz sdf --print converts old files)"
        )


__all__ = ["Includes"]
