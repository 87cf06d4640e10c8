"""`pb.identify`: parameters of a model from recordings of its motion.

    1  recordings become states at even spacing (`signals`), once, with one cut-off for all
    2  A x = b: base parameters of bodies, and terms of driven joints (`problem`); A filtered like b, and thinned
    3  which terms the joints have, and how wide friction's step is, by cross-validation over stretches of the recording
    4  least squares, robust (`least_squares`); `load` friction needs the bodies' own forces, so 2 to 4 are repeated
    5  the physically consistent parameters nearest to that (`consistent`)
    6  prediction of every recording
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.formulations.denoc import body_parameters
from polybody.identification.consistent import consistent_parameters
from polybody.identification.joint_terms import ALL, MORE, PLAIN, Speeds, top_speeds
from polybody.identification.least_squares import METHODS, Fit, solve
from polybody.identification.mistaken import SUSPECT, mistaken
from polybody.identification.problem import Problem, Rows, bare, make_problem
from polybody.identification.recording import recordings
from polybody.identification.recording_checks import check_scale
from polybody.identification.result import Identification, predict
from polybody.identification.row_space import reach
from polybody.identification.semidefinite import is_consistent
from polybody.identification.signals import States, states_of
from polybody.model.arguments import positive
from polybody.model.model import Model
from polybody.names import listed, nearest

Array = np.ndarray

#: widths of friction's step and of the Stribeck curve, in parts of the top speed
WIDTHS, STRIBECK = (0.005, 0.01, 0.02, 0.04), 0.15
#: a term is taken where it lowers the cross-validated error by this part
GAIN = 0.01
FOLDS = 5
#: a joint slower than this part of its top speed stands still
STILL = 2e-3
#: a part of the forces that is reported where it is left unexplained
UNEXPLAINED = 0.3
#: rounds in which load-dependent friction follows the estimate
ROUNDS = 4


def identify(
    model: Model,
    data: Any,
    *,
    validate: Any = None,
    terms: str | Sequence[str] = "auto",
    drive_gains: Sequence[float] | None = None,
    method: str = "reweighted",
    consistent: bool = True,
    prior: float = 1e-4,
    cutoff: float | None = None,
    rate: float | None = None,
    units: Mapping[str, str] | None = None,
) -> Identification:
    """Identify inertial and joint parameters of a model from recorded motions.

    `data` and `validate` are recordings or lists of recordings: .csv or .parquet files (columns t, q1 …, v1 …, tau1 …
    or i1 …, or by joint names), mappings of arrays t, q, v (optional), tau or i, or runs of `pb.simulate`.
    `drive_gains` convert currents to joint forces. `terms` are the joint terms in addition to the bodies: armature,
    viscous, coulomb, offset, quadratic, stribeck, load; "auto" uses the first four and selects among the others by
    cross-validation. `method` is "ordinary", "weighted" or "reweighted" least squares. `consistent` restricts all
    bodies to physically consistent masses and inertias, with the model's own values as a prior of weight `prior` where
    the data are not informative. `cutoff` (Hz; inf for no filter) and `rate` (Hz) are chosen from the data by default,
    and reported in the result. `units` are those of t, q, v, tau and i where they are not those of SI, such as
    {"t": "ms", "q": "deg", "tau": "mN·m"}; headers may carry them too: `t [ms]`.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; expected {', '.join(map(repr, METHODS))}")
    cutoff = None if cutoff is None else positive("cutoff", cutoff, infinite=True)
    rate = None if rate is None else positive("rate", rate)
    if not (np.isfinite(prior) and prior >= 0):
        raise InputError(f"prior is {prior:g}; expected a finite number that is not negative")
    subject = bare(model)
    train = recordings(model, data, drive_gains=drive_gains, units=units)
    if not train:
        raise InputError("no recording; expected a file, a mapping of arrays, or a list of them")
    if not any(x.tau.any() for x in train):
        raise InputError(f"{train[0].source}: all joint forces are zero; parameters show in forces only")
    first = states_of(subject, train[0], cutoff, rate)
    cut, frequency = first.cutoff, first.rate if rate is None else rate
    states = [first, *(states_of(subject, x, cut, frequency) for x in train[1:])]
    kept = recordings(model, validate, drive_gains=drive_gains, units=units)
    held = [states_of(subject, x, cut, frequency) for x in kept]
    speeds = top_speeds(np.concatenate([s.v for s in states]))
    asked = _asked(terms)
    problem = make_problem(subject, PLAIN if asked is None else asked, _speeds(speeds, WIDTHS[1]))
    rows = [problem.rows(s) for s in states]
    _compare(problem, rows, model)
    problem = _chosen(problem, rows, asked, speeds)
    fit = _fitted(problem, rows, method)
    estimate, p = fit.x, _least_change(problem, fit.x, model)
    if consistent:
        p = _consistent(problem, fit, model, prior)
        estimate = problem.matrix @ p
        if "load" in problem.terms:  # friction in proportion to the consistent bodies' forces
            for _ in range(2):
                fit = _fitted(problem, rows, method, start=estimate, rounds=1)
                p = _consistent(problem, fit, model, prior)
                estimate = problem.matrix @ p
    choices = {
        "cutoff_hz": cut, "rate_hz": frequency, "filter": "Butterworth, order 4, forwards and backwards",
        "thinned_to_hz": frequency / _step(first), "method": method, "prior": prior if consistent else None,
        "friction_width": float(problem.speeds.regularisation[0] / speeds[0]),
        "samples": int(sum(len(s.t) for s in states)), "dropped_rows": int(sum(x.dropped for x in train)),
        "velocities": "measured" if train[0].v is not None else "differences of positions",
    }  # fmt: skip
    found = Identification(
        problem=problem, base=fit.x, deviations=np.sqrt(np.maximum(np.diag(fit.covariance), 0.0)), estimate=estimate,
        parameters=dict(zip(problem.names, map(float, p), strict=True)),
        consistent=is_consistent(p[: 10 * len(model.mechanism.bodies)]), condition=fit.condition,
        training=tuple(predict(problem, estimate, s) for s in states),
        validation=tuple(predict(problem, estimate, s) for s in held), choices=choices, original=model,
    )  # fmt: skip
    if found.training_error > SUSPECT and (text := mistaken(problem, states)):
        warn(f"{first.source}: {text}; check the order, signs and units of columns")
    if found.training_error > UNEXPLAINED:
        warn(f"the identified model leaves {found.training_error:.0%} of the joint forces unexplained; check the order "
             "of columns, units, signs and times, and that the model's kinematics are those of the machine")
    return found


