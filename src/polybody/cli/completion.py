"""What the shell completes: values of options, and names of the joints and frames of the model on the command line.

`COMPLETED` says it for every command at once, by the name of the parameter. Values are those of the module that checks
them, imported when the shell asks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, get_type_hints

import typer

Completer = Callable[..., list[str]]


def constants(*places: str, more: tuple[str, ...] = ()) -> Completer:
    """The names in tuples, or the keys of tables, each "module:CONSTANT"; and `more`."""

    def complete(incomplete: str) -> list[str]:
        names = list(more)
        for module, _, name in (place.partition(":") for place in places):
            names += getattr(import_module(f"polybody.{module}"), name)
        return _beginning(incomplete, names)

    return complete


def values(*names: str) -> Completer:
    """These names."""
    return lambda incomplete: _beginning(incomplete, names)


def frames(ctx: typer.Context, incomplete: str) -> list[str]:
    """Links and frames of the model."""
    found = _described(ctx)
    return [] if found is None else _beginning(incomplete, (r.name for r in (*found.bodies, *found.frames)))


def joints(ctx: typer.Context, incomplete: str) -> list[str]:
    """Joints of the model that move; after a comma, those of a list."""
    found = _described(ctx)
    before, comma, last = incomplete.rpartition(",")
    names = [] if found is None else [joint.name for joint in found.joints if joint.kind != "fixed"]
    return [before + comma + name for name in _beginning(last, names)]


def configuration(ctx: typer.Context, incomplete: str) -> list[str]:
    """`joint=` for each joint of the model, after a comma too; names of configurations first."""
    found = _described(ctx)
    named = [] if found is None or "," in incomplete else [c.name for c in found.configurations]
    return _beginning(incomplete, ("neutral", *named)) + [name + "=" for name in joints(ctx, incomplete)]


def numbers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the model's parameters."""
    from polybody.description.parameters import parameters_of

    found = _described(ctx)
    return [] if found is None else _beginning(incomplete, (p.name for p in parameters_of(found)))


def assignments(ctx: typer.Context, incomplete: str) -> list[str]:
    """`NAME=` for each parameter of the model."""
    return [f"{name}=" for name in numbers(ctx, incomplete)]


def units(incomplete: str) -> list[str]:
    """`t=ms` and other pairs of a quantity and its unit; after a comma, those of a list."""
    from polybody.identification.headers import UNITS

    before, comma, last = incomplete.rpartition(",")
    pairs = (f"{kind}={unit}" for kind, known in UNITS.items() for unit in known)
    return [before + comma + pair for pair in _beginning(last, pairs)]


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Nodes of the network on the command line; after a comma, the second of a pair."""
    net = _network(ctx)
    before, comma, last = incomplete.rpartition(",")
    return [] if net is None else [before + comma + name for name in _beginning(last, net.nodes)]


def responses(ctx: typer.Context, incomplete: str) -> list[str]:
    """Inputs of the network on the command line, then the across and through variables of its ports."""
    net = _network(ctx)
    if net is None:
        return []
    parts = net.components.values()
    sides = [f"{port.name}.{letter}" for part in parts for port in part.ports
             for letter in (port.domain.across, port.domain.through)]
    return _beginning(incomplete, (*(name for part in parts for name in part.inputs), *sides))


#: (command, parameter), or the parameter alone where it is the same in all commands
COMPLETED: dict[str | tuple[str, str], Completer] = {
    "base": constants("description.bases:BASES"),
    "q": configuration,
    "v": configuration,
    "values": assignments,
    "at": configuration,
    ("render", "at"): values(),  # a time
    "velocity": configuration,
    "torque": configuration,
    "start": configuration,
    "end": configuration,
    ("performance", "to"): configuration,
    "controller": constants("cli.simulate:CONTROLLERS"),
    ("simulate", "method"): constants("simulation.integrators:METHODS"),
    ("sensitivities", "method"): constants("simulation.integrators:METHODS"),
    "limits": constants("simulation.start:LIMITS"),
    "efforts": constants("simulation.saturation:EFFORTS"),
    "friction": constants("simulation.start:FRICTION"),
    "path": constants("cli.inverse:KINDS"),
    "theme": constants("studio.render.raster:THEMES"),
    "size": values("1280x720", "1920x1080", "3840x2160"),
    "inputs": values("torque", "voltage"),
    "form": constants("studies.dataset:FORMATS"),
    "cluster": values("auto"),
    "rows": constants("design.task:CHOICES"),
    "terms": constants("identification.joint_terms:ALL", more=("auto",)),
    "units": units,
    ("identify", "method"): constants("identification.least_squares:METHODS"),
    "criterion": constants("identification.excitation:CRITERIA"),
    "symbols": values("all", "none", "masses", "lengths", "inertias", "gravity"),
    "joints": values("simple", "compound"),
    "quantity": constants("quantities.table:QUANTITIES", "bridges.c_steps:STEPS"),
    "frame": frames,
    "trail": frames,
    ("linearize", "output"): frames,
    "disturbance": frames,
    "hand": frames,
    "held": frames,
    ("excite", "workspace"): frames,  # the frame before the colon
    "independent": joints,
    "grid": joints,
    "hold": joints,
    "driven": joints,
    "bode": responses,
    "impedance": nodes,
    "admittance": nodes,
}


def complete_options(command: str, function: Callable[..., Any]) -> None:
    """Let the options of a command complete as `COMPLETED` says."""
    hints = get_type_hints(function, include_extras=True)
    for name in inspect.signature(function).parameters:
        chosen = COMPLETED.get((command, name)) or COMPLETED.get(name)
        for info in getattr(hints[name], "__metadata__", ()):
            if chosen is not None and isinstance(info, typer.models.OptionInfo):
                info.autocompletion = chosen
    function.__annotations__ = hints


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _described(ctx: typer.Context) -> Any:
    """The description of the model on the command line; None where there is none yet, or it cannot be read."""
    from polybody.description.reading import read_description

    return _read(ctx, read_description)


def _network(ctx: typer.Context) -> Any:
    """The network on the command line, likewise."""
    from polybody.networks.reading import load_network

    return _read(ctx, load_network)


def _read(ctx: typer.Context, read: Callable[[str], Any]) -> Any:
    import warnings

    from polybody.errors import PolybodyError

    # with an option half typed, positional words are not yet parameters
    given = ctx.params.get("model") or ctx.params.get("what") or ctx.args
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(given if isinstance(given, str) else given[0])
    except (PolybodyError, IndexError):
        return None  # the command itself will say what is wrong


__all__ = ["COMPLETED", "complete_options", "configuration", "constants", "frames", "joints", "nodes", "responses",
           "units", "values"]  # fmt: skip
