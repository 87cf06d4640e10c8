"""Linear state-space models of a mechanism (Freeman (2-241)-(2-252))."""

from polybody.linearization.state_space import StateSpace, linearize

__all__ = ["StateSpace", "linearize"]
