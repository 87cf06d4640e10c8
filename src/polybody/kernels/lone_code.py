"""LLVM text of kernels called from Python on plain arrays, without any Python code in between.

`alone` computes plain arguments (as many positional ndarrays as the kernel has inputs, contiguous, of its dtype and the
right length, all of one leading shape or none, no more states than are computed in some 0.1 ms) at once, into fresh
arrays; of any other it says that they are not its business. It works by a *plan*, an int64 array of sizes and addresses
in the order of `PLAN`, which an object of `runtime.Lone` holds.

Two kinds of CPython functions (METH_FASTCALL | METH_KEYWORDS) try it first and pass every other call on, untouched:

    lone      a builtin whose `self` is such an object; passes on to that object's `fallback`
    method_k  a method; `self` is an instance that has such an object in a slot, passes on to a Python function of the
              class. Where the slot is and which function it is stands in the k-th of `cells`, in the order of `CELL`.
"""

from __future__ import annotations

PLAN = (
    "inputs", "outputs", "addressed", "body", "libm", "scratch", "array_type", "dtype", "array_new", "array_return",
    "tuple_new", "tuple_set", "vectorcall", "release", "limit", "alone",
    "size", "type_number",
)  # fmt: skip
CELL = ("slot", "function", "lone_type", "vectorcall")
METHODS = 64  # that can be fast, in one process
MOST_ARGUMENTS = 32  # of a call that is passed on; no function that is made fast takes as many
NOT_MINE = "inttoptr (i64 1 to ptr)"
# After these: the size of each input; for each output its number of dimensions, where they are, and its bytes a state.
HEADER = len(PLAN)
MOST_DIMENSIONS = 32  # of a result; the arguments may have half as many


def _plan_field(name: str, kind: str) -> str:
    return f"""  %f_{name} = getelementptr i64, ptr %plan, i64 {PLAN.index(name)}
  %{name} = load {kind}, ptr %f_{name}
"""


def _plan_of(lone: str, plan_at: int) -> str:
    """Lines that load the plan of a `runtime.Lone`, whose slot for it is so many bytes from its beginning."""
    return f"""  %p_plan = getelementptr i8, ptr {lone}, i64 {plan_at}
  %plan_array = load ptr, ptr %p_plan
  %p_data = getelementptr i8, ptr %plan_array, i64 16
  %plan = load ptr, ptr %p_data
"""


