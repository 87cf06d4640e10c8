"""Make docs/images/animation.webp, the film at the top of README: a Stewart platform and a G1 robot.

    python tools/animation.py [FILE]

The platform's tool goes round while it tilts; the robot bends its knees over feet that stay where they are, and waves.
Both are answers of `pb.inverse_kinematics` over one period, so that the film can be played again and again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import polybody as pb
from polybody.studio.render.raster import Raster
from polybody.studio.stage.stage import Stage

Array = np.ndarray
PICTURES, SECONDS, SIDE = 72, 4.8, 400
ROBOT = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


def stewart() -> tuple[pb.Model, Array]:
    model = pb.load("stewart")
    q = model.assemble()
    home, states = model.pose(q, "tool"), []
    for phase in np.linspace(0, 2 * np.pi, PICTURES, endpoint=False):
        goal = home.copy()
        goal[:3, 3] += [0.13 * np.cos(phase), 0.13 * np.sin(phase), 0.06 + 0.06 * np.sin(2 * phase)]
        goal[:3, :3] = turn(0.22 * np.sin(phase), 0.22 * np.cos(phase), 0.25 * np.sin(2 * phase)) @ home[:3, :3]
        found = pb.inverse_kinematics(model, {"tool": goal}, q)
        assert found, "the platform reaches all of its way"
        q = found.q
        states.append(q)
    return model, np.array(states)


def robot(folder: Path) -> tuple[pb.Model, Array]:
    model = pb.load(folder / ROBOT, base="floating")
    q, states = model.neutral(), []
    for side in ("left", "right"):
        q[model.joint_slices()[f"{side}_hip_pitch_joint"][0]] = -0.3
        q[model.joint_slices()[f"{side}_knee_joint"][0]] = 0.6
        q[model.joint_slices()[f"{side}_ankle_pitch_joint"][0]] = -0.3
    feet = {f"{side}_ankle_roll_link": model.pose(q, f"{side}_ankle_roll_link") for side in ("left", "right")}
    pelvis = model.pose(q, "pelvis")
    for phase in np.linspace(0, 2 * np.pi, PICTURES, endpoint=False):
        goal = pelvis.copy()
        goal[:3, 3] += [0.0, 0.03 * np.sin(phase), -0.05 + 0.05 * np.cos(2 * phase)]
        goal[:3, :3] = turn(0.04 * np.sin(phase), 0.06, 0.12 * np.sin(phase))
        found = pb.inverse_kinematics(model, {"pelvis": goal, **feet}, q, tolerance=1e-7)
        assert found, "the robot stands through all of its way"
        q = found.q.copy()
        for name, value in arms(phase).items():
            q[model.joint_slices()[name][0]] = value
        states.append(q)
    return model, np.array(states)


def arms(phase: float) -> dict[str, float]:
    wave = np.sin(3 * phase)
    return {
        "left_shoulder_pitch_joint": -0.6, "left_shoulder_roll_joint": 1.9, "left_shoulder_yaw_joint": 0.1,
        "left_elbow_joint": -0.3 + 0.35 * wave, "left_wrist_roll_joint": 0.4,
        "right_shoulder_pitch_joint": 0.25 * np.sin(phase), "right_shoulder_roll_joint": -0.25,
        "right_elbow_joint": 0.7, "waist_yaw_joint": 0.15 * np.sin(phase),
    }  # fmt: skip


def turn(roll: float, pitch: float, yaw: float) -> Array:
    from scipy.spatial.transform import Rotation

    return Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()


def pictures(model: pb.Model, states: Array, **options: Any) -> list[Array]:
    raster = Raster(Stage(model, states), SIDE, SIDE, **options)
    try:
        return [raster.picture(q) for q in states]
    finally:
        raster.close()


def main() -> None:
    from PIL import Image

    root = Path(__file__).resolve().parent.parent
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "docs" / "images" / "animation.webp"
    import pinocchio  # its wheel brings example-robot-data

    places = [above / "share" / "example-robot-data" / "robots" for above in Path(pinocchio.__file__).resolve().parents]
    folder = next(place for place in places if place.is_dir())
    halves = [pictures(*stewart()), pictures(*robot(folder), view=(-0.45, 0.16), zoom=1.15)]
    frames = [Image.fromarray(np.hstack(pair)) for pair in zip(*halves, strict=True)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=round(1000 * SECONDS / PICTURES), loop=0,
                   quality=58, method=6)  # fmt: skip
    print(f"wrote {path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
