"""A tree in Drake: reads its description as JSON, prints rows of what its integrators took. Run by bench_simulate.py.

Joints turn about one axis; a root may be free. Drake simulates loops only in discrete time, with its contact solvers,
which is another problem: they are left out.
"""

import json
import sys
import time

import numpy as np
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.math import SpatialVelocity
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import RevoluteJoint, RotationalInertia, SpatialInertia, UnitInertia
from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator

FIXED = {"runge_kutta3": "steps", "semi_explicit_euler": "small_steps"}
ADAPTIVE = ("runge_kutta3", "runge_kutta5")


def spatial_inertia(link):
    I, mass = np.array(link["inertia"]), link["mass"]
    about = RotationalInertia(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    com = np.array(link["com"])
    about_origin = about.ShiftFromCenterOfMass(mass, -com) if mass else about
    unit = UnitInertia()
    unit.SetFromRotationalInertia(about_origin, mass)
    return SpatialInertia(mass, com, unit, skip_validity_check=True)


def plant_of(tree):
    plant, bodies = MultibodyPlant(0.0), []
    plant.mutable_gravity_field().set_gravity_vector(tree["gravity"])
    for link in tree["links"]:
        body = plant.AddRigidBody(link["body"], spatial_inertia(link))
        bodies.append(body)
        if link["kind"] == "floating":
            continue
        parent = plant.world_body() if link["parent"] < 0 else bodies[link["parent"]]
        place = RigidTransform(RotationMatrix(np.array(link["rotation"])), link["position"])
        joint = plant.AddJoint(RevoluteJoint(
            link["joint"], _frame(plant, parent, place, link["joint"]), body.body_frame(), link["axis"],
            damping=link["damping"]))  # fmt: skip
        if link["armature"]:
            raise ValueError("armature is left out")
        link["made"] = joint
    plant.Finalize()
    return plant, bodies


def _frame(plant, parent, place, name):
    from pydrake.multibody.tree import FixedOffsetFrame

    return plant.AddFrame(FixedOffsetFrame(f"{name}_on_parent", parent.body_frame(), place))


def started(tree, plant, bodies, context):
    for link, body in zip(tree["links"], bodies, strict=True):
        if link["kind"] == "floating":
            R, p = RotationMatrix(np.array(link["pose_rotation"])), link["pose_position"]
            plant.SetFreeBodyPose(context, body, RigidTransform(R, p))
            w, v = (R.matrix() @ np.array(x) for x in (link["v"][:3], link["v"][3:]))
            plant.SetFreeBodySpatialVelocity(body, SpatialVelocity(w, v), context)
        else:
            link["made"].set_angle(context, link["q"][0])
            link["made"].set_angular_rate(context, link["v"][0])


def solved(tree, scheme, dt=None, accuracy=None):
    plant, bodies = plant_of(tree)
    best = np.inf
    for _ in range(3):
        simulator = Simulator(plant)
        integrator = ResetIntegratorFromFlags(simulator, scheme, dt or 0.1)
        if dt is None:
            integrator.set_fixed_step_mode(False)
            integrator.set_target_accuracy(accuracy)
        else:
            integrator.set_fixed_step_mode(True)
        context = simulator.get_mutable_context()
        started(tree, plant, bodies, context)
        simulator.Initialize()
        start = time.perf_counter()
        simulator.AdvanceTo(tree["seconds"])
        best = min(best, time.perf_counter() - start)
    place = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName(tree["probe"])).translation()
    setting = {"dt": dt} if dt is not None else {"accuracy": accuracy}
    kind = "" if dt is not None else ", adaptive"
    return {"method": f"{scheme}{kind}", "setting": setting, "steps": integrator.get_num_steps_taken(),
            "seconds": best, "place": list(place)}  # fmt: skip


def main():
    tree = json.load(sys.stdin)
    rows = [solved(tree, scheme, dt=dt) for scheme, key in FIXED.items() for dt in tree[key]]
    rows += [solved(tree, scheme, accuracy=r) for scheme in ADAPTIVE for r in tree["tolerances"]]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
