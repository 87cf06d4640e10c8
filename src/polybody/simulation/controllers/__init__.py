"""Controllers: tau = controller(t, q, v). Any function will do; these are the usual ones, one file each."""

from polybody.simulation.controllers.computed_torque import ComputedTorque
from polybody.simulation.controllers.given import Given, zero
from polybody.simulation.controllers.gravity import GravityCompensation
from polybody.simulation.controllers.operational_space import OperationalSpace
from polybody.simulation.controllers.pd import PD

__all__ = ["PD", "ComputedTorque", "Given", "GravityCompensation", "OperationalSpace", "zero"]
