"""First-, second- and third-order influence coefficients of any point and link of any tree.

With s_n = [ω_n; x_n] the screw of velocity n at the point P, world axes (x_n is the velocity that a unit of velocity n
gives P), σ the incidence of `incidence`, and all indices among those that move P's body, else zero:

    G_n   = [ω_n; x_n]                                                                            (2-7), (2-62)
    H_mn  = L_m G_n:       rotational     σ_mn ω_m × ω_n
                           translational  ω_m × x_n if σ_mn, else ω_n × x_m                       (2-20), (2-84)
    D_lmn = L_l H_mn:      rotational     σ_mn (σ_lm (ω_l × ω_m) × ω_n + σ_ln ω_m × (ω_l × ω_n))
                           translational  σ_lm (ω_l × ω_m) × x_n + ω_m × H_ln if σ_mn, else the same with m, n exchanged

These are Tables 2-3 to 2-5 and their one-line rules in the errata, for joints of any number of freedoms. L_m is the
derivative along the velocity direction m, so that coefficients hold for quasi-velocities too; rotational H is not
symmetric, and neither is translational H between the quasi-velocities of one joint. Then, with a = φ̈,

    velocity      G φ̇                                                                                  (2-7)
    acceleration  G φ̈ + φ̇ᵀHφ̇                                                                          (2-27)
    jerk          G dφ̈/dt + φ̈ᵀHφ̇ + 2 φ̇ᵀHφ̈ + (φ̇ᵀDφ̇)φ̇                                          (2-44), (2-107)

Arrays have rows [angular; linear], then the indices in the order of the derivatives: H[:, m, n], D[:, l, m, n].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.errors import InputError
from polybody.formulations.influence.incidence import folded, incidence, support
from polybody.late import dataclass
from polybody.mechanism.kinematics import Pose, body_poses, frame_pose, world_maps
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism

ORDERS = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class Influence:
    """Coefficients of one point and its link: G (..., 6, n), H (..., 6, n, n), D (..., 6, n, n, n).

    H and D are None above the order that was asked for. Motions take v, a and jerk with leading dimensions alike.
    """

    G: Array
    H: Array | None = None
    D: Array | None = None

    def velocity(self, v: Array) -> Array:
        """[ω; ẋ] by (2-7)."""
        return np.einsum("...in,...n->...i", self.G, v)

    def acceleration(self, v: Array, a: Array) -> Array:
        """[ω̇; ẍ] by (2-27)."""
        H = self._needed("H", self.H, 2)
        return np.einsum("...in,...n->...i", self.G, a) + np.einsum("...imn,...m,...n->...i", H, v, v)

    def jerk(self, v: Array, a: Array, jerk: Array) -> Array:
        """The third-order motion by (2-44), in the form (2-107) that needs no symmetry of H."""
        H, D = self._needed("H", self.H, 2), self._needed("D", self.D, 3)
        Dv = np.einsum("...ilmn,...n->...ilm", D, v)
        mixed = np.einsum("...imn,...m,...n->...i", H, a, v) + 2 * np.einsum("...imn,...m,...n->...i", H, v, a)
        cubic = np.einsum("...ilm,...l,...m->...i", Dv, v, v)
        return np.einsum("...in,...n->...i", self.G, jerk) + mixed + cubic

    @staticmethod
    def _needed(name: str, values: Array | None, order: int) -> Array:
        if values is None:
            raise InputError(f"{name} was not computed; ask for influence coefficients of order {order} or more")
        return values


@dataclass(frozen=True, eq=False)
class Configured:
    """A mechanism at one configuration: what the coefficients of all its points share."""

    mechanism: Mechanism
    poses: list[Pose]
    maps: list[Array]
    sigma: Array
    domain: Domain


def configured(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Configured:
    """Poses and world screws at q, and the incidence."""
    poses = body_poses(mechanism, q, domain=domain)
    maps = world_maps(mechanism, q, poses, domain=domain)
    return Configured(mechanism, poses, maps, incidence(mechanism), domain)


def local_coefficients(at: Configured, body: int, point: Array, order: int) -> tuple[Array, list[Array]]:
    """([velocities that move the body], [G, H, D up to the order]) of a body's point at world position `point`."""
    columns, found = column_coefficients(at, body, point, order)
    velocities = at.mechanism.slots[columns]
    own, slots = np.unique(velocities, return_inverse=True)
    if len(own) == len(velocities):
        return velocities, found
    return own, [folded(x, slots, len(own), k + 1, domain=at.domain) for k, x in enumerate(found)]


