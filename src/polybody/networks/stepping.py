"""Steps of a network in one combination of modes, by method: each yields accepted steps with an interpolant.

dop853 (explicit, order 8); radau (implicit, order 5, exact Jacobian) by SciPy; rk4 with fixed steps, compiled as a loop
where no input is a Python function; idas by SUNDIALS on the index-one equations as they stand, differential and
algebraic, without solving blocks: a route of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.interrupts import imported
from polybody.networks.system import System
from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Options, fixed_times
from polybody.simulation.integrators.dop853 import Steps
from polybody.simulation.moments import moment

Array = np.ndarray
CHUNK = 1024  # fixed steps in one call


@dataclass
class Advance:
    """One accepted step; `dense()` gives the interpolant, asked before the next step is."""

    t0: float
    t1: float
    y0: Array
    y1: Array
    dense: Callable[[], Callable[[float], Array]]
    count: int = 1  # the method's own steps that it stands for


def steps(method: str, system: System, t: float, y: Array, end: float, options: Options) -> Iterator[Advance]:
    """The steps of a method from (t, y)."""
    if method not in METHODS:
        raise InputError(f"no integration method {method!r} for networks; available: {', '.join(METHODS)}")
    return METHODS[method](system, t, y, end, options)


def _adaptive(kind: str, system: System, t: float, y: Array, end: float, options: Options) -> Iterator[Advance]:
    if kind == "Radau":
        imported("scipy.integrate")
        from scipy import integrate

        make: Any = integrate.Radau
        bound = "t_bound"
    else:
        make, bound = Steps, "end"
    atol = np.full(len(y), options.atol)
    atol[-1] = np.inf  # the energy that left is there to be audited

    failure: list[BlowUp] = []
    system.rate(t, y)  # what fails here fails without a step

    def rate(t: float, y: Array) -> Array:
        """Not a number where the equations have no solution: the solver then tries a smaller step."""
        try:
            found = system.rate(t, y)
        except BlowUp as reason:
            failure[:] = [reason]
            return np.full(len(y), np.nan)
        if not np.isfinite(found).all():
            failure[:] = [BlowUp("values are not finite")]
        return found

    more: dict[str, Any] = {"jac": system.jacobian} if kind == "Radau" else {}
    first = None if options.first_step is None else min(options.first_step, end - t)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        solver: Any = make(rate, t, y, end, rtol=options.rtol, atol=atol, max_step=options.max_step, first_step=first,
                           **more)  # fmt: skip
        marks = [s for s in options.times if t + moment(t) < s < end] + [end]
        while marks:
            # Steps end at the wanted times: interpolants of large steps have errors that nothing controls.
            if solver.t >= marks[0]:
                marks.pop(0)
                continue
            setattr(solver, bound, marks[0])
            solver.status = "running"
            t0, y0 = solver.t, solver.y
            message = solver.step()
            if solver.status == "failed":
                raise failure[0] if failure else BlowUp(message or "the step became too small")
            failure.clear()
            if kind == "Radau":  # Newton's iterations end without regard to W
                solver.y[-1] = y0[-1] + _quadrature(system, solver.dense_output(), t0, solver.t)
            moved = system.project(solver.y)
            if moved is not solver.y:
                solver.y = moved
                solver.f = rate(solver.t, moved)
            yield Advance(t0, solver.t, y0, solver.y, solver.dense_output)


def _quadrature(system: System, dense: Callable[[float], Array], t0: float, t1: float) -> float:
    """∫ Ẇ dt along an interpolant, by Gauss' rule."""
    x, weights = np.polynomial.legendre.leggauss(4)
    h = t1 - t0
    return h / 2 * sum(w * system.rate(t0 + h * (s + 1) / 2, dense(t0 + h * (s + 1) / 2))[-1]
                       for s, w in zip(x, weights, strict=True))  # fmt: skip


def _hermite(system: System, t0: float, t1: float, y0: Array, y1: Array) -> Callable[[float], Array]:
    h = t1 - t0
    f0, f1 = system.rate(t0, y0), system.rate(t1, y1)

    def value(t: float) -> Array:
        s = (t - t0) / h
        return (1 + 2 * s) * (1 - s) ** 2 * y0 + s * s * (3 - 2 * s) * y1 + h * s * (1 - s) * ((1 - s) * f0 - s * f1)

    return value


def _rk4(system: System, t: float, y: Array, end: float, options: Options) -> Iterator[Advance]:
    """Fixed steps; where nothing is called back, many of them in one call, up to the next wanted time."""
    marks = list(fixed_times(t, end, options.dt))
    whole = len(marks) - 1  # the last one may be shorter
    wanted = set(np.searchsorted([t1 for _, t1 in marks], np.array(options.times) - moment(end, 1e-12)).tolist())
    done = 0
    while done < len(marks):
        (t0, t1), h = marks[done], marks[done][1] - marks[done][0]
        if done < whole and not system.called and not system.m and not system.projected:
            count = min(CHUNK, whole - done)
            states = _chunk(system)(count)(np.append(y, t0), np.array([h]))[:, :-1]
        else:
            count = 1
            k1 = system.rate(t0, y)
            k2 = system.rate(t0 + h / 2, y + h / 2 * k1)
            k3 = system.rate(t0 + h / 2, y + h / 2 * k2)
            k4 = system.rate(t1, y + h * k3)
            states = system.project(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))[None]
        if not np.isfinite(states).all():
            raise BlowUp("numbers are no longer finite")
        # Steps go to the driver one by one only where it looks at each: at wanted times, or where modes may change.
        ends = [m[1] for m in marks[done : done + count]]
        each = not options.times or system.movable or _may_switch(system, ends, states)
        first = 0
        for k in range(count):
            if not (each or k + 1 == count or done + k in wanted or done + k + 1 in wanted):
                continue
            t0, t1 = marks[done + first][0], marks[done + k][1]
            new = states[k]
            yield Advance(t0, t1, y, new, partial(_hermite, system, t0, t1, y, new), k + 1 - first)
            first, y = k + 1, new
        done += count


