"""A C99 library of a model: source, header, Makefile, README, a self-test and a C++ header, in one folder.

Quantities are those of the table, by name. Each becomes one function of plain arrays that allocates nothing and keeps
no state. Steps in time (`c_steps`) call them, so that a model simulates by itself. The self-test holds each function
against numbers that polybody computed when it wrote the folder. Of a model with loops matrices and forces are those of
its independent coordinates, functions report beside their answer how far it may be believed, and `projection_step`
leads a state back to the loops (`quantities.constrained`).
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.bridges.c_parameters import margin_functions, parameter_checks
from polybody.bridges.c_steps import STEPS, Reference, needed, quaternions, written
from polybody.bridges.cpp import cmake_config, cmake_lists, cpp_header
from polybody.bridges.named_texts import named_text
from polybody.errors import InputError, PolybodyError, PolybodyWarning
from polybody.files import write_text
from polybody.interrupts import interruptible
from polybody.mechanism.joints import closed_manifold
from polybody.model.arguments import require_model
from polybody.model.dispatch import answered_by
from polybody.staging import put, staged

if TYPE_CHECKING:
    from polybody.model.model import Model

DEFAULT = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "coriolis_matrix", "bias_forces", "rate", "integrate",
    *STEPS,
)  # fmt: skip
#: The self-test's tolerance, relative to the largest number of a result.
TOLERANCE = 1e-12
STATES = 4
#: seconds of the self-test's steps
DURATION = 1e-3
#: how often states for a step are drawn, and by how much a coordinate may change in it
TRIES, FAR = 20, 0.1
AWAY = 0.2  # of the joint that moves most, with loops: rad or m
#: Names, in small letters, of our own files and of C's headers that they include.
TAKEN = frozenset({"selftest", "makefile", "readme", "cmakelists", "math", "stdio"})
PREFIX_LENGTH = 60


@answered_by("exported_c")
@interruptible
def export_c(
    model: Model,
    folder: str | os.PathLike[str],
    quantities: Sequence[str] | None = None,
    *,
    name: str | None = None,
    force: bool = False,
) -> list[Path]:
    """Write a C99 library of a model, or of a network, into a folder, and return the files written.

    Of a network: `pb.export_c(network, folder, initial, inputs=…, name=…, force=…)`; `initial` are start values of
    variables, `inputs` the sources that become inputs. Of a model:

    The folder holds source, header, Makefile, README and a self-test. `quantities` are names as `model.casadi` accepts
    them: "inverse_dynamics", "mass_matrix", "pose:FRAME", …; also "semi_implicit_step", "rk4_step" and "simulate",
    which include the functions they call (`rate`, q̇ = V(q) v, and `integrate`, with quaternions). `name` is the prefix
    of files and functions, by default the model's name. The folder is written completely or not at all; a folder that
    is not empty is replaced only with `force`.
    """
    from polybody.kernels.csource import generate

    require_model("export_c", model)
    target = free_folder(folder, force)
    prefix = library_prefix(model.name, name)
    wanted = list(dict.fromkeys(quantities or _default(model)))
    steps = [name for name in STEPS if name in wanted]
    called = needed(steps, bool(len(model.constraints)))
    functions = [_function(model, name) for name in dict.fromkeys([*wanted, *called]) if name not in STEPS]
    comment = f"{model.name}: equations of motion, written by polybody. SI units; q, v, a, tau in the model's order."
    more = [*parameter_checks(prefix, model), *written(prefix, model, steps, functions)]
    every = [*functions, *margin_functions(model)]
    text = generate(prefix, every, comment=comment, more=more)
    files = {
        f"{prefix}.c": text.source,
        f"{prefix}.h": text.header,
        "selftest.c": _selftest(prefix, model, every, steps),
        "Makefile": makefile(prefix),
        "README.md": _readme(prefix, model, functions, steps),
        f"{prefix}.hpp": cpp_header(prefix, model, functions, _shapes(model, wanted, called), steps),
        "CMakeLists.txt": cmake_lists(prefix),
        f"{prefix}Config.cmake.in": cmake_config(prefix),
    }
    return write_folder(target, files)


def free_folder(folder: str | os.PathLike[str], force: bool) -> Path:
    """The folder to write to, checked."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: is a file; expected the path of a folder")
    if target.is_dir() and any(target.iterdir()) and not force:
        raise InputError(f"{target}: exists and is not empty; choose another folder, or overwrite with --force")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{target}: the folder {str(target.absolute().parent)!r} does not exist")
    return target


