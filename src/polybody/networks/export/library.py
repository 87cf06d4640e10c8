"""A C99 library of a network: its state, rates, observation, steps with switches; a self-test beside it.

The text that depends on the network (functions of each combination of modes, tables) is generated; `c/machine.c`, which
does not, follows it. Nothing is allocated, and the state is the caller's: any number of them may run side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.bridges.c_library import (
    c_array,
    free_folder,
    library_prefix,
    makefile,
    selftest_end,
    selftest_head,
    write_folder,
)
from polybody.bridges.c_parameters import c_number
from polybody.networks.export.machine import MOST_COMBINATIONS, Machine, machine
from polybody.simulation.stops import REST

if TYPE_CHECKING:
    from polybody.networks.network import Network

STATUS = ("DONE", "NOT_FINITE", "NO_SOLUTION", "SINGULAR", "JUMP", "CHATTER", "OFF_LOOPS", "NO_STEP", "BAD_VALUE")
#: functions of each combination of modes, and how many results each has
CALLS = {"rates": 1, "observe": 1, "watch": 1, "complete": 2, "algebra": 2, "slopes": 5, "hold": 2}
SAMPLES = 2
#: the self-test's steps
STEPS, DT = 20, 1e-4


def export_network(
    net: Network,
    folder: str | os.PathLike[str],
    initial: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    parameters: Sequence[str] = (),
    combinations: int = MOST_COMBINATIONS,
    limits: str = "stop",
    restitution: float = 0.0,
    friction: str = "stick",
    name: str | None = None,
    force: bool = False,
) -> list[Path]:
    """Write a C99 library of a network into a folder, and return the files written.

    `initial` are start values of variables, as in `pb.simulate`. `inputs` names the sources that become inputs u (by
    default those that are numbers or Python functions); expressions in time are part of the code. `parameters` names
    numbers that can be changed in C, of parts ("R1.resistance", "*.damping") and of models ("arm.forearm.mass", as in
    `with_parameters`); others are constants of the code. Parameters that a model has by `with_parameters` are among
    them. `combinations` bounds the combinations of modes that are written. `limits`, `restitution` and `friction` of
    models' joints as in `pb.simulate`. `name` is the prefix of files and functions, by default the network's name.
    """
    from polybody.kernels.csource import generate

    target = free_folder(folder, force)
    prefix = library_prefix(net.name, name)
    made = machine(net, initial, inputs, parameters, combinations, limits, restitution, friction)
    comment = f"{net.name}: equations of a network, written by polybody. SI units."
    text = generate(prefix, made.functions, comment=comment, more=[written(prefix, made)])
    files = {
        f"{prefix}.c": text.source,
        f"{prefix}.h": text.header,
        "selftest.c": _selftest(prefix, made),
        "Makefile": makefile(prefix),
        "README.md": _readme(prefix, made),
    }
    return write_folder(target, files)


def written(prefix: str, made: Machine) -> Any:
    """The header's declarations, and tables with the machine's own text."""
    from polybody.kernels.csource import Written

    text = (resources.files("polybody") / "networks" / "export" / "c" / "machine.c").read_text(encoding="utf-8")
    header = (resources.files("polybody") / "networks" / "export" / "c" / "machine.h").read_text(encoding="utf-8")
    sizes = {"NX": len(made.states), "NA": len(made.algebraic), "NU": len(made.inputs), "ND": len(made.selectors),
             "NP": len(made.parameters),
             "NZ": len(made.observed), "NC": made.conditions, "COMBINATIONS": len(made.combinations),
             "NPARTS": len(made.modes), "NH": max(made.held)}  # fmt: skip
    P = prefix.upper()
    enums = "\n".join(
        [f"enum {{ {', '.join(f'{P}_{key} = {size}' for key, size in sizes.items())} }};",
         f"enum {{ {', '.join(f'{P}_{word} = {k}' for k, word in enumerate(STATUS))} }};"]
    )
    rooms = {f"{key}_ROOM": max(sizes[key], 1) for key in ("NX", "NA", "NU", "ND", "NP", "NZ", "NC", "NH")}
    state_rooms = "\n".join(f"#define {P}_{key} {size}" for key, size in rooms.items())
    header = f"{enums}\n{state_rooms}\n{_named(prefix, header)}"
    return Written(header, f"{_tables(prefix, made, rooms)}\n\n{_named(prefix, text)}")


def _named(prefix: str, text: str) -> str:
    return text.replace("@p@", prefix).replace("@P@", prefix.upper()).rstrip("\n")


def _tables(prefix: str, made: Machine, rooms: Mapping[str, int]) -> str:
    def table(kind: str, name: str, values: Any) -> str:
        numbers = ", ".join(c_number(x) if kind == "double" else str(int(x)) for x in values) or "0"
        return f"static const {kind} {name}[] = {{{numbers}}};"

    def names(word: str, values: Sequence[str]) -> str:
        quoted = ", ".join(_quoted(value) for value in values) or "0"
        return f"const char *const {prefix}_{word}[] = {{{quoted}}};"

    K, C, A = len(made.combinations), rooms["NC_ROOM"], rooms["NA_ROOM"]
    lines = [f"enum {{ {', '.join(f'{key} = {size}' for key, size in rooms.items())} }};"]
    lines += [names(word, values) for word, values in
              (("state_names", made.states), ("input_names", made.inputs), ("observed_names", made.observed),
               ("parameter_names", made.parameters), ("part_names", list(made.modes)))]
    lines += [table("double", f"START_{key.upper()}", getattr(made, key)) for key in "xaudp"]
    lines += [table(kind, word.upper(), [getattr(b, word) for b in made.bounds]) for kind, word in
              (("double", "lower"), ("double", "upper"), ("int", "beyond"), ("int", "nonzero"))]
    lines.append(f"enum {{ NMARGINS = {made.margins} }};")
    entries = ", ".join(f"{prefix}_margin_{k}" for k in range(made.margins)) or "0"
    lines.append(f"static void (*const MARGIN[])(const double *, double *) = {{{entries}}};")
    lines.append(f"enum {{ NQUATERNIONS = {len(made.quaternions)} }};")
    lines += [table("int", "HELD", made.held), *_limits(prefix, made, table)]
    lines.append(table("int", "QUATERNION", [k for four in made.quaternions for k in four]))
    lines.append(table("int", "ITERATED", made.counts))
    places = [", ".join(str(k) for k in [*row, *[0] * (A - len(row))]) for row in made.places]
    lines.append(f"static const int PLACE[{K}][{A}] = {{{', '.join(f'{{{row}}}' for row in places)}}};")
    for word, value in (("TO_MODE", "combination"), ("TO_SELECTOR", "selector"), ("TO_VALUE", "value")):
        entries = [getattr(row[k], value) if k < len(row) else -1 for row in made.switches for k in range(C)]
        lines.append(table("int", word, entries))
    parts = [said for _, said in made.mode_table()]
    modes = ["0" if isinstance(said, int) else str(said[c]) for c in range(K) for said in parts]
    selected = [said if isinstance(said, int) else -1 for said in parts]
    lines.append(f"static const int PART_MODE[] = {{{', '.join(modes) or '0'}}};")
    lines.append(table("int", "PART_SELECTOR", selected))
    inputs = ", ".join(["const double *"] * 6)
    for call, count in CALLS.items():
        outputs = ", ".join(["double *"] * count)
        entries = ", ".join(f"{prefix}_{call}_{k}" for k in range(K))
        lines.append(f"static void (*const {call.upper()}[])({inputs}, {outputs}) = {{{entries}}};")
    entries = ", ".join(f"{prefix}_tangent_{k}" for k in range(K))
    seeds = ", ".join(["const double *"] * 3 + ["double *"] * 3)
    lines.append(f"static void (*const TANGENT[])({inputs}, {seeds}) = {{{entries}}};")
    lines.append(f"#define NLOOPS {len(made.loops)}")
    if made.loops:
        starts = np.cumsum([0, *(len(q) + len(v) for q, v in made.loops)])[:-1]
        lines += [table("int", "LOOP_NQ", [len(q) for q, _ in made.loops]),
                  table("int", "LOOP_NV", [len(v) for _, v in made.loops]), table("int", "LOOP_FROM", starts),
                  table("int", "LOOP_AT", [k for q, v in made.loops for k in (*q, *v)])]
        for call, takes in (("back", 6), ("walk", 4)):
            entries = ", ".join(f"{prefix}_{call}_{k}" for k in range(len(made.loops)))
            kinds = ", ".join(["const double *"] * 3 + ["double *"] * (takes - 3))
            lines.append(f"static void (*const {call.upper()}[])({kinds}) = {{{entries}}};")
    return "\n".join(lines)


def _limits(prefix: str, made: Machine, table: Callable[[str, str, Any], str]) -> list[str]:
    """Tables of joints that meet their limits."""
    lines = [f"#define NLIMITS {len(made.limits)}"]
    if not made.limits:
        return lines
    width = max(len(row) for row in made.released)
    lines += [table("int", f"LIMIT_{word.upper()}", [getattr(limit, word) for limit in made.limits])
              for word in ("selector", "upper", "lower")]
    lines += [f"#define RESTITUTION {made.restitution!r}", f"#define REST {REST!r}",
              f"enum {{ MODES_ROOM = {width} }};", table("int", "RELEASED_MODE", made.free),
              table("int", "RELEASED", [k for row in made.released for k in [*row, *[0] * (width - len(row))]])]
    kinds = ", ".join(["const double *"] * 6 + ["double *"] * 5)
    entries = ", ".join(f"{prefix}_strike_{k}" for k in range(len(made.combinations)))
    return [*lines, f"static void (*const STRIKE[])({kinds}) = {{{entries}}};"]


def _quoted(text: str) -> str:
    """A C string; what is not ASCII is written byte by byte."""
    found = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{found}"'


def _selftest(prefix: str, made: Machine) -> str:
    """Every function of every combination at random states, and steps from the start that stay finite."""
    lines, calls, rng = selftest_head(prefix), [], np.random.default_rng(22)
    for function in made.functions:
        if function.name().startswith(("back", "walk", "margin")):
            continue
        for k in range(SAMPLES):
            x = made.x + 0.1 * rng.normal(size=len(made.x))
            given = [x, made.a + 0.1 * rng.normal(size=len(made.a)), made.u, made.d, made.p, np.array([0.1 * k])]
            given += [rng.normal(size=function.size1_in(i)) for i in range(len(given), function.n_in())]
            wanted = [np.asarray(r, dtype=float).ravel() for r in function.call(given)]
            if not all(np.isfinite(r).all() for r in wanted):
                continue
            label = f"{function.name()}_at_{k}"
            lines += [f"static int {label}(void) {{", "    int failed = 0;"]
            lines += [c_array(f"in{i}", values) for i, values in enumerate(given)]
            lines += [c_array(f"wanted{i}", values) for i, values in enumerate(wanted)]
            lines += [f"    double out{i}[{max(len(values), 1)}];" for i, values in enumerate(wanted)]
            arguments = ", ".join([*(f"in{i}" for i in range(len(given))), *(f"out{i}" for i in range(len(wanted)))])
            lines.append(f"    {prefix}_{function.name()}({arguments});")
            lines += [f'    failed += check("{function.name()} {function.name_out(i)}", out{i}, wanted{i}, '
                      f"{len(values)});" for i, values in enumerate(wanted)]
            lines += ["    return failed;", "}", ""]
            calls.append(f"    failed += {label}();")
    lines += ["static int moving(void) {", f"    {prefix}_state s;", "    int i, failed = 0;",
              f"    if ({prefix}_start(&s)) return 1;", f"    for (i = 0; i < {STEPS}; i++)",
              f"        if ({prefix}_advance(&s, {DT!r} * (i + 1), {DT!r}, 1e-6, 1e-9)) failed = 1;",
              f"    for (i = 0; i < {prefix.upper()}_NX; i++) if (!isfinite(s.x[i])) failed = 1;",
              '    if (failed) printf("the run from the start failed\\n");', "    return failed;", "}", ""]
    return "\n".join([*lines, *selftest_end([*calls, "    failed += moving();"])])


def _readme(prefix: str, made: Machine) -> str:
    P = prefix.upper()

    def cell(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|")

    def rows(title: str, names: Sequence[str]) -> list[str]:
        if not names:
            return []
        return ["", f"| {title} | variable | unit |", "|---|---|---|",
                *(f"| {k} | {cell(name)} | {cell(made.units.get(name, ''))} |" for k, name in enumerate(names))]

    modes = [f"- {cell(part)}: {', '.join(f'{k} {mode}' for k, mode in enumerate(names))}"
             for part, names in made.modes.items()]
    return "\n".join([
        f"# {made.name} in C", "",
        "C99, needs `<math.h>` only; allocates nothing; all state is in a struct of yours. SI units and radians.",
        "`make test` builds the self-test and runs it.", "",
        "```c",
        f"{prefix}_state s;",
        f"{prefix}_start(&s);                          /* start values, modes that agree with them */",
        f"{prefix}_step(&s, 1e-4);                     /* Runge and Kutta, order 4, fixed cost: control loops */",
        f"{prefix}_advance(&s, 0.5, 1e-2, 1e-8, 1e-10); /* until t = 0.5: implicit, adaptive: stiff networks */",
        f"double z[{P}_NZ_ROOM];", f"{prefix}_observe(&s, z);", "```", "",
        *([f"`s.p` are the parameters; `{prefix}_set(&s, k, value)` checks and sets one, then call `{prefix}_settle`."]
          if made.parameters else []),
        f"`s.u` are the inputs, held during a step. All return {P}_DONE (0) or what is wrong: NOT_FINITE,",
        "NO_SOLUTION (of algebraic equations), SINGULAR (modes that contradict each other, or loops), JUMP (an ideal",
        "part asks for an impulse), CHATTER (modes find no agreement), OFF_LOOPS (constraints among states could not",
        "be kept), NO_STEP, BAD_VALUE (of a parameter). Modes are entered where",
        "their conditions begin to hold, found by bisection; conditions are looked at where steps end. After setting",
        f"`s.x`, call `{prefix}_settle(&s)`.",
        *rows("x", made.states), *rows("u", made.inputs), *rows("p", made.parameters), *rows("z", made.observed),
        *(["", f"Modes, by `{prefix}_mode_of(&s, part)`:", "", *modes] if modes else []),
        "", "Written by polybody.", "",
    ])  # fmt: skip


__all__ = ["STATUS", "export_network", "written"]
