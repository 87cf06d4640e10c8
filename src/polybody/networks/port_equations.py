"""The (m+1)-port of a mechanism in closed form, to read: ẋ = A(q) y + b(q, v) with A and b as expressions.

What appears more than once is named (s0, s1, …) and stated first; entries that vanish are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.errors import InputError
from polybody.networks.equations import FORMATS, Section, Sheet

if TYPE_CHECKING:
    from polybody.networks.network import Network

#: components of a port's across and through variables, as Tokad has them: [v; ω] and [f; M]
ACROSS = ("vx", "vy", "vz", "wx", "wy", "wz")


def port_equations(net: Network, ports: Sequence[str], form: str = "text") -> str:
    """The closed form at some of a network's free ports as "text", "latex" or "html"."""
    import sympy as sp

    if form not in FORMATS:
        raise InputError(f"form is {form!r}; expected one of {', '.join(FORMATS)}")
    followers = net.parts.followers()
    joints = [(name, joint) for name, joint in net.parts.joints.items() if name not in followers and joint.model]
    values = {letter: {name: np.array([sp.Symbol(f"{name}.{letter}" if size == 1 else f"{name}.{letter}{k}")
                                       for k in range(size)], dtype=object)
                       for name, joint in joints for size in (joint.nq if letter == "q" else joint.nv,)}
              for letter in "qv"}
    made = net.multiport(ports, values["q"], values["v"], domain=domain("sympy"))
    rows = [f"{port}.{axis}" for port in ports for axis in ACROSS]
    entries = [sp.nsimplify(sp.sympify(x), rational=True) for x in (*made.A.ravel(), *made.b)]
    entries = [sp.trigsimp(x) if sp.count_ops(x) < 60 else x for x in entries]
    found: Any = sp.cse(entries, symbols=sp.numbered_symbols("s"))
    shared, short = found
    n = len(rows)
    A, b = short[: n * n], short[n * n :]
    lines = [f"x = [v; omega] and y = [f; M] on the mechanism at {', '.join(ports)}, world axes; der x = A y + b"]
    named = [(sp.Symbol(f"A({rows[i]}, {rows[j]})"), A[n * i + j]) for i in range(n) for j in range(i, n)
             if A[n * i + j] != 0]
    loads = [(sp.Symbol(f"b({row})"), value) for row, value in zip(rows, b, strict=True) if value != 0]
    sections = [Section("Closed form", lines), Section("A, symmetric", list(named)), Section("b", list(loads))]
    if shared:
        sections.insert(1, Section("Shared terms", [(symbol, value) for symbol, value in shared]))
    return getattr(Sheet(f"The (m+1)-port of {net.name}", sections), form)()


__all__ = ["port_equations"]