def _compare(problem: Problem, rows: Sequence[Rows], model: Model) -> None:
    """Measured forces beside those of the model's own bodies."""
    x = problem.matrix @ _prior(problem, model)
    for r in rows:
        check_scale(r.b, r.bodies @ x[: r.bodies.shape[-1]], r.states.source)


def _step(states: States) -> int:
    """Of how many samples one is kept: neighbours within the filter's bandwidth say the same."""
    return 1 if not np.isfinite(states.cutoff) else max(1, int(states.rate / (2.5 * states.cutoff)))


def _thinned(problem: Problem, rows: Rows, load: Array) -> tuple[Array, Array]:
    """(A, b) of a recording: filtered, without its ends, thinned."""
    A = rows.states.filtered(problem.columns(rows, load))
    inner, step = rows.states.inner, _step(rows.states)
    A, b, still = A[inner][::step], rows.b[inner][::step], _sticking(problem, rows)[inner][::step]
    return np.where(still[..., None], 0.0, A), np.where(still, 0.0, b)


def _sticking(problem: Problem, rows: Rows) -> Array:
    """(N, m): joints that stand still in a recording that moves them: stiction may be anything below Coulomb's."""
    none = np.zeros(rows.b.shape, dtype=bool)
    if rows.G is not None or "coulomb" not in problem.terms:
        return none
    slow = np.abs(rows.states.v) < STILL * problem.speeds.stribeck / STRIBECK
    standing = slow & np.roll(slow, 1, axis=0) & np.roll(slow, -1, axis=0)  # not a mere change of direction
    none[:, list(problem.joints)] = standing[:, list(problem.joints)]
    return none & (np.mean(standing, axis=0) < 0.7)


