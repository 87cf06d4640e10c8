"""LLVM text of the code around every kernel's body: the loop over a batch (`lone_code` is the lone call from Python).

`run` walks the flat states lo … hi − 1 of a batch of any number of dimensions in blocks of `lanes`, fills the table of
row addresses (`rows`) and calls the body. An address is base + Σ_d index_d stride_d, so broadcasting is a zero stride
and costs no memory.

A body may want dense results: it takes one address for each output and puts the rows of a whole block behind each
other. Ports from `inputs` on are then such outputs. A last block of fewer states is computed into scratch memory, and
the rows that exist are copied (`block`). Bodies that address each row have `inputs` = `ports`. Where `stream` is set,
every block is computed into scratch memory and copied past the caches: results that do not fit them are then written
without first being read (the caller sees to it that their addresses are whole multiples of 32 bytes).

`together` is what Python calls. It starts helper threads, works beside them and joins them. All of them call `work`, in
which each takes the next piece of the batch from a common counter until none is left. What they work on is a *job*, a
table of int64 in the order of `JOB`, followed by the extents of the batch, the address of each port, its strides and
its bytes a state. Each thread has a part of the scratch memory to itself.
"""

from __future__ import annotations

from polybody.kernels.target import Target

JOB = (
    "next", "ticket", "piece", "states", "body", "libm", "scratch", "scratch_bytes", "inputs", "ports", "dims",
    "stream",
)  # fmt: skip


def text(target: Target, callable_alone: str) -> str:
    """The module of `together`, and of what calls kernels alone (`lone_code`)."""
    triple = f'target triple = "{target.triple}"\n'
    loops = _block_text(target.lanes) + _run_text(target.lanes) + _together_text("windows" in target.triple)
    return triple + loops + callable_alone + "\n!0 = !{i32 1}\n"


