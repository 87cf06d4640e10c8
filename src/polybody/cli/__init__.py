"""The command line: `polybody COMMAND …`.

One file of this folder holds one command and defines `register(app)`, which adds it. `COMMANDS` lists those files in
the order `polybody --help` shows them; a new command is a new file and a new entry. Command modules import the heavy
parts of polybody inside the command's function, so that `polybody --help` and shell completion answer at once.

An error that polybody raises on purpose (`PolybodyError`) is a red message on stderr and exit code 1. Its traceback
is shown where POLYBODY_TRACEBACK=1. Any other exception is a bug, and keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from polybody.cli.completion import complete_options
from polybody.cli.examples import epilog
from polybody.cli.failures import FriendlyGroup
from polybody.cli.output import PIPED_WIDTH

# Names of modules in this folder, in the order of `polybody --help`.
COMMANDS: tuple[str, ...] = (
    "demo",
    "models",
    "info",
    "check",
    "convert",
    "schema",
    "draw",
    "simulate",
    "inverse",
    "plot",
    "view",
    "render",
    "linearize",
    "sensitivities",
    "study",
    "performance",
    "identify",
    "excite",
    "loops",
    "grasp",
    "network",
    "derive",
    "export_c",
    "export_fmu",
    "count",
    "cache",
)

# Help is plain text: rich's boxes take as long to load as all else together. Piped, its lines are not wrapped.
WIDTH = {"max_content_width": 120} if sys.stdout is not None and sys.stdout.isatty() else {
    "terminal_width": PIPED_WIDTH, "max_content_width": PIPED_WIDTH}  # fmt: skip
def _print_version(wanted: bool) -> None:
    if wanted:
        from polybody import __version__

        typer.echo(f"polybody {__version__}")
        raise typer.Exit


def _polybody(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Model, simulate and analyse robots and mechanisms, with five formulations of multibody dynamics."""


def application(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    made = typer.Typer(
        name="polybody",
        cls=FriendlyGroup,
        help="Model, simulate and analyse robots and mechanisms, with five formulations of multibody dynamics.",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,  # plain tracebacks: they can be pasted into an issue
        context_settings={"help_option_names": ["-h", "--help"], **WIDTH},
    )
    made.callback()(_polybody)
    for command in commands:
        import_module(f"{__name__}.{command}").register(made)
    for told in made.registered_commands:
        told.epilog = epilog(told.name or "")
        if told.callback is not None:
            complete_options(told.name or "", told.callback)
    return made


def __getattr__(name: str) -> typer.Typer:
    """`app`, with all commands, is made when somebody asks for it: a command that runs needs itself alone."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = made = application()
    return made


def wanted(words: Sequence[str]) -> Sequence[str]:
    """The commands that a command line needs: the one it begins with, or all, for help, completion and errors."""
    known = [name for name in COMMANDS if words and words[0] == name.replace("_", "-")]
    return COMMANDS if not known or "_POLYBODY_COMPLETE" in os.environ else known


def main() -> None:
    """Run the command line on `sys.argv`; the entry point of the `polybody` script."""
    application(wanted(sys.argv[1:]))(prog_name="polybody")


app: typer.Typer  # by `__getattr__`

__all__ = ["COMMANDS", "app", "application", "main", "wanted"]
