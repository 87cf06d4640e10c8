"""Impacts, rest, sticking and slipping of closed loops, and friction by load, decided in compiled loops: as in Python,
and as derived by hand."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from decided_events import assert_same_events, both, told
from event_cases import CASES, five_bar, four_bar_at_stops, four_bar_by_load, four_bar_with_both, rubbing
from scipy.integrate import quad
from scipy.optimize import brentq, lsq_linear

import polybody as pb
from polybody.simulation.bounds import bounded

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
OTHERS = ("four-bar at stops", "four-bar with both", "arm by load")
RUNS = [(name, method) for name in CASES for method in ("rk4", "dop853")]
RUNS += [(name, method) for name in OTHERS for method in ("radau", "semi-implicit")] + [("arm by load", "midpoint")]


@pytest.mark.parametrize(("name", "method"), RUNS)
def test_compiled_decisions_are_those_of_python(name: str, method: str, monkeypatch: Any) -> None:
    model, seconds, q, v, options = CASES[name]()
    options["sample"] = seconds / 50 if method in ("dop853", "radau") else None
    law = options.pop("controller", None)
    options |= {} if law is None else {"controller": lambda: deepcopy(law)}
    slow, fast, counts = both(monkeypatch, model, seconds, q, v, method=method, **options)
    assert counts[1] <= 2 < counts[0]  # the first of a run, and perhaps one while code is made
    assert len(told(fast)) >= 2
    assert_same_events(fast, slow, 1e-6 if method in ("dop853", "radau") else 1e-7)
    assert fast.audit.trusted == (method != "semi-implicit")
    if model.mechanism.constrained:
        assert np.abs([model.constraints.residual(at) for at in fast.q]).max() < 1e-11


R, L, INERTIA, MASS, LIMIT, E = 0.3, 1.0, 0.05, 0.4, 1.1, 0.8


def slider(angle: float) -> tuple[float, float]:
    """x and dx/dangle of a slider-crank."""
    s, c = np.sin(angle), np.cos(angle)
    w = np.sqrt(L**2 - (R * s) ** 2)
    return R * c + w, -R * s - R**2 * s * c / w


@pytest.mark.parametrize("method", ["rk4", "dop853", "radau"])
def test_slider_crank_onto_a_stop_has_the_impulses_and_times_of_its_one_equation(method: str, monkeypatch: Any) -> None:
    """No gravity: I(θ) θ̇² is constant between hits, I = J + m x'², and a hit makes −e θ̇ of θ̇. The slider's impulse is
    (1 + e) I |θ̇|/|x'|, and the crank goes round from one side of the stop to the other."""
    build = pb.Builder("slider-crank", gravity=(0, 0, 0))
    build.body("crank", 1.0, inertia=(INERTIA, INERTIA, INERTIA))
    build.body("slider", MASS, inertia=(0.01, 0.01, 0.01))
    build.joint("turn", "revolute", "world", "crank")
    build.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0), limits=(0.0, LIMIT))
    build.rod("rod", "crank", (R, 0, 0), "slider", (0, 0, 0), L)
    model, start, speed = build.model(), 2.0, -8.0
    x, first = slider(start)
    given = [start, x], [speed, first * speed]
    slow, run, counts = both(monkeypatch, model, 3.0, *given, method=method, restitution=E, rtol=1e-10, atol=1e-12,
                             dt=5e-4)  # fmt: skip
    assert told(run) == told(slow)
    assert counts[1] <= 2

    inertia = lambda angle: INERTIA + MASS * slider(angle)[1] ** 2  # noqa: E731
    stop = brentq(lambda angle: slider(angle)[0] - LIMIT, 0.1, 3.0)
    energy = 0.5 * inertia(start) * speed**2
    seconds = lambda a, b: quad(lambda angle: np.sqrt(inertia(angle)), a, b, epsabs=1e-13)[0]  # noqa: E731
    time, way = seconds(stop, start) / np.sqrt(2 * energy), seconds(stop, 2 * np.pi - stop)
    per_speed = (1 + E) * np.sqrt(2 * inertia(stop)) / abs(slider(stop)[1])
    hits = [x for x in run.happenings if x.detail.startswith("hit")]
    assert len(hits) >= 4
    for hit in hits:
        impulse = float(hit.detail.split("impulse ")[1].split(",")[0])
        assert hit.time == pytest.approx(time, abs=1e-8)
        assert impulse == pytest.approx(per_speed * np.sqrt(energy), rel=1e-5)
        energy *= E**2
        time += way / np.sqrt(2 * energy)
    lost = 0.5 * inertia(start) * speed**2 * (E ** (2 * len(hits)) - 1)
    assert run.work[-1] == pytest.approx(lost, rel=1e-9)
    assert run.audit.trusted


