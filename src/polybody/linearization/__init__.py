"""State-space models of the equations of motion, about a state and along a motion."""

from polybody.linearization.derivative import derivative
from polybody.linearization.state_space import StateSpace, Tangent, linearize, nominal_load, state_space
from polybody.linearization.time_varying import TimeVarying, linearize_along

__all__ = [
    "StateSpace", "Tangent", "TimeVarying", "derivative", "linearize", "linearize_along", "nominal_load", "state_space",
]  # fmt: skip
