"""Steps of the exported C library: built by gcc, against pb.simulate and closed forms."""

from __future__ import annotations

import ctypes
import warnings

import numpy as np
import pytest

import polybody as pb
from c_library import built, call, gcc

DOUBLE = ctypes.POINTER(ctypes.c_double)
FORCES = ctypes.CFUNCTYPE(None, ctypes.c_double, DOUBLE, DOUBLE, DOUBLE, ctypes.c_void_p)


def tumbling():
    """A floating body that carries a ball joint and a hinge: two quaternions."""
    build = pb.Builder("tumbling", gravity=(0, 0, -9.81))
    build.body("trunk", 2.0, com=(0.1, 0, 0.05), inertia=(0.02, 0.05, 0.04))
    build.body("arm", 0.7, com=(0, 0, -0.2), inertia=(0.01, 0.012, 0.003))
    build.body("hand", 0.2, com=(0, 0, -0.1), inertia=(0.001, 0.001, 0.0005))
    build.joint("root_joint", "floating", "world", "trunk")
    build.joint("shoulder", "spherical", "trunk", "arm", origin=(0.2, 0, 0), damping=0.1)
    build.joint("elbow", "revolute", "arm", "hand", origin=(0, 0, -0.4), axis=(0, 1, 0), stiffness=2.0)
    return build.model()


def stepped(library, step, q, v, tau, dt):
    function = getattr(library, f"robot_{step}")
    new_q, new_v = np.empty_like(q), np.empty_like(v)
    arrays = [np.ascontiguousarray(x) for x in (q, v, tau)]
    pointers = [x.ctypes.data_as(DOUBLE) for x in arrays]
    function.restype = ctypes.c_int
    assert function(*pointers, ctypes.c_double(dt), new_q.ctypes.data_as(DOUBLE), new_v.ctypes.data_as(DOUBLE)) == 0
    return new_q, new_v


def gain(t, q, v):
    """A controller that reads the stage's own state."""
    return np.sin(3 * t) - 0.3 * v + 0.2 * q[-len(v) :]


@gcc
@pytest.mark.parametrize("which", ["tumbling", "five-bar"])
def test_c_simulates_as_polybody_does_with_quaternions_and_loops(which, tmp_path):
    model = tumbling() if which == "tumbling" else pb.load(which)
    library = built(model, tmp_path / "c", ["rk4_step", "semi_implicit_step", "simulate", "rate"], 1)
    rng = np.random.default_rng(1)
    q = model.random_configuration(rng) if which == "tumbling" else model.assemble()
    v = model.assemble_velocity(q, 0.5 * rng.normal(size=model.nv))
    tau, dt, steps = 0.2 * rng.normal(size=model.nv), 1e-3, 50
    bound = 1e-12 if which == "tumbling" else 1e-9  # elimination may be along another plan

    for step, method in (("rk4_step", "rk4"), ("semi_implicit_step", "semi-implicit")):
        with warnings.catch_warnings():  # of order 1, the energy balance is off
            warnings.simplefilter("ignore", pb.PolybodyWarning)
            run = pb.simulate(model, steps * dt, q, v, lambda t, q, v: tau, method=method, dt=dt)
        x, y = q, v
        for _ in range(steps):
            x, y = stepped(library, step, x, y, tau, dt)
        # An Euler step leaves the loops by h², and plans differ in which coordinates then come back.
        near = 0.2 * dt if method == "semi-implicit" and which == "five-bar" else bound
        np.testing.assert_allclose(x, run.q[-1], atol=near)
        np.testing.assert_allclose(y, run.v[-1], atol=100 * near)

    n = model.nv

    @FORCES
    def forces(t, at_q, at_v, out, _):
        found = gain(t, np.ctypeslib.as_array(at_q, (model.nq,)), np.ctypeslib.as_array(at_v, (n,)))
        for i in range(n):
            out[i] = found[i]

    run = pb.simulate(model, steps * dt, q, v, gain, method="rk4", dt=dt)
    x, y = q.copy(), v.copy()
    simulate = library.robot_simulate
    simulate.restype = ctypes.c_int
    done = simulate(
        ctypes.c_double(0), ctypes.c_double(dt), ctypes.c_long(steps), forces, None, x.ctypes.data_as(DOUBLE),
        y.ctypes.data_as(DOUBLE),
    )  # fmt: skip
    assert done == 0
    np.testing.assert_allclose(x, run.q[-1], atol=bound)
    np.testing.assert_allclose(y, run.v[-1], atol=10 * bound)
    if len(model.constraints):
        assert np.abs(model.constraints.residual(x)).max() < 1e-9
    (qdot,) = call(library.robot_rate, (q, v), (model.nq,))
    h = 1e-6
    np.testing.assert_allclose(
        qdot, (model.integrate(q, v, h) - model.integrate(q, v, -h)) / (2 * h), atol=1e-8 * (1 + np.abs(qdot).max())
    )


