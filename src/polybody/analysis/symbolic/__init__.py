"""The symbolic face of a model (Kwatny & Blankenship): closed forms people can read, and what is made from them."""

from polybody.analysis.symbolic.equations import Equations, Linearization
from polybody.analysis.symbolic.model import Size, SymbolicModel
from polybody.analysis.symbolic.program import Program

__all__ = ["Equations", "Linearization", "Program", "Size", "SymbolicModel"]
