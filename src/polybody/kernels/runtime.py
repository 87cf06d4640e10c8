"""Kernels as CPython functions: makes the builtins that `runtime_code` and `lone_code` have the machine code of.

They read objects of this Python and this NumPy by their layout, which `can_be_called_alone` verifies; where it differs
(another interpreter, no GIL), kernels are called through Python code alone.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from types import MemberDescriptorType
from typing import Any

import numpy as np

from polybody.errors import PolybodyError
from polybody.kernels import lone_code, runtime_code
from polybody.kernels.lone_code import PLAN
from polybody.kernels.machine import Loaded
from polybody.kernels.pool import address
from polybody.kernels.target import Target

FASTCALL = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS
ARRAY_NEW, ARRAY_RETURN, ARRAY_TYPE = 93, 76, 2  # places in NumPy's table of C functions, fixed by its ABI

# void together(job, helpers, create, join, stack); the GIL is released in it
TOGETHER_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 3)


class Lone:
    """What machine code needs to compute a single state of a kernel: its plan, and whatever must live as long."""

    __slots__ = ("alive", "fallback", "plan")

    def __init__(self, plan: np.ndarray, fallback: Callable[..., Any] | None, alive: object) -> None:
        self.plan, self.fallback, self.alive = plan, fallback, alive

    def __reduce__(self) -> Any:
        return _nothing, ()  # addresses mean nothing to another process; whoever unpickles or copies gets None


def _nothing() -> None:
    """What a pickled `Lone` becomes."""


def slot_offset(owner: type, slot: str) -> int:
    """How many bytes from its beginning an object of `owner` has what `__slots__` names."""
    member = inspect.getattr_static(owner, slot, None)
    if not isinstance(member, MemberDescriptorType):
        raise PolybodyError(f"{owner.__name__} has no slot {slot!r}; expected a name in its __slots__")
    # PyMemberDescrObject: the object's head, type, name, qualified name, and a PyMemberDef whose offset is third.
    definition = ctypes.c_void_p.from_address(id(member) + 40).value or 0
    return ctypes.c_int64.from_address(definition + 16).value


def text(target: Target) -> str:
    """The module of `together`, and of `lone` and `address` where they can be used."""
    slots = slot_offset(Lone, "plan"), slot_offset(Lone, "fallback")
    return runtime_code.text(target, lone_code.text(*slots) if can_be_called_alone() else "")


def layout() -> str:
    """What of the interpreter's object layout the code depends on."""
    return f"{slot_offset(Lone, 'plan')} {slot_offset(Lone, 'fallback')} {can_be_called_alone()}"


@functools.cache
def can_be_called_alone() -> bool:
    """Whether objects of this Python and this NumPy are laid out as `lone` reads them."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    if object.__basicsize__ != 16 or ctypes.sizeof(ctypes.c_void_p) != 8:  # 32 where there need be no GIL
        return False
    probe = np.arange(3.0)
    pair = Lone(probe, len, None)
    at = id(probe)
    return (
        ctypes.c_void_p.from_address(at + 8).value == id(np.ndarray)
        and ctypes.c_void_p.from_address(at + 16).value == probe.ctypes.data
        and ctypes.c_int.from_address(at + 24).value == 1
        and ctypes.c_int64.from_address(ctypes.c_void_p.from_address(at + 32).value or at).value == 3
        and ctypes.c_void_p.from_address(at + 56).value == id(np.dtype(np.float64))
        and ctypes.c_int.from_address(at + 64).value & 257 == 257
        and ctypes.c_void_p.from_address(id(pair) + slot_offset(Lone, "plan")).value == at
        and ctypes.c_void_p.from_address(id(pair) + slot_offset(Lone, "fallback")).value == id(len)
        and _numpy_table()[ARRAY_TYPE] == id(np.ndarray)
    )


@functools.cache
def _numpy_table() -> Sequence[int]:
    """NumPy's table of C functions, as far as it is needed here."""
    umath = importlib.import_module(f"{'numpy._core' if hasattr(np, '_core') else 'numpy.core'}._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return [table[k] or 0 for k in range(ARRAY_NEW + 1)]


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def make_lone(
    alone: int,
    body: int,
    context: np.ndarray,
    scratch: np.ndarray,
    input_sizes: Sequence[int],
    output_shapes: Sequence[Sequence[int]],
    alive: object,
    limit: int,
    dense: bool,
    dtype: np.dtype[Any],
    units: Sequence[tuple[int, int]] = (),
) -> Lone:
    """The plan by which `lone_code.alone` computes a single state. It keeps `alive` alive.

    `units`: (input, first of four elements) of every unit quaternion; where one is not, the call is passed on.
    """
    api = ctypes.pythonapi
    table = _numpy_table()
    table_of_units = np.array([(port, dtype.itemsize * first) for port, first in units] or [(0, 0)], dtype=np.int64)
    numbers = {
        "inputs": len(input_sizes),
        "outputs": len(output_shapes),
        "addressed": len(input_sizes) + (0 if dense else len(output_shapes)),
        "body": body,
        "libm": context.ctypes.data,
        "scratch": scratch.ctypes.data,
        "array_type": id(np.ndarray),
        "dtype": id(dtype),
        "array_new": table[ARRAY_NEW],
        "array_return": table[ARRAY_RETURN],
        "tuple_new": address(api.PyTuple_New),
        "tuple_set": address(api.PyTuple_SetItem),
        "vectorcall": address(api.PyObject_Vectorcall),
        "release": address(api.Py_DecRef),
        "limit": limit,
        "alone": alone,
        "size": dtype.itemsize,
        "type_number": dtype.num,
        "units": len(units),
        "unit_table": table_of_units.ctypes.data,
    }
    dims = np.array([n for shape in output_shapes for n in shape] or [0], dtype=np.int64)
    entries = [numbers[key] for key in PLAN] + list(input_sizes)
    position = 0
    for shape in output_shapes:
        entries += [len(shape), dims.ctypes.data + 8 * position, dtype.itemsize * math.prod(shape)]
        position += len(shape)
    plan = np.array(entries, dtype=np.int64)
    return Lone(plan, None, (dims, scratch, table_of_units, alive))


def make_builtin(code: Loaded, lone: Lone, fallback: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """A builtin that computes a single state and hands everything else to `fallback`."""
    return _builtin(name, code.addresses["lone"], FASTCALL, doc, Lone(lone.plan, fallback, (lone.alive, code)))


def make_address(code: Loaded) -> Callable[[np.ndarray], int]:
    """`a.ctypes.data`, in a twentieth of its time: what small batches spend most on is asking where arrays are."""
    if "address_of" not in code.addresses:
        return lambda array: array.ctypes.data
    maker = np.array([address(ctypes.pythonapi.PyLong_FromVoidPtr)], dtype=np.int64)
    return _builtin("address", code.addresses["address_of"], 0x0008, "", Lone(maker, None, code))


def _builtin(name: str, function: int, flags: int, doc: str, owner: Lone) -> Callable[..., Any]:
    """A CPython function of machine code. Its `self` is `owner`, which from now on keeps the record of the function."""
    method = MethodDef(name.encode(), function, flags, doc.encode())
    owner.alive = owner.alive, method
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return create(ctypes.addressof(method), owner, "polybody.kernels")
