"""Structural analysis of F(z, ż, …, t) = 0: Pantelides' algorithm, dummy derivatives, and the order of solution.

Which equations contain which variables is all that is looked at (and, for the choice of dummy derivatives, the values
of the derivatives at one point). Variables are (j, k): the k-th derivative of unknown j.

1. A perfect matching of equations to unknowns must exist (derivatives count as their variable): else some unknowns have
   too few equations, and others too many; both sets are reported.
2. Pantelides: an equation that finds no highest derivative of its own is differentiated, with all that compete with it.
3. Dummy derivatives (Mattsson and Söderlind): for each differentiated equation one derivative becomes an unknown of its
   own right, so that the equation and its derivatives all hold. What is left as derivative of something are the states.
   Where the derivatives depend on the configuration the choice may become singular along the motion (x² + y² = l² with
   x as the state, at y = 0): `Pivots` reports how good it is, and which would be better; the run then changes it.
4. Block lower triangular order: strongly connected sets of equations, each solvable once those before it are.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polybody.errors import PolybodyError

Key = tuple[int, int]


class SingularStructure(PolybodyError):
    """No perfect matching: equations `extra` are too many for their unknowns, unknowns `open` have too few."""

    def __init__(self, extra: Sequence[int], open_: Sequence[int]) -> None:
        super().__init__("the equations are structurally singular")
        self.extra, self.open = list(extra), list(open_)


class RedundantConstraints(PolybodyError):
    """Constraints among states of which one follows from the others: the equations that take part."""

    def __init__(self, equations: Sequence[int]) -> None:
        super().__init__("constraints among states are redundant")
        self.equations = list(equations)


@dataclass
class Reduced:
    """Equations with their derivatives, the states, the unknowns, and blocks (equations, unknowns) in order."""

    symbols: dict[Key, Any]
    equations: list[Any]
    origin: list[int]  # of each equation: the original one
    states: list[Key]
    unknowns: list[Key]
    index: int  # how often the most differentiated equation was, plus one
    pivots: Pivots | None = None  # what the choice of states depends on, where constraints among states were found
    invariants: list[Any] = field(default_factory=list)  # constraints among the states, where no choice was made

    @property
    def orders(self) -> list[int]:
        """How often each equation is differentiated."""
        return [self.origin[:e].count(original) for e, original in enumerate(self.origin)]


#: derivatives that become unknowns of their own, level by level: the highest ones first
Choice = tuple[tuple[Key, ...], ...]


@dataclass
class Level:
    """Constraints among states at one level of differentiation: ∂/∂(derivatives that may be chosen), and the chosen."""

    slopes: Any  # SX, rows of constraints
    keys: list[Key]  # of its columns
    chosen: list[int]

    def scaled(self, J: np.ndarray) -> np.ndarray:
        """Rows of the slopes' values, each with its largest entry one."""
        return J / np.maximum(np.abs(J).max(axis=1, keepdims=True), 1e-300)


@dataclass
class Pivots:
    """The choice of dummy derivatives, and how good it is elsewhere."""

    levels: list[Level]

    POOR = 0.3  # of the best choice's smallest singular value

    @property
    def constant(self) -> bool:
        """Whether the choice is as good in every configuration."""
        import casadi as ca

        return not any(ca.symvar(level.slopes) for level in self.levels)

    def better(self, values: Sequence[np.ndarray]) -> Choice | None:
        """The choice to take in place of this one where the slopes have these values, if this one is poor there."""
        poor, choice, allowed = False, list[tuple[Key, ...]](), None
        for level, J in zip(self.levels, values, strict=True):
            A = level.scaled(J)
            columns = [c for c, key in enumerate(level.keys) if allowed is None or key in allowed]
            best = [columns[c] for c in independent_columns(A[:, columns], share=0.5)]
            if len(best) < len(A):  # singular whatever is chosen: nothing helps here
                return None
            own, other = (np.linalg.svd(A[:, c], compute_uv=False)[-1] for c in (level.chosen, best))
            poor = poor or own < self.POOR * other
            keys = [level.keys[c] for c in best]
            choice.append(tuple(sorted(keys)))
            allowed = {(j, k - 1) for j, k in keys}
        return tuple(choice) if poor else None


