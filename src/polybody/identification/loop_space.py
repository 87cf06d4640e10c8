"""Which combinations of parameters the motions of loops show: exact identities of the structure, on top of the tree's.

Parameters p are hidden where kinetic energy and the power of gravity vanish on every motion that the loops allow,

    Σ_k x_kᵀ I_k(p) x_k = 0,     Σ_k x_kᵀ I_k(p) g_k = 0                                                       (1)

x_k being the twist of body k and g_k the ground's direction of gravity, both in the body's axes. What the cut tree
hides (`row_space`) is hidden. Loops hide more, and each of the following is an identity whatever the configuration:

*Twists.* Cut joints carry twists as tree joints do. Along any joint between bodies a and b, tree or cut,

    x_b = X(θ) x_a + H(θ) θ̇        so       x_b ∈ span_θ X(θ) V_a + span_θ H(θ),                               (2)

and the same backwards: V_b is the intersection of these spans over all joints of b, found by repetition from V = R⁶
down; the directions Γ_b of gravity likewise. Numbers π of body b with xᵀ I(π) y = 0 for x ∈ V_b, y ∈ V_b + Γ_b have no
effect.

*Exchange.* Numbers π of body b that the joint's own motion does not show, H(θ)ᵀ I(π) y = 0 for y ∈ V_b + Γ_b, move like
T(θ) π on body a. Where T(θ) π does not depend on θ but for numbers without effect on a,

    π on b  and  −T(θ_0) π on a       together have no effect;                                                (3)

a point mass at a pin may be counted to either bar. Cut joints have the same exchange as others, in both directions.
Both kinds are repeated until nothing more is found.

*Lasting relations.* Special geometry brings more: the platform of a Delta robot does not turn, the rods of a
parallelogram move alike, couplings tie velocities. These are constant linear relations between twists and velocities,

    R [x_1; …; x_n; v] = 0      along all motions,                                                            (4)

and where they hold, (1) needs to vanish only on the null space of R: linear equations for p. Relations are statements
about the kinematics alone. Assembled configurations show them to rounding; `proofs.motions` proves them without.

Identities bound the number of base parameters from above, and the rank at sampled states bounds it from below: where
both agree, and `base_parameters` compares them, the number is exact and so are the formulas.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Domain
from polybody.identification.crossings import Across, crossings
from polybody.identification.row_space import bilinear, reach, span
from polybody.late import dataclass
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.mechanism.mechanism import GROUND, Mechanism
from polybody.model.model import Model
from polybody.model.source import Supplied
from polybody.model.tracing import trace

Array = np.ndarray
#: singular values below this part of the largest are rounding
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Link:
    """A joint as a way from body a to body b: samples of what it carries over."""

    a: int
    b: int
    X: Array  # (samples, 6, 6): twists of a to b
    T: Array  # (samples, 10, 10): inertias of b to a
    H: Array  # (samples, r, 6): the joint's own twists, as rows, in b

    def reversed(self) -> Link:
        X = np.linalg.inv(self.X)
        return Link(self.b, self.a, X, np.linalg.inv(self.T), self.H @ X.swapaxes(1, 2))


def links(mechanism: Mechanism, steps: list[Across]) -> list[Link]:
    """Every joint of the free tree, whose `joint_crossings` are given, and every cut joint, in both directions; none
    ends at the ground."""
    length = reach(mechanism)
    found = [_link(j.parent, j.index, steps[j.index]) for j in mechanism.cut().uncoupled.joints]
    for c in mechanism.closures:
        near, far = (c.a.rotation, c.a.position), (c.b.rotation, c.b.position)
        found.append(_link(c.a.body, c.b.body, crossings(c.model, near, far, length)))
    return [one for link in found for one in (link, link.reversed()) if one.b != GROUND]


def _link(a: int, b: int, steps: Across) -> Link:
    return Link(a, b, steps.X, steps.T, steps.H.swapaxes(1, 2))


def loop_space(W: Array, found: list[Link], spans: tuple[list[Array], list[Array]], unseen: list[Array]) -> Array:
    """The rows of what the loops show, given those of the cut tree: W's columns begin with ten for each body.

    `found` are the mechanism's `links`, `spans` its `twist_spans`, `unseen` what those links' own motions do not show.
    """
    V, gravity = spans
    W = _without(span(W), _ineffective(V, gravity, W.shape[1]))
    while True:
        rows = len(W)
        W = _without(W, _exchanged(found, unseen, W))
        if len(W) == rows:
            return W


def twist_spans(mechanism: Mechanism, found: list[Link]) -> tuple[list[Array], list[Array]]:
    """(V, Γ) of every body: the twists it can have, and gravity as it can see it, by (2)."""
    n, g = len(mechanism.bodies), np.concatenate([np.zeros(3), -np.asarray(mechanism.gravity, dtype=float)])[None]
    size = float(np.linalg.norm(g))
    V = [np.eye(6) for _ in range(n)] + [np.zeros((0, 6))]  # the ground's comes last: index −1
    gravity = [np.eye(6)[3:] for _ in range(n)] + [g / size if size else np.zeros((0, 6))]
    known: dict[int, tuple[int, ...]] = {}  # of each link the dimensions on both sides, after it was looked at
    while True:
        before = dict(known)
        for k, link in enumerate(found):
            a, b = link.a, link.b
            sizes = lambda a=a, b=b: (len(V[a]), len(V[b]), len(gravity[a]), len(gravity[b]))  # noqa: E731
            if known.get(k) == sizes():  # spans only shrink: these are the same
                continue
            if len(V[a]) < 6:  # else b can have every twist
                moved = [*(V[a] @ link.X.swapaxes(1, 2)), *link.H]
                V[b] = _common(V[b], span(np.concatenate(moved)))
            if len(gravity[a]) < 3:
                turned = gravity[a] @ link.X.swapaxes(1, 2)
                gravity[b] = _common(gravity[b], span(turned.reshape(-1, 6)))
            known[k] = sizes()
        if before == known:
            return V[:n], gravity[:n]


def _ineffective(V: list[Array], gravity: list[Array], columns: int) -> Array:
    """Numbers of single bodies without effect, as rows."""
    parts = [np.zeros((0, columns))]
    for k, (twists, g) in enumerate(zip(V, gravity, strict=True)):
        shown = bilinear(twists[:, None], np.concatenate([twists, g])[None]).reshape(-1, 10)
        parts.append(_placed(_null(shown), k, columns))
    return np.concatenate(parts)


def unseen_by(link: Link, spans: tuple[list[Array], list[Array]]) -> Array:
    """Numbers of body b that the joint's own motion does not show, as rows."""
    V, gravity = spans
    H = link.H[:1] if np.array_equal(link.H, np.broadcast_to(link.H[0], link.H.shape)) else link.H
    y, every = np.concatenate([V[link.b], gravity[link.b]]), span(H.reshape(-1, 6))
    pairs = bilinear(H[:, :, None], H[:, None])  # at the same place
    return _null(np.concatenate([bilinear(every[:, None], y).reshape(-1, 10), pairs.reshape(-1, 10)]))


