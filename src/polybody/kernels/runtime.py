"""The machine code around every kernel's body, compiled once: the loop over a batch, and the lone call from Python.

`run` walks the flat states lo … hi − 1 of a batch of any number of dimensions in blocks of `lanes`, fills the table of
row addresses (`rows`) and calls the body. An address is base + Σ_d index_d stride_d, so broadcasting is a zero stride
and costs no memory.

`lone` is a CPython function (METH_FASTCALL | METH_KEYWORDS). Plain arguments (as many positional ndarrays as the kernel
has inputs, float64, one-dimensional, contiguous, of the right length) are computed at once, into fresh arrays. Anything
else it passes on, untouched, to a Python callable. Its `self` is a tuple (plan, fallback, …); the plan is an int64
array of sizes and addresses in the order of `PLAN`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.kernels.machine import libm_table
from polybody.kernels.target import Target

PLAN = (
    "inputs", "outputs", "body", "libm", "scratch", "array_type", "float64", "array_new", "array_return", "tuple_new",
    "tuple_set", "vectorcall", "release",
)  # fmt: skip
HEADER = len(PLAN)  # then: the size of each input; then for each output its number of dimensions and where they are
NPY_DOUBLE = 12
ARRAY_NEW, ARRAY_RETURN, ARRAY_TYPE = 93, 76, 2  # places in NumPy's table of C functions, fixed by its ABI

RUN_TYPE = ctypes.CFUNCTYPE(
    None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4, *[ctypes.c_void_p] * 3
)  # releases the GIL while it runs


def text(target: Target) -> str:
    """The module of `run` and `lone`."""
    triple = f'target triple = "{target.triple}"\n'
    return triple + _run_text(target.lanes) + (_lone_text(target.lanes) if can_be_called_alone() else "")


def _run_text(lanes: int) -> str:
    """One-dimensional batches, the usual ones, have their own loop: there the addresses cost a few instructions."""
    states = "".join(
        f"""  %w{l} = add i64 %fb, {l}
  %o{l} = icmp sgt i64 %w{l}, %last
  %s{l} = select i1 %o{l}, i64 %last, i64 %w{l}
"""
        for l in range(lanes)
    )
    cells = "".join(
        f"""  %t{l} = mul i64 %s{l}, %fstride
  %a{l} = getelementptr i8, ptr %fstart, i64 %t{l}
  %q{l} = getelementptr ptr, ptr %fcell, i64 {l}
  store ptr %a{l}, ptr %q{l}
"""
        for l in range(lanes)
    )
    return f"""
