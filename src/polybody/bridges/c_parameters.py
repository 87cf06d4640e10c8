"""C text that reports whether parameters are possible, and which is not: functions of states do not look at them.

    0        all are possible
    k + 1    parameter k is not finite, or out of its bounds
    n + 1    several together are not possible: an inertia that breaks the triangle inequality, an axis not of unit
             length, a number of the file that follows a named constant
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polybody.kernels.csource import Written

if TYPE_CHECKING:
    from polybody.model.model import Model

#: the function that looks at several numbers together
MARGIN = "parameter_margin"


def margin_functions(model: Model) -> list[Any]:
    """[casadi.Function of `MARGIN`], or none of a model without parameters."""
    import casadi

    if not len(model.parameters):
        return []
    made = model.parameters.margin_function()
    columns = made.sx_in()
    return [casadi.Function(MARGIN, columns, made.call(columns), ["parameters"], ["margin"])]


def parameter_checks(prefix: str, model: Model) -> list[Written]:
    """The functions `check_parameters` and `parameter_name`."""
    count = len(model.parameters)
    if not count:
        return []
    header = (
        "/* 0 if the parameters are possible; k + 1 if parameter k is not finite or out of its bounds;\n"
        f"   {count + 1} if several together are not possible (inertias, axes). Other functions do not check. */\n"
        f"int {prefix}_check_parameters(const double *parameters);\n\n"
        "/* The name of parameter k, from 0 on; 0 if there is none. */\n"
        f"const char *{prefix}_parameter_name(int k);"
    )
    names = ",\n        ".join(_literal(parameter.name) for parameter in model.parameters)
    lower = [c_number(p.lower) for p in model.parameters]
    upper = [c_number(p.upper) for p in model.parameters]
    open_ones = ["1" if p.positive else "0" for p in model.parameters]
    source = f"""const char *{prefix}_parameter_name(int k) {{
    static const char *const names[{count}] = {{
        {names}
    }};
    return k < 0 || k >= {count} ? 0 : names[k];
}}

int {prefix}_check_parameters(const double *parameters) {{
    static const double lower[{count}] = {{{", ".join(lower)}}};
    static const double upper[{count}] = {{{", ".join(upper)}}};
    static const char beyond[{count}] = {{{", ".join(open_ones)}}};
    double margin;
    int k;
    for (k = 0; k < {count}; k++) {{
        if (!(parameters[k] - parameters[k] == 0.0)) return k + 1;
        if (parameters[k] < lower[k] || parameters[k] > upper[k]) return k + 1;
        if (beyond[k] && parameters[k] <= lower[k]) return k + 1;
    }}
    {prefix}_{MARGIN}(parameters, &margin);
    return margin < 0.0 ? {count + 1} : 0;
}}"""
    return [Written(header, source)]


def c_number(value: float) -> str:
    """A number of C; bounds that do not exist are infinite."""
    return repr(float(value)) if abs(value) < float("inf") else f"{'-' if value < 0 else ''}HUGE_VAL"


def _literal(text: str) -> str:
    """A string of C: whatever is not plain is written byte by byte."""
    plain = frozenset(map(ord, " !#$%&'()*+,-./:;<=>@[]^_`{|}~")) | frozenset(range(48, 58)) | frozenset(range(65, 91))
    plain |= frozenset(range(97, 123))
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'


__all__ = ["c_number", "margin_functions", "parameter_checks"]
