"""`polybody loops MODEL`: what a mechanism with loops is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.cli.states import ConfigurationOption, named, numbers
from polybody.names import counted

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    @app.command("loops")
    def loops(
        model: ModelArgument,
        base: BaseOption = None,
        at: ConfigurationOption = "neutral",
        hold: Annotated[list[str] | None, typer.Option(help="A joint held during assembly; repeatable.")] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Assemble a model's loops; report mobility, redundant constraints, singularities, independent coordinates."""
        from polybody.errors import InputError
        from polybody.model.load import load

        loaded = load(model, base=base)
        if not loaded.mechanism.constrained:
            raise InputError(f"{loaded.name!r} has neither loops nor couplings")
        q = loaded.assemble(numbers("--q", at, loaded, "q"), hold=[*(hold or ()), *named(at)])
        told = loaded.mobility(q)
        answer: dict[str, Any] = {
            "name": loaded.name,
            "q": q,
            "constraints": loaded.constraints.names,
            "gruebler": told.gruebler,
            "mobility": told.true,
            "mobility_here": told.here,
            "singular": told.singular,
            "redundant": [str(redundancy) for redundancy in told.redundant],
            "independent": list(told.independent),
            "actuators": list(told.actuators),
            "actuation": told.actuation,
            "uncontrolled": [told.text(motion) for motion in told.uncontrolled],
        }

        def draw(console: Console) -> None:
            count = len(answer["constraints"])
            console.print(
                f"{loaded.name}: {counted(len(loaded.mechanism.closures), 'loop')}, {counted(count, 'constraint')}"
            )
            console.print(str(told), soft_wrap=True, markup=False)
            shown = ", ".join(f"{x:.6g}" for x in q)
            console.print(f"closed at q = ({shown})", soft_wrap=True)

        emit(answer, as_json, draw)


__all__ = ["register"]
