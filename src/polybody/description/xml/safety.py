"""Parsing XML that may be hostile or broken.

A file is refused before parsing when it is too large, binary, or carries a document type declaration (the only door
for entities, and so for the "billion laughs" and for reading other files); the parser itself loads no DTD, opens no
network and keeps libxml2's limits on depth and text. What the parser finds wrong is reported with file and line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from polybody.errors import InputError

#: The largest robot descriptions known are below 1 MB.
MAX_BYTES = 20_000_000

_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1")
_ENCODING = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def read_bytes(path: Path, *, limit: int = MAX_BYTES, kind: str = "XML") -> bytes:
    """The file's bytes; an error where it is missing, a folder, or larger than `limit`."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: not a file; the path of one {kind} file is wanted")
    try:
        size = path.stat().st_size
        if size > limit:
            raise InputError(
                f"{path}: {size / 1e6:.1f} MB is too large for a {kind} description; at most {limit / 1e6:g} MB is read"
            )
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    if len(data) > limit:
        raise InputError(f"{path}: grew beyond {limit / 1e6:g} MB while it was read")
    return data


def parse_xml(path: Path, *, kind: str = "XML", limit: int = MAX_BYTES) -> Any:
    """The root element (lxml) of a file, comments and processing instructions removed."""
    return parse_xml_bytes(read_bytes(path, limit=limit, kind=kind), path.name, kind=kind)


def parse_xml_bytes(data: bytes, name: str, *, kind: str = "XML") -> Any:
    """The root element (lxml) of XML text; `name` is what messages call it."""
    data = _refuse_unreadable(data, name, kind)
    if _has_doctype(data):
        raise InputError(
            f"{name}: has a document type declaration (<!DOCTYPE …>), which can define entities; a {kind} file needs "
            "none, remove it"
        )
    import lxml.etree as etree  # loads when a file is read

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        line = error.position[0] if error.position else 0
        raise InputError(
            f"{name}:{line}: not well-formed XML ({error.msg}); the file is truncated or is not {kind}"
        ) from None
    except ValueError as error:  # such as an encoding that does not fit the text
        raise InputError(f"{name}: not well-formed XML ({error})") from None
    if root is None:
        raise InputError(f"{name}: holds no element; a {kind} file is wanted")
    if root.getroottree().docinfo.internalDTD is not None:
        raise InputError(f"{name}: has a document type declaration, which can define entities; remove it")
    return root


def _refuse_unreadable(data: bytes, name: str, kind: str) -> bytes:
    """The text without its byte order mark; an error for empty, binary and exotically encoded files."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise InputError(f"{name}: the file is empty; a {kind} file is wanted")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{name}: the file is UTF-16; save it as UTF-8")
    if b"\x00" in data:
        raise InputError(f"{name}: a binary file (it has NUL bytes); a {kind} text file is wanted")
    if not data.lstrip().startswith(b"<"):
        raise InputError(f"{name}:1: not XML (it starts with {data.lstrip()[:12]!r}); a {kind} file starts with '<'")
    declared = _ENCODING.match(data.lstrip())
    if declared and declared[1].decode().lower() not in _ENCODINGS:
        raise InputError(f"{name}:1: encoding {declared[1].decode()!r} is not read; save the file as UTF-8")
    if data[:1].isspace() and data.lstrip().startswith(b"<?xml"):
        # Some generators leave blank lines before the declaration; blank it out, so that lines keep their numbers.
        end = data.find(b"?>") + 2
        data = b"\n" * data[:end].count(b"\n") + data[end:]
    return data


def _has_doctype(data: bytes) -> bool:
    """True when a DOCTYPE stands in the prolog: after declarations and comments, before the root element."""
    at = 0
    while at < len(data):
        while data[at : at + 1].isspace():
            at += 1
        if data.startswith(b"<?", at):
            end = data.find(b"?>", at)
        elif data.startswith(b"<!--", at):
            end = data.find(b"-->", at)
        else:
            return data.startswith(b"<!", at)
        if end < 0:
            return False
        at = end + 2
        at += data.startswith(b">", at)
    return False


__all__ = ["MAX_BYTES", "parse_xml", "parse_xml_bytes", "read_bytes"]