def column_coefficients(at: Configured, body: int, point: Array, order: int) -> tuple[Array, list[Array]]:
    """The same over columns: ([columns that move the body], [G, H, D])."""
    domain, columns = at.domain, support(at.mechanism, body)
    supports = () if body == GROUND else at.mechanism.supports[body]
    screws = np.concatenate([domain.zeros(6, 0), *(at.maps[i] for i in supports)], axis=1)
    found = [np.concatenate([screws[:3], screws[3:] + cross(screws[:3], point[:, None])])]
    if order > 1:
        sigma = domain.array(at.sigma[columns[:, None], columns].astype(int))
        found.append(second_order(found[0], sigma, domain))
        if order > 2:
            found.append(third_order(found[0], found[1], sigma, domain))
    return columns, found


def second_order(G: Array, sigma: Array, domain: Domain) -> Array:
    """H from G: rotational σ_mn ω_m × ω_n, translational ω_m × x_n or ω_n × x_m."""
    omega, x = G[:3], G[3:]
    one = domain.const(1)
    turned = cross(omega[:, :, None], x[:, None, :])
    linear = turned * sigma + np.swapaxes(turned, 1, 2) * (one - sigma)
    angular = cross(omega[:, :, None], omega[:, None, :]) * sigma
    return np.concatenate([angular, linear])


def third_order(G: Array, H: Array, sigma: Array, domain: Domain) -> Array:
    """D from G and H; the derivative of each factor of H in turn."""
    omega, x = G[:3], G[3:]
    one = domain.const(1)
    turn, shift = H[:3], H[3:]  # turn[:, l, m] = L_l ω_m,  shift[:, l, n] = L_l x_n

    def derivative(second: Array, second_rate: Array) -> Array:
        """L_l (ω_m × y_n) = (L_l ω_m) × y_n + ω_m × (L_l y_n), indices l, m, n."""
        return cross(turn[:, :, :, None], second[:, None, None, :]) + cross(
            omega[:, None, :, None], second_rate[:, :, None, :]
        )

    linear = derivative(x, shift)
    linear = linear * sigma + np.swapaxes(linear, 2, 3) * (one - sigma)
    angular = derivative(omega, turn) * sigma
    return np.concatenate([angular, linear])


def spread(local: Array, indices: Array, nv: int, domain: Domain) -> Array:
    """Local coefficients put into arrays over all nv velocities."""
    full = domain.zeros(6, *(nv for _ in range(local.ndim - 1)))
    grid = np.meshgrid(*(indices for _ in range(local.ndim - 1)), indexing="ij", sparse=True)
    full[(slice(None), *grid)] = local
    return full


def check_order(order: Any) -> int:
    """The order as a number from 1 to 3."""
    if order not in ORDERS:
        raise InputError(f"order is {order!r}, expected 1 (G), 2 (G and H) or 3 (G, H and D)")
    return int(order)


def column_influence(
    mechanism: Mechanism, q: Array, frame: BodyFrame, order: int = 3, *, domain: Domain = FLOAT
) -> Influence:
    """The coefficients of `influence` with an index for each column of all joints: what `higher_orders` starts from."""
    at = configured(mechanism, q, domain=domain)
    _, p = frame_pose(frame, at.poses, domain=domain)
    columns, found = column_coefficients(at, frame.body, p, check_order(order))
    return Influence(*(spread(x, columns, len(mechanism.slots), domain) for x in found))


def point_influence(at: Configured, body: int, point: Array, order: int = 3) -> Influence:
    """Coefficients of the point of a body that is at world position `point`."""
    indices, found = local_coefficients(at, body, point, check_order(order))
    return Influence(*(spread(x, indices, at.mechanism.nv, at.domain) for x in found))


def higher_orders(mechanism: Mechanism, known: Influence, order: int) -> Influence:
    """The coefficients of a body's point up to `order`, from G (and H where known), over leading dimensions; numbers.

    What is known is over the columns of all joints (`column_influence`), the result over velocities. Columns that do
    not move the body are zero in G, and so in everything made of it: no index sets are needed.
    """
    if order == 1 or (order == 2 and known.H is not None):
        return _over_velocities(mechanism, known)
    sigma = incidence(mechanism).astype(float)[..., None]  # states go last, as the third index of every array
    lead = known.G.shape[:-2]

    def states_last(x: Array, indices: int) -> Array:
        return np.moveaxis(x.reshape(-1, *x.shape[len(lead) :]), 0, indices)

    def states_first(x: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(x, -1, 0)).reshape(*lead, *x.shape[:-1])

    G = states_last(known.G, 2)
    H = second_order(G, sigma, FLOAT) if known.H is None else states_last(known.H, 3)
    D = states_first(third_order(G, H, sigma, FLOAT)) if order == 3 else None
    return _over_velocities(mechanism, Influence(known.G, states_first(H) if known.H is None else known.H, D))


def _over_velocities(mechanism: Mechanism, known: Influence) -> Influence:
    """Coefficients over columns as those over velocities, where some joints share theirs."""
    if not mechanism.followers:
        return known
    parts = [x for x in (known.G, known.H, known.D) if x is not None]
    return Influence(*(folded(x, mechanism.slots, mechanism.nv, k + 1) for k, x in enumerate(parts)))


