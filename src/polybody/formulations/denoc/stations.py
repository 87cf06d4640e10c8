"""Joint maps of long branches about common origins: columns of C then reach many joints without a step for each.

A wrench w_i of (29) is carried to every ancestor j, a step B_ijᵀ for each joint on the way, and projected there by H_j.
Both may as well be about the origin O_s and in the axes of another body s, the *station* of j. With R the rotation of j
in s, p = O_j − O_s, and rates in inertial space,

    H_j about O_s:    [ R H_ω;  R H_v + p × R H_ω ]                                                            (1)
    its rate:         [ R Ḣ_ω;  R Ḣ_v + p × R Ḣ_ω + ṗ × R H_ω ]                                                 (2)
    c_ij = n · Ḣ_ω + f · Ḣ_v + (g + Σ ṙ × f) · H_ω                with H, Ḣ, n, f, g and Σ ṙ all about O_s       (3)

for n about O_j is n − p × f, and Σ ṙ to O_j is Σ ṙ to O_s less ṗ. A pair of joints with the same station takes 15
products instead of some 40, and each joint (1), (2) and one way to its station more. So in mechanisms of few joints in
a row every body is its own station; in longer ones a station has up to `REACH` joints. (One for all would save more,
but levers of a whole chain cost digits of what is small at its end.)
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.links import Crossing
from polybody.late import dataclass
from polybody.mechanism.mechanism import GROUND, Mechanism

#: joints in a row up to which every body is its own station. Coriolis matrices of chains, µs per state with stations
#: and without (Zen 3): joints placed along the axes of their bodies, 20 of them 0.72 and 0.68, 30 1.77 and 1.97, 40
#: 3.04 and 3.69; placed at any angles 0.87 and 1.27, 2.03 and 3.36, 3.47 and 7.47
SHORT = 24
#: joints in a row that have one station at most
REACH = 20


@dataclass(frozen=True, eq=False)
class Stations:
    """The station of every body, how to get there, and the joint maps there."""

    of: list[int]
    steps: dict[int, tuple[Crossing, Array]]  # (the way to the station, ṗ) of bodies that are not their own
    H: list[Array]  # (1)
    rates: list[Array]  # (2)


def stations(
    mechanism: Mechanism, across: list[Crossing], slides: list[Array], rates: list[Array], *, domain: Domain
) -> Stations:
    """Those of a mechanism, `slides` the velocities ṙ of O_i from O_j, `rates` the inertial rates of the joint maps."""
    of = _chosen(mechanism)
    steps: dict[int, tuple[Crossing, Array]] = {}
    found: list[tuple[Array, Array]] = []
    for joint, step, slide, rate in zip(mechanism.joints, across, slides, rates, strict=True):
        i, j = joint.index, joint.parent
        if of[i] == i:
            found.append((step.H, rate))
            continue
        own = step.factors[1] if step.trivial else step.factors[0] @ step.factors[1]
        way, p_dot = Crossing((own, own), step.r, step.H, trivial=True), slide
        if of[i] != j:
            before, drift = steps[j]
            R = before.factors[1] if step.trivial else before.factors[1] @ step.factors[0]
            R = R @ step.factors[1]
            way = Crossing((R, R), before.r + before.to_parent(step.r), step.H, trivial=True)
            p_dot = drift + before.to_parent(slide)
        steps[i] = way, p_dot
        found.append(_moved(way, p_dot, step.H, rate))
    return Stations(of, steps, [H for H, _ in found], [rate for _, rate in found])


def _moved(way: Crossing, p_dot: Array, H: Array, rate: Array) -> tuple[Array, Array]:
    """(1) and (2)."""
    columns, rates = [], []
    for own, change in zip(H.T, rate.T, strict=True):
        omega, turning = way.to_parent(own[:3]), way.to_parent(change[:3])
        columns.append(np.concatenate([omega, way.to_parent(own[3:]) + cross(way.r, omega)]))
        drift = cross(way.r, turning) + cross(p_dot, omega)
        rates.append(np.concatenate([turning, way.to_parent(change[3:]) + drift]))
    return np.column_stack(columns), np.column_stack(rates)


def _chosen(mechanism: Mechanism) -> list[int]:
    """The station of every body: the first of as many joints in a row as divide the longest branch evenly."""
    depths: list[int] = []
    for joint in mechanism.joints:
        depths.append(0 if joint.parent == GROUND else depths[joint.parent] + 1)
    longest = max(depths, default=0) + 1
    reach = 1 if longest <= SHORT else -(-longest // -(-longest // REACH))
    of: list[int] = []
    for joint, depth in zip(mechanism.joints, depths, strict=True):
        of.append(joint.index if depth % reach == 0 else of[joint.parent])
    return of


__all__ = ["Stations", "stations"]
