"""The product's proof: five formulations, written from five papers, give the same motion."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import polybody as pb
from polybody.formulations import formulation
from trees import random_state, scale


@pytest.mark.parametrize("seed", range(8))
def test_all_five_formulations_agree_on_random_trees(seed):
    mechanism, q, v, a, rng = random_state(7000 + seed, most=6)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    reference = formulation("denoc")
    tau = reference.inverse_dynamics(mechanism, q, v, a, wrenches)
    M, bias = reference.mass_matrix(mechanism, q), reference.bias_forces(mechanism, q, v)
    for name in pb.formulations():
        one = formulation(name)
        np.testing.assert_allclose(
            one.inverse_dynamics(mechanism, q, v, a, wrenches), tau, atol=1e-10 * scale(tau), err_msg=name
        )
        np.testing.assert_allclose(one.mass_matrix(mechanism, q), M, atol=1e-10 * scale(M), err_msg=name)
        np.testing.assert_allclose(one.bias_forces(mechanism, q, v), bias, atol=1e-10 * scale(bias), err_msg=name)
        np.testing.assert_allclose(
            one.forward_dynamics(mechanism, q, v, tau, wrenches), a, atol=1e-9 * scale(a, tau), err_msg=name
        )


@pytest.mark.parametrize("name", ["two-link", "three-link", "planar-3r", "stanford-arm", "six-dof-arm", "puma560"])
def test_all_five_formulations_and_the_compiled_kernels_agree_on_shipped_models(name):
    model = pb.load(name)
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, a = rng.normal(size=(2, model.nv))
    tau = model.inverse_dynamics(q, v, a)
    for formulation_name in pb.formulations():
        other = model.inverse_dynamics(q, v, a, formulation=formulation_name)
        np.testing.assert_allclose(other, tau, atol=1e-11 * scale(tau), err_msg=formulation_name)


def test_formulations_are_named_by_a_call_and_held_by_their_package_whichever_is_asked_first() -> None:
    called, held = "pb.formulations()", "pb.formulations.denoc"
    for first, second in ((called, held), (held, called)):
        code = f"import polybody as pb; {first}; {second}; assert 'denoc' in pb.formulations()"
        subprocess.run([sys.executable, "-c", code], check=True)
