"""Steps in time for the C library of a model, written over its other functions.

    q̇ = V(q) v,    v̇ = FD(q, v, tau)

- `semi_implicit_step`: v₁ = v₀ + h FD(q₀, v₀, tau), then q₁ = q₀ ∘ exp(h v₁) by `integrate`. Order 1.
- `rk4_step`: the classical method of order 4 on the numbers of q, with q̇ from `rate`.
- `simulate`: many such steps of order 4 with joint forces from a function of (t, q, v), asked at every stage.

Quaternions are read as directions at the stages and made unit after the step: what they are off is of the step's own
error, so the order stays. With loops a step ends with Newton's way back to them (`projection_step`), first of q, then
of v. These are the rules of `pb.simulate`, and the texts below are checked against it. A step is not a quantity, since
it has a duration: it calls quantities, so that the code of forward dynamics is there once and not four times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.kernels.csource import Written

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray

#: what each step calls: names of quantities, of a tree
STEPS = {
    "semi_implicit_step": ("forward_dynamics", "integrate"),
    "rk4_step": ("forward_dynamics", "rate"),
    "simulate": ("forward_dynamics", "rate"),
}
#: and what the way back to loops calls
BACK = ("projection_step", "integrate")
#: Newton's steps to the loops, and the |φ|² at which they end
TURNS, KEPT = 12, 1e-28
#: |φ|² from which a state is off its loops, and the growth of elimination from which it is singular
OFF, SINGULAR = 1e-18, 1e10


def needed(steps: Sequence[str], loops: bool) -> list[str]:
    """The quantities that these steps call."""
    names = [name for step in steps for name in STEPS[step]]
    return list(dict.fromkeys([*names, *(BACK if loops and steps else ())]))


@dataclass(frozen=True)
class Names:
    """How steps call the library's functions: the prefix, which have parameters of the model as an input, loops."""

    prefix: str
    parametrised: frozenset[str]
    loops: bool

    @property
    def given(self) -> str:
        """The argument that hands parameters on, where there are any."""
        return ", parameters" if self.parametrised else ""

    @property
    def taken(self) -> str:
        """And its declaration."""
        return ", const double *parameters" if self.parametrised else ""

    @property
    def unused(self) -> str:
        """A line that keeps compilers from complaining where nothing needs them."""
        return "    (void)parameters;\n" if self.parametrised else ""

    def call(self, name: str, inputs: str, outputs: str) -> str:
        """One call; parameters come after the other inputs."""
        more = ", parameters" if name in self.parametrised else ""
        return f"{self.prefix}_{name}({inputs}{more}, {outputs});"


def written(prefix: str, model: Model, steps: Sequence[str], functions: Sequence[Any]) -> list[Written]:
    """The C texts of these steps, what they share first."""
    if not steps:
        return []
    loops = bool(len(model.constraints))
    with_parameters = frozenset(f.name() for f in functions if "parameters" in f.name_in())
    names = Names(prefix, with_parameters, loops)
    starts = quaternions(model)
    curved = "rk4_step" in steps or "simulate" in steps
    made = [_shape(prefix, model), _accelerate(names)]
    if curved and starts:
        made.append(_unit(starts))
    if loops:
        made.append(_close(names))
    if curved:
        made.append(_forces(names))
        made.append(_rk4(names, bool(starts)))
    texts = {"semi_implicit_step": _semi_implicit_step, "rk4_step": _rk4_step, "simulate": _simulate}
    return made + [texts[step](names) for step in texts if step in steps]


def quaternions(model: Model) -> list[int]:
    """Where the quaternions of q start."""
    return [joint.q.stop - 4 for joint in model.mechanism.independent_joints if joint.nq != joint.nv]


def _shape(prefix: str, model: Model) -> Written:
    P = prefix.upper()
    header = (
        f"/* How many numbers q and v have; what steps return. */\n"
        f"enum {{ {P}_NQ = {model.nq}, {P}_NV = {model.nv} }};\n"
        f"enum {{ {P}_DONE = 0, {P}_NOT_FINITE = 1, {P}_OFF_LOOPS = 2, {P}_SINGULAR = 3 }};"
    )
    room = f"enum {{ NQ_ROOM = {max(model.nq, 1)}, NV_ROOM = {max(model.nv, 1)} }};"
    return Written(header, room)


