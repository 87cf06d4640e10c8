"""Parsing XML that may be hostile or broken.

A file raises an error before parsing when it is too large, binary, or carries a document type declaration (the only
door for entities, and so for the "billion laughs" and for reading other files); the parser itself loads no DTD, opens
no network and keeps libxml2's limits on depth and text. What the parser finds wrong is reported with file and line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from polybody.description.files import read_bytes, text_of
from polybody.description.limits import XML_BYTES, XML_ELEMENTS
from polybody.errors import InputError

_ONE_BYTE = ("iso-8859-1", "latin-1", "latin1")
_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii", *_ONE_BYTE)
_SPACE = re.compile(rb"\s*")
_ENCODING = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def parse_xml(path: Path, *, kind: str = "XML", name: str | None = None) -> Any:
    """The root element (lxml) of a file, comments and processing instructions removed."""
    return parse_xml_bytes(read_bytes(path, XML_BYTES, kind), name or path.name, kind=kind)


def parse_xml_bytes(data: bytes, name: str, *, kind: str = "XML", long_texts: bool = False) -> Any:
    """The root element (lxml) of XML text; `name` is what messages call it.

    `long_texts`: elements may hold more than 10 MB of text, as meshes do; whoever asks for it bounds the file's size.
    """
    data = _refuse_unreadable(data, name, kind)
    if data.count(b"<") - data.count(b"</") > XML_ELEMENTS:
        raise InputError(f"{name}: has more than {XML_ELEMENTS} elements; this is not a {kind} file")
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
        huge_tree=long_texts,
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
        raise InputError(f"{name}: holds no element; a {kind} file is expected")
    if root.getroottree().docinfo.internalDTD is not None:
        raise InputError(f"{name}: has a document type declaration, which can define entities; remove it")
    return root


def _refuse_unreadable(data: bytes, name: str, kind: str) -> bytes:
    """The text without its byte order mark; an error for empty, binary and exotically encoded files."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    declared = _ENCODING.match(data.lstrip())
    if declared and declared[1].decode().lower() not in _ENCODINGS:
        raise InputError(f"{name}:1: encoding {declared[1].decode()!r} is not read; save the file as UTF-8")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{name}: the file is UTF-16; save it as UTF-8")
    one_byte = declared is not None and declared[1].decode().lower() in _ONE_BYTE
    text_of(data, name, "latin-1" if one_byte else "utf-8-sig")
    if not data.lstrip().startswith(b"<"):
        raise InputError(f"{name}:1: not XML (it starts with {data.lstrip()[:12]!r}); a {kind} file starts with '<'")
    if data[:1].isspace() and data.lstrip().startswith(b"<?xml"):
        # Some generators leave blank lines before the declaration; blank it out, so that lines keep their numbers.
        end = data.find(b"?>") + 2
        data = b"\n" * data[:end].count(b"\n") + data[end:]
    return data


def _has_doctype(data: bytes) -> bool:
    """True when a DOCTYPE stands in the prolog: after declarations and comments, before the root element."""
    at = 0
    while at < len(data):
        at = _SPACE.match(data, at).end()  # type: ignore[union-attr]
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


__all__ = ["parse_xml", "parse_xml_bytes"]
