"""What the varied names of a study set: parameters of the model, states, wrenches, gains and controllers, own values.

    BODY.mass …                   parameters of the model
    q, q0.joint2, tau.1 …         states
    wrench.FRAME, wrench.FRAME.fz a wrench [moment; force] in world axes at a frame: mx my mz fx fy fz
    kp, kd, target                gains of PD, where the option `controller` is a mapping
    controller.NAME               argument NAME of the function that makes the controller, where it is a function
    controller                    which of the functions makes it (0, 1, …), where it is a list of them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.description.parameters import parameters_of
from polybody.errors import InputError
from polybody.model.arguments import finite, float_array
from polybody.model.model import Model
from polybody.names import listed, nearest
from polybody.quantities.table import quantity as quantity_named

if TYPE_CHECKING:
    from polybody.studies.tasks import Task

Array = np.ndarray
STATE = {"quantity": None, "rollout": ("q0", "v0", "tau"), "simulate": ("q0", "v0"), "linearize": ("q", "v", "tau")}
GAINS = ("kp", "kd", "target")
OF_Q = ("q", "q0", "q1", "target")
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")


def made_by_user(options: Mapping[str, Any]) -> bool:
    """Whether the controller is made by a function, or by one of a list."""
    law = options.get("controller")
    return callable(law) or isinstance(law, list | tuple)


def placed(
    model: Model | None, task: Task, names: Sequence[str], template: bool = False
) -> dict[str, tuple[str, Any]]:
    """What each varied name sets, and which columns of it (None: all)."""
    found: dict[str, tuple[str, Any]] = {}
    states = _states(model, task)
    gains = GAINS if isinstance(task.options.get("controller"), Mapping) else ()
    parameters = [] if model is None else model.parameters.names
    for name in names:
        columns = [k for k, full in enumerate(parameters) if full == name or full.startswith(f"{name}.")]
        owner, _, part = name.partition(".")
        if columns:
            found[name] = ("parameters", columns)
        elif owner in states or owner in gains:
            found[name] = (owner, _columns(model, owner, part))
        elif owner == "wrench" and _takes_wrenches(model, task):
            found[name] = _wrench_columns(model, part)
        elif owner == "controller" and made_by_user(task.options):
            _check_choice(task.options["controller"], part)
            found[name] = (name, None)
        elif task.kind == "function" or template:
            found[name] = ("value", None)
        else:
            numbers = [] if model is None else [p.name for p in parameters_of(model.description)]
            known = [*states, *gains, *(["controller"] if made_by_user(task.options) else []), *numbers]
            if model is not None and _takes_wrenches(model, task):
                known += [f"wrench.{frame}" for frame in model.mechanism.frame_index]
            raise InputError(f"{name!r} cannot be varied in this study{nearest(name, known)}; available: "
                             f"{listed(known)}")
    _refuse_twice(found)
    return found


def _refuse_twice(found: Mapping[str, tuple[str, Any]]) -> None:
    """Two names of one number: "q.0" and "q.shoulder"."""
    owner: dict[tuple[str, int], str] = {}
    for name, (target, columns) in found.items():
        for column in columns or ():
            other = owner.setdefault((target, column), name)
            if other != name:
                raise InputError(f"two axes vary one thing: {other!r} and {name!r} both set {target}.{column}")


def _states(model: Model | None, task: Task) -> tuple[str, ...]:
    if task.kind == "quantity":
        assert model is not None
        return quantity_named(model.mechanism, task.options["quantity"]).arguments
    return STATE.get(task.kind) or ()


def _takes_wrenches(model: Model | None, task: Task) -> bool:
    if task.kind == "quantity":
        assert model is not None
        return bool(quantity_named(model.mechanism, task.options["quantity"]).loaded)
    return task.kind in ("rollout", "simulate", "linearize")


def _wrench_columns(model: Model | None, part: str) -> tuple[str, list[int] | None]:
    assert model is not None
    frames = model.mechanism.frame_index
    frame, _, number = part.rpartition(".")
    if part in frames:
        return f"wrench.{part}", None
    if frame in frames and number in WRENCH:
        return f"wrench.{frame}", [WRENCH.index(number)]
    raise InputError(f"wrench.{part}: expected wrench.FRAME or wrench.FRAME.fz (mx, my, mz, fx, fy, fz)"
                     f"{nearest(part, frames)}; the frames are {listed(frames)}")


def _check_choice(law: Any, part: str) -> None:
    if callable(law) != bool(part):
        raise InputError("axis 'controller' is an index into a list of functions that return controllers; "
                         "'controller.NAME' sets an argument of a single function")


def _columns(model: Model | None, owner: str, part: str) -> list[int] | None:
    """Columns of a state that "q.joint2" or "q.1" names; None for all of it."""
    if not part:
        return None
    assert model is not None
    of_q = owner in ("q", "q0", "q1", "target")
    table = {name: q if of_q else v for name, (q, v) in model.joint_slices().items()}
    if part in table:
        return list(range(table[part].start, table[part].stop))
    size = model.nq if of_q else model.nv
    if part.isdigit() and int(part) < size:
        return [int(part)]
    raise InputError(f"{owner}.{part}: no joint {part!r}{nearest(part, table)}; available: {listed(table)}, or 0 to "
                     f"{size - 1}")


def size(model: Model, target: str) -> int | None:
    """Numbers of what is set; None for those of a user's controller, which may be any."""
    if target.startswith("wrench."):
        return 6
    return None if target.startswith("controller") else model.nq if target in OF_Q else model.nv


