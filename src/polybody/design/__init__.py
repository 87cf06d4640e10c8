"""How well a machine does its work: ellipsoids, conditioning, workspace, actuators' sizes, stiffness, modes."""

from polybody.design.ellipsoids import Ellipsoid
from polybody.design.performance import Performance, performance
from polybody.design.sizing import Capacity, Sizing
from polybody.design.stiffness import Modes, Stiffness
from polybody.design.workspace import Workspace

__all__ = ["Capacity", "Ellipsoid", "Modes", "Performance", "Sizing", "Stiffness", "Workspace", "performance"]
