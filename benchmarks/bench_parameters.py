"""Inverse dynamics with every state's own parameters, against one set for all and against constants in the code; runs
with many sets of parameters side by side, against one after another; and sensitivities of a run.

    python benchmarks/bench_parameters.py [states] [threads]
"""

from __future__ import annotations

import sys

import numpy as np
from rivals import best, robot

import polybody as pb


def row(name: str, model: pb.Model, patterns: tuple[str, ...], states: int) -> None:
    rng = np.random.default_rng(0)
    variant = model.with_parameters(*patterns)
    q = model.random_configuration(rng, size=states)
    v, a = rng.normal(size=(2, states, model.nv))
    one = variant.parameters.nominal
    own = one * rng.uniform(0.95, 1.05, size=(states, 1))
    out = np.empty((states, model.nv))
    folded = best(lambda: model.inverse_dynamics(q, v, a, out=out))
    shared = best(lambda: variant.inverse_dynamics(q, v, a, parameters=one, out=out))
    each = best(lambda: variant.inverse_dynamics(q, v, a, parameters=own, out=out))
    scale = 1e9 / states
    print(f"{name:44} {len(one):5} {folded * scale:9.1f} {shared * scale:9.1f} {each * scale:9.1f} "
          f"{each / shared:7.2f} {each / folded:7.2f}")  # fmt: skip


def runs(count: int) -> None:
    """400 runs of a Puma with other payloads over 0.5 s, rk4 in steps of 1 ms under PD with gravity compensation."""
    arm = pb.load("puma560").with_payload("link6", 2.0, com=(0, 0, 0.05), inertia=(0.01, 0.01, 0.01))
    variant = arm.with_parameters("payload.mass", "payload.com")
    p = variant.parameters.values({"payload.mass": np.random.default_rng(0).uniform(0.5, 4.0, size=count)})
    q, law = np.full(6, 0.3), pb.PD(variant, np.zeros(6), kp=400.0, kd=40.0, gravity=True)
    options = {"sample": 0.05, "method": "rk4"}
    lanes = best(lambda: pb.simulate(variant, 0.5, q, None, law, parameters=p, **options))
    alone = best(lambda: [pb.simulate(variant, 0.5, q, None, law, parameters=x, **options) for x in p[:20]])
    print(f"runs of a Puma, ms each: side by side {lanes / count * 1e3:.2f}, one after another {alone / 20 * 1e3:.2f}")
    run = pb.simulate(variant, 0.5, q, None, law, sample=0.05)
    for method in ("dop853", "rk4"):
        taken = best(lambda method=method: pb.sensitivities(run, law, method=method))
        print(f"sensitivities of such a run by 4 parameters, {method}: {taken * 1e3:.1f} ms")


def main() -> None:
    states = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    ur5, panda, g1 = (robot(name)[0] for name in ("UR5", "Panda", "G1"))
    payload = ("payload.mass", "payload.com", "payload.inertia")
    print(f"inverse dynamics, {states} states, {threads} thread(s), ns per state")
    print(f"{'':44} {'k':>5} {'constants':>9} {'one set':>9} {'own sets':>9} {'own/one':>7} {'own/const':>7}")
    with pb.threads(threads):
        row("UR5, payload", ur5.with_payload("tool0", 2.0, (0, 0, 0.05), (0.01, 0.01, 0.01)), payload, states)
        row("Panda, masses", panda, ("*.mass",), states)
        row("Panda, masses, mass centres, inertias", panda, ("*.mass", "*.com", "*.inertia"), states)
        row("G1, masses and mass centres", g1, ("*_link.mass", "*_link.com"), states)
        row("Panda, payload", panda.with_payload(panda.frame_names[-1], 2.0, (0, 0, 0.05), (0.01, 0.01, 0.01)),
            payload, states)  # fmt: skip
        runs(400)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
