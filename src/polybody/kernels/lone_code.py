"""LLVM text of a kernel called from Python on plain arrays, without any Python code in between.

`lone` is a CPython function (METH_FASTCALL | METH_KEYWORDS). Plain arguments (as many positional ndarrays as the kernel
has inputs, contiguous float64, the right length, all of one leading shape or none, no more states than are computed in
some 0.1 ms) are computed at once, into fresh arrays. Anything else it passes on, untouched, to a Python callable. Its
`self` is a tuple (plan, fallback, …); the plan is an int64 array of sizes and addresses in the order of `PLAN`.
"""

from __future__ import annotations

PLAN = (
    "inputs", "outputs", "addressed", "body", "libm", "scratch", "array_type", "float64", "array_new", "array_return",
    "tuple_new", "tuple_set", "vectorcall", "release", "limit",
)  # fmt: skip
# After these: the size of each input; for each output its number of dimensions, where they are, and its bytes a state.
HEADER = len(PLAN)
MOST_DIMENSIONS = 32  # of a result; the arguments may have half as many
NPY_DOUBLE = 12


def text() -> str:
    """Offsets are of CPython's object header and NumPy's PyArrayObject, checked by `runtime.can_be_called_alone`."""
    plan = {name: k for k, name in enumerate(PLAN)}

    def field(name: str, kind: str) -> str:
        return f"  %f_{name} = getelementptr i64, ptr %plan, i64 {plan[name]}\n  %{name} = load {kind}, ptr %f_{name}\n"

    return f"""
define ptr @lone(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {{
entry:
  %p_plan = getelementptr i8, ptr %self, i64 {tuple.__basicsize__}
  %plan_array = load ptr, ptr %p_plan
  %p_data = getelementptr i8, ptr %plan_array, i64 16
  %plan = load ptr, ptr %p_data
{field("inputs", "i64")}{field("outputs", "i64")}{field("array_type", "ptr")}{field("float64", "ptr")}
  %ports = add i64 %inputs, %outputs
  %base = alloca ptr, i64 %ports, align 16
  %strides = alloca i64, i64 %ports, align 16
  %arrays = alloca ptr, i64 %outputs, align 16
  %shape = alloca i64, i64 {MOST_DIMENSIONS}, align 16
  %v_leading = alloca i64, align 8
  %v_states = alloca i64, align 8
  store i64 0, ptr %v_leading
  store i64 1, ptr %v_states
  %named = icmp ne ptr %keywords, null
  %wrong_count = icmp ne i64 %nargs, %inputs
  %unusual = or i1 %named, %wrong_count
  br i1 %unusual, label %pass_on, label %more_inputs

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
  %is_double = icmp eq ptr %descr, %float64
  %wanted_flags = and i32 %flags, 257
  %is_plain = icmp eq i32 %wanted_flags, 257
  %ok1 = and i1 %has_rows, %is_double
  %ok2 = and i1 %ok1, %is_plain
  %ok3 = and i1 %ok2, %not_deep
  br i1 %ok3, label %measure, label %pass_on
measure:
  %p_dims = getelementptr i8, ptr %arg, i64 32
  %dims = load ptr, ptr %p_dims
  %lead = add i64 %nd, -1
  %p_length = getelementptr i64, ptr %dims, i64 %lead
  %length = load i64, ptr %p_length
  %size_at = add i64 %i, {HEADER}
  %p_size = getelementptr i64, ptr %plan, i64 %size_at
  %size = load i64, ptr %p_size
  %fits = icmp eq i64 %length, %size
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
  %bytes = mul i64 %size, 8
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
{field("array_new", "ptr")}
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
  %array = call ptr %array_new(ptr %array_type, i32 %nd_out, ptr %shape, i32 {NPY_DOUBLE},
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
{field("vectorcall", "ptr")}
  %p_fallback = getelementptr i8, ptr %p_plan, i64 8
  %fallback = load ptr, ptr %p_fallback
  %answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %answer
}}

define ptr @address(ptr %self, ptr %array) {{
  %p_plan = getelementptr i8, ptr %self, i64 {tuple.__basicsize__}
  %plan_array = load ptr, ptr %p_plan
  %p_data = getelementptr i8, ptr %plan_array, i64 16
  %plan = load ptr, ptr %p_data
  %make = load ptr, ptr %plan
  %p_numbers = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %p_numbers
  %number = call ptr %make(ptr %data)
  ret ptr %number
}}
"""
