"""The numbers of a mechanism that may stay symbols, their names, and the mechanism with symbols in their place.

For body i (counted from 1, as joints are):

    m1                    mass                                          "masses"
    c1x c1y c1z           mass centre in the body's frame               "lengths"
    I1xx I1xy … I1zz      inertia about the mass centre                 "inertias"
    r1x r1y r1z           origin of joint i in the parent's frame       "lengths"
    <frame>_x …           place of a named frame in its body            "lengths"
    g, or gx gy gz        gravity: its size if it is along one axis     "gravity"

Zeros never become symbols: they are the mechanism's structure.
"""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.mechanism import BodyFrame, Mechanism, TreeBody, TreeJoint

CATEGORIES = ("masses", "lengths", "inertias", "gravity")
AXES = "xyz"
#: A number this much smaller than the largest of its array is rounding, not structure.
NEGLIGIBLE = 1e-15

C_WORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main",
    "sin", "cos", "tan", "sqrt", "atan2", "atan", "asin", "acos", "exp", "log", "pow", "fabs", "fmin", "fmax",
    "sign", "I", "E", "pi", "NULL",
})  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One number of the mechanism: its symbol's name, value, category and place."""

    name: str
    value: float
    category: str
    meaning: str
    place: tuple[Any, ...]


def parameters(mechanism: Mechanism) -> list[Parameter]:
    """Every number that may stay a symbol."""
    found: list[Parameter] = []
    for body in mechanism.bodies:
        found += _body_parameters(body)
    for joint in mechanism.joints:
        found += _vector(f"r{joint.index + 1}", joint.position, "lengths",
                         f"origin of joint {joint.name!r} in its parent's frame", ("position", joint.index))
    named = {frame.name for frame in mechanism.description.frames}
    prefixes: set[str] = set()
    for k, frame in enumerate(mechanism.frames):
        if frame.name in named:
            prefix = _plain(frame.name, prefixes)
            prefixes.add(prefix)
            found += _vector(f"{prefix}_", frame.position, "lengths",
                             f"place of frame {frame.name!r} in its body", ("frame", k))
    return found + _gravity(mechanism.gravity)


def _body_parameters(body: TreeBody) -> list[Parameter]:
    i, found = body.index + 1, []
    if body.mass:
        found.append(Parameter(f"m{i}", float(body.mass), "masses", f"mass of {body.name!r}", ("mass", body.index)))
    found += _vector(f"c{i}", body.com, "lengths", f"mass centre of {body.name!r} in its frame", ("com", body.index))
    largest = float(np.abs(body.inertia).max())
    for a in range(3):
        for b in range(a, 3):
            value = float(body.inertia[a, b])
            if abs(value) > NEGLIGIBLE * largest:
                meaning = f"inertia of {body.name!r} about its mass centre"
                found.append(Parameter(f"I{i}{AXES[a]}{AXES[b]}", value, "inertias", meaning, ("inertia", i - 1, a, b)))
    return found


def _vector(prefix: str, values: Any, category: str, meaning: str, place: tuple[Any, ...]) -> list[Parameter]:
    largest = float(np.abs(values).max())
    return [
        Parameter(f"{prefix}{AXES[k]}", float(x), category, f"{meaning}, {AXES[k]}", (*place, k))
        for k, x in enumerate(values)
        if abs(x) > NEGLIGIBLE * largest
    ]


def _gravity(gravity: Any) -> list[Parameter]:
    axes = [k for k in range(3) if gravity[k]]
    if len(axes) == 1:
        k = axes[0]
        sign = 1.0 if gravity[k] > 0 else -1.0
        meaning = f"gravity along {'+' if sign > 0 else '−'}{AXES[k]}"
        return [Parameter("g", abs(float(gravity[k])), "gravity", meaning, ("gravity", k, sign))]
    return [Parameter(f"g{AXES[k]}", float(gravity[k]), "gravity", f"gravity along {AXES[k]}", ("gravity", k, 1.0))
            for k in axes]


