"""The methods by name. One file holds one method, which is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from polybody.errors import InputError
from polybody.simulation.integrators.base import Integrator, Interpolant, Options, Step

#: {name: (module, class)}
_WHERE = {
    "dop853": ("dop853", "DormandPrince8"),
    "radau": ("radau", "Radau5"),
    "cvodes": ("cvodes", "Cvodes"),
    "idas": ("idas", "Idas"),
    "rk4": ("rk4", "RungeKutta4"),
    "semi-implicit": ("semi_implicit", "SemiImplicitEuler"),
    "midpoint": ("midpoint", "ImplicitMidpoint"),
}


class _Methods(Mapping[str, Integrator]):
    """{name: method}. First answers need not wait for the text of methods that they do not use."""

    def __init__(self) -> None:
        self._made: dict[str, Integrator] = {}

    def __getitem__(self, name: str) -> Integrator:
        if name not in self._made:
            module, kind = _WHERE[name]
            self._made[name] = getattr(import_module(f"{__name__}.{module}"), kind)()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_WHERE)

    def __len__(self) -> int:
        return len(_WHERE)


METHODS: Mapping[str, Integrator] = _Methods()


def method_named(name: str) -> Integrator:
    """The method, or an error that lists them."""
    if name not in _WHERE:
        raise InputError(f"no integration method {name!r}; available: {', '.join(METHODS)}")
    return METHODS[name]


__all__ = ["METHODS", "Integrator", "Interpolant", "Options", "Step", "method_named"]