def incidence(expressions: Sequence[Any], symbols: Sequence[Any]) -> list[set[int]]:
    """For each expression the positions of the symbols it contains."""
    import casadi as ca

    if not expressions or not symbols:
        return [set() for _ in expressions]
    # `jacobian` finds the pattern first, and takes a hundred times longer where a model's dynamics are in it.
    pattern = ca.jacobian_sparsity(ca.vertcat(*expressions), ca.vertcat(*symbols))
    found: list[set[int]] = [set() for _ in expressions]
    for row, column in zip(*pattern.get_triplet(), strict=True):
        found[row].add(column)
    return found


def matching(rows: Sequence[set[int]], columns: int) -> list[int]:
    """For each row a column of its own, or −1, as many as there can be.

    Kuhn's augmenting paths: a row takes a free column of its own, or one whose row finds another. (SciPy's function
    takes a quarter of a second to import.)
    """
    assigned, owner = [-1] * len(rows), [-1] * columns
    for start in range(len(rows)):
        came: dict[int, int] = {}  # column: the row from which it was reached
        stack, end = [start], -1
        while stack and end < 0:
            i = stack.pop()
            for j in sorted(rows[i]):
                if j not in came:
                    came[j] = i
                    if owner[j] < 0:
                        end = j
                        break
                    stack.append(owner[j])
        while end >= 0:  # back along the path: every row on it takes the column that it reached
            i = came[end]
            assigned[i], owner[end], end = end, i, assigned[i]
    return assigned


def require_matching(rows: Sequence[set[int]], columns: int) -> None:
    """Raise `SingularStructure` where not every row has a column, with the sets at fault (Dulmage and Mendelsohn)."""
    assigned = matching(rows, columns)
    free_rows = [i for i, j in enumerate(assigned) if j < 0]
    free_columns = set(range(columns)) - {j for j in assigned if j >= 0}
    if not free_rows and not free_columns:
        return
    owner = {j: i for i, j in enumerate(assigned) if j >= 0}
    extra, stack = set(free_rows), list(free_rows)
    while stack:
        for j in rows[stack.pop()]:
            if owner.get(j) is not None and owner[j] not in extra:
                extra.add(owner[j])
                stack.append(owner[j])
    open_, waiting = set(free_columns), list(free_columns)
    while waiting:
        j = waiting.pop()
        for i, row in enumerate(rows):
            if j in row and assigned[i] >= 0 and assigned[i] not in open_:
                open_.add(assigned[i])
                waiting.append(assigned[i])
    raise SingularStructure(sorted(extra), sorted(open_))


