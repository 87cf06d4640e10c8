"""The symbolic model: numbers against compiled kernels on random trees, angle sums, names, sizes, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import polybody as pb
from mechanisms import ALL_KINDS, ONE_NUMBER, random_tree
from polybody.mechanism import mechanism_from
from polybody.model.model import Model
from polybody.symbolic import SymbolicModel
from symbolic_checks import assert_same, reduced

PLAIN = {"stiffness": 0.0, "fixed": 0.0}


def random_state(sym, rng):
    q = np.concatenate([chart.random(rng) for chart in sym._charts])
    return q, rng.normal(size=len(sym.p))


def numbers(sym, q, p, *expressions):
    values = list(sym.parameters.values())
    function = sympy.lambdify([*sym.q, *sym.p, *sym.parameters], list(expressions), cse=True)
    return [np.array(x, dtype=float) for x in function(*q, *p, *values)]


def assert_close(found, wanted, tolerance=1e-10):
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, atol=tolerance * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("seed", range(14))
def test_closed_forms_equal_compiled_kernels_on_random_tree(seed):
    rng = np.random.default_rng(seed)
    single = seed < len(ALL_KINDS)  # every kind alone, then pairs: in general position closed forms grow fast
    kinds = ALL_KINDS[seed : seed + 1] if single else (*ONE_NUMBER, "universal")
    model = Model(mechanism_from(random_tree(rng, 1 if single else 2, kinds, springs=int(seed == 4), **PLAIN)))
    sym = model.symbolic(["masses", "gravity"] if model.nv < 4 else "none")
    q, p = random_state(sym, rng)
    own_q, v = sym.to_model(q, p)
    M, bias, C, poincare, energies = numbers(
        sym, q, p, sym.mass_matrix(), sym.equations().bias(), sym.coriolis_matrix(), sym.poincare_matrix(),
        sympy.Matrix([sym.kinetic_energy(), sym.potential_energy()]),
    )  # fmt: skip
    assert_close(M, model.mass_matrix(own_q))
    assert_close(bias, model.bias_forces(own_q, v) - model.passive_forces(own_q, v))
    assert_close(C, model.coriolis_matrix(own_q, v))
    assert_close(poincare @ p, C @ p)
    assert_close(energies, np.array(model.energy(own_q, v)))


@pytest.mark.parametrize("seed", range(6))
def test_programs_equal_compiled_kernels_on_random_tree(seed):
    """The common-subexpression form takes every tree: springs on rotations, branches, floating bases, all symbols."""
    rng = np.random.default_rng(100 + seed)
    model = Model(mechanism_from(random_tree(rng, 5, floating_base=seed % 3 == 0)))
    sym = model.symbolic("all")
    q, p = random_state(sym, rng)
    own_q, v = sym.to_model(q, p)
    values = list(sym.parameters.values())
    program = sym.program("equations")
    found = program.evaluate(q, p, values)
    assert_close(found["mass_matrix"], model.mass_matrix(own_q))
    assert_close(found["bias"], model.bias_forces(own_q, v) - model.passive_forces(own_q, v))
    tau = rng.normal(size=model.nv)
    found = sym.program("forward_dynamics").evaluate(q, p, tau, values)
    assert_close(found["forward_dynamics"], model.forward_dynamics(own_q, v, tau), 1e-8)


def test_assignments_of_a_program_are_the_closed_form():
    sym = pb.load("two-link").symbolic()
    program = sym.program("mass_matrix")
    result = program.results["mass_matrix"]
    for symbol, expression in reversed(program.assignments):
        result = result.xreplace({symbol: expression})
    assert_same(result, sym.mass_matrix())
    assert program.operations < 40


def test_common_subexpressions_of_a_closed_form_undo():
    sym = pb.load("three-link").symbolic()
    own = sym.mass_matrix()
    for wanted in (own, "mass_matrix"):
        assignments, (M, bias) = sym.cse(wanted, "bias")
        for symbol, expression in reversed(assignments):
            M, bias = M.xreplace({symbol: expression}), bias.xreplace({symbol: expression})
        assert_same(M, own)
        assert_same(bias, sym.equations().bias())
    with pytest.raises(pb.InputError, match="no closed form 'mass'"):
        sym.cse("mass")


def test_angles_about_parallel_axes_are_summed():
    sym = pb.load("three-link").symbolic()
    q1, q2, q3 = sym.q
    angles = {f.args[0] for f in sym.mass_matrix().atoms(sympy.cos, sympy.sin)}
    assert angles == {q2, q3, q2 + q3}
    angles = {f.args[0] for f in sym.potential_energy().atoms(sympy.cos, sympy.sin)}
    assert angles == {q1, q1 + q2, q1 + q2 + q3}


def test_numbers_are_exact_rationals():
    sym = pb.load("three-link").symbolic("none")
    assert sym.mass_matrix()[2, 2] == sympy.Rational(12, 100)
    assert not sym.mass_matrix().atoms(sympy.Float)


def test_parameters_can_be_chosen_by_category_and_by_name():
    model = pb.load("three-link")
    assert set(map(str, model.symbolic("masses").parameters)) == {"m1", "m2", "m3"}
    assert set(map(str, model.symbolic(["gravity", "m2"]).parameters)) == {"g", "m2"}
    assert not model.symbolic("none").parameters
    renamed = model.symbolic("gravity", names={"g": "g0"})
    assert sympy.Symbol("g0") in renamed.potential_energy().free_symbols


def test_substitution_equals_substituting_in_the_expressions():
    sym = pb.load("two-link").symbolic()
    length = sympy.Symbol("L")
    small = sym.substitute({"c1x": length / 2, "m2": 1.5})
    direct = sym.mass_matrix().subs({"c1x": length / 2, "m2": sympy.Rational(3, 2)})
    assert_same(small.mass_matrix(), direct)
    again = small.substitute({"L": 2})
    assert_same(again.mass_matrix(), direct.subs(length, 2))
    assert length not in again.parameters


def test_linearization_equals_derivatives_of_the_compiled_model():
    model = pb.load("two-link")
    sym = model.symbolic("none")
    at, p, a = [0.3, -0.7], [0.5, 0.2], [1.0, -2.0]
    linear = sym.linearize(at, p, a)
    dq, dv, M = model.inverse_dynamics_derivatives(at, p, a)
    for found, wanted in ((linear.K, dq), (linear.D, dv), (linear.E, M)):
        assert_close(np.array(found, dtype=float), wanted, 1e-12)
    A, B = linear.state_space()
    da = model.forward_dynamics_derivatives(at, p, model.inverse_dynamics(at, p, a))
    assert_close(np.array(A, dtype=float)[2:], np.hstack(da[:2]), 1e-10)
    assert_close(np.array(B, dtype=float)[2:], da[2], 1e-10)


def test_equations_hold_along_a_motion():
    sym = pb.load("two-link").symbolic("none")
    equation = sym.equations().dynamics()[0]
    kinematics = sym.equations().kinematics()
    assert [k.rhs for k in kinematics] == list(sym.p)
    state = dict(zip((*sym.q, *sym.p, *sym.p_dot), (0.3, -0.7, 0.5, 0.2, 1.0, -2.0), strict=True))
    tau = pb.load("two-link").inverse_dynamics([0.3, -0.7], [0.5, 0.2], [1.0, -2.0])
    assert abs(float(equation.lhs.subs(state)) - tau[0]) < 1e-12


def test_joint_answers_are_those_of_the_map():
    sym = pb.load("six-dof-arm").symbolic("none")
    q1 = sym.q[0]
    assert sym.joint_map("elbow") == sympy.Matrix([0, 1, 0, 0, 0, 0])
    assert sym.configuration("elbow")[0, 0] == sympy.cos(sym.q[2])
    assert sym.kinematic_matrix("shoulder") == sympy.eye(2)
    assert reduced(sym.joint_map("shoulder")[0, 1] + sympy.sin(q1)) == 0


def test_floating_base_keeps_six_parameters():
    rng = np.random.default_rng(2)
    model = Model(mechanism_from(random_tree(rng, 2, ("revolute",), floating_base=True, springs=0, **PLAIN)))
    sym = model.symbolic("none")
    assert len(sym.q) == model.nv == model.nq - 1
    q, p = random_state(sym, rng)
    own_q, v = sym.to_model(q, p)
    (M, bias) = numbers(sym, q, p, sym.mass_matrix(), sym.velocity_forces() + sym.potential_forces())
    assert_close(M, model.mass_matrix(own_q))
    assert_close(bias, model.bias_forces(own_q, v))
    compound = model.symbolic("none", joints={"root_joint": "compound"})
    own_q, v = compound.to_model(q, p)
    (M,) = numbers(compound, q, p, sympy.Matrix([compound.kinetic_energy()]))
    assert_close(M, model.energy(own_q, v)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"symbols": 3}, "symbols is 3, expected"),
        ({"symbols": "weights"}, "no parameter 'weights'.*masses"),
        ({"q": ["a", "b", "lambda"]}, "'lambda' is a keyword of Python"),
        ({"q": ["a", "b", "double"]}, "'double' is a word of C"),
        ({"q": ["a", "b", "m1"]}, "'m1' clashes with the coordinate"),
        ({"q": ["a", "a", "b"]}, "'a' clashes with the coordinate"),
        ({"q": ["a", "b c", "d"]}, "'b c' is not a symbol's name"),
        ({"q": ["a"]}, "expected 3"),
        ({"names": {"m1": "while"}}, "'while' is a keyword"),
        ({"names": {"mass": "M"}}, "no parameter 'mass'"),
        ({"joints": {"elbow": "simple"}}, "no joint 'elbow'"),
        ({"joints": {"joint1": "double"}}, "expected 'simple' or 'compound'"),
    ],
)
def test_bad_choices_are_refused_with_what_would_be_right(options, message):
    with pytest.raises(pb.InputError, match=message):
        pb.load("three-link").symbolic(**options)


def test_any_name_of_a_frame_gives_a_symbol():
    build = pb.Builder("odd")
    build.body("arm", 1.0, com=(0.5, 0, 0), inertia=(1, 1, 1))
    build.joint("hinge", "revolute", "world", "arm")
    for k, name in enumerate(("3d camera", "tool-tip", "tool tip", "été")):
        origin = np.eye(4)
        origin[0, 3] = 1.0 + k
        build.frame(name, "arm", origin)
    sym = build.model().symbolic("lengths")
    names = {str(x) for x in sym.parameters}
    assert {"frame3d_camera_x", "tool_tip_x", "tool_tip2_x"} <= names
    assert sym.end_effector("tool tip")[0, 3] == sympy.Symbol("tool_tip2_x") * sympy.cos(sym.q[0])


def test_coordinates_cannot_be_substituted():
    with pytest.raises(pb.InputError, match="'q1' is a coordinate"):
        pb.load("three-link").symbolic().substitute({"q1": 0})


def test_unknown_names_of_frames_joints_and_quantities():
    sym = pb.load("three-link").symbolic()
    with pytest.raises(pb.InputError, match=r"no frame 'hand'.*tip"):
        sym.end_effector("hand")
    with pytest.raises(pb.InputError, match=r"no joint 'elbow'.*joint2"):
        sym.configuration("elbow")
    with pytest.raises(pb.InputError, match=r"no quantity 'torque'.*inverse_dynamics"):
        sym.program("torque")


def test_too_large_a_model_says_so_before_starting_and_still_has_its_program():
    sym = pb.load("humanoid").symbolic("all")
    assert sym.estimate.too_large
    with pytest.raises(pb.PolybodyError, match=r"too large for closed form: .* terms.*\.program\('equations'\)"):
        sym.mass_matrix()
    assert sym.program("inverse_dynamics").operations < 20_000


def test_spring_on_a_rotation_has_no_closed_form():
    model = Model(mechanism_from(random_tree(3, 1, ("spherical",), stiffness=1.0, springs=0)))
    with pytest.raises(pb.PolybodyError, match=r"logarithm.*\.program"):
        model.symbolic().potential_energy()


def test_the_trees_symbolic_model_is_not_that_of_a_mechanism_with_loops():
    mechanism = mechanism_from(random_tree(5, 4, ("revolute",), loops=1))
    with pytest.raises(pb.PolybodyError, match="loops"):
        SymbolicModel(mechanism)


def test_rates_of_a_floating_base_are_printed_as_its_rotation() -> None:
    """Γ of the position is R, entry by entry; it had (cos(2*q2)/2 + 1/2)*cos(q3)/cos(q2) for cos(q2)*cos(q3)."""
    build = pb.Builder("free")
    build.body("body", 1.0, inertia=(1, 2, 3))
    build.joint("root_joint", "floating", "world", "body")
    sym = build.model().symbolic()
    gamma, R = sym.kinematic_matrix("root_joint"), sym.configuration("root_joint")[:3, :3]
    assert gamma[3:, 3:] == R
    q1, q2, q3 = sym.q[:3]
    assert gamma[3, 3] == sympy.cos(q2) * sympy.cos(q3)
    assert gamma[0, 1] == sympy.sin(q1) * sympy.tan(q2)


def test_cosines_cancel_where_they_divide_and_only_there() -> None:
    from polybody.symbolic.domain import TrigDomain
    from polybody.symbolic.printing import to_sympy
    from polybody.symbolic.ring import Ring, divided

    ring, (a, b) = Ring(), sympy.symbols("a b")
    domain = TrigDomain(ring)
    x, y = (ring.generator(s, angle=True) for s in (a, b))
    c = domain.cos(x)
    sines = domain.sin(x) * c * c, domain.sin(x * 3)
    for factor in (c, c * c * domain.cos(y), domain.cos(x * 2) * domain.sin(y), *sines):
        assert divided(factor * c * 3, c * 3) == factor
    for whole in (domain.sin(x), domain.cos(x * 2)):
        assert to_sympy(divided(whole, c)).equals(to_sympy(whole) / sympy.cos(a))
