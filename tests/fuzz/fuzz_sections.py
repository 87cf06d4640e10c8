"""Study files and network files for the fuzzers: grammars that err now and then (`fuzz_inputs.Grammar`)."""

from __future__ import annotations

from random import Random
from typing import Any

from fuzz_inputs import Grammar, flow, motion, origin, quoted

PARTS = {
    "resistor": ("nodes", "resistance", "ohm"), "capacitor": ("nodes", "capacitance", "F"),
    "inductor": ("nodes", "inductance", "H"), "voltage_source": ("nodes", "voltage", "V"),
    "inertia": ("nodes", "inertia", "kg m^2"),
}  # fmt: skip


def _axis(g: Grammar, size: int) -> Any:
    many = lambda low, high: g.numbers(size, low, high) if size > 1 else g.number(low, high)  # noqa: E731
    kinds: dict[str, Any] = {
        "grid": [g.number(-1, 0), g.number(1, 2), g.number() if g.errs() else "3"],
        "uniform": [many(0.1, 1), many(2, 3)],
        "normal": [many(0.5, 1), many(0.1, 0.2)],
        "lognormal": [g.number(), g.number(0.1, 1)],
        "triangular": [g.number(0, 1), g.number(1, 2), g.number(2, 3)],
        "truncated-normal": [g.number(0, 1), g.number(0.1, 1), g.number(-1, 0), g.number(1, 2)],
        "covariance": [g.numbers(2), g.numbers(2)],
    }
    if g.some(0.3):
        return [many(0.1, 1) for _ in range(g.rng.randint(1, 4))]
    kind = g.rng.choice(list(kinds)[:6] if size == 1 and not g.errs() else ["uniform", "normal"])
    found: dict[str, Any] = {g.name(kind): kinds[kind]}
    return {**found, "names": [quoted("a"), quoted("b")]} if g.errs() else found


def study_text(rng: Random) -> str:
    g = Grammar(rng)
    top: dict[str, Any] = {"study": g.number() if g.errs() else "1", "model": quoted(g.name("two-link"))}
    if g.some(0.3):
        top["payload"] = {"frame": quoted(g.name("lower")), "mass": g.number(0.1, 1), "com": g.numbers(3)}
    names = {"q": 2, "v.0": 1, "upper.mass": 1, "gravity.z": 1, "lower.com": 3, "wrench.lower": 6, "wrench.upper.fz": 1}
    kinds: dict[str, Any] = {
        "quantity": quoted(g.name("inverse_dynamics")),
        "rollout": {"steps": "5", "controller": {"kp": g.number(1, 9), "kd": g.numbers(2, 0, 1)}},
        "simulate": {"duration": g.number(0.1, 1), "q0": g.numbers(2)},
        "linearize": {"q": g.numbers(2)},
    }
    kind = rng.choice(list(kinds)) if g.some(0.4) else "quantity"
    if kind != "quantity":
        names = {"q0": 2, "upper.mass": 1, "lower.com.x": 1, "gravity": 3} | ({"kp": 1} if kind == "rollout" else {})
        if kind == "linearize":
            names.pop("q0")
    chosen = rng.sample(list(names), rng.randint(1, 3))
    top["vary"] = {g.name(n): _axis(g, names[n]) for n in chosen}
    if any(isinstance(axis, dict) and "grid" not in axis for axis in top["vary"].values()) or g.errs():
        top["samples"] = g.number() if g.errs() else "100"
        top["design"] = g.name(rng.choice(("random", "latin-hypercube", "sobol", "saltelli")))
    top["do"] = {g.name(kind): kinds[kind]}
    for key, value in (("seed", "3"), ("chunk", "64"), ("name", quoted(g.name("x"))), ("keep", "[tau, peak(tau)]")):
        if g.some(0.15):
            top[key] = g.number() if g.errs() else value
    if g.errs():
        top[g.name("template")] = quoted(g.name("chain.xacro"))
    return "".join(f"{key}: {flow(value)}\n" for key, value in top.items())


def _moved(g: Grammar) -> dict[str, Any]:
    return {key: value for key, value in motion(g).items() if key != "active" or g.errs()}


