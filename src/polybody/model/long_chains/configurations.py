"""Integration, differences and rates of configurations: joint by joint, nothing passes between nodes."""

from __future__ import annotations

from typing import Any

from polybody.algebra.domains import Array
from polybody.kernels.scan import OUTWARD, Pass
from polybody.mechanism import kinematics
from polybody.model.long_chains.kinds import Chain, Kind
from polybody.model.long_chains.lone import lone

TEXTS = {"integrate": kinematics.integrate, "difference": kinematics.difference, "rate": kinematics.rate}


def configuration_pass(chain: Chain, name: str, inputs: tuple[str, str], output: str) -> Pass:
    """The pass of one of TEXTS; inputs whose name begins with q have nq numbers."""

    def step(kind: Kind) -> Any:
        joint = chain.joint(kind)

        def text(table: Array, x: Array, y: Array) -> list[Any]:
            return [[TEXTS[name](lone(chain, kind, table), x, y, domain=chain.graph)]]

        return chain.function([(x, joint.nq if x.startswith("q") else joint.nv) for x in inputs], text)

    return Pass(name, OUTWARD, step, constants=["c"], inputs=inputs, outputs=[output])


__all__ = ["TEXTS", "configuration_pass"]
