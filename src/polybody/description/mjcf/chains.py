"""Joints in turn on one body: MuJoCo's bodies may have several, ours have one each, with bodies without mass between.

A chain of joints k = 1 … n from a body to the next that has mass, with O_k the place of joint k in the body before it,
moves by

    T = O_1 J_1(q_1) O_2 J_2(q_2) ⋯ J_n(q_n) = O_1 ⋯ O_n · Π X_k⁻¹ J_k(q_k) X_k,     X_k = O_{k+1} ⋯ O_n

so that all of them are joints of the last body, their axes and anchors taken there by X_k⁻¹. A ball keeps the meaning
of its quaternion where X_k does not turn.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from polybody.description.mjcf.sayable import Piece
from polybody.description.records import Description, Joint, joint_size

Array = np.ndarray
FREEDOMS = 6  # of one body's joints, at most


def chains(description: Description, weighing: set[str]) -> dict[str, list[Joint]]:
    """{last body: its joints from the inside outwards} where bodies without mass lie between joints.

    Only bodies that carry nothing else are left out: no second joint, frame, image or end of anything.
    """
    by_child = {joint.child: joint for joint in description.joints}
    children = Counter(joint.parent for joint in description.joints)
    used = {frame.body for frame in description.frames}
    used |= {body for loop in description.loops for body in (loop.body_a, loop.body_b)}
    used |= {body.name for body in description.bodies if body.visuals or body.mass or np.any(body.inertia)}

    def is_between(name: str) -> bool:
        plain = name in by_child and by_child[name].kind != "floating" and by_child[name].parent != name
        return plain and name not in weighing and name not in used and children[name] == 1

    found: dict[str, list[Joint]] = {}
    for joint in description.joints:
        if joint.child not in weighing or not is_between(joint.parent):
            continue
        chain = [joint]
        while is_between(chain[0].parent) and len(chain) <= len(by_child):
            chain.insert(0, by_child[chain[0].parent])
        if _sayable(chain):
            found[joint.child] = chain
    return found


def _sayable(chain: list[Joint]) -> bool:
    """Whether MuJoCo takes these joints on one body: few freedoms, and nothing that turns behind a ball."""
    balls = [k for k, joint in enumerate(chain) if joint.kind == "spherical"]
    if sum(joint_size(joint)[1] for joint in chain) > FREEDOMS or len(balls) > 1:
        return False
    for k in balls:
        if any(joint.kind not in ("fixed", "prismatic") for joint in chain[k + 1 :]):
            return False
        if not np.allclose(offset(chain, k)[:3, :3], np.eye(3), rtol=0, atol=1e-12):
            return False
    return True


def offset(chain: list[Joint], k: int) -> Array:
    """X_k: the last body's frame in the frame behind joint k, at the neutral configuration."""
    X = np.eye(4)
    for joint in chain[k + 1 :]:
        X = X @ joint.origin
    return X


def place(chain: list[Joint]) -> Array:
    """O_1 ⋯ O_n."""
    return np.asarray(chain[0].origin) @ offset(chain, 0)


def moved(piece: Piece, X: Array) -> Piece:
    """A hinge or slide as a joint of the body at X."""
    R, t = X[:3, :3], X[:3, 3]
    position = R.T @ (piece.position - t) if piece.type == "hinge" else piece.position
    return replace(piece, axis=R.T @ piece.axis, position=position)


__all__ = ["chains", "moved", "offset", "place"]
