"""Code that is unoptimised at first: its callers find the optimised code at the addresses they have."""

import ctypes
import threading

import pytest

from polybody.kernels import background, machine, native, relay
from polybody.kernels.programs import Made, joined, soon
from polybody.kernels.target import host

TEXT = """
def scaled(x: float, p, n):
    total = x
    for i in range(n):
        total = total * x + number(p)
    put(p, total)
    return n
def twice(n):
    return 2 * n
"""
NAMES = ["scaled", "twice"]


def module(extra: str = "") -> str:
    return "\n".join([f'target triple = "{host().triple}"', native.translate(TEXT + extra, {}), native.DECLARED])


def test_addresses_lead_to_optimised_code_as_soon_as_it_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    monkeypatch.setattr(background, "PAUSE", 60.0)
    monkeypatch.setattr(background, "LATEST", 60.0)
    code = soon("a title of the test of relays", "test", lambda: Made(module(), host()), NAMES)
    word = ctypes.c_int64
    scaled = ctypes.CFUNCTYPE(word, ctypes.c_double, ctypes.c_void_p, word)(code.addresses["scaled"])
    twice = ctypes.CFUNCTYPE(word, word)(code.addresses["twice"])

    def answer() -> tuple[int, float, int]:
        cell = ctypes.c_double(0.1)
        return scaled(1.1, ctypes.addressof(cell), 9), cell.value, twice(21)

    assert code.followed_by is None
    first, wrong, stop = answer(), list[object](), threading.Event()
    assert (first[0], first[2]) == (9, 42)

    def call() -> None:
        while not stop.is_set():
            wrong.extend([found] if (found := answer()) != first else [])

    caller = threading.Thread(target=call)
    caller.start()
    assert background.wait(60)
    stop.set()
    caller.join()
    assert not wrong
    assert code.followed_by is not None
    assert answer() == first
    again = soon("a title of the test of relays", "test", lambda: pytest.fail("on disk by now"), NAMES)  # type: ignore
    assert again.followed_by is None
    assert not again.words


def test_a_relayed_function_goes_where_its_word_points():
    first = relay.relayed(module(), NAMES)
    other = module().replace("mul i64 2", "mul i64 7")
    assert other != module()
    target = host()
    early = machine.Loaded(joined([machine.assemble(first, target, level=0)]), NAMES, [relay.word_of(n) for n in NAMES])
    twice = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(early.addresses["twice"])
    assert twice(5) == 10
    relay.replace(early, machine.Loaded(joined([machine.assemble(other, target)]), NAMES))
    assert twice(5) == 35