def text(plan_at: int, fallback_at: int) -> str:
    """`alone` and `lone`; the arguments are the places of two slots of `runtime.Lone`.

    Offsets are of CPython's object header and NumPy's PyArrayObject, checked by `runtime.can_be_called_alone`.
    """
    field = _plan_field
    return f"""
define ptr @lone(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {{
entry:
{_plan_of("%self", plan_at)}{field("vectorcall", "ptr")}
  %named = icmp ne ptr %keywords, null
  br i1 %named, label %pass_on, label %try
try:
  %result = call ptr @alone(ptr %plan, ptr %args, i64 %nargs)
  %not_mine = icmp eq ptr %result, {NOT_MINE}
  br i1 %not_mine, label %pass_on, label %mine
mine:
  ret ptr %result
pass_on:
  %p_fallback = getelementptr i8, ptr %self, i64 {fallback_at}
  %fallback = load ptr, ptr %p_fallback
  %answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %answer
}}

define ptr @alone(ptr %plan, ptr %args, i64 %nargs) {{
entry:
{field("inputs", "i64")}{field("outputs", "i64")}{field("array_type", "ptr")}{field("dtype", "ptr")}
  %ports = add i64 %inputs, %outputs
  %base = alloca ptr, i64 %ports, align 16
  %strides = alloca i64, i64 %ports, align 16
  %arrays = alloca ptr, i64 %outputs, align 16
  %shape = alloca i64, i64 {MOST_DIMENSIONS}, align 16
  %v_leading = alloca i64, align 8
  %v_states = alloca i64, align 8
  store i64 0, ptr %v_leading
  store i64 1, ptr %v_states
  %wrong_count = icmp ne i64 %nargs, %inputs
  br i1 %wrong_count, label %pass_on, label %more_inputs

more_inputs:
  %i = phi i64 [0, %entry], [%in, %accept]
  %inputs_left = icmp slt i64 %i, %inputs
  br i1 %inputs_left, label %input, label %admit
input:
  %p_arg = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %p_arg
  %p_type = getelementptr i8, ptr %arg, i64 8
  %type = load ptr, ptr %p_type
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %inspect, label %pass_on
inspect:
  %p_nd = getelementptr i8, ptr %arg, i64 24
  %nd32 = load i32, ptr %p_nd
  %nd = sext i32 %nd32 to i64
  %p_descr = getelementptr i8, ptr %arg, i64 56
  %descr = load ptr, ptr %p_descr
  %p_flags = getelementptr i8, ptr %arg, i64 64
  %flags = load i32, ptr %p_flags
  %has_rows = icmp sge i64 %nd, 1
  %not_deep = icmp sle i64 %nd, {MOST_DIMENSIONS // 2}
  %is_ours = icmp eq ptr %descr, %dtype
  %wanted_flags = and i32 %flags, 257
  %is_plain = icmp eq i32 %wanted_flags, 257
  %ok1 = and i1 %has_rows, %is_ours
  %ok2 = and i1 %ok1, %is_plain
  %ok3 = and i1 %ok2, %not_deep
  br i1 %ok3, label %measure, label %pass_on
measure:
  %p_dims = getelementptr i8, ptr %arg, i64 32
  %dims = load ptr, ptr %p_dims
  %lead = add i64 %nd, -1
  %p_length = getelementptr i64, ptr %dims, i64 %lead
  %length = load i64, ptr %p_length
  %length_at = add i64 %i, {HEADER}
  %p_wanted = getelementptr i64, ptr %plan, i64 %length_at
  %wanted = load i64, ptr %p_wanted
  %fits = icmp eq i64 %length, %wanted
  br i1 %fits, label %place, label %pass_on
place:
  %p_base = getelementptr ptr, ptr %base, i64 %i
  %p_stride = getelementptr i64, ptr %strides, i64 %i
  %p_numbers = getelementptr i8, ptr %arg, i64 16
  %data = load ptr, ptr %p_numbers
  store ptr %data, ptr %p_base
  %one_state = icmp eq i64 %lead, 0
  br i1 %one_state, label %same_for_all, label %batch
same_for_all:
  store i64 0, ptr %p_stride
  br label %accept
batch:
{field("size", "i64")}
  %bytes = mul i64 %length, %size
  store i64 %bytes, ptr %p_stride
  %known = load i64, ptr %v_leading
  %first_batch = icmp eq i64 %known, 0
  br i1 %first_batch, label %learn, label %compare
learn:
  store i64 %lead, ptr %v_leading
  br label %learn_dim
learn_dim:
  %d = phi i64 [0, %learn], [%dn, %learn_dim]
  %count = phi i64 [1, %learn], [%countn, %learn_dim]
  %p_d = getelementptr i64, ptr %dims, i64 %d
  %extent = load i64, ptr %p_d
  %p_s = getelementptr i64, ptr %shape, i64 %d
  store i64 %extent, ptr %p_s
  %countn = mul i64 %count, %extent
  store i64 %countn, ptr %v_states
  %dn = add i64 %d, 1
  %more_dims = icmp slt i64 %dn, %lead
  br i1 %more_dims, label %learn_dim, label %accept
compare:
  %same_depth = icmp eq i64 %known, %lead
  br i1 %same_depth, label %compare_dim, label %pass_on
compare_dim:
  %c = phi i64 [0, %compare], [%cn, %compare_next]
  %p_c = getelementptr i64, ptr %dims, i64 %c
  %extent_c = load i64, ptr %p_c
  %p_sc = getelementptr i64, ptr %shape, i64 %c
  %expected = load i64, ptr %p_sc
  %same = icmp eq i64 %extent_c, %expected
  br i1 %same, label %compare_next, label %pass_on
compare_next:
  %cn = add i64 %c, 1
  %more_compare = icmp slt i64 %cn, %lead
  br i1 %more_compare, label %compare_dim, label %accept
accept:
  %in = add i64 %i, 1
  br label %more_inputs

admit:
{field("limit", "i64")}
  %states = load i64, ptr %v_states
  %leading = load i64, ptr %v_leading
  %none_at_all = icmp sle i64 %states, 0
  %too_many = icmp sgt i64 %states, %limit
  %elsewhere = or i1 %none_at_all, %too_many
  br i1 %elsewhere, label %pass_on, label %more_outputs
more_outputs:
  %j = phi i64 [0, %admit], [%jn, %keep]
  %outputs_left = icmp slt i64 %j, %outputs
  br i1 %outputs_left, label %output, label %compute
output:
{field("array_new", "ptr")}{field("type_number", "i64")}
  %type_int = trunc i64 %type_number to i32
  %j2 = mul i64 %j, 3
  %after = add i64 %inputs, {HEADER}
  %shape_at = add i64 %after, %j2
  %p_ond = getelementptr i64, ptr %plan, i64 %shape_at
  %ond = load i64, ptr %p_ond
  %p_oshape = getelementptr i64, ptr %p_ond, i64 1
  %oshape = load ptr, ptr %p_oshape
  %p_obytes = getelementptr i64, ptr %p_ond, i64 2
  %obytes = load i64, ptr %p_obytes
  br label %more_own
more_own:
  %o = phi i64 [0, %output], [%on, %own]
  %own_left = icmp slt i64 %o, %ond
  br i1 %own_left, label %own, label %allocate
own:
  %p_o = getelementptr i64, ptr %oshape, i64 %o
  %extent_o = load i64, ptr %p_o
  %at_o = add i64 %leading, %o
  %p_so = getelementptr i64, ptr %shape, i64 %at_o
  store i64 %extent_o, ptr %p_so
  %on = add i64 %o, 1
  br label %more_own
allocate:
  %all_nd = add i64 %leading, %ond
  %nd_out = trunc i64 %all_nd to i32
  %array = call ptr %array_new(ptr %array_type, i32 %nd_out, ptr %shape, i32 %type_int,
                              ptr null, ptr null, i32 0, i32 0, ptr null)
  %none = icmp eq ptr %array, null
  br i1 %none, label %undo, label %keep
keep:
  %p_odata = getelementptr i8, ptr %array, i64 16
  %odata = load ptr, ptr %p_odata
  %oport = add i64 %inputs, %j
  %p_obase = getelementptr ptr, ptr %base, i64 %oport
  store ptr %odata, ptr %p_obase
  %p_ostride = getelementptr i64, ptr %strides, i64 %oport
  store i64 %obytes, ptr %p_ostride
  %p_keep = getelementptr ptr, ptr %arrays, i64 %j
  store ptr %array, ptr %p_keep
  %jn = add i64 %j, 1
  br label %more_outputs

compute:
{field("addressed", "i64")}{field("body", "ptr")}{field("libm", "ptr")}{field("scratch", "ptr")}
{field("array_return", "ptr")}
  call void @run(ptr %body, ptr %libm, ptr %scratch, i64 0, i64 %states, i64 %addressed, i64 %ports, i64 1,
                 ptr %shape, ptr %base, ptr %strides, ptr %strides, i64 0)
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
  br i1 %no_tuple, label %undo, label %more_items
more_items:
  %t = phi i64 [0, %several], [%tn, %pack]
  %items_left = icmp slt i64 %t, %outputs
  br i1 %items_left, label %pack, label %return_tuple
pack:
  %p_item = getelementptr ptr, ptr %arrays, i64 %t
  %item = load ptr, ptr %p_item
  %result = call ptr %array_return(ptr %item)
  %ignored = call i32 %tuple_set(ptr %tuple, i64 %t, ptr %result)
  %tn = add i64 %t, 1
  br label %more_items
return_tuple:
  ret ptr %tuple

undo:
  %u = phi i64 [%j, %allocate], [%outputs, %several], [%un, %drop]
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
  ret ptr {NOT_MINE}
}}

define ptr @address(ptr %self, ptr %array) {{
{_plan_of("%self", plan_at)}  %make = load ptr, ptr %plan
  %p_numbers = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %p_numbers
  %number = call ptr %make(ptr %data)
  ret ptr %number
}}
"""