def _accelerate(names: Names) -> Written:
    P, loops = names.prefix.upper(), names.loops
    told, extra = ("    double told[6];\n", ", told") if loops else ("", "")
    singular = f"    if (!(told[2] < {SINGULAR!r} && told[4] < {SINGULAR!r})) return {P}_SINGULAR;\n" if loops else ""
    return Written(
        "",
        f"static int accelerate(const double *q, const double *v, const double *tau{names.taken}, double *a) {{\n{told}"
        f"    int i;\n"
        f"    {names.call('forward_dynamics', 'q, v, tau', f'a{extra}')}\n{names.unused}"
        f"    for (i = 0; i < {P}_NV; i++) if (!isfinite(a[i])) return {P}_NOT_FINITE;\n{singular}"
        f"    return {P}_DONE;\n}}",
    )


def _unit(starts: Sequence[int]) -> Written:
    lines = [f"    make_unit(q + {k});" for k in starts]
    return Written(
        "",
        "static void make_unit(double *x) {\n"
        "    const double length = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);\n"
        "    int i;\n"
        "    for (i = 0; i < 4; i++) x[i] /= length;\n}\n\n"
        "static void normalize(double *q) {\n" + "\n".join(lines) + "\n}",
    )


def _close(names: Names) -> Written:
    P = names.prefix.upper()
    return Written(
        "",
        f"/* Newton's way back to the loops: q first, then v. */\n"
        f"static int close_loops(double *q, double *v{names.taken}) {{\n"
        f"    double step[NV_ROOM], change[NV_ROOM], told[6], size = INFINITY;\n"
        f"    int i, turn;\n{names.unused}"
        f"    for (turn = 0; turn < {TURNS}; turn++) {{\n"
        f"        {names.call('projection_step', 'q, v', 'step, change, told')}\n"
        f"        if (!(told[2] < {SINGULAR!r} && told[4] < {SINGULAR!r})) return {P}_SINGULAR;\n"
        f"        if (told[0] < {KEPT!r} || !(told[0] < size)) break;\n"
        f"        size = told[0];\n"
        f"        {names.call('integrate', 'q, step', 'q')}\n"
        f"    }}\n"
        f"    for (i = 0; i < {P}_NV; i++) v[i] += change[i];\n"
        f"    return told[0] < {OFF!r} ? {P}_DONE : {P}_OFF_LOOPS;\n}}",
    )


def _forces(names: Names) -> Written:
    prefix = names.prefix
    return Written(
        f"/* Joint forces tau[nv] at a time and state; `context` is what the caller gave. */\n"
        f"typedef void (*{prefix}_forces)(double t, const double *q, const double *v, double *tau, void *context);",
        f"static int rates(double t, const double *q, const double *v, {prefix}_forces forces, void *context,\n"
        f"                 double *qdot, double *a{names.taken}) {{\n"
        f"    double tau[NV_ROOM] = {{0.0}};\n"
        f"    if (forces) forces(t, q, v, tau, context);\n"
        f"    {names.call('rate', 'q, v', 'qdot')}\n"
        f"    return accelerate(q, v, tau{names.given}, a);\n}}",
    )


