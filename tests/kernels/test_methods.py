"""Methods that run kernels are methods like any other: overridden, patched, inspected, called in every way."""

import copy
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import textwrap
from unittest import mock

import numpy as np
import pytest
from helpers import product_kernel, product_oracle

from polybody.errors import PolybodyError
from polybody.kernels import runtime
from polybody.kernels.methods import fast_method


class Slots:
    __slots__ = ("_lone",)


class Toy(Slots):
    """A class with a method that has a kernel."""

    def __init__(self):
        self.slow_calls = 0

    def outer(self, a: np.ndarray, b: np.ndarray, *, scale=1.0, label="none", out=None):
        """The outer product of a and b, and more."""
        self.slow_calls += 1
        return tuple(scale * part for part in product_oracle(np.asarray(a), np.asarray(b)))


PLAIN = Toy.outer
A, B = np.arange(5.0), np.arange(3.0) + 0.5


@pytest.fixture(autouse=True, scope="module")
def _fast():
    fast_method(Toy, "outer", "_lone", PLAIN)


def toy(kind=Toy):
    made = kind()
    made._lone = product_kernel().lone
    return made


def agrees(found, a=A, b=B, scale=1.0):
    for f, w in zip(found, product_oracle(a, b), strict=True):
        np.testing.assert_allclose(f, scale * w, rtol=1e-14)
    return True


def test_lone_states_never_enter_python():
    one = toy()
    assert agrees(one.outer(A, B))
    assert agrees(Toy.outer(one, A, B))
    bound = one.outer
    assert agrees(bound(A, B))
    assert agrees(one.outer(np.tile(A, (4, 1)), B), np.tile(A, (4, 1)))
    assert one.slow_calls == 0


def test_any_other_call_goes_to_the_function_unchanged():
    one = toy()
    bound = one.outer
    for call in (one.outer, bound, lambda *p, **o: Toy.outer(one, *p, **o)):
        before = one.slow_calls
        assert agrees(call(A, B, scale=2.0), scale=2.0)
        assert agrees(call(a=A, b=B))
        assert agrees(call(A, b=B, label="x", scale=3.0), scale=3.0)
        assert agrees(call(list(A), B))
        assert one.slow_calls == before + 4


@pytest.mark.parametrize(
    ("positional", "named", "message"),
    [
        ((), {}, "missing 2 required positional arguments: 'a' and 'b'"),
        ((A,), {}, "missing 1 required positional argument: 'b'"),
        ((A, B, 1), {}, "takes 3 positional arguments but 4 were given"),
        ((A, B), {"wrong": 1}, "unexpected keyword argument 'wrong'"),
        ((A, B), {"a": 1}, "multiple values for argument 'a'"),
        ((A,) * 10_000, {}, "takes 3 positional arguments but"),
        ((), {f"n{k}": k for k in range(5000)}, "takes 3 positional arguments but"),
    ],
)
def test_wrong_arguments_raise_what_python_raises(positional, named, message):
    with pytest.raises(TypeError, match=message):
        toy().outer(*positional, **named)


def test_a_wrong_self_is_refused():
    with pytest.raises(TypeError, match="Toy"):
        Toy.outer(object(), A, B)


@pytest.mark.parametrize("held", ["nothing", None, 7, "text"])
def test_whatever_else_stands_in_the_slot_means_the_function(held):
    one = Toy()
    if held != "nothing":
        one._lone = held
    assert agrees(one.outer(A, B))
    assert one.slow_calls == 1


def test_a_subclass_may_override_and_call_its_base():
    class Derived(Toy):
        def outer(self, a, b, **options):
            return "derived", super().outer(a, b, **options)

    class Inheriting(Toy):
        pass

    one = toy(Derived)
    for _ in range(3):
        word, answer = one.outer(A, B)
        assert word == "derived"
        assert agrees(answer)
    assert one.slow_calls == 0
    heir = toy(Inheriting)
    assert agrees(heir.outer(A, B))
    assert heir.slow_calls == 0


