"""The order in which a tape is computed: what decides how many values wait for their use outside registers.

Three orders are made of every tape:

    traced      as the text computes it: nodes by their numbers
    forwards    depth-first from the outputs as they come; of a node's arguments the one that was traced first
    backwards   depth-first from the last output to the first; of a node's arguments the one that needs more registers
                (Sethi & Ullman 1970; a graph with shared nodes has no best order that could be found so fast)

Depth-first, a value is computed shortly before its use. Which output comes first matters: a mass matrix from its last
row on needs the composite inertia of a leaf, then that of its parent, and so on, and each is used up soon; from its
first row on all of them wait. A recursion's own text computes whole vectors, whose components share their factors, and
a column of a matrix after the other: of long tapes it leaves a third fewer values behind. Short ones are bounded by the
latency of their operations instead, and LLVM hides that better in depth-first orders: from `LONG` operations on the
order of the text is considered.

The order is taken that moves fewer values between registers and memory, counted with the best choice there is of what
to drop: the value whose next use is farthest (Belady 1966). LLVM comes within a third of that, and nearer backwards:
with 16 registers, forwards must save a tenth.

Measured on Zen 4, ns per state, depth-first and as traced. With AVX2 (16 registers): G1, derivatives of inverse
dynamics 2,020 and 1,750, forward dynamics 452 and 414, inverse dynamics 190 and 195 (so backwards), mass matrix 369 and
365; a Panda's forward dynamics 42.8 and 44.8; a UR5's inverse dynamics 19.5 backwards, 17.9 forwards. With AVX-512
(32): G1, derivatives 1,660 and 1,440, but forward dynamics 317 and 354, in spite of fewer instructions. So with many
registers only long tapes are computed as traced, and where that saves a fifth of the moves.

On Zen 3 (AVX2), in short functions, every saving pays from some 900 operations on: a UR5's derivatives 97 and 88 (683
and 516 moves; 950 operations), a Panda's without fingers 187 and 163 (1,637 and 1,103; both cut as `frame` has it), its
Coriolis matrix 96 and 92, inverse dynamics of G1 and TALOS 219 and 208, 241 and 217 (moves by 7 % fewer). Forward
dynamics of arms loses: a UR5's 29.5 and 32.8 (226 and 165 moves, 371 operations), a Panda's without fingers 52 and 54.5
(592 and 444; 844). Steps of rollouts, which are one function, gain or lose: a UR5's 175 and 137, a Panda's 387 and 476.

A fourth order, *side by side*, is for short functions whose values are one register each. A processor looks some
hundred operations ahead, and depth-first orders put whole chains of results that wait for each other there. Operations
are taken in the order of a machine that begins two in a cycle, of those whose arguments are ready the one with the
longest way to an output (Hu 1961), as long as no more than `AT_ONCE` values wait; then the one that ends most waits.
Zen 3, backwards and side by side: a UR5's forward dynamics in float32 15.8 and 14.6, inverse dynamics of a Panda
without fingers 32.4 and 31.1 (in float32 16.5 and 15.6), a Puma's forward dynamics 33.0 and 31.6. Longer tapes lose (a
UR5's Coriolis matrix 46 and 51, a Panda's bias forces 32.0 and 33.7), as do many results (a Panda's mass matrix in
float32 21.3 and 22.9). In two registers each nothing was gained (a UR5's forward dynamics 28.2 and 28.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import casadi as ca

from polybody.kernels.tape import CONST, Tape, Wave, reachable, results_of

REGISTERS = 15  # of 16, unless said otherwise: one is for what comes from memory
FEWER = 0.9  # of the moves backwards: with few registers, what saves less is not computed forwards
#: operations: shorter tapes are computed depth-first; of the moves of depth-first orders: what saves less is not
#: computed as traced. In one function or with many registers; with few, in short functions
LONG, WORTH = (2500, 900), (0.8, 1.0)
#: operations from which on no order forwards is made, which takes a tenth of the time of compiling: it had more moves
#: than another in all long tapes (Coriolis matrices and derivatives of chains and humanoids, inverses of inertia)
BACKWARDS_FROM = 10_000
#: operations: tapes from as many on, and up to as many, are computed side by side, with as many results at most
SIDE_BY_SIDE, FEW_RESULTS = (300, 460), 32
#: values that wait at once, of these
AT_ONCE = 40
#: cycles from an operation to the use of its result: of divisions, products and others (Zen 3)
DIVISION, PRODUCT, OTHER = 12, 4, 3


def schedule(
    tape: Tape, registers: int = REGISTERS, *, cut: bool = False, single: bool = False
) -> list[int | Wave]:  # fmt: skip
    """The order of computation: node numbers, with waves of mapped functions in between.

    `registers`: values that they hold at once (`Target.held`); `cut`: whether long code becomes short functions
    (`frame`); `single`: whether a value is one register.
    """
    needed = reachable(tape)
    arguments = {n: tape.arguments(n) for n in needed}
    order: list[int | Wave] = []
    done = {n for n in needed if tape.nodes[n][0] < 0}
    traced = dict.fromkeys(needed, 0)
    for wave in _waves(tape, needed):
        for calls in wave.values():
            for given in calls:
                _depth_first(arguments, given, done, order, traced)
        order.append(wave)
        done.update(results_of(wave))
    roots = [n for nodes in tape.outputs for n in nodes]
    constants = {n for n in needed if tape.nodes[n][0] == CONST}  # operands in memory, always
    best: list[int | Wave] = []
    _depth_first(arguments, roots[::-1], set(done), best, _registers(arguments, needed, done))
    least = moves(arguments, best, constants, registers)
    backwards = best
    if len(backwards) < BACKWARDS_FROM:
        forwards: list[int | Wave] = []
        _depth_first(arguments, roots, set(done), forwards, traced)
        cost = moves(arguments, forwards, constants, registers)
        if cost <= (FEWER if registers <= REGISTERS else 1.0) * least or cost == least:
            least, best = cost, forwards
    short = cut and registers <= REGISTERS
    if short and single and SIDE_BY_SIDE[0] <= len(best) < SIDE_BY_SIDE[1] and len(roots) <= FEW_RESULTS:
        return order + _side_by_side(tape, arguments, backwards, done)
    if len(best) >= LONG[short]:
        traced_order: list[int | Wave] = [n for n in needed if n not in done]
        cost = moves(arguments, traced_order, constants, registers)
        best = traced_order if cost < WORTH[short] * least else best
    return order + best


def _waves(tape: Tape, needed: Sequence[int]) -> list[Wave]:
    """Mapped functions by depth: wave k holds those that have k others below them on their longest path."""
    depth: dict[int, int] = {}
    waves: list[Wave] = []
    for n in needed:  # ascending numbers are a topological order
        below = max((depth[a] for a in tape.arguments(n)), default=0)
        name = tape.mapped(n)
        if name:
            while len(waves) <= below:
                waves.append({})
            waves[below].setdefault(name, {}).setdefault(tape.arguments(n), []).append(n)
            below += 1
        depth[n] = below
    return waves


def _registers(arguments: dict[int, tuple[int, ...]], needed: Sequence[int], known: set[int]) -> dict[int, int]:
    """How many registers each node's computation would need, were the graph a tree."""
    numbers: dict[int, int] = dict.fromkeys(known, 0)
    for n in needed:
        if n not in numbers:
            parts = sorted((numbers[a] for a in set(arguments[n]) if numbers[a]), reverse=True)
            numbers[n] = max([1, *(held + part for held, part in enumerate(parts))])
    return numbers


