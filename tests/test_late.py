"""Dataclasses that are compiled when first used behave as those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from polybody import late

OPTIONS = [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}]


def both(**options: Any) -> tuple[Any, Any]:
    """The same class, compiled when first used and by the standard library."""

    def made(decorate: Any) -> Any:
        class Record:
            """A record."""

            a: int
            b: float = 2.0
            c: list[int] = dataclasses.field(default_factory=list)
            hidden: int = dataclasses.field(default=7, repr=False, compare=False)
            derived: int = dataclasses.field(default=0, init=False)

            def twice(self) -> int:
                return 2 * self.a

        Record.__qualname__ = "Record"
        return decorate(**options)(Record)

    return made(late.dataclass), made(dataclasses.dataclass)


@late.dataclass(frozen=True)
class Pair:
    """Two numbers."""

    x: int
    y: int = 1

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"x is {self.x}; expected at least 0")


@late.dataclass(frozen=True)
class Triple(Pair):
    """And one more."""

    z: int = 2


@pytest.mark.parametrize("before", [0, late.FEW], ids=["filled", "compiled"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_are_made_shown_and_changed_as_by_the_standard_library(options, before):
    ours, wanted = both(**options)
    some = [ours(k) for k in range(before)]
    assert [x.a for x in some] == list(range(before))
    assert hasattr(ours.__init__, "frozen")  # not compiled yet
    for some in (lambda R: R(1), lambda R: R(1, 3.0, [4]), lambda R: R(a=2, c=[5], hidden=9)):
        x, y = some(ours), some(wanted)
        assert repr(x) == repr(y)
        assert vars(x) == vars(y)
        assert x.twice() == 2 * x.a
        assert dataclasses.asdict(x) == dataclasses.asdict(y)
        assert repr(dataclasses.replace(x, b=8.0)) == repr(dataclasses.replace(y, b=8.0))
    assert ours(1).c is not ours(1).c
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(wanted)]
    assert hasattr(ours.__init__, "frozen") is not bool(before)
    wrong = [(), (1, 2, 3, 4, 5)], [{"d": 2}, {"derived": 2}, {"a": 2}]
    for values, named in [*((x, {}) for x in wrong[0]), *(((1,), x) for x in wrong[1])]:
        fresh, wanted = both(**options)
        for k in range(before):
            fresh(k)
        for one in (fresh, wanted):
            with pytest.raises(TypeError):
                one(*values, **named)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_comparison_and_hashes_are_those_of_the_standard_library(options):
    ours, wanted = both(**options)
    for one in (ours, wanted):
        equal = one(1, 2.0) == one(1, 2.0)
        assert equal is options.get("eq", True)
        assert (one(1, hidden=3) == one(1, hidden=4)) is options.get("eq", True)
        assert one(1) != one(2)
        assert one(1) != 1
        if not options.get("eq", True):
            assert isinstance(hash(one(1)), int)
        else:
            with pytest.raises(TypeError):  # a list, or no hash at all
                hash(one(1))
    assert hash(Pair(1)) == hash(Pair(1, 1))
    assert len({Pair(1), Pair(1, 1), Pair(2)}) == 2


def test_frozen_objects_refuse_changes():
    pair = Pair(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        pair.x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del pair.x  # type: ignore[misc]
    with pytest.raises(ValueError, match="x is -1"):
        Pair(-1)


def test_classes_inherit_are_pickled_and_copied():
    triple = Triple(1, 5)
    assert (triple.x, triple.y, triple.z) == (1, 5, 2)
    assert triple != Pair(1, 5)
    assert pickle.loads(pickle.dumps(triple)) == triple
    assert copy.deepcopy(triple) == copy.copy(triple) == triple


def test_signatures_show_the_fields_before_and_after_the_first_object():
    ours, wanted = both(frozen=True)
    first = str(inspect.signature(ours))
    assert first == str(inspect.signature(wanted))
    ours(1)
    assert str(inspect.signature(ours)) == first
