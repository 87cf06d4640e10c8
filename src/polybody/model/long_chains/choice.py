"""When a mechanism's quantities are answered by rolled kernels rather than by straight lines."""

from __future__ import annotations

from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.mechanism import Mechanism

#: Numbers of joints from which rolled code pays: for chains of few kinds of joint, and for any mechanism.
FEW_KINDS_FROM, ANY_FROM = 16, 60


#: Joints up to which inverse and forward dynamics of any chain are faster as straight lines, on processors of 32 wide
#: registers: measured on Zen 4 (20 joints: 4.2 ns per joint against 8.5; 50: 6.1 against 9.0).
STRAIGHT_UP_TO = 50


#: Joints from which the Coriolis matrix of a chain of few kinds is rolled. Straight lines take 3.9 s to compile at 40
#: joints, and longer with the square of their number; up to there they are faster (Zen 3: 1.7 against 2.7 µs per state
#: at 30 joints, 2.8 against 4.5 at 40), and first answers are interpreted, which rolled code is not.
CORIOLIS_FROM = 41


def early(mechanism: Mechanism) -> bool:
    """Whether inverse and forward dynamics are rolled before all else is, where that is worth it."""
    from polybody.kernels.target import host

    return len(mechanism.joints) > STRAIGHT_UP_TO or host().lanes < 8


def is_long(mechanism: Mechanism) -> bool:
    """From here on every recursion is rolled: straight lines of matrices would take minutes to compile."""
    return len(mechanism.joints) >= ANY_FROM and not _beside_the_tree(mechanism)


def coriolis_early(mechanism: Mechanism) -> bool:
    """Whether the Coriolis matrix is rolled before all else is; its code is that of the mechanism as it is."""
    return len(mechanism.joints) >= CORIOLIS_FROM and worth_rolling(mechanism)


def _beside_the_tree(mechanism: Mechanism) -> bool:
    """Springs of cut joints, contacts and compliant stops have no step of their own: straight lines have them."""
    elements = mechanism.closure_springs or mechanism.contacts
    return bool(elements) or any(compliant(joint.limits) for joint in mechanism.joints)


def worth_rolling(mechanism: Mechanism) -> bool:
    """Where rolled code was measured to be no slower than straight-line code, and to compile faster.

    A chain of few kinds gains from about 16 joints on; a robot of many kinds from about 60 (benchmarks/README.md).
    """
    from polybody.model.long_chains.kinds import FORCES, LINK, Chain, joint_nodes, model_key

    n = len(mechanism.joints)
    if n < FEW_KINDS_FROM or _beside_the_tree(mechanism):
        return False
    if n >= ANY_FROM:
        return True
    if len({model_key(joint.model) for joint in mechanism.joints}) * 5 > n:  # of which there are at least as many kinds
        return False
    groups = (*LINK, "armature", *FORCES)
    return len(Chain(mechanism, groups, joint_nodes(mechanism, groups)).sample) * 5 <= n


__all__ = ["ANY_FROM", "CORIOLIS_FROM", "FEW_KINDS_FROM", "STRAIGHT_UP_TO", "coriolis_early", "early", "is_long",
           "worth_rolling"]  # fmt: skip
