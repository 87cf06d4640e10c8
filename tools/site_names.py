"""The public names of the package, for the site and its test."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def public_names() -> dict[str, str]:
    """{name: module} of `__init__.pyi`."""
    stub = ast.parse((ROOT / "src" / "polybody" / "__init__.pyi").read_text(encoding="utf-8"))
    found = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom) and line.module:
            for alias in line.names:
                found[alias.asname or alias.name] = line.module
    return found
