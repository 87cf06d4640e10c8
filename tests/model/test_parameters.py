"""Numbers of a model as inputs: equal to the model built anew with those numbers, for every quantity."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.mechanisms import random_tree, with_followers

import polybody as pb
from polybody.algebra.domains import FLOAT
from polybody.algebra.inertia_checks import inertia_problem
from polybody.description.parameters import parameters_of
from polybody.description.substitution import substituted
from polybody.errors import InputError
from polybody.mechanism.mechanism import mechanism_from
from polybody.model.engine import Request
from polybody.model.model import Model
from polybody.quantities.table import QUANTITIES

STATES = 3
EPS = 1e-11  # relative to the largest number of a result


def near(model: Model, rng: np.random.Generator, size: float = 0.05) -> np.ndarray:
    """Values near the nominal ones; masses, inertias and axes that are zero stay so."""
    P = model.parameters
    lengths = np.array([unit in ("m", "rad") for unit in P.units])
    scale = np.where(P.nominal != 0, size * np.abs(P.nominal), np.where(lengths, 0.2 * size, 0.0))
    scale[["axis" in name or "inertia" in name for name in P.names]] = 0.0
    return P.nominal + scale * rng.uniform(-1, 1, size=(STATES, len(P)))


def rebuilt(model: Model, values: np.ndarray) -> Model:
    """The model of the description with other numbers: nothing of it is compiled with parameters."""
    chosen = {p.name: p for p in parameters_of(model.description)}
    d = substituted(model.description, [chosen[name] for name in model.parameters.names], values)
    return Model(mechanism_from(d))


def agree(name: str, ours: Any, theirs: Any) -> None:
    for x, y in zip(*(z if isinstance(z, tuple) else (z,) for z in (ours, theirs)), strict=True):
        np.testing.assert_allclose(np.ravel(x), np.ravel(y), atol=EPS * (1 + np.abs(y).max(initial=0.0)), rtol=0,
                                   err_msg=name)  # fmt: skip


def at(found: Any, k: int) -> Any:
    return tuple(x[k] for x in found) if isinstance(found, tuple) else found[k]


def tree_states(model: Model, rng: np.random.Generator) -> dict[str, np.ndarray]:
    q, q1 = (model.random_configuration(rng, size=STATES) for _ in range(2))
    v, a, tau = (rng.normal(size=(STATES, model.nv)) for _ in range(3))
    return {"q": q, "q0": q, "q1": q1, "v": v, "a": a, "tau": tau, "d": 0.3 * v, "multipliers": np.zeros((STATES, 0))}


@pytest.mark.parametrize("seed", [0, 1])
def test_every_quantity_of_a_random_tree_is_that_of_the_tree_with_those_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = (("revolute", "spherical", "screw"), ("revolute", "prismatic"))[seed]
    description = random_tree(rng, 3 + seed, kinds, springs=1, motors=1.0 * seed)
    model = Model(mechanism_from(with_followers(rng, description) if seed else description))
    patterns = ["*.mass", "*.com", "*.inertia", "*.origin", "*.axis", "*.stiffness", "*.damping", "*.armature",
                "*.length", "gravity", *(["*.rotor_inertia", "*.matrix"] if seed else ["*.pitch"])]
    variant, rng = model.with_parameters(*patterns), np.random.default_rng(10 + seed)
    values, states = near(variant, rng), tree_states(model, rng)
    others = [rebuilt(variant, row).mechanism for row in values]
    for quantity in QUANTITIES.values():
        if quantity.group == "derivatives":
            continue  # below
        arrays = tuple(states[name] for name in quantity.arguments)
        found = variant.engine.answer(Request(quantity, arrays, parameters=values))
        for k, mechanism in enumerate(others):
            agree(quantity.name, at(found, k), quantity.tree(mechanism, *(x[k] for x in arrays), domain=FLOAT))


def test_every_quantity_of_a_five_bar_is_that_of_the_five_bar_with_those_lengths() -> None:
    model, rng = pb.load("five-bar"), np.random.default_rng(2)
    variant = model.with_parameters("*.mass", "*.com", "*.origin.x", "*.origin_b.x", "*.origin_b.y")
    values = near(variant, rng)
    q = variant.assemble(model.random_configuration(rng, size=STATES), parameters=values)
    v = variant.assemble_velocity(q, rng.normal(size=(STATES, model.nv)), parameters=values)
    a = variant.assemble_acceleration(q, v, rng.normal(size=(STATES, model.nv)), parameters=values)
    tau, loads = rng.normal(size=(STATES, model.nv)), rng.normal(size=(STATES, len(model.constraints)))
    states = {"q": q, "q0": q, "q1": q[::-1], "v": v, "a": a, "tau": tau, "d": 0.3 * v, "multipliers": loads}
    other = rebuilt(variant, values[1])
    for quantity in QUANTITIES.values():
        arrays = tuple(states[name] for name in quantity.arguments)
        found = variant.engine.answer(Request(quantity, arrays, parameters=values))
        agree(quantity.name, at(found, 1), other.engine.answer(Request(quantity, tuple(x[1] for x in arrays))))
    with pytest.raises(InputError, match=r"q breaks the constraints"):
        variant.forward_dynamics(q, v, tau, parameters=variant.parameters.nominal)  # closed for other lengths


def test_calls_without_parameters_take_the_present_numbers_and_broadcast_with_them() -> None:
    model, rng = pb.load("puma560"), np.random.default_rng(3)
    variant = model.with_parameters("link2.mass", "link2.com")
    q, v, a = (rng.normal(size=(4, 6)) for _ in range(3))
    tau = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(variant.inverse_dynamics(q, v, a), tau, rtol=1e-12, atol=1e-12)
    values = variant.parameters.values({"link2.mass": np.array([4.0, 5.0, 6.0])[:, None]})
    assert values.shape == (3, 1, 4)
    found = variant.inverse_dynamics(q, v, a, parameters=values)
    assert found.shape == (3, 4, 6)
    one = variant.parameters.at(values[2, 0])
    np.testing.assert_allclose(one.inverse_dynamics(q, v, a), found[2], rtol=1e-13, atol=1e-13)
    assert one.description.bodies[1].mass == 6.0
    back = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(back.inverse_dynamics(q, v, a), found[2])


def test_wrenches_act_at_frames_that_parameters_move() -> None:
    model, rng = pb.load("puma560").with_frame("tip", "link6", np.diag([1.0, 1, 1, 1])), np.random.default_rng(4)
    variant = model.with_parameters("tip.origin")
    values = np.array([0.1, -0.2, 0.3, 0.2, 0.1, -0.4])
    q, v, a, w = *(rng.normal(size=6) for _ in range(3)), rng.normal(size=6)
    other = rebuilt(variant, values)
    for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives"):
        found = getattr(variant, name)(q, v, a, wrenches={"tip": w}, parameters=values)
        wanted = getattr(other, name)(q, v, a, wrenches={"tip": w})
        for x, y in zip(np.atleast_3d(found), np.atleast_3d(wanted), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


def test_formulations_answer_with_parameters_too() -> None:
    variant, rng = pb.load("three-link").with_parameters("*.mass", "*.origin.x"), np.random.default_rng(5)
    values = near(variant, rng)
    q, v, a = (rng.normal(size=(STATES, variant.nv)) for _ in range(3))
    tau = variant.inverse_dynamics(q, v, a, parameters=values)
    for name in pb.formulations():
        np.testing.assert_allclose(variant.inverse_dynamics(q, v, a, parameters=values, formulation=name), tau,
                                   rtol=1e-10, atol=1e-10)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("link2.mass", -1.0, r"'link2.mass' is -1 kg \(state 2 of the batch\); expected at least 0"),
        ("link2.mass", np.nan, r"'link2.mass' is nan"),
        ("link2.com.x", np.inf, r"'link2.com.x' is inf \(state 2"),
        ("link2.inertia.zz", 5.0, r"body 'link2' \(state 2 of the batch\): its inertia breaks the triangle"),
        ("link2.inertia.xx", -0.5, r"expected at least 0"),
    ],
)
def test_impossible_parameters_are_told_by_name_and_state(name: str, value: float, message: str) -> None:
    variant = pb.load("puma560").with_parameters("link2.mass", "link2.com", "link2.inertia")
    values = np.tile(variant.parameters.nominal, (4, 1))
    values[2, variant.parameters.names.index(name)] = value
    with pytest.raises(InputError, match=message):
        variant.mass_matrix(np.zeros(6), parameters=values)


def test_parameters_are_picked_by_patterns_and_misspelt_ones_offered() -> None:
    model = pb.load("puma560")
    assert model.with_parameters("link2.com").parameters.names == ["link2.com.x", "link2.com.y", "link2.com.z"]
    every = model.with_parameters("*.com").parameters
    assert len(every) == 3 * 6
    assert set(every.units) == {"m"}
    assert len(model.parameters) == 0
    with pytest.raises(InputError, match=r"did you mean 'link2.mass'"):
        model.with_parameters("link2.mas")
    with pytest.raises(InputError, match=r"this model has no parameters"):
        model.mass_matrix(np.zeros(6), parameters=[1.0])
    with pytest.raises(InputError, match=r"expected \(18,\) or \(\.\.\., 18\)"):
        model.with_parameters("*.com").mass_matrix(np.zeros(6), parameters=[1.0])


def test_other_models_made_from_a_variant_keep_its_parameters_or_say_which_they_lose() -> None:
    variant = pb.load("puma560").with_parameters("link6.mass")
    heavier = variant.with_payload("link6", 2.0).with_parameters("payload.mass", "link6.mass")
    assert heavier.with_gravity((0, 0, -1.6)).parameters.names == ["payload.mass", "link6.mass"]
    stiff = pb.load("puma560").with_parameters("joint2.stiffness")
    with pytest.raises(InputError, match=r"no parameter 'joint2.stiffness'"):
        stiff.lock("joint2")


def test_runs_linearisations_and_answers_of_inverse_kinematics_take_parameters() -> None:
    model, rng = pb.load("three-link"), np.random.default_rng(6)
    variant = model.with_parameters("*.mass", "*.origin.x")
    values = near(variant, rng)
    q, v = rng.normal(size=(2, STATES, model.nv))
    ends = pb.rollout(variant, q, v, steps=20, dt=1e-3, keep="last", parameters=values)
    lines = pb.linearize(variant, q, v, parameters=values)
    tip = model.frame_names[-1]
    goals = variant.pose(q, tip, parameters=values)[..., :3, 3]
    found = pb.inverse_kinematics(variant, {tip: goals}, q + 0.05, parameters=values)
    assert found.converged.all()
    np.testing.assert_allclose(variant.pose(found.q, tip, parameters=values)[..., :3, 3], goals, atol=1e-8)
    for k, row in enumerate(values):
        other = rebuilt(variant, row)
        wanted = pb.rollout(other, q[k], v[k], steps=20, dt=1e-3, keep="last")
        np.testing.assert_allclose(ends.q[k], wanted.q, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(lines.A[k], pb.linearize(other, q[k], v[k]).A, rtol=1e-9, atol=1e-9)
    for method in ("dop853", "midpoint"):
        ours = pb.simulate(variant, 0.1, q[2], v[2], method=method, parameters=values[2])
        theirs = pb.simulate(other, 0.1, q[2], v[2], method=method)
        np.testing.assert_allclose(ours.q, theirs.q, rtol=1e-9, atol=1e-9)


def test_rollouts_of_a_five_bar_with_other_lengths_stay_on_their_own_loops() -> None:
    model, rng = pb.load("five-bar"), np.random.default_rng(7)
    variant = model.with_parameters("*.mass", "*.origin.x", "*.origin_b.x")
    values = near(variant, rng)
    q = variant.assemble(np.tile(model.assemble(), (STATES, 1)), parameters=values)
    ends = pb.rollout(variant, q, np.zeros(model.nv), steps=50, dt=1e-3, keep="last", parameters=values)
    for k, row in enumerate(values):
        other = rebuilt(variant, row)
        assert np.abs(other.constraints.residual(ends.q[k])).max() < 1e-9
        wanted = pb.rollout(other, q[k], np.zeros(model.nv), steps=50, dt=1e-3, keep="last")
        np.testing.assert_allclose(ends.q[k], wanted.q, rtol=1e-9, atol=1e-9)


CRANK = """\
polybody: 1
name: crank
parameters: {L1: 30cm, L2: =2*L1, m: 1.5}
bodies:
  a: {mass: =m, com: [=L1/2, 0, 0], inertia: [0.001, 0.02, 0.02]}
  b: {mass: =m/2, com: [=L2/2, 0, 0], inertia: [0.001, 0.02, 0.02]}
