"""Rolled kernels of long chains equal the text, grow as they should, and the switch to them is automatic."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

from mechanisms import ALL_KINDS, random_tree
from polybody.algebra.domains import FLOAT
from polybody.description.records import Body, Coupling, Description, Joint, Motor, Spring, Transmission, frozen_array
from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.mechanism import mechanism_from
from polybody.mechanism.mechanism import Mechanism
from polybody.model import Model, long_chains
from polybody.model.compositions import COMPOSED
from polybody.model.engine import Request
from polybody.model.tree_engine import TreeEngine
from polybody.quantities import frames
from polybody.quantities.quantity import Quantity, sizes_of
from polybody.quantities.table import QUANTITIES

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
ONE_BY_ONE = ("revolute", "spherical", "prismatic", "revolute", "floating", "revolute")
MATRICES = ("mass_matrix", "coriolis_matrix")
ALONE = sorted(long_chains.names() - {"pose", "jacobian", "jacobian_rate"})


@cache
def chain(n: int, *, branches: int = 1, floating: bool = False, springs: bool = False) -> Mechanism:
    origin = np.eye(4)
    origin[:3, 3] = 0.1, 0.0, 0.3
    bodies, joints, held = [], [], []
    for i in range(n):
        inertia = frozen_array(np.diag((2, 3, 1.5)))
        bodies.append(Body(f"b{i}", 1 + 0.1 * (i % 4), frozen_array((0.05, 0.02, 0.15)), inertia))
        before = i - 1 if branches == 1 or i % (n // branches) else min(i, n // branches) - 1
        parent, afloat = "world" if before < 0 else f"b{before}", floating and i == 0
        joints.append(
            Joint(f"j{i}", "floating" if afloat else "revolute", parent, f"b{i}", frozen_array(origin),
                  frozen_array(AXES[i % 3]), damping=None if afloat else frozen_array([[0.1 * i]]),
                  armature=None if afloat else frozen_array([0.01]))
        )  # fmt: skip
        if springs and i > 1:
            ends = frozen_array((0.1, 0, 0)), frozen_array((0, 0.1, 0))
            held.append(Spring(f"s{i}", f"b{i - 2}", ends[0], f"b{i}", ends[1], 50.0, 0.2 * (i % 2), 0.3 * (i % 3)))
    return mechanism_from(Description("chain", bodies=tuple(bodies), joints=tuple(joints), springs=tuple(held)))


def states(mechanism: Mechanism, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)

    def configurations() -> np.ndarray:
        joints = mechanism.independent_joints
        return np.array([np.concatenate([j.model.random(rng) for j in joints]) for _ in range(count)])

    given = {name: rng.normal(size=(count, mechanism.nv)) for name in ("v", "a", "tau", "d")}
    given["wrenches"] = rng.normal(size=(count, 6 * len(mechanism.bodies)))
    return given | {"q": configurations(), "q1": configurations()}


def compare(mechanism: Mechanism, quantity: Quantity, tolerance: float, count: int = 3) -> None:
    """Each result within tolerance·(0.1 + ‖reference‖) of the text; arguments and results named and sized alike."""
    kernel = long_chains.kernel(mechanism, quantity.name)
    assert kernel is not None
    text = quantity.tree
    sizes = sizes_of(mechanism)
    assert list(kernel.inputs) == quantity.inputs(sizes)
    assert list(kernel.outputs) == quantity.shapes(sizes)
    given = states(mechanism, count)
    arrays = [given["q" if name == "q0" else name] for name in quantity.arguments]
    found = kernel(*arrays)
    texts = [text(mechanism, *state, domain=FLOAT) for state in zip(*arrays, strict=True)]
    for k, result in enumerate(found if isinstance(found, tuple) else (found,)):
        wanted = np.array([one[k] if isinstance(one, tuple) else one for one in texts]).reshape(result.shape)
        np.testing.assert_allclose(result, wanted, rtol=0, atol=tolerance * (0.1 + np.abs(wanted).max()))


def all_quantities(mechanism: Mechanism) -> list[Quantity]:
    """Those of the table with recursions, and of frames at a tip, elsewhere, and on the ground."""
    table = [QUANTITIES[name] for name in sorted(long_chains.names() & set(QUANTITIES))]
    quantities = [*table, *(x.with_wrenches() for x in table if x.loaded)]
    for frame in {"world", mechanism.bodies[-1].name, mechanism.frames[-1].name}:
        quantities.append(frames.pose(mechanism, frame))
        for axes in ("world", "frame"):
            quantities += [frames.jacobian(mechanism, frame, axes), frames.jacobian_rate(mechanism, frame, axes)]
    return quantities


@pytest.mark.parametrize("seed", range(3))
def test_every_rolled_quantity_equals_its_text_on_random_trees_of_every_kind(seed):
    """Branches, springs in joints and between points, curved manifolds, rotors and bearings within joints."""
    kinds = [k for k in ALL_KINDS if k not in ("continuous", "custom", "compound")]
    mechanism = mechanism_from(random_tree(seed, 4, kinds[seed * 3 :], springs=2))
    for quantity in all_quantities(mechanism):
        compare(mechanism, quantity, 1e-10 if quantity.name.startswith("forward") else 1e-12)


def test_every_rolled_quantity_equals_its_text_on_joints_of_several_stages():
    mechanism = mechanism_from(random_tree(1, 3, ("custom", "compound"), springs=1))
    for quantity in all_quantities(mechanism):
        if quantity.name in ("integrate", "difference"):  # the chart of a joint map has no closed form
            assert long_chains.kernel(mechanism, quantity.name) is None
        else:
            compare(mechanism, quantity, 1e-10 if quantity.name.startswith("forward") else 1e-12)


def test_every_rolled_quantity_equals_its_text_where_motors_couple_joints():
    mechanism = mechanism_from(random_tree(5, 4, ("revolute", "prismatic", "spherical"), motors=1.0))
    assert not mechanism.separable
    for quantity in all_quantities(mechanism):
        if quantity.name.startswith("forward"):  # rotors that couple joints make one pivot of many
            assert long_chains.kernel(mechanism, quantity.name) is None
        else:
            compare(mechanism, quantity, 1e-12)


def followed(n: int, **shape: Any) -> Mechanism:
    """The chain, of which every fifth joint follows the one two before it, and the tenth one on the next branch."""
    plain = chain(n, **shape).description
    couplings = [Coupling(f"j{k}", f"j{k - 2}", -0.5, 0.1) for k in range(3, n, 5)]
    couplings += [Coupling(f"j{n - 1}", "j1", 0.7)] if (n - 1) % 5 != 3 else []
    return mechanism_from(replace(plain, couplings=tuple(couplings)))


@pytest.mark.parametrize("shape", [{"n": 11}, {"n": 12, "branches": 3, "springs": True}, {"n": 130}], ids=str)
def test_joints_that_follow_others_add_up_in_their_slots(shape):
    mechanism = followed(**shape)
    assert len(mechanism.joints) > mechanism.nv
    for quantity in all_quantities(mechanism):
        if quantity.name.startswith("forward"):  # followers make one pivot of many joints
            assert long_chains.kernel(mechanism, quantity.name) is None
        else:
            compare(mechanism, quantity, 1e-12, count=2)


@pytest.mark.parametrize("seed", range(2))
def test_followers_among_joints_of_every_kind(seed):
    mechanism = mechanism_from(random_tree(seed, 8, ONE_BY_ONE, couplings=True, springs=1, motors=0.5))
    assert mechanism.followers
    for quantity in all_quantities(mechanism):
        if not quantity.name.startswith("forward"):
            compare(mechanism, quantity, 1e-12, count=2)


@pytest.mark.parametrize("shape", [{}, {"branches": 4}, {"floating": True}, {"springs": True}], ids=str)
def test_every_rolled_quantity_of_a_hundred_and_thirty_links_equals_its_text(shape):
    mechanism = chain(130, **shape)
    for quantity in all_quantities(mechanism):
        compare(mechanism, quantity, 1e-12, count=1)


@pytest.mark.parametrize("shape", [{}, {"branches": 4}, {"floating": True}, {"springs": True}], ids=str)
def test_operations_grow_with_the_length_and_of_matrices_with_its_square(shape):
    for name in ALONE:
        short, long = (long_chains.kernel(chain(n, **shape), name) for n in (50, 100))
        assert short is not None
        assert long is not None
        assert long.nodes <= (4.2 if name in MATRICES else 2.1) * short.nodes


def test_code_does_not_depend_on_the_length():
    for name in ALONE:
        short, long = (long_chains.kernel(chain(n), name) for n in (50, 100))
        assert short is not None
        assert long is not None
        assert short._form.program is long._form.program


def test_what_has_no_recursion_has_no_rolled_kernel():
    for name in ("reactions:world", "influence:b0:2:[0.0, 0.0, 0.0]", "mass_matrix_wrenches"):
        assert long_chains.kernel(chain(20), name) is None


def test_solving_with_the_mass_matrix():
    mechanism = mechanism_from(random_tree(2, 7, springs=1, motors=0))
    given = states(mechanism, 3)
    solved = long_chains.kernel(mechanism, "mass_solve")(given["q"], given["tau"])
    back = [denoc.mass_matrix(mechanism, q) @ a for q, a in zip(given["q"], solved, strict=True)]
    np.testing.assert_allclose(back, given["tau"], atol=1e-10)


def test_a_spring_between_points_of_one_body_does_nothing():
    spring = Spring("s", "b1", frozen_array((0.1, 0, 0)), "b1", frozen_array((0, 0.1, 0)), 50.0, 0.0, 1.0)
    plain = chain(3).description
    held = Description("held", bodies=plain.bodies, joints=plain.joints, springs=(spring,))
    q, v, a = np.random.default_rng(0).normal(size=(3, 3))
    wanted = denoc.inverse_dynamics(chain(3), q, v, a)
    tau = long_chains.kernel(mechanism_from(held), "inverse_dynamics")(q, v, a)
    np.testing.assert_allclose(tau, wanted, rtol=1e-12)


def test_energy_knows_its_gravity():
    """Gravity is part of the code of energy: two mechanisms that differ in nothing else must not share it."""
    plain = chain(3).description
    tilted = mechanism_from(
        Description("tilted", bodies=plain.bodies, joints=plain.joints, gravity=frozen_array((1.0, 2.0, 3.0)))
    )
    for mechanism in (chain(3), tilted):
        compare(mechanism, QUANTITIES["energy"], 1e-13)


def test_an_unknown_frame_is_refused():
    with pytest.raises(InputError, match="nowhere"):
        long_chains.kernel(chain(3), "pose:nowhere")


@pytest.mark.parametrize("seed", range(2))
def test_rolled_derivatives_equal_straight_ones(seed):
    model = Model(mechanism_from(random_tree(seed, 5, springs=1, motors=0.5)))
    given = states(model.mechanism, 2)
    q, v, a = given["q"], given["v"], given["a"]
    straight = model.inverse_dynamics_derivatives(q, v, a)
    rolled = COMPOSED["inverse_dynamics_derivatives"].answer(
        model.engine.tree, Request(QUANTITIES["inverse_dynamics_derivatives"], (q, v, a))
    )
    for one, other in zip(rolled, straight, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * (1 + np.abs(other).max()))


def test_a_chain_of_two_hundred_links_is_rolled_and_right():
    model = Model(chain(200))
    assert long_chains.worth_rolling(model.engine.reduced_mechanism)
    q, v, a = np.random.default_rng(0).normal(size=(3, 2, 200))
    tau = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-7)
    M = long_chains.kernel(model.mechanism, "mass_matrix")(q[0])
    kinetic, _ = long_chains.kernel(model.mechanism, "energy")(q[0], v[0])
    np.testing.assert_allclose(v[0] @ M @ v[0] / 2, kinetic, rtol=1e-12)
    change = tau[0] - model.inverse_dynamics(q[0], v[0], 0 * a[0])
    np.testing.assert_allclose(M @ a[0], change, atol=1e-12 * np.abs(tau).max())


def test_a_long_chain_has_derivatives():
    model = Model(chain(130))
    q, v, a = np.random.default_rng(0).normal(size=(3, 130))
    dq, dv, da = model.inverse_dynamics_derivatives(q, v, a)
    np.testing.assert_allclose(da, model.mass_matrix(q), atol=1e-9 * np.abs(da).max())
    h, d = 1e-6, np.random.default_rng(1).normal(size=130)
    for matrix, move in ((dq, lambda s: (q + s * d, v, a)), (dv, lambda s: (q, v + s * d, a))):
        slope = (model.inverse_dynamics(*move(h)) - model.inverse_dynamics(*move(-h))) / (2 * h)
        np.testing.assert_allclose(matrix @ d, slope, atol=1e-6 * np.abs(slope).max())


def test_short_and_varied_robots_stay_straight_lines():
    assert not long_chains.worth_rolling(chain(8))


def test_the_coriolis_matrix_of_a_chain_of_few_kinds_is_rolled_from_41_joints_on():
    """Straight lines of 45 joints take 10 s to compile; of many kinds, rolled code would take as long."""
    model, oblique = Model(chain(45)), chain(45).description
    q, v = np.random.default_rng(2).normal(size=(2, 45))
    with mock.patch.object(TreeEngine, "traced", side_effect=AssertionError("traced")):
        found = model.coriolis_matrix(q, v)
    text = denoc.coriolis_matrix(model.mechanism, q, v, domain=FLOAT)
    np.testing.assert_allclose(found, text, rtol=0, atol=1e-12 * np.abs(text).max())
    axes = [x / np.linalg.norm(x) for x in np.random.default_rng(3).normal(size=(45, 3))]
    joints = [replace(joint, axis=frozen_array(axis)) for joint, axis in zip(oblique.joints, axes, strict=True)]
    for other in (chain(40), mechanism_from(replace(oblique, joints=tuple(joints)))):
        assert not long_chains.coriolis_early(other)


@cache
def rotors(n: int) -> Mechanism:
    """The chain with transmissions that couple every fourth joint to the next one."""
    pairs = [(f"j{k}", f"j{k + 1}") for k in range(0, n - 1, 4)]
    motors = [Motor(f"m{name}", name, 1.0, 0.0, 0.1, 0.1, rotor_inertia=1e-3) for pair in pairs for name in pair]
    matrix = frozen_array([[1.0, 0.0], [0.5, 1.0]])
    gears = [Transmission(f"t{k}", pair, matrix) for k, pair in enumerate(pairs)]
    return mechanism_from(replace(chain(n).description, motors=tuple(motors), transmissions=tuple(gears)))


@pytest.mark.parametrize(
    "mechanism",
    [
        chain(61),
        chain(61, branches=3, springs=True),
        chain(61, floating=True),
        followed(61),
        followed(61, springs=True),
    ],
    ids=["serial", "branches and springs", "floating", "followers", "followers and springs"],
)
def test_what_long_chains_compose_equals_its_text(mechanism):
    model, given = Model(mechanism), states(mechanism, 2)
    assert model.engine.tree.is_long
    names = [name for name in COMPOSED if "derivatives" not in name and name in QUANTITIES]
    tip, other = mechanism.bodies[-1].name, mechanism.bodies[30].name
    asked = [QUANTITIES[name] for name in names] + [frames.relative_pose(mechanism, tip, other)]
    for axes in ("world", "frame"):
        asked += [frames.velocity(mechanism, tip, axes), frames.acceleration(mechanism, tip, axes)]
    asked.append(frames.task_space_inertia(mechanism, tip))
    given["multipliers"] = np.zeros((2, 0))
    for quantity in asked:
        request = Request(quantity, tuple(given[name] for name in quantity.arguments))
        if quantity.loaded:
            request = replace(request, wrenches=given["wrenches"])
        text = request.whole.tree
        found = model.engine.answer(request)
        texts = [text(mechanism, *state, domain=FLOAT) for state in zip(*request.all_arrays, strict=True)]
        for k, result in enumerate(found if isinstance(found, tuple) else (found,)):
            wanted = np.array([one[k] if isinstance(one, tuple) else one for one in texts]).reshape(result.shape)
            np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-8 * (0.1 + np.abs(wanted).max(initial=0)))


@pytest.mark.parametrize("mechanism", [chain(61), followed(61), rotors(61)], ids=["serial", "followers", "rotors"])
def test_derivatives_of_long_chains_under_wrenches(mechanism):
    model, given = Model(mechanism), states(mechanism, 1)
    q, v, tau, d = (given[name][0] for name in ("q", "v", "tau", "d"))
    loads = {mechanism.bodies[-1].name: np.arange(6.0)}
    dq, dv, dtau = model.forward_dynamics_derivatives(q, v, tau, wrenches=loads)
    h = 1e-6
    for matrix, move in (
        (dq, lambda s: (model.integrate(q, s * d), v, tau)), (dv, lambda s: (q, v + s * d, tau)),
        (dtau, lambda s: (q, v, tau + s * d)),
    ):  # fmt: skip
        ends = [model.forward_dynamics(*move(s), wrenches=loads) for s in (h, -h)]
        slope = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(matrix @ d, slope, atol=1e-5 * np.abs(slope).max())


def test_nothing_of_a_long_chain_is_interpreted():
    """Also where batches of the arguments differ, and into arrays that are given."""
    mechanism = chain(61)
    model, given = Model(mechanism), states(mechanism, 3)
    with mock.patch.object(TreeEngine, "_interpreted", side_effect=AssertionError):
        v = model.frame_velocity(given["q"][0], given["v"], "b60", out=np.empty((3, 6)))
        np.testing.assert_allclose(v, [model.frame_velocity(given["q"][0], x, "b60") for x in given["v"]], atol=1e-10)
        K, right = model.engine.answer(
            Request(QUANTITIES["augmented_system"], (given["q"][0], given["v"], given["tau"]))
        )
        assert (K.shape, right.shape) == ((3, 61, 61), (3, 61))
        for answer in (model.energy, model.momentum, model.bias_forces, model.passive_forces, model.coriolis_matrix):
            answer(given["q"], given["v"])
        momentum = model.coefficients.centroidal_momentum_matrix
        for answer in (model.gravity_forces, model.center_of_mass, model.poses, momentum):
            answer(given["q"])
        model.integrate(given["q"], given["v"], 0.1)
        model.difference(given["q"], given["q1"])
