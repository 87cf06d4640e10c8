"""xacro: URDF with macros, expanded by the package `xacro` (the extra of that name) in a process of its own.

The result is an XML tree like that of a plain file; each element knows the original file and line it came from. What a
file may read and evaluate is said in `packages` and `expressions`; environment variables are not passed on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from polybody.description.limits import XACRO_MEMORY, XACRO_SECONDS, XML_BYTES
from polybody.description.xacro.packages import package_path
from polybody.description.xml.fields import SOURCE
from polybody.description.xml.safety import parse_xml_bytes
from polybody.errors import InputError
from polybody.names import listed, nearest

NAMESPACE = "xacro"
#: at most so long by the clock, however busy the machine is; the child itself may compute for `XACRO_SECONDS`
SECONDS = 120.0


def has_macros(root: Any) -> bool:
    """True where a file uses xacro: elements of the namespace (several URIs are in use), or expressions.

    Files that were expanded often keep the declaration; they are plain.
    """
    space = root.nsmap.get(NAMESPACE)
    if space is None:
        return False
    texts = (text for e in root.iter() for text in (e.text, *e.attrib.values()) if text)
    return any(True for _ in root.iter(f"{{{space}}}*")) or any("${" in x or "$(" in x for x in texts)


def arguments_of(root: Any) -> list[str]:
    """Names of the file's own <xacro:arg> elements."""
    return [name for e in root.iter(f"{{{root.nsmap[NAMESPACE]}}}arg") if (name := e.get("name"))]


def expanded(path: Path, arguments: Mapping[str, Any] | None = None) -> Any:
    """The root element of the expanded file; `source_of` gives an element's place in the original files."""
    if find_spec("xacro") is None:
        raise InputError(
            f"{path.name}: is a xacro file, which the package xacro expands: pip install 'polybody[xacro]'"
        )
    given = {str(key): _argument(path, str(key), value) for key, value in (arguments or {}).items()}
    folders = [str(folder) for folder in package_path(path, os.environ)]
    answer = _ask(path, {"path": str(path.resolve()), "arguments": given, "folders": folders})
    if "error" in answer:
        place = f"{_short(answer['file'], path)}:{answer['line']}" if answer["line"] else _short(answer["file"], path)
        raise InputError(f"{place or path.name}: {answer['error']}")
    data = answer["text"].encode(errors="surrogatepass")  # the parser refuses what is not text
    if len(data) > XML_BYTES:
        raise InputError(f"{path.name}: expands to {len(data) / 1e6:.0f} MB; at most {XML_BYTES / 1e6:g} MB are read")
    root = parse_xml_bytes(data, path.name, kind="URDF")
    names = {str(k): _short(name, path) for k, name in enumerate(answer["files"])}
    for element in root.iter():
        number, _, line = (element.attrib.pop(SOURCE, "") or "").partition(":")
        if line and number in names:  # a file can make such an attribute too
            element.set(SOURCE, f"{names[number]}:{line}")
    return root


def refuse_unknown(path: Path, root: Any, arguments: Mapping[str, Any] | None) -> None:
    """Arguments that the file does not have are mistakes."""
    known = arguments_of(root)
    for name in arguments or {}:
        if name not in known:
            has = f"; it has {listed(known)}" if known else "; it has no <xacro:arg>"
            raise InputError(f"{path.name}: no argument {name!r}{nearest(str(name), known)}{has}")


def _argument(path: Path, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise InputError(
        f"{path.name}: argument {name!r} is a {type(value).__name__}; expected text, a number or a boolean"
    )


def _ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """What the child process answers."""
    kept = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT", "TEMP") if key in os.environ}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(x for x in sys.path if x), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "polybody.description.xacro.child"]
    try:
        child = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, timeout=SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{path.name}: expanding its macros takes more than {SECONDS:g} s") from None
    if child.returncode or not child.stdout:
        last = (child.stderr.strip().splitlines() or [""])[-1]
        raise InputError(
            f"{path.name}: expanding its macros takes more than {XACRO_SECONDS} s of one core or "
            f"{XACRO_MEMORY / 1e9:g} GB (exit {child.returncode}) {last}".rstrip()
        )
    return json.loads(child.stdout)


def _short(name: str, path: Path) -> str:
    """A file as messages show it: by name where it lies beside the given one."""
    place = Path(name)
    return place.name if not name or place.resolve().parent == path.resolve().parent else str(place)


__all__ = ["expanded", "has_macros", "refuse_unknown"]
