"""Several quantities at the same states in one call: what they have in common is computed once.

The expression graphs of the quantities are joined; equal expressions (sines, poses, twists of the same bodies) become
one when the joint graph is compiled (`kernels.tape`). Quantities that have no straight-line kernel (long chains, models
with loops, what is composed of others) are answered one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import precision
from polybody.model.configurations import CONFIGURATIONS
from polybody.model.tracing import compiled, plain_name, trace
from polybody.quantities.quantity import ARGUMENTS, Quantity, sized
from polybody.quantities.table import quantity

if TYPE_CHECKING:
    from polybody.kernels import Kernel
    from polybody.model.model import Model
    from polybody.model.tree_engine import TreeEngine

ORDER = ("q", "v", "a", "tau")


def compute(model: Model, given: Mapping[str, Any], names: Sequence[str], parameters: Any) -> dict[str, Any]:
    """{name: answer} of every quantity named, at the arguments given ("q", "v", "a", "tau")."""
    if isinstance(names, str) or not names:
        wanted = "a list of names, such as ['inverse_dynamics', 'mass_matrix']"
        raise InputError(f"quantities is {names!r}; expected {wanted}")
    asked = {name: quantity(model.mechanism, name) for name in names}
    for name, one in asked.items():
        for argument in one.arguments:
            if given.get(argument) is None:
                takes = ", ".join(one.arguments)
                raise InputError(f"{name} takes ({takes}), and {argument} is not given")
    used = {argument: given[argument] for argument in ORDER if any(argument in x.arguments for x in asked.values())}
    dtype = precision(list(used.values()))
    kernel = model.engine.together(list(asked.values()), dtype)
    if kernel is None:
        return {
            name: model._ask(wanted, [used[x] for x in wanted.arguments], parameters=parameters)
            for name, wanted in asked.items()
        }
    arrays = [
        model._q(value, name, dtype) if name in CONFIGURATIONS else model._vector(name, value, dtype)
        for name, value in used.items()
    ]
    found = kernel(*arrays, *model.engine.source.given(model._parameters(parameters)))
    parts = list(found) if isinstance(found, tuple) else [found]
    answers: dict[str, Any] = {}
    for name, wanted in asked.items():
        own = [parts.pop(0) for _ in wanted.results]
        answers[name] = own[0] if len(own) == 1 else tuple(own)
    return answers


def joint_kernel(engine: TreeEngine, asked: Sequence[Quantity], dtype: type[np.floating]) -> Kernel:
    """The kernel that computes all of them; its arguments are those that any of them takes, in `ORDER`."""
    names = [name for name in ORDER if any(name in x.arguments for x in asked)]
    inputs = [(name, sized(ARGUMENTS[name], engine.sizes())) for name in names] + engine.source.inputs
    results = [(f"{x.name} {label}", shape) for x in asked for label, shape in engine.results(x)]
    title = "together " + " ".join(x.name for x in asked)

    def read(*arrays: Any, domain: Any) -> tuple[Any, ...]:
        given, found = dict(zip(names, arrays, strict=True)), []
        for one in asked:
            mechanism = engine.reduced_mechanism if one.reduced else engine.source.traced
            answer = one.tree(mechanism, *(given[name] for name in one.arguments), domain=domain)
            found += answer if isinstance(answer, tuple) else [answer]
        return tuple(found)

    def make() -> Any:
        if not engine.source.inputs:
            return trace(title, inputs, read)
        import casadi

        columns = {name: casadi.SX.sym(name, size) for name, size in inputs}
        more = [columns[name] for name, _ in engine.source.inputs]
        found: list[Any] = []
        for one in asked:
            found += engine.traced(one).call([*(columns[name] for name in one.arguments), *more])
        return casadi.Function(plain_name("together"), list(columns.values()), found)

    return compiled(title, inputs, results, make, engine.source.digest, dtype)


__all__ = ["compute", "joint_kernel"]