class Pantelides:
    """Differentiates equations until each has a highest derivative of its own."""

    MOST = 8  # derivatives of one equation; more is a mistake

    def __init__(self, equations: Sequence[Any], symbols: dict[Key, Any], differentiate: Callable[..., Any],
                 fresh: Callable[[Key], Any]) -> None:
        self.equations, self.symbols = list(equations), dict(symbols)
        self.differentiate, self.fresh = differentiate, fresh
        self.origin = list(range(len(self.equations)))
        self.chains = [[i] for i in range(len(self.equations))]
        found = self._used(range(len(self.equations)))
        self.highest: dict[int, int] = {}
        for j, k in {key for keys in found for key in keys}:
            self.highest[j] = max(k, self.highest.get(j, 0))
        self.keys = dict(enumerate(found))
        self.assigned: dict[Key, int] = {}

    def _used(self, which: Any) -> list[set[Key]]:
        keys = list(self.symbols)
        rows = incidence([self.equations[e] for e in which], [self.symbols[key] for key in keys])
        return [{keys[c] for c in row} for row in rows]

    def run(self) -> None:
        for i in range(len(self.chains)):
            e = i
            while True:
                rows: set[int] = set()
                columns: set[Key] = set()
                if self._augment(e, rows, columns):
                    break
                self._raise_order(rows, columns)
                e = self.chains[self.origin[e]][-1]

    def _augment(self, e: int, rows: set[int], columns: set[Key]) -> bool:
        rows.add(e)
        ready = sorted(key for key in self.keys[e] if key[1] == self.highest[key[0]])
        for key in ready:
            if key not in self.assigned:
                self.assigned[key] = e
                return True
        for key in ready:
            if key not in columns:
                columns.add(key)
                if self._augment(self.assigned[key], rows, columns):
                    self.assigned[key] = e
                    return True
        return False

    def _raise_order(self, rows: set[int], columns: set[Key]) -> None:
        for j, k in columns:
            self.highest[j] = k + 1
            if (j, k + 1) not in self.symbols:
                self.symbols[(j, k + 1)] = self.fresh((j, k + 1))
        following = {}
        for e in sorted(rows):
            chain = self.chains[self.origin[e]]
            if len(chain) > self.MOST:
                raise PolybodyError("an equation would have to be differentiated without end; the network is singular")
            self.equations.append(self.differentiate(self.equations[e], self.symbols))
            self.origin.append(self.origin[e])
            new = len(self.equations) - 1
            chain.append(new)
            following[e] = new
        for new, keys in zip(following.values(), self._used(list(following.values())), strict=True):
            self.keys[new] = keys
        for j, k in columns:
            self.assigned[(j, k + 1)] = following[self.assigned[(j, k)]]


def reduce_index(
    equations: Sequence[Any], symbols: dict[Key, Any], keep: Sequence[int], differentiate: Callable[..., Any],
    fresh: Callable[[Key], Any], values: Callable[[Any], Any], wanted: Choice = (), every: bool = False,
) -> Reduced:  # fmt: skip
    """The equations with what must be differentiated of them, and states chosen; `keep` says which unknowns should stay
    states (higher: rather), `values` evaluates a matrix of expressions at a point in general position. `wanted` are
    dummy derivatives to be chosen first. With `every` nothing is chosen: all but the highest derivatives are states,
    the last derivative of each equation gives those, and what was differentiated are invariants: an equation that was
    differentiated c times has variables below their highest derivatives only, in all but its last derivative."""
    count = 1 + max((j for j, _ in symbols), default=-1)
    keys = list(symbols)
    rows = [{keys[c][0] for c in row} for row in incidence(equations, [symbols[k] for k in keys])]
    require_matching(rows, count)
    work = Pantelides(equations, symbols, differentiate, fresh)
    work.run()
    dummies, pivots = (set[Key](), None) if every else _dummy_derivatives(work, keep, values, wanted)
    states = [(j, k) for j, top in work.highest.items() for k in range(top) if (j, k + 1) not in dummies]
    known = set(states)
    keys = [(j, k) for j in range(count) for k in range(work.highest.get(j, 0) + 1)]
    unknowns = [key for key in keys if key not in known]
    index = max(len(chain) for chain in work.chains) if work.chains else 1
    symbols = {key: work.symbols[key] if key in work.symbols else fresh(key) for key in keys}
    if not every:
        return Reduced(symbols, work.equations, work.origin, sorted(states), unknowns, index, pivots)
    last = [chain[-1] for chain in work.chains]
    invariants = [work.equations[e] for chain in work.chains for e in chain[:-1]]
    return Reduced(symbols, [work.equations[e] for e in last], [work.origin[e] for e in last], sorted(states), unknowns,
                   index, None, invariants)


