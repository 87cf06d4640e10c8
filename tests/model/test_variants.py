"""Models made from a model: gravity, frames, payloads, locked joints, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from mechanisms import random_tree
from polybody.mechanism import mechanism_from

SEEDS = range(3)


def state(seed: int) -> tuple[pb.Model, np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    model = pb.Model(mechanism_from(random_tree(rng, 5)))
    return model, rng, model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


@pytest.mark.parametrize("seed", SEEDS)
def test_gravity_is_that_of_accelerated_axes(seed: int) -> None:
    """Gravity forces are linear in gravity, and everything else stays."""
    model, rng, q, v, a = state(seed)
    one, two = rng.normal(size=(2, 3))
    g1, g2, both = (model.with_gravity(g).gravity_forces(q) for g in (one, two, one + 2 * two))
    np.testing.assert_allclose(g1 + 2 * g2, both, atol=1e-11)
    none = model.with_gravity((0, 0, 0))
    tau = model.inverse_dynamics(q, v, a) - model.gravity_forces(q)
    np.testing.assert_allclose(none.inverse_dynamics(q, v, a), tau, atol=1e-10)
    np.testing.assert_allclose(none.gravity_forces(q), 0, atol=1e-14)


def test_a_frame_is_where_its_link_is() -> None:
    model, rng, q, _, _ = state(0)
    body, place = model.body_names[-1], np.eye(4)
    place[:3, 3] = rng.normal(size=3)
    more = model.with_frame("tool", body, place)
    np.testing.assert_allclose(more.pose(q, "tool"), model.pose(q, body) @ place, atol=1e-13)
    assert more.frame_names == [*model.frame_names, "tool"]
    with pytest.raises(pb.InputError, match="frame 'tool' exists already"):
        more.with_frame("tool", body)
    with pytest.raises(pb.InputError, match="no body 'nobody'"):
        model.with_frame("other", "nobody")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_payload_adds_its_own_energy(seed: int) -> None:
    model, rng, q, v, _ = state(seed)
    mass, com, moments = 1.7, rng.normal(size=3), np.array([0.3, 0.4, 0.5])
    frame = model.body_names[-1]
    laden = model.with_payload(frame, mass, com, moments)
    T, twist = model.pose(q, frame), model.frame_velocity(q, v, frame)
    c, w = T[:3, 3] + T[:3, :3] @ com, twist[:3]
    speed = twist[3:] + np.cross(w, T[:3, :3] @ com)
    kinetic = (mass * speed @ speed + (T[:3, :3].T @ w) @ (moments * (T[:3, :3].T @ w))) / 2
    found = np.subtract(laden.energy(q, v), model.energy(q, v))
    np.testing.assert_allclose(found, [kinetic, -mass * model.gravity @ c], atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_locked_joints_stay_and_the_others_move_as_before(seed: int) -> None:
    model, rng, q, v, a = state(seed)
    name = model.joint_names[int(rng.integers(len(model.joint_names)))]
    at_q, at_v = model.joint_slices()[name]
    v[at_v] = a[at_v] = 0.0
    locked = model.lock(name, q)
    assert locked.joint_names == [x for x in model.joint_names if x != name]
    rest = [np.delete(x, at) for x, at in ((q, at_q), (v, at_v), (a, at_v))]
    wanted = np.delete(model.inverse_dynamics(q, v, a), at_v)
    np.testing.assert_allclose(locked.inverse_dynamics(*rest), wanted, atol=1e-9)


def test_a_saved_model_is_read_as_the_same(tmp_path: Path) -> None:
    model, _, q, v, a = state(1)
    model.save(tmp_path / "tree.yaml")
    back = pb.load(tmp_path / "tree.yaml")
    np.testing.assert_allclose(back.inverse_dynamics(q, v, a), model.inverse_dynamics(q, v, a), rtol=1e-12, atol=1e-12)
    with pytest.raises(pb.PolybodyError, match="exists"):
        model.save(tmp_path / "tree.yaml")
    model.save(tmp_path / "tree.yaml", force=True)


def test_models_with_loops_have_variants_too() -> None:
    model = pb.load("five-bar")
    q = model.assemble()
    none = np.zeros(model.nv)
    np.testing.assert_allclose(model.with_gravity((0, 0, 0)).forward_dynamics(q, none, none), 0, atol=1e-12)
    assert len(model.lock(model.joint_names[0], q).mobility(np.delete(q, 0)).independent) == 1