def base(model: Model, task: Task, target: str) -> Array:
    """Values used in all cases unless an axis varies them."""
    if target == "parameters":
        return model.parameters.nominal
    if target.startswith("wrench."):
        return np.zeros(6)
    law = task.options.get("controller") or {}
    given = law.get(target) if target in GAINS else task.options.get(target)
    count = model.nq if target in OF_Q else model.nv
    if given is None:
        return model.neutral() if target in OF_Q else np.zeros(count)
    array = finite(target, float_array(target, given))
    if array.shape not in ((), (1,), (count,)):
        raise InputError(f"{target} has shape {array.shape}; expected one number or {count}")
    return np.broadcast_to(array, (count,)).copy()


def wrenches(given: Mapping[str, Array], single: bool = False) -> dict[str, Array] | None:
    """{frame: wrenches (count, 6)} of the axes that vary them, or (6,) of a single case."""
    found = {name.partition(".")[2]: x[0] if single else x for name, x in given.items() if name.startswith("wrench.")}
    return found or None


def law(model: Model, task: Task, given: Mapping[str, Array], single: bool) -> Any:
    """The controller of the cases: PD with their gains, or what the user's function makes for a single one."""
    from polybody.simulation.controllers import PD

    if "controller" not in task.options:
        return given.get("tau", task.options.get("tau"))
    if made_by_user(task.options):
        return _users_law(model, task.options["controller"], given)
    take = (lambda x: x[0]) if single else (lambda x: x)
    parts = {name: take(given[name]) if name in given else base(model, task, name) for name in GAINS}
    return PD(model, parts["target"], parts["kp"], parts["kd"],
              gravity=bool((task.options["controller"] or {}).get("gravity", False)))  # fmt: skip


def _users_law(model: Model, makers: Any, given: Mapping[str, Array]) -> Any:
    values = {name: float(x[0, 0]) if x.shape[1] == 1 else x[0] for name, x in given.items()}
    choices: Sequence[Callable[..., Any]] = (makers,) if callable(makers) else makers
    make = choices[_chosen(values.get("controller", 0.0), len(choices))]
    made = make(model, **{n.partition(".")[2]: x for n, x in values.items() if n.startswith("controller.")})
    if not callable(made):
        raise InputError(f"the controller's function returned {type(made).__name__}; expected controller(t, q, v)")
    return made


def _chosen(number: float, count: int) -> int:
    if number != int(number) or not 0 <= number < count:
        raise InputError(f"controller is {number:g}; expected 0 to {count - 1}, a place in the list")
    return int(number)


__all__ = ["GAINS", "base", "law", "made_by_user", "placed", "size", "wrenches"]
