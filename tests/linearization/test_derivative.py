"""Derivatives with respect to parameters, against high-order differences of models built anew."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError


def difference(function, p: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """Fourth-order central differences along each parameter: (*shape, k)."""
    columns = []
    for k in range(len(p)):
        step = np.zeros(len(p))
        step[k] = h * max(1.0, abs(p[k]))
        ends = [function(p + c * step) for c in (-2, -1, 1, 2)]
        columns.append((ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step[k]))
    return np.stack(columns, axis=-1)


def test_derivatives_of_a_tree_by_its_parameters_equal_differences() -> None:
    rng = np.random.default_rng(0)
    variant = pb.load("three-link").with_parameters("*.mass", "*.origin.x", "*.origin.rz")
    p, (q, v, a) = variant.parameters.nominal, rng.normal(size=(3, variant.nv))
    for name, arrays in (("inverse_dynamics", (q, v, a)), ("forward_dynamics", (q, v, a)), ("mass_matrix", (q,)),
                         (f"pose:{variant.frame_names[-1]}", (q,))):  # fmt: skip
        found = pb.derivative(variant, name, *arrays)
        if ":" in name:
            wanted = difference(lambda x: variant.pose(q, variant.frame_names[-1], parameters=x), p)
        else:
            wanted = difference(lambda x, n=name, y=arrays: getattr(variant, n)(*y, parameters=x), p)
        np.testing.assert_allclose(found, wanted, atol=1e-7 * (1 + np.abs(wanted).max()))
    dq = pb.derivative(variant, "inverse_dynamics", q, v, a, wrt="q")
    np.testing.assert_allclose(dq, variant.inverse_dynamics_derivatives(q, v, a)[0], rtol=1e-9, atol=1e-9)
    many = pb.derivative(variant, "mass_matrix", rng.normal(size=(5, 3)), parameters=np.tile(p, (5, 1)))
    assert many.shape == (5, 3, 3, len(p))
    with pytest.raises(InputError, match=r"does not depend on 'tau'"):
        pb.derivative(variant, "mass_matrix", q, wrt="tau")


def test_derivatives_of_a_five_bar_by_its_lengths_follow_the_loops() -> None:
    model, rng = pb.load("five-bar"), np.random.default_rng(1)
    variant = model.with_parameters("phi2.origin.x", "phi3.origin.x", "link2.mass")
    p = variant.parameters.nominal
    independent = model.constraints.independent
    q = model.random_configuration(rng)
    q = variant.assemble(q, hold=independent)
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    tau, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
    a = model.assemble_acceleration(q, v, a)
    columns = list(model.constraints.indices(independent))

    def moved(x: np.ndarray) -> tuple[np.ndarray, ...]:
        own = variant.parameters.at(x)
        there = own.constraints.assemble_dependent(q, independent)
        return own, there, *own.constraints.joint_motion(there, v[columns], a[columns], independent=independent)

    def forward(x: np.ndarray) -> np.ndarray:
        own, there, speed, _ = moved(x)
        return own.forward_dynamics(there, speed, tau)

    def inverse(x: np.ndarray) -> np.ndarray:
        own, there, speed, acceleration = moved(x)
        return own.inverse_dynamics(there, speed, acceleration)

    for name, third, function in (("forward_dynamics", tau, forward), ("inverse_dynamics", a, inverse)):
        found = pb.derivative(variant, name, q, v, third)
        wanted = difference(function, p)
        np.testing.assert_allclose(found, wanted, atol=2e-6 * (1 + np.abs(wanted).max()), err_msg=name)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_of_quantities_of_the_table_by_masses_and_lengths_of_loops_equal_differences(seed: int) -> None:
    from polybody.quantities.table import QUANTITIES

    variant = pb.load("five-bar").with_parameters("link2.mass", "link2.com.x", "phi2.origin.x")
    rng = np.random.default_rng(seed)
    p, independent = variant.parameters.nominal, variant.constraints.independent
    columns, (u, du) = list(variant.constraints.indices(independent)), rng.normal(size=(2, 2))
    q = variant.random_configuration(rng)
    known = {name: x for name, x in QUANTITIES.items() if set(x.arguments) <= {"q", "v", "a", "tau"}}

    def arrays(x: np.ndarray, name: str) -> tuple[pb.Model, list[np.ndarray]]:
        own = variant.parameters.at(x)
        there = own.constraints.assemble_dependent(q, independent)
        v, a = own.constraints.joint_motion(there, u, du)
        states = {"q": there, "v": v, "a": a, "tau": np.arange(own.nv, dtype=float)}
        return own, [states[key] for key in known[name].arguments]

    def values(x: np.ndarray, name: str) -> np.ndarray:
        own, given = arrays(x, name)
        found = own._ask(known[name], tuple(given))
        return np.concatenate([y.ravel() for y in (found if isinstance(found, tuple) else (found,))])

    assert len(columns) == 2
    for name in rng.choice(sorted(known), size=4, replace=False):
        found = pb.derivative(variant, name, *arrays(p, name)[1])
        mine = np.concatenate([y.reshape(-1, len(p)) for y in (found if isinstance(found, tuple) else (found,))])
        wanted = difference(lambda x, name=name: values(x, name), p, 1e-4)
        np.testing.assert_allclose(mine, wanted, atol=1e-6 * (1 + np.abs(wanted).max(initial=0.0)), err_msg=name)
    with pytest.raises(pb.PolybodyError, match="singular at every state"):
        pb.derivative(variant, "task_space_inertia:C", q)
