"""Quantities as straight-line assignments: the common-subexpression form.

The recursions are traced over CasADi's expression graph with the parameters as symbols; value numbering shares equal
subexpressions. What comes out is a list of assignments whose length grows with the recursion, not with the closed form:
the inverse dynamics of a six-joint arm is some five hundred operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from polybody.algebra.domains import GraphDomain, domain
from polybody.algebra.spatial import pose
from polybody.errors import InputError
from polybody.formulations import denoc, poincare
from polybody.mechanism import kinematics
from polybody.mechanism.energy import energy
from polybody.properties import cached_property
from polybody.symbolic.printing import number
from polybody.symbolic.ring import exact

if TYPE_CHECKING:
    from polybody.kernels.tape import Tape
    from polybody.mechanism.mechanism import Mechanism
    from polybody.symbolic.model import SymbolicModel

Array = np.ndarray


def _bias(m: Mechanism, q: Array, p: Array, *, domain: Any) -> Array:
    return denoc.bias_forces(m, q, p, domain=domain) - denoc.passive_forces(m, q, p, domain=domain)


def _kinetic(m: Mechanism, q: Array, p: Array, *, domain: Any) -> Array:
    return domain.array([energy(m, q, p, domain=domain)[0]])


def _potential(m: Mechanism, q: Array, *, domain: Any) -> Array:
    return domain.array([energy(m, q, domain.zeros(m.nv), domain=domain)[1]])


#: quantity -> (arguments, text)
TEXTS: dict[str, tuple[tuple[str, ...], Callable[..., Array]]] = {
    "mass_matrix": (("q",), denoc.mass_matrix),
    "bias": (("q", "p"), _bias),
    "inverse_dynamics": (("q", "p", "p_dot"), denoc.inverse_dynamics),
    "forward_dynamics": (("q", "p", "Q"), denoc.forward_dynamics),
    "coriolis_matrix": (("q", "p"), denoc.coriolis_matrix),
    "poincare_matrix": (("q", "p"), poincare.poincare_matrix),
    "kinematic_matrix": (("q",), poincare.kinematic_matrix),
    "kinetic_energy": (("q", "p"), _kinetic),
    "potential_energy": (("q",), _potential),
}
QUANTITIES = ("equations", *TEXTS)
ORDER = ("q", "p", "p_dot", "Q")


@dataclass(frozen=True, eq=False)
class Program:
    """Assignments, then results by name. `inputs` are (argument, its symbols) in the order a function takes them."""

    inputs: list[tuple[str, tuple[Any, ...]]]
    shapes: dict[str, tuple[int, ...]]
    tape: Tape
    function: Any  # the casadi.Function it was made from

    @cached_property
    def operations(self) -> int:
        """How many additions, multiplications, divisions and functions it takes."""
        return len(_needed(self.tape))

    @cached_property
    def _form(self) -> tuple[list[tuple[Any, Any]], list[list[Any]]]:
        return _assignments(self.tape, [s for _, symbols in self.inputs for s in symbols], self.inputs)

    @property
    def assignments(self) -> list[tuple[Any, Any]]:
        """(symbol, expression) in the order of computation; only what is used more than once has a symbol."""
        return self._form[0]

    @property
    def results(self) -> dict[str, Any]:
        """Each quantity as a SymPy matrix in the assignments' symbols."""
        made = {}
        for (name, shape), entries in zip(self.shapes.items(), self._form[1], strict=True):
            rows, columns = (shape[0], shape[1]) if len(shape) == 2 else (len(entries), 1)
            made[name] = sympy.Matrix(rows, columns, entries)
        return made

    def size(self) -> tuple[int, int]:
        """(operations, characters)."""
        lines = [f"{a}={b}" for a, b in self.assignments] + [str(m.tolist()) for m in self.results.values()]
        text = "".join(lines)
        return self.operations, len(text.replace(" ", ""))

    def evaluate(self, *values: Any) -> dict[str, Array]:
        """The results at numbers, one array an input."""
        found = self.function(*values)
        found = found if isinstance(found, tuple) else (found,)
        return {
            name: np.asarray(x, dtype=float).reshape(shape)
            for (name, shape), x in zip(self.shapes.items(), found, strict=True)
        }


def traced_program(model: SymbolicModel, quantities: tuple[str, ...]) -> Program:
    """The program of several quantities, subexpressions shared between them."""
    import casadi

    from polybody.kernels.tape import from_function

    names: list[str] = []
    for name in quantities:
        names += ["mass_matrix", "bias"] if name == "equations" else [name]
    names = list(dict.fromkeys(names))
    graph = domain("casadi")
    assert isinstance(graph, GraphDomain)
    used = {argument for name in names for argument in (TEXTS[name][0] if name in TEXTS else ("q",))}
    arguments = {key: graph.variables(key, model.mechanism.nv) for key in ORDER if key in used}
    symbols = tuple(model.parameters)
    parameters = graph.variables("parameters", len(symbols))
    table = dict(zip(symbols, parameters[1], strict=True))
    mechanism = model._built(graph, lambda expression: to_graph(expression, table, graph))
    columns, shapes = [], {}
    for name in names:
        value = _traced(name, mechanism, arguments, graph)
        shapes[name] = np.shape(value)
        columns.append(graph.column(value))
    inputs = [column for column, _ in arguments.values()] + ([parameters[0]] if symbols else [])
    function = casadi.Function("program", inputs, casadi.cse(columns))  # pyright: ignore
    named = [(key, getattr(model, key)) for key in arguments] + ([("parameters", symbols)] if symbols else [])
    return Program(named, shapes, from_function(function), function)


