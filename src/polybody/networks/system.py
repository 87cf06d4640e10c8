"""A network in one combination of modes, compiled: rates, algebraic equations, what can be observed, when to switch.

The state of a run is y = [states; W], W the energy that left what the parts store: stored + W is constant. Functions of
(y, a, c, t) have one argument s = [y without W; a; c; t], c the values of inputs that are Python functions. Inputs
that are numbers or expressions in time are part of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.interrupts import interruptible
from polybody.networks.calling import Called
from polybody.networks.expressions import Text, casadi_functions
from polybody.networks.reduction import Semiexplicit
from polybody.networks.structure import Choice
from polybody.properties import cached_property
from polybody.simulation.failures import BlowUp

Array = np.ndarray
MOST_ITERATIONS = 30


class InputRateNeeded(InputError):
    """The network answers to the time derivative of an input that has none: its name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the network needs the time derivative of input {name!r} (what it drives follows it without delay); give "
            "it as an expression in `time`, as 'sin(10*time)', or as a number")
        self.name = name


class System:
    """Functions of a network in one combination of modes, for given inputs."""

    def __init__(self, equations: Semiexplicit, inputs: Mapping[str, Any]) -> None:
        import casadi as ca

        self.equations = equations
        assembly = equations.assembly
        self.assembly, self.modes = assembly, assembly.modes
        symbols = equations.reduced.symbols
        self.states = [assembly.key_name(key) for key in equations.states]
        self.algebraic = [assembly.key_name(key) for key in equations.algebraic]
        self.y = ca.vertcat(*(symbols[key] for key in equations.states), ca.SX(0, 1))
        self.a = ca.vertcat(*(symbols[key] for key in equations.algebraic), ca.SX(0, 1))
        self.called: dict[str, Callable[[float], Any]] = {name: said for name, said in inputs.items() if callable(said)}
        self.c = ca.vertcat(*(assembly.inputs[name] for name in self.called), ca.SX(0, 1))
        self.t = assembly.time
        self.given = self._inputs(inputs)
        self.n, self.m = len(self.states), len(self.algebraic)
        self.observed = list(assembly.observables())
        self.evaluations = 0
        self.chunks: Callable[[int], Any] | None = None  # compiled loops of fixed steps, by `stepping`
        # variables whose derivatives occur: they have a memory, whether they are states or follow from some
        self.remembered = [assembly.names[j] for j, k in equations.reduced.symbols if k == 0
                           and (j, 1) in equations.reduced.symbols]

    def _inputs(self, inputs: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """[(symbol, SX)] of inputs that are numbers or expressions in time, and of their derivatives."""
        import casadi as ca

        given = []
        for (name, order), symbol in self.assembly.input_rates.items():
            said = inputs[name]
            if callable(said):
                if order:
                    raise InputRateNeeded(name)
                continue
            expression = ca.SX(self._expression(said))
            for _ in range(order):
                expression = ca.jacobian(expression, self.t)
            given.append((symbol, expression))
        return given

    def _expression(self, said: Any) -> Any:
        return said.value({"time": self.t}.__getitem__, casadi_functions()) if isinstance(said, Text) else float(said)

    def closed(self, expressions: list[Any]) -> list[Any]:
        """Expressions in any unknown as expressions in y, a, c and t."""
        import casadi as ca

        return self.with_inputs([ca.SX(x) for x in self.equations.substituted(expressions)])

    def with_inputs(self, expressions: list[Any]) -> list[Any]:
        """Expressions with inputs that are numbers or expressions in time put in."""
        import casadi as ca

        if not self.given:
            return expressions
        symbols, values = (ca.densify(ca.vertcat(*column)) for column in zip(*self.given, strict=True))
        found: Any = ca.substitute(expressions, [symbols], [values])
        return list(found)

    def function(self, name: str, expressions: list[Any]) -> Any:
        """The casadi.Function s -> column of expressions in y, a, c and t."""
        import casadi as ca

        s = ca.vertcat(self.y, self.a, self.c, self.t)
        return ca.Function(name, [s], [ca.densify(ca.vertcat(*expressions, ca.SX(0, 1)))])

    def _kernel(self, name: str, expressions: list[Any], shape: tuple[int, ...]) -> Callable[[Array], Array]:
        return Called(name, self.function(name, expressions), shape)

    @cached_property
    @interruptible
    def rate_expressions(self) -> list[Any]:
        """[ẏ; Ẇ] in y, a, c and t."""
        symbols = self.equations.reduced.symbols
        _, leaving = self.assembly.power()
        rates = [symbols[(j, k + 1)] for j, k in self.equations.states]
        return self.closed([*rates, leaving])

    @cached_property
    @interruptible
    def _rate(self) -> Callable[[Array], Array]:
        return self._kernel("network_rate", self.rate_expressions, (self.n + 1,))

    @cached_property
    @interruptible
    def algebraic_expressions(self) -> list[Any]:
        return self.closed(list(self.equations.g))

    @cached_property
    @interruptible
    def _algebra(self) -> Callable[[Array], Array]:
        """[g; ∂g/∂a] flattened."""
        import casadi as ca

        g = ca.vertcat(*self.algebraic_expressions)
        slopes = ca.jacobian(g, self.a)
        return self._kernel("network_algebra", [g, ca.vec(ca.densify(slopes).T)], (self.m * (self.m + 1),))

    @cached_property
    def _pivots(self) -> Any:
        """casadi.Function s -> slopes of the constraints among states, or None where the choice is good everywhere."""
        pivots = self.equations.reduced.pivots
        if pivots is None or pivots.constant:
            return None
        import casadi as ca

        return self.function("pivots", self.closed([ca.vec(ca.densify(level.slopes)) for level in pivots.levels]))

    @property
    def movable(self) -> bool:
        """Whether the choice of states may become poor along the motion."""
        return self._pivots is not None

    def better_choice(self, t: float, y: Array) -> Choice | None:
        """The choice of dummy derivatives to take instead, where that of the system has become poor."""
        pivots = self.equations.reduced.pivots
        if self._pivots is None or pivots is None:
            return None
        flat = np.asarray(self._pivots(self.argument(t, y))).ravel()
        shapes = [level.slopes.shape for level in pivots.levels]
        ends = np.cumsum([r * c for r, c in shapes])
        return pivots.better([part.reshape(shape, order="F") for part, shape in
                              zip(np.split(flat, ends[:-1]), shapes, strict=True)])

    def better_at(self, values: Mapping[str, float]) -> Choice | None:
        """As `better_choice`, at values of variables by name, before a state is known; what has none counts as zero."""
        import casadi as ca

        pivots = self.equations.reduced.pivots
        if self._pivots is None or pivots is None:
            return None
        slopes = [ca.densify(level.slopes) for level in pivots.levels]
        symbols = ca.symvar(ca.vertcat(*(ca.vec(x) for x in slopes)))
        at = np.array([values.get(symbol.name(), 0.0) for symbol in symbols])
        told = ca.Function("slopes", [ca.vertcat(*symbols)], slopes).call([at])
        return pivots.better([np.asarray(x) for x in told])

    def expect(self, values: Mapping[str, float]) -> None:
        """Begin the iteration of algebraic unknowns at these values."""
        if self.m:
            self._last = np.array([values.get(name, x) for name, x in zip(self.algebraic, self._last, strict=True)])

    @cached_property
    def conditions(self) -> list[tuple[str, str]]:
        return [(part, mode) for part, mode, _ in self.assembly.conditions()]

    @cached_property
    @interruptible
    def _watch(self) -> Callable[[Array], Array]:
        found = [expression for *_, expression in self.assembly.conditions()]
        return self._kernel("network_watch", self.closed(found), (len(found),))

    @cached_property
    @interruptible
    def observe(self) -> Any:
        """casadi.Function s -> everything in `observed`, then the stored energy."""
        stored, _ = self.assembly.power()
        return self.function("observe", self.closed([*self.assembly.observables().values(), stored]))

    @cached_property
    @interruptible
    def _everything(self) -> tuple[list[str], Any]:
        keys = list(self.equations.reduced.symbols.items())
        return [self.assembly.key_name(key) for key, _ in keys], self.function("all", self.closed([x for _, x in keys]))

    # -- numbers ----------------------------------------------------------------------------------------------------

    def inputs_at(self, t: float) -> Array:
        values = np.array([float(function(t)) for function in self.called.values()])
        if not np.isfinite(values).all():
            name = list(self.called)[int(np.argmin(np.isfinite(values)))]
            raise InputError(f"input {name!r} is not a finite number at t = {t:.9g} s")
        return values

    def argument(self, t: float, y: Array, guess: Array | None = None) -> Array:
        """s at a state: with the algebraic unknowns found by Newton's method from the last ones."""
        if not self.m:
            return np.concatenate([y[: self.n], self.inputs_at(t), [t]]) if self.called else np.append(y[: self.n], t)
        a = self._last if guess is None else guess
        s = np.concatenate([y[: self.n], a, self.inputs_at(t), [t]])
        self._last = self._newton(s)[self.n : self.n + self.m].copy()
        return s

    @cached_property
    def _last(self) -> Array:  # pyright: ignore[reportRedeclaration]  replaced by each solution
        starts = [self.assembly.starts[j] if k == 0 else 0.0 for j, k in self.equations.algebraic]
        return np.array(starts)

    def _newton(self, s: Array) -> Array:
        where = slice(self.n, self.n + self.m)
        before = np.inf
        for count in range(MOST_ITERATIONS):
            told = self._algebra(s)
            g, slopes = told[: self.m], told[self.m :].reshape(self.m, self.m)
            if not np.isfinite(told).all():
                raise BlowUp("the algebraic equations diverged")
            try:
                step = np.linalg.solve(slopes, -g)
            except np.linalg.LinAlgError:
                step = np.linalg.lstsq(slopes, -g, rcond=None)[0]
            size = np.abs(step).max() / (1 + np.abs(s[where]).max())
            s[where] += step if size < 1e3 or count > 5 else step / size
            if size < 1e-13 or (size < 1e-10 and size >= before):
                return s
            before = size
        raise BlowUp(f"the algebraic equations for {', '.join(self.algebraic[:6])} found no solution")

    def rate(self, t: float, y: Array) -> Array:
        """[ẏ; Ẇ]."""
        self.evaluations += 1
        return np.atleast_1d(self._rate(self.argument(t, y)))

    def rates(self, columns: Array) -> Array:
        """(n + 1, k): [ẏ; Ẇ] at many s, by what the method evaluates where it has that."""
        if "_rate" in vars(self):
            return np.atleast_2d(self._rate(np.ascontiguousarray(columns.T))).T
        return np.asarray(self.function("rates", self.rate_expressions)(columns))

    def watch(self, t: float, y: Array) -> Array:
        """What is positive where a mode must be left, in the order of `conditions`."""
        return np.atleast_1d(self._watch(self.argument(t, y))) if self.conditions else np.zeros(0)

    def watch_all(self, times: Array, states: Array) -> Array:
        """`watch` at many states, without inputs that are Python functions."""
        return np.asarray(self._watch(np.column_stack([states[:, : self.n], times])))

    def values(self, t: float, y: Array) -> dict[str, float]:
        """Every unknown and derivative, and all that can be observed, by name."""
        names, function = self._everything
        s = self.argument(t, y)
        found = dict(zip(names, np.asarray(function(s)).ravel().tolist(), strict=True))
        return found | dict(zip(self.observed, np.asarray(self.observe(s)).ravel().tolist(), strict=False))

    @cached_property
    @interruptible
    def projected(self) -> list[tuple[list[int], Any]]:
        """[(part of y, function)]: states that live on manifolds (quaternions, loops), and what puts them back."""
        found, index = [], {name: k for k, name in enumerate(self.states)}
        for part in self.assembly.components:
            for names, function in getattr(part, "projections", ()):
                found.append(([index[name] for name in names], function))
        return found

    def project(self, y: Array) -> Array:
        """y with its parts on their manifolds; y itself where nothing was moved."""
        for which, function in self.projected:
            y = y.copy()
            y[which] = function(y[which])
        return y

    def observation(self, t: float, y: Array) -> Array:
        """All that can be observed, and the stored energy."""
        return np.asarray(self.observe(self.argument(t, y))).ravel()

    @cached_property
    @interruptible
    def _slopes(self) -> Any:
        import casadi as ca

        f = ca.vertcat(*self.rate_expressions[:-1], ca.SX(0, 1))
        g = ca.vertcat(*self.algebraic_expressions, ca.SX(0, 1))
        parts = [ca.jacobian(f, self.y), ca.jacobian(f, self.a), ca.jacobian(g, self.y), ca.jacobian(g, self.a)]
        s = ca.vertcat(self.y, self.a, self.c, self.t)
        return ca.Function("slopes", [s], [ca.densify(p) for p in parts])

    def impulse(self, t: float, y: Array, source: str, variable: str) -> tuple[Array, Array]:
        """(∂ẏ/∂source, ∂variable/∂y): how an impulse of a source moves the states, and what a variable makes of it."""
        import casadi as ca

        if (source, variable) not in self._impulses:
            assembly, symbols = self.assembly, self.equations.reduced.symbols
            rates = [symbols[(j, k + 1)] for j, k in self.equations.states]
            f, g, h = (ca.vertcat(*self.equations.substituted(x), ca.SX(0, 1)) for x in
                       (rates, list(self.equations.g), [assembly.observables()[variable]]))
            u = assembly.inputs[source]
            blocks = [ca.jacobian(f, u), ca.jacobian(f, self.a), ca.jacobian(g, u), ca.jacobian(g, self.a),
                      ca.jacobian(h, self.y), ca.jacobian(h, self.a), ca.jacobian(g, self.y)]
            s = ca.vertcat(self.y, self.a, self.c, self.t)
            self._impulses[(source, variable)] = ca.Function(
                "impulse", [s], [ca.densify(x) for x in self.with_inputs([ca.SX(b) for b in blocks])])
        found = self._impulses[(source, variable)](self.argument(t, y))
        fu, fa, gu, ga, hy, ha, gy = (np.asarray(x) for x in found)
        if self.m:
            fu, hy = fu - fa @ np.linalg.solve(ga, gu), hy - ha @ np.linalg.solve(ga, gy)
        return fu.ravel(), hy.ravel()

    @cached_property
    def _impulses(self) -> dict[tuple[str, str], Any]:
        return {}

    def jacobian(self, t: float, y: Array) -> Array:
        """∂[ẏ; Ẇ]/∂[y; W], with the algebraic unknowns eliminated; W's row is left zero (it acts on nothing)."""
        fy, fa, gy, ga = (np.asarray(x) for x in self._slopes(self.argument(t, y)))
        if self.m:
            fy = fy - fa @ np.linalg.solve(ga, gy)
        return np.pad(fy, ((0, 1), (0, 1)))


__all__ = ["InputRateNeeded", "System"]