def _block_text(lanes: int) -> str:
    """`block`: the body on one block of `left` states, of which at most `lanes` count; `bytes` are those of a row."""
    return f"""
define internal void @block(ptr %body, ptr %libm, ptr %scratch, ptr %rows, i64 %inputs, i64 %ports, i64 %left,
                            ptr %bytes, i64 %stream) {{
entry:
  %addressed = icmp eq i64 %inputs, %ports
  %full = icmp sge i64 %left, {lanes}
  %count = select i1 %full, i64 {lanes}, i64 %left
  %streamed = icmp ne i64 %stream, 0
  %past_caches = and i1 %full, %streamed
  %kept = xor i1 %streamed, true
  %whole_block = and i1 %full, %kept
  %direct = or i1 %addressed, %whole_block
  br i1 %direct, label %plain, label %divert
plain:
  call void %body(ptr %rows, ptr %libm, ptr %scratch)
  ret void
divert:
  %p = phi i64 [%inputs, %entry], [%pn, %divert]
  %stage = phi ptr [%scratch, %entry], [%next_stage, %divert]
  %at = mul i64 %p, {lanes}
  %cell = getelementptr ptr, ptr %rows, i64 %at
  %target = load ptr, ptr %cell
  %aside = getelementptr ptr, ptr %cell, i64 1
  store ptr %target, ptr %aside
  store ptr %stage, ptr %cell
  %p_bytes = getelementptr i64, ptr %bytes, i64 %p
  %row = load i64, ptr %p_bytes
  %whole = mul i64 %row, {lanes}
  %next_stage = getelementptr i8, ptr %stage, i64 %whole
  %pn = add i64 %p, 1
  %more = icmp slt i64 %pn, %ports
  br i1 %more, label %divert, label %compute
compute:
  call void %body(ptr %rows, ptr %libm, ptr %scratch)
  br label %output
output:
  %o = phi i64 [%inputs, %compute], [%on, %output_end]
  %o_at = mul i64 %o, {lanes}
  %o_cell = getelementptr ptr, ptr %rows, i64 %o_at
  %from = load ptr, ptr %o_cell
  %o_aside = getelementptr ptr, ptr %o_cell, i64 1
  %to = load ptr, ptr %o_aside
  %o_bytes = getelementptr i64, ptr %bytes, i64 %o
  %o_row = load i64, ptr %o_bytes
  %total = mul i64 %o_row, %count
  %some = icmp sgt i64 %total, 0
  br i1 %some, label %way, label %output_end
way:
  br i1 %past_caches, label %flow, label %copy
flow:
  %f = phi i64 [0, %way], [%fn, %flow]
  %f_from = getelementptr i8, ptr %from, i64 %f
  %four = load <4 x double>, ptr %f_from, align 8
  %f_to = getelementptr i8, ptr %to, i64 %f
  store <4 x double> %four, ptr %f_to, align 32, !nontemporal !0
  %fn = add i64 %f, 32
  %f_again = icmp slt i64 %fn, %total
  br i1 %f_again, label %flow, label %output_end
copy:
  %c = phi i64 [0, %way], [%cn, %copy]
  %p_from = getelementptr i8, ptr %from, i64 %c
  %number = load i32, ptr %p_from
  %p_to = getelementptr i8, ptr %to, i64 %c
  store i32 %number, ptr %p_to
  %cn = add i64 %c, 4
  %again = icmp slt i64 %cn, %total
  br i1 %again, label %copy, label %output_end
output_end:
  %on = add i64 %o, 1
  %more_outputs = icmp slt i64 %on, %ports
  br i1 %more_outputs, label %output, label %done
done:
  ret void
}}
"""


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
define void @run(ptr %body, ptr %libm, ptr %scratch, i64 %lo, i64 %hi, i64 %inputs, i64 %ports,
                 i64 %dims, ptr %shape, ptr %base, ptr %strides, ptr %bytes, i64 %stream) {{
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
  %fleft = sub i64 %hi, %fb
  call void @block(ptr %body, ptr %libm, ptr %scratch, ptr %rows, i64 %inputs, i64 %ports, i64 %fleft, ptr %bytes,
                   i64 %stream)
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
  %left = sub i64 %hi, %b
  call void @block(ptr %body, ptr %libm, ptr %scratch, ptr %rows, i64 %inputs, i64 %ports, i64 %left, ptr %bytes,
                   i64 %stream)
  %bn = add i64 %b, {lanes}
  %more = icmp slt i64 %bn, %hi
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""


def _together_text(windows: bool) -> str:
    """`work(job)`, as the system starts threads with, and `together(job, helpers, create, join, stack)`."""
    fields = "".join(
        f"  %f_{name} = getelementptr i64, ptr %job, i64 {k}\n"
        f"  %{name} = load {'ptr' if name in ('body', 'libm', 'scratch') else 'i64'}, ptr %f_{name}\n"
        for k, name in enumerate(JOB)
    )
    if windows:  # CreateThread(attributes, stack, start, argument, flags, id); 65536: the stack is a reservation
        start = """  %reserve = load i64, ptr %stack
  %id = call ptr %create(ptr null, i64 %reserve, ptr @work, ptr %job, i32 65536, ptr null)
  store ptr %id, ptr %p_id
  %started = icmp ne ptr %id, null"""
        wait = """%ignored = call i32 %join(ptr %thread, i32 -1)
  %p_close = getelementptr ptr, ptr %stack, i64 1
  %close = load ptr, ptr %p_close
  %closed = call i32 %close(ptr %thread)"""
    else:
        start = """  %refused = call i32 %create(ptr %p_id, ptr %stack, ptr @work, ptr %job)
  %started = icmp eq i32 %refused, 0"""
        wait = "%ignored = call i32 %join(ptr %thread, ptr null)"
    return f"""
define internal ptr @work(ptr %job) {{
entry:
{fields}  %place = atomicrmw add ptr %f_ticket, i64 1 monotonic
  %offset = mul i64 %place, %scratch_bytes
  %own = getelementptr i8, ptr %scratch, i64 %offset
  %shape = getelementptr i64, ptr %job, i64 {len(JOB)}
  %base = getelementptr i64, ptr %shape, i64 %dims
  %strides = getelementptr i64, ptr %base, i64 %ports
  %steps = mul i64 %ports, %dims
  %bytes = getelementptr i64, ptr %strides, i64 %steps
  br label %take
take:
  %lo = atomicrmw add ptr %f_next, i64 %piece monotonic
  %some = icmp slt i64 %lo, %states
  br i1 %some, label %one, label %done
one:
  %end = add i64 %lo, %piece
  %beyond = icmp sgt i64 %end, %states
  %hi = select i1 %beyond, i64 %states, i64 %end
  call void @run(ptr %body, ptr %libm, ptr %own, i64 %lo, i64 %hi, i64 %inputs, i64 %ports, i64 %dims,
                 ptr %shape, ptr %base, ptr %strides, ptr %bytes, i64 %stream)
  br label %take
done:
  fence seq_cst
  ret ptr null
}}

define void @together(ptr %job, i64 %helpers, ptr %create, ptr %join, ptr %stack) {{
entry:
  %ids = alloca ptr, i64 %helpers, align 16
  br label %more
more:
  %h = phi i64 [0, %entry], [%hn, %start]
  %wanted = icmp slt i64 %h, %helpers
  br i1 %wanted, label %start, label %own
start:
  %p_id = getelementptr ptr, ptr %ids, i64 %h
{start}
  %hn = add i64 %h, 1
  br i1 %started, label %more, label %own
own:
  %running = phi i64 [%h, %more], [%h, %start]
  %mine = call ptr @work(ptr %job)
  br label %left
left:
  %w = phi i64 [0, %own], [%wn, %wait]
  %any = icmp slt i64 %w, %running
  br i1 %any, label %wait, label %done
wait:
  %p_thread = getelementptr ptr, ptr %ids, i64 %w
  %thread = load ptr, ptr %p_thread
  {wait}
  %wn = add i64 %w, 1
  br label %left
done:
  ret void
}}
"""
