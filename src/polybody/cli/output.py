"""What a command prints: the same answer as JSON for programs, or drawn with rich for people.

A command gathers its answer as plain data, and passes it with a function that draws it:

    def info(model: str, as_json: JsonOption = False) -> None:
        answer = {...}
        emit(answer, as_json, lambda console: console.print(table_of(answer)))
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
#: columns of output that no terminal shows
PIPED_WIDTH = 10_000


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: arrays as lists, slices as [start, stop], infinities and NaN as null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, slice):
        return [value.start, value.stop]
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's arrays and scalars, without importing numpy here
        return plain(value.tolist())
    return str(value)


def emit(answer: Any, as_json: bool, draw: Callable[[Console], None]) -> None:
    """Print `answer` to stdout: as indented JSON, or by letting `draw` write it on a rich console."""
    if as_json:
        typer.echo(json.dumps(plain(answer), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        from rich.console import Console

        # Names come from files: what rich would take for its own marks or for a picture's name is printed as it stands.
        console = Console(highlight=False, markup=False, emoji=False)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = PIPED_WIDTH  # a program reads it: lines are not wrapped
        draw(console)


def refuse_existing(path: Path | None, force: bool) -> None:
    """Nothing is overwritten without --force, and folders must exist."""
    from polybody.errors import InputError

    if path is not None and path.exists() and not force:
        raise InputError(f"{path}: exists; choose another path, or overwrite with --force")
    if path is not None and not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.absolute().parent)!r} does not exist")


__all__ = ["ForceOption", "JsonOption", "emit", "plain", "refuse_existing"]
