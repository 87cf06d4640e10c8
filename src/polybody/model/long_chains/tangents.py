"""Directional derivatives of rolled quantities: the tangent of every step.

A step is a function y = f(x); its tangent ẏ = f'(x) ẋ is a step of the same shape with twice the fields. One pass over
the tree then gives the change of the result along one direction (δq, δv, …), and the columns of derivative matrices are
a batch of directions, one for each degree of freedom: O(n²) work for the n² numbers asked for. δq is a tangent vector,
so q̇ = Γ(q) δq is formed in the step. Inputs that do not move (wrenches in world axes) have no rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from polybody.kernels.scan import Pass
from polybody.model.long_chains.kinds import Chain, Kind


def tangent_pass(one: Pass, chain: Chain, moving: Sequence[str]) -> Pass:
    """The pass with, beside each field and each input of `moving`, its rate "d…"; outputs are rates only."""

    def twice(labels: Sequence[str]) -> list[str]:
        return [name for label in labels for name in (label, f"d{label}")]

    def step(kind: Kind) -> Any:
        function = one.step(kind)
        return None if function is None else _tangent(one, chain, kind, function, moving)

    return replace(
        one, step=step,
        inputs=[name for label in one.inputs for name in ([label, f"d{label}"] if label in moving else [label])],
        own=twice(one.own), parent=twice(one.parent), partner=twice(one.partner), writes=twice(one.writes),
        adds=twice(one.adds), partner_adds=twice(one.partner_adds), totals=twice(one.totals),
        outputs=[f"d{label}" for label in one.outputs],
    )  # fmt: skip


def _tangent(one: Pass, chain: Chain, kind: Kind, function: Any, moving: Sequence[str]) -> Any:
    import casadi

    values = list(function.sx_in())
    still = {*one.constants, *(label for label in one.inputs if label not in moving)}
    arguments, xs, rates = [], [], []
    for label, x in zip(one.reads, values, strict=True):
        arguments.append(x)
        if label in still:
            continue
        manifold = label == "q" and label in one.inputs
        joint = chain.joint(kind) if manifold else None
        direction = casadi.SX.sym(f"d{label}", joint.nv if joint else x.shape[0])
        arguments.append(direction)
        xs.append(x)
        if joint:
            graph = chain.graph
            moved = joint.model.rate(graph.scalars(x), graph.scalars(direction), domain=graph)
            rates.append(graph.column(moved))
        else:
            rates.append(direction)
    results = []
    outputs = function.call(values)
    for label, y in zip(one.gives, outputs, strict=True):
        slope = casadi.densify(casadi.jtimes(y, casadi.vertcat(*xs), casadi.vertcat(*rates)))
        results += [slope] if label in one.outputs else [y, slope]
    return casadi.Function("tangent", arguments, results)


__all__ = ["tangent_pass"]
