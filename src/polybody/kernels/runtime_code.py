"""The code around every kernel's body: the loop over a batch (`lone_code` is the single call from Python), in `native`.

`run` walks the flat states lo … hi − 1 of a batch of any number of dimensions in blocks of `lanes`, fills the table of
row addresses (`rows`) and calls the body. An address is base + Σ_d index_d stride_d, so broadcasting is a zero stride
and costs no memory.

A body may want rows that follow each other. Of its arguments it finds the address of the first row and behind it WHOLE
where that is so, SAME where all states have that row (`whole_rows`), else the addresses of all rows; it takes one
address for each output and puts the rows of a whole block behind each other. Ports from `inputs` on are then such
outputs. A last block of fewer states is computed into scratch memory, and the rows that exist are copied (`_block`).
Bodies that address each row have `inputs` = `ports`. Results that do not fit the caches are written past them, without
first being read (the caller sees to it that their addresses are whole multiples of 32 or 64 bytes): where `stream` is
STAGED, every block is computed into scratch memory and copied so; where it is DIRECT the body does it (`table_rows`),
which finds a one behind the address of such an output, else a zero.

Bodies are told where the rows of the next block begin if they follow those of this one, or of one a little further on
where blocks are small, and ask for their cache lines (`rows.next_lines`).

`together` is what Python calls. It starts helper threads, works beside them and joins them. All of them call `_work`,
in which each takes the next piece of the batch from a common counter until none is left. What they work on is a *job*,
a table of int64 in the order of `JOB`, followed by the extents of the batch, the address of each port, its strides and
its bytes a state. Each thread has a part of the scratch memory to itself.
"""

from __future__ import annotations

from polybody.kernels import native
from polybody.kernels.target import Target
from polybody.kernels.whole_rows import SAME, WHOLE

JOB = (
    "next", "ticket", "piece", "states", "body", "libm", "scratch", "scratch_bytes", "inputs", "ports", "dims",
    "stream",
)  # fmt: skip

STAGED, DIRECT = 1, 2  # values of `stream`
AHEAD = 1536  # bytes of an argument at least between a line's request and its use: small arms' blocks take 0.1 us