def _depth_first(
    arguments: dict[int, tuple[int, ...]], roots: Sequence[int], done: set[int], order: list[int | Wave],
    first: dict[int, int],
) -> None:  # fmt: skip
    """Append what `roots` need and is not done: arguments before results, those of larger `first` before others."""
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if ready:
                done.add(node)
                order.append(node)
                continue
            stack.append((node, True))
            later = sorted((a for a in arguments[node] if a not in done), key=lambda a: (first[a], -a))
            stack.extend((a, False) for a in later)


def _side_by_side(
    tape: Tape, arguments: dict[int, tuple[int, ...]], order: Sequence[int | Wave], done: set[int]
) -> list[int | Wave]:
    """The nodes of a depth-first order such that those next to each other can be computed at the same time."""
    nodes = [n for n in order if isinstance(n, int)]
    given = {n: set(arguments[n]) - done for n in nodes}
    place, latency = {n: k for k, n in enumerate(nodes)}, {n: _latency(tape, n) for n in nodes}
    users: dict[int, list[int]] = {n: [] for n in nodes}
    way: dict[int, int] = {}  # cycles from a node's begin to the last output
    for n in nodes:
        for a in given[n]:
            users[a].append(n)
    for n in reversed(nodes):
        way[n] = latency[n] + max((way[user] for user in users[n]), default=0)
    missing = {n: len(given[n]) for n in nodes}
    uses = {n: len(users[n]) for n in nodes}
    ready = dict.fromkeys(nodes, 0.0)  # when a node's arguments are there
    able = [n for n in nodes if not missing[n]]
    waiting, time, found = 0, 0.0, list[int | Wave]()

    def freed(n: int) -> int:
        """Registers that are free after a node, less the one that it takes."""
        return sum(uses[a] == 1 for a in given[n]) - (uses[n] > 0)

    while able:
        if waiting < AT_ONCE:
            node = min(able, key=lambda n: (max(ready[n], time), -way[n]))
        else:
            node = min(able, key=lambda n: (-max(freed(n), -1), place[n]))
        able.remove(node)
        found.append(node)
        end, time = max(ready[node], time) + latency[node], time + 0.5
        waiting -= freed(node)
        for a in given[node]:
            uses[a] -= 1
        for user in users[node]:
            ready[user] = max(ready[user], end)
            missing[user] -= 1
            if not missing[user]:
                able.append(user)
    return found


