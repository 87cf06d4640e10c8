"""Slotine and Li's adaptive control: Y of the law is M a_r + C v_r + g, and unknown masses are learnt."""

from __future__ import annotations

import numpy as np

import polybody as pb
from loop_states import massive, states
from polybody.simulation.controllers import Adaptive


class Waves:
    """A motion that never ends."""

    def __init__(self, size, columns: int) -> None:
        self.size, self.phase = size, np.arange(columns)

    def __call__(self, t):
        w = 2.0 + 0.5 * self.phase
        s, c = np.sin(w * t + self.phase), np.cos(w * t + self.phase)
        return self.size * s, self.size * w * c, -self.size * w**2 * s


def test_regressor_of_the_law_is_mass_matrix_times_reference_plus_coriolis_plus_gravity() -> None:
    model = pb.load("puma560")
    law = Adaptive(model, Waves(0.5, 6), slope=3.0)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 6))
    Y, s = law._regressor(0.4, q, v)
    goal, speed, acceleration = law.path(0.4)
    v_r, a_r = speed - 3 * (q - goal), acceleration - 3 * (v - speed)
    M = model.mass_matrix(q) - model.mechanism.armature
    quadratic = [model.bias_forces(q, x) - model.gravity_forces(q) for x in (v + v_r, v, v_r)]
    expected = M @ a_r + 0.5 * (quadratic[0] - quadratic[1] - quadratic[2]) + model.gravity_forces(q)
    np.testing.assert_allclose(Y @ model.regressor.parameters(), expected, atol=1e-10)
    np.testing.assert_allclose(s, v - v_r)


def test_law_on_loops_uses_the_equations_of_the_independent_coordinates() -> None:
    model = massive("five-bar")
    own = list(model.engine.independent)
    q, v, _ = (x[0] for x in states(model))
    rest = np.zeros(model.nv)
    law = Adaptive(model, lambda t: (q, rest, rest), slope=2.0)
    Y, s = law._regressor(0.0, q, v)
    u = v[own]
    np.testing.assert_allclose(s, u, atol=1e-12)  # the path rests at q: the reference is still
    expected = model.mass_matrix(q) @ (-2.0 * u) + model.gravity_forces(q)  # C u_r vanishes with u_r
    np.testing.assert_allclose(Y @ model.regressor.parameters(), expected, atol=1e-9)


def test_an_arm_with_unknown_masses_is_tracked_ever_better() -> None:
    model, path = pb.load("two-link"), Waves(0.6, 2)
    wrong = 0.3 * model.regressor.parameters()
    errors = []
    for rate in (0.0, 2.0):
        law = Adaptive(model, path, kd=3.0, slope=4.0, rate=rate, parameters=wrong, period=5e-3)
        q0, v0, _ = path(0.0)
        run = pb.simulate(model, 6.0, q0, v0, law, method="rk4", dt=5e-3)
        gaps = np.abs(run.q - np.array([path(t)[0] for t in run.t])).max(axis=1)
        errors.append((gaps[: len(gaps) // 4].max(), gaps[-len(gaps) // 4 :].max()))
    (_, fixed), (early, late) = errors
    assert late < 0.35 * fixed
    assert late < 0.6 * early
