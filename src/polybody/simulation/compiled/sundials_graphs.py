"""What SUNDIALS integrates, as graphs that CasADi's virtual machine evaluates: no Python is entered during a call.

    cvodes    ẋ = f(t, x; p)                                              (`field`)
    idas      ẋ = f,   0 = [ID(q, v, a) − F − Jᵀλ − E s;  J a + γ + 2α J v + α² φ;  Eᵀa]        (`integrators.idas`)

with exact Jacobians (`graph_blocks`). p = [t₀; constants; limits]: t counts from t₀, so that one solver serves all
stretches with the same spacing. A table of signals (a path) is looked up by time within the graph.

Beside x go two quadratures: the work W, and the time during which the right side is not to be believed, because its
elimination of loops (or a solution inside it) was near singular; who gets a number above zero there asks Python. That
time is counted in units so long that it has no part in error control, as W has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.formulations import denoc
from polybody.interrupts import passed_on
from polybody.mechanism import kinematics
from polybody.simulation.compiled.field import Acting
from polybody.simulation.compiled.graph_blocks import Blocks
from polybody.simulation.integrators.base import Options
from polybody.simulation.integrators.idas import ALPHA, loads_at_start
from polybody.simulation.integrators.sundials import solver_options

Array = np.ndarray
MOST_ROUNDS = 50  # of loads at a start
UNIT = 1e-30  # of the time of doubts, 1/s
#: graphs that are kept for the next run, and solvers of each
MOST_KEPT = 16
_KEPT: dict[Any, Any] = {}


class Rates:
    """ẋ for `cvodes`, and what is recorded beside it."""

    def __init__(self, acting: Acting) -> None:
        import casadi

        self.size = acting.size - 1
        rows = [] if acting.plan is None else [i for i, _ in acting.plan.pivots]
        self.field = field_of(acting)
        given = self.field.sx_in()
        rate, told = self.field.call(given)
        exact = {"custom_jacobian": Blocks(acting, rows).rate_slopes("rates"), "jac_penalty": 0}
        self.rates = casadi.Function("rates", given, [rate[: self.size]], exact)
        self.beside = quadratures(given, rate[self.size], told[acting.recorded :])

    def equations(self, acting: Acting) -> dict[str, Any]:
        """As CasADi's integrators take them."""
        x, p, time, full, c, row, limits = symbols(self.size, acting)
        beside = self.beside(full, c, row, limits)
        return {"x": x, "t": time, "p": p, "ode": self.rates(full, c, row), "quad": beside}


class Balance:
    """The equations of `idas` with constraint rows that are independent, whatever rests: graphs that are made once, for
    they take a second with 40 joints, and joints of a hand come to rest in many sets."""

    def __init__(self, acting: Acting, rows: list[int]) -> None:
        self.acting, self.rows, self.size = acting, rows, acting.size - 1
        blocks = self.blocks = Blocks(acting, rows, ALPHA)
        self.function = self._text(acting, blocks)
        given = blocks.outside.sx_in()
        told = blocks.outside.call(given)[2]
        self.beside = quadratures(given, told[0], told[1:])

    def _text(self, acting: Acting, blocks: Blocks) -> Any:
        """(x, [a; λ], c, row) -> ẋ, ID(q, v, a) − F − Jᵀλ, J a + γ + 2α J v + α² φ."""
        graph, n, rows = acting.graph, acting.model.nv, self.rows
        columns, x, c, row = acting.columns(graph)
        q, v, i, t = acting.state(x, graph)
        (z_in, z), m = graph.variables("z", n + len(rows)), acting.mechanism
        a, loads = z[:n], z[n:]
        force, rates = blocks.acting_text(q, v, i, t, z, c, row)[:2]
        needed = denoc.inverse_dynamics(m, q, v, a, None, domain=graph) - force
        held = graph.zeros(0)
        if rows:
            system: Any = acting.model.engine.constraints.traced  # type: ignore[attr-defined]
            J = system.jacobian(q, domain=graph)[rows]
            needed = needed - J.T @ loads
            speed, gap = system.velocity(q, v, domain=graph)[rows], system.residual(q, domain=graph)[rows]
            held = J @ a + system.bias(q, v, domain=graph)[rows]
            held = held + speed * graph.const(2 * ALPHA) + gap * graph.const(ALPHA**2)
        rate = np.concatenate([kinematics.rate(m, q, v, domain=graph), a, rates])
        return blocks.function("balance", [columns[0], z_in, *columns[1:]], columns[1], [rate, needed, held])