def _latency(tape: Tape, node: int) -> int:
    op = tape.nodes[node][0]
    if op in (ca.OP_DIV, ca.OP_INV):
        return DIVISION
    return PRODUCT if node in tape.products or op == ca.OP_MUL else OTHER


def moves(
    arguments: dict[int, tuple[int, ...]], order: Sequence[int | Wave], constants: set[int], registers: int = REGISTERS
) -> int:
    """Loads and stores that this order needs at least; what it does not compute itself is in memory."""
    steps = [(node, set(arguments[node]) - constants) for node in order if isinstance(node, int)]
    uses: dict[int, list[int]] = {}  # of each value, the last first
    for k in reversed(range(len(steps))):
        for a in steps[k][1]:
            uses.setdefault(a, []).append(k)
    held: dict[int, int] = {}  # values in registers: when they are used next
    farthest: list[tuple[int, int]] = []  # heap of (−next use, value), with entries that hold no longer
    kept = set(uses).difference(node for node, _ in steps)  # in memory
    count = 0

    def take(value: int) -> None:
        """Give the value a register until its next use."""
        nonlocal count
        held[value] = following = uses[value][-1]
        heappush(farthest, (-following, value))
        while len(held) > registers:
            due, other = heappop(farthest)
            if held.get(other) == -due:
                del held[other]
                count += other not in kept
                kept.add(other)

    for node, given in steps:
        for a in given:
            count += a not in held
            uses[a].pop()
            held.pop(a, None)
        for a in given:
            if uses[a]:
                take(a)
        if uses.get(node):
            take(node)
    return count


__all__ = ["moves", "schedule"]