SOURCE = """
def _block(body, libm, scratch, rows, inputs, ports, count, sizes, stream):
    # the body on a block of `count` states, its results taken aside first
    sinks = room(ports)
    stage = scratch
    for p in range(inputs, ports):
        cell = rows + 8 * LANES * p
        put(sinks + 8 * p, word(cell))
        put(cell, stage)
        stage += LANES * word(sizes + 8 * p)
    call(body, rows, libm, scratch)
    for p in range(inputs, ports):
        source = word(rows + 8 * LANES * p)
        sink = word(sinks + 8 * p)
        total = count * word(sizes + 8 * p)
        done = 0
        if stream == STAGED and count == LANES:
            while done < total:
                flow(sink + done, source + done, WIDE)
                done += WIDE
        else:
            while done + 8 <= total:
                put(sink + done, word(source + done))
                done += 8
            if done < total:
                put_half(sink + done, half(source + done))

def run(body, libm, scratch, lo, hi, inputs, ports, dims, shape, base, strides, sizes, stream):
    rows = room(ports * LANES + ports)
    ahead = rows + 8 * LANES * ports
    index = room(dims)
    far = room(ports)
    for n in range(ports):
        step = LANES * word(strides + 8 * n)
        put(far + 8 * n, step * (1 + AHEAD // (step + 1)))
    first = lo
    if dims == 1 and inputs < ports and LANES > 1 and stream != STAGED:
        plain = 1
        for i in range(ports):
            stride = word(strides + 8 * i)
            cell = rows + 8 * LANES * i
            put(cell, word(base + 8 * i) + lo * stride)
            put(ahead + 8 * i, word(cell) + word(far + 8 * i))
            if i < inputs:
                put(cell + 8, WHOLE)
                if stride == 0:
                    put(cell + 8, SAME)
                elif stride != word(sizes + 8 * i):
                    plain = 0
            elif LANES > 2:
                put(cell + 8, stream // DIRECT)
        while plain == 1 and first + LANES <= hi:
            call(body, rows, libm, scratch)
            for m in range(ports):
                step = LANES * word(strides + 8 * m)
                put(rows + 8 * LANES * m, word(rows + 8 * LANES * m) + step)
                put(ahead + 8 * m, word(ahead + 8 * m) + step)
            first += LANES
    while first < hi:
        if dims == 1:
            for p in range(ports):
                start = word(base + 8 * p)
                stride = word(strides + 8 * p)
                cell = rows + 8 * LANES * p
                if inputs < ports and LANES > 1 and p < inputs and first + 1 == hi:
                    put(cell, start + first * stride)
                    put(cell + 8, SAME)
                elif first + LANES <= hi:
                    at = start + first * stride
                    for lane in unroll(LANES):
                        put(cell + 8 * lane, at + lane * stride)
                    put(ahead + 8 * p, at + word(far + 8 * p))
                else:
                    put(ahead + 8 * p, start)
                    for lane in unroll(LANES):
                        put(cell + 8 * lane, start + least(first + lane, hi - 1) * stride)
        else:
            for lane in range(LANES):
                rest = least(first + lane, hi - 1)
                d = dims - 1
                while d > 0:
                    extent = word(shape + 8 * d)
                    quotient = rest // extent
                    put(index + 8 * d, rest - quotient * extent)
                    rest = quotient
                    d -= 1
                put(index, rest)
                for p in range(ports):
                    at = word(base + 8 * p)
                    for k in range(dims):
                        at += word(index + 8 * k) * word(strides + 8 * (p * dims + k))
                    put(rows + 8 * (LANES * p + lane), at)
                    put(ahead + 8 * p, at)
        if stream == STAGED:
            for s in range(inputs, ports):
                put(ahead + 8 * s, scratch)
        if LANES > 2:
            for r in range(inputs, ports):
                put(rows + 8 * (LANES * r + 1), 0)
                if stream == DIRECT and first + LANES <= hi:
                    put(rows + 8 * (LANES * r + 1), 1)
        if inputs == ports or (first + LANES <= hi and stream != STAGED):
            call(body, rows, libm, scratch)
        else:
            _block(body, libm, scratch, rows, inputs, ports, least(hi - first, LANES), sizes, stream)
        first += LANES

def first_off_unit(base, states, stride, size):
    # the first of so many quaternions whose length is not one, or -1
    for k in range(states):
        if off_unit(base + k * stride, size) != 0:
            return k
    return 0 - 1

def _work(job):
    dims = word(job + DIMS)
    ports = word(job + PORTS)
    shape = job + JOB
    base = shape + 8 * dims
    strides = base + 8 * ports
    scratch = word(job + SCRATCH) + take(job + TICKET, 1) * word(job + SCRATCH_BYTES)
    piece = word(job + PIECE)
    states = word(job + STATES)
    lo = take(job + NEXT, piece)
    while lo < states:
        run(word(job + BODY), word(job + LIBM), scratch, lo, least(lo + piece, states), word(job + INPUTS), ports, dims,
            shape, base, strides, strides + 8 * ports * dims, word(job + STREAM))
        lo = take(job + NEXT, piece)

def together(job, helpers, create, join, stack):
    threads = room(helpers + 1)
    started = 0
    refused = 0
    while started < helpers and refused == 0:
        if WINDOWS == 1:  # CreateThread(attributes, stack, start, argument, flags: the stack is a reservation, id)
            thread = call(create, 0, word(stack), address(_work), job, 65536, 0)
            put(threads + 8 * started, thread)
            if thread == 0:
                refused = 1
        else:
            refused = call_half(create, threads + 8 * started, stack, address(_work), job)
        if refused == 0:
            started += 1
    _work(job)
    for k in range(started):
        thread = word(threads + 8 * k)
        if WINDOWS == 1:
            call_half(join, thread, 4294967295)
            call_half(word(stack + 8), thread)
        else:
            call_half(join, thread, 0)
"""


def streamed_bytes(target: Target) -> int:
    """How much is written past the caches at once: what a vector holds, 32 bytes or a cache line."""
    return 64 if target.lanes * target.size % 64 == 0 else 32


def text(target: Target, callable_alone: str) -> str:
    """The module of `together`, and of what calls kernels alone (`lone_code`)."""
    places = {name.upper(): 8 * k for k, name in enumerate(JOB)}
    windows, wide = int("windows" in target.triple), streamed_bytes(target)
    numbers = {**places, "JOB": 8 * len(JOB), "LANES": target.lanes, "WIDE": wide, "WINDOWS": windows}
    numbers |= {"STAGED": STAGED, "DIRECT": DIRECT, "AHEAD": AHEAD, "WHOLE": WHOLE, "SAME": SAME}
    code = native.translate(SOURCE, numbers) + callable_alone
    return f'target triple = "{target.triple}"\n{code}{native.OFF_UNIT}{native.MODULE_TAIL}'
