"""Who may talk to the page, and what may be said to it.

The page listens on the loopback interface, which every program of the machine can reach, and every page that a browser
of the machine has open. A request is answered only if

1. its address begins with the token of this launch, a random word that only the printed URL carries;
2. its Host is a loopback name, so that a name of somebody else's that was pointed at 127.0.0.1 is of no use to them;
3. its Origin, where it has one, is the page itself: http://HOST. Browsers send it with every websocket.

Of messages only those pass that the controls of the page send (COMMANDS), as JSON objects of bounded size whose
fields have the types listed there; all others are dropped.
"""

from __future__ import annotations

import json
import math
import secrets
from typing import Any
from urllib.parse import urlsplit

MESSAGE_BYTES = 1 << 14
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self' ws:",
}

#: what the page sends: for each command its fields and what they must be
COMMANDS: dict[str, dict[str, str]] = {
    "set": {"key": "text", "value": "number"},
    "drag": {"frame": "text", "target": "point", "turn": "flag"},
    "pull": {"body": "whole", "local": "point", "target": "point"},
    "release": {},
    "configuration": {"name": "text"},
    "save": {"name": "text"},
    "reset": {},
    "random": {},
    "step": {},
    "goal": {},
    "layers": {"keys": "texts"},
    "option": {"key": "text", "value": "any"},
    "analysis": {"name": "text"},
}


class Guard:
    """The checks of one launch. `token` is the first part of every address that is answered."""

    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self.hosts = LOOPBACK | {host}

    def problem(self, path: str, headers: Any) -> str | None:
        """Why a request is rejected, or None."""
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self.hosts:
            return "unknown Host"
        if len(origins) > 1 or (origins and origins[0].lower() != f"http://{hosts[0]}".lower()):
            return "foreign Origin"
        given = path.partition("?")[0].lstrip("/").partition("/")[0]
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "the address lacks the token of this launch: use the URL that polybody printed"
        return None


def command(raw: Any) -> dict[str, Any] | None:
    """A message of the page, None where it is none."""
    if not isinstance(raw, str) or len(raw) > MESSAGE_BYTES:
        return None
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("do") not in COMMANDS or not _is("whole", message.get("n")):
        return None
    fields = COMMANDS[message["do"]]
    if any(not _is(kind, message.get(name)) for name, kind in fields.items()):
        return None
    return {name: message[name] for name in ("do", "n", *fields)}


def _is(kind: str, value: Any) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if kind == "whole":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    if kind == "text":
        return isinstance(value, str) and len(value) <= 300
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "point":
        return isinstance(value, list) and len(value) == 3 and all(_is("number", x) for x in value)
    if kind == "texts":
        return isinstance(value, list) and len(value) <= 50 and all(_is("text", x) for x in value)
    return _is("number", value) or _is("text", value) or _is("flag", value)


def _host_name(host: str) -> str | None:
    """The name of HOST or HOST:PORT, in small letters; None where it is neither."""
    try:
        parts = urlsplit(f"http://{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and "@" not in host else None


__all__ = ["COMMANDS", "HEADERS", "MESSAGE_BYTES", "Guard", "command"]
