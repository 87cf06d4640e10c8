"""Springs and dampers in cut joints: the same linkage cut elsewhere, where the joint is one of the tree."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

DRIVE = {"stiffness": 7.0, "damping": 0.8, "rest": 0.4}
#: the joint under test, and its guess when the crank is at 0.7 rad
KINDS = {"revolute": {}, "prismatic": {}, "screw": {"pitch": 0.4}, "cylindrical": {}}
TWO = {"stiffness": [[7.0, 0.5], [0.5, 3.0]], "damping": [0.8, 0.3], "rest": [0.4, -0.1]}


def at(x: float, y: float = 0.0, turn: float = 0.0) -> np.ndarray:
    T = np.eye(4)
    T[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    T[:2, 3] = x, y
    return T


def _bodies(build: pb.Builder, *names: str) -> None:
    for k, name in enumerate(names):
        build.body(name, 1.0 + 0.3 * k, com=(0.4, 0.05, 0.02), inertia=(0.05, 0.06, 0.08))


def four_bar(cut: str, **drive) -> pb.Model:
    """Pins A (ground-crank), B (crank-coupler), C (coupler-rocker), D (ground-rocker); C's or D's spring is tested."""
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    _bodies(build, "crank", "coupler", "rocker")
    build.joint("A", "revolute", "world", "crank")
    build.joint("B", "revolute", "crank", "coupler", at(1), active=False)
    if cut == "C":
        build.joint("D", "revolute", "world", "rocker", at(2), active=False)
        build.loop("C", "revolute", "coupler", "rocker", at(2), at(1.2), **drive)
    else:
        build.body("pin", 0.0)
        build.joint("C", "revolute", "coupler", "pin", at(2), active=False, **drive)
        build.joint("weld", "fixed", "pin", "rocker", at(-1.2))
        build.loop("D", "revolute", "world", "rocker", at(2))
    return build.model()


def slider(cut: str, kind: str, **drive) -> pb.Model:
    """A block that a joint of some kind lets along z, held to a turning arm through a ball at its end.

    Cut at "block", or at the ball that is the tree's other way to the arm.
    """
    motion = KINDS[kind]
    build = pb.Builder(f"held {kind}", gravity=(1.0, 2.0, -9.81))
    _bodies(build, "arm", "rod", "block")
    build.joint("arm", "revolute", "world", "arm", axis=(1, 0, 0), damping=0.1)
    build.joint("ball", "spherical", "arm", "rod", at(0, 0.9), active=False)
    if cut == "block":
        build.joint("pin", "spherical", "rod", "block", at(0, 0.8), active=False)
        build.loop("block", kind, "world", "block", at(0.1, 0.5), **motion, **drive)
    else:
        build.joint("block", kind, "world", "block", at(0.1, 0.5), active=False, **motion, **drive)
        build.loop("pin", "spherical", "rod", "block", at(0, 0.8))
    return build.model()


def twin(tested: pb.Model, other: pb.Model, seed: int):
    """The same state of both models, by the poses and velocities of their bodies."""
    rng = np.random.default_rng(seed)
    q = other.assemble(other.integrate(other.neutral(), rng.normal(size=other.nv) * 0.4))
    v = other.assemble_velocity(q, rng.normal(size=other.nv))
    names = tested.body_names
    goals = {name: other.pose(q, name) for name in names}
    found = pb.inverse_kinematics(tested, goals, tolerance=1e-11)
    assert found
    J, twists = (
        np.concatenate([m.jacobian(x, name) for name in names]) for m, x in ((tested, found.q), (other, q))
    )
    own = np.linalg.lstsq(J, twists @ v, rcond=None)[0]
    return (found.q, tested.assemble_velocity(found.q, own)), (q, v)


CASES = [
    ("revolute", lambda cut, **d: four_bar("C" if cut else "D", **d), DRIVE),
    *((kind, lambda cut, k=kind, **d: slider("block" if cut else "pin", k, **d),
       TWO if kind == "cylindrical" else DRIVE) for kind in ("prismatic", "screw", "cylindrical")),
]  # fmt: skip


@pytest.mark.parametrize(("make", "drive"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("seed", range(2))
def test_a_cut_joint_exerts_what_the_same_joint_of_the_tree_exerts(make, drive, seed) -> None:
    tested, other = make(True, **drive), make(False, **drive)
    (q, v), (q2, v2) = twin(tested, other, seed)
    none, none2 = np.zeros(tested.nv), np.zeros(other.nv)
    a, a2 = tested.forward_dynamics(q, v, none), other.forward_dynamics(q2, v2, none2)
    for name in tested.body_names:
        wanted = other.frame_acceleration(q2, v2, a2, name)
        np.testing.assert_allclose(tested.frame_acceleration(q, v, a, name), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(tested.energy(q, v), other.energy(q2, v2), rtol=1e-8, atol=1e-8)
    assert not np.allclose(make(True).forward_dynamics(q, v, none), a, atol=1e-3)


@pytest.mark.parametrize(("make", "drive"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_all_formulations_and_the_energy_balance_agree(make, drive) -> None:
    model = make(True, **drive)
    rng = np.random.default_rng(5)
    q = model.assemble(model.integrate(model.neutral(), rng.normal(size=model.nv) * 0.3))
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    tau = np.eye(model.nv)[0] * 1.3
    a = model.forward_dynamics(q, v, tau)
    for formulation in pb.formulations():
        found = model.forward_dynamics(q, v, tau, formulation=formulation)
        np.testing.assert_allclose(found, a, rtol=1e-8, atol=1e-8, err_msg=formulation)
    h = 1e-5
    still = model.passive_forces(q, 0 * v)
    u = list(model.constraints.indices(model.constraints.independent))
    drag = (model.passive_forces(q, v) - still) @ v[u]
    assert drag < 0
    near = [model.integrate(model.integrate(q, v, t), a, t * t / 2) for t in (-h, h)]
    ends = [model.constraints.assemble_dependent(x) for x in near]
    rates = [model.assemble_velocity(x, v + t * a) for x, t in zip(ends, (-h, h), strict=True)]
    energies = [sum(model.energy(x, y)) for x, y in zip(ends, rates, strict=True)]
    assert (energies[1] - energies[0]) / (2 * h) == pytest.approx(tau @ v + drag, rel=1e-4, abs=1e-4)


def test_derivatives_of_forward_dynamics_know_the_spring() -> None:
    model = four_bar("C", **DRIVE)
    q = model.assemble([0.7, -0.5, 0.9])
    v = model.assemble_velocity(q, np.ones(3))
    tau = np.array([1.0, 0.0, 0.0])
    da_dq, da_dv, _ = model.forward_dynamics_derivatives(q, v, tau, independent=["A"])
    h = 1e-6

    def moved(t: float) -> np.ndarray:
        place = model.assemble([q[0] + t, *q[1:]], ["A"])
        return model.forward_dynamics(place, model.assemble_velocity(place, v[0] * np.eye(3)[0], ["A"]), tau)

    np.testing.assert_allclose(da_dq[:, 0], (moved(h) - moved(-h)) / (2 * h), rtol=1e-5, atol=1e-5)
    faster = [model.forward_dynamics(q, v * (1 + t / v[0]), tau) for t in (-h, h)]
    np.testing.assert_allclose(da_dv[:, 0], (faster[1] - faster[0]) / (2 * h), rtol=1e-5, atol=1e-5)


def test_a_run_with_a_spring_and_damper_in_a_cut_joint_keeps_its_energy_balance() -> None:
    model = four_bar("C", **DRIVE)
    run = pb.simulate(model, 0.5, model.assemble([0.7, -0.5, 0.9]))
    assert run.audit.trusted, run.audit
    assert run.q[-1] == pytest.approx(pb.simulate(model, 0.5, run.q[0], method="radau").q[-1], abs=1e-5)


def test_the_reaction_of_a_loop_holds_its_spring() -> None:
    """A pendulum on a pin with a spring, hung by a loop: the pin's moment about its axis is the spring's."""
    model = four_bar("C", **DRIVE)
    q = model.assemble([0.7, -0.5, 0.9])
    none = np.zeros(3)
    found = model.reactions(q, none, model.assemble_acceleration(q, none, none))["C"]
    other = four_bar("D", **DRIVE)
    (q1, _), (q2, _) = twin(model, other, 0)
    a1, a2 = np.zeros(3), np.zeros(3)
    mine = model.reactions(q1, a1, a1)["C"]
    wanted = other.reactions(q2, a2, a2)["C"]
    np.testing.assert_allclose(mine[2], wanted[2], atol=1e-6)
    angle = q[2] - q[0] - q[1]
    assert found[2] == pytest.approx(-7.0 * (np.angle(np.exp(1j * (angle - 0.4)))), abs=1e-8)


def test_what_a_cut_joint_cannot_have_is_refused_by_name() -> None:
    build = pb.Builder("motor")
    _bodies(build, "crank")
    build.joint("A", "revolute", "world", "crank")
    build.loop("C", "fixed", "world", "crank")
    build.motor("C", 1.0, 0.0, 0.1)
    with pytest.raises(pb.InputError, match="on 'C', which is not a moving joint of the tree"):
        build.model()
    with pytest.raises(pb.InputError, match="loop 'L': stiffness"):
        build.loop("L", "revolute", "world", "crank", stiffness=[1, 2, 3])
