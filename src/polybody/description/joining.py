"""A description as part of a larger one: its names with a prefix, its ground become a place on another body."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polybody.description.records import WORLD, Body, Description, Joint
from polybody.errors import InputError


def placed(part: Description, prefix: str, parent: str, origin: Any) -> Description:
    """The records of `part` with prefixed names; its ground is a massless body `<prefix>origin` fixed to `parent`."""
    if part.velocity_relations:
        raise InputError(f"{part.name!r} has velocity relations, written in its joints' names; add them afterwards")
    if part.relations:
        raise InputError(
            f"{part.name!r} has relations ({', '.join(r.name for r in part.relations)}), which are written in its "
            "joints' names; build it without them and add them by build.relation"
        )

    def new(name: str) -> str:
        return f"{prefix}origin" if name == WORLD else prefix + name

    def between(records: Any) -> tuple[Any, ...]:
        return tuple(replace(r, name=new(r.name), body_a=new(r.body_a), body_b=new(r.body_b)) for r in records)

    stand = Joint(f"{prefix}origin_joint", "fixed", parent, new(WORLD), origin)
    joints = (replace(j, name=prefix + j.name, parent=new(j.parent), child=new(j.child)) for j in part.joints)
    couplings = (replace(c, joint=prefix + c.joint, source_joint=prefix + c.source_joint) for c in part.couplings)
    motors = (replace(m, name=prefix + m.name, joint=prefix + m.joint) for m in part.motors)
    return replace(
        part,
        bodies=(Body(new(WORLD)), *(replace(body, name=new(body.name)) for body in part.bodies)),
        joints=(stand, *joints),
        frames=tuple(replace(f, name=prefix + f.name, body=new(f.body)) for f in part.frames),
        loops=between(part.loops),
        springs=between(part.springs),
        contacts=tuple(replace(c, name=prefix + c.name, body=new(c.body)) for c in part.contacts),
        rolling=tuple(replace(r, name=prefix + r.name, body=new(r.body)) for r in part.rolling),
        actuators=tuple(replace(a, name=prefix + a.name, joint=prefix + a.joint) for a in part.actuators),
        rods=between(part.rods),
        guides=between(part.guides),
        couplings=tuple(couplings),
        motors=tuple(motors),
        transmissions=tuple(
            replace(t, name=prefix + t.name, joints=tuple(prefix + j for j in t.joints)) for t in part.transmissions
        ),
    )


__all__ = ["placed"]
