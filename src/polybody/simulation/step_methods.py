"""Steps of all methods taken anew for many states at once, and what each does to sensitivities S = ∂x/∂p.

A step is x₁ = Φ(x₀, z, p) with x = [q; v; i] and z what the controller remembers. Its stages are taken from its
recorded x₀ by f and its derivatives (`slopes`), for all steps at once; S then goes through them one by one,

    explicit        X_i = x₀ + h Σ_j a_ij K_j,   K_i = f(X_i)
                    S_i = S + h Σ_j a_ij K'_j,   K'_i = f_x S_i + f_p + f_z S_z
    radau (IIA)     the same with implicit stages: (1 − h A ⊗ f_x) D = 1 + h A ⊗ [0, f_p, f_z], S₁ = D [S; 1; S_z]
    semi-implicit   of the step itself, one expression
    midpoint        r(x₀, u) = 0 and M(q₁) v₁ = p₁:     u' = −r_u⁻¹ r_x,  …

followed by the way back to unit quaternions and to the loops. Where a method has an interpolant x₀ + h Σ w_i(s) K_i,
what is wanted within a step is differentiated as S + h Σ w_i(s) K'_i, and h Σ e_i K'_i with the weights of its error
estimates the error of S.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from polybody.model.tracing import compiled
from polybody.properties import cached_property
from polybody.simulation.compiled.field import Acting
from polybody.simulation.loop_slopes import Followers
from polybody.simulation.slopes import Slopes, Sloping, Turning

if TYPE_CHECKING:
    from polybody.kernels.stepping import Tableau
    from polybody.simulation.step_derivatives import StepDerivatives

Array = np.ndarray
NEWTON = 8
#: numbers of a step's D up to which those of all steps are computed together
FEW = 1200
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


class Carrying(Protocol):
    """What part of a step does to sensitivities."""

    def __call__(self, b: int, S: Array, S_z: Array) -> Array:
        """S after step b of a batch."""
        ...


@dataclass(frozen=True, eq=False)
class Matrices:
    """D = ∂x₁/∂[x₀, p(, z)] of each step."""

    D: Array
    k: int

    def __call__(self, b: int, S: Array, S_z: Array) -> Array:
        D, n = self.D[b], len(S)
        found = D[:, :n] @ S
        found += D[:, n : n + self.k]
        return found + D[:, n + self.k :] @ S_z if D.shape[1] > n + self.k else found


class Explicit:
    """The stages of an explicit method: A, the lengths of the steps, f and its derivatives at each stage."""

    def __init__(self, A: Array, h: Array, x0: Array, K: list[Array], stages: list[Slopes]) -> None:
        self.A, self.h, self.x0, self.K, self.stages = A, h, x0, K, stages
        self._last: tuple[int, Array, Array] | None = None

    def rates(self, b: int, S: Array, S_z: Array) -> Array:
        """K' of step b, (stages, numbers of S): all that is wanted of a step asks for them in turn."""
        if self._last is not None and self._last[0] == b and self._last[1] is S:
            return self._last[2]
        h, K = self.h[b], np.empty((len(self.stages), S.size))
        for i, slopes in enumerate(self.stages):
            X = S if not i else S + ((h * self.A[i, :i]) @ K[:i]).reshape(S.shape)
            K[i] = slopes.carried(b, X, S_z).ravel()
        self._last = b, S, K
        return K

    def states(self, weights: Array, of: Array) -> Array:
        """x₀ + h Σ w_i K_i of steps `of`, one for each row of weights."""
        change = np.zeros((len(of), self.x0.shape[1]))
        for w, k in zip(weights.T, self.K, strict=True):
            if w.any():
                change += w[:, None] * k[of]
        return self.x0[of] + self.h[of, None] * change

    def together(self, b: Array, n: int, width: int) -> Array:
        """D of all steps: of few numbers each, sooner done for many steps at once."""
        h, one = self.h[:, None, None], np.broadcast_to(np.eye(n, width), (len(self.h), n, width))
        K: list[Array] = []
        for row, slopes in zip(self.A, self.stages, strict=True):
            D = one + h * sum(a * k for a, k in zip(row, K, strict=False) if a) if row.any() else one
            found = slopes.dense[:, :, :n] @ D
            found[:, :, n:] += slopes.dense[:, :, n:]
            K.append(found)
        return one + h * sum(w * k for w, k in zip(b, K, strict=True) if w)


@dataclass(frozen=True, eq=False)
class Weighted:
    """S + h Σ w_i K'_i, or without S: of step `of[b]` with row b of the weights, or of step b with the only row."""

    explicit: Explicit
    weights: Array
    of: Array | None = None
    whole: bool = True

    def __call__(self, b: int, S: Array, S_z: Array) -> Array:
        step, row = (b, self.weights[0]) if self.of is None else (int(self.of[b]), self.weights[b])
        change = ((self.explicit.h[step] * row) @ self.explicit.rates(step, S, S_z)).reshape(S.shape)
        return S + change if self.whole else change