@gcc
@pytest.mark.parametrize("which", ["humanoid", "stewart"])
def test_c_moves_a_floating_robot_and_a_stewart_platform(which, tmp_path):
    model = pb.load(which)
    library = built(model, tmp_path / "c", ["rk4_step"], 0)
    rng = np.random.default_rng(0)
    q = model.assemble()
    v = model.assemble_velocity(q, 0.2 * rng.normal(size=model.nv))
    tau, dt = np.where(model.actuation.active, rng.normal(size=model.nv), 0.0), 1e-3
    run = pb.simulate(model, 10 * dt, q, v, lambda t, q, v: tau, method="rk4", dt=dt, limits="ignore")
    x, y = q, v
    for _ in range(10):
        x, y = stepped(library, "rk4_step", x, y, tau, dt)
    np.testing.assert_allclose(x, run.q[-1], atol=1e-12)
    np.testing.assert_allclose(y, run.v[-1], atol=1e-10)
    assert np.abs(y - v).max() > 1e-3


@gcc
@pytest.mark.parametrize("which", ["tumbling", "five-bar"])
def test_steps_of_order_one_and_four_converge_so(which, tmp_path):
    """Errors against a run of high accuracy, with steps of h and h/2."""
    model = tumbling() if which == "tumbling" else pb.load(which)
    library = built(model, tmp_path / "c", ["rk4_step", "semi_implicit_step"], 1)
    rng = np.random.default_rng(3)
    q = model.random_configuration(rng) if which == "tumbling" else model.assemble()
    v, tau = model.assemble_velocity(q, 0.5 * rng.normal(size=model.nv)), np.zeros(model.nv)
    true = pb.simulate(model, 0.2, q, v, method="dop853", rtol=1e-12, atol=1e-12).q[-1]
    for step, order, count in (("semi_implicit_step", 1, 100), ("rk4_step", 4, 40)):
        errors = []
        for steps in (count, 2 * count):
            x, y = q, v
            for _ in range(steps):
                x, y = stepped(library, step, x, y, tau, 0.2 / steps)
            errors.append(np.abs(model.difference(true, x)).max())
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


@gcc
def test_a_step_that_is_not_finite_writes_nothing(tmp_path):
    model = pb.load("two-link")
    library = built(model, tmp_path / "c", ["rk4_step"], 0)
    q, v, tau = np.zeros(2), np.full(2, np.nan), np.zeros(2)
    new = np.full(2, 7.0)
    pointers = [x.ctypes.data_as(DOUBLE) for x in (q, v, tau)]
    library.robot_rk4_step.restype = ctypes.c_int
    where = new.ctypes.data_as(DOUBLE)
    done = library.robot_rk4_step(*pointers, ctypes.c_double(0.1), where, where)
    assert done == 1
    assert (new == 7.0).all()


def test_a_joint_without_a_closed_formula_is_named_and_left_out(tmp_path):
    build = pb.Builder("bent")
    build.body("b", 1.0, com=(0.1, 0.2, 0), inertia=(0.1, 0.1, 0.1))
    build.joint("j", "custom", "world", "b", map=np.eye(6)[:, :3], stages=(3,))
    model = build.model()
    with pytest.warns(pb.PolybodyWarning, match=r"'j' has no closed formula.*semi_implicit_step"):
        pb.export_c(model, tmp_path / "c")
    assert "bent_rk4_step" in (tmp_path / "c" / "bent.h").read_text(encoding="utf-8")
    with pytest.raises(pb.InputError, match="'integrate' cannot be written in C: joint 'j'"):
        pb.export_c(model, tmp_path / "d", ["semi_implicit_step"])


