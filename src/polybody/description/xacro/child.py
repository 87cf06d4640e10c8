"""The process in which the package `xacro` expands one file: `python -m polybody.description.xacro.child`.

It reads a request (JSON: path, arguments, folders) and answers with the expanded text, or with what is wrong and where.
It runs apart, with limits on time and memory, because a file may ask for endless loops; and xacro's ways to files,
environment and `eval` are replaced by those that `packages` and `expressions` allow.

Every element that is not xacro's own carries the attribute `SOURCE`, "file number:line", through the expansion, so that
a reader can name the place in the original file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from polybody.description.files import read_bytes, read_text
from polybody.description.limits import INCLUDED_FILES, XACRO_MEMORY, XACRO_SECONDS, XML_BYTES, YAML_BYTES
from polybody.description.xacro.expressions import require_plain
from polybody.description.xacro.packages import Packages
from polybody.description.xml.fields import SOURCE
from polybody.description.xml.safety import parse_xml_bytes
from polybody.errors import InputError

CLASS = re.compile(r"<class '[^']*'>: ?")  # which xacro puts before messages


class Expansion:
    """xacro's functions with other doors: files of packages, plain expressions, elements that know their line."""

    def __init__(self, packages: Packages) -> None:
        self.packages = packages
        self.files: list[str] = []
        self.place: list[str] = []  # sources of the elements that are being expanded
        self.failed_at = ""

    def text(self, path: Path, arguments: dict[str, str]) -> str:
        import xacro

        self._enter(xacro)
        document: Any = xacro.process_file(str(path), mappings=arguments)
        return document.toxml()

    def _enter(self, xacro: Any) -> None:
        from xacro import substitution_args

        evaluate, walk = xacro.safe_eval, xacro.eval_all

        def safe_eval(text: str, names: Any, local: Any = None) -> Any:
            require_plain(text)
            return evaluate(text, names, local)

        def eval_argument(text: str, context: dict[str, Any]) -> str:
            require_plain(text)
            values = {key: substitution_args.convert_value(x, "auto") for key, x in context.get("arg", {}).items()}
            plain = {"true": True, "false": False, "abs": abs, "min": min, "max": max, "round": round}
            names = {**plain, **values, "arg": lambda name: values[name], "find": find, "dirname": folder}
            return str(eval(compile(text.strip(), "<eval>", "eval"), {"__builtins__": {}}, names))

        def eval_all(node: Any, macros: Any, symbols: Any) -> Any:
            self.place.append(node.getAttribute(SOURCE) if node.hasAttribute(SOURCE) else "")
            try:
                return walk(node, macros, symbols)
            except Exception:
                self.failed_at = self.failed_at or next((x for x in reversed(self.place) if x), "")
                raise
            finally:
                self.place.pop()

        def load_yaml(name: str) -> Any:
            import yaml

            path = self.packages.allowed(xacro.abs_filename_spec(name))
            return xacro.YamlListWrapper.wrap(yaml.safe_load(read_text(path, YAML_BYTES, "YAML")))

        def find(name: str) -> str:
            return self.packages.find(name)

        def folder(filename: str | None = None) -> str:
            """$(dirname): of the file that is being read, not of the one that includes it."""
            return str(Path(xacro.filestack[-1]).resolve().parent)

        xacro.parse = self.parse
        xacro.safe_eval, xacro.eval_all, xacro.load_yaml = safe_eval, eval_all, load_yaml
        substitution_args._eval, substitution_args._eval_find = eval_argument, find
        substitution_args._eval_dirname = folder
        symbols = xacro._global_symbols
        symbols["xacro"]["load_yaml"] = symbols["load_yaml"] = load_yaml
        for name in ("type", "vars", "hash"):
            dict.pop(symbols["python"], name, None)

    def parse(self, given: Any, filename: str | None = None) -> Any:
        """A file as xacro wants it (minidom), each element with its line."""
        import xml.dom.minidom

        import lxml.etree as etree

        path = self.packages.allowed(str(filename))
        if len(self.files) >= INCLUDED_FILES:
            raise InputError(f"{path.name}: more than {INCLUDED_FILES} files are included")
        root = parse_xml_bytes(read_bytes(path, XML_BYTES, "xacro"), str(filename), kind="xacro")
        number = len(self.files)
        self.files.append(str(filename))
        for element in root.iter(etree.Element):
            if "xacro" not in (etree.QName(element).namespace or ""):
                element.set(SOURCE, f"{number}:{element.sourceline}")
        return xml.dom.minidom.parseString(etree.tostring(root))

    def where(self, said: str) -> tuple[str, int]:
        """(file, line) of a failure: that of the expression it names, else of the element around it."""
        number, _, line = self.failed_at.partition(":")
        if not line:
            return (self.files[-1] if self.files else ""), 0
        name, first = self.files[int(number)], int(line)
        expression = said.rpartition("when evaluating expression '")[2].rstrip("'\n ")
        if expression and expression != said:
            lines = Path(name).read_text("utf-8", "replace").splitlines()
            first = next((i for i, x in enumerate(lines[first - 1 :], first) if expression in x), first)
        return name, first


def limit_resources() -> None:
    """Bound time and memory, where the system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (XACRO_SECONDS, XACRO_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (XACRO_MEMORY, XACRO_MEMORY))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The expanded text with its files' names, or the error."""
    path = Path(request["path"])
    expansion = Expansion(Packages(path, [Path(x) for x in request["folders"]]))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return {"text": expansion.text(path, request["arguments"]), "files": expansion.files}
    except RecursionError:
        said = "macros, properties or includes call themselves without end"
    except MemoryError:
        said = f"the expansion needs more than {XACRO_MEMORY / 1e9:g} GB"
    except Exception as error:  # xacro raises whatever an expression raised; the reader is told what and where
        said = " ".join(CLASS.sub("", str(error)).split()) or type(error).__name__
        file, line = expansion.where(str(error))
        return {"error": said, "file": file, "line": line}
    file, line = expansion.where("")
    return {"error": said, "file": file, "line": line}


if __name__ == "__main__":
    limit_resources()
    sys.setrecursionlimit(3000)
    os.environ.clear()  # $(env …) finds nothing, not even what this process needed to start
    print(json.dumps(answer(json.load(sys.stdin))))
