"""Plans of elimination from several samples."""

import numpy as np

from polybody.model.plans import Plans


def test_a_row_whose_entries_vanish_in_other_columns_of_each_sample_is_not_redundant():
    def jacobian(q: np.ndarray) -> np.ndarray:
        """Rank two everywhere; of the second row each of four states has another last entry."""
        J = np.zeros((len(q), 2, 5))
        J[:, :, 0] = 1.0
        J[np.arange(len(q)), 1, 1 + q[:, 0].astype(int)] = 1.0
        return J

    states = np.arange(4.0)[:, None]
    assert len(Plans(jacobian, lambda q: q).free(states).pivots) == 2
    kept = Plans(jacobian, lambda q: q).of_columns((2, 3, 4), states)
    assert kept is not None
    assert set(kept.dependent) == {0, 1}


def test_a_row_that_vanishes_in_every_sample_is_redundant():
    def jacobian(q: np.ndarray) -> np.ndarray:
        return np.ones((len(q), 2, 3)) * (2 + q[:, :1, None])

    assert Plans(jacobian, lambda q: q).free(np.arange(4.0)[:, None]).redundant in ((0,), (1,))