def test_a_hit_takes_the_energy_of_its_impulse_from_a_mechanism_with_two_motions(monkeypatch: Any) -> None:
    """One stop at a time: after = before − ½ (1 − e) λ |u|, λ the impulse, u the speed of the hit."""
    model, e = five_bar(p={"limits": (1.8, 2.3)}), 0.7
    q = model.assemble([2.09152089, -1.20521338, 1.17176001, 1.13526421])
    _, run, counts = both(monkeypatch, model, 1.5, q, restitution=e, sample=0.05)
    words = [x.detail.split() for x in run.happenings]
    hits = [(abs(float(w[2].strip(","))), float(w[4].strip(","))) for w in words if w[0] == "hit"]
    assert len(hits) >= 3
    assert counts[1] <= 2
    assert run.work[-1] == pytest.approx(-0.5 * (1 - e) * sum(u * impulse for u, impulse in hits), rel=1e-5)
    energy = [sum(model.energy(*state)) for state in zip(run.q, run.v, strict=True)]
    np.testing.assert_allclose(energy - run.work, energy[0], atol=1e-6)


@pytest.mark.parametrize("make", [four_bar_with_both, four_bar_by_load])
def test_joints_that_cannot_slide_because_others_are_held_have_no_events_of_their_own(make: Any) -> None:
    """The crank rests at its stop, the rocker's friction is at its bound: rounding of its speed is no motion."""
    model, _, q, v, options = make()
    run = pb.simulate(model, 2.5, q, v, method="rk4", **options)
    rests = [x for x in run.happenings if x.detail.endswith("rests")]
    assert rests
    assert len(run.happenings) < 30
    assert run.audit.trusted


@pytest.mark.parametrize("dt", [2e-3, 1e-3])
def test_rebounds_shorter_than_a_quarter_of_a_step_are_seen_with_loops(dt: float) -> None:
    """Joints are put exactly at their limits by a hit: from a little beyond them, no return would cross zero."""
    model, seconds, q, v, options = CASES["3-RRR"]()
    run = pb.simulate(model, seconds, q, v, method="rk4", dt=dt, **options)
    assert run.audit.trusted, run.audit.doubts
    limits = model.joint_limits()
    assert (run.q <= limits["upper"] + 1e-6).all()
    assert (run.q >= limits["lower"] - 1e-6).all()


def test_parameters_of_a_loop_reach_its_decisions(monkeypatch: Any) -> None:
    model, seconds, q, v, options = four_bar_at_stops()
    varied = model.with_parameters("rocker.mass")
    heavy = 3.0 * varied.parameters.nominal
    slow, fast, _ = both(monkeypatch, varied, seconds, q, v, parameters=heavy, sample=0.05, **options)
    other, _, _ = both(monkeypatch, model, seconds, q, v, sample=0.05, **options)
    assert_same_events(fast, slow)
    assert fast.happenings[-1].detail != other.happenings[-1].detail


@pytest.mark.parametrize("seed", range(4))
def test_friction_by_load_of_random_trees_is_decided_as_in_python(seed: int, monkeypatch: Any) -> None:
    rng = np.random.default_rng(seed)
    build = pb.Builder("tree", gravity=tuple(6 * rng.normal(size=3)))
    names = ["world"]
    for k in range(4):
        build.body(f"body{k}", float(rng.uniform(0.3, 2)), tuple(0.2 * rng.normal(size=3)), (0.05, 0.05, 0.06))
        more: dict[str, Any] = rubbing(0.2, 0.4, load=float(rng.uniform(0.005, 0.03))) if k != 2 else {}
        more |= {"limits": (-float(rng.uniform(0.2, 1.5)), float(rng.uniform(0.2, 1.5)))} if k != 1 else {}
        axis, place = rng.normal(size=3), tuple(0.3 * rng.normal(size=3)) if k else (0, 0, 0)
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        build.joint(f"joint{k}", kind, names[-1], f"body{k}", place, axis=tuple(axis / np.linalg.norm(axis)), **more)
        names.append(f"body{k}")
    model = build.model()
    state = rng.uniform(-0.15, 0.15, 4), 2 * rng.normal(size=4)
    slow, fast, counts = both(monkeypatch, model, 0.8, *state, sample=0.02, restitution=0.3 * (seed % 3))
    assert counts[1] < max(counts[0], 2)
    assert_same_events(fast, slow, 1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_forces_of_dependent_rows_are_the_least_that_do_what_others_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, rank = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    N = rng.normal(size=(count, rank))
    c, level = rng.normal(size=rank), rng.uniform(0.1, 1.5, count)
    low, high = (np.zeros(count), np.full(count, np.inf)) if seed % 2 else (-level, level)
    found = bounded(N, N @ c, low, high)
    other = lsq_linear(N.T, -c, (low, high), method="bvls", tol=1e-14).x
    assert (found >= low).all()
    assert (found <= high).all()
    np.testing.assert_allclose(N.T @ found, N.T @ other, atol=1e-9)
    assert np.linalg.norm(found) <= np.linalg.norm(other) * (1 + 1e-6) + 1e-9
