"""Arms that hold a common object (Swain & Morris 2003, sections 5.4 to 9)."""

from polybody.grasping.capture import captured
from polybody.grasping.closed import closed_forward_dynamics, object_acceleration
from polybody.grasping.consistency import close, closed_configuration, misalignment, openings
from polybody.grasping.grips import Grip, Holding, closure_matrix, lean_holding
from polybody.grasping.loads import equal_shares, internal_basis, internal_names, internal_part
from polybody.grasping.planning import plan_holding

__all__ = [
    "Grip",
    "Holding",
    "captured",
    "close",
    "closed_configuration",
    "closed_forward_dynamics",
    "closure_matrix",
    "equal_shares",
    "internal_basis",
    "internal_names",
    "internal_part",
    "lean_holding",
    "misalignment",
    "object_acceleration",
    "openings",
    "plan_holding",
]