def _plain(name: str, taken: set[str]) -> str:
    """A frame's name as the beginning of a symbol's, distinct from those taken."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = plain if plain[0].isalpha() else f"frame{plain}"
    number = next(n for n in range(1, len(taken) + 2) if (plain if n == 1 else f"{plain}{n}") not in taken)
    return plain if number == 1 else f"{plain}{number}"


def chosen(available: list[Parameter], wanted: str | Iterable[str]) -> list[Parameter]:
    """The parameters named by "all", "none", a category, a symbol, or several of these."""
    if not isinstance(wanted, Iterable):
        raise InputError(f"symbols is {wanted!r}, expected 'all', 'none', or names of parameters or their categories")
    words = [wanted] if isinstance(wanted, str) else list(wanted)
    names = {p.name for p in available}
    kept: set[str] = set()
    for word in words:
        if word == "all":
            kept |= names
        elif word in CATEGORIES:
            kept |= {p.name for p in available if p.category == word}
        elif word in names:
            kept.add(word)
        elif word != "none":
            raise InputError(
                f"no parameter {word!r}; expected 'all', 'none', one of {', '.join(CATEGORIES)}, or symbols out of "
                f"{', '.join(sorted(names))}"
            )
    return [p for p in available if p.name in kept]


def check_names(groups: Mapping[str, Iterable[str]]) -> None:
    """Refuse names that are no identifiers, are words of Python or C, or represent two things."""
    used: dict[str, str] = {}
    for what, names in groups.items():
        for name in names:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
                raise InputError(
                    f"{what} {name!r} is not a symbol's name; expected a letter, then letters, digits or _"
                )
            if keyword.iskeyword(name) or keyword.issoftkeyword(name):
                raise InputError(f"{what} {name!r} is a keyword of Python; choose another name, such as {name + '_'!r}")
            if name in C_WORDS:
                raise InputError(f"{what} {name!r} is a word of C or of its mathematics; choose another name, such as "
                                 f"{name + '_'!r}")
            if name in used:
                raise InputError(f"{what} {name!r} clashes with the {used[name]} of that name; give one another name")
            used[name] = what


def with_scalars(
    mechanism: Mechanism, scalars: list[tuple[Parameter, Any]], model: Callable[[TreeJoint], Any], sizes: Any
) -> Mechanism:
    """The mechanism with a scalar of some domain for each parameter given, and other joint models.

    `model(joint)` is a joint's new model and `sizes(joint)` its new (q slice, rest).
    """
    bodies = [_Body(body) for body in mechanism.bodies]
    positions = [joint.position.astype(object) for joint in mechanism.joints]
    frames = [frame.position.astype(object) for frame in mechanism.frames]
    gravity = mechanism.gravity.astype(object)
    for parameter, scalar in scalars:
        kind, where = parameter.place[0], parameter.place[1:]
        if kind == "gravity":
            gravity[where[0]] = scalar * where[1]
        elif kind == "position":
            positions[where[0]][where[1]] = scalar
        elif kind == "frame":
            frames[where[0]][where[1]] = scalar
        else:
            bodies[where[0]].put(kind, where[1:], scalar)
    joints = []
    for joint, position in zip(mechanism.joints, positions, strict=True):
        q, rest = sizes(joint)
        joints.append(dataclasses.replace(joint, position=position, model=model(joint), q=q, rest=rest))
    placed: list[BodyFrame] = [
        dataclasses.replace(frame, position=position) for frame, position in zip(mechanism.frames, frames, strict=True)
    ]
    return dataclasses.replace(
        mechanism,
        gravity=gravity,
        joints=tuple(joints),
        bodies=tuple(body.record() for body in bodies),
        frames=tuple(placed),
        nq=mechanism.nv,
    )


class _Body:
    """A body whose numbers are being replaced."""

    def __init__(self, body: TreeBody) -> None:
        self.body, self.mass = body, body.mass
        self.com, self.inertia = body.com.astype(object), body.inertia.astype(object)
        largest = np.abs(body.inertia).max()
        self.inertia[np.abs(body.inertia) <= NEGLIGIBLE * largest] = 0.0

    def put(self, kind: str, where: tuple[int, ...], scalar: Any) -> None:
        if kind == "mass":
            self.mass = scalar
        elif kind == "com":
            self.com[where[0]] = scalar
        else:
            self.inertia[where] = self.inertia[where[::-1]] = scalar

    def record(self) -> TreeBody:
        return dataclasses.replace(self.body, mass=self.mass, com=self.com, inertia=self.inertia)


__all__ = ["CATEGORIES", "Parameter", "check_names", "chosen", "parameters", "with_scalars"]
