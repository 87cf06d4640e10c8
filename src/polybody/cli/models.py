"""`polybody models`: what ships with polybody."""

from __future__ import annotations

import typer

from polybody.cli.output import JsonOption, emit


def register(app: typer.Typer) -> None:
    @app.command("models")
    def models(as_json: JsonOption = False) -> None:
        """List the models that ship with polybody; each can be loaded by its name."""
        from polybody.constraints.ranks import null_space
        from polybody.constraints.system import constraints_of
        from polybody.description.reading import shipped_models
        from polybody.model.load import load
        from polybody.model.readiness import only_reading

        answer = []
        for name, path in shipped_models().items():
            with only_reading():
                model = load(name)
            # Shipped models are assembled at neutral, so that the rank there is their mobility; nothing is compiled.
            motions = null_space(constraints_of(model.mechanism).jacobian(model.neutral()))
            answer.append(
                {
                    "name": name,
                    "about": about(path.read_text(encoding="utf-8")),
                    "bodies": len(model.body_names),
                    "nq": model.nq,
                    "nv": model.nv,
                    "loops": len(model.mechanism.closures),
                    "mobility": motions.shape[1],
                    "file": str(path),
                }
            )

        def draw(console: object) -> None:
            from rich.console import Console
            from rich.table import Table

            assert isinstance(console, Console)
            table = Table("name", "bodies", "loops", "mobility", "about", box=None, header_style="bold")
            for row in answer:
                numbers = (str(row[key]) for key in ("bodies", "loops", "mobility"))
                table.add_row(row["name"], *numbers, row["about"])
            console.print(table)

        emit(answer, as_json, draw)


def about(text: str) -> str:
    """The first sentence of a mechanism file's opening comment."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    sentence = " ".join(lines)
    ends = [end for mark in (". ", ": ", "; ") if (end := sentence.find(mark)) > 0]
    return sentence[: min(ends)] if ends else sentence.rstrip(".")


__all__ = ["register"]
