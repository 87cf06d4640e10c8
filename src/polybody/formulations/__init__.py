"""Five complete ways to write the same motion, behind one protocol."""

from polybody.formulations.protocol import Formulation, formulation, formulations

__all__ = ["Formulation", "formulation", "formulations"]