def _default(model: Model) -> list[str]:
    """All of DEFAULT; a joint whose configurations have no closed formula leaves out what walks along them."""
    open_joints = _without_formula(model)
    if not open_joints:
        return list(DEFAULT)
    loops = bool(len(model.constraints))
    left = {"integrate", *(step for step in STEPS if "integrate" in needed([step], loops))}
    warnings.warn(
        f"{model.name!r}: joint {open_joints[0]!r} has no closed formula for integrate, so {', '.join(sorted(left))} "
        "are not in the C library", PolybodyWarning, stacklevel=3,
    )  # fmt: skip
    return [name for name in DEFAULT if name not in left]


def _without_formula(model: Model) -> list[str]:
    return [joint.name for joint in model.mechanism.independent_joints if not closed_manifold(joint.model)]


def write_folder(target: Path, files: dict[str, str]) -> list[Path]:
    """Write files into a folder, each whole or none."""
    if target.is_dir():  # beside what is there: each file is replaced whole
        for name, text in files.items():
            write_text(target / name, text)
        return [target / name for name in files]
    with staged(target) as fresh:
        for name, text in files.items():
            write_text(fresh / name, text)
        put(fresh, target)
    return [target / name for name in files]


def library_prefix(own: str, name: str | None) -> str:
    """The prefix of files and functions: chosen by the user, or from the name of what is exported."""
    return _prefix(own) if name is None else _checked_prefix(name)


def _prefix(name: str) -> str:
    """A model's name as the prefix of files and functions: a word of C that no other file of the folder has."""
    from polybody.kernels.csource import KEYWORDS

    word = _identifier(name)[:PREFIX_LENGTH]
    return f"model_{word}" if word in KEYWORDS or word.lower() in TAKEN else word


def _checked_prefix(name: str) -> str:
    """A prefix that the user chose; that it is a word of C is seen where it is used."""
    if name.lower() in TAKEN:
        raise InputError(f"the library cannot be named {name!r}, since its folder has another file of that name")
    if len(name) > PREFIX_LENGTH:
        raise InputError(f"the library's name has {len(name)} characters; at most {PREFIX_LENGTH} are possible")
    return name


def _identifier(text: str) -> str:
    plain = re.sub(r"\W", "_", text, flags=re.ASCII)
    return plain if plain[:1].isalpha() else f"model_{plain}"


def _function(model: Model, wanted: str) -> Any:
    """A quantity under a C name."""
    if wanted in ("integrate", "difference") and _without_formula(model):
        raise InputError(
            f"{wanted!r} cannot be written in C: joint {_without_formula(model)[0]!r} has no closed formula for it; "
            "describe it as a compound joint, or take 'rate' and, without loops, 'rk4_step'"
        )
    return named_text(model, wanted, _identifier(wanted.replace(":", "_")))


def _shapes(model: Model, wanted: Sequence[str], called: Sequence[str]) -> dict[str, list[tuple[int, ...]]]:
    """{C name: shapes of the results}; what is reported beside them is a vector."""
    from polybody.quantities.table import quantity

    names = [name for name in dict.fromkeys([*wanted, *called]) if name not in STEPS]
    return {
        _identifier(name.replace(":", "_")): [
            shape for _, shape in model.engine.results(quantity(model.mechanism, name))
        ]
        for name in names
    }


