"""Regressors as quantities: joint forces, energies and momentum, linear in parameters.

    tau + passive_forces = Y p + armature a,        columns body by body, `BODY_PARAMETERS` of `denoc.regressor`

Further columns on request, one for each number of v, after those of the bodies and in this order whatever order they
are asked in: `armature` a, `viscous` v, `coulomb` tanh(v/u_0), `stribeck` e^{−|v/u_s|^δ} tanh(v/u_0), whose
coefficient is F_s − F_c (the law of `mechanism.friction`, with the joint's own u_0, u_s, δ), and `offset` 1. They add
to joint forces with the sign of what the joint must exert, so p has friction coefficients as positive numbers.

With constraints the rows are those of independent coordinates: Gᵀ Y p = G_Aᵀ τ_A holds for every share of the load
among the drives A, redundant ones too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.sparse import carried_back
from polybody.description.records import FRICTION_DEFAULTS, Friction
from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.formulations.denoc.regressor import BODY_PARAMETERS
from polybody.mechanism.columns import velocity_names
from polybody.mechanism.friction import stribeck_excess
from polybody.mechanism.mechanism import Mechanism
from polybody.names import listed, nearest
from polybody.quantities.constrained import Closed
from polybody.quantities.derivatives import graph_domain
from polybody.quantities.quantity import Quantity

#: what a joint may have beside bodies, in the order of the columns
TERMS = ("armature", "viscous", "coulomb", "stribeck", "offset")


def ordered_terms(terms: str | Sequence[str]) -> tuple[str, ...]:
    """The terms asked for ("viscous+armature", or a sequence), checked, in the order of their columns."""
    asked = [x for x in terms.split("+") if x] if isinstance(terms, str) else list(terms)
    for x in asked:
        if x not in TERMS:
            raise InputError(f"no regressor term {x!r}{nearest(str(x), TERMS)}; available: {listed(TERMS)}")
    return tuple(x for x in TERMS if x in asked)


def column_names(m: Mechanism, terms: str | Sequence[str] = ()) -> list[str]:
    """"forearm.mass", "forearm.mx", …, "elbow.armature", …: the names of the columns."""
    names = [f"{body.name}.{x}" for body in m.bodies for x in BODY_PARAMETERS]
    return names + [f"{joint}.{term}" for term in ordered_terms(terms) for joint in velocity_names(m)]


def friction_laws(m: Mechanism) -> list[tuple[Friction, int]]:
    """(friction, number in it) of each velocity: the joint's own, or one of unit levels with the usual speeds."""
    laws: list[tuple[Friction, int]] = []
    for joint in m.independent_joints:
        usual = {k: np.full(joint.nv, 0.0 if x is None else x) for k, x in FRICTION_DEFAULTS.items()}
        own = joint.friction or Friction(**usual)
        laws += [(own, k) for k in range(joint.nv)]
    return laws


def joint_columns(m: Mechanism, v: Array, a: Array, terms: Sequence[str], *, domain: Domain) -> Array:
    """The columns of the terms, (nv, terms·nv): diagonal blocks."""
    laws = friction_laws(m) if {"coulomb", "stribeck"} & set(terms) else []

    def direction(k: int) -> Any:
        law, number = laws[k]
        return domain.tanh(v[k] / domain.array(law.regularisation)[number])

    def excess(k: int) -> Any:
        law, number = laws[k]
        unit = replace(law, static=np.ones(len(law.static)), coulomb=np.zeros(len(law.coulomb)))
        return stribeck_excess(unit, number, v[k], domain=domain) * direction(k)

    diagonal = {
        "armature": lambda k: a[k],
        "viscous": lambda k: v[k],
        "coulomb": direction,
        "stribeck": excess,
        "offset": lambda k: domain.const(1),
    }
    result = domain.zeros(m.nv, len(terms) * m.nv)
    for block, term in enumerate(terms):
        for k in range(m.nv):
            result[k, block * m.nv + k] = diagonal[term](k)
    return result


