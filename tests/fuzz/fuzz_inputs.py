"""Inputs for the fuzzers, one for each (kind, seed): from a grammar that errs now and then, or sound ones damaged.

A grammar gives files that are nearly right, so that they pass the first checks and reach the later ones; mutations give
what no grammar thinks of. The same kind and seed always give the same input.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

KINDS = ("mechanism", "urdf", "sdf", "mjcf", "dh", "expression", "run", "study", "network")
#: of a value, a name, a key: how often the grammar errs
RATE = 0.02

NUMBERS = [
    "0", "1", "-1", "0.5", "-0.0", "1e-320", "1e30", "1e31", "1e308", "1e400", "-1e400", ".inf", "-.inf", "inf", "nan",
    ".nan", "1/0", "1/3", "pi", "90deg", "-90deg", "10cm", "5kg", "3parsec", "0x10", "1_000", "--1", "1e", "e5", "",
    "~", "true", "1 2", "1,2", "\u0661", "9" * 99, "9" * 101, "9" * 5000, "1e-400", "1" + "0" * 98, "- 1", "+1",
    "1*pi/0", "*a",
]  # fmt: skip
NAMES = [
    "a", "b", "world", "", " ", "x,y", "x;y", "x[/nope]", "${p}_${s}", "../../x", "/etc/passwd", "a\tb", "a\nb",
    "\x1b[2J", "\u202e", "é", "\U0001f600", "a" * 999, "a" * 1001, "null", "true", "1", "q", "pi", "root_joint", "a/b",
    "a:b", "{", "*x", "&x", "!x", "'", '"', "\\", "#", "-", "?", "@", "%", "sin", "\x85", "\ufeff",
]  # fmt: skip
JOINT_KINDS = ["fixed", "revolute", "continuous", "prismatic", "screw", "cylindrical", "universal", "spherical",
               "planar", "floating", "custom"]  # fmt: skip


class Grammar:
    """Random choices that are right but for a small share."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rate = rng.choice((0.0, RATE / 10, RATE / 4, 4 * RATE))

    def errs(self) -> bool:
        return self.rng.random() < self.rate

    def number(self, low: float = -2, high: float = 2) -> str:
        if self.errs():
            return self.rng.choice(NUMBERS)
        round_ones = [text for text in ("0", "1") if low <= int(text) <= high]
        return self.rng.choice((*round_ones, f"{self.rng.uniform(low, high):.3g}", repr(self.rng.uniform(low, high))))

    def numbers(self, count: int, low: float = -2, high: float = 2) -> list[str]:
        if self.errs():
            count = self.rng.choice((0, 1, count - 1, count + 1, 40))
        return [self.number(low, high) for _ in range(max(0, count))]

    def name(self, sound: str) -> str:
        return self.rng.choice(NAMES) if self.errs() else sound

    def some(self, probability: float) -> bool:
        return self.rng.random() < probability

    def axis(self) -> list[str]:
        axes = (["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"], ["0.6", "0", "0.8"])
        return self.numbers(3) if self.errs() else self.rng.choice(axes)


# ---------------------------------------------------------------------------------------------------- mechanism files


