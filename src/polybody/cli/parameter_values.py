"""`--set NAME=VALUE`: numbers of a model given on the command line, as `model.with_parameters` names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.errors import InputError

if TYPE_CHECKING:
    from polybody.model.model import Model

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another number of the model, e.g. 'link2.mass=3.5' in SI units and rad; repeatable."),
]


def with_values(model: Model, given: list[str] | None) -> Model:
    """The model with numbers replaced; an error names the one that no machine can have."""
    values: dict[str, Any] = {}
    for text in given or []:
        name, equals, number = text.partition("=")
        try:
            values[name.strip()] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"--set is {text!r}, expected NAME=VALUE, such as link2.mass=3.5")
    if not values:
        return model
    variant = model.with_parameters(*values)
    return variant.parameters.at(variant.parameters.values(values))


__all__ = ["SetOption", "with_values"]
