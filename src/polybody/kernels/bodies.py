"""The modules of a straight-line kernel: a tape between rows of states, cut into functions where it is long."""

from __future__ import annotations

from collections.abc import Iterator

from polybody.kernels import table_rows
from polybody.kernels.code import Code
from polybody.kernels.emit import Nodes
from polybody.kernels.factored import Factored
from polybody.kernels.factored_rows import FactoredRows
from polybody.kernels.frame import Frame
from polybody.kernels.rows import BETWEEN, FRAMED, DenseRows, RowPorts, WholeRows, module_text, next_lines
from polybody.kernels.schedule import schedule
from polybody.kernels.table_rows import TableRows
from polybody.kernels.tape import INPUT, Tape, fused, reachable
from polybody.kernels.target import Target


def body_texts(traced: Tape | Factored, target: Target) -> Iterator[str]:
    """The modules of a straight-line kernel. The last has its function, `body`; long tapes have others (`frame`)."""
    tape = traced.tape if isinstance(traced, Factored) else traced
    tape = fused(tape) if target.fma else tape
    steps = schedule(tape, target.held, cut=True, single=target.lanes <= target.register)
    ports = FactoredRows(traced, target) if isinstance(traced, Factored) else _ports(tape, target)
    frame = Frame(tape, steps)
    asked = ports.first_output if isinstance(ports, TableRows) else len(ports.sizes)
    requests = next_lines(ports.sizes, ports.first_output, asked, target)
    if len(frame.parts) == 1:
        code = Code(target)
        ports.settle(code, None, _used(tape))
        ports.turn(code)
        nodes = Nodes(code, tape, ports)
        nodes.run(steps)
        nodes.finish()
        yield module_text(code, target, more=ports.turning_text(target) + _ended(ports, code), between=requests)
        return
    ports.settle(Code(target), frame, _used(tape))
    nodes = Nodes(Code(target), tape, ports, frame)
    for k, part in enumerate(frame.parts):
        code = Code(target)
        nodes.restart(code)
        if not k:
            ports.turn(code)
        nodes.run(part)
        more = "" if k else ports.turning_text(target)
        if k == len(frame.parts) - 1:
            nodes.finish()
            more += _ended(ports, code)
        ports.set_aside(code, frame)
        frame.end(k)
        lo, hi = (len(requests) * at // len(frame.parts) for at in (k, k + 1))
        yield module_text(code, target, f"part{k}", FRAMED, more, requests[lo:hi])
    yield _driver_text(target, len(frame.parts), frame.size)


def _ports(tape: Tape, target: Target) -> WholeRows:
    """How results are written: dense as they come, or by a loop at the end."""
    sizes = [len(nodes) for nodes in tape.outputs]
    return TableRows.of(tape, target) if table_rows.is_long(sizes) else DenseRows(tape.input_sizes, sizes, target)


def _used(tape: Tape) -> list[set[int]]:
    """The numbers of each argument that something depends on."""
    found: list[set[int]] = [set() for _ in tape.input_sizes]
    for op, argument, element in (tape.nodes[n] for n in reachable(tape)):
        if op == INPUT:
            found[int(argument)].add(int(element))
    return found


def _ended(ports: RowPorts, code: Code) -> str:
    """What a body's module needs beside it, once its last line is written."""
    if not isinstance(ports, TableRows):
        return ""
    ports.finish(code)
    return ports.text()


def _driver_text(target: Target, parts: int, slots: int) -> str:
    """The function `body` that calls the parts of a tape one after the other, with a frame for all of them.

    Each part is an object file of its own, and two files may be loaded more than 2 GB apart: `nonlazybind` calls
    through the file's table of addresses, which takes any distance.
    """
    code = Code(target)
    frame = code.buffer(slots)
    for k in range(parts):
        code.do(f"call void @part{k}(ptr %rows, ptr %libm, ptr %scratch, ptr {frame})")
    head = f"define void @body({BETWEEN}) {code.attributes()}"
    declared = [f"declare void @part{k}(ptr, ptr, ptr, ptr) nonlazybind" for k in range(parts)]
    return "\n".join([f'target triple = "{target.triple}"', code.function(head), *declared])


__all__ = ["body_texts"]
