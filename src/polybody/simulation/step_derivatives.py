"""Derivatives of the steps of a run: of all steps together, as one batch.

A step is x₁ = Φ(x₀, z, p) with x = [q; v; i] and z what the controller remembers. Its stages are taken anew from the
recorded x₀, and with them their derivatives D = ∂/∂[x₀, p, z], by ẋ = f(x, z, p) and f_x, f_p, f_z of one compiled
function (`compiled.field`), for all steps at once:

    explicit        X_i = x₀ + h Σ_j a_ij K_j,   K_i = f(X_i),   D_i = 1 + h Σ_j a_ij K'_j,
                    K'_i = f_x D_i + [0, f_p, f_z]
    radau (IIA)     the same with implicit stages: (1 − h A ⊗ f_x) D = 1 + h A ⊗ [0, f_p, f_z]
    semi-implicit   of the step itself, one expression
    midpoint        r(x₀, u) = 0 and M(q₁) v₁ = p₁:     u' = −r_u⁻¹ r_x,  …

followed by the way back to unit quaternions and to the loops. So Φ_x and Φ_p are exact for the steps that were taken.
What is computed anew must end where the run did: otherwise an error says where it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.errors import PolybodyError
from polybody.model.tracing import compiled
from polybody.properties import cached_property
from polybody.simulation.compiled.field import Acting
from polybody.simulation.compiled.given import acting_of, possible_holding
from polybody.simulation.compiled.laws import Law, Signals
from polybody.simulation.integrators.tableaux import TABLEAUX
from polybody.simulation.problem import Problem
from polybody.simulation.recording import Mode, Stretch
from polybody.simulation.stage_control import Control

Array = np.ndarray
#: steps in one batch
MOST = 512
#: how far a step that is computed anew may end from the run's own, over 1 + |x|
OFF, ROUGH = 1e-5, 1e-2
NEWTON = 8
_S6 = np.sqrt(6)
#: Radau IIA of order 5
RADAU = np.array([
    [(88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225],
    [(296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225],
    [(16 - _S6) / 36, (16 + _S6) / 36, 1 / 9],
])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Batch:
    """Steps of one field: their beginnings t, lengths h, states before and after, constants, and z."""

    t: Array
    h: Array
    y0: Array
    y1: Array
    c: Array
    z: Array

    def __len__(self) -> int:
        return len(self.t)


class StepDerivatives:
    """The derivatives of a problem's steps."""

    def __init__(self, problem: Problem, control: Control, method: str) -> None:
        self.problem, self.control, self.method = problem, control, method
        self.n, self.k, self.m = problem.size - 1, len(problem.model.parameters), control.memory
        self._fields: dict[tuple[str, bool], Field] = {}

    @cached_property
    def acting(self) -> Acting:
        width, text = self.control.width, self.control.text

        def read(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
            return text(t, q, v, row[width:], c, row[:width], domain)

        rows = np.zeros((1, width + self.m))
        return acting_of(self.problem, Law(self.control.key, read, self.control.constants, Signals(np.zeros(1), rows)))

    def field(self, mode: Mode, plan: Any) -> Field:
        """The field in a mode, along a plan of elimination."""
        key = ("" if plan is None else plan.label, mode.frozen)
        if key not in self._fields:
            holding = replace(possible_holding(self.problem), frozen=mode.frozen)
            self._fields[key] = Field(self, replace(self.acting, plan=plan, holding=holding, held=mode.numbers))
        return self._fields[key]

    def constants(self, mode: Mode) -> Array:
        holding = replace(possible_holding(self.problem), frozen=mode.frozen)
        return replace(self.acting, holding=holding, held=mode.numbers).constants

    def rate(self, t: float, y: Array, z: Array, mode: Mode, plan: Any) -> Array:
        """ẋ of one state, (n,)."""
        c = self.constants(mode)[None]
        return self.field(mode, plan).slopes(np.array([t]), y[None, : self.n], c, z[None])[0][0]

    def derivatives(self, parts: list[Stretch], z: list[Array]) -> list[Array]:
        """D = ∂x₁/∂[x₀, p, z] of the steps of each stretch, (steps, n, n + k + m); z is what is remembered in each."""
        found: list[Any] = [None] * len(parts)
        alike: dict[tuple[int, str], list[int]] = {}
        for k, part in enumerate(parts):
            alike.setdefault((id(part.mode), "" if part.plan is None else part.plan.label), []).append(k)
        for places in alike.values():
            whole = self._together([parts[k] for k in places], [z[k] for k in places])
            ends = np.cumsum([len(parts[k].t) - 1 for k in places])
            for k, D in zip(places, np.split(whole, ends[:-1]), strict=True):
                found[k] = D
        return found

    def _together(self, parts: list[Stretch], z: list[Array]) -> Array:
        """D of stretches in one mode along one plan."""
        mode = parts[0].mode
        field, c = self.field(mode, parts[0].plan), self.constants(mode)
        take, off = self._method(field, mode)
        t, h = (np.concatenate(x) for x in ([p.t[:-1] for p in parts], [np.diff(p.t) for p in parts]))
        y0, y1 = (np.concatenate(x) for x in ([p.y[:-1] for p in parts], [p.y[1:] for p in parts]))
        kept = np.concatenate([np.broadcast_to(x, (len(p.t) - 1, self.m)) for p, x in zip(parts, z, strict=True)])
        inside = np.concatenate([np.arange(2, len(p.t) + 1) == len(p.t) if p.inside else np.zeros(len(p.t) - 1, bool)
                                 for p in parts])  # fmt: skip
        found = []
        for a in range(0, len(t), MOST):
            b = slice(a, a + MOST)
            steps = Batch(t[b], h[b], y0[b], y1[b], np.broadcast_to(c, (len(t[b]), len(c))), kept[b])
            x, D = field.returned(steps, *take(steps))
            self._compare(steps, x, inside[b], off)
            found.append(D)
        return np.concatenate(found)

    def _compare(self, steps: Batch, x: Array, inside: Array, allowed: float) -> None:
        """Refuse where steps taken anew end elsewhere; those that an event cut short have ended on an interpolant."""
        y1 = steps.y1[:, : self.n]
        off = np.where(inside, 0.0, (np.abs(x - y1) / (1 + np.abs(y1))).max(axis=1, initial=0.0))
        if not (off <= allowed).all():
            k = int(np.argmax(~(off <= allowed)))
            raise PolybodyError(
                f"the step of {steps.h[k]:.3g} s from t = {steps.t[k]:.9g} s has no derivative here: taken anew it "
                f"ends {off[k]:.3g} away. The run came near a singular configuration or a force that jumps; smaller "
                "steps may help"
            )

    def _method(self, field: Field, mode: Mode) -> tuple[Callable[[Batch], tuple[Array, Array]], float]:
        """(how a step is differentiated, how far what it computes may be from the run's own step)."""
        name = self.method
        if name == "semi-implicit":
            return field.leap, OFF
        if name == "midpoint" and not mode.frozen and not self.problem.circuits.size:
            return field.middle, OFF
        if name == "radau":
            return field.implicit, OFF
        # midpoint steps with currents or held joints: those of the motion, to the order of the method
        tableau = TABLEAUX[name if name in TABLEAUX else "rk4"]()
        return (lambda steps: field.explicit(tableau.A, tableau.b, steps)), OFF if name in TABLEAUX else ROUGH


class Instants:
    """z at the instants of a controller, and its derivatives ∂z/∂[q, v, z before]."""

    def __init__(self, of: StepDerivatives, times: Array, start: float) -> None:
        self.of, self.times = of, times
        self.told, self.row = of.control.found.told(times, start), of.control.rows(times)

    def __call__(self, k: int, y: Array, z: Array) -> tuple[Array, Array]:
        """(z, its derivatives) after instant k at the state y."""
        kernel = self._first if k == 0 else self._later
        problem = self.of.problem
        x = np.append(np.concatenate(problem.split(y)), self.times[k])
        return kernel(x, z, self.told[k], self.of.control.constants, self.row[k])

    @cached_property
    def _first(self) -> Any:
        return self._kernel(True)

    @cached_property
    def _later(self) -> Any:
        return self._kernel(False)

    def _kernel(self, first: bool) -> Any:
        control, problem = self.of.control, self.of.problem
        n, m = problem.nq + problem.nv, control.memory
        inputs = [("x", n + 1), ("z", m), ("told", self.told.shape[1]), ("c", len(control.constants)),
                  ("row", control.width)]  # fmt: skip

        def make() -> Any:
            import casadi

            graph: Any = domain("casadi")
            made = [graph.variables(name, size) for name, size in inputs]
            (x, z, *_), (at, kept, *rest) = [column for column, _ in made], [nodes for _, nodes in made]
            told, c, row = rest
            new = control.instant(first, at[-1], at[: problem.nq], at[problem.nq : n], kept, told, c, row, graph)
            column = graph.column(new)
            by = casadi.horzcat(casadi.jacobian(column, x[:n]), casadi.jacobian(column, z))
            return casadi.Function("instant", [c for c, _ in made], [column, casadi.densify(casadi.vec(by.T))])

        outputs = [("z", (m,)), ("slopes", (m, n + m))]
        return compiled(f"sensitivities instant {first}", inputs, outputs, make, control.key)


class Field:
    """f and its derivatives in one mode, compiled."""

    def __init__(self, of: StepDerivatives, acting: Acting) -> None:
        self.of, self.acting, self.n, self.k, self.m = of, acting, of.n, of.k, of.m
        self.width = self.n + self.k + self.m
        self.inputs = [("x", acting.size + 1), ("c", len(acting.constants)), ("row", of.control.width + of.m)]
        model = of.problem.model
        self.key = f"{acting.key}:{model.engine.constraints.source.digest}:{len(acting.law.constants)}"

    # f and its slopes.

    def slopes(self, t: Array, x: Array, c: Array, z: Array) -> tuple[Array, Array]:
        """(f, [f_x, f_p, f_z]) at states of several steps."""
        full = np.concatenate([x, np.zeros((len(x), 1)), t[:, None]], axis=1)
        row = np.concatenate([self.of.control.rows(t), z], axis=1)
        return self._slopes(full, c, row)

    @cached_property
    def _slopes(self) -> Any:
        outputs = [("rate", (self.n,)), ("slopes", (self.n, self.width))]
        return compiled("sensitivities field", self.inputs, outputs, self._slopes_function, self.key)

    def _slopes_function(self) -> Any:
        import casadi

        made = self.acting.function("field")
        x, c, row = made.sx_in()
        rate = made.call([x, c, row])[0][: self.n]
        return casadi.Function("slopes", [x, c, row], [rate, self._by(rate, x, c, row)])

    def _by(self, value: Any, x: Any, c: Any, row: Any) -> Any:
        """∂value/∂[x, p, z], row by row."""
        import casadi

        end = c.shape[0] - 1
        parts = [x[: self.n], c[end - self.k : end], row[row.shape[0] - self.m :]]
        return casadi.densify(casadi.vec(casadi.horzcat(*(casadi.jacobian(value, p) for p in parts)).T))

    def _unit(self, count: int) -> Array:
        """∂x₀/∂[x₀, p, z]."""
        return np.broadcast_to(np.eye(self.n, self.width), (count, self.n, self.width)).copy()

    def _carried(self, slopes: Array, D: Array) -> Array:
        """f_x D + [0, f_p, f_z]."""
        found = slopes[:, :, : self.n] @ D
        found[:, :, self.n :] += slopes[:, :, self.n :]
        return found

    # Steps: (x₁, D) before the way back to the manifold.

    def explicit(self, A: Array, b: Array, s: Batch) -> tuple[Array, Array]:
        x0, one, h = s.y0[:, : self.n], self._unit(len(s)), s.h[:, None]
        K: list[Array] = []
        KD: list[Array] = []
        for row, part in zip(A, A.sum(axis=1), strict=True):
            x, D = x0, one
            for a, k, kd in zip(row, K, KD, strict=False):
                if a:
                    x, D = x + a * h * k, D + (a * h)[:, :, None] * kd
            f, slopes = self.slopes(s.t + part * s.h, x, s.c, s.z)
            K.append(f)
            KD.append(self._carried(slopes, D))
        x, D = x0, one
        for w, k, kd in zip(b, K, KD, strict=True):
            if w:
                x, D = x + w * h * k, D + (w * h)[:, :, None] * kd
        return x, D

    def implicit(self, s: Batch) -> tuple[Array, Array]:
        n, count, parts = self.n, len(s), RADAU.sum(axis=1)
        x0, last, h = s.y0[:, :n], s.y1[:, :n], s.h[:, None]
        X = [x0 + part * (last - x0) for part in parts]
        found: list[Array] = []

        def stages() -> tuple[list[Array], list[Array]]:
            pairs = [self.slopes(s.t + part * s.h, x, s.c, s.z) for part, x in zip(parts, X, strict=True)]
            return [f for f, _ in pairs], [slope for _, slope in pairs]

        def matrix(slopes: list[Array]) -> Array:
            J = np.zeros((count, 3, n, 3, n))
            for i in range(3):
                for j in range(3):
                    J[:, i, :, j, :] = -RADAU[i, j] * h[:, :, None] * slopes[j][:, :, :n]
                    if i == j:
                        J[:, i, :, i, :] += np.eye(n)
            return J.reshape(count, 3 * n, 3 * n)

        for _ in range(NEWTON):
            F, slopes = stages()
            gap = [X[i] - x0 - h * sum(RADAU[i, j] * F[j] for j in range(3)) for i in range(3)]
            step = np.linalg.solve(matrix(slopes), np.concatenate(gap, axis=1)[..., None])[..., 0]
            X = [X[i] - step[:, i * n : (i + 1) * n] for i in range(3)]
            if np.abs(step).max(initial=0.0) < 1e-13 * (1 + np.abs(x0).max(initial=0.0)):
                break
        _, slopes = stages()
        for i in range(3):
            D = self._unit(count)
            for j in range(3):
                D[:, :, n:] += RADAU[i, j] * h[:, :, None] * slopes[j][:, :, n:]
            found.append(D)
        D = np.linalg.solve(matrix(slopes), np.concatenate(found, axis=1))
        return X[2], D[:, 2 * n :]

    def leap(self, s: Batch) -> tuple[Array, Array]:
        x, row = self._whole(s, s.t)
        return self._leap(x, s.h[:, None], s.c, row)

    def _whole(self, s: Batch, t: Array) -> tuple[Array, Array]:
        """([x; W; t₀], row of the times t)."""
        x = np.concatenate([s.y0[:, : self.n], np.zeros((len(s), 1)), s.t[:, None]], axis=1)
        return x, np.concatenate([self.of.control.rows(t), s.z], axis=1)

    @cached_property
    def _leap(self) -> Any:
        import casadi

        def make() -> Any:
            field, leap = self.acting.function("field"), self.acting.function("leap")
            x, c, row = field.sx_in()
            h = casadi.SX.sym("h", 1)
            new = leap(x, field.call([x, c, row])[0], h, c, row)[: self.n]
            return casadi.Function("leap", [x, h, c, row], [new, self._by(new, x, c, row)])

        x, c, row = self.inputs
        outputs = [("new", (self.n,)), ("slopes", (self.n, self.width))]
        return compiled("sensitivities leap", [x, ("h", 1), c, row], outputs, make, self.key)

    def middle(self, s: Batch) -> tuple[Array, Array]:
        nq, nv = self.of.problem.nq, self.of.problem.nv
        x, row = self._whole(s, s.t + 0.5 * s.h)
        u = 0.5 * (s.y0[:, nq : nq + nv] + s.y1[:, nq : nq + nv])
        for _ in range(25):
            r, r_u, *_ = self._middle(x, u, s.y1[:, nq : nq + nv], s.h[:, None], s.c, row)
            step = np.linalg.solve(r_u, r[..., None])[..., 0]
            u = u - step
            if np.abs(step).max(initial=0.0) < 1e-13 * (1 + np.abs(u).max(initial=0.0)):
                break
        v1 = s.y1[:, nq : nq + nv]
        for _ in range(2):  # M v₁ = p₁ is linear in v₁
            r, r_u, r_x, gap, gap_u, gap_x, M, q1, q1_u, q1_x = self._middle(x, u, v1, s.h[:, None], s.c, row)
            v1 = v1 - np.linalg.solve(M, gap[..., None])[..., 0]
        u_x = -np.linalg.solve(r_u, r_x)
        v1_x = -np.linalg.solve(M, gap_x + gap_u @ u_x)
        return np.concatenate([q1, v1], axis=1), np.concatenate([q1_x + q1_u @ u_x, v1_x], axis=1)

    @cached_property
    def _middle(self) -> Any:
        import casadi

        nq, nv, w = self.of.problem.nq, self.of.problem.nv, self.width

        def make() -> Any:
            middle, ends = self.acting.function("middle"), self.acting.function("ends")
            x, u, h, c, row = middle.sx_in()
            v1 = casadi.SX.sym("v1", nv)
            r = middle.call([x, u, h, c, row])[0]
            new, p, M = ends.call([x, u, h, c, row])
            M, q1 = casadi.reshape(M, nv, nv), new[:nq]
            gap = M @ v1 - p
            found: list[Any] = []
            for value in (r, gap):
                by_u = casadi.densify(casadi.vec(casadi.jacobian(value, u).T))
                found += [value, by_u, self._by(value, x, c, row)]
            by_u = casadi.densify(casadi.vec(casadi.jacobian(q1, u).T))
            found += [casadi.densify(casadi.vec(M)), q1, by_u, self._by(q1, x, c, row)]
            return casadi.Function("middle", [x, u, v1, h, c, row], found)

        x, c, row = self.inputs
        outputs = [
            ("r", (nv,)), ("r_u", (nv, nv)), ("r_x", (nv, w)), ("gap", (nv,)), ("gap_u", (nv, nv)), ("gap_x", (nv, w)),
            ("M", (nv, nv)), ("q1", (nq,)), ("q1_u", (nq, nv)), ("q1_x", (nq, w)),
        ]  # fmt: skip
        inputs = [x, ("u", nv), ("v1", nv), ("h", 1), c, row]
        return compiled("sensitivities middle", inputs, outputs, make, self.key)

    # The way back to the manifold.

    def returned(self, s: Batch, x: Array, D: Array) -> tuple[Array, Array]:
        x, D = x.copy(), D.copy()
        for k in self.of.problem._quaternions:
            part = x[:, k : k + 4]
            length = np.linalg.norm(part, axis=1)[:, None]
            unit = part / length
            turned = D[:, k : k + 4] - unit[:, :, None] * (unit[:, None] @ D[:, k : k + 4])
            x[:, k : k + 4], D[:, k : k + 4] = unit, turned / length[:, :, None]
        if self.acting.plan is None:
            return x, D
        for _ in range(2):
            full = np.concatenate([x, np.zeros((len(x), 1)), (s.t + s.h)[:, None]], axis=1)
            x, slopes = self._back(full, s.c)
            D = self._carried(np.concatenate([slopes, np.zeros((*slopes.shape[:2], self.m))], axis=2), D)
        return x, D

    @cached_property
    def _back(self) -> Any:
        import casadi

        def make() -> Any:
            back = self.acting.function("back")
            x, c = back.sx_in()
            # Where friction holds a joint follows the state: its place is where the joint is.
            known, holding = casadi.SX(c), self.acting.holding
            first = c.shape[0] - 1 - self.k - holding.size + len(holding.rubbing) + len(holding.slots)
            for j, (q, _) in enumerate(holding.slots if holding.frozen else ()):
                known[first + j] = x[q]
            new = back.call([x, known])[0][: self.n]
            end = c.shape[0] - 1
            by = casadi.horzcat(casadi.jacobian(new, x[: self.n]), casadi.jacobian(new, c[end - self.k : end]))
            return casadi.Function("back", [x, c], [new, casadi.densify(casadi.vec(by.T))])

        outputs = [("new", (self.n,)), ("slopes", (self.n, self.n + self.k))]
        return compiled("sensitivities back", self.inputs[:2], outputs, make, self.key)


__all__ = ["Instants", "StepDerivatives"]
