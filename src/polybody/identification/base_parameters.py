"""Base parameters: the combinations of parameters that joint forces show, as readable formulas.

Of a tree they follow exactly from its structure (`row_space`): Y p = C W p for a matrix W of full row rank. Columns are
taken as pivots body by body from the ground outwards, and of each body first those that joints usually show:

    p_base = W_B⁻¹ W p = p_B + β p_D,        Y p = Y_B p_base

so a base parameter is a pivot plus a combination of parameters further out. Loops and followers hide more, by
identities of the structure (`loop_space`), which give W there too: at most rank W combinations are seen. The rank of Y
at sampled states says how many are seen at least. Where both agree the answer is exact. What `proof` says of it:

    structure     identities of the joints alone
    identities    also relations of special geometry, each proved without rounding (`proofs.motions`)
    samples       relations that assembled configurations show to 16 digits and that no proof is known for; or the
                  geometry hides something that no identity explains, and W is reduced to what sampled states show
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import PolybodyError
from polybody.formulations.denoc.regressor import BODY_PARAMETERS
from polybody.identification.crossings import Across
from polybody.identification.loop_space import (
    lasting_motions,
    links,
    loop_space,
    related_space,
    twist_spans,
    unseen_by,
)
from polybody.identification.proofs.motions import proved_motions
from polybody.identification.row_space import joint_crossings, row_space, span
from polybody.identification.states import mobility_at, sample_states
from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism
from polybody.model.model import Model
from polybody.model.sets import one_set
from polybody.names import counted
from polybody.quantities.regressors import column_names, ordered_terms

Array = np.ndarray

#: the order in which a body's parameters are taken as pivots
PIVOT_ORDER = ("Izz", "Ixx", "Ixy", "Ixz", "Iyz", "mx", "my", "Iyy", "mz", "mass")
#: sampled singular values below this part of the largest count as zero
SAMPLED_TOLERANCE = 1e-8
#: configurations that suggest identities
SUGGESTING = 12
#: what rounding leaves of a singular value that is zero
ROUNDING = 1e-15
#: a column that differs from a combination of earlier ones by less than this part is one
PIVOT_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """p_base = matrix @ p, and Y[..., pivots] @ p_base = Y @ p."""

    names: tuple[str, ...]  # of all parameters: the columns of model.regressor
    pivots: Array  # columns of Y that remain
    matrix: Array  # (count, parameters)
    terms: tuple[str, ...]  # joint terms beside the inertial parameters
    gap: float  # of sampled singular values, last kept over first dropped; inf where the structure alone decides
    proof: str = "structure"  # what the number rests on: structure, identities or samples
    identities: tuple[str, ...] = ()  # of special geometry, that were proved

    def __len__(self) -> int:
        return len(self.pivots)

    @property
    def exact(self) -> bool:
        """Whether identities that are proved explain all that sampled states do not show."""
        return self.proof != "samples"

    @property
    def formulas(self) -> tuple[str, ...]:
        """Each base parameter as a sum of parameters."""
        return tuple(formula(row, self.names, int(k)) for row, k in zip(self.matrix, self.pivots, strict=True))

    @property
    def invisible(self) -> tuple[str, ...]:
        """Parameters without any effect on joint forces."""
        seen = np.abs(self.matrix).max(axis=0, initial=0.0)
        return tuple(name for name, x in zip(self.names, seen, strict=True) if x == 0)

    @property
    def combined(self) -> tuple[str, ...]:
        """Parameters that show only in combination with others."""
        alone = {int(k) for row, k in zip(self.matrix, self.pivots, strict=True) if np.count_nonzero(row) == 1}
        seen = np.abs(self.matrix).max(axis=0, initial=0.0)
        return tuple(name for k, name in enumerate(self.names) if seen[k] and k not in alone)

    def values(self, p: Array) -> Array:
        """p_base of a parameter vector."""
        return self.matrix @ np.asarray(p, dtype=float)

    def __str__(self) -> str:
        lines = [f"{counted(len(self), 'base parameter')} of {len(self.names)}"]
        lines += [f"  {k + 1:3}  {text}" for k, text in enumerate(self.formulas)]
        if self.invisible:
            lines.append(f"without effect: {', '.join(self.invisible)}")
        if self.identities:
            lines.append(f"along all motions: {', '.join(self.identities)}")
        if not self.exact:
            lines.append("read from sampled configurations, not proved")
        return "\n".join(lines)


@one_set
def base_parameters(
    model: Model, terms: str | Sequence[str] = (), *, joints: Sequence[int] | None = None, seed: int = 0,
    parameters: ArrayLike | None = None,
) -> BaseParameters:
    """Base parameters: the identifiable combinations of inertial parameters and of the `terms` of `model.regressor`.

    `joints` are the velocities whose joints have the terms (default: all). The result follows from the structure. For
    loops and joints that follow others its number is compared with the rank at sampled states (`seed`), with `gap` the
    gap of their singular values. `proof` says what the number rests on: "structure"; "identities" of special geometry,
    which are proved and listed (`identities`); or "samples", where `exact` is False. `parameters`, (k,), are values of
    the parameters of `model.with_parameters`, on whose geometry the combinations depend.
    """
    chosen = ordered_terms(terms)
    m = model.mechanism  # a cut tree has the digest of the whole
    key = (m.digest, m.constrained, chosen, None if joints is None else tuple(joints), seed)
    if key not in _KNOWN:
        from polybody.kernels import background

        if len(_KNOWN) >= 64:
            _KNOWN.clear()
        with background.answering():
            _KNOWN[key] = _found(model, chosen, joints, seed)
    return _KNOWN[key]


#: by everything they depend on
_KNOWN: dict[Any, BaseParameters] = {}


def _found(model: Model, chosen: tuple[str, ...], joints: Sequence[int] | None, seed: int) -> BaseParameters:
    names = column_names(model.mechanism, chosen)
    m = model.mechanism
    steps = joint_crossings(_free(model))
    W, units = _tree_rows(model, chosen, steps)
    gap, proof, identities = float("inf"), "structure", ()
    if m.constrained or m.followers:
        W, gap, proof, identities = _with_loops(model, W, units, chosen, seed, steps)
    if joints is not None:
        kept = _kept(model, chosen, joints)
        W, units, names = span(W[:, kept]), units[kept], [names[k] for k in kept]
    W = W / units  # of parameters as they are
    pivots = _pivots(W * units, model)
    K = np.linalg.solve(W[:, pivots], W)
    K[:, pivots] = np.eye(len(pivots))
    weight = np.abs(K) * units / units[pivots][:, None]
    K[weight < 1e-9 * np.maximum(1.0, weight.max(axis=1, initial=0.0))[:, None]] = 0.0
    return BaseParameters(tuple(names), np.array(pivots, dtype=int), _tidy(K), chosen, gap, proof, identities)


def _with_loops(
    model: Model, W: Array, units: Array, terms: tuple[str, ...], seed: int, steps: list[Across]
) -> tuple[Array, float, str, tuple[str, ...]]:
    """(W, gap, proof, identities) of what loops and followers let joint forces show."""
    m, n = model.mechanism, 10 * len(model.mechanism.bodies)
    states = sample_states(model, _enough(model, len(span(W))), seed)
    Y = _stacked(model, terms, states) * units
    found = links(m, steps) if m.constrained else []
    spans = twist_spans(m, found) if m.constrained else ([], [])
    unseen = [unseen_by(link, spans) for link in found]
    if m.constrained:
        W = loop_space(W, found, spans, unseen)
    W = span(W)
    proof, identities = "structure", ()
    values, _ = _shown(Y, W)
    if _rank(values)[0] < len(W):
        q, v = _motions(model, states, seed)
        V, gravity = lasting_motions(model, q, v)
        first = {term: n + m.nv * k for k, term in enumerate(terms)}
        W = related_space(W, V, gravity, len(m.bodies), first)
        if m.constrained:
            W = loop_space(W, found, spans, unseen)
            proof, identities = _proved(model, q, V, gravity)
    values, directions = _shown(Y, W)
    rank, gap = _rank(values)
    if rank == len(W):
        return W, float(values[-1] / values[0]) / ROUNDING if rank else np.inf, proof, identities
    if gap < 10:
        raise PolybodyError(
            f"{model.name!r}: the number of base parameters cannot be determined from the sampled states (singular "
            f"values {values[rank - 1]:.1e} and {values[rank]:.1e}); its motions may be near a singular configuration"
        )
    return directions[:rank] @ W, gap, "samples", ()


def _proved(model: Model, q: Array, V: Array, gravity: Array) -> tuple[str, tuple[str, ...]]:
    """(proof, identities): whether the relations that configurations q show hold along all motions."""
    found = proved_motions(model.mechanism, q[:: max(1, len(q) // SUGGESTING)], mobility_at(model, q[0]))
    if found is None or (found.motions, found.directions) != (len(V), len(gravity)):
        return "samples", ()
    return "identities", found.relations


def _shown(Y: Array, W: Array) -> tuple[Array, Array]:
    """Singular values and directions of sampled rows within the span of the orthonormal rows of W."""
    rows = Y @ W.T
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    return s, vt


def sampled_rank(model: Model, terms: str | Sequence[str] = (), *, seed: int = 0) -> tuple[int, float]:
    """(rank of Y at sampled states, gap): what the structure must agree with."""
    chosen = ordered_terms(terms)
    _, units = _tree_rows(model, chosen, joint_crossings(_free(model)))
    states = sample_states(model, _enough(model, len(units)), seed)
    return _rank(np.linalg.svd(_stacked(model, chosen, states) * units, compute_uv=False))


def _rank(s: Array) -> tuple[int, float]:
    rank = int(np.sum(s > SAMPLED_TOLERANCE * s[0])) if len(s) else 0
    after = s[rank] if rank < len(s) else 0.0
    return rank, float(s[rank - 1] / max(after, 1e-300)) if rank else float("inf")


def _enough(model: Model, columns: int) -> int:
    """How many states show the rank of so many columns."""
    return max(20, 3 * columns // max(len(model.engine.independent), 1))


def _motions(model: Model, states: tuple[Array, Array, Array], seed: int) -> tuple[Array, Array]:
    """(q, v) of twice as many motions, and configurations, as twists with velocities, and directions of gravity, have
    dimensions: sampled states with further velocities, and further states where these do not suffice."""
    m, (q, v, _) = model.mechanism, states
    bodies, ways = len(m.bodies), max(len(model.engine.independent), 1)
    least = max(2 * (3 * bodies + 1), -(-2 * (6 * bodies + m.nv) // ways))
    if len(q) < least:
        further = sample_states(model, least - len(q), seed + 1)
        q, v = np.concatenate([q, further[0]]), np.concatenate([v, further[1]])
    more = -(-2 * (6 * bodies + m.nv) // len(q)) - 1
    again = np.repeat(q, more, axis=0)
    others = np.random.default_rng(seed + 2).normal(size=(len(again), m.nv))
    others = model.assemble_velocity(again, others) if m.constrained and more else others
    return np.concatenate([q, again]), np.concatenate([v, others])


def _stacked(model: Model, terms: tuple[str, ...], states: tuple[Array, Array, Array]) -> Array:
    """Y at sampled states, one above the other, each row of unit size."""
    Y = model.regressor(*states, terms=terms)
    return Y.reshape(-1, Y.shape[-1]) / max(float(np.abs(Y).max(initial=0.0)), 1e-300)


def _free(model: Model) -> Mechanism:
    """The cut tree with every joint free."""
    m = model.mechanism
    return m.cut().uncoupled if m.constrained else m.uncoupled


def _tree_rows(model: Model, terms: tuple[str, ...], steps: list[Across]) -> tuple[Array, Array]:
    """(W, units) of the cut tree with every joint free, with columns for all terms."""
    m = model.mechanism
    slots = not m.followers  # with followers, columns of velocities are those of leaders: none is hidden by structure
    W, units = row_space(_free(model), steps, "armature" in terms and slots, "offset" in terms and slots)
    n, nv = 10 * len(m.bodies), m.nv
    blocks = {"armature": n, "offset": n + nv * ("armature" in terms)} if slots else {}
    parts, sizes = [W[:, :n]], [units[:n]]
    rows = len(W)
    more = [t for t in terms if t not in blocks]
    for k, term in enumerate(terms):
        if term in blocks:
            parts.append(W[:, blocks[term] : blocks[term] + nv])
            sizes.append(units[blocks[term] : blocks[term] + nv])
        else:
            parts.append(np.zeros((rows, nv)))
            sizes.append(np.ones(nv))
        assert len(parts) == k + 2
    W = np.concatenate(parts, axis=1)
    apart = np.zeros((len(more) * nv, W.shape[1]))
    for k, term in enumerate(more):
        start = n + nv * terms.index(term)
        apart[k * nv : (k + 1) * nv, start : start + nv] = np.eye(nv)
    return np.concatenate([W, apart]), np.concatenate(sizes)


def _kept(model: Model, terms: tuple[str, ...], joints: Sequence[int]) -> list[int]:
    """Columns of all bodies, and of the terms of some velocities."""
    n = 10 * len(model.mechanism.bodies)
    return [*range(n), *(n + block * model.nv + int(k) for block in range(len(terms)) for k in joints)]


def _pivots(W: Array, model: Model) -> list[int]:
    """Columns that are independent of those before them, in the order of preference."""
    n = len(model.mechanism.bodies)
    order = [10 * i + BODY_PARAMETERS.index(x) for i in range(n) for x in PIVOT_ORDER]
    order += range(10 * n, W.shape[1])
    basis, found = np.zeros((0, len(W))), []
    size = max(float(np.linalg.norm(W, axis=0).max(initial=0.0)), 1e-300)
    for k in order:
        rest = W[:, k]
        for _ in range(2):  # once more, against rounding
            rest = rest - basis.T @ (basis @ rest)
        length = float(np.linalg.norm(rest))
        if length > PIVOT_TOLERANCE * size:
            basis, found = np.vstack([basis, rest / length]), [*found, k]
        if len(found) == len(W):
            break
    return sorted(found)


def _tidy(K: Array) -> Array:
    """Whole coefficients made exact."""
    whole = np.rint(K)
    return np.where(np.abs(K - whole) < 1e-9, whole, K) + 0.0


def formula(row: Array, names: Sequence[str], pivot: int | None = None) -> str:
    """ "upper.Izz + lower.Iyy + 0.16 lower.mass": a row of coefficients in words, the pivot first."""
    order: list[Any] = [k for k in np.flatnonzero(row) if k != pivot]
    order = ([] if pivot is None else [pivot]) + order
    text = ""
    for k in order:
        size, sign = abs(float(row[k])), "−" if row[k] < 0 else "+"
        factor = "" if size == 1 else f"{size:.6g} "
        text += f" {sign} {factor}{names[k]}" if text else f"{'−' if row[k] < 0 else ''}{factor}{names[k]}"
    return text or "0"


__all__ = ["BaseParameters", "base_parameters", "formula", "sampled_rank"]
