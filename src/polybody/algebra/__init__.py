"""Scalar domains, rotations, twists, wrenches and inertias: mathematics that knows no mechanism."""

from polybody.algebra.domains import COMPLEX, FLOAT, Array, Domain, Scalar, domain
from polybody.algebra.jets import Jet, JetDomain

__all__ = ["COMPLEX", "FLOAT", "Array", "Domain", "Jet", "JetDomain", "Scalar", "domain"]