def flow(value: Any) -> str:
    """YAML in flow style; texts that are marked as quoted are names, the others stand as they are."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return value


def quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def origin(g: Grammar) -> Any:
    turns = {"rpy": g.numbers(3), "quaternion": ["0", "0", "0", "1"], "matrix": [g.numbers(4) for _ in range(4)]}
    if g.some(0.5):
        return g.numbers(3)
    turn = g.rng.choice(list(turns))
    return {turn: turns[turn]} if turn == "matrix" else {"xyz": g.numbers(3), turn: turns[turn]}


def _size(kind: str, columns: int) -> tuple[int, int]:
    fixed = {"fixed": (0, 0), "cylindrical": (2, 2), "universal": (2, 2), "spherical": (4, 3), "planar": (3, 3),
             "floating": (7, 6), "custom": (columns, columns)}  # fmt: skip
    return fixed.get(kind, (1, 1))


def motion(g: Grammar) -> dict[str, Any]:
    kind = g.rng.choice(JOINT_KINDS if g.some(0.5) else JOINT_KINDS[:4])
    columns = g.rng.randint(1, 3)
    said: dict[str, Any] = {"kind": g.name(kind), "axis": g.axis()}
    if kind == "screw" or g.errs():
        said["pitch"] = g.number()
    if kind == "custom" or g.errs():
        rows = np.eye(6)[:, g.rng.sample(range(6), columns)]
        said["map"] = [[g.name(str(int(x))) for x in row] for row in rows]
        said["stages"] = ["1"] * columns if g.some(0.7) else g.numbers(columns)
    nq, nv = _size(kind, columns)
    drives: dict[str, Callable[[], Any]] = {
        "stiffness": lambda: g.numbers(nv, 0, 5),
        "damping": lambda: g.number(0, 2),
        "armature": lambda: g.numbers(nv, 0, 1),
        "friction": lambda: g.numbers(nv, 0, 1),
        "rest": lambda: g.numbers(nq),
        "limits": lambda: {"lower": g.number(-2, -1), "upper": g.number(1, 2), "effort": g.number(0, 9)},
    }
    for key, make in drives.items():
        if g.some(0.1) and nv:
            said[key] = make()
    return said


def mechanism_text(rng: Random) -> str:
    g = Grammar(rng)
    count = rng.randint(1, 6)
    bodies = [g.name(f"b{i}") for i in range(count)]
    top: dict[str, Any] = {"polybody": g.number(1, 1) if g.errs() else "1", "name": quoted(g.name("fuzz"))}
    if g.some(0.3):
        top["gravity"] = g.numbers(3)
    top["bodies"] = {
        name: {"mass": g.number(0.1, 3), "com": g.numbers(3), "inertia": g.numbers(rng.choice((3, 6)), 0.5, 1)}
        for name in bodies
    }
    joints: dict[str, Any] = {}
    for i, name in enumerate(bodies):
        parent = "world" if i == 0 or g.some(0.2) else rng.choice(bodies[:i])
        ends = {"parent": quoted(g.name(parent)), "child": quoted(g.name(name)), "origin": origin(g)}
        joints[g.name(f"j{i}")] = {**ends, **motion(g)}
    top["joints"] = joints
    names, ends = list(joints), [*bodies, "world"]
    pair: Callable[[], dict[str, Any]] = lambda: {  # noqa: E731
        "body_a": quoted(rng.choice(ends)), "body_b": quoted(rng.choice(ends))
    }  # fmt: skip
    more: dict[str, Callable[[], Any]] = {
        "frames": lambda: {"f": {"body": quoted(rng.choice(ends)), "origin": origin(g)}},
        "loops": lambda: {"l": {**pair(), "origin_a": origin(g), **motion(g)}},
        "springs": lambda: {"s": {**pair(), "point_a": g.numbers(3), "stiffness": g.number(0, 9)}},
        "rods": lambda: {"r": {**pair(), "point_a": g.numbers(3), "length": g.number(0.1, 2)}},
        "guides": lambda: {"g": {**pair(), "kind": g.name("line"), "axis": g.axis()}},
        "couplings": lambda: {rng.choice(names): {"source": quoted(rng.choice(names)), "ratio": g.number()}},
        "relations": lambda: {"e": quoted(expression_text(rng))},
        "motors": lambda: {
            "m": {
                "joint": quoted(rng.choice(names)), "resistance": g.number(0.1, 1), "inductance": g.number(0.1, 1),
                "torque_constant": g.number(0.1, 1), "speed_constant": g.number(0.1, 1), "gear": g.number(1, 50),
            }
        },
        "transmissions": lambda: {"t": {"joints": [quoted(n) for n in names[:2]], "matrix": [["1", "0"], ["1", "1"]]}},
        "flexible_links": lambda: {
            "flex": {"length": g.number(1, 2), "mass_per_length": g.number(1, 2), "EI": g.number(1, 9),
                     "segments": g.number() if g.errs() else "3"}
        },
        "dh": lambda: {"links": [{"a": g.number(), "alpha": g.number(), "d": g.number(), "mass": g.number(0, 2)}]},
        g.name("visuals"): lambda: g.number(),
    }  # fmt: skip
    for key, make in more.items():
        if g.some(0.06):
            top[key] = make()
    return "".join(f"{key}: {flow(value)}\n" for key, value in top.items())


# --------------------------------------------------------------------------------------------------------------- XML


def _attribute(text: str) -> str:
    clean = "".join(c for c in text if c in "\t\n" or ord(c) >= 32)  # XML has no way to say the others
    return '"' + clean.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;") + '"'


def _element(tag: str, attributes: dict[str, Any], *children: str) -> str:
    said = "".join(f" {k}={_attribute(' '.join(v) if isinstance(v, list) else v)}" for k, v in attributes.items())
    return f"<{tag}{said}>{''.join(children)}</{tag}>\n" if children else f"<{tag}{said}/>\n"


def urdf_text(rng: Random) -> str:
    g = Grammar(rng)
    count = rng.randint(1, 7)
    links = [g.name(f"l{i}") for i in range(count)]
    parts = []
    for name in links:
        inertia = dict(zip(("ixx", "iyy", "izz"), g.numbers(3, 0.5, 1), strict=False))
        inertial = _element("inertial", {}, _element("origin", {"xyz": g.numbers(3), "rpy": g.numbers(3)}),
                            _element("mass", {"value": g.number(0.1, 2)}), _element("inertia", inertia))  # fmt: skip
        shape = _element("visual", {}, _element("geometry", {}, _element(g.name("sphere"), {"radius": g.number(0, 1)})))
        parts.append(_element("link", {"name": name}, inertial if g.some(0.9) else " ", shape if g.some(0.3) else " "))
    kinds = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
    for i in range(1, count):
        children = [_element("parent", {"link": g.name(rng.choice(links[:i]))}), _element("child", {"link": links[i]})]
        children.append(_element("axis", {"xyz": g.axis()}))
        if g.some(0.7):
            children.append(_element("origin", {"xyz": g.numbers(3), "rpy": g.numbers(3)}))
        if g.some(0.5):
            bounds = {"lower": g.number(-2, -1), "upper": g.number(1, 2), "effort": g.number(0, 9)}
            children.append(_element("limit", bounds))
        if g.some(0.2):
            children.append(_element("dynamics", {"damping": g.number(0, 1), "friction": g.number(0, 1)}))
        if g.some(0.1):
            children.append(_element("mimic", {"joint": g.name(f"j{rng.randint(1, count)}"), "multiplier": g.number()}))
        kind = rng.choice(kinds[: 4 if g.some(0.7) else 6])
        parts.append(_element("joint", {"name": g.name(f"j{i}"), "type": g.name(kind)}, *children))
    if g.errs():
        rng.shuffle(parts)
    return _element(g.name("robot") if g.errs() and g.errs() else "robot", {"name": g.name("fuzz")}, *parts)


def sdf_text(rng: Random) -> str:
    g = Grammar(rng)
    count = rng.randint(1, 6)
    links = [g.name(f"l{i}") for i in range(count)]
    places = ["__model__", "world"]  # what may be named so far

    def leaf(tag: str, text: str | list[str], **attributes: str) -> str:
        said = " ".join(text) if isinstance(text, list) else text
        return _element(tag, attributes, _attribute(said)[1:-1].replace(">", "&gt;") or " ")

    def pose(named: bool = True) -> str:
        relative = {"relative_to": g.name(rng.choice(places))} if named and g.some(0.2) else {}
        return leaf("pose", g.numbers(6), **relative) if g.some(0.7) else " "

    parts = []
    for name in links:
        inertia = [leaf(key, g.number(0.5, 1)) for key in ("ixx", "iyy", "izz")]
        mass = leaf("mass", g.number(0.1, 2))
        inertial = _element("inertial", {}, pose(named=False), mass, _element("inertia", {}, *inertia))
        parts.append(_element("link", {"name": name}, pose(), inertial))
        places.append(name)
    kinds = ("fixed", "revolute", "continuous", "prismatic", "ball", "screw", "universal", "revolute2")
    for i in range(count + (1 if g.some(0.3) else 0)):
        above = [*links[:i], "world"] if i < count else ["world"]
        ends = [leaf("parent", g.name(rng.choice(above))), leaf("child", g.name(links[i % count]))]
        inside = [leaf("xyz", g.axis()), _element("limit", {}, leaf("lower", g.number(-2, 0))),
                  _element("dynamics", {}, leaf("damping", g.number(0, 1)))]  # fmt: skip
        if g.some(0.1):
            inside.append(_element("mimic", {"joint": g.name("j0")}, leaf("multiplier", g.number())))
        axes = [_element(tag, {}, *inside) for tag in ("axis", "axis2")]
        kind = {"name": g.name(f"j{i}"), "type": g.name(rng.choice(kinds[: 4 if g.some(0.6) else 8]))}
        parts.append(_element("joint", kind, pose(), *ends, *axes))
    if g.some(0.3):
        parts.append(_element("frame", {"name": g.name("f"), "attached_to": g.name(rng.choice(places))}, pose()))
    if g.some(0.2):
        parts = [_element("model", {"name": g.name("inner"), "placement_frame": g.name(links[0])}, *parts)]
    if g.some(0.05):
        parts.append(_element("include", {}, leaf("uri", g.name("part.sdf"))))
    model = _element("model", {"name": g.name("fuzz")}, leaf("static", rng.choice(("true", "0"))), *parts)
    return _element("sdf", {"version": g.name(rng.choice(("1.7", "1.9", "1.11")))}, model)


def mjcf_text(rng: Random) -> str:
    g = Grammar(rng)
    made: list[str] = []

    def body(depth: int) -> str:
        name = f"b{len(made)}"
        made.append(name)
        joints = [
            _element("joint", {"name": g.name(f"{name}_{k}"), "type": g.name(rng.choice(("hinge", "slide", "ball"))),
                               "axis": g.axis(), "pos": g.numbers(3), "damping": g.number(0, 1)})
            for k in range(rng.choice((0, 1, 1, 1, 2, 3)))
        ]  # fmt: skip
        inside = [body(depth + 1) for _ in range(rng.choice((0, 0, 1, 1, 2))) if depth < 3 and len(made) < 6]
        geom = _element("geom", {"type": g.name("box"), "size": g.numbers(3, 0.1, 1)})
        return _element("body", {"name": g.name(name), "pos": g.numbers(3)}, geom, *joints, *inside)

    world = [body(0) for _ in range(rng.choice((1, 1, 2)))]
    if g.some(0.1):
        copies = g.number(1, 3) if g.errs() else "2"
        world[0] = _element("replicate", {"count": copies, "offset": g.numbers(3)}, world[0])
    parts = [_element("worldbody", {}, *world)]
    if g.some(0.2):
        parts.insert(0, _element("option", {"gravity": g.numbers(3), "timestep": g.number(0.001, 0.01)}))
    if g.some(0.2):
        ends = {"body1": rng.choice(made), "body2": rng.choice(made)}
        parts.append(_element("equality", {}, _element("connect", {**ends, "anchor": g.numbers(3)})))
    if g.some(0.1):
        parts.append(_element("actuator", {}, _element("motor", {"joint": g.name(f"{made[0]}_0")})))
    if g.some(0.1):
        parts.insert(0, _element("size", {g.name("nuser_body"): g.number() if g.errs() else "2"}))
    if g.some(0.05):
        parts.insert(0, _element("include", {"file": g.name("part.xml")}))
    return _element("mujoco", {"model": g.name("fuzz")}, *parts)


# ------------------------------------------------------------------------------------------- DH tables, expressions


def dh_rows(rng: Random) -> list[dict[str, Any]]:
    g = Grammar(rng)
    odd = [float("nan"), float("inf"), -1e308, 1e31, "1", None, [], (1, 2), {}, 1j, True, np.array(["1"]),
           np.zeros((0, 3)), 10**400]  # fmt: skip

    def value(sound: Any) -> Any:
        return rng.choice(odd) if g.errs() else sound

    rows = []
    for _ in range(rng.randint(0 if g.errs() else 1, 5)):
        row: dict[str, Any] = {key: value(rng.uniform(-2, 2)) for key in ("a", "alpha", "d", "theta") if g.some(0.7)}
        row["kind"] = value(rng.choice(("revolute", "prismatic")))
        row["mass"] = value(rng.uniform(0.1, 2))
        row["com"] = value((0.1, 0.0, rng.uniform(-1, 1)))
        row["inertia"] = value((1.0, 1.0, 1.0))
        if g.some(0.1):
            row[g.name("limits")] = value((-1.0, 1.0))
        rows.append(row)
    return rows


def expression_text(rng: Random) -> str:
    g = Grammar(rng)
    atoms = ["j0", "j1", "pi", 'q["j0"]', 'q["j1"][0]', "2", "0.5", "1e3"]
    odd = ["1/0", "asin(2)", "True", "None", "9" * 400, "q", "q[0]", "j0[1]", "x.y", "lambda: 0", "[1]", "'s'", "1j",
           "()", "__import__('os')"]  # fmt: skip

    def make(depth: int) -> str:
        if g.errs():
            return rng.choice(odd)
        if depth > 4 or g.some(0.3):
            return rng.choice(atoms)
        form = rng.randrange(5)
        if form < 2:
            return f"({make(depth + 1)} {rng.choice('+-*/')} {make(depth + 1)})"
        if form == 2:
            return f"{rng.choice(('sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'sqrt', 'log'))}({make(depth + 1)})"
        if form == 3:
            return f"({make(depth + 1)})**{rng.choice(('2', '3', '12', '13', '-1', '0.5', 'j0'))}"
        return f"-{make(depth + 1)}"

    text = make(0)
    return text * rng.choice((1, 50, 3000)) if g.errs() else text


# --------------------------------------------------------------------------------------------------------- mutations


@cache
def seeds(kind: str) -> tuple[bytes, ...]:
    """Sound files to damage."""
    from polybody.description.mechanism_file.writer import mechanism_text as written
    from polybody.description.reading import read_description, shipped_models
    from polybody.description.urdf.writer import urdf_text as urdf

    files = list(shipped_models().values())
    if kind == "mechanism":
        return tuple(path.read_bytes() for path in files if path.stat().st_size < 6000)
    arms = [read_description(name) for name in ("puma560", "two-link", "planar-3r")]
    if kind == "urdf":
        from polybody.description.urdf.writer import without_losses

        return tuple(urdf(without_losses(arm)[0]).encode() for arm in arms)
    if kind == "run":
        return (written(arms[1]).encode(),)
    made = grammar_of(kind)
    return tuple(made(Random(k)).encode() for k in range(40))


def mutated(data: bytes, rng: Random) -> bytes:
    """The bytes with a few of them flipped, cut out, doubled, exchanged, or replaced by odd numbers and names."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 64, 400))
        form = rng.randrange(7)
        if form == 0:
            data[at : at + size] = b""
        elif form == 1:
            data[at:at] = data[at : at + size] * rng.choice((1, 2, 20))
        elif form == 2 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif form == 3:
            data[at:at] = rng.choice(NUMBERS).encode()[:200]
        elif form == 4:
            data[at:at] = rng.choice(NAMES).encode("utf-8", "surrogatepass")[:200]
        elif form == 5:
            other = rng.randrange(len(data) + 1)
            data[at : at + size] = data[other : other + size]
        else:
            digits = [i for i, c in enumerate(data) if 48 <= c < 58]
            if digits:
                k = rng.choice(digits)
                data[k : k + 1] = rng.choice(NUMBERS).encode()[:120]
    return bytes(data)


