"""From index-one equations to ẏ = f(y, a, u, t), 0 = g(y, a, u, t): block by block, in the order of `structure.blocks`.

A block that is linear in its unknowns is solved: with numbers as coefficients once and for all, else by elimination on
sure pivots (`formulations.network.elimination`). A nonlinear block keeps its unknowns: they are `a`, and its equations
`g`. Networks of linear parts, and models driven through torques, have none.

Structure alone does not see that terms cancel (a gyrator between a node and itself). A block of numbers that is
singular reports it: with nᵀA = 0 the combination nᵀF has none of the block's unknowns, takes the place of one of its
equations (`Assembly.combine`), and the structure is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.errors import InputError
from polybody.formulations.network.elimination import eliminate
from polybody.networks.assembly import Assembly
from polybody.networks.structure import Key, Reduced, SingularStructure, blocks, incidence

#: sums in sums in which an unknown is looked for
DEEPEST_SUM = 4


@dataclass(eq=False)
class Semiexplicit:
    """y, a and their equations as SX; `solved` are all other unknowns in terms of y, a, u and t, in order."""

    assembly: Assembly
    reduced: Reduced
    owners: list[str]
    states: list[Key]
    algebraic: list[Key]
    solved: list[tuple[Key, Any]]
    g: list[Any]
    #: models whose accelerations are solved for together with other unknowns, and that have an inverse form
    coupled_models: frozenset[str] = frozenset()

    def substituted(self, expressions: Sequence[Any]) -> list[Any]:
        """Expressions in any unknown as expressions in y, a, u and t."""
        import casadi as ca

        if not self.solved:
            return [ca.SX(e) for e in expressions]
        symbols = [self.reduced.symbols[key] for key, _ in self.solved]
        _, result = ca.substitute_inplace(symbols, [x for _, x in self.solved], [ca.SX(e) for e in expressions], False)
        return list(result)

    def rates(self) -> list[Any]:
        """ẏ."""
        return self.substituted([self.reduced.symbols[(j, k + 1)] for j, k in self.states])


class CancelledTerms(InputError):
    """A singular block: coefficients of its equations in the combination in which all its unknowns cancel."""

    def __init__(self, message: str, weights: np.ndarray) -> None:
        super().__init__(message)
        self.weights = weights


def semiexplicit(assembly: Assembly) -> Semiexplicit:
    """Solve what is linear, keep what is not; where terms cancel, equations are combined first."""
    first: InputError | None = None
    for _ in range(len(assembly.names)):
        try:
            return _solved(assembly)
        except _Cancelled as found:
            first = first or found.reason
            if not assembly.combine(found.weights):
                raise first from None
        except InputError:
            if first is not None:  # no combination helps: what the equations as they stand leave open
                raise first from None
            raise
    assert first is not None
    raise first


class _Cancelled(Exception):
    """Terms cancel in this combination {original equation: coefficient}; `reason` is what to report otherwise."""

    def __init__(self, reason: InputError, weights: dict[int, float]) -> None:
        super().__init__(str(reason))
        self.reason, self.weights = reason, weights


def _solved(assembly: Assembly) -> Semiexplicit:
    reduced, owners = assembly.reduced()
    unknowns = [reduced.symbols[key] for key in reduced.unknowns]
    rows = incidence(reduced.equations, unknowns)
    try:
        order = blocks(rows, len(unknowns))
    except SingularStructure as fault:
        parts = list(dict.fromkeys(owners[i] for i in fault.extra)) or ["?"]
        raise InputError(f"the network is singular: the equations of {', '.join(map(repr, parts))} contradict each "
                         "other or repeat themselves") from None
    models = {part.name for part in assembly.components if getattr(part, "may_invert", False)}
    numeric = {part.name for part in assembly.components if getattr(part, "numeric", False)}
    coupled = frozenset(owners[e] for block, _ in order if len(block) > 1 for e in block) & models
    if coupled:
        return Semiexplicit(assembly, reduced, owners, reduced.states, [], [], [], coupled)
    alone = [(block[0], columns[0]) for block, columns in order if len(block) == 1 and owners[block[0]] not in numeric]
    explicit = _explicit(reduced, alone)
    solved: list[tuple[Key, Any]] = []
    algebraic: list[Key] = []
    g: list[Any] = []
    for block, columns in order:
        keys = [reduced.unknowns[c] for c in columns]
        if len(block) == 1 and block[0] in explicit:
            solved.append((keys[0], explicit[block[0]]))
            continue
        residuals = [reduced.equations[e] for e in block]
        try:
            parts = [owners[e] for e in block]
            found = None if numeric.intersection(parts) else _linear(
                assembly, residuals, [reduced.symbols[k] for k in keys], parts, keys)
        except CancelledTerms as reason:
            weights = {e: float(x) for e, x in zip(block, reason.weights, strict=True) if x}
            if len({reduced.orders[e] for e in weights}) > 1:  # equations and derivatives: no combination of originals
                raise
            raise _Cancelled(reason, {reduced.origin[e]: x for e, x in weights.items()}) from None
        if found is None:
            algebraic += keys
            g += residuals
        else:
            solved += list(zip(keys, found, strict=True))
    made = Semiexplicit(assembly, reduced, owners, reduced.states, algebraic, solved, g)
    made.g = made.substituted(g)
    return made


def _explicit(reduced: Reduced, alone: Sequence[tuple[int, int]]) -> dict[int, Any]:
    """{equation: its unknown} of equations that are sums and differences of their unknown and of what is without it.

    Of the pairs (equation, unknown). Rates and forces of a robot are such; each has the whole of the dynamics in it, so
    that to find its slope would take longer than to make it.
    """
    said: dict[int, tuple[Any, Any]] = {}
    for e, column in alone:
        symbol = reduced.symbols[reduced.unknowns[column]]
        found = _rest(reduced.equations[e], symbol.element_hash(), DEEPEST_SUM)
        if found is not None:
            sign, rest = found
            said[e] = (-rest if sign > 0 else rest, symbol)
    within = incidence([x for x, _ in said.values()], [symbol for _, symbol in said.values()])
    return {e: x for k, (e, (x, _)) in enumerate(said.items()) if k not in within[k]}


def _rest(x: Any, symbol: int, depth: int) -> tuple[int, Any] | None:
    """(sign, rest) of x = ±symbol + rest, where x is a sum of few terms, one of which is the symbol of this hash."""
    import casadi as ca

    if x.is_leaf():
        return (1, ca.SX(0.0)) if x.element_hash() == symbol else None
    if not depth or x.op() not in (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG):
        return None
    if x.op() == ca.OP_NEG:
        inner = _rest(x.dep(0), symbol, depth - 1)
        return None if inner is None else (-inner[0], -inner[1])
    second = -1 if x.op() == ca.OP_SUB else 1
    first, other = x.dep(0), x.dep(1)
    if (inner := _rest(first, symbol, depth - 1)) is not None:
        return inner[0], inner[1] + second * other
    if (inner := _rest(other, symbol, depth - 1)) is not None:
        return second * inner[0], first + second * inner[1]
    return None


def _linear(
    assembly: Assembly, residuals: list[Any], symbols: list[Any], owners: list[str], keys: list[Key]
) -> list[Any] | None:
    """The unknowns of a block, or None where it is not linear in them."""
    import casadi as ca

    F, w = ca.vertcat(*residuals), ca.vertcat(*symbols)
    A = ca.jacobian(F, w)
    if ca.depends_on(A, w):
        return None
    r = ca.substitute(F, w, ca.DM.zeros(len(symbols)))
    if assembly.every and len(symbols) > 1 and ca.symvar(A):  # pivots are chosen at each state
        return None
    if not ca.symvar(A):
        return _by_numbers(assembly, np.array(ca.evalf(ca.densify(A)), dtype=float), r, owners, keys)
    if len(symbols) == 1:
        return [-r / A]
    graph: Any = domain("casadi")
    n = len(symbols)
    dense = ca.densify(A)
    matrix = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            entry = dense[i, j]
            matrix[i, j] = float(entry) if entry.is_constant() else graph.scalars(entry)[0]
    right = np.array([[x] for x in graph.scalars(ca.densify(-r))], dtype=object)
    return [graph.column(row) for row in eliminate(matrix, right, domain=graph)]


def _by_numbers(assembly: Assembly, A: np.ndarray, r: Any, owners: list[str], keys: list[Key]) -> list[Any]:
    import casadi as ca

    scale = 1 / np.maximum(np.abs(A).max(axis=1, keepdims=True), 1e-300)
    U, s, Vt = np.linalg.svd(A * scale)
    if s[-1] <= 1e-14 * max(s[0], 1e-300):
        open_ = [assembly.key_name(k) for k, x in zip(keys, Vt[-1], strict=True) if abs(x) > 1e-6]
        parts = dict.fromkeys(o for o, x in zip(owners, U[:, -1], strict=True) if abs(x) > 1e-6)
        where = f" (in the modes {assembly.mode_text()})" if assembly.modes else ""
        weights = U[:, -1] * scale.ravel()
        weights[np.abs(weights) < 1e-12 * np.abs(weights).max()] = 0.0
        raise CancelledTerms(f"the network is singular{where}: the equations of {', '.join(map(repr, parts))} leave "
                             f"{', '.join(open_)} open or contradict each other", weights)
    inverse = np.linalg.inv(A)
    inverse = inverse + inverse @ (np.eye(len(A)) - A @ inverse)  # one refinement
    rounding = 1e-15 * (np.abs(inverse) @ np.abs(A) @ np.abs(inverse))
    inverse[np.abs(inverse) < rounding] = 0.0
    return ca.vertsplit(-(ca.sparsify(ca.DM(inverse)) @ r))


__all__ = ["Semiexplicit", "semiexplicit"]
