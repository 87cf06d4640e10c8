"""Symbolic models with loops and couplings: φ, J, γ, multipliers and minimal equations against the compiled answers."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from typer.testing import CliRunner

import polybody as pb
from closed_states import closed_state
from polybody.cli import app

Array = np.ndarray


def values(expressions, symbolic, q: Array, p: Array, **more: Array) -> Array:
    """A SymPy matrix at a state, by numbers."""
    symbols = [*symbolic.q, *symbolic.p, *(s for key in more for s in getattr(symbolic, key))]
    at = sympy.lambdify(symbols, expressions, "numpy", cse=True)
    return np.array(at(*q, *p, *(x for given in more.values() for x in given)), dtype=float)


def agree(found: Array, wanted: Array, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, atol=tolerance * (1 + np.abs(wanted).max()), rtol=0)


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "bricard"])
def test_constraints_are_the_compiled_ones_without_rows_that_vanish(name):
    model, q, v = closed_state(name)
    symbolic = model.symbolic("none")
    rows = symbolic.rows
    assert len(rows) == (5 if name == "bricard" else 2)
    assert symbolic.constraint_names == [model.constraints.names[i] for i in rows]
    off = q + 0.1
    agree(values(symbolic.residual(), symbolic, off, v)[:, 0], model.constraints.residual(off)[rows])
    agree(values(symbolic.jacobian(), symbolic, q, v), model.constraints.jacobian(q)[rows])
    agree(values(symbolic.constraint_bias(), symbolic, q, v)[:, 0], model.constraints.bias(q, v)[rows])
    other = [i for i in range(len(model.constraints.names)) if i not in rows]
    assert np.abs(model.constraints.jacobian(q)[other]).max(initial=0) < 1e-12


@pytest.mark.parametrize("name", ["four-bar", "five-bar"])
def test_equations_with_multipliers_hold_for_the_computed_motion_and_loads(name):
    model, q, v = closed_state(name)
    symbolic = model.symbolic("none")
    equations = symbolic.equations()
    tau = np.random.default_rng(1).normal(size=model.nv)
    solved = model.constraints.solution(q, v, tau)
    loads = solved.multipliers[symbolic.rows]
    gaps = sympy.Matrix([x.lhs - x.rhs for x in (*equations.dynamics(), *equations.constraints())])
    found = values(gaps, symbolic, q, v, p_dot=solved.a, Q=tau, multipliers=loads)
    assert np.abs(found).max() < 1e-9 * (1 + np.abs(solved.a).max() + np.abs(loads).max())


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "bricard"])
def test_minimal_equations_are_the_compiled_ones(name):
    model, q, v = closed_state(name)
    symbolic = model.symbolic("none")
    found = symbolic.minimal()
    assert list(found.names) == model.constraints.independent
    agree(values(found.G, symbolic, q, v), model.constraints.joint_influence(q, 1).G, 1e-8)
    agree(values(found.mass_matrix, symbolic, q, v), model.mass_matrix(q), 1e-8)
    bias = model.bias_forces(q, v) - model.passive_forces(q, v)
    agree(values(found.bias, symbolic, q, v)[:, 0], bias, 1e-8)


def test_followers_have_no_symbols_of_their_own():
    """Symbols for masses; the coupling's ratio and offset are numbers, and chains of followers resolve."""
    build = pb.Builder("fingers", gravity=(0, -9.81, 0))
    for k in range(4):
        build.body(f"b{k}", 1.0 + k, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
        build.joint(f"j{k}", "revolute", "world" if k == 0 else f"b{k - 1}", f"b{k}", (0.3, 0, 0))
    build.couple("j2", "j1", 0.5, 0.25)
    build.couple("j3", "j2", -1)
    model, rng = build.model(), np.random.default_rng(0)
    symbolic = model.symbolic("masses")
    assert len(symbolic.q) == len(symbolic.p) == 2
    M, bias = symbolic.mass_matrix(), symbolic.velocity_forces() + symbolic.potential_forces()
    assert {*M.free_symbols, *bias.free_symbols} <= {*symbolic.q, *symbolic.p, *symbolic.parameters}
    q, v = rng.normal(size=(2, 2))
    masses = symbolic.parameters
    agree(values(M.subs(masses), symbolic, q, v), model.mass_matrix(q))
    agree(values(bias.subs(masses), symbolic, q, v)[:, 0], model.bias_forces(q, v))
    C = symbolic.coriolis_matrix().subs(masses)
    agree(values(C, symbolic, q, v), model.coriolis_matrix(q, v))
    height = symbolic.end_effector("b3").subs(masses)
    agree(values(height, symbolic, q, v), model.pose(q, "b3"))
    lighter = symbolic.substitute({next(iter(masses)): 1}).mass_matrix()
    assert next(iter(masses)) not in lighter.free_symbols
    own_q, own_v = symbolic.to_model(q, v)
    agree(own_q, q)
    agree(own_v, v)


def test_what_would_be_the_trees_is_refused():
    symbolic = pb.load("four-bar").symbolic("none")
    with pytest.raises(pb.PolybodyError, match="export_c"):
        symbolic.program("forward_dynamics")
    with pytest.raises(pb.PolybodyError, match=r"pb\.linearize"):
        symbolic.linearize([0, 0, 0])


def test_polybody_derive_prints_loops_and_writes_them(tmp_path):
    done = CliRunner().invoke(app, ["derive", "four-bar", "--symbols", "none"])
    assert done.exit_code == 0, done.output
    assert "Constraints" in done.output
    assert "phi_1 =" in done.output
    paths = [tmp_path / "a.tex", tmp_path / "a.html", tmp_path / "a.py"]
    options = ["--latex", str(paths[0]), "--html", str(paths[1]), "--python", str(paths[2])]
    done = CliRunner().invoke(app, ["derive", "four-bar", "--symbols", "none", *options])
    assert done.exit_code == 0, done.output
    assert r"\lambda" in paths[0].read_text()
    assert r"\phi_{1}" in paths[0].read_text()
    assert "Constraint Jacobian" in paths[1].read_text()
    assert "mass_matrix" in paths[2].read_text()
