"""Machine code by name: of this process, from disk, or compiled.

A *title* is a digest of everything that a caller says its text depends on; the code itself is kept by the digest of the
text (`cache`). A program of several modules is loaded as one.

On disk a title covers this package's own text too, so that no change of it can meet an old trace. To read all of
our files takes longer than many a first answer: it is done where something may be found, and by who compiles.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import casadi
import llvmlite

from polybody.interrupts import passed_on
from polybody.kernels import background, cache, interpret, machine, relay, runtime
from polybody.kernels.factored import Factored
from polybody.kernels.locks import Lock, begun, is_ending, tracing
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target
from polybody.late import dataclass, field
from polybody.sources import source_digest


class Program:
    """Loaded machine code of one body, shared by every kernel of the same title."""

    def __init__(self, code: bytes | machine.Loaded, facts: dict[str, Any]) -> None:
        self.loaded = code if isinstance(code, machine.Loaded) else machine.Loaded(code, ["body"])
        self.body = self.loaded.addresses["body"]
        self.facts = facts


@dataclass(frozen=True)
class Made:
    """The text of modules, for which target they are, and what must be known of them beside their code."""

    text: str | Sequence[str]
    target: Target
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> Sequence[str]:
        return (self.text,) if isinstance(self.text, str) else self.text

    def digest(self) -> str:
        """The name of its code: the text holds the whole expression graph, constants to the last bit."""
        model = "near" if machine.is_near(self.target.triple) else "far"
        described = "\0".join(["modules", llvmlite.__version__, self.target.describe(), model, *self.texts])
        return hashlib.sha256(described.encode()).hexdigest()


_runtimes: dict[Target, machine.Loaded] = {}
_preparing: set[Target] = set()
_interpreters: dict[Target, Program] = {}
#: without callbacks when a program goes: in one written in Python, as `WeakValueDictionary` has, interrupts are lost
_programs: dict[str, weakref.ref[Program]] = {}
_lock = Lock()
_making = Lock()  # held while code is made that others will ask for, too: who asks what is known need not wait
_interpreting = Lock()


def runtime_of(target: Target) -> machine.Loaded:
    """The code around kernels' bodies (`runtime`), for one processor and number of lanes.

    LLVM takes six times as long to optimise it. The first calls of a process that finds none on disk have plain code,
    unless the tier is "optimised"; kernels that are built, or adopt compiled code, later have what was made meanwhile.
    """
    with _making:
        if target not in _runtimes:
            names = ["together", "first_off_unit"]
            names += ["lone", "alone", "address_of"] if runtime.can_be_called_alone() else []
            title = digest("runtime", runtime.layout(), target, names)
            _runtimes[target] = soon(title, "runtime", lambda: Made(runtime.text(target), target), names)
        return _runtimes[target]


def _nothing() -> None: ...


def prepare(target: Target, more: Callable[[], None] = _nothing) -> None:
    """Begin to make the code that the first kernel of a process needs, beside whoever traces that; `more()` makes what
    is needed first."""
    parts: list[Callable[[], object]] = [more]
    if target not in _preparing and target not in _runtimes:
        _preparing.add(target)
        parts = [lambda: interpreter(target), more, lambda: runtime_of(target)]
        if not cache.is_empty():
            source_digest()  # or both threads would read it at once

    def work() -> None:
        for part in parts:
            if not is_ending():
                part()

    if parts != [_nothing]:
        begun(work)


def has_runtime(target: Target) -> bool:
    """Whether `runtime_of` need not compile or load."""
    return target in _runtimes


def interpreter(target: Target) -> Program:
    """The program that runs any tape (`interpret`)."""
    with _interpreting:  # not `_lock`: whoever asks for a kernel meanwhile goes on to trace it
        found = _interpreters.get(target)
        if found is None:
            title = digest("interpret", "", target, [])
            made = soon(title, "interpreter", lambda: Made(interpret.text(target), target), ["body", "levels"])
            found = _interpreters[target] = Program(made, {})
        return found


def encoded(traced: Tape | Factored, target: Target) -> interpret.Instructions:
    """A tape as that program reads it."""
    return interpret.encode(traced, target, interpreter(target).loaded.addresses["levels"])


def digest(kind: str, key: bytes | str, target: Target, parts: Sequence[object]) -> str:
    """The name of a trace: a hash of everything that its text depends on, as far as the caller's key reports."""
    raw = key.encode() if isinstance(key, str) else bytes(key)
    facts = [kind, casadi.CasadiMeta.version(), target.describe(), repr(list(parts))]
    h = hashlib.sha256("\0".join(facts).encode())
    h.update(b"\0" + raw)
    return h.hexdigest()


