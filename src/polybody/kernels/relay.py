"""Code that is replaced while it is in use: unoptimised when it is first needed, optimised from when that is compiled.

LLVM takes a fifth of the time without its optimisations. Code that every process needs before it can answer at all (the
runtime around bodies, the interpreter, the loops of steps) is made so first; the background makes it again, optimised.
Addresses of its functions are by then in plans, builtins and jobs. So each function of the first text is a jump to
where a word of memory points, and replacing the code is writing these words: who is inside the old code ends there,
whoever comes next is in the new. Both compute the same numbers, for no instruction's rounding is left to the compiler.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

from polybody.kernels import machine


def replace(first: machine.Loaded, by: machine.Loaded) -> None:
    """Let the functions of relayed code go to others of the same names, which live as long."""
    first.followed_by = by
    for name, address in by.addresses.items():
        ctypes.c_uint64.from_address(first.words[word_of(name)]).value = address


def word_of(name: str) -> str:
    """The word of memory that a function's calls go by."""
    return f"to_{name}"


def relayed(text: str, names: Sequence[str]) -> str:
    """The text with each of these functions, where it is defined, behind a jump to where its word of memory points."""
    more = []
    for name in names:
        head = re.search(rf"^define ([\w ]+) @{name}\((.*)\)(.*) {{$", text, re.MULTILINE)
        if head is None:
            continue
        kind, parameters, attributes = head.groups()
        given = ", ".join(f"{part.split()[0]} {part.split()[-1]}" for part in parameters.split(", "))
        result = ("", "void") if kind == "void" else ("%result = ", f"{kind} %result")
        text = text.replace(head.group(), f"define internal {kind} @first_{name}({parameters}){attributes} {{")
        more.append(
            f"@{word_of(name)} = global ptr @first_{name}\n"
            f"define {kind} @{name}({parameters}) {{\nentry:\n  %to = load ptr, ptr @{word_of(name)}\n"
            f"  {result[0]}musttail call {kind} %to({given})\n  ret {result[1]}\n}}\n"
        )
    return "\n".join([text, *more])


__all__ = ["relayed", "replace", "word_of"]
