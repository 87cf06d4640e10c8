"""The order of computation: arguments before results, and few values that wait."""

import casadi as ca

from polybody.kernels.schedule import AT_ONCE, LONG, REGISTERS, SIDE_BY_SIDE, moves, schedule
from polybody.kernels.tape import INPUT, Builder, Tape, from_function


def ladder(n: int) -> Tape:
    """Sums that each output needs from the end on: forwards all of them wait, backwards none."""
    x = ca.SX.sym("x", n)
    sums = [x[n - 1] * x[0]]
    for k in range(n - 2, -1, -1):
        sums.append(sums[-1] * x[k] + ca.sqrt(x[k]))
    return from_function(ca.Function("ladder", [x], [ca.vertcat(*(s * s + x[0] for s in reversed(sums)))]))


def test_every_argument_is_computed_before_its_use_and_everything_once():
    tape = ladder(60)
    steps = schedule(tape)
    assert len(set(steps)) == len(steps) == tape.operations()
    known = {n for n, node in enumerate(tape.nodes) if node[0] < 0}
    for step in steps:
        assert set(tape.arguments(step)) <= known
        known.add(step)


def test_outputs_that_use_up_their_values_from_the_last_on_are_computed_so():
    tape = ladder(60)
    arguments = {n: tape.arguments(n) for n in range(len(tape.nodes))}
    steps = schedule(tape)
    outputs = [steps.index(n) for n in tape.outputs[0]]
    assert outputs == sorted(outputs, reverse=True)
    inputs = tape.input_sizes[0]
    assert moves(arguments, steps, set()) == inputs  # each is loaded once, nothing is stored
    traced = [n for n in range(len(tape.nodes)) if tape.nodes[n][0] >= 0 and n not in tape.outputs[0]]
    assert moves(arguments, [*traced, *tape.outputs[0]], set()) > inputs + 2 * (60 - REGISTERS)


def test_of_orders_that_move_as_much_the_one_of_tracing_is_taken():
    x = ca.SX.sym("x", 50)
    tape = from_function(ca.Function("f", [x], [x * x]))
    assert schedule(tape) == sorted(schedule(tape))


def columns(count: int, steps: int) -> Tape:
    """Columns traced one after the other, each value from the one before; results by rows, from both ends inwards."""
    build = Builder()
    x = [build.node(INPUT, 0, k) for k in range(count)]
    c = [build.node(INPUT, 1, s) for s in range(steps)]
    rows: list[list[int]] = [[] for _ in range(steps)]
    for value in x:
        for row, factor in zip(rows, c, strict=True):
            value = build.node(ca.OP_ADD, build.node(ca.OP_MUL, value, factor), factor)
            row.append(value)
    mixed = [*rows[::2], *reversed(rows[1::2])]
    return Tape(build.nodes, [[n for row in mixed for n in row]], [count, steps])


def test_a_long_tape_whose_text_uses_values_up_is_computed_as_its_text():
    many = 2 * REGISTERS + 1
    cases = ((columns(48, 20), REGISTERS, True), (columns(96, 20), many, True), (columns(96, 20), REGISTERS, False))
    for tape, registers, cut in cases:
        assert tape.operations() > LONG[cut and registers == REGISTERS]
        assert schedule(tape, registers, cut=cut) == [n for n, node in enumerate(tape.nodes) if node[0] >= 0]


def test_a_short_tape_is_computed_depth_first():
    many = 2 * REGISTERS + 1
    cases = ((columns(48, 5), REGISTERS, True), (columns(48, 20), many, True), (columns(48, 20), REGISTERS, False))
    for tape, registers, cut in cases:
        assert tape.operations() < LONG[cut and registers == REGISTERS]
        assert schedule(tape, registers, cut=cut) != [n for n, node in enumerate(tape.nodes) if node[0] >= 0]


def chains(count: int, steps: int) -> Tape:
    """Products that each need the one before, in several chains."""
    build = Builder()
    c = [build.node(INPUT, 1, s) for s in range(steps)]
    ends = []
    for k in range(count):
        value = build.node(INPUT, 0, k)
        for factor in c:
            value = build.node(ca.OP_MUL, value, factor)
        ends.append(value)
    return Tape(build.nodes, [ends], [count, steps])


def test_chains_of_a_short_function_are_computed_side_by_side_and_each_step_once():
    tape = chains(8, 45)
    assert SIDE_BY_SIDE[0] <= tape.operations() < SIDE_BY_SIDE[1]
    steps = schedule(tape, cut=True, single=True)
    assert len(set(steps)) == len(steps) == tape.operations()
    assert distances(tape, steps) == {8}
    assert distances(tape, schedule(tape, cut=True)) == {1}  # one chain after the other


def distances(tape: Tape, steps: list) -> set[int]:
    """How far each step is from those whose results it needs."""
    at = {step: k for k, step in enumerate(steps)}
    return {at[step] - at[a] for step in steps for a in tape.arguments(step) if a in at}


def test_no_more_values_wait_at_once_than_said():
    build = Builder()
    x = [build.node(INPUT, 0, k) for k in range(200)]
    squares = [build.node(ca.OP_MUL, value, value) for value in x]  # all could be computed before the first sum
    total = squares[0]
    for value in squares[1:]:
        total = build.node(ca.OP_ADD, total, value)
    tape = Tape(build.nodes, [[total]], [len(x)])
    steps = schedule(tape, cut=True, single=True)
    known = set(x)
    assert moves({n: tape.arguments(n) for n in range(len(tape.nodes))}, steps, known, AT_ONCE + 1) == 0
    assert moves({n: tape.arguments(n) for n in range(len(tape.nodes))}, steps, known, AT_ONCE - 1) > 0
    for step in steps:
        assert set(tape.arguments(step)) <= known
        known.add(step)


def test_moves_are_counted_with_the_best_choice_of_what_to_drop():
    """A value that waits is stored once and loaded for each later use, if more wait than there are registers."""
    waiting, build = REGISTERS + 3, Builder()
    x = build.node(INPUT, 0, 0)
    made = [build.node(ca.OP_MUL, x, x)]
    for _ in range(waiting - 1):
        made.append(build.node(ca.OP_ADD, made[-1], x))
    ends = [build.node(ca.OP_NEG, n) for n in made]
    tape = Tape(build.nodes, [ends], [1])
    arguments = {n: tape.arguments(n) for n in range(len(tape.nodes))}
    assert moves(arguments, [*made, *ends], set()) == 1 + 2 * 3
