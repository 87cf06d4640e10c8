"""Identities of motion, proved without rounding: what is proved, and what a change in the last digits breaks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import polybody as pb
from loop_states import massive
from polybody.description.records import frozen_array
from polybody.identification.base_parameters import sampled_rank
from polybody.identification.loop_space import lasting_motions
from polybody.identification.proofs.echelon import Echelon
from polybody.identification.proofs.motions import proved_motions
from polybody.identification.proofs.prime_field import PrimeField, random_prime
from polybody.identification.states import mobility_at, sample_states
from polybody.model.validation import model_from

FIELD = PrimeField(random_prime(np.random.default_rng(3)))


def test_numbers_of_files_are_read_as_the_numbers_they_mean() -> None:
    number, p = FIELD.number, FIELD.p
    assert number(0.1) * 10 % p == 1
    assert number(-1 / 3) * 3 % p == p - 1
    third = number(0.15 * np.sin(2 * np.pi / 3))
    assert third * third % p == FIELD.fraction(Fraction(3, 4) * Fraction(15, 100) ** 2)
    mixed = number(0.025 + 0.025 * np.sqrt(3))
    assert (40 * mixed - 1) ** 2 % p == 3
    assert (number(np.cos(0.3)) + number(-np.cos(0.3) * (1 + 1e-15))) % p == 0
    assert number(0.5) != number(0.5 + 1e-11)


@pytest.mark.parametrize("angle", [0.0, np.pi / 3, 0.7, np.pi])
def test_rotations_are_orthogonal_without_rounding_and_their_inverses_are_inverse(angle: float) -> None:
    axis = np.array([2.0, -1.0, 2.0]) / 3
    k = np.cross(np.eye(3), axis) * -1
    R = np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k
    a, b = FIELD.rotation(R), FIELD.rotation(R.T)
    for i in range(3):
        for j in range(3):
            assert (sum(a[i][r] * b[r][j] for r in range(3)) - (i == j)) % FIELD.p == 0
            assert (sum(a[r][i] * a[r][j] for r in range(3)) - (i == j)) % FIELD.p == 0


def test_rank_over_the_field_is_that_of_whole_numbers() -> None:
    rng = np.random.default_rng(1)
    A = rng.integers(-9, 10, size=(12, 5)) @ rng.integers(-9, 10, size=(5, 9))
    found = Echelon(FIELD.p)
    found.extend({k: int(x) for k, x in enumerate(row)} for row in A)
    assert len(found) == np.linalg.matrix_rank(A) == 5


def spans(model: pb.Model) -> tuple[object, tuple[int, int]]:
    """What is proved, and what samples show."""
    q, v, _ = sample_states(model, 2 * (6 * len(model.mechanism.bodies) + model.nv), 1)
    V, gravity = lasting_motions(model, q, v)
    proof = proved_motions(model.mechanism, q[:: max(1, len(q) // 24)], mobility_at(model, q[0]))
    return proof, (len(V), len(gravity))


@pytest.mark.parametrize("name", ["four-bar", "3-rrr", "two-arms", "walking-machine"])
def test_motions_that_polynomials_allow_span_what_samples_show(name: str) -> None:
    proof, seen = spans(massive(name))
    assert proof is not None
    assert (proof.motions, proof.directions) == seen


def delta(longer: float) -> pb.Model:
    """A Delta robot, one rod of which is longer."""
    said = pb.load("delta").description
    shift = np.zeros((4, 4))
    shift[0, 3] = longer
    first, *others = said.loops
    loops = (replace(first, origin_b=frozen_array(first.origin_b + shift)), *others)
    return model_from(replace(said, loops=loops), warn=False)


def test_platform_of_a_delta_robot_does_not_turn_and_its_rods_move_alike() -> None:
    proof, seen = spans(delta(0.0))
    assert proof is not None
    assert (proof.motions, proof.directions) == seen == (30, 14)
    assert {"platform does not turn", *(f"rod{k}b turns like rod{k}a" for k in (1, 2, 3))} <= set(proof.relations)


def test_a_rod_longer_by_what_samples_do_not_notice_leaves_nothing_proved() -> None:
    proof, seen = spans(delta(1e-12))
    assert seen == (30, 14)
    assert proof is None


def translating() -> pb.Model:
    """Three legs of a slide and three hinges along one axis each, a Tripteron: overconstrained, and it cannot turn."""
    build = pb.Builder("tripteron")
    build.body("platform", 1.0, com=(0.02, 0.01, 0.03), inertia=(0.02, 0.03, 0.025))
    for k, name in enumerate("xyz"):
        axis, e1, e2 = np.roll(np.eye(3), -k, axis=0)
        for part in ("slider", "upper", "lower"):
            build.body(f"{part}_{name}", 0.5, com=0.1 * e1 + 0.05 * axis + 0.03 * e2, inertia=(0.02, 0.03, 0.025))
        build.joint(f"drive_{name}", "prismatic", "world", f"slider_{name}", -0.5 * e1, axis=axis)
        build.joint(f"first_{name}", "revolute", f"slider_{name}", f"upper_{name}", axis=axis, active=False)
        build.joint(f"second_{name}", "revolute", f"upper_{name}", f"lower_{name}", 0.3 * e1 + 0.2 * e2, axis=axis,
                    active=False)  # fmt: skip
        end = 0.2 * e1 - 0.2 * e2
        if k == 0:
            build.joint("third_x", "revolute", "lower_x", "platform", end, axis=axis, active=False)
        else:
            build.loop(f"third_{name}", "revolute", f"lower_{name}", "platform", end, (0, 0, 0), axis=axis)
    return build.model()


def test_an_overconstrained_machine_that_only_translates_is_proved() -> None:
    model = translating()
    assert len(model.mobility(model.assemble()).redundant) == 3  # mobility 3, Gruebler's count is 0
    found = pb.base_parameters(model)
    assert (len(found), found.proof) == (sampled_rank(model)[0], "identities") == (16, "identities")
    turning = {f"platform.{x}" for x in ("mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")}
    assert turning <= set(found.invisible)
