"""The regressor of inverse dynamics over a batch, against Pinocchio's `computeJointTorqueRegressor` state by state.

    python benchmarks/bench_regressor.py
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from rivals import best, robot

import polybody as pb

STATES = 4096
ROBOTS = ("UR5", "Panda", "G1")


def main() -> None:
    print(f"{STATES} states, one thread, ns a state")
    print(f"{'robot':8}{'nv':>4}{'ours':>10}{'nonzeros':>10}{'Pinocchio':>11}{'ratio':>8}")
    for name in ROBOTS:
        model, theirs = robot(name, couplings=False)
        data, rng = theirs.createData(), np.random.default_rng(0)
        q, (v, a) = model.random_configuration(rng, STATES), rng.normal(size=(2, STATES, model.nv))
        Q = [pin.randomConfiguration(theirs, -np.ones(theirs.nq), np.ones(theirs.nq)) for _ in range(STATES)]
        states = list(zip(Q, v, a, strict=True))

        def by_pinocchio(model: object = theirs, data: object = data, states: list = states) -> None:
            for state in states:
                pin.computeJointTorqueRegressor(model, data, *state)

        with pb.threads(1):
            ours = best(lambda: model.regressor(q, v, a)) / STATES * 1e9  # noqa: B023 - called at once
            few = best(lambda: model.regressor.nonzeros(q, v, a)) / STATES * 1e9  # noqa: B023
        rival = best(by_pinocchio) / STATES * 1e9
        print(f"{name:8}{model.nv:4}{ours:10.0f}{few:10.0f}{rival:11.0f}{rival / ours:8.1f}")


if __name__ == "__main__":
    main()
