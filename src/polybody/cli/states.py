"""Configurations, velocities and joint forces on the command line: one way to write them for every command.

    --q neutral                        the neutral configuration, or another that the model names
    --q "joint1=30deg,joint3=0.2"      some joints; the others are neutral
    --q "0,0.5,-90deg"                 all of q

A model with loops is assembled around the joints that are named. All of q is used as it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.names import counted

if TYPE_CHECKING:
    from polybody.model.model import Model

ConfigurationOption = Annotated[
    str, typer.Option("--q", help="Configuration: a name, 'joint=30deg,…', or all of q; loops are assembled.")
]


def configuration(option: str, text: str, model: Model) -> Any:
    """q of an option; loops are closed around the joints that it names."""
    q = numbers(option, text, model, "q")
    if model.mechanism.constrained and (text == "neutral" or "=" in text):
        return model.assemble(q, hold=named(text))
    return q


def velocity(option: str, text: str, model: Model, q: Any) -> Any:
    """v of an option at q, likewise; zero where nothing is given."""
    import numpy as np

    v = numbers(option, text, model, "v") if text else np.zeros(model.nv)
    return model.assemble_velocity(q, v, hold=named(text)) if model.mechanism.constrained and "=" in text else v


def named(text: str) -> list[str]:
    """The joints of 'joint=value,…'."""
    return [part.partition("=")[0].strip() for part in text.split(",") if "=" in part]


def numbers(option: str, text: str, model: Model, which: str) -> Any:
    """A configuration's name, all numbers in order, or 'joint=value' pairs over the neutral configuration (or zeros).

    `which` is "q", "v" or "tau". A number may carry the unit of its coordinate: an angle where the joint turns, a
    length where it slides; forces carry none.
    """
    import numpy as np

    from polybody.description.coordinate_units import coordinate_units
    from polybody.description.units import quantity
    from polybody.errors import InputError
    from polybody.names import nearest

    if which == "q" and "=" not in text:
        from polybody.model.named_configurations import configurations

        known = configurations(model)
        if text.strip() in known:
            return known[text.strip()]
    slices = {name: pair[0 if which == "q" else 1] for name, pair in model.joint_slices().items()}
    records = {joint.name: joint for joint in model.description.joints}
    units = {
        place.start + k: (name, unit)
        for name, place in slices.items()
        for k, unit in enumerate(coordinate_units(records[name], which))
    }
    result = model.neutral() if which == "q" else np.zeros(model.nv)
    parts = [part.strip() for part in text.split(",") if part.strip()]

    def value(part: str, index: int) -> float:
        owner, unit = units[index]
        try:
            number = quantity(part, unit)
        except InputError as error:
            raise InputError(f"{option}: joint {owner!r}: {error}") from None
        if not np.isfinite(number):
            raise InputError(f"{option}: joint {owner!r}: {part!r} is not a finite number")
        return number

    if not any("=" in part for part in parts):
        if len(parts) != len(result):
            raise InputError(
                f"{option} has {counted(len(parts), 'number')}, expected {len(result)}, or joint=value pairs"
            )
        return np.array([value(part, i) for i, part in enumerate(parts)])
    for part in parts:
        name, equals, number = part.partition("=")
        name = name.strip()
        if not equals or name not in slices:
            raise InputError(f"{option}: no joint {name!r}{nearest(name, slices)}; available: {', '.join(slices)}")
        place = slices[name]
        if place.stop - place.start != 1:
            raise InputError(f"{option}: joint {name!r} has {place.stop - place.start} numbers; give all of {which}")
        result[place] = value(number, place.start)
    return result


__all__ = ["ConfigurationOption", "configuration", "named", "numbers", "velocity"]