def methods_text(triple: str, plan_at: int) -> str:
    """`method_0`, `method_1`, …, which differ in their cell only, and `cells_at`, which tells where the cells are."""
    fields = "".join(
        f"  %c_{name} = getelementptr i64, ptr %cell, i64 {k}\n"
        f"  %{name} = load {'i64' if k == 0 else 'ptr'}, ptr %c_{name}\n"
        for k, name in enumerate(CELL)
    )
    entries = "".join(
        f"""
define ptr @method_{k}(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {{
  %cell = getelementptr i64, ptr @cells, i64 {k * len(CELL)}
  %answer = tail call ptr @method(ptr %self, ptr %args, i64 %nargs, ptr %keywords, ptr %cell)
  ret ptr %answer
}}
"""
        for k in range(METHODS)
    )
    return f"""target triple = "{triple}"
@cells = internal global [{METHODS * len(CELL)} x i64] zeroinitializer, align 64

define ptr @cells_at() {{
  ret ptr @cells
}}

define internal ptr @method(ptr %self, ptr %args, i64 %nargs, ptr %keywords, ptr %cell) {{
entry:
{fields}
  %p_lone = getelementptr i8, ptr %self, i64 %slot
  %lone = load ptr, ptr %p_lone
  %unset = icmp eq ptr %lone, null
  %named = icmp ne ptr %keywords, null
  %unusual = or i1 %unset, %named
  br i1 %unusual, label %pass_on, label %look
look:
  %p_type = getelementptr i8, ptr %lone, i64 8
  %type = load ptr, ptr %p_type
  %is_lone = icmp eq ptr %type, %lone_type
  br i1 %is_lone, label %try, label %pass_on
try:
{_plan_of("%lone", plan_at)}{_plan_field("alone", "ptr")}
  %result = call ptr %alone(ptr %plan, ptr %args, i64 %nargs)
  %not_mine = icmp eq ptr %result, {NOT_MINE}
  br i1 %not_mine, label %pass_on, label %mine
mine:
  ret ptr %result

pass_on:
  %all = alloca ptr, i64 {2 * MOST_ARGUMENTS}, align 16
  store ptr %self, ptr %all
  br i1 %named, label %count_names, label %counted
count_names:
  %p_count = getelementptr i8, ptr %keywords, i64 16
  %names = load i64, ptr %p_count
  br label %counted
counted:
  %named_count = phi i64 [0, %pass_on], [%names, %count_names]
  %wanted = add i64 %nargs, %named_count
  %too_many = icmp sge i64 %wanted, {2 * MOST_ARGUMENTS}
  %total = select i1 %too_many, i64 {MOST_ARGUMENTS}, i64 %wanted
  %positional = select i1 %too_many, i64 {MOST_ARGUMENTS}, i64 %nargs
  %labels = select i1 %too_many, ptr null, ptr %keywords
  br label %more
more:
  %i = phi i64 [0, %counted], [%in, %copy]
  %left = icmp slt i64 %i, %total
  br i1 %left, label %copy, label %go
copy:
  %p_from = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %p_from
  %in = add i64 %i, 1
  %p_to = getelementptr ptr, ptr %all, i64 %in
  store ptr %argument, ptr %p_to
  br label %more
go:
  %with_self = add i64 %positional, 1
  %answer = call ptr %vectorcall(ptr %function, ptr %all, i64 %with_self, ptr %labels)
  ret ptr %answer
}}
{entries}"""