@gcc
@pytest.mark.parametrize("which", ["two-link", "four-bar"])
def test_steps_of_a_parametrised_model_take_its_parameters(which, tmp_path):
    model = pb.load(which).with_parameters("*.mass")
    library = built(model, tmp_path / "c", ["rk4_step", "semi_implicit_step", "simulate"], 1)
    nominal = np.asarray(model.parameters.nominal)
    heavier = nominal * np.linspace(1.3, 0.8, len(nominal))
    q = model.assemble()
    v, tau, dt = model.assemble_velocity(q, 0.3 * np.ones(model.nv)), np.zeros(model.nv), 1e-3
    library.robot_rk4_step.restype = ctypes.c_int
    x, y = q.copy(), v.copy()
    arrays = [np.ascontiguousarray(z) for z in (tau, heavier)]
    for _ in range(20):
        pointers = [z.ctypes.data_as(DOUBLE) for z in (x, y, *arrays)]
        assert library.robot_rk4_step(*pointers, ctypes.c_double(dt), *pointers[:2]) == 0
    run = pb.simulate(model.parameters.at(heavier), 20 * dt, q, v, method="rk4", dt=dt)
    np.testing.assert_allclose(x, run.q[-1], atol=1e-9)
    other = pb.simulate(model.parameters.at(nominal), 20 * dt, q, v, method="rk4", dt=dt)
    assert np.abs(other.v[-1] - run.v[-1]).max() > 1e-6


@gcc
@pytest.mark.parametrize("which", ["puma560", "four-bar"])
def test_wrenches_on_bodies_are_an_input_where_they_are_asked_for(which, tmp_path):
    model = pb.load(which)
    library = built(model, tmp_path / "c", ["forward_dynamics:wrenches"], 0)
    rng = np.random.default_rng(6)
    q = model.assemble()
    v, tau = model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    loads = rng.normal(size=(len(model.body_names), 6))
    function = library.robot_forward_dynamics_wrenches
    shapes = [(model.nv,), (6,)] if len(model.constraints) else [(model.nv,)]
    found = call(function, (q, v, tau, loads.ravel()), *shapes)[0]
    wanted = model.forward_dynamics(q, v, tau, wrenches=dict(zip(model.body_names, loads, strict=True)))
    np.testing.assert_allclose(found, wanted, atol=1e-10 * (1 + np.abs(wanted).max()))
    with pytest.raises(pb.InputError, match="mass_matrix:wrenches"):
        model.casadi("mass_matrix:wrenches")


@gcc
def test_exported_c_names_parameters_that_are_not_possible(tmp_path):
    model = pb.load("two-link").with_parameters("lower.mass", "lower.inertia", "elbow.origin.x", "elbow.axis")
    library, P = built(model, tmp_path / "c", ["inverse_dynamics"], 0), model.parameters
    library.robot_parameter_name.restype = ctypes.c_char_p
    assert [library.robot_parameter_name(k).decode() for k in range(len(P))] == P.names
    assert library.robot_parameter_name(len(P)) is None

    def told(**changes):
        values = P.nominal
        for name, x in changes.items():
            values[P.names.index(name.replace("__", "."))] = x
        return library.robot_check_parameters(np.ascontiguousarray(values).ctypes.data_as(DOUBLE))

    assert told() == told(elbow__origin__x=-3.0) == 0
    assert told(lower__mass=-1.0) == told(lower__mass=np.nan) == told(lower__mass=np.inf) == 1
    assert told(elbow__origin__x=np.nan) == 1 + P.names.index("elbow.origin.x")
    assert told(lower__inertia__xx=50.0) == told(elbow__axis__x=0.5) == len(P) + 1
