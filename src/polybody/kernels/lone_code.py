"""Kernels called from Python on plain arrays, without any Python code in between: machine code, in `native`.

`alone` computes plain arguments (as many positional ndarrays as the kernel has inputs, contiguous, of its dtype and the
right length, all of one leading shape or none, no more states than are computed in some 0.1 ms, unit quaternions where
such are expected) at once, into fresh arrays; of any other it says that they are not its business. It works by a
*plan*, an int64 array of sizes and addresses in the order of `PLAN`, which an object of `runtime.Lone` holds.

Two kinds of CPython functions (METH_FASTCALL | METH_KEYWORDS) try it first and pass every other call on, untouched:

    lone      a builtin whose `self` is such an object; passes on to that object's `fallback`
    method_k  a method; `self` is an instance that has such an object in a slot, passes on to a Python function of the
              class. Where the slot is and which function it is stands in the k-th of `cells`, in the order of `CELL`.

Offsets are of CPython's object header and NumPy's PyArrayObject, checked by `runtime.can_be_called_alone`.
"""

from __future__ import annotations

from polybody.kernels import native

PLAN = (
    "inputs", "outputs", "addressed", "body", "libm", "scratch", "array_type", "dtype", "array_new", "array_return",
    "tuple_new", "tuple_set", "vectorcall", "release", "limit", "alone", "size", "type_number", "units",
    "unit_table",
)  # fmt: skip
# After these: the size of each input; for each output its number of dimensions, where they are, and its bytes a state.
CELL = ("slot", "function", "lone_type", "vectorcall")
METHODS = 64  # that can be fast, in one process
MOST_ARGUMENTS = 32  # of a call that is passed on; no function that is made fast takes as many
MOST_DIMENSIONS = 32  # of a result; the arguments may have half as many

LONE = """
def lone(self, args, nargs, keywords):
    plan = word(word(self + PLAN_AT) + 16)
    if keywords == 0:
        result = call(word(plan + ALONE), plan, args, nargs)
        if result != NOT_MINE:
            return result
    return call(word(plan + VECTORCALL), word(self + FALLBACK_AT), args, nargs, keywords)

def alone(plan, args, nargs):
    inputs = word(plan + INPUTS)
    outputs = word(plan + OUTPUTS)
    if nargs != inputs:
        return NOT_MINE
    ports = inputs + outputs
    base = room(3 * ports + MOST_DIMENSIONS)
    strides = base + 8 * ports
    arrays = strides + 8 * ports
    shape = arrays + 8 * ports
    leading = 0
    states = 1
    body = word(plan + BODY)  # read together, before anything that could let another thread change the plan
    libm = word(plan + LIBM)
    scratch = word(plan + SCRATCH)
    addressed = word(plan + ADDRESSED)
    for i in range(inputs):
        a = word(args + 8 * i)
        if word(a + 8) != word(plan + ARRAY_TYPE):
            return NOT_MINE
        nd = half(a + 24)
        if word(a + 56) != word(plan + DTYPE) or half(a + 64) & 257 != 257 or nd < 1 or 2 * nd > MOST_DIMENSIONS:
            return NOT_MINE
        dims = word(a + 32)
        lead = nd - 1
        length = word(dims + 8 * lead)
        if length != word(plan + PLAN + 8 * i):
            return NOT_MINE
        stride = 0
        if lead > 0:
            stride = length * word(plan + SIZE)
            if leading == 0:
                leading = lead
                for d in range(lead):
                    put(shape + 8 * d, word(dims + 8 * d))
                    states = states * word(dims + 8 * d)
            else:
                if leading != lead:
                    return NOT_MINE
                for d in range(lead):
                    if word(dims + 8 * d) != word(shape + 8 * d):
                        return NOT_MINE
        put(base + 8 * i, word(a + 16))
        put(strides + 8 * i, stride)
    if states <= 0 or states > word(plan + LIMIT):
        return NOT_MINE
    for u in range(word(plan + UNITS)):
        entry = word(plan + UNIT_TABLE) + 16 * u
        port = 8 * word(entry)
        for s in range(states):
            if off_unit(word(base + port) + s * word(strides + port) + word(entry + 8), word(plan + SIZE)) != 0:
                return NOT_MINE
    for j in range(outputs):
        facts = plan + PLAN + 8 * inputs + 24 * j
        own = word(facts)
        for o in range(own):
            put(shape + 8 * (leading + o), word(word(facts + 8) + 8 * o))
        array = call(word(plan + ARRAY_NEW), word(plan + ARRAY_TYPE), leading + own, shape, word(plan + TYPE_NUMBER),
                     0, 0, 0, 0, 0)
        if array == 0:
            return _undo(plan, arrays, j)
        put(arrays + 8 * j, array)
        put(base + 8 * (inputs + j), word(array + 16))
        put(strides + 8 * (inputs + j), word(facts + 16))
    run(body, libm, scratch, 0, states, addressed, ports, 1, shape, base, strides, strides, 0)
    returned = word(plan + ARRAY_RETURN)  # makes a lone number a scalar
    if outputs == 1:
        return call(returned, word(arrays))
    set_item = word(plan + TUPLE_SET)
    several = call(word(plan + TUPLE_NEW), outputs)
    if several == 0:
        return _undo(plan, arrays, outputs)
    for t in range(outputs):
        call_half(set_item, several, t, call(returned, word(arrays + 8 * t)))
    return several

def _undo(plan, arrays, count):
    for k in range(count):
        call(word(plan + RELEASE), word(arrays + 8 * k))
    return 0

def address_of(self, array):
    return call(word(word(word(self + PLAN_AT) + 16)), word(array + 16))
"""