def influence(
    mechanism: Mechanism, q: Array, frame: BodyFrame, order: int = 3, *, domain: Domain = FLOAT
) -> Influence:
    """G, H, D of a frame's origin and of the link that carries it, world axes."""
    at = configured(mechanism, q, domain=domain)
    _, p = frame_pose(frame, at.poses, domain=domain)
    return point_influence(at, frame.body, p, order)


def center_influence(mechanism: Mechanism, q: Array, order: int = 3, *, domain: Domain = FLOAT) -> Influence:
    """Coefficients of the centre of mass of all moving bodies; the angular rows are zero, for it belongs to no link."""
    at = configured(mechanism, q, domain=domain)
    mass = sum(body.mass for body in mechanism.bodies)
    if mass == 0:
        raise InputError(f"{mechanism.name!r} has no mass, so it has no centre of mass")
    return center_orders(mechanism, center_columns(at, mass), check_order(order), domain=domain)


def center_columns(at: Configured, mass: Any) -> Array:
    """[ω_n; X_n] of every column, 6×columns, with X_n the velocity of the centre of mass along column n: of bodies k
    with masses m_k at c_k, Σ m_k x_n(c_k) / m = (m_n v_n + ω_n × Σ m_k c_k) / m over what the column moves."""
    m, domain = at.mechanism, at.domain
    count = len(m.slots)
    weight, moment = domain.zeros(count), domain.zeros(3, count)
    for body, (R, p) in zip(m.bodies, at.poses, strict=True):
        columns, own = support(m, body.index), domain.const(body.mass)
        weight[columns] = weight[columns] + own
        moment[:, columns] = moment[:, columns] + ((p + R @ domain.array(body.com)) * own)[:, None]
    screws = np.concatenate([domain.zeros(6, 0), *at.maps], axis=1)
    return np.concatenate([screws[:3], (screws[3:] * weight + cross(screws[:3], moment)) / domain.const(mass)])


def center_orders(mechanism: Mechanism, columns: Array, order: int, *, domain: Domain = FLOAT) -> Influence:
    """The coefficients of the centre of mass from `center_columns`, which may have states as a third index.

    Of two columns that move a common body one moves all that the other does, so that H and D are those of a point with
    X in the place of x where both do (m and n; a column l that moves nothing of n has L_l X_n = 0), and zero elsewhere.
    """
    count = len(mechanism.slots)
    moved = np.zeros((len(mechanism.bodies), count), dtype=int)
    for body in mechanism.bodies:
        moved[body.index, support(mechanism, body.index)] = 1
    further = (1,) * (columns.ndim - 2)
    sigma, both = (domain.array(x.astype(int)).reshape(count, count, *further)
                   for x in (incidence(mechanism), moved.T @ moved > 0))  # fmt: skip
    none = domain.zeros(3, *columns.shape[1:])
    found = [np.concatenate([none, columns[3:]])]
    if order > 1:
        H = second_order(columns, sigma, domain)
        H = np.concatenate([H[:3], H[3:] * both])
        found.append(np.concatenate([domain.zeros(*H[:3].shape), H[3:]]))
        if order > 2:
            D = third_order(columns, H, sigma, domain)[3:] * both
            found.append(np.concatenate([domain.zeros(*D.shape), D]))
    if mechanism.followers:
        found = [_folded(mechanism, x, k + 1, domain) for k, x in enumerate(found)]
    return Influence(*found)


def _folded(mechanism: Mechanism, array: Array, indices: int, domain: Domain) -> Array:
    """Axes 1 to `indices` summed over the columns of each velocity; states may follow them."""
    last = np.moveaxis(array, range(1, indices + 1), range(-indices, 0))
    summed = folded(last, mechanism.slots, mechanism.nv, indices, domain=domain)
    return np.moveaxis(summed, range(-indices, 0), range(1, indices + 1))


def higher_center_orders(mechanism: Mechanism, columns: Array, order: int) -> Influence:
    """`center_orders` over leading dimensions (..., 6, columns); numbers."""
    lead = columns.shape[:-2]
    found = center_orders(mechanism, np.moveaxis(columns.reshape(-1, *columns.shape[-2:]), 0, 2), order)
    parts = [x for x in (found.G, found.H, found.D) if x is not None]
    return Influence(*(np.ascontiguousarray(np.moveaxis(x, -1, 0)).reshape(*lead, *x.shape[:-1]) for x in parts))


__all__ = [
    "Configured",
    "Influence",
    "center_columns",
    "center_influence",
    "check_order",
    "column_influence",
    "configured",
    "higher_center_orders",
    "higher_orders",
    "influence",
    "local_coefficients",
    "point_influence",
]