# -------------------------------------------------------------------------------------------------------- run folders


def run_files(rng: Random) -> dict[str, bytes]:
    """The files of a run's folder, one of them damaged."""
    n = rng.randint(1, 4)
    facts: dict[str, Any] = {"polybody_run": 1, "kind": "simulation", "options": {}, "audit": None, "happenings": [],
                             "stopped": None, "files": ["run.json"]}  # fmt: skip
    arrays: dict[str, Any] = {"t": np.linspace(0, 1, n), **{k: np.zeros((n, 2)) for k in ("q", "v", "tau", "a")}}
    odd = [None, [], {}, "x", 1, float("nan"), [[1]], {"a": [None]}, "\x1b", [1, "2"], True, -1, 10**30]
    form = rng.randrange(6)
    if form == 0:
        facts[rng.choice(list(facts))] = rng.choice(odd)
    elif form == 1:
        facts.pop(rng.choice(list(facts)))
    elif form == 2:
        shapes = [np.zeros(0), np.zeros((n, 3)), np.array("x"), np.array(["a"] * n), np.full((n, 2), np.nan),
                  np.zeros((2, n, 2)), np.zeros(n, dtype=complex), np.zeros(n, dtype=[("a", float)]), np.array(1.0),
                  -np.arange(n)]  # fmt: skip
        arrays[rng.choice(list(arrays))] = rng.choice(shapes)
    elif form == 3:
        arrays.pop(rng.choice(list(arrays)))
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    files = {"run.json": json.dumps(facts).encode(), "trajectory.npz": packed.getvalue(), "model.yaml": seeds("run")[0]}
    if form >= 4:
        name = rng.choice(list(files))
        files[name] = mutated(files[name], rng)
        if name == "trajectory.npz" and rng.random() < 0.5:  # damage below the compression
            loose = io.BytesIO()
            with zipfile.ZipFile(loose, "w") as made:
                for key, values in arrays.items():
                    part = io.BytesIO()
                    np.lib.format.write_array(part, values)
                    made.writestr(f"{key}.npy", mutated(part.getvalue(), rng))
            files[name] = loose.getvalue()
    return files


def input_of(kind: str, seed: int) -> Any:
    """The input of a kind and a seed: text or bytes, rows of a DH table, or the files of a folder."""
    rng = Random(f"{kind} {seed}")
    if kind == "dh":
        return dh_rows(rng)
    if kind == "run":
        return run_files(rng)
    if rng.random() < 0.5:
        return mutated(rng.choice(seeds(kind)), rng)
    return grammar_of(kind)(rng).encode("utf-8", "surrogatepass")


def grammar_of(kind: str) -> Callable[[Random], str]:
    from fuzz_sections import network_text, study_text

    return {"mechanism": mechanism_text, "urdf": urdf_text, "sdf": sdf_text, "mjcf": mjcf_text,
            "expression": expression_text, "study": study_text, "network": network_text}[kind]  # fmt: skip


__all__ = ["KINDS", "input_of"]
