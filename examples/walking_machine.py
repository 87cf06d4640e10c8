"""Freeman's walking machine takes ten steps on its feet: contact with friction in place of pinned feet. Then on ice.

    python examples/walking_machine.py [FOLDER]      writes walking.png

The shipped machine without its loops, a contact under each shank. Legs follow feet that are lifted in turn; between
steps both stand, and the trunk is brought level again. Joints are driven by PD, with the weight fed forward.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import polybody as pb
from polybody.description.records import Contact
from polybody.mechanism.contacts import contact_forces
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.model.validation import model_from

LINK, HEIGHT, HIPS = 0.35, 0.56, (-0.3, 0.3)
STEPS, PERIOD, SWING, STRIDE, LIFT, PAUSE = 10, 0.4, 0.08, 0.06, 0.07, 0.3
FEET = ("rear", "front")


def machine(friction: float) -> pb.Model:
    read = pb.load("walking-machine").description
    tip, up = np.array([[LINK, 0, 0]]), np.array([0.0, 1.0, 0.0])
    feet = tuple(
        Contact(f"{name}_foot", f"{name}_shank", tip, 5e4, 1.5, friction, slip=0.05, normal=up) for name in FEET
    )
    return model_from(replace(read, loops=(), contacts=feet), warn=False)


def leg_angles(reach: np.ndarray) -> np.ndarray:
    """(hip, knee) that put the foot at `reach` from the hip, from the machine's neutral pose."""
    turn, bend = np.arctan2(reach[1], reach[0]), np.arccos(min(1.0, np.hypot(*reach) / (2 * LINK)))
    thigh, shank = turn + bend, turn - bend
    return np.array([thigh + 0.9272952180016122, shank - thigh + 1.2870022175866685])


@dataclass
class Walk:
    """The gait as a controller."""

    weight: float
    kp: float = 2500.0
    kd: float = 50.0

    def foot(self, which: int, t: float) -> tuple[np.ndarray, bool]:
        """(where a foot should be on the ground, whether it is lifted)."""
        gone, x = t - PAUSE, HIPS[which]
        lifted, rise = False, 0.0
        for step in range(STEPS):
            if step % 2 != which:
                continue
            share = (gone - step * PERIOD) / SWING
            x += STRIDE * min(max(share, 0.0), 1.0)
            if 0 < share < 1:
                lifted, rise = True, LIFT * np.sin(np.pi * share) ** 2
        return np.array([x, rise]), lifted

    def trunk(self, t: float) -> float:
        """Midway between where the feet stand, with the steps smoothed."""
        gone = min(max(t - PAUSE, 0.0), STEPS * PERIOD)
        return STRIDE / 2 * gone / PERIOD

    def goal(self, t: float) -> np.ndarray:
        place = np.array([self.trunk(t), HEIGHT])
        return np.concatenate([leg_angles(self.foot(k, t)[0] - place - [HIPS[k], 0]) for k in range(2)])

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau, h = np.zeros(7), 1e-4
        rate = (self.goal(t + h) - self.goal(t - h)) / (2 * h)
        tau[3:] = self.kp * (self.goal(t) - q[3:]) + self.kd * (rate - v[3:])
        lifted = [self.foot(k, t)[1] for k in range(2)]
        for k in range(2):
            if not lifted[k]:
                force = self.weight / (2 - sum(lifted))
                thigh = q[3 + 2 * k] - 0.9272952180016122 + q[0]
                shank = thigh + q[4 + 2 * k] - 1.2870022175866685
                across = LINK * np.cos(shank)
                tau[3 + 2 * k] -= force * (LINK * np.cos(thigh) + across)
                tau[4 + 2 * k] -= force * across
        return tau


def walk(friction: float, duration: float) -> pb.Trajectory:
    model = machine(friction)
    weight = sum(body.mass for body in model.description.bodies) * 9.81
    q = model.neutral()
    q[2] = -((weight / 2 / 5e4) ** (2 / 3))  # as far as its feet sink in
    law = Walk(weight)
    return pb.simulate(model, duration, q, controller=law, rtol=1e-5, atol=1e-7, sample=0.02, limits="ignore")


def feet(run: pb.Trajectory) -> np.ndarray:
    """Places of both feet, (n, 2, 2)."""
    tips = []
    for name in FEET:
        T = run.model.pose(run.q, f"{name}_shank")
        tips.append(T[:, :2, 3] + LINK * T[:, :2, 0])
    return np.stack(tips, axis=1)


def lifts(run: pb.Trajectory) -> int:
    """How many times a foot leaves the ground, by more than a centimetre, in a period of the gait that lifts it."""
    high, count = feet(run)[:, :, 1] > 0.01, 0
    for step in range(STEPS):
        swing = (run.t > PAUSE + step * PERIOD) & (run.t < PAUSE + step * PERIOD + SWING)
        count += bool(high[swing, step % 2].any())
    return count


def steepest(run: pb.Trajectory) -> float:
    """The largest ratio of friction to normal force at a foot."""
    m, ratio = run.model.mechanism, 0.0
    for q, v in zip(run.q, run.v, strict=True):
        poses, twists = body_poses(m, q), body_twists(m, q, v)
        for contact in m.contacts:
            for _, force in contact_forces(contact, poses, twists):
                ratio = max(ratio, abs(force[0]) / force[1] if force[1] > 0 else 0.0)
    return ratio


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    figure, panels = plt.subplots(2, 1, figsize=(8.6, 5.0), dpi=75, layout="constrained")
    whole = PAUSE + STEPS * PERIOD + 0.3
    cases = (("ground, μ = 0.8", 0.8, whole), ("ice, μ = 0.02", 0.02, 2.0))
    for axes, (ground, friction, duration) in zip(panels, cases, strict=True):
        run = walk(friction, duration)
        places, height = feet(run), run.model.pose(run.q, "trunk")[:, 1, 3]
        tilt = np.abs(run.q[:, 0]).max()
        went, cone = run.q[-1, 1] - run.q[0, 1], steepest(run)
        print(f"{ground}: {lifts(run)} steps, trunk went {went:.3f} m in {duration:g} s, tilt at most "
              f"{tilt:.3f} rad, lowest {height.min():.3f} m, friction at most {cone:.2f} of the normal force, "
              f"trusted: {run.audit.trusted}")
        walks = height.min() > 0.45 and tilt < 0.3 and went > 0.1 and lifts(run) == STEPS
        if cone > friction or not run.audit.trusted or walks != (friction == 0.8):
            sys.exit(f"on {ground} it should {'walk' if friction == 0.8 else 'slip'}, inside its friction cones")
        axes.plot(run.t, places[:, 0, 0], run.t, places[:, 1, 0], run.t, run.q[:, 1])
        axes.set(title=ground, xlabel="t, s", ylabel="x, m")
        axes.legend(["rear foot", "front foot", "trunk"])
    figure.savefig(folder / "walking.png")
    print(f"wrote {folder / 'walking.png'}")


if __name__ == "__main__":
    main()
