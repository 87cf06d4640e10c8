"""How a mechanism stands on the ground: fixed, planar (mobile), floating, flying or flexible (Swain & Morris 2003).

The base is what `root_joint` joins to the ground; changing it replaces that joint only:

    fixed      no motion (section 8.1)
    planar     q = (θ, x, y) on the plane across `axis`: a mobile base
    floating   free, no force on it (8.2)
    flying     free, its wrench f_b is the tau of its six columns (8.3): the same mechanism as floating
    flexible   free, held by a spring-damper wrench f_b = −δ ẋ − s Δx with full 6×6 matrices (C5)

All its columns are passive. Where a driven joint stands on the ground itself, a base is put between them; its mass and
inertia must then be said, because the ground has none.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.records import WORLD, Body, Description, Joint, frozen_array
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.names import listed, nearest

BASES = ("fixed", "planar", "floating", "flying", "flexible")
ROOT = "root_joint"
#: kinds of joint that make their child a base when they join it to the ground
_STANDING = ("fixed", "planar", "floating")


@dataclass(frozen=True)
class Base:
    """Base type, its 6×6 stiffness and damping (flexible), normal (planar), and the base body.

    `stiffness` and `damping` are a number, six numbers [rotations; translations] or 6×6, in the base's axes. `mass`,
    `com` and `inertia` describe the body `name` that is inserted between the ground and a driven joint.
    """

    kind: str  # fixed, planar, floating, flying or flexible
    stiffness: Any = 0
    damping: Any = 0
    axis: Any = (0, 0, 1)  # normal of a planar base
    mass: float | None = None
    com: Any = (0, 0, 0)
    inertia: Any = (0, 0, 0)
    name: str = "base"


def as_base(base: str | Base) -> Base:
    """The base of that kind; a wrong one raises an error."""
    made = Base(base) if isinstance(base, str) else base
    if not isinstance(made, Base) or made.kind not in BASES:
        shown = made.kind if isinstance(made, Base) else made
        raise InputError(f"base is {shown!r}{nearest(str(shown), BASES)}, expected one of {listed(BASES)}")
    if made.kind == "flexible":
        K = shapes.square_matrix("base: stiffness", made.stiffness, 6)
        if not np.allclose(K, K.T) or np.linalg.eigvalsh((K + K.T) / 2)[0] <= 0:
            raise InputError(
                f"base: stiffness is {np.asarray(made.stiffness).tolist()}; a flexible base needs a symmetric positive "
                "definite 6×6 matrix (a positive number, six of them, or the matrix)"
            )
    elif np.any(np.asarray(made.stiffness)) or np.any(np.asarray(made.damping)):
        raise InputError(f"base: a {made.kind} base has no stiffness and no damping; kind='flexible' has")
    return made


def with_base(description: Description, base: str | Base) -> Description:
    """The same mechanism on another base."""
    made = as_base(base)
    standing = [j for j in description.joints if WORLD in (j.parent, j.child)]
    named = [j for j in standing if j.name == ROOT]
    old = [j for j in named or standing if j.kind in _STANDING]
    if len(old) == 1 and (len(standing) == 1 or named or made.mass is None):
        return _replaced(description, old[0], made)  # other trees (objects to grasp) stay where they are
    if len(old) > 1:
        raise InputError(
            f"attached to the ground are {listed(j.child for j in old)}; "
            f"which of them is the base? Name its joint {ROOT!r}"
        )
    if made.kind == "fixed":
        return description
    return _inserted(description, standing, made)


def _root(made: Base, child: str, origin: Any) -> Joint:
    kind = {"flying": "floating", "flexible": "floating"}.get(made.kind, made.kind)
    size = {"fixed": 0, "planar": 3}.get(kind, 6)
    flexible = made.kind == "flexible"
    damped = flexible and np.any(np.asarray(made.damping))
    return Joint(
        ROOT,
        kind,
        WORLD,
        child,
        origin,
        shapes.numbers("base: axis", made.axis, 3) if kind == "planar" else frozen_array((0, 0, 1)),
        stiffness=shapes.square_matrix("base: stiffness", made.stiffness, 6) if flexible else None,
        damping=shapes.square_matrix("base: damping", made.damping, 6) if damped else None,
        active=(False,) * size if size else None,
    )


def _replaced(description: Description, old: Joint, made: Base) -> Description:
    child, origin = (old.child, old.origin) if old.parent == WORLD else (old.parent, np.linalg.inv(old.origin))
    taken = [j.name for j in description.joints if j is not old]
    if ROOT in taken:
        raise InputError(f"there is a joint {ROOT!r} that is not the base's; rename it, the base's joint has that name")
    new = dataclasses.replace(_root(made, child, frozen_array(origin)), source=old.source)
    return dataclasses.replace(description, joints=tuple(new if j is old else j for j in description.joints))


def _inserted(description: Description, standing: list[Joint], made: Base) -> Description:
    """A new body between the ground and the joints that stood on it."""
    driven = ", ".join(repr(j.name) for j in standing)
    if made.mass is None:
        raise InputError(
            f"joint {driven} is attached to the ground itself, which has no mass to float: give the mass of the base, "
            f"base=pb.Base({made.kind!r}, mass=…, inertia=…)"
        )
    if any(b.name == made.name for b in description.bodies):
        raise InputError(f"base: there is a body {made.name!r} already; give the base another name")
    body = Body(
        made.name,
        shapes.number("base: mass", made.mass),
        shapes.numbers("base: com", made.com, 3),
        shapes.inertia_matrix("base: inertia", made.inertia),
    )

    def moved(name: str) -> str:
        return made.name if name == WORLD else name

    joints = [
        dataclasses.replace(j, parent=moved(j.parent), child=moved(j.child)) if j in standing else j
        for j in description.joints
    ]
    root = _root(made, made.name, frozen_array(np.eye(4)))
    return dataclasses.replace(description, bodies=(body, *description.bodies), joints=(root, *joints))


__all__ = ["BASES", "ROOT", "Base", "as_base", "with_base"]