class Residuals:
    """The equations of `idas` with joints at rest."""

    def __init__(self, balance: Balance, resting: list[int]) -> None:
        import casadi

        self.balance, self.resting = balance, resting
        nv, r = balance.acting.model.nv, len(balance.rows)
        self.count = nv + r + len(resting)
        exact = {"custom_jacobian": balance.blocks.equation_slopes("residuals", resting), "jac_penalty": 0}
        x, _, c, row = balance.function.mx_in()
        z = casadi.MX.sym("z", self.count)
        known, push = casadi.vertsplit(z, [0, nv + r, self.count])  # of one number z[1:] would be a row
        rate, needed, held = balance.function(x, known, c, row)
        E = casadi.sparsify(casadi.DM(np.eye(nv)[:, resting])) if resting else casadi.DM(nv, 0)
        found = casadi.vertcat(rate, needed - E @ push, held, E.T @ z[:nv])
        self.residuals = casadi.Function("residuals", [x, z, c, row], [found], exact)

    def start(self, x: Array, c: Array, row: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """(z, sizes of z) at a state x = [q; v; i; W; t] with accelerations a."""
        blocks, J = self.balance.blocks, np.eye(len(a))[self.resting]
        q = blocks.apart(x, c)[0]
        if blocks.rows:
            J = np.concatenate([np.asarray(blocks.jacobian(q, c)), J])
        needed, _, _, M = map(np.asarray, blocks.inertia(q, v, a, c))
        z, sizes = np.zeros(self.count), np.zeros(self.count)
        z[: len(a)] = a
        for _ in range(MOST_ROUNDS):  # forces may depend on loads, and these on them
            force, before = np.asarray(blocks.outside(x, self._known(z), c, row)[0]).ravel(), z
            z, sizes = loads_at_start(v, a, force, needed.ravel() - force, J, M.diagonal())
            if not blocks.bears or np.abs(z - before).max() <= 1e-13 * sizes.max():
                break
        return z, sizes

    def _known(self, z: Any) -> Any:
        """What of z the forces from outside depend on."""
        return z[: self.balance.acting.model.nv + len(self.balance.rows) if self.balance.blocks.bears else 0]

    def equations(self, acting: Acting) -> dict[str, Any]:
        import casadi

        size = self.balance.size
        x, p, time, full, c, row, limits = symbols(size, acting)
        z = casadi.MX.sym("z", self.count)
        found, beside = self.residuals(full, z, c, row), self.balance.beside(full, self._known(z), c, row, limits)
        return {"x": x, "z": z, "t": time, "p": p, "ode": found[:size], "alg": found[size:], "quad": beside}


def quadratures(given: list[Any], power: Any, told: Any) -> Any:
    """(…, limits) -> rates of both quadratures: doubts where growth and narrow, in `told`, are not below the limits."""
    import casadi

    limits = casadi.SX.sym("limits", 2)
    doubt = 1 - (told[0] < limits[0]) * (told[1] < limits[1])  # of no number too
    return casadi.Function("beside", [*given, limits], [casadi.vertcat(power, UNIT * doubt)])


def field_of(acting: Acting) -> Any:
    """(x, c, row) -> (ẋ with W and t, what is recorded), a casadi.Function."""
    made = acting.text("field")
    return getattr(made, "function", made)


def symbols(size: int, acting: Acting) -> tuple[Any, ...]:
    """(x, p, t, [x; W; t₀ + t], constants, row of the signals, limits)."""
    import casadi

    count = len(acting.constants)
    x, p, time = casadi.MX.sym("x", size), casadi.MX.sym("p", 3 + count), casadi.MX.sym("t")
    now = p[0] + time
    return x, p, time, casadi.vertcat(x, 0, now), p[1 : 1 + count], looked_up(acting, now), p[1 + count :]


def looked_up(acting: Acting, t: Any) -> Any:
    """The row of the law's signals at t."""
    import casadi

    signals = acting.law.signals
    if len(signals.breaks) < 2:
        return casadi.MX(casadi.DM(signals.row(0.0)))
    k = casadi.sum1(casadi.MX(casadi.DM(signals.breaks[1:])) <= t)
    return casadi.MX(casadi.DM(signals.rows.T))[:, k]


def kept(key: Any, make: Callable[[], Any]) -> Any:
    """What `make()` gives, made once for some runs of the same key."""
    from polybody.kernels import background
    from polybody.kernels.locks import tracing

    found = _KEPT.pop(key, None)  # and put back: the one used longest ago goes first
    if found is not None:
        _KEPT[key] = found
    else:
        with background.building(), tracing:
            found = passed_on(make)
            while len(_KEPT) >= MOST_KEPT:
                _KEPT.pop(next(iter(_KEPT)), None)
            _KEPT[key] = found
    return found


class Solvers:
    """CasADi's integrators of some equations, one for each spacing of times; numbers of each call are parameters."""

    def __init__(self, method: str, equations: dict[str, Any], options: Options) -> None:
        self.method, self.equations, self.options = method, equations, options
        self._made: dict[bytes, Any] = {}

    def __call__(
        self, t: float, y: Array, grid: Array, constants: Array, limits: tuple[float, float], start: dict[str, Any],
        chosen: dict[str, Any],
    ) -> tuple[Array, Array, dict[str, Any]]:
        """(states at the grid's times, the doubts up to each, what SUNDIALS reports); `chosen` are options of a
        start, with which a solver is made for this call only."""
        relative = grid - t
        key = np.round(relative / relative[-1], 13).tobytes() + np.float64(np.round(relative[-1], 13)).tobytes()
        solver = None if chosen else self._made.get(key)
        if solver is None:
            solver = self._maker(relative, chosen)
            if not chosen:
                while len(self._made) >= MOST_KEPT:  # each event asks for times of its own
                    self._made.pop(next(iter(self._made)))
                self._made[key] = solver
        p = np.concatenate([[t], constants, limits])

        def solved() -> tuple[Array, Array, dict[str, Any]]:
            answer = solver(x0=y[:-1], p=p, **start)
            beside = np.asarray(answer["qf"])
            states = np.column_stack([np.asarray(answer["xf"]).T, beside[0] + y[-1]])
            return states, beside[1], solver.stats()

        return passed_on(solved)  # CasADi's wrappers lose interrupts, in reading its matrices too

    def _maker(self, relative: Array, chosen: dict[str, Any]) -> Any:
        import casadi

        from polybody.kernels.locks import tracing

        given = {**solver_options(self.options), **chosen}
        with tracing:
            return passed_on(
                lambda: casadi.integrator(self.method, self.method, self.equations, 0.0, relative, given)
            )


__all__ = ["Rates", "Residuals", "Solvers", "field_of", "kept"]
