"""The methods by name. One file holds one method."""

from __future__ import annotations

from polybody.analysis.simulate.integrators.base import Integrator, Interpolant, Options, Step
from polybody.analysis.simulate.integrators.cvodes import Cvodes
from polybody.analysis.simulate.integrators.dop853 import DormandPrince8
from polybody.analysis.simulate.integrators.idas import Idas
from polybody.analysis.simulate.integrators.midpoint import ImplicitMidpoint
from polybody.analysis.simulate.integrators.radau import Radau5
from polybody.analysis.simulate.integrators.rk4 import RungeKutta4
from polybody.analysis.simulate.integrators.semi_implicit import SemiImplicitEuler
from polybody.errors import InputError

METHODS: dict[str, Integrator] = {
    method.name: method
    for method in (
        DormandPrince8(), Radau5(), Cvodes(), Idas(), RungeKutta4(), SemiImplicitEuler(), ImplicitMidpoint()
    )
}


def method_named(name: str) -> Integrator:
    """The method, or an error that lists them."""
    if name not in METHODS:
        raise InputError(f"no integration method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


__all__ = ["METHODS", "Integrator", "Interpolant", "Options", "Step", "method_named"]