def program(title: str, name: str, make: Callable[[], Made]) -> Program:
    """The program of this title: of this process, from disk, or made by `make()`, which may trace."""
    with tracing, _making:
        return known(title) or remember(title, Program(*kept(title, name, make)))


def known(title: str) -> Program | None:
    """The program of this title if it need not be compiled."""
    with _lock:
        found = _alive(title)
        if found is None and (there := loaded_from(title)) is not None:
            found = remember(title, Program(*there))
        return found


def remember(title: str, made: Program) -> Program:
    """Let later kernels of this title have it."""
    with _lock:
        for gone in [key for key in _programs if _alive(key) is None]:
            del _programs[gone]
        found = _alive(title)
        if found is None:
            found, _programs[title] = made, weakref.ref(made)
        return found


def _alive(title: str) -> Program | None:
    there = _programs.get(title)
    return None if there is None else there()


def loaded_from(title: str) -> tuple[bytes, dict[str, Any]] | None:
    """(object code, facts) on disk by its title."""
    traced = None if cache.is_empty() else cache.load(_on_disk(title), cache.TRACE)
    found = cache.load(traced[0]["code"]) if traced else None
    return (found[1], traced[0]["facts"]) if traced and found else None


def is_kept(title: str) -> bool:
    """Whether there is code on disk by this title."""
    return not cache.is_empty() and cache.load(_on_disk(title), cache.TRACE) is not None


def _on_disk(title: str) -> str:
    return hashlib.sha256(f"{title}\0{source_digest()}".encode()).hexdigest()


def kept(title: str, name: str, make: Callable[[], Made]) -> tuple[bytes, dict[str, Any]]:
    """(object code, facts): from disk by its title, or by its text, or compiled."""
    return loaded_from(title) or compiled(title, name, passed_on(make))


def soon(title: str, name: str, make: Callable[[], Made], names: Sequence[str]) -> machine.Loaded:
    """These functions, needed before anything can be answered: from disk, or unoptimised until compiled (`relay`)."""
    there = loaded_from(title)
    if there is not None:
        return machine.Loaded(there[0], names)
    if background.tier() != "auto":
        return machine.Loaded(kept(title, name, make)[0], names)
    made = passed_on(make)
    texts = (relay.relayed(text, names) for text in made.texts)
    code = joined(machine.assemble(text, made.target, level=0) for text in texts)
    first = machine.Loaded(code, names, words=[relay.word_of(key) for key in names])

    def later(between: Callable[[], None]) -> None:
        between()
        relay.replace(first, machine.Loaded(compiled(title, name, made, between)[0], names))

    background.submit(name, later)
    return first


def compiled(
    title: str, name: str, made: Made, between: Callable[[], object] = lambda: None
) -> tuple[bytes, dict[str, Any]]:
    """(object code, facts): from disk by its text, or compiled now, with a call of `between` before each module."""
    where = made.digest()
    found = cache.load(where)
    code = found[1] if found else joined(_assembled(made, between))
    if not found:
        cache.store(where, {"name": name}, code)
    cache.store(_on_disk(title), {"name": name, "code": where, "facts": made.facts}, b"", cache.TRACE)
    return code, made.facts


def _assembled(made: Made, between: Callable[[], object]) -> Iterable[bytes]:
    for text in made.texts:
        between()
        yield machine.assemble(text, made.target)


def joined(objects: Iterable[bytes]) -> bytes:
    """Object files behind each other, each after its length (`machine.Loaded` takes them apart)."""
    return b"".join(len(code).to_bytes(8, "little") + code for code in objects)


__all__ = [
    "Made", "Program", "compiled", "digest", "encoded", "has_runtime", "interpreter", "is_kept", "joined", "kept",
    "known", "prepare", "program", "remember", "runtime_of", "soon",
]  # fmt: skip
