"""Who may talk to the page, and what may be said to it.

The page listens on the loopback interface, which every program of the machine can reach, and every page that a browser
of the machine has open. A request is answered only if

1. its address begins with the token of this launch, a random word that only the printed URL carries;
2. its Host is a loopback name, so that a name of somebody else's that was pointed at 127.0.0.1 is of no use to them;
3. its Origin, where it has one, is the page itself: http://HOST. Browsers send it with every websocket.

Of messages only those pass that the controls of the page send; all others are dropped unread, viser's request for a
public address among them, which is refused a second time where it would be carried out. viser has no setting for
this, so `websockets`' `serve` is wrapped while viser calls it; where viser no longer calls it nothing is served.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from polybody.errors import PolybodyError

#: What the page sends: where its camera is, and what was done to sliders, boxes and buttons.
MESSAGES = frozenset({"ViewerCameraMessage", "GuiUpdateMessage", "GuiButtonHoldMessage"})
MESSAGE_BYTES = 1 << 16
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HEADERS = {"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store"}

_serving = threading.Lock()


class Guard:
    """The checks of one launch. `token` is the first part of every address that is answered."""

    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self.hosts = LOOPBACK | {host}

    def problem(self, path: str, headers: Any) -> str | None:
        """Why a request is refused, or None."""
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self.hosts:
            return "unknown Host"
        if len(origins) > 1 or (origins and origins[0].lower() != f"http://{hosts[0]}".lower()):
            return "foreign Origin"
        given = path.partition("?")[0].lstrip("/").partition("/")[0]
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "the address lacks the token of this launch: use the URL that polybody printed"
        return None

    @contextmanager
    def around_viser(self) -> Iterator[None]:
        """While this holds, the server that viser starts asks here first."""
        from websockets.asyncio import server

        with _serving:
            plain, guarded = server.serve, []

            def serve(handler: Any, *place: Any, **options: Any) -> Any:
                if getattr(handler, "__module__", "").partition(".")[0] != "viser":
                    return plain(handler, *place, **options)
                guarded.append(True)
                options |= {"process_request": self._requests(options.get("process_request")),
                            "max_size": MESSAGE_BYTES}  # fmt: skip
                return plain(_only_known(handler), *place, **options)

            server.serve = serve  # type: ignore[assignment]
            try:
                yield
            finally:
                server.serve = plain
        if not guarded:
            raise PolybodyError("this version of viser starts its server in another way, so the page cannot be guarded")

    def _requests(self, answer: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
        def checked(connection: Any, request: Any) -> Any:
            problem = self.problem(request.path, request.headers)
            if problem is not None:
                return connection.respond(HTTPStatus.FORBIDDEN, f"{problem}\n")
            request.path = "/" + request.path.lstrip("/")[len(self.token) :].lstrip("/")
            response = None if answer is None else answer(connection, request)
            if response is not None:
                response.headers.update(HEADERS)
            return response

        return checked


def close_tunnels(server: Any) -> None:
    """A viser server that never opens a public address, whoever asks."""
    from viser import _messages

    for kind in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(kind)

    def refuse(*_: Any, **__: Any) -> None:
        raise PolybodyError("the page is for this machine only: no public address is made for it")

    server.request_share_url = refuse


def _host_name(host: str) -> str | None:
    """The name of HOST or HOST:PORT, in small letters; None where it is neither."""
    try:
        parts = urlsplit(f"http://{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and "@" not in host else None


def _only_known(handler: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """The handler of a connection, to which only messages of known kinds come."""

    async def filtered(connection: Any) -> None:
        receive = connection.recv

        async def known(*arguments: Any, **options: Any) -> bytes:
            while True:
                raw = await receive(*arguments, **options)
                if _kind(raw) in MESSAGES:
                    return raw

        connection.recv = known
        await handler(connection)

    return filtered


def _kind(raw: Any) -> str | None:
    """The kind that a message states, None where it is no message."""
    import msgspec

    try:
        message = msgspec.msgpack.decode(raw) if isinstance(raw, bytes) else None
    except (msgspec.DecodeError, RecursionError):
        return None
    kind = message.get("type") if isinstance(message, dict) else None
    return kind if isinstance(kind, str) else None


__all__ = ["MESSAGES", "Guard", "close_tunnels"]