define void @run(ptr %body, ptr %libm, ptr %scratch, i64 %lo, i64 %hi, i64 %ports,
                 i64 %dims, ptr %shape, ptr %base, ptr %strides) {{
entry:
  %cells = mul i64 %ports, {lanes}
  %rows = alloca ptr, i64 %cells, align 64
  %index = alloca i64, i64 %dims, align 64
  %last = add i64 %hi, -1
  %some = icmp slt i64 %lo, %hi
  br i1 %some, label %begin, label %done
begin:
  %flat = icmp eq i64 %dims, 1
  br i1 %flat, label %fblock, label %block
fblock:
  %fb = phi i64 [%lo, %begin], [%fbn, %fend]
{states}  br label %fport
fport:
  %fp = phi i64 [0, %fblock], [%fpn, %fport]
  %fpb = getelementptr ptr, ptr %base, i64 %fp
  %fstart = load ptr, ptr %fpb
  %fps = getelementptr i64, ptr %strides, i64 %fp
  %fstride = load i64, ptr %fps
  %fat = mul i64 %fp, {lanes}
  %fcell = getelementptr ptr, ptr %rows, i64 %fat
{cells}  %fpn = add i64 %fp, 1
  %fmore = icmp slt i64 %fpn, %ports
  br i1 %fmore, label %fport, label %fend
fend:
  call void %body(ptr %rows, ptr %libm, ptr %scratch)
  %fbn = add i64 %fb, {lanes}
  %fagain = icmp slt i64 %fbn, %hi
  br i1 %fagain, label %fblock, label %done
block:
  %b = phi i64 [%lo, %begin], [%bn, %blockend]
  br label %lane
lane:
  %l = phi i64 [0, %block], [%ln, %laneend]
  %wanted = add i64 %b, %l
  %beyond = icmp sgt i64 %wanted, %last
  %state = select i1 %beyond, i64 %last, i64 %wanted
  br label %split
split:
  %d = phi i64 [%dims, %lane], [%dn, %splitnext]
  %rest = phi i64 [%state, %lane], [%quotient, %splitnext]
  %dn = add i64 %d, -1
  %outermost = icmp sle i64 %dn, 0
  %pi = getelementptr i64, ptr %index, i64 %dn
  br i1 %outermost, label %splitend, label %splitnext
splitnext:
  %pe = getelementptr i64, ptr %shape, i64 %dn
  %extent = load i64, ptr %pe
  %quotient = udiv i64 %rest, %extent
  %whole = mul i64 %quotient, %extent
  %i = sub i64 %rest, %whole
  store i64 %i, ptr %pi
  br label %split
splitend:
  store i64 %rest, ptr %index
  br label %port
port:
  %p = phi i64 [0, %splitend], [%pn, %portend]
  %pb = getelementptr ptr, ptr %base, i64 %p
  %start = load ptr, ptr %pb
  %first = mul i64 %p, %dims
  br label %dot
dot:
  %k = phi i64 [0, %port], [%kn, %dot]
  %sum = phi i64 [0, %port], [%sumn, %dot]
  %at = add i64 %first, %k
  %pstride = getelementptr i64, ptr %strides, i64 %at
  %stride = load i64, ptr %pstride
  %pk = getelementptr i64, ptr %index, i64 %k
  %ik = load i64, ptr %pk
  %term = mul i64 %ik, %stride
  %sumn = add i64 %sum, %term
  %kn = add i64 %k, 1
  %moredot = icmp slt i64 %kn, %dims
  br i1 %moredot, label %dot, label %portend
portend:
  %address = getelementptr i8, ptr %start, i64 %sumn
  %cellp = mul i64 %p, {lanes}
  %cell = add i64 %cellp, %l
  %prow = getelementptr ptr, ptr %rows, i64 %cell
  store ptr %address, ptr %prow
  %pn = add i64 %p, 1
  %moreport = icmp slt i64 %pn, %ports
  br i1 %moreport, label %port, label %laneend
laneend:
  %ln = add i64 %l, 1
  %morelane = icmp slt i64 %ln, {lanes}
  br i1 %morelane, label %lane, label %blockend
blockend:
  call void %body(ptr %rows, ptr %libm, ptr %scratch)
  %bn = add i64 %b, {lanes}
  %more = icmp slt i64 %bn, %hi
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""


def _lone_text(lanes: int) -> str:
    """Offsets are those of CPython's object header and NumPy's PyArrayObject, checked by `can_be_called_alone`."""
    plan = {name: k for k, name in enumerate(PLAN)}

    def field(name: str, kind: str) -> str:
        return f"  %f_{name} = getelementptr i64, ptr %plan, i64 {plan[name]}\n  %{name} = load {kind}, ptr %f_{name}\n"

    spread = "".join(
        f"  %cell{l} = getelementptr ptr, ptr %row, i64 {l}\n  store ptr %data, ptr %cell{l}\n" for l in range(lanes)
    )
    spread_out = spread.replace("%cell", "%ocell").replace("%row", "%orow").replace("%data", "%odata")
    return f"""
define ptr @lone(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {{
entry:
  %p_plan = getelementptr i8, ptr %self, i64 {tuple.__basicsize__}
  %plan_array = load ptr, ptr %p_plan
  %p_data = getelementptr i8, ptr %plan_array, i64 16
  %plan = load ptr, ptr %p_data
{field("inputs", "i64")}{field("outputs", "i64")}{field("array_type", "ptr")}{field("float64", "ptr")}
  %named = icmp ne ptr %keywords, null
  %wrong_count = icmp ne i64 %nargs, %inputs
  %unusual = or i1 %named, %wrong_count
  %ports = add i64 %inputs, %outputs
  %cells = mul i64 %ports, {lanes}
  %rows = alloca ptr, i64 %cells, align 64
  %arrays = alloca ptr, i64 %outputs, align 16
  br i1 %unusual, label %pass_on, label %more_inputs
more_inputs:
  %i = phi i64 [0, %entry], [%in, %accept]
  %inputs_left = icmp slt i64 %i, %inputs
  br i1 %inputs_left, label %input, label %more_outputs
input:
  %p_arg = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %p_arg
  %p_type = getelementptr i8, ptr %arg, i64 8
  %type = load ptr, ptr %p_type
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %inspect, label %pass_on
inspect:
  %p_nd = getelementptr i8, ptr %arg, i64 24
  %nd = load i32, ptr %p_nd
  %p_descr = getelementptr i8, ptr %arg, i64 56
  %descr = load ptr, ptr %p_descr
  %p_flags = getelementptr i8, ptr %arg, i64 64
  %flags = load i32, ptr %p_flags
  %is_row = icmp eq i32 %nd, 1
  %is_double = icmp eq ptr %descr, %float64
  %wanted_flags = and i32 %flags, 257
  %is_plain = icmp eq i32 %wanted_flags, 257
  %ok1 = and i1 %is_row, %is_double
  %ok2 = and i1 %ok1, %is_plain
  br i1 %ok2, label %measure, label %pass_on
measure:
  %p_dims = getelementptr i8, ptr %arg, i64 32
  %dims = load ptr, ptr %p_dims
  %length = load i64, ptr %dims
  %size_at = add i64 %i, {HEADER}
  %p_size = getelementptr i64, ptr %plan, i64 %size_at
  %size = load i64, ptr %p_size
  %fits = icmp eq i64 %length, %size
  br i1 %fits, label %accept, label %pass_on
accept:
  %p_numbers = getelementptr i8, ptr %arg, i64 16
  %data = load ptr, ptr %p_numbers
  %row_at = mul i64 %i, {lanes}
  %row = getelementptr ptr, ptr %rows, i64 %row_at
{spread}  %in = add i64 %i, 1
  br label %more_inputs
more_outputs:
  %j = phi i64 [0, %more_inputs], [%jn, %keep]
  %outputs_left = icmp slt i64 %j, %outputs
  br i1 %outputs_left, label %output, label %compute
output:
{field("array_new", "ptr")}
  %j2 = mul i64 %j, 2
  %after = add i64 %inputs, {HEADER}
  %shape_at = add i64 %after, %j2
  %p_ond = getelementptr i64, ptr %plan, i64 %shape_at
  %ond = load i64, ptr %p_ond
  %ond32 = trunc i64 %ond to i32
  %p_oshape = getelementptr i64, ptr %p_ond, i64 1
  %oshape = load ptr, ptr %p_oshape
  %array = call ptr %array_new(ptr %array_type, i32 %ond32, ptr %oshape, i32 {NPY_DOUBLE},
                              ptr null, ptr null, i32 0, i32 0, ptr null)
  %none = icmp eq ptr %array, null
  br i1 %none, label %undo, label %keep
keep:
  %p_odata = getelementptr i8, ptr %array, i64 16
  %odata = load ptr, ptr %p_odata
  %oport = add i64 %inputs, %j
  %orow_at = mul i64 %oport, {lanes}
  %orow = getelementptr ptr, ptr %rows, i64 %orow_at
{spread_out}  %p_keep = getelementptr ptr, ptr %arrays, i64 %j
  store ptr %array, ptr %p_keep
  %jn = add i64 %j, 1
  br label %more_outputs
compute:
{field("body", "ptr")}{field("libm", "ptr")}{field("scratch", "ptr")}{field("array_return", "ptr")}
  call void %body(ptr %rows, ptr %libm, ptr %scratch)
  %single = icmp eq i64 %outputs, 1
  br i1 %single, label %one, label %several
one:
  %only = load ptr, ptr %arrays
  %scalar_or_array = call ptr %array_return(ptr %only)
  ret ptr %scalar_or_array
several:
{field("tuple_new", "ptr")}{field("tuple_set", "ptr")}
  %tuple = call ptr %tuple_new(i64 %outputs)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %undo, label %pack
pack:
  %t = phi i64 [0, %several], [%tn, %packed]
  %p_item = getelementptr ptr, ptr %arrays, i64 %t
  %item = load ptr, ptr %p_item
  %result = call ptr %array_return(ptr %item)
  %ignored = call i32 %tuple_set(ptr %tuple, i64 %t, ptr %result)
  br label %packed
packed:
  %tn = add i64 %t, 1
  %more_items = icmp slt i64 %tn, %outputs
  br i1 %more_items, label %pack, label %return_tuple
return_tuple:
  ret ptr %tuple
undo:
  %u = phi i64 [%j, %output], [%outputs, %several], [%un, %drop]
{field("release", "ptr")}
  %any_left = icmp sgt i64 %u, 0
  br i1 %any_left, label %drop, label %failed
drop:
  %un = add i64 %u, -1
  %p_drop = getelementptr ptr, ptr %arrays, i64 %un
  %dropped = load ptr, ptr %p_drop
  call void %release(ptr %dropped)
  br label %undo
failed:
  ret ptr null
pass_on:
{field("vectorcall", "ptr")}
  %p_fallback = getelementptr i8, ptr %p_plan, i64 8
  %fallback = load ptr, ptr %p_fallback
  %answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %answer
}}
"""


def layout() -> str:
    """What of the interpreter's object layout the code depends on."""
    return f"{tuple.__basicsize__} {can_be_called_alone()}"


@functools.cache
def can_be_called_alone() -> bool:
    """Whether objects of this Python and this NumPy are laid out as `lone` reads them."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if object.__basicsize__ != 16 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.arange(3.0)
    pair = (probe, 0)
    at = id(probe)
    return (
        ctypes.c_void_p.from_address(at + 8).value == id(np.ndarray)
        and ctypes.c_void_p.from_address(at + 16).value == probe.ctypes.data
        and ctypes.c_int.from_address(at + 24).value == 1
        and ctypes.c_int64.from_address(ctypes.c_void_p.from_address(at + 32).value or at).value == 3
        and ctypes.c_void_p.from_address(at + 56).value == id(np.dtype(np.float64))
        and ctypes.c_int.from_address(at + 64).value & 257 == 257
        and ctypes.c_void_p.from_address(id(pair) + tuple.__basicsize__).value == at
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


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def make_builtin(
    lone: int,
    body: int,
    scratch: np.ndarray,
    input_sizes: Sequence[int],
    output_shapes: Sequence[Sequence[int]],
    fallback: Callable[..., Any],
    name: str,
    doc: str,
    alive: object,
) -> Callable[..., Any]:
    """A builtin that computes a lone state and hands everything else to `fallback`. It keeps `alive` alive."""
    api = ctypes.pythonapi

    def address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    table = _numpy_table()
    numbers = {
        "inputs": len(input_sizes),
        "outputs": len(output_shapes),
        "body": body,
        "libm": libm_table().ctypes.data,
        "scratch": scratch.ctypes.data,
        "array_type": id(np.ndarray),
        "float64": id(np.dtype(np.float64)),
        "array_new": table[ARRAY_NEW],
        "array_return": table[ARRAY_RETURN],
        "tuple_new": address(api.PyTuple_New),
        "tuple_set": address(api.PyTuple_SetItem),
        "vectorcall": address(api.PyObject_Vectorcall),
        "release": address(api.Py_DecRef),
    }
    dims = np.array([n for shape in output_shapes for n in shape] or [0], dtype=np.int64)
    entries = [numbers[key] for key in PLAN] + list(input_sizes)
    position = 0
    for shape in output_shapes:
        entries += [len(shape), dims.ctypes.data + 8 * position]
        position += len(shape)
    plan = np.array(entries, dtype=np.int64)
    method = _MethodDef(name.encode(), lone, 0x0080 | 0x0002, doc.encode())
    create = api.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return create(ctypes.addressof(method), (plan, fallback, dims, method, scratch, alive), "polybody.kernels")