def stacked_rows(problem: Problem, rows: Sequence[Rows], loads: Sequence[Array]) -> tuple[Array, Array]:
    parts = [_thinned(problem, r, load) for r, load in zip(rows, loads, strict=True)]
    return np.concatenate([A for A, _ in parts]), np.concatenate([b for _, b in parts])


def _fitted(
    problem: Problem, rows: Sequence[Rows], method: str, *, start: Array | None = None, rounds: int = ROUNDS
) -> Fit:
    """The fit of all recordings; where friction depends on the load, repeated until the load is the estimate's."""
    loads = [r.states.tau if start is None else problem.load(r, start) for r in rows]
    fit = solve(*stacked_rows(problem, rows, loads), method)
    for _ in range(rounds - 1 if "load" in problem.terms else 0):
        loads = [problem.load(r, fit.x) for r in rows]
        fit = solve(*stacked_rows(problem, rows, loads), method)
    return fit


# Which terms.


def _asked(terms: str | Sequence[str]) -> tuple[str, ...] | None:
    """The terms that were asked for, in order; None for those that the data should choose."""
    if terms == "auto":
        return None
    given = [x for x in terms.split("+") if x] if isinstance(terms, str) else list(terms)
    for x in given:
        if x not in ALL:
            raise InputError(f"no joint term {x!r}{nearest(str(x), ALL)}; available: {listed(ALL)}")
    return tuple(t for t in ALL if t in given)


def _speeds(top: Array, width: float) -> Speeds:
    return Speeds(width * top, STRIBECK * top)


def _chosen(problem: Problem, rows: Sequence[Rows], asked: tuple[str, ...] | None, top: Array) -> Problem:
    """The problem with terms (where none are asked for) and the width of friction's step by cross-validation."""
    if asked is not None and not {"coulomb", "stribeck", "load"} & set(asked):
        return problem
    problem, error = _best_width(problem, rows, top)
    left: list[str] = list(MORE) if asked is None else []
    while left:
        trials = {t: replace(problem, terms=(*problem.terms, t)) for t in left}
        errors = {t: _cross_validated(trial, rows) for t, trial in trials.items()}
        best = min(errors, key=lambda t: errors[t])
        if errors[best] > (1 - GAIN) * error:
            break
        problem, error = trials[best], errors[best]
        left.remove(best)
    problem = replace(problem, terms=tuple(t for t in ALL if t in problem.terms))
    return _best_width(problem, rows, top)[0] if problem.more else problem


def _best_width(problem: Problem, rows: Sequence[Rows], top: Array) -> tuple[Problem, float]:
    trials = [replace(problem, speeds=_speeds(top, w)) for w in WIDTHS]
    errors = [_cross_validated(trial, rows) for trial in trials]
    return trials[int(np.argmin(errors))], min(errors)


def _cross_validated(problem: Problem, rows: Sequence[Rows]) -> float:
    """The error at stretches of the recordings that were left out of the fit."""
    loads = [r.states.tau for r in rows]
    A, b = stacked_rows(problem, rows, loads)
    if "load" in problem.terms:
        x = solve(A, b, "weighted").x
        A, b = stacked_rows(problem, rows, [problem.load(r, x) for r in rows])
    left = 0.0
    for out in np.array_split(np.arange(len(A)), FOLDS):
        inside = np.setdiff1d(np.arange(len(A)), out)
        x = solve(A[inside], b[inside], "weighted").x
        left += float(np.sum((b[out] - A[out] @ x) ** 2))
    return float(np.sqrt(left / np.sum(b**2)))


# All parameters.


def _prior(problem: Problem, model: Model) -> Array:
    return np.concatenate([body_parameters(model.mechanism), np.zeros(len(problem.names) - 10 * len(model.body_names))])


def _least_change(problem: Problem, x: Array, model: Model) -> Array:
    """All parameters with these base parameters that differ least from the model's own."""
    p, K = _prior(problem, model), problem.matrix
    return p + np.linalg.lstsq(K, x - K @ p, rcond=None)[0]


def _consistent(problem: Problem, fit: Fit, model: Model, weight: float) -> Array:
    bodies, prior = len(model.mechanism.bodies), _prior(problem, model)
    return consistent_parameters(fit, problem.matrix, problem.names, prior, bodies, reach(model.mechanism), weight)


__all__ = ["identify", "stacked_rows"]
