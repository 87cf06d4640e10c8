"""The methods by name. One file holds one method."""

from __future__ import annotations

from polybody.errors import InputError
from polybody.simulation.integrators.base import Integrator, Interpolant, Options, Step
from polybody.simulation.integrators.cvodes import Cvodes
from polybody.simulation.integrators.dop853 import DormandPrince8
from polybody.simulation.integrators.idas import Idas
from polybody.simulation.integrators.midpoint import ImplicitMidpoint
from polybody.simulation.integrators.radau import Radau5
from polybody.simulation.integrators.rk4 import RungeKutta4
from polybody.simulation.integrators.semi_implicit import SemiImplicitEuler

METHODS: dict[str, Integrator] = {
    method.name: method
    for method in (
        DormandPrince8(), Radau5(), Cvodes(), Idas(), RungeKutta4(), SemiImplicitEuler(), ImplicitMidpoint()
    )
}


def method_named(name: str) -> Integrator:
    """The method, or an error that lists them."""
    if name not in METHODS:
        raise InputError(f"no integration method {name!r}; available: {', '.join(METHODS)}")
    return METHODS[name]


__all__ = ["METHODS", "Integrator", "Interpolant", "Options", "Step", "method_named"]
