"""`polybody identify MODEL train.csv`: parameters from recorded motions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit


def register(app: typer.Typer) -> None:
    @app.command("identify")
    def identify(
        model: ModelArgument,
        train: Annotated[
            list[Path],
            typer.Argument(metavar="TRAIN", help="Recordings, .csv or .parquet: t, q1 …, v1 …, tau1 … (or i1 …)."),
        ],
        validate: Annotated[
            list[Path] | None, typer.Option("--validate", metavar="FILE", help="Validation recording; repeatable.")
        ] = None,
        drive_gains: Annotated[
            str | None, typer.Option("--drive-gains", metavar="K1,K2,…", help="Joint force per ampere, one per joint.")
        ] = None,
        terms: Annotated[
            str,
            typer.Option(
                "--terms", help="Joint terms: auto, or some of armature+viscous+coulomb+offset+quadratic+stribeck+load."
            ),
        ] = "auto",
        method: Annotated[
            str, typer.Option("--method", help="Least squares: ordinary, weighted or reweighted.")
        ] = "reweighted",
        consistent: Annotated[
            bool, typer.Option("--consistent/--least-squares", help="Require physically consistent inertias.")
        ] = True,
        prior: Annotated[float, typer.Option("--prior", help="Weight of the model's own (CAD) values.")] = 1e-4,
        cutoff: Annotated[float | None, typer.Option("--cutoff", help="Low-pass cutoff, Hz; default: auto.")] = None,
        rate: Annotated[float | None, typer.Option("--rate", help="Sampling rate, Hz; default: auto.")] = None,
        units: Annotated[
            str | None,
            typer.Option("--units", metavar="t=ms,q=deg,…", help="Units of t, q, v, tau, i that are not those of SI."),
        ] = None,
        save: Annotated[
            Path | None, typer.Option("--save", metavar="FILE", help="Write the identified model: .yaml, .urdf, .xml.")
        ] = None,
        report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report.")] = None,
        force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
        base: BaseOption = None,
        json: JsonOption = False,
    ) -> None:
        """Identify masses, inertias and friction from recorded motions, and report the prediction errors."""
        from polybody.identification.identify import identify as estimate
        from polybody.model.load import load

        loaded = load(model, base=base)
        found = estimate(
            loaded, list(train), validate=list(validate or []), terms=terms, method=method, consistent=consistent,
            drive_gains=_gains(drive_gains), prior=prior,
            cutoff=cutoff, rate=rate, units=_units(units),
        )  # fmt: skip
        answer: dict[str, Any] = found.summary()
        if save is not None:
            answer["saved"] = str(found.save(save, force=force))
        if report is not None:
            from polybody.studio.identification_report import identification_report

            answer["report"] = str(identification_report(found, report, force=force))
        emit(answer, json, lambda console: console.print(str(found), soft_wrap=True))


def _gains(text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    from polybody.errors import InputError

    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--drive-gains {text!r}: expected numbers separated by commas, such as 14.9,13.3") from None


def _units(text: str | None) -> dict[str, str] | None:
    """Pairs such as t=ms, separated by commas."""
    from polybody.errors import InputError

    pairs = [] if text is None else [part.partition("=") for part in text.split(",")]
    if not all(kind.strip() and unit.strip() for kind, _, unit in pairs):
        raise InputError(f"--units {text!r}: expected pairs separated by commas, such as t=ms,q=deg,tau=mNm")
    return {kind.strip(): unit.strip() for kind, _, unit in pairs} or None


__all__ = ["register"]
