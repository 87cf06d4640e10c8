"""Poincaré's equations as trigonometric polynomials.

The same text as for numbers (`formulations.poincare`) is read over the domain of trigonometric polynomials; only the
derivatives along the fields v_k are taken more cheaply where they can be: where a stage has one column, v_k = ∂/∂q_k, a
derivative of the finished 𝓜 and 𝒱. A stage with quasi-velocities is moved by jets, which never meets the secants of Γ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from polybody.algebra.jets import JetDomain
from polybody.algebra.spatial import pose
from polybody.errors import PolybodyError
from polybody.formulations import denoc, poincare
from polybody.formulations.poincare.equations import generalized_forces
from polybody.formulations.poincare.fields import stage_maps, transport, unit
from polybody.mechanism import kinematics
from polybody.mechanism.forces import spring_energy
from polybody.mechanism.mechanism import Mechanism
from polybody.properties import cached_property
from polybody.symbolic.domain import TrigDomain
from polybody.symbolic.ring import HALF, ZERO, Ring, Trig

Array = np.ndarray


class ClosedForms:
    """The quantities of one symbolic mechanism, each computed once, as arrays of ring elements."""

    def __init__(
        self,
        mechanism: Callable[[TrigDomain], Mechanism],
        q: tuple[Any, ...],
        p: tuple[Any, ...],
        parallel: list[tuple[int, int]],
        progress: Callable[[str], None] = lambda text: None,
        own: tuple[Any, tuple[Any, ...]] | None = None,
    ) -> None:
        ring = Ring()
        self.domain = TrigDomain(ring)
        self.q_symbols, self.p_symbols = q, p
        self.q = np.array([ring.generator(x, angle=True) for x in q], dtype=object)
        self.p = np.array([ring.generator(x) for x in p], dtype=object)
        for first, second in parallel:
            ring.join_groups(q[first], q[second])
        self.mechanism = mechanism(self.domain)
        self.progress = progress
        #: a potential and forces on p beside those of the mechanism
        self.own_potential = ZERO if own is None else self.domain.from_sympy(own[0])
        self.own_forces = None if own is None else [self.domain.from_sympy(x) for x in own[1]]

    @property
    def n(self) -> int:
        return len(self.p)

    @cached_property
    def states(self) -> list[poincare.JointState]:
        self.progress("joints")
        return poincare.joint_states(self.mechanism, self.q, domain=self.domain)

    @cached_property
    def rigid_mass_matrix(self) -> Array:
        self.progress("mass matrix")
        return poincare.rigid_mass_matrix(self.mechanism, self.states, domain=self.domain)

    @cached_property
    def mass_matrix(self) -> Array:
        return self.rigid_mass_matrix + self.domain.array(self.mechanism.armature)

    @cached_property
    def gravity_potential(self) -> Any:
        self.progress("potential")
        return poincare.gravity_potential(self.mechanism, self.states, domain=self.domain)

    @cached_property
    def potential(self) -> Any:
        self._refuse_logarithms()
        poses = kinematics.body_poses(self.mechanism, self.q, domain=self.domain)
        springs = spring_energy(self.mechanism, self.q, poses, domain=self.domain)
        return self.gravity_potential + springs + self.own_potential

    @cached_property
    def mass_slopes(self) -> list[Array]:
        """v_k(𝓜) for every k."""
        return [self._mass_slope(k) for k in range(self.n)]

    def _mass_slope(self, k: int) -> Array:
        self.progress(f"derivative {k + 1} of {self.n}")
        if self.is_coordinate[k]:
            slope = self.domain.zeros(self.n, self.n)
            for i in range(self.n):
                for j in range(i, self.n):
                    slope[i, j] = slope[j, i] = self.diff(self.rigid_mass_matrix[i, j], self.q_symbols[k])
            return slope
        jets = JetDomain(self.domain)
        return jets.rates(poincare.rigid_mass_matrix(self.mechanism, self._moved(k), domain=jets))

    @cached_property
    def potential_forces(self) -> Array:
        """𝓕 for gravity and a user's own potential, (53c)."""
        F, jets = self.domain.zeros(self.n), JetDomain(self.domain)
        for k in range(self.n):
            if self.is_coordinate[k]:
                F[k] = self.diff(self.gravity_potential, self.q_symbols[k])
            else:
                value = poincare.gravity_potential(self.mechanism, self._moved(k), domain=jets)
                F[k] = jets.rates(np.array(value, dtype=object))[()]
        if isinstance(self.own_potential, Trig):
            slopes = np.array([self.diff(self.own_potential, x) for x in self.q_symbols], dtype=object)
            F = F + self.kinematic_matrix().T @ slopes
        return F

    def _moved(self, k: int) -> list[poincare.JointState]:
        direction = unit(self.n, k, self.domain)
        return poincare.moved_states(self.mechanism, self.q, self.states, direction, domain=self.domain)

    @cached_property
    def is_coordinate(self) -> list[bool]:
        """For each k whether v_k = ∂/∂q_k: its stage has one column."""
        result: list[bool] = []
        for joint in self.mechanism.independent_joints:
            for stage, _ in stage_maps(joint.model):
                result += [stage.stop - stage.start == 1 or joint.model.rates_are_velocities] * (
                    stage.stop - stage.start
                )
        return result

    @cached_property
    def structure_constants(self) -> Array:
        return poincare.structure_constants(self.mechanism, domain=self.domain)

    @cached_property
    def slopes(self) -> Array:
        """S = ∂(𝓜p)/∂q V."""
        S = self.domain.zeros(self.n, self.n)
        for k, slope in enumerate(self.mass_slopes):
            S[:, k] = slope @ self.p
        return S

    @cached_property
    def poincare_matrix(self) -> Array:
        """𝓒 of (53b)."""
        return poincare.assembled_poincare_matrix(
            self.slopes, self.rigid_mass_matrix, self.structure_constants, self.p, domain=self.domain
        )

    @cached_property
    def velocity_forces(self) -> Array:
        """𝓒 p, by (40): half of what the matrix costs, since like products of p meet."""
        self.progress("velocity terms")
        result = self.domain.zeros(self.n)
        for k in range(self.n):
            half = (self.mass_slopes[k] @ self.p) @ self.p * HALF
            along: Any = ZERO
            for j in range(self.n):
                along = along + self.slopes[k, j] * self.p[j]
            result[k] = along - half
        momentum = self.rigid_mass_matrix @ self.p
        return result - transport(self.structure_constants, self.p, momentum, domain=self.domain)

    @cached_property
    def passive_forces(self) -> Array:
        """What springs, dampers and a user's own forces exert on p."""
        self._refuse_logarithms()
        forces = generalized_forces(self.mechanism, self.q, self.p, None, self.states, domain=self.domain)
        return forces if self.own_forces is None else forces + np.array(self.own_forces, dtype=object)

    def _refuse_logarithms(self) -> None:
        for joint in self.mechanism.joints:
            if joint.stiffness.any() and not joint.model.rates_are_velocities:
                raise PolybodyError(
                    f"joint {joint.name!r} has a spring on a rotation of several axes: its force is a logarithm, case "
                    "by case, and has no closed form worth reading; use .program(...), which has it"
                )

    @cached_property
    def bias(self) -> Array:
        """𝓒p + 𝓕 − passive."""
        return self.velocity_forces + self.potential_forces - self.passive_forces

    @cached_property
    def coriolis_matrix(self) -> Array:
        """Saha's C."""
        self.progress("Coriolis matrix")
        return denoc.coriolis_matrix(self.mechanism, self.q, self.p, domain=self.domain)

    @cached_property
    def kinetic_energy(self) -> Any:
        return (self.mass_matrix @ self.p) @ self.p * HALF

    def kinematic_matrix(self) -> Array:
        """V of (39)."""
        return poincare.kinematic_matrix(self.mechanism, self.q, domain=self.domain)

    def frame_pose(self, index: int) -> Array:
        poses = kinematics.body_poses(self.mechanism, self.q, domain=self.domain)
        frame = self.mechanism.frames[index]
        return pose(*kinematics.frame_pose(frame, poses, domain=self.domain), domain=self.domain)

    def diff(self, x: Any, symbol: Any) -> Any:
        """∂x/∂symbol of a ring element."""
        if not isinstance(x, Trig):
            return ZERO
        return x.diff(self.domain.ring.index(symbol), self._opaque_slope)

    def _opaque_slope(self, generator: int, variable: int) -> Any:
        """The derivative of a generator that represents an expression."""
        names = self.domain.ring.names
        expression = names[generator]
        if expression.is_Symbol or not expression.has(names[variable]):
            return ZERO
        return self.domain.from_sympy(sympy.diff(expression, names[variable]))


__all__ = ["ClosedForms"]
