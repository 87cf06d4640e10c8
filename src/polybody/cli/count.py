"""`polybody count MODEL`: operations of each algorithm, the papers' general formulas beside this mechanism's own."""

from __future__ import annotations

from typing import Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.names import counted


def register(app: typer.Typer) -> None:
    @app.command("count", help="Count multiplications and additions of each algorithm, in general and for this model.")
    def count(
        model: ModelArgument,
        base: BaseOption = None,
        json: JsonOption = False,
    ) -> None:
        from polybody.model.counting import SHORTEST, TABLES, general_counts, model_counts
        from polybody.model.load import load

        loaded = load(model, base=base)
        n = loaded.nv
        actual = model_counts(loaded)
        chain = {} if loaded.mechanism.constrained or n < SHORTEST else general_counts(n)
        data: dict[str, Any] = {
            "model": loaded.name,
            "degrees_of_freedom": n,
            "actual": {name: {"M": c.multiplications, "A": c.additions, "sincos": c.sines, "other": c.others}
                       for name, c in actual.items()},
            "general": {
                name: [{"algorithm": g.algorithm, "M": round(g.multiplications(n)), "A": round(g.additions(n))}
                       for g in rows] + [{"algorithm": "polybody, general chain", "M": chain[name].multiplications,
                                          "A": chain[name].additions}]
                for name, rows in TABLES.items()
            } if chain else {},  # the papers count serial chains, of three joints and more
        }
        emit(data, json, lambda console: console.print(*_tables(data), sep="\n"))


def _tables(data: dict[str, Any]) -> list[Any]:
    from rich.table import Table

    own = Table(title=f"{data['model']}: traced operations, {counted(data['degrees_of_freedom'], 'degree')} of freedom")
    for heading in ("quantity", "M", "A", "sin, cos", "other"):
        own.add_column(heading, justify="left" if heading == "quantity" else "right")
    for name, c in data["actual"].items():
        own.add_row(name, *(str(c[key]) for key in ("M", "A", "sincos", "other")))
    tables = [own]
    for name, rows in data["general"].items():
        chains = f"general chains of {counted(data['degrees_of_freedom'], 'revolute joint')} (Saha 1999)"
        table = Table(title=f"{name}: {chains}")
        for heading in ("algorithm", "M", "A"):
            table.add_column(heading, justify="left" if heading == "algorithm" else "right")
        for row in rows:
            table.add_row(row["algorithm"], str(row["M"]), str(row["A"]))
        here = data["actual"][name]
        table.add_row("polybody, this model", str(here["M"]), str(here["A"]), style="bold")
        tables.append(table)
    return tables


__all__ = ["register"]
