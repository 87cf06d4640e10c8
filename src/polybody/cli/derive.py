"""`polybody derive MODEL`: the equations of motion as symbols."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing
from polybody.names import counted


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("derive")(derive)


def derive(
    model: ModelArgument,
    latex: Annotated[Path | None, typer.Option(help="Write a LaTeX document to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page to this file; it works offline.")] = None,
    python: Annotated[Path | None, typer.Option(help="Write a Python module of NumPy functions to this file.")] = None,
    symbols: Annotated[
        str,
        typer.Option(help="Symbolic parameters: all, none, or a list of masses, lengths, inertias, gravity, m1, …"),
    ] = "all",
    joints: Annotated[str, typer.Option(help="simple or compound for all joints, or 'wrist=compound,…'.")] = "",
    force: ForceOption = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Derive the equations of motion in Poincaré's form, and print or write them."""
    from polybody.model.load import load

    wanted = {"latex": latex, "html": html, "python": python}
    for path in wanted.values():
        refuse_existing(path, force)
    loaded = load(model) if base is None else load(model, base=base)
    started = time.perf_counter()
    symbolic = loaded.symbolic(
        [word.strip() for word in symbols.split(",")], joints=_choices(joints), progress=_progress(started)
    )
    texts = {path: _text(symbolic, kind) for kind, path in wanted.items() if path is not None}
    if not texts and not as_json:
        _show(symbolic)
    _write(texts)
    if as_json:
        answer = {"files": [str(path) for path in texts], "mass_matrix": str(symbolic.mass_matrix().tolist())}
        emit(answer, True, lambda console: None)
    typer.echo(f"done in {time.perf_counter() - started:.1f} s", err=True)


def _choices(text: str) -> Any:
    from polybody.errors import InputError

    if not text or text in ("simple", "compound"):
        return text or None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not equals for _, equals, _ in pairs):
        raise InputError(f"--joints {text!r}: expected simple, compound, or joint=simple,joint=compound")
    return {name.strip(): choice.strip() for name, _, choice in pairs}


def _progress(started: float) -> Any:
    def report(text: str) -> None:
        typer.echo(f"[{time.perf_counter() - started:6.1f} s] {text}", err=True)

    return report


def _text(symbolic: Any, kind: str) -> str:
    if kind == "python":
        return symbolic.python_source()
    return symbolic.latex() if kind == "latex" else symbolic.html()


def _write(texts: dict[Path, str]) -> None:
    """All texts exist before the first file is written."""
    from polybody.files import write_text

    for path, text in texts.items():
        write_text(path, text)
        typer.echo(str(path))


def _show(symbolic: Any) -> None:
    """The equations as plain text."""
    from polybody.symbolic.sections import sections

    for section in sections(symbolic):
        typer.echo(f"\n{section.title}: {section.text}")
        for letter, indices, expression in section.formulas:
            typer.echo(f"  {letter}{indices and '_' + indices} = {expression}")
    size = symbolic.size("equations")
    shared = counted(symbolic.program("equations").operations, "operation")
    written = f"{counted(size.operations, 'operation')}, {counted(size.characters, 'character')}"
    typer.echo(f"\n{written}; with common subexpressions {shared}")


__all__ = ["register"]