joints:
  j1: {kind: revolute, parent: world, child: a, axis: y}
  j2: {kind: revolute, parent: a, child: b, axis: y, origin: [=L1, 0, 0]}
frames:
  tip: {body: b, origin: [=L2, 0, 0]}
"""


def test_constants_of_a_file_move_all_that_is_written_with_them(tmp_path: Any) -> None:
    path = tmp_path / "crank.yaml"
    path.write_text(CRANK)
    variant = pb.load(path).with_parameters("L1", "m")
    path.write_text(CRANK.replace("30cm", "50cm").replace("m: 1.5", "m: 2.5"))
    other, (q, v, a) = pb.load(path), np.random.default_rng(0).normal(size=(3, 2))
    values = [0.5, 2.5]
    np.testing.assert_allclose(variant.inverse_dynamics(q, v, a, parameters=values), other.inverse_dynamics(q, v, a),
                               rtol=1e-13)  # fmt: skip
    np.testing.assert_allclose(variant.pose(q, "tip", parameters=values), other.pose(q, "tip"), rtol=1e-13)
    with pytest.raises(InputError, match=r"the parameters make 'a.mass' -1 kg \(state 1 of the batch\)"):
        variant.mass_matrix(q, parameters=[[0.5, 1.0], [0.5, -1.0]])
    path.write_text(CRANK.replace("=L2/2", "=L3/2"))
    with pytest.raises(InputError, match=r"crank.yaml:6: =L3/2: no constant 'L3' .did you mean 'L2'"):
        pb.load(path)


def test_exported_c_takes_the_parameters(tmp_path: Any) -> None:
    variant = pb.load("two-link").with_parameters("*.mass")
    pb.export_c(variant, tmp_path / "c", ["inverse_dynamics"])
    assert "const double *parameters" in (tmp_path / "c" / "two_link.h").read_text()
    pb.export_c(variant, tmp_path / "d", ["rk4_step"])
    assert "rk4_step" in (tmp_path / "d" / "two_link.h").read_text()


def test_ratios_contacts_and_radii_are_inputs() -> None:
    from tests.rolling_machines import disk

    build = pb.Builder("geared", gravity=(0, 0, -9.81))
    for name, parent in (("a", "world"), ("b", "a"), ("c", "b")):
        build.body(name, 1.0, (0.3, 0.1, 0), (0.1, 0.1, 0.1))
        build.joint(f"to_{name}", "revolute", parent, name, (0.4, 0, 0), axis=(0, 1, 0), armature=0.1, damping=0.2)
    build.couple("to_b", "to_a", 2.0, 0.3)
    build.couple("to_c", "to_b", -0.5, 0.1)
    build.contact("foot", "c", (0.1, 0, 0), stiffness=1e3, damping=0.5, friction=0.4, radius=0.05, point=(0, 0, 1.0))
    model, rng = build.model(), np.random.default_rng(0)
    variant = model.with_parameters("to_b.ratio", "to_c.ratio", "to_b.offset", "foot.stiffness", "foot.damping",
                                    "foot.friction", "foot.radius")  # fmt: skip
    values, states = near(variant, rng, 0.2), tree_states(model, rng)
    for name in ("inverse_dynamics", "forward_dynamics", "energy", "passive_forces", "mass_matrix"):
        arrays = [states[x] for x in QUANTITIES[name].arguments]
        found = getattr(variant, name)(*arrays, parameters=values)
        for k in range(STATES):
            agree(name, at(found, k), getattr(rebuilt(variant, values[k]), name)(*(x[k] for x in arrays)))
    rolls = disk().with_parameters("rolls.radius")
    wider = rolls.parameters.at([0.4])
    assert np.abs(wider.constraints.residual(wider.assemble())).max() < 1e-9
    assert abs(wider.assemble()[2] - 0.4 * np.sqrt(1 - 0)) < 1e-6


def test_numbers_of_the_structure_are_refused_with_the_reason() -> None:
    model = pb.load("puma560")
    with pytest.raises(InputError, match="limits decide"):
        model.with_parameters("joint1.limits")
    with pytest.raises(InputError, match="custom joint"):
        model.with_parameters("*.map")


@pytest.mark.parametrize(("name", "patterns"), [("puma560", ("*.origin.x",)), ("four-bar", ("*.origin_b.x", "*.mass"))])
def test_regressors_and_configurations_take_parameters(name: str, patterns: tuple[str, ...]) -> None:
    variant = pb.load(name).with_parameters(*patterns)
    P = variant.parameters.nominal * np.array([[1.0], [1.03]])
    q = variant.random_configuration(3, 2, parameters=P)
    v = variant.assemble_velocity(q, np.ones((2, variant.nv)), parameters=P)
    a = variant.assemble_acceleration(q, v, np.ones((2, variant.nv)), parameters=P)
    own = [variant.parameters.at(p) for p in P]
    found = variant.regressor(q, v, a, terms="viscous", parameters=P)
    agree("regressor", found, np.array([m.regressor(*s, terms="viscous") for m, *s in zip(own, q, v, a, strict=True)]))
    agree("momentum", variant.regressor.momentum(q, v, parameters=P),
          np.array([m.regressor.momentum(*s) for m, *s in zip(own, q, v, strict=True)]))  # fmt: skip
    kinetic, _ = variant.regressor.energy(q, v, parameters=P)
    agree("energy", kinetic, np.array([m.regressor.energy(*s)[0] for m, *s in zip(own, q, v, strict=True)]))
    assert variant.mobility(q[1], parameters=P[1]).rank == variant.mobility().rank
    if name == "four-bar":
        step = variant.constraints.projection_step(q, v, parameters=P)[0]
        assert np.abs(step).max() < 1e-8


def test_the_compiled_check_of_inertias_finds_all_that_eigenvalues_find() -> None:
    build, rng = pb.Builder("pendulum"), np.random.default_rng(4)
    build.body("bob", 1.0, inertia=(1.0, 1.0, 1.0))
    build.joint("hinge", "revolute", "world", "bob")
    P = build.model().with_parameters("bob.inertia").parameters
    places = [("xyz".index(a), "xyz".index(b)) for a, b in (name.split(".")[-1] for name in P.names)]
    values, refused = [], []
    for k in range(600):
        moments = np.array([1.0, rng.uniform(0, 1), rng.uniform(0, 1)])
        if k % 2:  # about the edge of the triangle inequality
            moments[2] = 1 - moments[1] + 10 ** rng.uniform(-9, -2) * rng.choice([-1, 1])
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0] if k % 3 else np.eye(3)
        inertia = Q @ np.diag(rng.permutation(moments)) @ Q.T * 10.0 ** rng.uniform(-6, 3)
        values.append([inertia[place] for place in places])
        refused.append(inertia_problem(inertia) is not None or min(np.diag(inertia)) < 0)
    margins, refused = P._margins(parameters=np.array(values)), np.array(refused)
    assert 150 < refused.sum() < 450
    assert np.all(margins[refused] < 0)
    assert np.mean(margins[~refused] < 0) < 0.05  # those are looked at once more, by eigenvalues
    assert np.all(P.checked(np.array(values)[~refused]) == np.array(values)[~refused])
    for zero in (np.zeros(6), np.full(6, np.nan), np.full(6, 1e200)):
        assert (P._margins(parameters=zero) >= 0) == (not zero.any())