def _samples(model: Model, function: Any) -> list[tuple[list[Any], list[Any]]]:
    """States and what the function gives there, by its graph read in Python."""
    rng = np.random.default_rng(20)
    result = []
    for _ in range(STATES):
        state = _state(model, rng, "q1" in function.name_in())
        inputs = [state[function.name_in(k)] for k in range(function.n_in())]
        result.append((inputs, [np.asarray(x, dtype=float).ravel() for x in function.call(inputs)]))
    return result


def _state(model: Model, rng: np.random.Generator, two: bool = False) -> dict[str, Any]:
    """A state by the names of arguments; with loops one that keeps them. Another configuration, q1, where `two`."""
    q, (v, a, tau, d) = _configuration(model, rng), rng.normal(size=(4, model.nv))
    v = model.assemble_velocity(q, v)
    a = model.assemble_acceleration(q, v, a)
    sizes, other = model.engine.sizes(), model.integrate(q, 0.1 * d) if two else q
    words = (("multipliers", "rows"), ("loads", "loads"), ("wrenches", "wrenches"))
    loads = {name: rng.normal(size=sizes[word]) for name, word in words}
    numbers = {"parameters": model.parameters.nominal}
    return {"q": q, "v": v, "a": a, "tau": tau, "d": d, "q0": q, "q1": other, **loads, **numbers}


def _configuration(model: Model, rng: np.random.Generator) -> Any:
    """A random one; with loops some way along the motions that they allow from a place in general position."""
    if not len(model.constraints):
        return model.random_configuration(rng)
    start = model._assembly.general_place(model.assemble())
    way = model.assemble_velocity(start, rng.normal(size=model.nv))
    for size in (AWAY, AWAY / 4, AWAY / 16):
        try:
            return model.assemble(model.integrate(start, size * way / (np.abs(way).max(initial=0.0) or 1.0)))
        except PolybodyError:  # over the edge of the workspace
            continue
    return start


