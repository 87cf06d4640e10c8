"""Names that files give: which are accepted, and what becomes of them in the names of our own files.

A name is any text without control characters: these would reach terminals, tables and sources that print it. Nothing
else is forbidden, so a name says nothing about where a file may be written; `file_name` makes it harmless for that.
"""

from __future__ import annotations

import re
import unicodedata

from polybody.description.limits import NAME_CHARACTERS

#: Separators of lines, and marks that turn the direction of writing; control characters and half surrogates besides.
_HIDDEN = set("\u2028\u2029\u200e\u200f") | {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_UNSAFE = re.compile(r"[^\w.+-]+")
#: Names that Windows gives to devices, with any suffix.
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def name_problem(name: str) -> str | None:
    """Why a text cannot be a name, or None."""
    if not name:
        return "is empty"
    if len(name) > NAME_CHARACTERS:
        return f"has {len(name)} characters, at most {NAME_CHARACTERS} are allowed"
    if name.isascii() and name.isprintable():  # nearly all are
        return None
    for index, character in enumerate(name):
        if character in _HIDDEN or unicodedata.category(character) in ("Cc", "Cs"):
            return f"has the control character {character!r} at position {index}; a name is plain text on one line"
    return None


def shown(name: str) -> str:
    """The name in quotes, as messages show it: escaped, and not longer than a line."""
    return repr(name) if len(name) <= NAME_CHARACTERS else f"{name[:60]!r}…"


def shown_path(names: list[str], most: int = 12) -> str:
    """a - b - c; the middle of a long path is left out."""
    if len(names) > most:
        names = [*names[: most - 3], f"… {len(names) - most + 1} more …", *names[-2:]]
    return " - ".join(names)


def file_name(name: str, default: str = "model") -> str:
    """The name as the name of a file or a folder, without a way out of the folder it is put into.

    Letters, digits and `_ . + -` are kept; everything else, separators of paths too, becomes a dash.
    """
    text = _UNSAFE.sub("-", unicodedata.normalize("NFC", name))[:100].strip("-. ")
    return f"_{text}" if _DEVICES.match(text) else text or default


def printable(text: str) -> str:
    """The text with control characters (but for line ends and tabs) escaped, so that no terminal acts on them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or not (c in _HIDDEN or unicodedata.category(c) in ("Cc", "Cs")) else repr(c)[1:-1]
        for c in text
    )


__all__ = ["file_name", "name_problem", "printable", "shown", "shown_path"]
