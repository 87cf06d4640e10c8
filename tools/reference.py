"""The reference pages, from docstrings and from the table of quantities: `make docs` writes them, a test compares.

A page is written by hand around a part between `<!-- generated: NAME -->` and `<!-- end -->`, which is made here.
Groups of `Model`'s names are the comments between its methods ("# Kinematics."), in the order of the class.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import polybody as pb
from polybody.model.actuation import Actuation
from polybody.model.base import Base
from polybody.model.coefficients import Coefficients
from polybody.model.constraints import ModelConstraints
from polybody.model.motors import ModelMotors
from polybody.model.parameters import Parameters
from polybody.model.regressors import Regressor
from polybody.quantities.quantity import ARGUMENTS, MEANING, Quantity
from polybody.quantities.table import FAMILIES, QUANTITIES

DOCS = Path(__file__).resolve().parent.parent / "docs"
PART = re.compile(r"(?s)(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)")
#: public names of the package, and the modules that define them
WHERE: dict[str, str] = vars(pb)["_WHERE"]
NAMESPACES = {
    "constraints": ModelConstraints, "actuation": Actuation, "coefficients": Coefficients, "motors": ModelMotors,
    "regressor": Regressor, "base": Base, "parameters": Parameters,
}  # fmt: skip
#: what an instance has beside its class
ATTRIBUTES = {
    "mechanism": "The mechanism: joints, bodies, frames, force elements; immutable.",
    "engine": "Engine that evaluates the quantities: of a tree, or of a mechanism with constraints.",
}
#: how a family's parameters are shown, and with what a member is made to be shown
SAMPLES = {"frame": "world", "reference": "world", "axes": "world", "order": "2", "terms": ""}
SIZES = {
    "nq": "size of a configuration", "nv": "size of a velocity",
    "m": "independent coordinates: nv of a tree, the mobility with constraints", "bodies": "moving bodies",
    "frames": "world, links and named frames", "joints": "joints, fixed ones too", "pairs": "loops between two frames",
    "rows": "rows of the constraints", "all": "nv + rows",
}  # fmt: skip


# Names of a class.


def public(cls: type) -> list[str]:
    """Public names in the order in which the class defines them."""
    return [name for name in vars(cls) if not name.startswith("_")]


def groups(cls: type) -> dict[str, list[str]]:
    """{section comment of the class: its public names}; what precedes the first one is under ""."""
    names, found, current = set(public(cls)), {}, ""
    for line in inspect.getsource(cls).splitlines():
        if section := re.fullmatch(r" {4}# (?P<title>[A-Z].*)\.", line):
            current = section["title"]
        elif (made := re.match(r" {4}def (\w+)", line)) and made[1] in names:
            found.setdefault(current, []).append(made[1])
    return found


def signature(name: str, function: Any) -> str:
    """`name(q, *, out=None)`, without types and without self."""
    if isinstance(function, property | cached_property):
        return name
    parameters = list(inspect.signature(function).parameters.values())
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    text = str(inspect.Signature(plain)).replace("'", '"')
    return name + re.sub(r"<function .*? at 0x\w+>", "…", text)  # a default that is a function


def prose(text: str | None) -> str:
    """A docstring as Markdown: stars are the mathematics' (M*), not emphasis."""
    parts = re.split(r"(`[^`]*`)", inspect.cleandoc(text or ""))
    return "".join(part if part.startswith("`") else part.replace("*", r"\*") for part in parts)


def entries(cls: type, names: Iterable[str], prefix: str) -> str:
    """One entry a name: its call, then its docstring."""
    found = [f"**`{prefix}{signature(name, vars(cls)[name])}`**\n\n{prose(vars(cls)[name].__doc__)}" for name in names]
    return "\n\n".join(found)


def index() -> str:
    """Names by group, one row each, to find them."""
    rows = {title.partition(":")[0]: names for title, names in groups(pb.Model).items()}
    rows["Shape"] = [*rows["Shape"], *ATTRIBUTES]
    rows |= {f"model.{space}": public(cls) for space, cls in NAMESPACES.items()}
    lines = [
        f"| [{title}](#{re.sub(r'[^a-z -]', '', title.lower()).replace(' ', '-')}) | "
        + ", ".join(f"`{name}`" for name in names) + " |"
        for title, names in rows.items()
    ]  # fmt: skip
    return "\n".join(["| group | names |", "|---|---|", *lines])