METHOD = """
def _method(self, args, nargs, keywords, cell):
    lone = word(self + word(cell + SLOT))
    if keywords == 0 and lone != 0 and word(lone + 8) == word(cell + LONE_TYPE):
        plan = word(word(lone + PLAN_AT) + 16)
        result = call(word(plan + ALONE), plan, args, nargs)
        if result != NOT_MINE:
            return result
    total = nargs
    if keywords != 0:
        total += word(keywords + 16)
    if total >= 2 * MOST_ARGUMENTS:  # the function will complain of these already
        total = MOST_ARGUMENTS
        nargs = MOST_ARGUMENTS
        keywords = 0
    given = room(2 * MOST_ARGUMENTS)
    put(given, self)
    for i in range(total):
        put(given + 8 + 8 * i, word(args + 8 * i))
    return call(word(cell + CELL_VECTORCALL), word(cell + FUNCTION), given, nargs + 1, keywords)

def cells_at():
    return address(cells)
"""
ENTRY = """
def method_{k}(self, args, nargs, keywords):
    return _method(self, args, nargs, keywords, address(cells) + {offset})
"""


def _numbers(plan_at: int, fallback_at: int) -> dict[str, int]:
    numbers = {name.upper(): 8 * k for k, name in enumerate(PLAN)}
    numbers |= {"PLAN": 8 * len(PLAN), "PLAN_AT": plan_at, "FALLBACK_AT": fallback_at, "NOT_MINE": 1}
    return numbers | {"MOST_DIMENSIONS": MOST_DIMENSIONS, "MOST_ARGUMENTS": MOST_ARGUMENTS}


def text(plan_at: int, fallback_at: int) -> str:
    """`alone` and `lone`; the arguments are the places of two slots of `runtime.Lone`."""
    return native.translate(LONE, _numbers(plan_at, fallback_at))


def methods_text(triple: str, plan_at: int) -> str:
    """`method_0`, `method_1`, …, which differ in their cell only, and `cells_at`, which reports where the cells are."""
    slot, function, lone_type, vectorcall = (8 * k for k in range(len(CELL)))
    numbers = {"SLOT": slot, "FUNCTION": function, "LONE_TYPE": lone_type, "CELL_VECTORCALL": vectorcall}
    entries = "".join(ENTRY.format(k=k, offset=8 * len(CELL) * k) for k in range(METHODS))
    cells = f"@cells = internal global [{METHODS * len(CELL)} x i64] zeroinitializer, align 64"
    code = native.translate(METHOD + entries, _numbers(plan_at, 0) | numbers)
    return f'target triple = "{triple}"\n{cells}\n{code}'
