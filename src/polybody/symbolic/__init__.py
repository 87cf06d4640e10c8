"""The symbolic face of a model (Kwatny & Blankenship): closed forms people can read, and what is made from them."""

from polybody.symbolic.equations import Equations, Linearization
from polybody.symbolic.model import Size, SymbolicModel
from polybody.symbolic.program import Program

__all__ = ["Equations", "Linearization", "Program", "Size", "SymbolicModel"]
