"""The table of everything a model can answer at a state. A new quantity is one entry here, and one test.

`QUANTITIES` are those without parameters; `FAMILIES` make one for a frame or two. `quantity(mechanism, "pose:hand")`
finds either by name: a family's parameters follow its name after colons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polybody.algebra.domains import Array, Domain
from polybody.constraints.coupling_forces import coupling_forces
from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.energy import energy, momentum
from polybody.mechanism.mechanism import Mechanism
from polybody.names import listed, nearest
from polybody.quantities import constrained, derivatives, frames, regressors, shortest, trees
from polybody.quantities.quantity import Quantity


def _energies(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> tuple[Array, Array]:
    kinetic, potential = energy(m, q, v, domain=domain)
    return domain.array([kinetic]), domain.array([potential])


_DYNAMICS = (
    Quantity(
        "inverse_dynamics", ("q", "v", "a"), (("tau", ("nv",)),), denoc.inverse_dynamics, constrained.inverse_dynamics,
        "Joint forces that produce the accelerations a.", "dynamics", reduced=True, loaded=True,
    ),
    Quantity(
        "forward_dynamics", ("q", "v", "tau"), (("a", ("nv",)),), shortest.forward_dynamics,
        constrained.forward_dynamics, "Accelerations under joint forces.", "dynamics", reduced=True, loaded=True,
    ),
    Quantity(
        "mass_matrix", ("q",), (("M", ("m", "m")),), denoc.mass_matrix, constrained.mass_matrix,
        "Mass matrix with armature and reflected rotors.", "dynamics", reduced=True,
    ),
    Quantity(
        "inverse_mass_matrix", ("q",), (("M_inverse", ("m", "m")),), denoc.inverse_mass_matrix,
        constrained.inverse_mass_matrix, "Inverse of the mass matrix.", "dynamics", reduced=True,
    ),
    Quantity(
        "coriolis_matrix", ("q", "v"), (("C", ("m", "m")),), denoc.coriolis_matrix, constrained.coriolis_matrix,
        "Saha's C with Ṁ − 2C skew.", "dynamics",
    ),
    Quantity(
        "bias_forces", ("q", "v"), (("bias", ("m",)),), denoc.bias_forces, constrained.bias_forces,
        "C v + gravity_forces.", "dynamics", reduced=True,
    ),
    Quantity(
        "gravity_forces", ("q",), (("gravity", ("m",)),), denoc.gravity_forces, constrained.gravity_forces,
        "Joint forces that balance gravity at rest.", "dynamics", reduced=True,
    ),
    Quantity(
        "passive_forces", ("q", "v"), (("passive", ("m",)),), denoc.passive_forces, constrained.passive_forces,
        "Forces of springs, dampers, friction and contact.", "dynamics",
    ),
    Quantity(
        "energy", ("q", "v"), (("kinetic", ()), ("potential", ())), _energies, None,
        "Kinetic and potential energy, including springs, armature and rotors.", "dynamics",
    ),
    Quantity(
        "momentum", ("q", "v"), (("momentum", (6,)),), momentum, None,
        "[angular; linear] momentum about the centre of mass, world axes.", "dynamics",
    ),
    Quantity(
        "centroidal_momentum_matrix", ("q",), (("A", (6, "nv")),), trees.centroidal_momentum_matrix, None,
        "A with momentum = A v.", "dynamics",
    ),
)  # fmt: skip

_KINEMATICS = (
    Quantity(
        "center_of_mass", ("q",), (("com", (3,)),), kinematics.center_of_mass, None,
        "Centre of mass of all moving bodies, in the world.", "kinematics",
    ),
    Quantity(
        "poses", ("q",), (("T", ("frames", 4, 4)),), trees.poses, None, "Pose of every frame in the world.",
        "kinematics",
    ),
    Quantity(
        "body_rotations", ("q",), (("R", ("bodies", 3, 3)),), trees.body_rotations, None,
        "Rotation of every body in the world.", "kinematics",
    ),
    Quantity(
        "integrate", ("q", "d"), (("q_next", ("nq",)),), kinematics.integrate, None,
        "Configuration reached from q along the tangent vector d.", "configurations",
    ),
    Quantity(
        "difference", ("q0", "q1"), (("d", ("nv",)),), kinematics.difference, None,
        "Tangent vector from q0 to q1.", "configurations",
    ),
    Quantity(
        "rate", ("q", "v"), (("qdot", ("nq",)),), kinematics.rate, None, "Time derivative of q.",
        "configurations",
    ),
)  # fmt: skip

_DERIVATIVES = (
    Quantity(
        "inverse_dynamics_derivatives", ("q", "v", "a"),
        (("dtau_dq", ("nv", "m")), ("dtau_dv", ("nv", "m")), ("dtau_da", ("nv", "m"))),
        denoc.inverse_dynamics_derivatives, constrained.inverse_dynamics_derivatives,
        "Derivatives of inverse dynamics in tangent space.", "derivatives", reduced=True, loaded=True,
    ),
    Quantity(
        "forward_dynamics_derivatives", ("q", "v", "tau"),
        (("da_dq", ("nv", "m")), ("da_dv", ("nv", "m")), ("da_dtau", ("nv", "nv"))),
        derivatives.forward_derivatives, constrained.forward_dynamics_derivatives,
        "Derivatives of forward dynamics in tangent space.", "derivatives", reduced=True, loaded=True,
        factors=derivatives.forward_factors,
    ),
    Quantity(
        "motion_derivatives", ("q", "v", "tau"),
        (("da_dq", ("nv", "m")), ("da_dv", ("nv", "m")), ("da_dtau", ("nv", "nv")), ("G", ("nv", "m")),
         ("V", ("nv", "m"))),
        derivatives.motion_derivatives, constrained.motion_derivatives,
        "Derivatives of forward dynamics, and of all velocities by the independent ones.", "derivatives",
        loaded=True,
    ),
)  # fmt: skip

_CONSTRAINTS = (
    Quantity(
        "constraint_loads", ("q", "v", "tau"), (("a", ("nv",)), ("multipliers", ("rows",))),
        trees.unconstrained_loads, constrained.constraint_loads,
        "Accelerations and constraint multipliers of least norm under joint forces.", "constraints", loaded=True,
    ),
    Quantity(
        "coupling_forces", ("q", "v", "a"), (("forces", ("followers",)),), coupling_forces, constrained.coupling_forces,
        "Forces of linear couplings on the coordinates of their followers.", "constraints", loaded=True,
    ),
    Quantity(
        "projection_step", ("q", "v"), (("step", ("nv",)), ("change", ("nv",))), trees.no_step,
        constrained.projection_step, "Newton step of q and correction of v that satisfy the constraints.",
        "constraints",
    ),
    Quantity(
        "implicit_residual", ("q", "v", "a", "tau", "multipliers"), (("balance", ("nv",)), ("closure", ("rows",))),
        trees.implicit_residual, constrained.implicit_residual,
        "Residuals of the equations of motion and of the acceleration constraints; no rank decision.",
        "constraints",
    ),
    Quantity(
        "augmented_system", ("q", "v", "tau"), (("K", ("all", "all")), ("right", ("all",))), trees.augmented_system,
        constrained.augmented_system, "Augmented system K [a; −multipliers] = right; no rank decision.", "constraints",
    ),
)  # fmt: skip

QUANTITIES: dict[str, Quantity] = {x.name: x for x in (*_DYNAMICS, *_KINEMATICS, *_DERIVATIVES, *_CONSTRAINTS)}

#: made for frames: (mechanism, *parameters) -> quantity
FAMILIES: Mapping[str, Callable[..., Quantity]] = {
    "pose": frames.pose,
    "relative_pose": frames.relative_pose,
    "jacobian": frames.jacobian,
    "jacobian_rate": frames.jacobian_rate,
    "frame_velocity": frames.velocity,
    "frame_acceleration": frames.acceleration,
    "task_space_inertia": frames.task_space_inertia,
    "reactions": frames.reactions,
    "influence": frames.influence,
    "center_of_mass_influence": frames.center_of_mass_influence,
    "regressor": regressors.regressor,
    "regressor_nonzeros": regressors.regressor_nonzeros,
    "energy_regressor": regressors.energy_regressor,
    "momentum_regressor": regressors.momentum_regressor,
}


#: the parameter that asks for wrenches on bodies as one more argument
LOADED = "wrenches"


def quantity(mechanism: Mechanism, name: str) -> Quantity:
    """The quantity of that name: "mass_matrix", or of a family "pose:FRAME", "jacobian:FRAME:frame", …

    "forward_dynamics:wrenches" is the variant that takes wrenches on bodies as its last argument, of every quantity
    that can.
    """
    if name in QUANTITIES:
        return QUANTITIES[name]
    family, *parameters = str(name).split(":")
    if parameters == [LOADED] and family in QUANTITIES and QUANTITIES[family].loaded:
        return QUANTITIES[family].with_wrenches()
    if family in FAMILIES:
        try:
            return FAMILIES[family](mechanism, *parameters)
        except InputError:
            raise
        except (TypeError, ValueError):
            wanted = ":".join([family, *(x.upper() for x in _parameters(family))])
            raise InputError(f"{name!r}: this quantity is called {wanted!r}") from None
    known: dict[str, Any] = {**QUANTITIES, **FAMILIES}
    raise InputError(f"no quantity {name!r}{nearest(str(name), known)}; available: {listed(known)}")


def _parameters(family: str) -> list[str]:
    import inspect

    return [p.name for p in inspect.signature(FAMILIES[family]).parameters.values()][1:]


__all__ = ["FAMILIES", "QUANTITIES", "quantity"]