def _dummy_derivatives(
    work: Pantelides, keep: Sequence[int], values: Callable[[Any], Any], wanted: Choice
) -> tuple[set[Key], Pivots | None]:
    """The derivatives that become unknowns of their own, and what that choice depends on."""
    import casadi as ca

    level = {i: len(chain) - 1 for i, chain in enumerate(work.chains) if len(chain) > 1}
    pool = [(j, k) for j, k in work.highest.items() if k > 0]
    allowed, dummies, levels = set(pool), set[Key](), list[Level]()
    while level:
        rows = [work.equations[work.chains[i][k]] for i, k in level.items()]
        first = set(wanted[len(levels)]) if len(levels) < len(wanted) else set[Key]()
        order = sorted(pool, key=lambda key: (key not in first, keep[key[0]], -key[1], key[0]))
        slopes = ca.jacobian(ca.vertcat(*rows), ca.vertcat(*(work.symbols[key] for key in order)))
        made = Level(slopes, order, [])
        columns = [c for c, key in enumerate(order) if key in allowed]
        J = values(slopes)
        made.chosen = [columns[c] for c in independent_columns(made.scaled(J)[:, columns])]
        if len(made.chosen) < len(rows):
            U, *_ = np.linalg.svd(made.scaled(J[:, columns]))
            weights = np.abs(U[:, len(made.chosen) :]).max(axis=1)
            raise RedundantConstraints([i for i, w in zip(level, weights, strict=True) if w > 1e-6])
        chosen = [order[c] for c in made.chosen]
        levels.append(made)
        dummies |= set(chosen)
        pool = [(j, k - 1) for j, k in pool if k > 1]
        allowed = {(j, k - 1) for j, k in chosen if k > 1}
        level = {i: k - 1 for i, k in level.items() if k > 1}
    return dummies, Pivots(levels) if levels else None


def independent_columns(A: np.ndarray, share: float = 0.0) -> list[int]:
    """The first columns of A that are independent, as many as its rank.

    With a share, each is the first whose part outside those before it has at least that share of the largest such part.
    """
    basis, chosen = np.zeros((A.shape[0], 0)), list[int]()
    while len(chosen) < A.shape[0]:
        rest = A - basis @ (basis.T @ A)
        rest -= basis @ (basis.T @ rest)
        sizes, own = np.linalg.norm(rest, axis=0), np.linalg.norm(A, axis=0)
        ready = (sizes > 1e-7 * np.maximum(own, 1e-300)) & (own > 1e-12)
        ready[chosen] = False
        if share and ready.any():
            ready &= sizes >= share * sizes[ready].max()
        if not ready.any():
            break
        c = int(np.argmax(ready))
        basis = np.column_stack([basis, rest[:, c] / sizes[c]])
        chosen.append(c)
    return chosen


def blocks(rows: Sequence[set[int]], columns: int) -> list[tuple[list[int], list[int]]]:
    """[(rows, columns)] in an order in which each set of rows determines its columns from those before."""
    import casadi as ca

    require_matching(rows, columns)
    assigned = matching(rows, columns)
    owner = {j: i for i, j in enumerate(assigned)}
    edges = [(owner[j], i) for i, row in enumerate(rows) for j in row if owner[j] != i]
    graph = ca.Sparsity.triplet(len(rows), len(rows), [i for _, i in edges], [o for o, _ in edges])
    count, index, offset = graph.scc()  # rows that determine each other
    sets = [sorted(index[offset[c] : offset[c + 1]]) for c in range(count)]
    where = {i: c for c, members in enumerate(sets) for i in members}
    needed: list[set[int]] = [set() for _ in sets]
    for o, i in edges:
        if where[o] != where[i]:
            needed[where[i]].add(where[o])
    needing: list[list[int]] = [[] for _ in sets]
    for c, before in enumerate(needed):
        for other in before:
            needing[other].append(c)
    left = [len(before) for before in needed]
    ready = [(sets[c][0], c) for c in range(count) if not left[c]]
    heapq.heapify(ready)  # of those that can be solved the one with the first row
    result = []
    while ready:
        _, c = heapq.heappop(ready)
        result.append((sets[c], [assigned[i] for i in sets[c]]))
        for other in needing[c]:
            left[other] -= 1
            if not left[other]:
                heapq.heappush(ready, (sets[other][0], other))
    return result


__all__ = [
    "Choice",
    "Key",
    "Level",
    "Pivots",
    "Reduced",
    "RedundantConstraints",
    "SingularStructure",
    "blocks",
    "incidence",
    "independent_columns",
    "reduce_index",
    "require_matching",
]