def _bodies(g: Grammar, free: list[str]) -> dict[str, Any]:
    """Sections of a chain of multi-port bodies, from ports in `free` on; ports that are left are put there."""
    rng = g.rng
    names = [g.name(f"b{k}") for k in range(rng.randint(1, 3))]
    section: dict[str, Any] = {"bodies": {}, "joints": {}}
    joints, ends = [], list(free)
    for k, name in enumerate(names):
        ports = {g.name(port): origin(g) if g.errs() else g.numbers(3) for port in ("p", "q", "r", "s")}
        body: dict[str, Any] = {"mass": g.number(0.1, 2), "com": g.numbers(3), "ports": ports}
        if g.some(0.8):
            body["inertia"] = g.numbers(rng.choice((3, 6)), 0.1, 1)
        section["bodies"][name] = body if not g.errs() else g.number()
        if ends:
            joint = _moved(g)
            if g.some(0.1):
                joint["stiffness"] = f"{g.number(0, 3)} {g.name('N m/rad')}"
            joints.append(g.name(f"j{k}"))
            pair = {"a": quoted(g.name(ends.pop(0))), "b": quoted(g.name(f"{name}.p"))}
            section["joints"][joints[-1]] = {**pair, **joint}
        ends += [f"{name}.{port}" for port in "qrs"]
    others = {
        "springs": lambda a, b: {"a": a, "b": b, "stiffness": f"{g.number(0, 9)} {g.name('N/m')}", "damping": "2"},
        "rods": lambda a, b: {"a": a, "b": b, "length": g.number(0.1, 1)},
        "guides": lambda a, b: {"kind": g.name(rng.choice(("line", "plane"))), "a": a, "b": b, "axis": g.axis()},
    }
    for key, make in others.items():
        if g.some(0.3) and len(ends) > 1:
            a, b = (quoted(g.name(port)) for port in (ends.pop(0), ends.pop()))
            section[key] = {g.name(key[0]): make(a, b)}
    if g.some(0.2) and len(joints) > 1:
        section["gears"] = {"g": {"follower": quoted(joints[1]), "leader": quoted(joints[0]), "factor": g.number()}}
    if g.some(0.2) and len(joints) > 1:
        section["relations"] = {"t": quoted(g.name(f"{joints[0]} - 2*sin({joints[1]})"))}
    if g.some(0.3) and joints:
        motor = {"joint": quoted(g.name(joints[0])), "torque_constant": f"{g.number(0.1, 1)} N m/A",
                 "resistance": g.number(0.1, 1), "gear": g.number(1, 9)}
        section["motors"] = {"m": motor | ({"nodes": quoted(g.name("a"))} if g.some(0.5) else {})}
    free[:] = ends
    return section


def network_text(rng: Random) -> str:
    g = Grammar(rng)
    nodes = [g.name(x) for x in ("a", "b", "c")]

    def part() -> dict[str, Any]:
        kind = rng.choice(list(PARTS))
        place, key, unit = PARTS[kind]
        ends = quoted(rng.choice(nodes)) if g.some(0.5) else [quoted(n) for n in rng.sample(nodes, 2)]
        said = f"{g.number(0.1, 2)} {g.name(unit)}" if g.some(0.5) else g.number(0.1, 2)
        return {"kind": quoted(g.name(kind)), place: ends, g.name(key): said if not g.errs() else quoted(said)}

    electric = lambda: {g.name(f"p{k}"): part() for k in range(rng.randint(1, 4))}  # noqa: E731
    section: dict[str, Any] = {"parts": electric()}
    if g.some(0.3):
        equations = [quoted(g.name("i = amp*(v/level)^3"))]
        section["kinds"] = {g.name("own"): {"ports": g.name("electrical"), "equations": equations,
                                            "parameters": {"level": "V!", "amp": ["A", g.number(0.1, 1)]}}}  # fmt: skip
        section["parts"]["own1"] = {"kind": "own", "nodes": "a", "level": g.number(1, 9)}
    if g.some(0.3):
        section["networks"] = {"inner": {"parts": electric(), "terminals": {"in": quoted(nodes[0])}}}
        section["parts"]["inner1"] = {"use": g.name("inner"), "in": quoted(rng.choice(nodes))}
    if g.some(0.5):
        inside: list[str] = []
        section.setdefault("networks", {})["limb"] = _bodies(g, inside)
        uses = ("l1", "l2") if g.some(0.5) else ("l1",)
        how = {"use": "limb"} | ({"reduced": g.name("true")} if g.some(0.5) else {})
        section["parts"] |= dict.fromkeys(uses, how)
        section["ground"] = {g.name(port): g.numbers(3) for port in ("o", "n")}
        outside = _bodies(g, ["world.o", "world.n"])
        for k, use in enumerate(uses):
            a = f"{next(iter(outside['bodies']))}.{'rs'[k]}"
            outside["joints"][f"u{k}"] = {"a": quoted(g.name(a)), "b": quoted(g.name(f"{use}.b0.p")), **_moved(g)}
        section |= outside
    if g.some(0.1):
        section["models"] = {"arm": quoted(g.name("two-link"))}
    if g.some(0.2):
        section["initial"] = {g.name("p0.v"): g.number()}
    return f"polybody: 1\nname: {quoted(g.name('net'))}\nnetwork: {flow(section)}\n"
