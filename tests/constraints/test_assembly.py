"""Assembly, mobility and what is said of mechanisms that cannot be put together."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.constraints.assembly import AssemblyError


def four_bar(ground=2.0, coupler=2.0, rocker=1.5, limits=None, active=("a",)):
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", coupler), ("rocker", rocker)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.01, 0.005 + length**2 / 12, 0.005 + length**2 / 12))
    build.joint("a", "revolute", "world", "crank", active="a" in active)
    build.joint("b", "revolute", "crank", "coupler", (1, 0, 0), active="b" in active)
    build.joint("c", "revolute", "world", "rocker", (ground, 0, 0), active="c" in active, limits=limits)
    build.loop("d", "revolute", "coupler", "rocker", (coupler, 0, 0), (rocker, 0, 0))
    return build.model()


def test_four_bar_closes_with_its_crank_held_in_both_assembly_modes():
    model = four_bar()
    q = model.assemble([0.7, 0.3, 1.5], hold=["a"])
    assert q[0] == 0.7
    assert np.abs(model.constraints.residual(q)).max() < 1e-13
    modes = model.constraints.assembly_modes([0.7, 0.3, 1.5], hold=["a"])
    assert len(modes) == 2
    np.testing.assert_allclose(modes[0], q, atol=1e-9)
    # the two modes are mirror images in the diagonal from the crank's tip to the rocker's ground pin
    tip, pin = np.array([np.cos(0.7), np.sin(0.7)]), np.array([2.0, 0.0])
    ends = [pin + 1.5 * np.array([np.cos(m[2]), np.sin(m[2])]) for m in modes]
    across = ends[1] - ends[0]
    assert abs(across @ (pin - tip)) < 1e-9
    np.testing.assert_allclose(np.linalg.norm(ends[1] - tip), 2.0)


def test_limits_choose_the_assembly_mode():
    model = four_bar(limits=(-np.pi, 0))
    q = model.assemble([0.7, 0.3, -0.1], hold=["a"])
    assert -np.pi <= q[2] <= 0
    assert len(model.constraints.assembly_modes([0.7, 0.3, -0.1], hold=["a"])) == 1


def test_batches_close_state_by_state():
    model = four_bar()
    q = model.assemble(np.array([[0.1, 0.2, 1.0], [0.9, 0.0, 1.0]]).reshape(2, 1, 3), hold="a")
    assert q.shape == (2, 1, 3)
    assert np.abs(model.constraints.residual(q)).max() < 1e-12
    v = model.assemble_velocity(q, np.ones(3), hold="a")
    assert np.abs(model.constraints.jacobian(q) @ v[..., None]).max() < 1e-12
    np.testing.assert_array_equal(v[..., 0], 1.0)


def test_what_cannot_be_assembled_says_which_loop_and_how_far():
    with pytest.raises(AssemblyError, match=r"'d' by 0\.9") as caught:
        four_bar(coupler=0.05, rocker=0.05).assemble()
    assert caught.value.residuals["d"] == pytest.approx(0.9, rel=5e-2)
    with pytest.raises(AssemblyError, match="with 'a', 'c' held"):
        four_bar().assemble([0.7, 0.0, 0.0], hold=["a", "c"])
    with pytest.raises(pb.InputError, match="'crank', which is not a joint"):
        four_bar().assemble(hold=["crank"])


def test_planar_four_bar_has_three_redundant_constraints_that_hold_by_themselves():
    model = four_bar()
    told = model.mobility(model.assemble([0.7, 0.3, 1.5]))
    assert (told.gruebler, told.true, told.here) == (-2, 1, 1)
    assert [str(r.row) for r in told.redundant] == ["d: tilt 1", "d: tilt 2", "d: z"]
    assert all(len(r.rows) == 1 for r in told.redundant)
    assert told.independent == ("a",)
    assert told.actuation == "exact"


def test_parallelogram_is_singular_where_its_bars_align():
    model = four_bar(ground=2.0, coupler=2.0, rocker=1.0)
    q = np.zeros(3)
    assert np.abs(model.constraints.residual(q)).max() < 1e-15
    told = model.mobility(q)
    assert (told.here, told.true, told.singular) == (2, 1, True)
    assert "singular here" in str(told)
    assert not model.mobility(model.assemble([0.5, -0.5, 0.5])).singular


def test_dead_centre_of_the_rocker_is_told_when_it_is_the_actuator():
    model = four_bar(active=("c",))
    # crank and coupler in line: the rocker cannot move the crank's branch independently
    angle = np.arccos((9 + 4 - 1.5**2) / (2 * 3 * 2))
    q = model.assemble([angle, 0.0, 1.5], hold=["a"])
    told = model.mobility(q)
    assert not told.singular
    assert told.actuation == "underactuated"
    (motion,) = told.uncontrolled
    assert abs(motion[2]) < 1e-6 < 0.3 < abs(motion[0])
    assert "not held by the actuators" in str(told)
    with pytest.raises(pb.PolybodyError, match=r"c are not independent.*independent here are"):
        model.mobility(q, independent=["c"])


def test_coordinates_that_are_not_independent_are_refused_wherever_they_are_named():
    model = four_bar(active=("c",))
    angle = np.arccos((9 + 4 - 1.5**2) / (2 * 3 * 2))
    dead, rest = model.assemble([angle, 0.0, 1.5], hold=["a"]), np.zeros(3)
    good = model.assemble([0.7, 0.3, 1.5], hold=["a"])
    both = np.stack([good, dead])
    asked = (
        lambda q, names: model.mass_matrix(q, independent=names),
        lambda q, names: model.bias_forces(q, rest, independent=names),
        lambda q, names: model.gravity_forces(q, independent=names),
        lambda q, names: model.coriolis_matrix(q, rest, independent=names),
    )
    for ask in asked:
        with pytest.raises(pb.PolybodyError, match=r"c are not independent .*state 1 of the batch.*here are (a|b)"):
            ask(both, ["c"])
        with pytest.raises(pb.PolybodyError, match=r"a, b: 2 coordinates for a mobility of 1.*independent here are"):
            ask(good, ["a", "b"])
        with pytest.raises(pb.PolybodyError, match=r"no coordinates: 0 coordinates for a mobility of 1"):
            ask(good, [])
        with pytest.raises(pb.InputError, match=r"no velocity coordinate 'd'.*available: a, b, c"):
            ask(good, ["d"])
        assert np.all(np.isfinite(ask(both, ["a"])))
    with pytest.raises(pb.PolybodyError, match=r"c are not independent"):
        model.coefficients.reduced_dynamics(dead, ["c"])


def test_actuators_that_cannot_hold_the_mechanism_are_told_the_free_direction():
    """At the rocker's dead centre no force of its drive reaches the crank; nearby it is large but does."""
    model = four_bar(active=("c",))
    angle, rest = np.arccos((9 + 4 - 1.5**2) / (2 * 3 * 2)), np.zeros(3)
    dead, near = (model.assemble([angle + d, 0.0, 1.5], hold=["a"]) for d in (0.0, 1e-3))
    for weights in (None, [1.0]):  # compiled, and by ranks
        with pytest.raises(pb.PolybodyError, match=r"joints .c. cannot give .*state 1 of the batch.*0\.\d+ [ab]"):
            model.inverse_dynamics(np.stack([near, dead]), rest, rest, weights=weights)
    tau = model.inverse_dynamics(near, rest, rest)
    assert np.abs(model.forward_dynamics(near, rest, tau)).max() < 1e-6
    with pytest.raises(pb.PolybodyError, match=r"active joints .none. cannot give this motion"):
        four_bar(active=()).inverse_dynamics(near, rest, rest)


