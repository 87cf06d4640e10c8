"""Functions of a model that other objects answer themselves: `pb.simulate(network, …)` is `network.simulated(…)`.

An analysis is a function of a `Model` in a folder of its own. An object of a folder above it (a network of parts) takes
part by a method of an agreed name, so that the analysis need not import that folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def answered_by(method: str) -> Callable[[F], F]:
    """A decorator: where the first argument's class has `method`, it is called with all other arguments as they are."""

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            own = getattr(type(arguments[0]), method, None) if arguments else None
            return (function if own is None else own)(*arguments, **options)

        return cast(F, call)

    return decorate


__all__ = ["answered_by"]