def _may_switch(system: System, times: list[float], states: Array) -> bool:
    """Whether a condition to leave a mode holds at any of these states."""
    if not system.conditions:
        return False
    return bool((system.watch_all(np.array(times), states) > -1e-9).any())


def _chunk(system: System) -> Callable[[int], Any]:
    """count -> kernel of so many steps of rk4: (x = [y; W; t], [h]) -> states after each."""
    if system.chunks is None:
        system.chunks = _chunks_of(system)
    return system.chunks


def _chunks_of(system: System) -> Callable[[int], Any]:
    import casadi as ca

    from polybody.kernels import iterate

    n = system.n + 1
    x, h = ca.SX.sym("x", n + 1), ca.SX.sym("h")
    field = system.function("field", system.rate_expressions)

    def rate(x: Any) -> Any:
        return ca.vertcat(field(ca.vertcat(x[: n - 1], x[n])), 1.0)

    k1 = rate(x)
    k2 = rate(x + h / 2 * k1)
    k3 = rate(x + h / 2 * k2)
    k4 = rate(x + h * k3)
    step = ca.Function("network_rk4", [x, h], [ca.densify(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))])
    key = hashlib.sha256(step.serialize().encode()).hexdigest()
    return cache(lambda count: iterate.build("network_rk4", (n + 1, 1, 0), count, lambda: step, key))


def _idas(system: System, t: float, y: Array, end: float, options: Options) -> Iterator[Advance]:
    if len(y) == 1:  # no states: IDAS does not take equations without them; the energy that leaves is an integral
        yield from METHODS["dop853"](system, t, y, end, options)
        return
    solve = _idas_solver(system, options)
    times = [s for s in options.times if t + moment(t, 1e-12) < s < end]
    longest = min(options.max_step, (end - t) / 20)
    marks = [t]
    for s in [*times, end]:
        count = max(1, int(np.ceil((s - marks[-1]) / longest * (1 - 1e-9))))
        marks += [marks[-1] + (s - marks[-1]) * (k + 1) / count for k in range(count)]
    for t0, t1 in itertools.pairwise(marks):
        new = system.project(solve(t0, y, t1))
        if not np.isfinite(new).all():
            raise BlowUp("numbers are no longer finite")

        def dense(t0: float = t0, y: Array = y) -> Callable[[float], Array]:
            return lambda s: y if s <= t0 else system.project(solve(t0, y, s))

        yield Advance(t0, t1, y, new, dense)
        y = new


def _idas_solver(system: System, options: Options) -> Callable[[float, Array, float], Array]:
    """(t0, y, t1) -> y, by IDAS: x = y, z = all other unknowns, equations as the structure left them."""
    import casadi as ca

    if system.called:
        raise InputError(f"idas takes inputs as numbers or expressions in time; {next(iter(system.called))!r} is a "
                         "Python function: take radau")
    reduced = system.equations.reduced
    symbols = reduced.symbols
    z = ca.vertcat(*(symbols[key] for key in reduced.unknowns), ca.SX(0, 1))
    rates = [symbols[(j, k + 1)] for j, k in system.equations.states]
    _, leaving = system.assembly.power()
    expressions = system.with_inputs([ca.vertcat(*rates, ca.SX(0, 1)), ca.vertcat(*reduced.equations), ca.SX(leaving)])
    equations = {"x": system.y, "z": z, "t": system.t, "ode": expressions[0], "alg": expressions[1],
                 "quad": expressions[2]}
    chosen = {"reltol": options.rtol, "abstol": options.atol, "max_num_steps": 100_000, "print_stats": False,
              "show_eval_warnings": False, "calc_ic": False, "suppress_algebraic": True}
    every = system.function("start", system.closed([symbols[key] for key in reduced.unknowns]))

    def solve(t: float, y: Array, until: float) -> Array:
        start = np.asarray(every(system.argument(t, y))).ravel()
        # its own search for consistent rates fails where tolerances are near rounding
        options = {**chosen, "init_xdot": system.rate(t, y)[:-1].tolist()}
        solver = ca.integrator("idas", "idas", equations, t, until, options)
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                answer = solver(x0=y[:-1], z0=start)
        except RuntimeError as error:
            raise BlowUp(f"IDAS failed: {said.getvalue()}{str(error).strip().splitlines()[-1]}") from None
        return np.append(np.asarray(answer["xf"]).ravel(), y[-1] + float(answer["qf"]))

    return solve


METHODS: dict[str, Callable[..., Iterator[Advance]]] = {
    "dop853": partial(_adaptive, "DOP853"),
    "radau": partial(_adaptive, "Radau"),
    "rk4": _rk4,
    "idas": _idas,
}
ADAPTIVE = {"dop853", "radau", "idas"}

__all__ = ["ADAPTIVE", "METHODS", "Advance", "steps"]
