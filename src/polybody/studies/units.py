"""Units of study files: a number written with one (90deg, 10cm, 300g) must stand where its dimension is expected.

Numbers of an axis have the dimension of what the axis sets: of a parameter by its unit, of a coordinate by whether its
joint turns or slides; deviations too. Counts, times, gains, forces and covariances have no unit here; what a user's own
function or template reads may have any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polybody.description.coordinate_units import coordinate_units
from polybody.description.parameters import parameters_of
from polybody.description.units import ANGLE, LENGTH, MASS
from polybody.errors import InputError
from polybody.model.model import Model
from polybody.studies import targets
from polybody.studies.study import Study

Units = tuple[str, ...]
ANY: Units = (ANGLE, LENGTH, MASS)
_OF_PARAMETERS = {"rad": (ANGLE,), "m": (LENGTH,), "kg": (MASS,)}
_PAYLOAD = {"mass": (MASS,), "com": (LENGTH,)}


class Said(float):
    """A number as a file says it: its line, and the dimension of its unit, if it has one."""

    line: int  # 0 where it came from another process
    dimension: str | None

    def __new__(cls, value: float, line: int = 0, dimension: str | None = None) -> Said:
        made = super().__new__(cls, value)
        made.line, made.dimension = line, dimension
        return made


def check_given(said: Mapping[str, Any], where: str) -> None:
    """What can be said before there is a model: the payload's numbers, and those that have no unit."""
    for key, value in said.items():
        if key == "payload" and isinstance(value, Mapping):
            for name, numbers in value.items():
                _require(numbers, [_PAYLOAD.get(name, ())], f"payload: {name}", where)
        elif key not in ("vary", "do"):
            _require(value, [()], key, where)


def check_units(study: Study, said: Mapping[str, Any], where: str) -> None:
    """Numbers of the axes and of the options against what they set."""
    for name, axis in said["vary"].items():
        _check_axis(study, str(name), axis, where)
    kind = study.task.kind
    options = said["do"].get("at" if kind == "quantity" else kind)
    for name, value in options.items() if isinstance(options, Mapping) else ():
        parts = value.items() if isinstance(value, Mapping) else [(name, value)]  # a controller's gains
        for word, numbers in parts:
            _require(numbers, _of_target(study.model, word, None), f"{name}: {word}" if word != name else name, where)


def _check_axis(study: Study, name: str, axis: Any, where: str) -> None:
    what = f"axis {name!r}"
    if not isinstance(axis, Mapping):
        _require(axis, _of_axis(study, name), what, where)
        return
    for word, numbers in axis.items():
        if word == "covariance" or word == "lognormal":
            _require(numbers, [()], f"{what}: {word}", where)
        elif word == "mean" and isinstance(numbers, list):
            for own, number in zip(axis.get("names", ()), numbers, strict=False):
                _require(number, _of_axis(study, str(own)), f"{what}: mean of {own}", where)
        elif word == "grid" and isinstance(numbers, list) and len(numbers) == 3:
            _require(numbers[:2], _of_axis(study, name)[:1], f"{what}: grid", where)
            _require(numbers[2], [()], f"{what}: the number of grid points", where)
        else:
            _require(numbers, _of_axis(study, name), f"{what}: {word}", where)


def _of_axis(study: Study, name: str) -> list[Units]:
    """What units each number of an axis may have."""
    target, columns = study.task.where.get(name, ("value", None))
    return _of_target(study.model, target, columns)


def _of_target(model: Model | None, target: str, columns: list[int] | None) -> list[Units]:
    if target == "value" or target.startswith("controller") or model is None:
        return [ANY]
    if target == "parameters":
        units = {p.name: p.unit for p in parameters_of(model.description)}
        found = [_OF_PARAMETERS.get(units.get(name, ""), ()) for name in model.parameters.names]
    elif target in targets.OF_Q or target in ("v", "v0", "a"):
        records = {joint.name: joint for joint in model.description.joints}
        which = "q" if target in targets.OF_Q else "v"
        found = [unit for name in model.joint_names for unit in coordinate_units(records[name], which)]
    else:
        return [()]
    return found if columns is None else [found[k] for k in columns]


def _require(value: Any, units: list[Units], what: str, where: str) -> None:
    """Every number with a unit has one that its place allows; rows of as many numbers as units are taken in order."""
    for number, place in _numbers(value, 0, len(units)):
        allowed = units[place] if len(units) > 1 and place is not None else tuple({u for some in units for u in some})
        if number.dimension is not None and number.dimension not in allowed:
            wanted = " or ".join(f"{'an' if u == ANGLE else 'a'} {u}" for u in allowed) or "a number without unit"
            raise InputError(f"{where}:{number.line}: {what}: has a unit of the dimension {number.dimension}, expected "
                             f"{wanted}")  # fmt: skip


def _numbers(value: Any, depth: int, size: int) -> Iterator[tuple[Said, int | None]]:
    """(number, its place in a row of `size` numbers) of nested lists."""
    if isinstance(value, Said):
        yield value, None
    elif isinstance(value, list):
        row = len(value) == size and size > 1 and all(isinstance(x, float) for x in value)
        for k, item in enumerate(value):
            for number, place in _numbers(item, depth + 1, size):
                yield number, k if row else place
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _numbers(item, depth + 1, size)


__all__ = ["Said", "check_given", "check_units"]