@dataclass(frozen=True, eq=False)
class Taken:
    """Steps taken anew: where they end, what they do; with an interpolant its stages, and what errors are of S."""

    x: Array
    does: Carrying
    explicit: Explicit | None = None
    errors: tuple[Carrying, ...] = ()


@dataclass(frozen=True, eq=False)
class Normalised:
    """Division of the quaternion at k by its length."""

    k: int
    unit: Array
    length: Array

    def __call__(self, b: int, S: Array, S_z: Array) -> Array:
        S, part, u = S.copy(), slice(self.k, self.k + 4), self.unit[b]
        S[part] = (S[part] - np.outer(u, u @ S[part])) / self.length[b]
        return S


@dataclass(frozen=True, eq=False)
class Closed:
    """The way back to loops: dependent joints follow."""

    nq: int
    nv: int
    plain: tuple[Array, Array]
    turning: tuple[Turning, ...]
    followers: Followers

    def __call__(self, b: int, S: Array, S_z: Array) -> Array:
        (plain_q, plain_v), nq, end = self.plain, self.nq, self.nq + self.nv
        S, d = S.copy(), np.empty((self.nv, S.shape[1]))
        d[plain_v] = S[plain_q]
        for x in self.turning:
            d[x.v.start - nq : x.v.stop - nq] = x.back[b] @ S[x.q]
        d, S[nq:end] = self.followers(b, d, S[nq:end])
        S[plain_q] = d[plain_v]
        for x in self.turning:
            S[x.q] = x.gamma[b] @ d[x.v.start - nq : x.v.stop - nq]
        return S


