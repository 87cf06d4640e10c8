"""Forty four-bars in a row turn for ten seconds, through the position in which every one of their loops is singular.

    python examples/four_bar_chain.py [FOLDER]      writes four-bar-chain.png

Uprights of 1 m stand 1 m apart on the ground, joined by level bars of 1 m. The chain has one motion; where all bars lie
in line each loop has a second one. On the branch that it starts on it is a pendulum, which it is compared with.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import polybody as pb

LOOPS, SECONDS, RATE = 40, 10.0, -1.0


def chain(count: int) -> pb.Model:
    build = pb.Builder(f"chain-of-{count}-four-bars", gravity=(0, -9.81, 0))
    for k in range(count + 1):
        build.body(f"upright{k}", 1.0, (0, 0.5, 0), (1 / 12, 5e-5, 1 / 12))
        build.joint(f"base{k}", "revolute", "world", f"upright{k}", (k, 0, 0), active=k == 0)
    for k in range(1, count + 1):
        build.body(f"top{k}", 1.0, (0.5, 0, 0), (5e-5, 1 / 12, 1 / 12))
        build.joint(f"pin{k}", "revolute", f"upright{k - 1}", f"top{k}", (0, 1, 0), active=False)
        build.loop(f"loop{k}", "revolute", f"upright{k}", f"top{k}", (0, 1, 0), (1, 0, 0))
    return build.model()


def pendulum(times: np.ndarray) -> np.ndarray:
    """The angle of the uprights from where they stand, if all turn alike."""
    inertia, moment = (LOOPS + 1) / 3 + LOOPS, 9.81 * ((LOOPS + 1) / 2 + LOOPS)
    found = solve_ivp(lambda t, y: [y[1], moment / inertia * np.sin(y[0])], (0, times[-1]), [0, RATE], "DOP853", times,
                      rtol=1e-12, atol=1e-12)  # fmt: skip
    return found.y[0]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = chain(LOOPS)
    turning = [joint.name.startswith("base") for joint in model.mechanism.joints]
    v = np.where(turning, RATE, -RATE)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        motion = pb.simulate(model, SECONDS, None, v, method="rk4", dt=5e-3, sample=0.02)
    for warning in told:
        print(f"warning: {warning.message}")
    audit, angles = motion.audit, motion.q[:, np.flatnonzero(turning)]
    off = np.abs(angles - pendulum(motion.t)[:, None]).max()
    print(f"{LOOPS} loops, {SECONDS:g} s: {audit.singular_passages} singular positions passed, loops closed to "
          f"{audit.loop_error:.1e} m, energy to {audit.energy_error_relative:.1e}, angles to {off:.1e} rad")
    assert motion.stopped is None
    assert off < 1e-3
    draw(folder / "four-bar-chain.png", motion.t, angles)


def draw(path: Path, t: np.ndarray, angles: np.ndarray) -> None:
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5), height_ratios=(1, 2.2), layout="constrained")
    for shade, moment in zip(("C0", "C1", "C3"), (0.0, 0.9, 1.1), strict=True):
        k = int(np.argmin(np.abs(t - moment)))
        feet = np.arange(LOOPS + 1.0)
        tips = feet - np.sin(angles[k]), np.cos(angles[k])
        above.plot(*tips, color=shade, lw=1.5, label=f"t = {t[k]:.1f} s")
        above.plot(np.stack([feet, tips[0]]), np.stack([0 * feet, tips[1]]), color=shade, lw=1)
    above.set(aspect="equal", title=f"{LOOPS} four-bars", xlabel="m", ylabel="m")
    above.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.85, 1.0), frameon=False, fontsize=8)
    below.plot(t, angles, lw=1)
    for turn in np.arange(np.floor(angles.min() / np.pi), 0):
        below.axhline((turn + 0.5) * np.pi, color="k", lw=0.5, ls=":")
    below.set(title="angles of all uprights; dotted: all bars in line", xlabel="t, s", ylabel="rad")
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs"))