def test_states_that_break_the_loops_are_refused_with_a_way_out():
    model = four_bar()
    q = model.assemble([0.7, 0.3, 1.5], hold=["a"])
    with pytest.raises(pb.InputError, match=r"q breaks the constraints: 'd' by 0\.\d+; model.assemble"):
        model.forward_dynamics(q + np.array([0, 0.1, 0]), np.zeros(3), np.zeros(3))
    with pytest.raises(pb.InputError, match=r"v breaks .* .state 1 of the batch.: .d. by .*assemble_velocity"):
        model.forward_dynamics(q, np.array([[0, 0, 0], [1.0, 0, 0]]), np.zeros(3))
    with pytest.raises(pb.InputError, match="a breaks the constraints"):
        model.inverse_dynamics(q, np.zeros(3), [1.0, 0, 0])
    with pytest.raises(pb.InputError, match="no such velocity keeps the constraints"):
        model.assemble_velocity(q, [1.0, 0, 0], hold=["a", "b"])


def test_loop_between_a_body_and_itself_is_refused(tmp_path):
    build = pb.Builder("bad")
    build.body("a", 1, inertia=(1, 1, 1))
    build.joint("j", "revolute", "world", "a")
    with pytest.raises(pb.InputError, match="it joins 'a' to itself"):
        build.loop("l", "fixed", "a", "a")
    build.body("b", 1, inertia=(1, 1, 1))
    build.joint("weld", "fixed", "a", "b", (1, 0, 0))
    build.loop("l", "revolute", "a", "b")
    with pytest.raises(pb.InputError, match="loop 'l' joins 'a' and 'b', which are one rigid body"):
        build.model()
    file = tmp_path / "x.yaml"
    file.write_text("polybody: 1\nname: x\nbodies: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                    "joints: {j: {kind: revolute, parent: world, child: a}}\n"
                    "loops: {l: {kind: revolute, body_a: a, body_b: a}}\n")
    with pytest.raises(pb.InputError, match=r"x.yaml:5: loop 'l': it joins 'a' to itself"):
        pb.load(file)


def test_custom_cut_joint_assembles_like_the_named_one_it_equals():
    model = four_bar()
    build = pb.Builder("custom", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.5)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.01, 0.005 + length**2 / 12, 0.005 + length**2 / 12))
    build.joint("a", "revolute", "world", "crank")
    build.joint("b", "revolute", "crank", "coupler", (1, 0, 0), active=False)
    build.joint("c", "revolute", "world", "rocker", (2, 0, 0), active=False)
    build.loop("d", "custom", "coupler", "rocker", (2, 0, 0), (1.5, 0, 0), map=np.array([[0, 0, 1, 0, 0, 0]]).T)
    custom = build.model()
    guess = [0.7, 0.3, 1.5]
    q = custom.assemble(guess, hold=["a"])
    np.testing.assert_allclose(q, model.assemble(guess, hold=["a"]), atol=1e-10)
    v = custom.assemble_velocity(q, [1.0, 0, 0], hold=["a"])
    tau = np.array([2.0, 0, 0])
    np.testing.assert_allclose(custom.forward_dynamics(q, v, tau), model.forward_dynamics(q, v, tau), rtol=1e-9)
    load, expected = custom.constraints.loads(q, v, tau)["d"], model.constraints.loads(q, v, tau)["d"]
    np.testing.assert_allclose(load, expected, atol=1e-9)