def _rk4(names: Names, curved: bool) -> Written:
    prefix, P = names.prefix, names.prefix.upper()
    unit = "        normalize(at_q);\n" if curved else ""
    unit_end = "    normalize(q);\n" if curved else ""
    end = f"    return close_loops(q, v{names.given});\n" if names.loops else f"    return {P}_DONE;\n"
    return Written(
        "",
        f"static int rk4(double t, double dt, {prefix}_forces forces, void *context, double *q, double *v"
        f"{names.taken}) {{\n"
        f"    static const double reach[4] = {{0.0, 0.5, 0.5, 1.0}}, weight[4] = {{1.0, 2.0, 2.0, 1.0}};\n"
        f"    double at_q[NQ_ROOM], at_v[NV_ROOM], k_q[NQ_ROOM], k_v[NV_ROOM];\n"
        f"    double sum_q[NQ_ROOM], sum_v[NV_ROOM];\n"
        f"    int i, stage, bad;\n"
        f"    for (i = 0; i < {P}_NQ; i++) k_q[i] = sum_q[i] = 0.0;\n"
        f"    for (i = 0; i < {P}_NV; i++) k_v[i] = sum_v[i] = 0.0;\n"
        f"    for (stage = 0; stage < 4; stage++) {{\n"
        f"        const double h = reach[stage] * dt;\n"
        f"        for (i = 0; i < {P}_NQ; i++) at_q[i] = q[i] + h * k_q[i];\n"
        f"        for (i = 0; i < {P}_NV; i++) at_v[i] = v[i] + h * k_v[i];\n{unit}"
        f"        bad = rates(t + h, at_q, at_v, forces, context, k_q, k_v{names.given});\n"
        f"        if (bad) return bad;\n"
        f"        for (i = 0; i < {P}_NQ; i++) sum_q[i] += weight[stage] * k_q[i];\n"
        f"        for (i = 0; i < {P}_NV; i++) sum_v[i] += weight[stage] * k_v[i];\n"
        f"    }}\n"
        f"    for (i = 0; i < {P}_NQ; i++) q[i] += dt / 6.0 * sum_q[i];\n"
        f"    for (i = 0; i < {P}_NV; i++) v[i] += dt / 6.0 * sum_v[i];\n{unit_end}{end}}}",
    )


def _step(names: Names, name: str) -> str:
    """The head of a step with held forces."""
    state = f"const double *q, const double *v, const double *tau{names.taken}"
    return f"int {names.prefix}_{name}({state}, double dt,\n    double *q_next, double *v_next)"


def _semi_implicit_step(names: Names) -> Written:
    P, head = names.prefix.upper(), _step(names, "semi_implicit_step")
    back = f"    bad = close_loops(new_q, new_v{names.given});\n    if (bad) return bad;\n"
    end = back if names.loops else ""
    return Written(
        f"/* One step of semi-implicit Euler, tau held: v first, then q along the manifold. Inputs and outputs may\n"
        f"   overlap. Returns {P}_DONE, or what is wrong; then nothing is written. */\n{head};",
        f"{head} {{\n"
        f"    double a[NV_ROOM], d[NV_ROOM], new_q[NQ_ROOM], new_v[NV_ROOM];\n"
        f"    int i, bad = accelerate(q, v, tau{names.given}, a);\n"
        f"    if (bad) return bad;\n"
        f"    for (i = 0; i < {P}_NV; i++) {{\n"
        f"        new_v[i] = v[i] + dt * a[i];\n"
        f"        d[i] = dt * new_v[i];\n"
        f"    }}\n"
        f"    {names.call('integrate', 'q, d', 'new_q')}\n{end}" + _handed(P) + "}",
    )


def _handed(P: str) -> str:
    return (
        f"    for (i = 0; i < {P}_NQ; i++) q_next[i] = new_q[i];\n"
        f"    for (i = 0; i < {P}_NV; i++) v_next[i] = new_v[i];\n"
        f"    return {P}_DONE;\n"
    )


