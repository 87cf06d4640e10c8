"""Arms that hold a common object (Swain & Morris 2003, sections 5.4 to 9)."""

from polybody.analysis.cooperation.capture import captured
from polybody.analysis.cooperation.closed import closed_forward_dynamics, object_acceleration
from polybody.analysis.cooperation.consistency import close, closed_configuration, misalignment, openings
from polybody.analysis.cooperation.grips import Grip, Holding, closure_matrix, lean_holding
from polybody.analysis.cooperation.loads import equal_shares, internal_basis, internal_names, internal_part
from polybody.analysis.cooperation.planning import plan_holding

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
