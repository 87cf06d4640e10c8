"""Derivatives of texts over expression graphs where points are themselves expressions of each other."""

from __future__ import annotations

import casadi
import numpy as np

from polybody.algebra.domains import domain
from polybody.algebra.jets import along


def test_a_point_that_is_an_expression_of_another_is_held_while_that_moves():
    """d(x y) along x with y held is y, also where y = −x² or x + 1, of which arithmetic uses the parts."""
    graph = domain("casadi")
    column, x = graph.variables("x", 1)
    for y in (-(x * x), x + 1.0, x * 3.0):
        rate = along(lambda x, y, domain: x * y, (x, y), [(np.array([1.0]), np.array([0.0]))], graph)[0]
        found = casadi.Function("f", [column], [graph.column(rate), graph.column(y)])(0.7)
        assert float(found[0]) == float(found[1])