def _tree(m: Mechanism, terms: Sequence[str], q: Array, v: Array, a: Array, domain: Domain) -> Array:
    Y = denoc.regressor(m, q, v, a, domain=domain)
    return np.concatenate([Y, joint_columns(m, v, a, terms, domain=domain)], axis=1) if terms else Y


def _name(family: str, terms: Sequence[str]) -> str:
    return f"{family}:{'+'.join(terms)}" if terms else family


def regressor(m: Mechanism, terms: str = "") -> Quantity:
    """Y with tau + passive_forces = Y p (armature too, unless it is among the terms)."""
    chosen = ordered_terms(terms)

    def tree(m: Mechanism, q: Array, v: Array, a: Array, *, domain: Domain) -> Array:
        return _tree(m, chosen, q, v, a, domain)

    def closed(c: Closed, q: Array, v: Array, a: Array, *, domain: Domain) -> Array:
        G = c.motions(q, domain).G
        c.gaps.extend(c.jacobian(q, domain) @ a + c.system.bias(q, v, domain=domain))
        Y = _tree(c.tree, chosen, q, v, a, domain)
        return np.array([carried_back(G, y, domain) for y in Y.T], dtype=domain.dtype).reshape(-1, G.shape[1]).T

    doc = "Y with joint forces Y p: columns body by body, then armature, viscous, coulomb, stribeck, offset as asked."
    columns = len(column_names(m, chosen))
    results = (("Y", ("m", columns)),)
    return Quantity(_name("regressor", chosen), ("q", "v", "a"), results, tree, closed, doc, "regressors")


@lru_cache(maxsize=64)
def structure(m: Mechanism, terms: tuple[str, ...] = ()) -> tuple[Array, Array]:
    """(rows, columns) of the entries of a tree's Y that are not zero at every state, row by row."""
    graph = graph_domain()
    (_, q), (_, v), (_, a) = (graph.variables(name, n) for name, n in (("q", m.nq), ("v", m.nv), ("a", m.nv)))
    Y = _tree(m, terms, q, v, a, graph)
    filled = np.array([[not graph.is_zero(x) for x in row] for row in Y], dtype=bool).reshape(Y.shape)
    rows, columns = np.nonzero(filled)
    rows.flags.writeable = columns.flags.writeable = False
    return rows, columns


def regressor_nonzeros(m: Mechanism, terms: str = "") -> Quantity:
    """The entries of a tree's Y that are not zero at every state, in the order of `structure`."""
    chosen = ordered_terms(terms)
    rows, columns = structure(m, chosen)

    def tree(m: Mechanism, q: Array, v: Array, a: Array, *, domain: Domain) -> Array:
        return _tree(m, chosen, q, v, a, domain)[rows, columns]

    doc = "Structurally nonzero entries of the (cut) tree's Y, row by row."
    results = (("Y", (len(rows),)),)
    return Quantity(_name("regressor_nonzeros", chosen), ("q", "v", "a"), results, tree, None, doc, "regressors")


def energy_regressor(m: Mechanism) -> Quantity:
    """Rows that give the bodies' kinetic and potential energy."""
    n = 10 * len(m.bodies)
    doc = "Rows times p: kinetic and potential energy of the bodies, without springs and armature."
    results = (("kinetic", (n,)), ("potential", (n,)))
    return Quantity("energy_regressor", ("q", "v"), results, denoc.energy_regressor, None, doc, "regressors")


def momentum_regressor(m: Mechanism) -> Quantity:
    """Rows that give the momentum about the world's origin."""
    doc = "Rows times p: momentum [angular; linear] about the world's origin, world axes."
    results = (("rows", (6, 10 * len(m.bodies))),)
    return Quantity("momentum_regressor", ("q", "v"), results, denoc.momentum_regressor, None, doc, "regressors")


__all__ = [
    "TERMS",
    "column_names",
    "energy_regressor",
    "joint_columns",
    "momentum_regressor",
    "ordered_terms",
    "regressor",
    "regressor_nonzeros",
    "structure",
]
