"""From a run, complete or not, to its trajectory: the states kept, and how far they can be trusted."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import warn
from polybody.mechanism.saturation import drive_limits
from polybody.model.tree_engine import sparing
from polybody.simulation.audit import (
    Audit,
    allowed_energy,
    doubts_about,
    energy_balance,
    kept_momentum,
    limit_excess,
    momentum_applies,
    stays,
    time_error,
)
from polybody.simulation.extremes import extremes
from polybody.simulation.saturation import Saturation, saturations
from polybody.simulation.trajectory import Trajectory

if TYPE_CHECKING:
    from polybody.simulation.run import Run

Array = np.ndarray


def trajectory_of(run: Run, said: dict[str, Any], stopped: str | None, clock: float) -> Trajectory:
    """What a run has computed so far, with its energy audit; `clock` is when it began."""
    model, problem = run.problem.model, run.problem
    rows = run.record.all()
    t, y, tau = rows.t, rows.y, rows.tau
    q, v = y[:, : problem.nq].copy(), y[:, problem.nq : problem.nq + problem.nv].copy()  # as kernels take them
    work = y[:, -1].copy()
    seconds = time.perf_counter() - clock
    note = momentum_applies(model, lambda: bool(problem.wrenches) or _base_driven(run, tau))
    with nullcontext() if problem.loops else sparing():
        momentum, (kinetic, potential) = (None, model.energy(q, v)) if note else kept_momentum(model, t, q, v)
    reached = extremes(y, kinetic, potential)
    error, relative = energy_balance(reached)
    relative = 0.0 if stays(reached, problem.nq, problem.nv) else relative
    allowed = allowed_energy(run.method.adaptive, run.options.rtol, run.options.atol, run.steps)
    excess, passed = (None, "") if run.switches.limits != "stop" else limit_excess(run.switches.stops, reached)
    audit = Audit(
        method=run.method.name,
        steps=run.steps,
        rejected=run.rejected if run.rejected_known else None,
        evaluations=problem.evaluations,
        energy_error=error,
        energy_error_relative=relative,
        energy_allowed_relative=allowed,
        momentum_note=note,
        quaternion_error=run.off_manifold if problem.curved else None,
        seconds=seconds,
        limit_excess=excess,
        loop_error=float(np.abs(model.constraints.residual(q)).max(initial=0.0)) if problem.loops else None,
        loop_drift=problem.off_loops if problem.loops else None,
        singular_evaluations=problem.singular,
        singular_passages=problem.passed,
        path=run.path,
        saturation=_saturation(run, t, v, tau),
        inside_error=run.left_out * run.options.rtol,
        time_error=time_error(float(t[-1]), reached, problem.nq, problem.nv),
        momentum=momentum,
    )
    if problem.singular or problem.passed:
        warn(
            f"the motion went near singular configurations of its loops ({problem.singular} evaluations, "
            f"{problem.passed} passed): the branch it took there is one of several, and loads are large"
        )
    early = None if run.switches.ended_on_purpose else stopped
    doubts = doubts_about(audit, early, f"the {passed}", run.options.rtol)
    if doubts:
        audit = replace(audit, trusted=False, doubts=doubts)
    happenings = list(run.switches.happenings)
    currents = rows.currents if problem.circuits.closed else None
    told = (audit, said, happenings, stopped, run.pieces, currents)
    return Trajectory(problem.given, t, q, v, rows.a, tau, work, *told)


def _saturation(run: Run, t: Array, v: Array, tau: Array) -> tuple[Saturation, ...]:
    m, word = run.problem.whole.mechanism, run.problem.efforts
    if word == "ignore" or run.problem.controller is None:
        return ()
    return saturations(m, drive_limits(m), t, v, tau, bounded=word == "saturate")


def _base_driven(run: Run, tau: Array) -> bool:
    roots = [j.v for j in run.problem.model.mechanism.joints if j.parent < 0] if tau.any() else []
    return any(tau[:, part].any() for part in roots)


__all__ = ["trajectory_of"]
