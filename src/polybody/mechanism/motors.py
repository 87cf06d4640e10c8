"""Electric motors on a tree: which velocities they drive, and what their rotors and bearings add.

Motor shafts turn with q̇ = E v. A motor on its own joint has gear = motor speed over joint speed; a transmission gives
φ̇ = G q̇ for several joints and motors together (Freeman's [G_q^φ], (2-230)), so that E = G⁻¹ on those joints. Then,
with J, B, K_t, K_e, R, L the motors' diagonal matrices (2-228)-(2-237):

    L di/dt + R i + K_e E v = V                     circuit
    tau = Eᵀ K_t i                                  what the motors exert on v
    armature += Eᵀ J E,   damping += Eᵀ B E         rotors and bearings belong to the mechanism
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.algebra.scalars import domain_of, is_symbolic, numbers
from polybody.description.records import Description, Motor
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.entries import Entries
from polybody.names import counted
from polybody.properties import cached_property

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Motors:
    """The motors of a mechanism, in the order described; arrays of one number a motor, E is motors×nv."""

    names: tuple[str, ...]
    speed_entries: Entries  # E: motor speed per velocity
    resistance: Array
    inductance: Array
    torque_constant: Array
    speed_constant: Array
    rotor_inertia: Array
    damping: Array
    driven: Array  # indices of the velocities that motors drive, one a motor

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def speeds(self) -> Array:
        """E, motors×nv: motor speed per velocity."""
        return self.speed_entries.dense

    @property
    def torques(self) -> Array:
        """Eᵀ K_t, nv×motors: joint forces of unit currents."""
        return self.speeds.T * self.torque_constant

    @property
    def voltages(self) -> Array:
        """K_e E, motors×nv: back-EMF of unit velocities."""
        return self.speed_constant[:, None] * self.speeds

    @cached_property
    def reflected_inertia(self) -> Entries:
        """Eᵀ J E, nv×nv."""
        return self.speed_entries.weighted(self.rotor_inertia)

    @cached_property
    def reflected_damping(self) -> Entries:
        """Eᵀ B E, nv×nv."""
        return self.speed_entries.weighted(self.damping)


def motors_of(description: Description, slices: dict[str, slice], active: dict[str, Array], nv: int) -> Motors:
    """The motors of a description on a tree; `slices` and `active` are those of its moving joints by name."""
    records = description.motors
    for motor in records:
        _check_place(motor, slices, active)
    driven = [slices[m.joint].start + m.coordinate for m in records]
    _check_distinct(records, driven)
    rows = [([column], [motor.gear]) for motor, column in zip(records, driven, strict=True)]
    for transmission in description.transmissions:
        _couple(rows, transmission.name, transmission.joints, numbers(transmission.matrix), records, driven)
    parts = [(np.full(len(row), k), np.array(row), np.array(values)) for k, (row, values) in enumerate(rows)]
    return Motors(
        names=tuple(m.name for m in records),
        speed_entries=Entries.summed((len(records), nv), parts),
        driven=np.array(driven, dtype=int),
        **{name: numbers([getattr(m, name) for m in records]) for name in _NUMBERS},
    )


_NUMBERS = ("resistance", "inductance", "torque_constant", "speed_constant", "rotor_inertia", "damping")


def _check_place(motor: Motor, slices: dict[str, slice], active: dict[str, Array]) -> None:
    where = f"{motor.source}: " if motor.source else ""
    if motor.joint not in slices:
        raise InputError(f"{where}motor {motor.name!r} is on {motor.joint!r}, which is not a moving joint of the tree")
    size = slices[motor.joint].stop - slices[motor.joint].start
    if not 0 <= motor.coordinate < size:
        raise InputError(
            f"{where}motor {motor.name!r} drives coordinate {motor.coordinate} of joint {motor.joint!r}, "
            f"which has {size}: 0 to {size - 1} are possible"
        )
    if not active[motor.joint][motor.coordinate]:
        raise InputError(
            f"{where}motor {motor.name!r} is on joint {motor.joint!r}, which is not actuated; "
            "make the joint active or take the motor off it"
        )
    if is_symbolic(*(getattr(motor, name) for name in (*_NUMBERS, "gear"))):
        return  # inputs of equations: their values are checked when they are given
    for name, least in (("resistance", 0), ("inductance", 0), ("rotor_inertia", 0), ("damping", 0)):
        value = getattr(motor, name)
        if not np.isfinite(value) or value < least:
            raise InputError(f"{where}motor {motor.name!r}: {name} is {value}, expected a finite number, zero or more")
    for name in ("torque_constant", "gear"):
        value = getattr(motor, name)
        if not np.isfinite(value) or value == 0:
            raise InputError(
                f"{where}motor {motor.name!r}: {name} is {value}, expected a finite number other than zero"
            )
    if not np.isfinite(motor.speed_constant):
        raise InputError(
            f"{where}motor {motor.name!r}: speed_constant is {motor.speed_constant}, expected a finite number"
        )
    if motor.resistance == 0 and motor.inductance == 0:
        raise InputError(
            f"{where}motor {motor.name!r} has neither resistance nor inductance, so its current is not determined; "
            "give it a resistance"
        )


def _check_distinct(records: Sequence[Motor], driven: list[int]) -> None:
    places: dict[int, str] = {}
    names: set[str] = set()
    for motor, column in zip(records, driven, strict=True):
        if column in places:
            raise InputError(f"motors {places[column]!r} and {motor.name!r} drive one coordinate of {motor.joint!r}")
        if motor.name in names:
            raise InputError(f"two motors are named {motor.name!r}")
        places[column] = motor.name
        names.add(motor.name)


def _couple(
    speeds: list[tuple[Any, Any]],
    name: str,
    joints: Sequence[str],
    matrix: Array,
    records: Sequence[Motor],
    driven: list[int],
) -> None:
    """Put G⁻¹ in place of the gears of a transmission's motors."""
    rows = []
    for joint in joints:
        found = [k for k, m in enumerate(records) if m.joint == joint]
        if len(found) != 1:
            raise InputError(
                f"transmission {name!r} couples joint {joint!r}, which has {counted(len(found), 'motor')}; "
                "it must have one"
            )
        if records[found[0]].gear != 1:
            raise InputError(
                f"transmission {name!r}: motor {records[found[0]].name!r} has gear {records[found[0]].gear}; "
                "put the gear into the transmission's matrix and leave the motor's gear at 1"
            )
        rows.append(found[0])
    if matrix.shape != (len(rows), len(rows)):
        raise InputError(
            f"transmission {name!r}: its matrix has shape {matrix.shape}, expected {(len(rows), len(rows))}"
        )
    domain = domain_of(matrix)
    if domain is FLOAT and (not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < len(rows)):
        raise InputError(f"transmission {name!r}: its matrix maps motor to joint speeds and must be invertible")
    columns = [driven[row] for row in rows]
    for row, values in zip(rows, domain.solve(matrix, domain.eye(len(rows))), strict=True):
        speeds[row] = (columns, values)


__all__ = ["Motors", "motors_of"]
