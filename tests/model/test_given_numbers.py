"""Numbers that are given: masked arrays, levels of friction, and parameters by themselves."""

import pickle

import numpy as np
import pytest

import polybody as pb


def masked(model: pb.Model) -> np.ma.MaskedArray:
    return np.ma.masked_array(np.zeros((3, model.nv)), mask=np.arange(3 * model.nv).reshape(3, -1) == 4)


@pytest.mark.parametrize("few", [False, True])
def test_masked_entries_are_refused_by_name(few):
    model = pb.load("stanford-arm")
    zero = np.zeros((3, model.nv))
    given = masked(model)[0] if few else masked(model)
    for call in (
        lambda: model.mass_matrix(given),
        lambda: model.inverse_dynamics(zero, zero, given),
        lambda: model.integrate(zero, given, 0.1),
        lambda: model.forward_dynamics(zero, zero, given, formulation="network"),
        lambda: model.coefficients.influence(given, "dh_6", 2),
    ):
        with pytest.raises(pb.PolybodyError, match="masked"):
            call()


def test_a_masked_array_without_masked_entries_is_an_array():
    model = pb.load("stanford-arm")
    q = np.random.default_rng(0).normal(size=(3, model.nq))
    assert np.array_equal(model.mass_matrix(np.ma.masked_array(q)), model.mass_matrix(q))


def rubbing() -> pb.Model:
    build = pb.Builder("rubbing")
    build.body("b", 1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
    build.joint("hinge", "revolute", "world", "b", friction={"coulomb": 1.0, "static": 1.5})
    return build.model()


def test_static_friction_below_coulomb_friction_names_the_joint_and_the_state():
    model = rubbing().with_parameters("hinge.friction.*")
    values = np.tile(model.parameters.nominal, (3, 1))
    values[2, model.parameters.names.index("hinge.friction.static")] = 0.5
    zero = np.zeros((3, 1))
    with pytest.raises(pb.InputError, match=r"'hinge' \(state 2 .*static 0.5 is below friction.coulomb 1"):
        model.inverse_dynamics(zero, zero, zero, parameters=values)
    with pytest.raises(pb.InputError, match=r"'hinge': friction\.static 1\.5 is below friction\.coulomb 2"):
        rubbing().with_parameters("hinge.friction.coulomb").parameters.at([2.0])


def test_equal_levels_of_friction_stay_equal():
    model = pb.Builder("b")
    model.body("b", 1.0, inertia=(1, 1, 1))
    model.joint("hinge", "revolute", "world", "b", friction={"coulomb": 1.0})
    varied = model.model().with_parameters("hinge.friction.coulomb")
    assert np.isclose(varied.inverse_dynamics([0.0], [1.0], [0.0], parameters=[3.0])[0], 3.0)


def test_parameters_are_pickled_by_themselves():
    given = rubbing().with_parameters("hinge.friction.*", "b.mass").parameters
    found = pickle.loads(pickle.dumps(given))
    assert found.names == given.names
    assert np.array_equal(found.nominal, given.nominal)
    assert np.array_equal(found.at(found.nominal).mass_matrix([0.0]), given.at(given.nominal).mass_matrix([0.0]))