def _rk4_step(names: Names) -> Written:
    P, head = names.prefix.upper(), _step(names, "rk4_step")
    return Written(
        f"/* One step of the Runge-Kutta method of order 4, tau held. Inputs and outputs may overlap. Returns\n"
        f"   {P}_DONE, or what is wrong; then nothing is written. */\n{head};",
        f"static void held(double t, const double *q, const double *v, double *tau, void *context) {{\n"
        f"    int i;\n"
        f"    (void)t; (void)q; (void)v;\n"
        f"    for (i = 0; i < {P}_NV; i++) tau[i] = ((double *)context)[i];\n}}\n\n"
        f"{head} {{\n"
        f"    double new_q[NQ_ROOM], new_v[NV_ROOM], kept[NV_ROOM];\n"
        f"    int i, bad;\n"
        f"    for (i = 0; i < {P}_NQ; i++) new_q[i] = q[i];\n"
        f"    for (i = 0; i < {P}_NV; i++) new_v[i] = v[i];\n"
        f"    for (i = 0; i < {P}_NV; i++) kept[i] = tau[i];\n"
        f"    bad = rk4(0.0, dt, held, kept, new_q, new_v{names.given});\n"
        f"    if (bad) return bad;\n" + _handed(P) + "}",
    )


def _simulate(names: Names) -> Written:
    prefix, P = names.prefix, names.prefix.upper()
    head = f"int {prefix}_simulate(double t, double dt, long steps, {prefix}_forces forces, void *context,\n"
    head += f"    double *q, double *v{names.taken})"
    return Written(
        f"/* `steps` steps of order 4 from time t, in place; joint forces are asked at every stage (NULL: none).\n"
        f"   Returns {P}_DONE, or what is wrong; then q and v are those of the last good step. */\n{head};",
        f"{head} {{\n"
        f"    double new_q[NQ_ROOM], new_v[NV_ROOM];\n"
        f"    long step;\n"
        f"    int i;\n"
        f"    for (i = 0; i < {P}_NQ; i++) new_q[i] = q[i];\n"
        f"    for (i = 0; i < {P}_NV; i++) new_v[i] = v[i];\n"
        f"    for (step = 0; step < steps; step++) {{\n"
        f"        const int bad = rk4(t + (double)step * dt, dt, forces, context, new_q, new_v{names.given});\n"
        f"        if (bad) return bad;\n"
        f"        for (i = 0; i < {P}_NQ; i++) q[i] = new_q[i];\n"
        f"        for (i = 0; i < {P}_NV; i++) v[i] = new_v[i];\n"
        f"    }}\n"
        f"    return {P}_DONE;\n}}",
    )


@dataclass(frozen=True)
class Reference:
    """The same steps by the same functions, read in Python: what the self-test holds the C against."""

    functions: dict[str, Any]
    starts: list[int]
    loops: bool
    parameters: Array

    def semi_implicit_step(self, q: Array, v: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        v = v + dt * self._call("forward_dynamics", q, v, tau)[0]
        return self._closed(self._call("integrate", q, dt * v)[0], v)

    def rk4_step(self, q: Array, v: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        rates: Callable[[Array, Array], tuple[Array, Array]] = lambda q, v: (  # noqa: E731
            self._call("rate", self._unit(q), v)[0], self._call("forward_dynamics", self._unit(q), v, tau)[0]
        )  # fmt: skip
        k1 = rates(q, v)
        k2 = rates(q + dt / 2 * k1[0], v + dt / 2 * k1[1])
        k3 = rates(q + dt / 2 * k2[0], v + dt / 2 * k2[1])
        k4 = rates(q + dt * k3[0], v + dt * k3[1])
        sums = [a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
        return self._closed(self._unit(q + dt / 6 * sums[0]), v + dt / 6 * sums[1])

    def _closed(self, q: Array, v: Array) -> tuple[Array, Array]:
        for _ in range(TURNS if self.loops else 0):
            step, change, told = self._call("projection_step", q, v)
            if told[0] < KEPT:
                return q, v + change
            q = self._call("integrate", q, step)[0]
        return q, v + self._call("projection_step", q, v)[1] if self.loops else v

    def _unit(self, q: Array) -> Array:
        q = q.copy()
        for k in self.starts:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        return q

    def _call(self, name: str, *arrays: Array) -> list[Array]:
        function = self.functions[name]
        more = [self.parameters] if "parameters" in function.name_in() else []
        return [np.asarray(x, dtype=float).ravel() for x in function.call([*arrays, *more])]


__all__ = ["STEPS", "Reference", "needed", "quaternions", "written"]