def _exchanged(found: list[Link], unseen: list[Array], W: Array) -> Array:
    """(3) over every joint, as rows; what has no effect on a body alone is the null space of W's columns there."""
    parts = [np.zeros((0, W.shape[1]))]
    seen = {GROUND: np.eye(10)}
    for link, own in zip(found, unseen, strict=True):
        a, b = link.a, link.b
        if not len(own):
            continue
        if a not in seen:
            seen[a] = span(W[:, 10 * a : 10 * a + 10])
        changing = (seen[a] @ (link.T - link.T[0])).reshape(-1, 10)
        numbers = _null(changing @ own.T) @ own
        rows = _placed(numbers, b, W.shape[1])
        if a != GROUND:
            rows = rows - _placed(numbers @ link.T[0].T, a, W.shape[1])
        parts.append(rows)
    return np.concatenate(parts)


def related_space(W: Array, V: Array, gravity: Array, bodies: int, columns: dict[str, int]) -> Array:
    """The rows of W that motions within the span of V show: (4) as equations for p.

    V (r, 6n + nv) spans the stacked twists and velocities, `gravity` (s, 6n + 1) the stacked directions of gravity and
    a constant; `columns` are the first ones of the terms among W's. Armature and viscous friction are quadratic forms
    of velocities, an offset is paired with the constant; other friction is shared by velocities that are the same.
    """
    n6, nv = 6 * bodies, V.shape[1] - 6 * bodies
    i, j = np.triu_indices(len(V))
    k, s = (x.ravel() for x in np.indices((len(V), len(gravity))))
    shown = []
    for left, right, force in ((V[i], V[j], "armature"), (V[k], gravity[s], "offset"), (V[i], V[j], "viscous")):
        rows = np.zeros((len(left), W.shape[1]))
        if force != "viscous":
            twists, others = left[:, :n6].reshape(-1, bodies, 6), right[:, :n6].reshape(-1, bodies, 6)
            rows[:, : 10 * bodies] = bilinear(twists, others).reshape(len(left), -1)
        if force in columns:
            paired = right[:, n6:] if force != "offset" else right[:, n6:][:, :1]
            rows[:, columns[force] : columns[force] + nv] = left[:, n6:] * paired
        shown.append(rows)
    for force in columns.keys() - {"armature", "offset", "viscous"}:
        alike = _alike(V[:, n6:])
        rows = np.zeros((len(alike), W.shape[1]))
        rows[:, columns[force] : columns[force] + nv] = alike
        shown.append(rows)
    return _without(W, _null(span(np.concatenate(shown))))