def test_patches_hold_on_the_class_and_on_an_instance_and_end():
    one, two = toy(), toy()
    one.outer(A, B)
    with mock.patch.object(Toy, "outer", return_value="patched") as patched:
        assert one.outer(A, B) == "patched"
        assert patched.call_args.args[0] is A
        fast_method(Toy, "outer", "_lone", PLAIN)
        assert two.outer(A, B) == "patched"
    assert agrees(one.outer(A, B))

    def other(self, a, b):
        return "function"

    with mock.patch.object(Toy, "outer", other):
        fast_method(Toy, "outer", "_lone", PLAIN)
        assert one.outer(A, B) == "function"
    with mock.patch.object(Toy, "outer", autospec=True, return_value="specified"):
        assert one.outer(A, b=B) == "specified"
    with mock.patch.object(one, "outer", return_value="this one"):
        assert one.outer(A, B) == "this one"
        assert agrees(two.outer(A, B))
    assert agrees(one.outer(A, B))
    assert one.slow_calls == two.slow_calls == 0


def test_the_signature_is_that_of_the_function():
    wanted = inspect.signature(PLAIN)
    for found, skip in ((inspect.signature(Toy.outer), 0), (inspect.signature(toy().outer), 1)):
        pairs = zip(found.parameters.values(), list(wanted.parameters.values())[skip:], strict=True)
        for mine, theirs in pairs:
            # `self` of builtin methods is positional only
            assert (mine.name, mine.default) == (theirs.name, theirs.default)
            assert mine.kind == theirs.kind or mine.name == "self"
    assert inspect.getdoc(Toy.outer) == inspect.getdoc(PLAIN)
    assert Toy.outer.__name__ == "outer"
    assert "outer(self, /, a, b, *, scale=1.0, label='none', out=None)" in pydoc.plain(pydoc.render_doc(Toy))


def test_instances_and_bound_methods_are_pickled_without_their_kernels():
    one = toy()
    again = pickle.loads(pickle.dumps(one))
    assert again._lone is None
    assert agrees(again.outer(A, B))
    assert copy.copy(one)._lone in (None, one._lone)
    assert copy.deepcopy(one)._lone is None
    assert agrees(pickle.loads(pickle.dumps(one.outer))(A, B))
    assert pickle.loads(pickle.dumps(Toy.outer)) is Toy.__dict__["outer"]


def test_a_kernel_may_be_replaced_and_dropped_between_calls():
    one = toy()
    references = sys.getrefcount(one)
    for _ in range(100):
        one._lone = product_kernel().lone
        agrees(one.outer(A, B))
        del one._lone
        agrees(one.outer(A, B))
    assert sys.getrefcount(one) == references
    assert one.slow_calls == 100


def test_what_cannot_be_made_fast_is_refused_or_left_alone():
    class Other:
        __slots__ = ("_lone",)

        def many(self, *values):
            return values

        def odd(self, a=()):
            return a

        def fine(self, a):
            return a

    with pytest.raises(PolybodyError, match="named parameters"):
        fast_method(Other, "many", "_lone", Other.many)
    with pytest.raises(PolybodyError, match="default of a"):
        fast_method(Other, "odd", "_lone", Other.odd)
    with pytest.raises(PolybodyError, match="no slot 'nowhere'"):
        fast_method(Other, "fine", "nowhere", Other.fine)
    fast_method(Other, "fine", "_lone", Other.odd)  # not the function that stands there
    assert inspect.isfunction(Other.fine)


def test_slots_of_a_base_class_serve_the_derived_class():
    assert runtime.slot_offset(Toy, "_lone") == runtime.slot_offset(Slots, "_lone") == 16


def test_more_methods_than_cells_are_an_error_not_a_crash():
    script = textwrap.dedent("""
        from polybody.errors import PolybodyError
        from polybody.kernels.lone_code import METHODS
        from polybody.kernels.methods import fast_method
        for k in range(METHODS + 1):
            class Each:
                __slots__ = ("lone",)
                def call(self, a, _k=k): return a, _k
            try:
                fast_method(Each, "call", "lone", Each.call)
            except PolybodyError as error:
                assert k == METHODS, k
                print(error)
            assert Each().call(1) == (1, k)
    """)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, timeout=300, text=True)
    assert "no more can be" in found.stdout, found.stderr