class Field:
    """The steps of a method in one mode, and what they do to sensitivities."""

    def __init__(self, of: StepDerivatives, acting: Acting) -> None:
        self.of, self.acting, self.n, self.k, self.m = of, acting, of.n, of.k, of.m
        self.width = self.n + self.k + self.m
        self.inputs = [("x", acting.size + 1), ("c", len(acting.constants)), ("row", of.control.width + of.m)]
        model = of.problem.model
        self.key = f"{acting.key}:{model.engine.constraints.source.digest}:{len(acting.law.constants)}"
        self.slopes = Sloping(of, acting, self.inputs, self.key)

    # Steps: (x₁, what they do) before the way back to the manifold.

    def explicit(self, tableau: Tableau, s: Batch, inside: bool = False) -> Taken:
        """`inside`: with the stages of the interpolant."""
        x0, h, n = s.y0[:, : self.n], s.h[:, None], tableau.stages
        count = tableau.dense.shape[1] if inside and tableau.dense is not None else n
        A = tableau.rows[:count, :count]  # A, and for the interpolant b, the end of the step, and the rows `extra`

        def state(K: list[Array]) -> Array:
            x = x0
            for a, k in zip(A[len(K)], K, strict=False):
                if a:
                    x = x + a * h * k
            return x

        K, stages = self.slopes.stages(s.t, s.c, s.z, A.sum(axis=1)[:, None] * s.h, state)
        found, b = Explicit(A, s.h, x0, K, stages), np.pad(tableau.b, (0, count - n))
        x = found.states(np.broadcast_to(b, (len(s), count)), np.arange(len(s)))
        if count > n and tableau.errors is not None:
            errors = np.pad(tableau.errors[:, :n], ((0, 0), (0, count - n)))
            of_S = tuple(Weighted(found, row[None], whole=False) for row in errors)
            return Taken(x, Weighted(found, b[None]), found, of_S)
        few = self.n * self.width <= FEW
        return Taken(x, Matrices(found.together(b, self.n, self.width), self.k) if few else Weighted(found, b[None]))

    def implicit(self, s: Batch) -> Taken:
        n, count, parts = self.n, len(s), RADAU.sum(axis=1)
        x0, last, h = s.y0[:, :n], s.y1[:, :n], s.h[:, None]
        X = [x0 + part * (last - x0) for part in parts]
        found: list[Array] = []

        def stages() -> tuple[list[Array], list[Array]]:
            pairs = [self.slopes(s.t + part * s.h, x, s.c, s.z) for part, x in zip(parts, X, strict=True)]
            return [f for f, _ in pairs], [slope.dense for _, slope in pairs]

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
            D = np.broadcast_to(np.eye(n, self.width), (count, n, self.width)).copy()
            for j in range(3):
                D[:, :, n:] += RADAU[i, j] * h[:, :, None] * slopes[j][:, :, n:]
            found.append(D)
        D = np.linalg.solve(matrix(slopes), np.concatenate(found, axis=1))
        return Taken(X[2], Matrices(D[:, 2 * n :], self.k))

    def leap(self, s: Batch) -> Taken:
        x, row = self._whole(s, s.t)
        new, D = self._leap(x, s.h[:, None], s.c, row)
        return Taken(new, Matrices(D, self.k))

    def _whole(self, s: Batch, t: Array) -> tuple[Array, Array]:
        """([x; W; t₀], row of the times t)."""
        x = np.concatenate([s.y0[:, : self.n], np.zeros((len(s), 1)), s.t[:, None]], axis=1)
        return x, np.concatenate([self.of.control.rows(t), s.z], axis=1)

    @cached_property
    def _leap(self) -> Any:
        import casadi

        def make() -> Any:
            field, leap = self.acting.text("field"), self.acting.text("leap")
            x, c, row = field.sx_in()
            h = casadi.SX.sym("h", 1)
            new = leap(x, field.call([x, c, row])[0], h, c, row)[: self.n]
            return casadi.Function("leap", [x, h, c, row], [new, self.slopes.by(new, x, c, row)])

        x, c, row = self.inputs
        outputs = [("new", (self.n,)), ("slopes", (self.n, self.width))]
        return compiled("sensitivities leap", [x, ("h", 1), c, row], outputs, make, self.key)

    def middle(self, s: Batch) -> Taken:
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
        D = np.concatenate([q1_x + q1_u @ u_x, v1_x], axis=1)
        return Taken(np.concatenate([q1, v1], axis=1), Matrices(D, self.k))

    @cached_property
    def _middle(self) -> Any:
        import casadi

        nq, nv, w = self.of.problem.nq, self.of.problem.nv, self.width

        def make() -> Any:
            middle, ends = self.acting.text("middle"), self.acting.text("ends")
            x, u, h, c, row = middle.sx_in()
            v1 = casadi.SX.sym("v1", nv)
            r = middle.call([x, u, h, c, row])[0]
            new, p, M = ends.call([x, u, h, c, row])
            M, q1 = casadi.reshape(M, nv, nv), new[:nq]
            gap = M @ v1 - p
            found: list[Any] = []
            for value in (r, gap):
                by_u = casadi.densify(casadi.vec(casadi.jacobian(value, u).T))
                found += [value, by_u, self.slopes.by(value, x, c, row)]
            by_u = casadi.densify(casadi.vec(casadi.jacobian(q1, u).T))
            found += [casadi.densify(casadi.vec(M)), q1, by_u, self.slopes.by(q1, x, c, row)]
            return casadi.Function("middle", [x, u, v1, h, c, row], found)

        x, c, row = self.inputs
        outputs = [
            ("r", (nv,)), ("r_u", (nv, nv)), ("r_x", (nv, w)), ("gap", (nv,)), ("gap_u", (nv, nv)), ("gap_x", (nv, w)),
            ("M", (nv, nv)), ("q1", (nq,)), ("q1_u", (nq, nv)), ("q1_x", (nq, w)),
        ]  # fmt: skip
        inputs = [x, ("u", nv), ("v1", nv), ("h", 1), c, row]
        return compiled("sensitivities middle", inputs, outputs, make, self.key)

    # The way back to the manifold.

    def returned(self, t: Array, c: Array, x: Array, done: Carrying) -> tuple[Array, list[Carrying]]:
        """(states x of times t put back, what is done to S on the way)."""
        x, maps = x.copy(), [done]
        for k in self.of.problem._quaternions:
            length = np.linalg.norm(x[:, k : k + 4], axis=1)
            x[:, k : k + 4] /= length[:, None]
            maps.append(Normalised(k, x[:, k : k + 4].copy(), length))
        if self.acting.plan is None:
            return x, maps
        if self.slopes.is_structured:
            problem, sloping = self.of.problem, self.slopes
            nq, nv = problem.nq, problem.nv
            q, v, followers = sloping.loops.closed(np.ascontiguousarray(x[:, :nq]), x[:, nq : nq + nv])
            x[:, :nq], x[:, nq : nq + nv] = q, v
            plain_q, plain_v = sloping.plain
            return x, [*maps, Closed(nq, nv, (plain_q, plain_v), sloping.turning(q, v)[1], followers)]
        for _ in range(2):
            full = np.concatenate([x, np.zeros((len(x), 1)), t[:, None]], axis=1)
            x, D = self._back(full, c)
            maps.append(Matrices(D, self.k))
        return x, maps

    @cached_property
    def _back(self) -> Any:
        import casadi

        def make() -> Any:
            back = self.acting.text("back")
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


__all__ = ["Batch", "Carrying", "Field", "Taken", "Weighted"]
