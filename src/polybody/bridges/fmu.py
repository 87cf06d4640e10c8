"""A model as an FMU (FMI 3.0): its C source, a description in XML, and a binary where a C compiler is found.

Continuous states are q and v, inputs the joint forces tau, tunable parameters those of `model.with_parameters`, the
rebound of stops (`restitution`) and the step of co-simulation. Derivatives of the states along any direction of states,
inputs and parameters are exact (CasADi's forward mode of the same expressions). Joint limits are events: see
`fmi3/model.c`, which holds everything that does not depend on the model. Loops are closed by Newton's steps after
initialization and after each step of co-simulation; in model exchange their positions drift with the importer's
tolerance.
"""

from __future__ import annotations

import hashlib
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.bridges.c_library import _prefix, _without_formula
from polybody.bridges.c_parameters import margin_functions, parameter_checks
from polybody.bridges.c_steps import quaternions
from polybody.bridges.fmu_package import Variables, description, fmu_target, pack, write_sources
from polybody.errors import InputError
from polybody.interrupts import interruptible
from polybody.model.arguments import require_model
from polybody.model.dispatch import answered_by

if TYPE_CHECKING:
    from polybody.model.model import Model

STEP = 1e-3


@answered_by("exported_fmu")
def export_fmu(
    model: Model, path: str | os.PathLike[str], *, q0: Any = None, v0: Any = None, step: float = STEP,
    binary: bool | None = None, force: bool = False,
) -> Path:  # fmt: skip
    """Write an FMU (FMI 3.0, model exchange and co-simulation) of a model or a network, and return its path.

    Of a network: `pb.export_fmu(network, path, initial, inputs=…, step=…, tolerance=…)`, its switches as events. Of a
    model:

    The initial state is q0 (default: neutral; with loops, assembled from it) and v0 (default: at rest). `step` is the
    internal step of co-simulation in seconds. Parameters of `model.with_parameters(…)` are tunable. The C source is
    always included; `binary=None` adds a binary for this machine if a C compiler is found, True requires one, False
    omits it.
    """
    require_model("export_fmu", model)
    target = fmu_target(path, step, force)
    if len(model.constraints) and _without_formula(model):
        raise InputError(f"joint {_without_formula(model)[0]!r} has no closed formula for integrate, which loops need")
    made = _Fmu(model, *_start(model, q0, v0), float(step))
    return pack(target, made.name, made.write, binary)