def model_reference() -> str:
    """Every public name of `Model` by group, then each namespace."""
    parts = [index()]
    for title, names in groups(pb.Model).items():
        head, _, rest = title.partition(": ")
        parts.append(f"## {head}" + (f"\n\n{rest}." if rest else ""))
        parts.append(entries(pb.Model, names, "model."))
        if head == "Shape":
            parts += [f"**`model.{name}`**\n\n{text}" for name, text in ATTRIBUTES.items()]
    for name, cls in NAMESPACES.items():
        parts += [f"## model.{name}\n\n{prose(cls.__doc__)}", entries(cls, public(cls), f"model.{name}.")]
    return "\n\n".join(parts)


# Functions and classes of `pb`.


def function_reference() -> str:
    """Every public name of the package in the order of the alphabet: its call, and the first paragraph said of it."""
    rows = []
    for name in sorted(WHERE, key=str.lower):
        value = defined(name)
        called = signature(f"pb.{name}", value) if inspect.isfunction(value) else f"pb.{name}"
        rows.append(f"**`{called}`**\n\n{prose(first_paragraph(value.__doc__))}")
    return "\n\n".join(rows)


def defined(name: str) -> Any:
    """What the list of public names refers to: a folder may have the name of what it holds (`pb.formulations`)."""
    where = import_module(WHERE[name])
    return getattr(where, name) if hasattr(where, name) else import_module(f"{where.__name__}.{name}")


def first_paragraph(text: str | None) -> str:
    return inspect.cleandoc(text or "").partition("\n\n")[0]


# Quantities.


def call_name(family: str) -> str:
    """ "jacobian:FRAME[:AXES]": what is optional is in brackets."""
    text = family
    for p in list(inspect.signature(FAMILIES[family]).parameters.values())[1:]:
        if p.name in SAMPLES:
            word = f":{p.name.upper()}"
            text += word if p.default is inspect.Parameter.empty else f"[{word}]"
    return text


def member(family: str) -> Quantity:
    """One quantity of a family, to be shown."""
    made = FAMILIES[family]
    parameters = list(inspect.signature(made).parameters.values())[1:]
    wanted = [SAMPLES[p.name] for p in parameters if p.default is inspect.Parameter.empty]
    return made(pb.load("double-pendulum").mechanism, *wanted)


def row(name: str, x: Quantity) -> str:
    shapes = ", ".join(f"{result} ({', '.join(map(str, shape))})" for result, shape in x.results)
    closed = "own expression" if x.constrained is not None else "as for trees"
    return f"| `{name}` | {', '.join(x.arguments)} | {shapes} | {prose(x.doc)} | {closed} |"


def quantity_table() -> str:
    """All quantities by group, then the words for sizes and arguments."""
    every = {**QUANTITIES, **{call_name(family): member(family) for family in FAMILIES}}
    head = "| name | arguments | results | meaning | with constraints |\n|---|---|---|---|---|"
    parts = []
    for group in dict.fromkeys(x.group for x in every.values()):
        rows = [row(name, x) for name, x in every.items() if x.group == group]
        parts.append("\n".join([f"### {group.capitalize()}", "", head, *rows]))
    shown = [name for name in ARGUMENTS if any(name in x.arguments for x in every.values())]
    words = ["| argument | size | meaning |", "|---|---|---|"]
    words += [f"| {name} | {ARGUMENTS[name]} | {prose(MEANING[name])} |" for name in shown]
    sizes = ["| size | is the number of |", "|---|---|", *(f"| {name} | {text} |" for name, text in SIZES.items())]
    return "\n\n".join([*parts, "### Words", "\n".join(words), "\n".join(sizes)])


#: parts of pages by name
PARTS: dict[str, Callable[[], str]] = {
    "model": model_reference, "functions": function_reference, "quantities": quantity_table,
}  # fmt: skip


def pages() -> list[Path]:
    """The pages with generated parts."""
    return [path for path in sorted(DOCS.rglob("*.md")) if PART.search(path.read_text(encoding="utf-8"))]


def rewritten(text: str) -> str:
    """A page with its generated parts made anew."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found['name']]()}\n\n{found[3]}", text)


if __name__ == "__main__":
    for path in pages():
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")
