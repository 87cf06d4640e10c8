"""Loops cut at joints given by map matrices: as the named joints they equal, compiled, over batches."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from maximal import Maximal
from mechanisms import random_pose
from polybody.algebra.domains import FLOAT
from polybody.algebra.rotations import matrix_quaternion
from polybody.constraints.map_closure import complement
from polybody.constraints.system import Constraints
from polybody.mechanism.kinds import joint_model

X, Y, Z = np.eye(6)[:3]
U, V, W = np.eye(6)[3:]
#: kind: (columns of the map, child outwards; stages)
MAPS = {
    "cylindrical": ([Z, W], (2,)),
    "universal": ([Y, Z], (1, 1)),
    "spherical": ([X, Y, Z], (1, 1, 1)),
    "planar": ([Z, U, V], (3,)),
}


def pair(kind, by_map, rng):
    """Two free bodies with a cut joint between them."""
    build = pb.Builder(kind)
    for body in "ab":
        build.body(body, rng.uniform(1, 2), 0.2 * rng.normal(size=3), rng.uniform(0.3, 0.4, size=3))
        build.joint(f"free_{body}", "floating", "world", body)
    Ta, Tb = random_pose(rng), random_pose(rng)
    columns, stages = MAPS[kind]
    options = {"map": np.array(columns).T, "stages": stages} if by_map else {}
    build.loop("cut", "custom" if by_map else kind, "a", "b", Ta, Tb, **options)
    return build.model(), Ta, Tb


def closed_states(model, Ta, Tb, rng, count, reach=1.0):
    (loop,) = model.description.loops
    joint = joint_model(loop)
    q = np.empty((count, model.nq))
    for k in range(count):
        R, p = joint.configuration(joint.integrate(joint.neutral(), rng.uniform(-reach, reach, size=joint.nv)))
        across, A = np.eye(4), random_pose(rng)
        across[:3, :3], across[:3, 3] = R, p
        B = A @ Ta @ across @ np.linalg.inv(Tb)
        q[k] = np.concatenate([np.concatenate([T[:3, 3], matrix_quaternion(T[:3, :3])]) for T in (A, B)])
    v = model.assemble_velocity(q, rng.normal(size=(count, model.nv)))
    return q, v, rng.normal(size=(count, model.nv))


def refuse_numbers(monkeypatch):
    """Text on numbers is refused: what is answered from now on is compiled."""
    def guarded(method):
        def call(self, *arrays, domain=FLOAT, **options):
            assert domain is not FLOAT, f"{method.__name__} was asked state by state"
            return method(self, *arrays, domain=domain, **options)
        return call

    for name in ("residual", "entries", "velocity", "bias", "entry_rates", "wrenches"):
        monkeypatch.setattr(Constraints, name, guarded(getattr(Constraints, name)))


@pytest.mark.parametrize("kind", MAPS)
def test_loop_by_map_moves_and_bears_as_the_named_one_and_as_free_bodies_do(kind, monkeypatch):
    custom, Ta, Tb = pair(kind, True, np.random.default_rng(2))
    named, _, _ = pair(kind, False, np.random.default_rng(2))
    q, v, tau = closed_states(named, Ta, Tb, np.random.default_rng(3), 8)
    independent = named.constraints.independent
    # Plans are made from states that are open on the way.
    still = custom.forward_dynamics(q[0], v[0], np.zeros(12))
    custom.coriolis_matrix(q[0], v[0], independent=independent)
    custom.reactions(q[0], v[0], still)
    assert custom.mobility(q[0]).true == 6 + len(MAPS[kind][0])
    refuse_numbers(monkeypatch)
    a, loads = custom.forward_dynamics(q, v, tau), custom.constraints.loads(q, v, tau)["cut"]
    scale = np.abs(a).max()
    np.testing.assert_allclose(a, named.forward_dynamics(q, v, tau), atol=1e-9 * scale)
    np.testing.assert_allclose(loads, named.constraints.loads(q, v, tau)["cut"], atol=1e-9 * np.abs(loads).max())
    np.testing.assert_allclose(custom.coriolis_matrix(q, v, independent=independent),
                               named.coriolis_matrix(q, v, independent=independent), atol=1e-9 * 10)
    falling = named.forward_dynamics(q, v, np.zeros(12))
    reactions = custom.reactions(q, v, falling)
    for name, wrench in named.reactions(q, v, falling).items():
        np.testing.assert_allclose(reactions[name], wrench, atol=1e-8 * (1 + np.abs(wrench).max()))
    machine = Maximal(named.description)
    for k in range(2):
        machine.place(*({f"free_{b}": x[k].reshape(2, -1)[i] for i, b in enumerate("ab")} for x in (q, v)))
        free, multipliers = machine.forward({f"free_{b}": tau[k].reshape(2, -1)[i] for i, b in enumerate("ab")})
        found = machine.joint_accelerations(free)
        np.testing.assert_allclose(a[k], np.concatenate([found["free_a"], found["free_b"]]), atol=1e-9 * scale)
        wrench = machine.wrench_map(machine.cut[0]) @ multipliers
        np.testing.assert_allclose(loads[k], wrench, atol=1e-9 * np.abs(wrench).max())


def test_where_compiled_steps_fail_each_state_is_answered_by_numbers(monkeypatch, tmp_path):
    """With one step nothing settles; the answers stay what they are."""
    from polybody.constraints import map_closure
    from polybody.constraints.system import Constraints

    custom, Ta, Tb = pair("universal", True, np.random.default_rng(5))
    named, _, _ = pair("universal", False, np.random.default_rng(5))
    q, v, tau = closed_states(named, Ta, Tb, np.random.default_rng(6), 3)
    monkeypatch.setattr(map_closure, "STEPS", 1)
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))  # such kernels must not be kept
    wanted = named.forward_dynamics(q, v, tau)
    raw = custom.engine.constraints._kernel("entries", ("q",), ((custom.engine.constraints.entries,),),
                                            Constraints.entries)(q)
    assert np.isnan(raw).any()
    np.testing.assert_allclose(custom.forward_dynamics(q, v, tau), wanted, atol=1e-9 * np.abs(wanted).max())
    assert np.abs(custom.constraints.residual(q)).max() < 1e-12


def test_state_that_opens_a_loop_by_map_is_refused():
    custom, Ta, Tb = pair("universal", True, np.random.default_rng(8))
    q, v, tau = closed_states(custom, Ta, Tb, np.random.default_rng(9), 2)
    q[1, 0] += 0.01
    with pytest.raises(pb.InputError, match=r"q breaks the constraints .state 1 of the batch.: 'cut' by 0\.01"):
        custom.forward_dynamics(q, v, tau)


def test_complement_is_orthonormal_and_across_for_any_map():
    rng = np.random.default_rng(0)
    for r in range(1, 6):
        H = rng.normal(size=(6, r))
        N = complement(H, FLOAT)
        np.testing.assert_allclose(N.T @ N, np.eye(6 - r), atol=1e-14)
        np.testing.assert_allclose(H.T @ N, 0, atol=1e-14)
