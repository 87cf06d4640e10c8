"""Sensitivities of a run compared with Richardson's differences of `pb.simulate`."""

from __future__ import annotations

from typing import Any

import numpy as np

import polybody as pb

TIGHT = {"rtol": 1e-11, "atol": 1e-13}


def started(variant: pb.Model, p: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[pb.Model, np.ndarray, np.ndarray]:
    """The model at p with the independent coordinates and velocities of a state; the others follow."""
    own = variant.parameters.at(p)
    if not own.mechanism.constrained:
        return own, q, v
    closed = own.constraints.assemble_dependent(q, own.constraints.independent)
    u = v[list(own.constraints.indices(own.constraints.independent))]
    return own, closed, own.constraints.joint_motion(closed, u)


def differences(variant: pb.Model, law: Any, q: Any, v: Any, duration: float, **options: Any) -> np.ndarray:
    """∂[q; v]/∂p at the end of a run, (nq + nv, k), by differences of orders h² and h⁴."""
    p, columns = variant.parameters.nominal, []
    for k in range(len(p)):
        found = []
        for h in (1e-4 * max(abs(p[k]), 1e-2), 0.5e-4 * max(abs(p[k]), 1e-2)):
            ends = []
            for sign in (1, -1):
                own, q0, v0 = started(variant, p + sign * h * np.eye(len(p))[k], q, v)
                run = pb.simulate(own, duration, q0, v0, law, times=[duration], **options)
                ends.append(np.concatenate([run.q[-1], run.v[-1]]))
            found.append((ends[0] - ends[1]) / (2 * h))
        columns.append((4 * found[1] - found[0]) / 3)
    return np.array(columns).T


def compared(
    variant: pb.Model, law: Any, q: np.ndarray, v: np.ndarray, duration: float, tolerance: float, **options: Any
) -> Any:
    """The sensitivities of a run, after they have been compared with differences at its end."""
    q, v = started(variant, variant.parameters.nominal, q, v)[1:]
    run = pb.simulate(variant, duration, q, v, law, sample=duration / 2, **options)
    again = {key: options[key] for key in ("wrenches", "voltages", "events") if key in options}
    found = pb.sensitivities(run, law, **again)
    np.testing.assert_allclose(found.q, run.q, atol=1e-7)
    wanted = differences(variant, law, q, v, duration, **options)
    mine = np.concatenate([found.q_p[-1], found.v_p[-1]])
    scale = 1e-3 + np.abs(wanted).max(axis=0)
    assert (np.abs(mine - wanted).max(axis=0) / scale).max() < tolerance
    return found
