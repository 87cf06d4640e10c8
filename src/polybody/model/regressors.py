"""`model.regressor`: joint forces, energies and momentum as matrices times the parameters of the bodies.

    tau + passive_forces = Y(q, v, a) p + armature a

p has ten numbers a body: mass, first moments m c (3), inertia about the body's origin (xx, yy, zz, xy, xz, yz), in the
axes of the body. `model.body_names` gives the bodies; links joined by fixed joints are one body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.quantities import regressors

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray


class Regressor:
    """Matrices that map the inertial parameters to joint forces, energies or momentum."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __call__(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, terms: str | Sequence[str] = (),
        parameters: ArrayLike | None = None, out: Array | None = None,
    ) -> Array:  # fmt: skip
        """Y (..., m, columns) with tau + passive_forces = Y p + armature a; with loops Gᵀ Y of the independent ones.

        `terms` adds columns for each number of v, in this order: "armature" (the armature then is in p), "viscous" v,
        "coulomb" and "stribeck" of the joint's friction law for unit levels (F_c and F_s − F_c are in p), and "offset"
        1, signed as what the joint must exert. `parameters` as in other calls: Y depends on lengths and placements.
        """
        asked = regressors.regressor(self._model.mechanism, "+".join(regressors.ordered_terms(terms)))
        return self._model._ask(asked, (q, v, a), out=out, parameters=parameters)

    def columns(self, terms: str | Sequence[str] = ()) -> list[str]:
        """Names of the columns: "BODY.mass", "BODY.mx", …, "BODY.Iyz", "JOINT.armature", …"""
        return regressors.column_names(self._model.mechanism, terms)

    def parameters(self) -> Array:
        """Inertial parameters p of the model's bodies, (10·bodies,)."""
        return denoc.body_parameters(self._model.mechanism)

    def structure(self, terms: str | Sequence[str] = ()) -> tuple[Array, Array]:
        """(rows, columns) of the entries that `nonzeros` returns: those of Y that are not zero at every state."""
        return regressors.structure(self._tree.mechanism, regressors.ordered_terms(terms))

    def nonzeros(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, terms: str | Sequence[str] = (),
        parameters: ArrayLike | None = None, out: Array | None = None,
    ) -> Array:  # fmt: skip
        """Entries of Y at `structure`, (..., entries): a sparse form for large robots."""
        tree = self._tree
        asked = regressors.regressor_nonzeros(tree.mechanism, "+".join(regressors.ordered_terms(terms)))
        return tree._ask(asked, (q, v, a), out=out, parameters=parameters)

    def energy(
        self, q: ArrayLike, v: ArrayLike, *, parameters: ArrayLike | None = None, out: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Rows (..., 10·bodies) twice: multiplied by p, the kinetic and potential energy of the bodies."""
        asked = regressors.energy_regressor(self._model.mechanism)
        return self._model._ask(asked, (q, v), out=out, parameters=parameters)

    def momentum(
        self, q: ArrayLike, v: ArrayLike, *, parameters: ArrayLike | None = None, out: Array | None = None
    ) -> Array:
        """(..., 6, 10·bodies): multiplied by p, the momentum [angular; linear] about the world's origin, world axes."""
        asked = regressors.momentum_regressor(self._model.mechanism)
        return self._model._ask(asked, (q, v), out=out, parameters=parameters)

    @property
    def _tree(self) -> Model:
        if self._model.mechanism.constrained:
            raise InputError("Gᵀ Y of loops has no zeros to leave out; model.tree.regressor has those of the cut tree")
        return self._model


__all__ = ["Regressor"]
