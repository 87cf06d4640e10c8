"""`polybody network MODEL --form BODY.PORT`: the terminal equations of a body, (1), (5) or (6), in numbers.

The port's edge is in the co-tree; its active one-port, P d/dt + Q and u, is that of (2) at the mass centre `BODY.G` and
of (49), (50) at other ports.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.cli.output import emit
from polybody.cli.states import configuration, velocity
from polybody.errors import InputError


def show_forms(net: Any, ports: list[str], q: str, v: str, as_json: bool) -> None:
    """Print the forms of all named ports at a state."""
    model = net.model()
    places = configuration("--q", q, model)
    speeds = velocity("--v", v, model, places)
    own = {name: both for name, both in model.joint_slices().items() if name in net.parts.joints}
    state = {n: places[s] for n, (s, _) in own.items()}, {n: speeds[s] for n, (_, s) in own.items()}
    answers = []
    for port in ports:
        body, _, base = port.rpartition(".")
        if port not in net.ports or body not in net.parts.bodies:
            raise InputError(f"--form {port}: expected BODY.PORT, e.g. {next(iter(net.parts.bodies))}.G; ports: "
                             f"{', '.join(p for p in net.ports if not p.startswith('world.'))}")
        form = net.terminal_form(body, base, *state)
        n = 6 * len(form.others)
        K = {other: -form.ideal[n:, 6 * k : 6 * k + 6] for k, other in enumerate(form.others)}
        active = form.active
        answers.append({"body": body, "port": base, "K": K, "P": active.P, "Q": active.Q, "u": active.u})
    words = "\n".join(_words(each) for each in answers)
    emit({"name": net.name, "q": places, "v": speeds, "forms": answers}, as_json,
         lambda console: console.print(words, soft_wrap=True, markup=False))


def _words(answer: dict[str, Any]) -> str:
    base = answer["port"]
    said, moved = ("(1)", "(2)") if base == "G" else ("(5), (6)", "(49), (50)")
    levers = "".join(f" − K_{other} y_{other}" for other in answer["K"])
    lines = [f"body {answer['body']}, port {base} in the co-tree {said}: x = [v; ω], y = [f; M], world axes",
             *(f"  x_{other} = K_{other}ᵀ x_{base}" for other in answer["K"]),
             f"  y_{base} = (P d/dt + Q) x_{base} + u{levers}"]
    for name, matrix in (*((f"K_{other}", K) for other, K in answer["K"].items()), (f"P {moved}", answer["P"]),
                         (f"Q {moved}", answer["Q"]), (f"u {moved}", answer["u"].reshape(1, -1))):
        lines.append(f"  {name} =")
        lines += ["    " + " ".join(f"{x + 0.0:11.6g}" for x in row) for row in np.round(matrix, 12)]
    return "\n".join(lines)


__all__ = ["show_forms"]