def _step_checks(prefix: str, model: Model, functions: list[Any], steps: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(name, lines) of the self-test's functions of steps; `simulate` makes one step with no forces."""
    rng, found = np.random.default_rng(21), []
    nominal = np.asarray(model.parameters.nominal, dtype=float)
    reference = Reference({f.name(): f for f in functions}, quaternions(model), bool(len(model.constraints)), nominal)
    parametrised = any("parameters" in f.name_in() for f in functions)
    given, numbers = (", parameters", [c_array("parameters", nominal)]) if parametrised else ("", [])
    for step in steps:
        for k in range(STATES):
            (q, v, tau), new = _stepped(model, rng, reference, step)
            if step == "simulate":
                call = [f"    if ({prefix}_simulate(0.0, {DURATION!r}, 1, 0, 0, out0, out1{given})) failed++;"]
            else:
                run = f"{prefix}_{step}(out0, out1, tau{given}, {DURATION!r}, out0, out1)"
                call = [c_array("tau", tau), f"    if ({run}) failed++;"]
            lines = [c_array(f"wanted{i}", x) for i, x in enumerate(new)]
            lines += [c_array(f"out{i}", x, constant=False) for i, x in enumerate((q, v))]
            lines += numbers + call
            for i, name in enumerate("qv"):
                lines.append(f'    failed += check("{step} {name}", out{i}, wanted{i}, {len(new[i])});')
            found.append((f"{step}_{k}", lines))
    return found


def _stepped(model: Model, rng: np.random.Generator, reference: Reference, step: str) -> tuple[Any, Any]:
    """(q, v, tau) and the state a step later, of a state that moves little.

    Where hardly any mass moves, forces of 1 N accelerate so much that no step of this length means anything: then
    another state is taken, under half the force.
    """
    free = step == "simulate"
    method = getattr(reference, "rk4_step" if free else step)
    for k in range(TRIES):
        state = _state(model, rng)
        q, v, tau = state["q"], state["v"], 0.5**k * state["tau"]
        new = method(q, v, 0 * tau if free else tau, DURATION)
        if np.abs(new[0] - q).max(initial=0.0) < FAR:
            break
    return (q, v, tau), new


def selftest_head(prefix: str) -> list[str]:
    """The lines of a self-test up to its first function of states."""
    return [
        f"/* Holds {prefix} against numbers computed by polybody. Exit code 0 where all agree. */",
        f'#include "{prefix}.h"', "", "#include <math.h>", "#include <stdio.h>", "",
        "static int check(const char *what, const double *found, const double *wanted, int n) {",
        "    double worst = 0.0, scale = 1.0;",
        "    int i;",
        "    for (i = 0; i < n; i++) {",
        "        if (fabs(wanted[i]) > scale) scale = fabs(wanted[i]);",
        "        if (!(fabs(found[i] - wanted[i]) <= worst)) worst = fabs(found[i] - wanted[i]);",
        "    }",
        f"    if (worst <= {TOLERANCE!r} * scale) return 0;",
        '    printf("%s: off by %g, scale %g\\n", what, worst, scale);',
        "    return 1;", "}", "",
    ]  # fmt: skip


def _selftest(prefix: str, model: Model, functions: list[Any], steps: Sequence[str]) -> str:
    lines = selftest_head(prefix)
    calls = []
    for function in functions:
        for k, (inputs, outputs) in enumerate(_samples(model, function)):
            label = f"{function.name()}_{k}"
            lines += [f"static int {label}(void) {{", "    int failed = 0;"]
            lines += [c_array(f"in{i}", x) for i, x in enumerate(inputs)]
            lines += [c_array(f"wanted{i}", x) for i, x in enumerate(outputs)]
            lines += [f"    double out{i}[{max(len(x), 1)}];" for i, x in enumerate(outputs)]
            arguments = [f"in{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
            lines.append(f"    {prefix}_{function.name()}({', '.join(arguments)});")
            for i, x in enumerate(outputs):
                name = f"{function.name()} {function.name_out(i)}"
                lines.append(f'    failed += check("{name}", out{i}, wanted{i}, {len(x)});')
            lines += ["    return failed;", "}", ""]
            calls.append(f"    failed += {label}();")
    for label, body in _step_checks(prefix, model, functions, steps):
        lines += [f"static int {label}(void) {{", "    int failed = 0;", *body, "    return failed;", "}", ""]
        calls.append(f"    failed += {label}();")
    return "\n".join([*lines, *selftest_end(calls)])


def selftest_end(calls: Sequence[str]) -> list[str]:
    """The main function of a self-test."""
    return ["int main(void) {", "    int failed = 0;", *calls,
            f'    printf(failed ? "%d FAILED\\n" : "all {len(calls)} states agree (%d failed)\\n", failed);',
            "    return failed != 0;", "}", ""]  # fmt: skip


def c_array(name: str, values: Any, *, constant: bool = True) -> str:
    numbers = ", ".join(repr(float(x)) for x in values) or "0.0"
    return f"    {'const ' if constant else ''}double {name}[{max(len(values), 1)}] = {{{numbers}}};"


def makefile(prefix: str) -> str:
    """The text of the Makefile."""
    return f"""CC = gcc
CFLAGS = -std=c99 -Wall -Wextra -Werror -pedantic -O2

all: lib{prefix}.so selftest

{prefix}.o: {prefix}.c {prefix}.h
\t$(CC) $(CFLAGS) -fPIC -c {prefix}.c

lib{prefix}.so: {prefix}.o
\t$(CC) -shared -o $@ {prefix}.o -lm

selftest: selftest.c {prefix}.o
\t$(CC) $(CFLAGS) -o $@ selftest.c {prefix}.o -lm

test: selftest
\t./selftest

clean:
\trm -f {prefix}.o lib{prefix}.so selftest

.PHONY: all test clean
"""


def _readme(prefix: str, model: Model, functions: list[Any], steps: Sequence[str]) -> str:
    def cell(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|")

    rows = []
    for f in functions:
        takes = ", ".join(f"{f.name_in(k)}[{f.numel_in(k)}]" for k in range(f.n_in()))
        gives = ", ".join(f"{f.name_out(k)}[{f.numel_out(k)}]" for k in range(f.n_out()))
        rows.append(f"| `{prefix}_{f.name()}` | {takes} | {gives} |")
    more = ", parameters" if any("parameters" in f.name_in() for f in functions) else ""
    rows += [f"| `{prefix}_{step}` | {STEP_ARGUMENTS[step].replace('tau', 'tau' + more)} |" for step in steps]
    joints = [f"| {cell(name)} | {_range(q)} | {_range(v)} |" for name, (q, v) in model.joint_slices().items()]
    return "\n".join(
        [
            f"# {model.name} in C",
            "",
            "C99, needs `<math.h>` only; allocates nothing, keeps no state, may be called from several threads.",
            "Matrices are row by row. SI units and radians. `make test` builds the self-test and runs it.",
            f"C++: `{prefix}.hpp`, header only, with Eigen. CMake: `find_package({prefix})` or `add_subdirectory`,",
            f"targets `{prefix}::{prefix}` (C) and `{prefix}::cpp` (C++).",
            "",
            "| function | takes | gives |",
            "|---|---|---|",
            *rows,
            "",
            "| joint | numbers of q | numbers of v |",
            "|---|---|---|",
            *joints,
            "",
            "Quaternions are (x, y, z, w), unit. The equation: M a + C v + gravity = tau + passive.",
            *_steps(prefix, steps),
            *_loops(model),
            *_parameters(prefix, model),
            "Written by polybody.",
            "",
        ]
    )


#: what steps take and give, as cells of the README's table
STEP_ARGUMENTS = {
    "semi_implicit_step": "q, v, tau, dt | q_next, v_next",
    "rk4_step": "q, v, tau, dt | q_next, v_next",
    "simulate": "t, dt, steps, forces, context | q, v in place",
}


def _steps(prefix: str, steps: Sequence[str]) -> list[str]:
    if not steps:
        return []
    P = prefix.upper()
    return [
        "",
        f"Steps return {P}_DONE (0), {P}_NOT_FINITE, {P}_OFF_LOOPS or {P}_SINGULAR. Quaternions stay unit and loops",
        "closed. `semi_implicit_step` is of order 1 in dt, `rk4_step` of order 4, both with tau held; `simulate` asks",
        "a function of yours for tau at every stage of order-4 steps.",
    ]


def _loops(model: Model) -> list[str]:
    if not len(model.constraints):
        return []
    return [
        "",
        "The loops are honoured. Matrices and forces are those of the independent coordinates",
        f"{model.constraints.independent}, accelerations and joint forces those of all joints; forces are found at",
        "active joints only. States must be on the loops: `projection_step` gives the step of q and the change of v",
        "that lead there (Newton's). `diagnostics` is [|phi|^2, |J v|^2, growth, leftover, narrow, |J a + gamma|^2]:",
        "believe an answer where the first two (and for inverse dynamics the last) vanish, growth and narrow are below",
        "1e10 and leftover is below 1e-14; elsewhere the mechanism is nearly singular.",
    ]


def _parameters(prefix: str, model: Model) -> list[str]:
    if not len(model.parameters):
        return []
    rows = [f"| {k} | {p.name} | {p.unit} | {x!r} |" for k, (p, x) in enumerate(zip(
        model.parameters, model.parameters.nominal.tolist(), strict=True))]  # fmt: skip
    return [
        "",
        "Functions do not look at whether parameters are possible.",
        f"`{prefix}_check_parameters(parameters)` returns 0 if they are, k + 1 if parameter k is not",
        f"(`{prefix}_parameter_name(k)`), {len(rows) + 1} if several together are not.",
        "",
        "| k | parameter | unit | nominal |",
        "|---|---|---|---|",
        *rows,
        "",
    ]


def _range(part: slice) -> str:
    return str(part.start) if part.stop == part.start + 1 else f"{part.start} to {part.stop - 1}"


__all__ = ["DEFAULT", "c_array", "export_c", "free_folder", "library_prefix", "makefile", "selftest_end",
           "selftest_head", "write_folder"]  # fmt: skip
