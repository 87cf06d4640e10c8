"""Everything that is wrong with a description, all at once.

`check_description` looks at every record by itself (`record_checks`), then at what only the whole shows: names, who
refers to whom, cycles, bodies that nothing reaches, and what moves without mass. It needs no mechanism, so that it can
run on descriptions that could never become one. Whether a custom joint is holonomic is asked one layer up, where
joints are built from their maps.

Bodies that fixed joints weld together are judged as one when asking for mass: files hang massless frames and point
masses on links, and only their sum moves.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from polybody.algebra.inertia_checks import SLACK, inertia_problem
from polybody.algebra.spatial import inverse_pose, joined_inertia
from polybody.description import record_checks, velocity_checks
from polybody.description.actuators import actuator_problems
from polybody.description.limits import LARGEST_NUMBER, RECORDS
from polybody.description.naming import name_problem, shown, shown_path
from polybody.description.problems import ERROR, WARNING, Problem, errors_of, first_problems
from polybody.description.records import LOOP_DRIVE, WORLD, Body, Description, Joint
from polybody.names import counted, listed, nearest


def check_description(description: Description) -> list[Problem]:
    """All errors and warnings of a description, in its order; empty where it is sound."""
    too_many = _size_problems(description)
    if too_many:
        return too_many
    links: _Links = {WORLD: []} | {body.name: [] for body in description.bodies}
    problems = first_problems(
        chain(
            _record_problems(description),
            _name_problems(description),
            _reference_problems(description),
            _cycles(description, links),
            _unreached(description, links),
        )
    )
    if not errors_of(problems):
        place = _welded_groups(description)
        problems += first_problems(
            chain(_rigid_problems(description, place), _mass_problems(description, place), _unused(description))
        )
    return problems


def _size_problems(d: Description) -> list[Problem]:
    """More records of a kind than are taken: nothing else of such a description is looked at."""
    groups = ("bodies", "joints", "frames", "loops", "springs", "couplings", "motors", "transmissions", "contacts",
              "rolling", "velocity_relations", "actuators", "rods", "guides", "relations")  # fmt: skip
    counted = {key: len(getattr(d, key)) for key in groups}
    return [
        Problem(ERROR, f"{d.name!r} has {count} {key}; at most {RECORDS} are taken", d.source)
        for key, count in counted.items()
        if count > RECORDS + 1  # one more: the joint of the base
    ]


def _record_problems(d: Description) -> Iterator[Problem]:
    if np.shape(d.gravity) != (3,) or not (np.abs(d.gravity) <= LARGEST_NUMBER).all():
        limit = f"expected three finite numbers up to {LARGEST_NUMBER:g}"
        yield Problem(ERROR, f"gravity is {d.gravity}, {limit}", d.source)
    for body in d.bodies:
        yield from record_checks.body_problems(body)
    for joint in d.joints:
        yield from record_checks.joint_problems(joint)
    for frame in d.frames:
        yield from record_checks.frame_problems(frame)
    for loop in d.loops:
        yield from record_checks.loop_problems(loop)
    for spring in d.springs:
        yield from record_checks.spring_problems(spring)
    for contact in d.contacts:
        yield from record_checks.contact_problems(contact)
    joints = {joint.name: joint for joint in d.joints}
    for coupling in d.couplings:
        yield from record_checks.coupling_problems(coupling, joints)
    for rod in d.rods:
        yield from record_checks.rod_problems(rod)
    for guide in d.guides:
        yield from record_checks.guide_problems(guide)
    for relation in d.relations:
        yield from record_checks.relation_problems(relation, joints)
    for actuator in d.actuators:
        yield from actuator_problems(actuator, joints)
    for rolling in d.rolling:
        yield from velocity_checks.rolling_problems(rolling)
    for rate in d.velocity_relations:
        yield from velocity_checks.velocity_relation_problems(rate, joints)


def _name_problems(d: Description) -> Iterator[Problem]:
    """Bodies and frames are looked up by one name; so are joints, loops and springs. All must differ."""
    named = [
        (what, record)
        for what, records in (
            ("body", d.bodies),
            ("joint", d.joints),
            ("frame", d.frames),
            ("loop", d.loops),
            ("spring", d.springs),
            ("contact", d.contacts),
            ("rod", d.rods),
            ("guide", d.guides),
            ("relation", d.relations),
            ("rolling", d.rolling),
            ("velocity relation", d.velocity_relations),
        )
        for record in records
    ]
    for record in (d, *d.motors, *d.transmissions, *d.actuators):
        yield from _one_name(type(record).__name__.lower(), record)
    first: dict[tuple[bool, str], tuple[str, Any]] = {}
    for what, record in named:
        yield from _one_name(what, record)
        if record.name == WORLD:
            yield Problem(ERROR, f"a {what} is named {WORLD!r}, which is the name of the ground", record.source)
        # Real URDFs name a joint like its link: places (bodies, frames) and connections are distinguished by use.
        key = (what in ("body", "frame"), record.name)
        if key in first:
            other, earlier = first[key]
            at = f" at {earlier.source}" if earlier.source else ""
            yield Problem(ERROR, f"{what} {record.name!r}: a {other} of that name exists already{at}", record.source)
        else:
            first[key] = (what, record)


def _one_name(what: str, record: Any) -> Iterator[Problem]:
    problem = name_problem(record.name)
    if not record.name:
        yield Problem(ERROR, f"a {what} has an empty name", record.source)
    elif problem is not None:
        yield Problem(ERROR, f"a {what} is named {shown(record.name)}, which {problem}", record.source)


def _reference_problems(d: Description) -> Iterator[Problem]:
    places = {WORLD: None} | {body.name: None for body in d.bodies}
    joints = {joint.name: None for joint in d.joints}

    def unknown(owner: str, role: str, name: str, known: dict[str, None], kind: str, source: str | None) -> Problem:
        return Problem(ERROR, f"{owner}: its {role} {name!r} is not a {kind}{nearest(name, known)}", source)

    for what, records, roles in (
        ("joint", d.joints, ("parent", "child")),
        ("frame", d.frames, ("body",)),
        ("contact", d.contacts, ("body",)),
        ("rolling", d.rolling, ("body",)),
        ("loop", d.loops, ("body_a", "body_b")),
        ("spring", d.springs, ("body_a", "body_b")),
        ("rod", d.rods, ("body_a", "body_b")),
        ("guide", d.guides, ("body_a", "body_b")),
    ):
        for record in records:
            for role in roles:
                name = getattr(record, role)
                if name not in places:
                    yield unknown(f"{what} {record.name!r}", role, name, places, "body", record.source)
    for coupling in d.couplings:
        for role, name in (("joint", coupling.joint), ("source", coupling.source_joint)):
            if name not in joints:
                yield unknown(f"coupling of {coupling.joint!r}", role, name, joints, "joint", coupling.source)
    for name, count in Counter(coupling.joint for coupling in d.couplings).items():
        if count > 1:
            yield Problem(ERROR, f"joint {name!r} has several couplings ({count}); it can follow one joint", d.source)


_Links = dict[str, list[tuple[str, Joint]]]


def _cycles(d: Description, links: _Links) -> Iterator[Problem]:
    """A problem for each joint that closes a cycle; the others, which make a forest, are put into `links`."""
    leader = {name: name for name in links}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for joint in d.joints:
        if joint.parent not in links or joint.child not in links or joint.parent == joint.child:
            continue  # reported where references are
        a, b = find(joint.parent), find(joint.child)
        if a == b:
            path = _path(links, joint.child, joint.parent)
            yield Problem(
                ERROR,
                f"joints form a cycle: {shown_path([*path, path[0]])}, closed by joint {joint.name!r}; "
                "make one of them a loop",
                joint.source,
            )
            continue
        leader[a] = b
        links[joint.parent].append((joint.child, joint))
        links[joint.child].append((joint.parent, joint))


def _path(links: _Links, start: str, goal: str) -> list[str]:
    """The bodies from start to goal through the tree."""
    came: dict[str, str] = {start: start}
    waiting = deque([start])
    while waiting and goal not in came:
        near = waiting.popleft()
        for far, _ in links[near]:
            if far not in came:
                came[far] = near
                waiting.append(far)
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def _component(links: _Links, start: str) -> list[str]:
    reached, stack = {start: None}, [start]
    while stack:
        for far, _ in links[stack.pop()]:
            if far not in reached:
                reached[far] = None
                stack.append(far)
    return list(reached)


def _unreached(d: Description, links: _Links) -> Iterator[Problem]:
    """One problem for each set of bodies that no chain of joints joins to the ground."""
    if not d.bodies:
        yield Problem(ERROR, f"{d.name!r} has no bodies", d.source)
    seen = set(_component(links, WORLD))
    children = {joint.child for joint in d.joints}
    for body in d.bodies:
        if body.name in seen:
            continue
        part = _component(links, body.name)
        seen.update(part)
        if len(part) == 1:
            yield Problem(
                ERROR, f"body {body.name!r}: no joint reaches it; join it to {WORLD!r} or to another body", body.source
            )
            continue
        roots = [name for name in part if name not in children] or part[:1]
        yield Problem(
            ERROR,
            f"{counted(len(part), 'body', 'bodies')} ({', '.join(part[:6])}{', …' if len(part) > 6 else ''}) are "
            "attached to a second root, "
            f"{roots[0]!r}, beside {WORLD!r}: join {roots[0]!r} to {WORLD!r} or to a body that is joined to it",
            body.source,
        )


def _welded_groups(d: Description) -> dict[str, tuple[str, np.ndarray]]:
    """For each body (and the ground) the first body of its rigid group, and its pose there."""
    welds: dict[str, list[tuple[str, np.ndarray]]] = {WORLD: []} | {body.name: [] for body in d.bodies}
    for joint in d.joints:
        if joint.kind == "fixed":
            welds[joint.parent].append((joint.child, np.asarray(joint.origin)))
            welds[joint.child].append((joint.parent, inverse_pose(joint.origin)))
    place: dict[str, tuple[str, np.ndarray]] = {}
    for start in welds:
        if start in place:
            continue
        place[start] = (start, np.eye(4))
        stack = [start]
        while stack:
            near = stack.pop()
            for far, step in welds[near]:
                if far not in place:
                    place[far] = (start, place[near][1] @ step)
                    stack.append(far)
    return place


def _rigid_problems(d: Description, place: dict[str, tuple[str, np.ndarray]]) -> Iterator[Problem]:
    """Constraints between bodies that are one rigid body: they hold nothing, or can never hold."""
    for what, records in (("loop", d.loops), ("rod", d.rods), ("guide", d.guides)):
        for record in records:
            if place[record.body_a][0] == place[record.body_b][0]:
                yield Problem(
                    ERROR,
                    f"{what} {record.name!r} joins {record.body_a!r} and {record.body_b!r}, which are one rigid body; "
                    f"a {what} must join two bodies that can move apart",
                    record.source,
                )


def _unused(d: Description) -> Iterator[Problem]:
    """What the records hold and no force comes from."""
    names = [x.name for x in d.loops if x.kind == "floating" and any(getattr(x, key) is not None for key in LOOP_DRIVE)]
    if names:
        told = f"springs, armature and limits of floating cut joints are not enforced, of loops {listed(names)}"
        yield Problem(WARNING, told, d.source)


def _mass_problems(d: Description, place: dict[str, tuple[str, np.ndarray]]) -> Iterator[Problem]:
    """What moves without mass, or with an inertia that is only semidefinite."""
    members: dict[str, list[Body]] = {}
    for body in d.bodies:
        members.setdefault(place[body.name][0], []).append(body)
    moving = [joint for joint in d.joints if joint.kind != "fixed"]
    ends = Counter(place[name][0] for joint in moving for name in (joint.parent, joint.child))
    ends.update(place[name][0] for loop in d.loops for name in (loop.body_a, loop.body_b))
    geared = {
        place[name][0]
        for joint in moving
        if joint.armature is not None and np.all(joint.armature > 0)
        for name in (joint.parent, joint.child)
    }
    paced = {r.terms[0][0] for r in d.velocity_relations if len(r.terms) == 1}  # their rates are given, as a clock's
    paced_bodies = {place[joint.child][0] for joint in moving if joint.name in paced}
    outside = {place[WORLD][0], *(b for b in paced_bodies if ends[b] == 1)}
    groups = {group: _joined(bodies, place) for group, bodies in members.items() if group not in outside}
    moments = np.linalg.eigvalsh(np.reshape([inertia for _, inertia in groups.values()], (-1, 3, 3)))
    for (group, (mass, inertia)), principal in zip(groups.items(), moments, strict=True):
        first = members[group][0]
        if mass == 0:
            leaf = ends[group] == 1 and group not in geared
            why = ", and nothing is attached to it: its joint moves no mass, so its acceleration is not determined"
            yield Problem(WARNING, f"body {first.name!r}: it moves and has no mass{why if leaf else ''}", first.source)
        elif principal[0] <= SLACK * principal[2] and inertia_problem(inertia) is None:
            shown_moments = ", ".join(f"{m:.6g}" for m in principal)
            yield Problem(
                WARNING,
                f"body {first.name!r}: its inertia is only semidefinite (principal moments {shown_moments}), "
                "which only a slender bar or a point mass can have",
                first.source,
            )


def _joined(bodies: list[Body], place: dict[str, tuple[str, np.ndarray]]) -> tuple[float, np.ndarray]:
    """Mass, and inertia about the mass centre, of a rigid group."""
    if len(bodies) == 1:
        return bodies[0].mass, bodies[0].inertia
    parts = []
    for body in bodies:
        T = place[body.name][1]
        R = T[:3, :3]
        parts.append((body.mass, R @ body.com + T[:3, 3], R @ body.inertia @ R.T))
    mass, _, inertia = joined_inertia(parts)
    return mass, inertia


__all__ = ["Problem", "check_description"]