def _traced(name: str, mechanism: Mechanism, arguments: dict[str, tuple[Any, Array]], graph: GraphDomain) -> Array:
    if name in TEXTS:
        keys, text = TEXTS[name]
        return text(mechanism, *(arguments[key][1] for key in keys), domain=graph)
    frame = name.removeprefix("pose:")
    if frame not in mechanism.frame_index:
        raise InputError(f"no frame {frame!r}; available: {', '.join(mechanism.frame_index)}")
    poses = kinematics.body_poses(mechanism, arguments["q"][1], domain=graph)
    place = mechanism.frames[mechanism.frame_index[frame]]
    return pose(*kinematics.frame_pose(place, poses, domain=graph), domain=graph)


def to_graph(expression: Any, table: dict[Any, Any], graph: GraphDomain) -> Any:
    """A SymPy expression of parameters as a node of the graph."""
    if expression in table:
        return table[expression]
    if expression.is_number:
        return float(expression)
    parts = [to_graph(a, table, graph) for a in expression.args]
    if expression.is_Add or expression.is_Mul:
        total = parts[0]
        for part in parts[1:]:
            total = total + part if expression.is_Add else total * part
        return total
    if expression.is_Pow:
        base, exponent = parts
        if isinstance(exponent, float) and exponent.is_integer():
            power = base
            for _ in range(int(abs(exponent)) - 1):
                power = power * base
            return power if exponent > 0 else 1.0 / power
        return graph.sqrt(base) if exponent == 0.5 else base**exponent
    if isinstance(expression, (sympy.sin, sympy.cos)):
        return graph.sin(parts[0]) if isinstance(expression, sympy.sin) else graph.cos(parts[0])
    raise InputError(f"cannot trace {expression}: only sums, products, powers, sines and cosines of parameters")


def _needed(tape: Tape) -> list[int]:
    """The operations that the results need, in order of computation."""
    seen: set[int] = set()
    stack = [n for nodes in tape.outputs for n in nodes]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(tape.arguments(node))
    return sorted(n for n in seen if tape.nodes[n][0] >= 0)


def _assignments(
    tape: Tape, symbols: list[Any], inputs: list[tuple[str, tuple[Any, ...]]]
) -> tuple[list[tuple[Any, Any]], list[list[Any]]]:
    """SymPy assignments of a tape: a symbol for what is used more than once, the rest written where it is used."""
    from polybody.kernels.tape import CONST, INPUT

    needed = _needed(tape)
    uses = Counter(a for n in needed for a in tape.arguments(n))
    taken = {s.name for s in symbols}
    fresh = (s for s in sympy.numbered_symbols("x") if s.name not in taken)
    values: dict[int, Any] = {}

    def value(node: int) -> Any:
        op, a, b = tape.nodes[node]
        if op == INPUT:
            return inputs[int(a)][1][int(b)]
        return number(exact(float(a))) if op == CONST else values[node]

    made: list[tuple[Any, Any]] = []
    for node in needed:
        expression = sympy_operation(tape.nodes[node][0], *(value(a) for a in tape.arguments(node)))
        if uses[node] > 1 and not expression.is_Symbol and not expression.is_number:
            symbol = next(fresh)
            made.append((symbol, expression))
            expression = symbol
        values[node] = expression
    return made, [[value(n) for n in nodes] for nodes in tape.outputs]


def sympy_operation(op: int, *x: Any) -> Any:
    """A CasADi operation on SymPy expressions."""
    import casadi as ca

    table: dict[int, Callable[..., Any]] = {
        ca.OP_ADD: lambda a, b: a + b,
        ca.OP_SUB: lambda a, b: a - b,
        ca.OP_MUL: lambda a, b: a * b,
        ca.OP_DIV: lambda a, b: a / b,
        ca.OP_NEG: lambda a: -a,
        ca.OP_TWICE: lambda a: 2 * a,
        ca.OP_INV: lambda a: 1 / a,
        ca.OP_SQ: lambda a: a**2,
        ca.OP_POW: lambda a, b: a**b,
        ca.OP_CONSTPOW: lambda a, b: a**b,
        ca.OP_SIN: sympy.sin,
        ca.OP_COS: sympy.cos,
        ca.OP_TAN: sympy.tan,
        ca.OP_SQRT: sympy.sqrt,
        ca.OP_ATAN2: sympy.atan2,
        ca.OP_FABS: sympy.Abs,
        ca.OP_LT: lambda a, b: sympy.Piecewise((1, sympy.Lt(a, b)), (0, True)),
        ca.OP_LE: lambda a, b: sympy.Piecewise((1, sympy.Le(a, b)), (0, True)),
        ca.OP_NOT: lambda a: 1 - a,
        ca.OP_IF_ELSE_ZERO: lambda a, b: a * b,
    }
    if op not in table:
        raise InputError(f"CasADi operation {op} has no SymPy form here")
    return table[op](*x)


__all__ = ["ORDER", "QUANTITIES", "TEXTS", "Program", "sympy_operation", "to_graph", "traced_program"]
