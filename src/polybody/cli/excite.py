"""`polybody excite MODEL`: a motion to record for identification."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing
from polybody.names import counted


def register(app: typer.Typer) -> None:
    @app.command("excite")
    def excite(
        model: ModelArgument,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the motion (t, q, v, a) as .csv.")
        ] = None,
        period: Annotated[float, typer.Option("--period", help="Period in seconds.")] = 10.0,
        harmonics: Annotated[int, typer.Option("--harmonics", help="Number of Fourier harmonics per joint.")] = 5,
        criterion: Annotated[str, typer.Option("--criterion", help="condition or determinant.")] = "condition",
        speed: Annotated[float | None, typer.Option("--speed", help="Speed limit; default: the model's.")] = None,
        acceleration: Annotated[float | None, typer.Option("--acceleration", help="Acceleration limit.")] = None,
        effort: Annotated[float | None, typer.Option("--effort", help="Effort limit; default: the model's.")] = None,
        workspace: Annotated[
            list[str] | None,
            typer.Option(
                "--workspace", metavar="FRAME:X0,Y0,Z0,X1,Y1,Z1", help="Box that contains a frame's origin; repeatable."
            ),
        ] = None,
        tries: Annotated[int, typer.Option("--tries", help="Number of starts.")] = 3,
        iterations: Annotated[int, typer.Option("--iterations", help="Iterations of the optimiser.")] = 60,
        seed: Annotated[int, typer.Option("--seed", help="Seed of the starting points.")] = 0,
        base: BaseOption = None,
        force: ForceOption = False,
        json: JsonOption = False,
    ) -> None:
        """Compute an excitation trajectory for identification: a periodic motion within limits, well conditioned."""
        from polybody.identification.excitation import excitation
        from polybody.model.load import load

        refuse_existing(output, force)
        found = excitation(
            load(model, base=base), period=period, harmonics=harmonics, criterion=criterion, speed=speed,
            acceleration=acceleration, effort=effort, workspace=_boxes(workspace or []), tries=tries,
            iterations=iterations, seed=seed,
        )  # fmt: skip
        if output is not None:
            found.save(output)
        answer: dict[str, Any] = {
            "condition": found.condition, "start_condition": found.start_condition,
            "base_parameters": len(found.base), "period": found.period, "joints": list(found.names),
            "coefficients": found.coefficients, "largest_speed": abs(found.v).max(axis=0),
            "largest_force": abs(found.tau).max(axis=0), "file": None if output is None else str(output),
        }  # fmt: skip
        said = f"condition number {found.condition:.4g} (a random motion: {found.start_condition:.4g}), " \
               f"{counted(len(found.base), 'base parameter')}" + ("" if output is None else f"; wrote {output}")
        emit(answer, json, lambda console: console.print(said, soft_wrap=True))


def _boxes(texts: list[str]) -> dict[str, Any]:
    """{frame: (lower corner, upper corner)}."""
    from polybody.errors import InputError

    found: dict[str, Any] = {}
    for text in texts:
        frame, _, numbers = text.rpartition(":")
        try:
            corners = [float(part) for part in numbers.split(",")]
        except ValueError:
            corners = []
        if not frame or len(corners) != 6:
            raise InputError(f"--workspace {text!r}: expected FRAME:X0,Y0,Z0,X1,Y1,Z1, such as tool:0,-1,0.1,1,1,1")
        found[frame] = corners[:3], corners[3:]
    return found


__all__ = ["register"]