def _alike(V: Array) -> Array:
    """Groups (rows of ones) of velocities, columns of V, that are each other or each other's opposites; never zero."""
    near = lambda x, y: np.abs(x - y).max(initial=0.0) < TOLERANCE  # noqa: E731
    moving = [k for k in range(V.shape[1]) if not near(V[:, k], 0.0)]
    groups = {
        tuple(j for j in moving if near(V[:, j], V[:, k]) or near(V[:, j], -V[:, k])) for k in moving
    }
    return np.array([np.isin(np.arange(V.shape[1]), group) for group in sorted(groups)], dtype=float).reshape(
        -1, V.shape[1]
    )


def lasting_motions(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """(V, Γ) of `related_space`, spanned by what states (N, nq), (N, nv) on the loops show; their null space is (4)."""
    m = model.mechanism
    g = -np.asarray(m.gravity, dtype=float) / (float(np.linalg.norm(m.gravity)) or 1.0)
    twists, rotations = _moving(model)(q, v)
    seen = np.concatenate([np.zeros((len(q), len(m.bodies), 3)), g @ rotations], axis=-1)
    motions = np.concatenate([(twists / [1, 1, 1, *[reach(m)] * 3]).reshape(len(q), -1), v], axis=1)
    directions = np.concatenate([seen.reshape(len(q), -1), np.ones((len(q), 1))], axis=1)
    return span(motions / np.linalg.norm(motions, axis=1, keepdims=True)), span(directions)


def _moving(model: Model) -> Supplied:
    """(q, v) -> (twists of all bodies in their axes at their origins, rotations of all bodies)."""
    tree = model.engine.tree
    m, n = tree.traced_mechanism, len(model.mechanism.bodies)
    inputs, outputs = [("q", m.nq), ("v", m.nv)], [("twists", (n, 6)), ("rotations", (n, 3, 3))]

    def text(q: Array, v: Array, *, domain: Domain) -> tuple[Array, Array]:
        poses = body_poses(m, q, domain=domain)
        return np.array(body_twists(m, q, v, domain=domain)), np.array([R for R, _ in poses])

    return tree.compile("motions of bodies", inputs, outputs, lambda: trace("bodies", inputs, text, m.symbols))


def _without(W: Array, hidden: Array) -> Array:
    """The rows of W's span that hidden directions do not change."""
    if not len(hidden) or not len(W):
        return W
    return _null((W @ hidden.T).T) @ W


def _common(A: Array, B: Array) -> Array:
    """The intersection of two spans of orthonormal rows."""
    return A if len(B) == B.shape[1] else _null(np.concatenate([_null(A), _null(B)]))


def _null(rows: Array) -> Array:
    """Orthonormal rows that span the null space."""
    n = rows.shape[1]
    if not len(rows):
        return np.eye(n)
    R = np.linalg.qr(rows, mode="r") if len(rows) > n else rows
    _, s, vt = np.linalg.svd(R)
    return vt[int(np.sum(s > TOLERANCE * max(1.0, float(s[0])))) :]


def _placed(numbers: Array, body: int, columns: int) -> Array:
    rows = np.zeros((len(numbers), columns))
    rows[:, 10 * body : 10 * body + 10] = numbers
    return rows


__all__ = ["Link", "lasting_motions", "links", "loop_space", "related_space", "twist_spans", "unseen_by"]
