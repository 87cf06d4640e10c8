"""How the command line reports errors and warnings that polybody raises on purpose."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from polybody.description.naming import printable
from polybody.errors import PolybodyError, PolybodyWarning


def traceback_wanted() -> bool:
    """Whether the user asked for tracebacks of deliberate errors (POLYBODY_TRACEBACK=1)."""
    return os.environ.get("POLYBODY_TRACEBACK", "") not in ("", "0")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show each `PolybodyWarning` as one yellow line on stderr; leave other warnings as Python shows them."""
    with warnings.catch_warnings():
        python_shows = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, PolybodyWarning):
                typer.secho(printable(f"warning: {message}"), fg=typer.colors.YELLOW, err=True)
            else:
                python_shows(message, category, *place, **more)

        warnings.simplefilter("always", PolybodyWarning)
        warnings.showwarning = show
        yield


class FriendlyGroup(TyperGroup):
    """The group of all commands: it turns a `PolybodyError` of any of them into a message and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with plain_warnings():
                return super().invoke(ctx)
        except PolybodyError as error:
            if traceback_wanted():
                raise
            typer.secho(printable(f"error: {error}"), fg=typer.colors.RED, err=True)
            raise typer.Exit(1) from None


__all__ = ["FriendlyGroup", "plain_warnings", "traceback_wanted"]
