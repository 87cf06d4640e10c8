"""Exact derivatives of any quantity with respect to parameters of the model, or to one of its arguments.

The text of a quantity, read over the expression graph, is differentiated there. Of X(q, v, a, p) on a tree that is the
whole answer; q is differentiated in tangent space. With loops the state cannot stay where it is when p changes the
geometry: independent coordinates, velocities and accelerations are held and the others follow,

    J q_p + φ_p = 0,     J v_p + (J v)_q q_p + (J v)_p = 0,     J a_p + c_q q_p + c_v v_p + c_p = 0,   c = J a + γ,

with q_p in tangent space and zero rows at the independent columns, so that dX/dp = X_p + X_q q_p + X_v v_p + X_a a_p.
What joint forces `tau` there are stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.constraints.ranks import pseudo_inverse
from polybody.errors import InputError, PolybodyError
from polybody.interrupts import interruptible
from polybody.mechanism.columns import state_text
from polybody.model.arguments import require_model
from polybody.model.diagnosed import doubtful
from polybody.model.model import Model
from polybody.names import counted, nearest
from polybody.quantities.derivatives import graph_domain, tangent_map
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import quantity as quantity_named

Array = np.ndarray
CONFIGURATIONS = ("q", "q0", "q1")


@interruptible
def derivative(
    model: Model, quantity: str, *arrays: ArrayLike, wrt: str = "parameters", parameters: ArrayLike | None = None
) -> Any:
    """Derivative of a quantity, (..., *shape, n): an array, or a tuple of arrays if it has several results.

    `quantity` and `arrays` are a name and arguments as in `model.casadi`: "inverse_dynamics", q, v, a, or "pose:FRAME",
    q. `wrt` is "parameters" (n = k, those of `model.with_parameters`) or, for trees, one of the quantity's arguments:
    "v", or "q" in tangent space (n = nv). `parameters` is (k,) or (..., k). With loops the independent coordinates and
    their rates are held constant, and the dependent ones follow the geometry.
    """
    require_model("derivative", model)
    asked = quantity_named(model.mechanism, quantity)
    given = model._arrays(asked, arrays) if len(arrays) == len(asked.arguments) else ()
    if len(given) != len(asked.arguments):
        raise InputError(f"{quantity} takes {', '.join(asked.arguments)}; got {counted(len(arrays), 'array')}")
    values = None if parameters is None else model.parameters.checked(parameters)
    if wrt == "parameters" and not len(model.parameters):
        raise InputError("the model has no parameters to differentiate by; see model.with_parameters")
    if wrt != "parameters" and wrt not in asked.arguments:
        known = ["parameters", *asked.arguments]
        raise InputError(
            f"{quantity} does not depend on {wrt!r}{nearest(str(wrt), known)}; expected {', '.join(known)}"
        )
    try:
        return _derivative(model, asked, given, wrt, values)
    except ZeroDivisionError:  # while the text was read: whatever the state is
        raise PolybodyError(f"{quantity} of {model.name!r} is singular at every state, and has no derivative") from None


def _derivative(model: Model, asked: Quantity, given: tuple[Array, ...], wrt: str, values: Array | None) -> Any:
    if model.mechanism.constrained and (wrt != "parameters" or asked.constrained is not None):
        if wrt != "parameters":
            raise InputError("with loops q and v cannot be moved one by one; model.inverse_dynamics_derivatives and "
                             "its like say how all follow the independent coordinates")
        return _with_loops(model, asked, given, values)
    found = _partial(model, asked, wrt)(*given, parameters=values)
    if model.mechanism.constrained and "q" in asked.arguments:
        return _following(model, asked, given, values, _parts(found))
    return found


def _parts(found: Any) -> tuple[Array, ...]:
    return found if isinstance(found, tuple) else (found,)


def _partial(model: Model, asked: Quantity, wrt: str) -> Any:
    """Kernel (*arguments) -> the partial derivative of each result."""
    engine = model.engine
    sizes, results = engine.sizes(), [*engine.results(asked)]
    inputs = asked.inputs(sizes)
    n = len(model.parameters) if wrt == "parameters" else model.nv
    outputs = [(name, (*shape, n)) for name, shape in results]
    names = [*asked.arguments, "parameters"]

    def make() -> Any:
        import casadi

        function = engine.function(asked)
        columns = function.sx_in()
        by = columns[names.index(wrt)]
        found = []
        for x in function.call(columns):
            rows = casadi.jacobian(x, by)
            if wrt in CONFIGURATIONS:
                rows = rows @ _tangent(model, by)
            found.append(casadi.densify(casadi.vec(rows.T)))
        return casadi.Function("derivative", columns, found)

    return engine.compile(f"derivative of {asked.name} by {wrt}", inputs, outputs, make)


def _tangent(model: Model, column: Any) -> Any:
    return tangent_map(model.engine.traced_mechanism, graph_domain().scalars(column))


# With loops.


def _with_loops(model: Model, asked: Quantity, given: tuple[Array, ...], values: Array | None) -> Any:
    """dX/dp of a quantity that honours the loops; its diagnostics come last and say whether it may be believed."""
    model._ask(asked, given, parameters=values)  # what is off the loops, or cannot be driven, says so
    *_, told = _parts(model.engine.compile(f"diagnostics of {asked.name}", *_told(model, asked))(*given,
                                                                                                parameters=values))
    bad = doubtful(told) if asked.name not in ("implicit_residual", "augmented_system") else np.zeros(told.shape[:-1])
    if np.any(bad):
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise PolybodyError(f"the configuration is singular{state_text(index)}: {asked.name} has no derivative there")
    found = _parts(_partial(model, asked, "parameters")(*given, parameters=values))
    return _following(model, asked, given, values, found[: len(asked.results)])


def _told(model: Model, asked: Quantity) -> tuple[Any, Any, Any]:
    engine = model.engine
    return asked.inputs(engine.sizes()), engine.results(asked), lambda: engine.function(asked)


def _following(
    model: Model, asked: Quantity, given: tuple[Array, ...], values: Array | None, partial: tuple[Array, ...]
) -> Any:
    """The partial derivatives with what the dependent coordinates add."""
    known = dict(zip(asked.arguments, given, strict=True))
    moved = followers_of(model, known["q"], known.get("v"), known.get("a"), values)
    total = list(partial)
    for name, rate in zip(("q", "v", "a"), moved, strict=True):
        if name in known and rate is not None:
            rows = _parts(_partial(model, asked, name)(*given, parameters=values))
            for k in range(len(total)):
                flat = rows[k].reshape(*rows[k].shape[: rows[k].ndim - len(asked.results[k][1]) - 1], -1, model.nv)
                extra = flat @ rate
                total[k] = total[k] + extra.reshape(*extra.shape[:-2], *total[k].shape[-1 - len(asked.results[k][1]) :])
    return total[0] if len(total) == 1 else tuple(total)


def followers_of(
    model: Model, q: Array, v: Array | None, a: Array | None, values: Array | None
) -> tuple[Array, Array | None, Array | None]:
    """(q_p in tangent space, v_p, a_p), (..., nv, k) each: how dependent coordinates follow the parameters."""
    kernel = _gaps(model, v is not None, a is not None)
    arrays = [x for x in (q, v, a) if x is not None]
    J, phi_p, *more = kernel(*arrays, parameters=values)
    free = np.ones(model.nv, dtype=bool)
    free[list(model.engine.independent)] = False
    back = np.zeros((*J.shape[:-2], model.nv, J.shape[-2]))
    back[..., free, :] = -pseudo_inverse(J[..., free])
    q_p = back @ phi_p
    if v is None:
        return q_p, None, None
    s_q, s_p, *rest = more
    v_p = back @ (s_q @ q_p + s_p)
    if a is None:
        return q_p, v_p, None
    c_q, c_v, c_p = rest
    return q_p, v_p, back @ (c_q @ q_p + c_v @ v_p + c_p)


def _gaps(model: Model, moving: bool, accelerated: bool) -> Any:
    """Kernel (q[, v[, a]]) -> J, φ_p and the derivatives of J v and J a + γ."""
    engine, nv = model.engine, model.nv
    m, system = engine.traced_mechanism, engine.constraints.traced
    rows, k = len(system), len(model.parameters)
    inputs = [("q", model.nq), *([("v", nv)] if moving else []), *([("a", nv)] if accelerated else [])]
    outputs = [("J", (rows, nv)), ("phi_p", (rows, k))]
    outputs += [("s_q", (rows, nv)), ("s_p", (rows, k))] if moving else []
    outputs += [("c_q", (rows, nv)), ("c_v", (rows, nv)), ("c_p", (rows, k))] if accelerated else []

    def make() -> Any:
        import casadi

        graph = graph_domain()
        columns, nodes = zip(*(graph.variables(*port) for port in inputs), strict=True)
        (p,), tangent = m.symbols, _tangent(model, columns[0])
        q, *rates = nodes
        J = system.jacobian(q, domain=graph)
        found = [graph.column(J), _rows(graph.column(system.residual(q, domain=graph)), p)]
        if rates:
            slip = graph.column(J @ rates[0])
            found += [_rows(slip, columns[0], tangent), _rows(slip, p)]
        if len(rates) > 1:
            gap = graph.column(J @ rates[1] + system.bias(q, rates[0], domain=graph))
            found += [_rows(gap, columns[0], tangent), _rows(gap, columns[1]), _rows(gap, p)]
        return casadi.Function("gaps", [*columns, p], found)

    return engine.compile(f"gaps by parameters {moving} {accelerated}", inputs, outputs, make)


def _rows(x: Any, by: Any, tangent: Any = None) -> Any:
    import casadi

    found = casadi.jacobian(x, by)
    return casadi.densify(casadi.vec((found if tangent is None else found @ tangent).T))


__all__ = ["derivative", "followers_of"]
