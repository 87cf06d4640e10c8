"""A Python module of NumPy functions from programs: it needs nothing but NumPy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sympy.printing.numpy import NumPyPrinter

if TYPE_CHECKING:
    from polybody.symbolic.model import SymbolicModel
    from polybody.symbolic.program import Program

ARGUMENTS = {"q": "coordinates", "p": "quasi-velocities", "p_dot": "their rates", "Q": "generalised forces",
             "parameters": "the numbers of PARAMETERS"}  # fmt: skip


def python_module(model: SymbolicModel, quantities: tuple[str, ...]) -> str:
    """One function for each quantity, on arrays whose last axis is the state's; leading axes are batches."""
    lines = [
        f'"""{model.name}: equations of motion in Poincaré\'s form, M(q) p_dot + h(q, p) = Q. Written by polybody."""',
        "",
        "import numpy as np",
        "",
        f"COORDINATES = {tuple(x.name for x in model.q)!r}",
        f"QUASI_VELOCITIES = {tuple(x.name for x in model.p)!r}",
    ]
    parameters = {s.name: value for s, value in model.parameters.items()}
    if parameters:
        values = ", ".join(f"{name!r}: {value!r}" for name, value in parameters.items()).replace("nan", 'float("nan")')
        lines += [f"PARAMETERS = {{{values}}}"]
    for name in quantities:
        lines += ["", "", *_function(name, model.program(name))]
    return "\n".join(lines) + "\n"


def _function(name: str, program: Program) -> list[str]:
    printer = NumPyPrinter({"fully_qualified_modules": True, "allow_unknown_functions": False})

    def code(expression: Any) -> str:
        return re.sub(r"\bnumpy\.", "np.", str(printer.doprint(expression)))

    plain = re.sub(r"\W", "_", name)
    arguments = [key for key, _ in program.inputs]
    signature = ", ".join(a if a != "parameters" else "parameters=None" for a in arguments)
    described = "; ".join(f"{a}: {ARGUMENTS[a]}" for a in arguments)
    lines = [f"def {plain}({signature}):", f'    """{name}. {described}."""']
    for key, symbols in program.inputs:
        if key == "parameters":
            lines.append("    parameters = tuple(PARAMETERS.values()) if parameters is None else parameters")
            lines += [f"    {s.name} = parameters[{k}]" for k, s in enumerate(symbols)]
        else:
            # the argument's name may be that of a symbol: keep the array aside
            lines.append(f"    {key}_ = np.asarray({key}, dtype=float)")
            lines += [f"    {s.name} = {key}_[..., {k}]" for k, s in enumerate(symbols)]
    lines += [f"    {symbol.name} = {code(expression)}" for symbol, expression in program.assignments]
    for result, shape in program.shapes.items():
        entries = ", ".join(code(x) for x in program.results[result])
        target = re.sub(r"\W", "_", result)
        lines += [
            f"    {target}_ = np.stack(np.broadcast_arrays({entries}), axis=-1)",
            f"    {target}_ = {target}_.reshape({target}_.shape[:-1] + {tuple(int(n) for n in shape)!r})",
        ]
    returned = ", ".join(re.sub(r"\W", "_", result) + "_" for result in program.shapes)
    return [*lines, f"    return {returned}"]


__all__ = ["python_module"]