def _start(model: Model, q0: Any, v0: Any) -> tuple[Any, Any]:
    """The state at which the FMU starts, checked."""
    from polybody.model.arguments import state_array

    q = model.neutral() if q0 is None else model.normalize(state_array("q0", q0, model.nq))
    v = np.zeros(model.nv) if v0 is None else state_array("v0", v0, model.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise InputError("an FMU starts at one state; q0 and v0 have no batch dimensions")
    if len(model.constraints):
        q = model.assemble(q)
        v = model.assemble_velocity(q, v)
    return q, v


class _Fmu:
    """The files of one FMU."""

    def __init__(self, model: Model, q: Any, v: Any, step: float) -> None:
        self.model, self.q, self.v, self.step = model, q, v, step
        self.name = _prefix(model.name)
        self.loops = bool(len(model.constraints))
        self.parameters = model.parameters.names if len(model.parameters.names) else []
        self.nominal = np.asarray(model.parameters.nominal, dtype=float)
        self.bounds = [(p.lower, p.upper) for p in model.parameters]
        self.limits = _limits(model)

    def write(self, root: Path) -> None:
        from polybody.kernels.csource import generate

        comment = f"{self.model.name}: equations of motion, written by polybody. SI units."
        checks = parameter_checks("polybody", self.model)
        functions = [*self._functions(), *margin_functions(self.model)]
        text = generate("polybody", functions, comment=comment, more=checks)
        shared = resources.files("polybody") / "bridges" / "fmi3" / "model.c"
        token = "{" + hashlib.sha256((text.source + self._shape("")).encode()).hexdigest()[:32] + "}"
        files = {"polybody.c": text.source, "polybody.h": text.header, "shape.h": self._shape(token),
                 "fmu.c": shared.read_text(encoding="utf-8")}  # fmt: skip
        write_sources(root, self.name, files)
        (root / "modelDescription.xml").write_text(self._description(token), encoding="utf-8")

    @interruptible
    def _functions(self) -> list[Any]:
        """The CasADi functions behind the calls of fmi3/model.c."""
        import casadi as ca

        m, count = self.model, max(len(self.parameters), 1)
        q, v, tau, p = (ca.SX.sym(name, n) for name, n in (("q", m.nq), ("v", m.nv), ("tau", m.nv), ("p", count)))
        given = {"q": q, "v": v, "tau": tau, "parameters": p[: len(self.parameters)]}

        def ask(name: str, **more: Any) -> list[Any]:
            function = m.casadi(name)
            answers = function(*[{**given, **more}[function.name_in(k)] for k in range(function.n_in())])
            return list(answers) if isinstance(answers, (tuple, list)) else [answers]

        (qdot,), (a, *told) = ask("rate"), ask("forward_dynamics")
        trust = told[0] if told else ca.SX.zeros(1)
        x, y = ca.vertcat(q, v, tau, p), ca.vertcat(qdot, a)
        seeds = [ca.SX.sym(f"d{name}", s.numel()) for name, s in (("q", q), ("v", v), ("tau", tau), ("p", p))]
        along = ca.jtimes(y, x, ca.vertcat(*seeds))
        made = [
            ca.Function("equations", [q, v, tau, p], [qdot, a, trust], ["q", "v", "tau", "p"], ["qdot", "a", "trust"]),
            ca.Function("directional", [q, v, tau, p, *seeds], [along[: m.nq], along[m.nq :]],
                        ["q", "v", "tau", "p", "dq", "dv", "dtau", "dp"], ["dqdot", "da"]),
        ]  # fmt: skip
        if self.loops:
            step, change, trust = ask("projection_step")
            d = ca.SX.sym("d", m.nv)
            (reached,) = ask("integrate", d=d)
            made.append(ca.Function("back", [q, v, p], [step, change, trust], ["q", "v", "p"],
                                    ["step", "change", "trust"]))
            made.append(ca.Function("walk", [q, d], [reached], ["q", "d"], ["q_next"]))
        return made

    def _shape(self, token: str) -> str:
        m, (at_q, at_v, lower, upper) = self.model, self.limits

        def table(kind: str, name: str, values: Any) -> str:
            numbers = ", ".join(repr(float(x)) if kind == "double" else str(int(x)) for x in values) or "0"
            return f"static const {kind} {name}[] = {{{numbers.replace('inf', 'INFINITY')}}};"

        sizes = {"NQ": m.nq, "NV": m.nv, "NP": len(self.parameters), "NL": len(at_q)}
        lines = [f"#define {key} {size}\n#define {key}_ROOM {max(size, 1)}" for key, size in sizes.items()]
        starts = quaternions(m)
        calls = {"equations": 7, "directional": 10, **({"back": 6, "walk": 3} if self.loops else {})}
        return "\n".join(
            [
                "/* Sizes, start values, limits and calls of one model, written by polybody. */",
                "#include <math.h>", '#include "polybody.h"', *lines,
                f"#define HAS_LOOPS {int(self.loops)}", "#define TRUST_ROOM 8",
                f"#define NQUATERNIONS {len(starts)}", f'#define TOKEN "{token}"', f"#define START_STEP {self.step!r}",
                *(f"#define {name} polybody_{name}" for name in calls),
                table("double", "START_Q", self.q), table("double", "START_V", self.v),
                table("double", "START_P", self.nominal), table("int", "QUATERNION", starts),
                table("int", "LIMIT_Q", at_q), table("int", "LIMIT_V", at_v),
                table("double", "LIMIT_LOWER", lower), table("double", "LIMIT_UPPER", upper), "",
            ]
        )  # fmt: skip

    def _description(self, token: str) -> str:
        """modelDescription.xml; value references run as in fmi3/model.c."""
        m = self.model
        q_names, v_names = _numbered(m, 0), _numbered(m, 1)
        q_units, v_units = _units(m, "q"), _units(m, "v")
        first = {"q": 1, "v": 1 + m.nq}
        first["qdot"] = first["v"] + m.nv
        first["a"] = first["qdot"] + m.nq
        first["tau"] = first["a"] + m.nv
        first["p"] = first["tau"] + m.nv
        variables = Variables()
        add = variables.add

        for i, name in enumerate(q_names):
            add(f"q.{name}", first["q"] + i, causality="output", variability="continuous", initial="exact",
                start=repr(float(self.q[i])), unit=q_units[i])  # fmt: skip
        for i, name in enumerate(v_names):
            add(f"v.{name}", first["v"] + i, causality="output", variability="continuous", initial="exact",
                start=repr(float(self.v[i])), unit=v_units[i])  # fmt: skip
        for i, name in enumerate(q_names):
            add(f"der(q.{name})", first["qdot"] + i, causality="local", variability="continuous",
                derivative=first["q"] + i)  # fmt: skip
        for i, name in enumerate(v_names):
            add(f"der(v.{name})", first["a"] + i, causality="local", variability="continuous",
                derivative=first["v"] + i)  # fmt: skip
        for i, name in enumerate(v_names):
            add(f"tau.{name}", first["tau"] + i, causality="input", variability="continuous", start="0.0",
                unit="N" if v_units[i] == "m/s" else "N.m")  # fmt: skip
        for i, name in enumerate(self.parameters):
            add(name, first["p"] + i, causality="parameter", variability="tunable", initial="exact",
                start=repr(float(self.nominal[i])), **_bounds(self.bounds[i]))  # fmt: skip
        last = first["p"] + len(self.parameters)
        add("restitution", last, causality="parameter", variability="tunable", initial="exact", start="0.0", min="0.0",
            max="1.0", description="rebound of joints at their limits")  # fmt: skip
        add("step", last + 1, causality="parameter", variability="tunable", initial="exact", start=repr(self.step),
            unit="s", description="internal step of co-simulation")  # fmt: skip
        stops = [f"stop.{q_names[at]}.{side}" for at in self.limits[0] for side in ("lower", "upper")]
        for i, name in enumerate(stops):
            add(name, last + 2 + i, causality="local", variability="continuous",
                description="room to the limit, or the stop's force while the joint rests on it")  # fmt: skip
        units = {unit: _UNITS[unit] for unit in sorted({*q_units, *v_units, "N", "N.m", "s"} - {""})}
        states = [*range(first["q"], first["q"] + m.nq), *range(first["v"], first["v"] + m.nv)]
        inputs = range(first["tau"], first["p"])
        parameters = range(first["p"], last)
        everything = " ".join(str(k) for k in [*states, *inputs, *parameters])
        moving = " ".join(str(k) for k in states)
        structure = [f'<Output valueReference="{k}"/>' for k in states]
        structure += [f'<ContinuousStateDerivative valueReference="{k}" dependencies="{moving}"/>'
                      for k in range(first["qdot"], first["a"])]  # fmt: skip
        structure += [f'<ContinuousStateDerivative valueReference="{k}" dependencies="{everything}"/>'
                      for k in range(first["a"], first["tau"])]  # fmt: skip
        structure += [f'<InitialUnknown valueReference="{k}" dependencies="{everything}"/>'
                      for k in range(first["qdot"], first["tau"])]  # fmt: skip
        structure += [f'<EventIndicator valueReference="{last + 2 + i}"/>' for i in range(len(stops))]
        return description(self.name, m.name, token, self.step, variables, units, structure, derivatives=True)


_UNITS = {
    "rad": '<BaseUnit rad="1"/>', "m": '<BaseUnit m="1"/>', "rad/s": '<BaseUnit rad="1" s="-1"/>',
    "m/s": '<BaseUnit m="1" s="-1"/>', "N": '<BaseUnit kg="1" m="1" s="-2"/>',
    "N.m": '<BaseUnit kg="1" m="2" s="-2"/>', "s": '<BaseUnit s="1"/>',
}  # fmt: skip


def _bounds(bounds: tuple[float, float]) -> dict[str, str]:
    """Attributes of those that are finite."""
    return {word: repr(float(x)) for word, x in zip(("min", "max"), bounds, strict=True) if np.isfinite(x)}


def _numbered(model: Model, which: int) -> list[str]:
    """Names of the numbers of q or v: the joint's, with [k] where it has several."""
    names = []
    for joint, parts in model.joint_slices().items():
        count = parts[which].stop - parts[which].start
        names += [joint] if count == 1 else [f"{joint}[{k + 1}]" for k in range(count)]
    return names


def _units(model: Model, which: str) -> list[str]:
    from polybody.description.coordinate_units import coordinate_units
    from polybody.description.units import ANGLE, LENGTH

    records = {joint.name: joint for joint in model.description.joints}
    found = [unit for name in model.joint_slices() for unit in coordinate_units(records[name], which)]
    words: dict[tuple[str, ...], str] = {(ANGLE,): "rad", (LENGTH,): "m"}
    plain = [words.get(unit, "") for unit in found]
    return plain if which == "q" else [f"{unit}/s" if unit else "" for unit in plain]


def _limits(model: Model) -> tuple[list[int], list[int], list[float], list[float]]:
    """(numbers of q, numbers of v, lower, upper) of the joints with limits."""
    bounds, found = model.joint_limits(), []
    for joint in model.mechanism.independent_joints:
        if joint.nq == joint.nv:
            for k in range(joint.nv):
                low, high = bounds["lower"][joint.v.start + k], bounds["upper"][joint.v.start + k]
                if np.isfinite(low) or np.isfinite(high):
                    found.append((joint.q.start + k, joint.v.start + k, float(low), float(high)))
    return tuple(list(column) for column in zip(*found, strict=True)) if found else ([], [], [], [])  # type: ignore[return-value]


__all__ = ["export_fmu"]
