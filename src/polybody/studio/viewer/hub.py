"""The server: the page and its data over HTTP, commands and states over a websocket, for any number of visitors.

Each visitor has a line of texts, which all arrive, and one place for the latest state: a visitor that is slow skips
states instead of falling behind. The server runs in a thread of its own; `publish` and `tell` may be called from any
other.

The socket listens before the server is there: the thread imports its packages (asyncio, websockets), 60 to 90 ms,
while the caller goes on and the browser starts. Who comes meanwhile is answered then.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from polybody.errors import PolybodyError
from polybody.studio.viewer.guard import HEADERS, MESSAGE_BYTES, Guard, command

if TYPE_CHECKING:
    import asyncio
    from socket import socket


class Visitor:
    """One page that is open."""

    def __init__(self, news: asyncio.Event) -> None:
        self.texts: deque[str] = deque()
        self.state: bytes | None = None
        self.layers: set[str] = set()
        self.news = news


class Hub:
    """Serves `page` and `data` on a socket that listens, and closes it.

    `received` (a visitor's command), `arrived` and `begun` (once, when pages are answered) are called in the server's
    thread.
    """

    def __init__(
        self, listening: socket, guard: Guard, page: str, data: Callable[[], bytes],
        received: Callable[[Visitor, dict[str, Any]], None], arrived: Callable[[Visitor], None],
        begun: Callable[[], None],
    ) -> None:  # fmt: skip
        self.listening, self.guard, self.page, self.data = listening, guard, page.encode(), data
        self.received, self.arrived, self.begun = received, arrived, begun
        self.visitors: set[Visitor] = set()
        self.frames, self.bytes = 0, 0
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="polybody page", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            import asyncio

            asyncio.run(self._serve())
        finally:
            self.listening.close()
            self._ready.set()

    async def _serve(self) -> None:
        import asyncio

        from websockets.asyncio.server import serve

        self._end = asyncio.Event()
        server = serve(self._visit, sock=self.listening, process_request=self._request, max_size=MESSAGE_BYTES,
                       compression=None, ping_interval=20, ping_timeout=60, server_header=None)  # fmt: skip
        async with server:
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            self.begun()
            await self._end.wait()

    def _soon(self, act: Callable[..., object], *arguments: Any) -> None:
        """Do this in the server's thread."""
        self._ready.wait()
        if self._loop is None:
            raise PolybodyError("the page is not served: its server could not be started")
        self._loop.call_soon_threadsafe(act, *arguments)

    async def _request(self, connection: Any, request: Any) -> Any:
        problem = self.guard.problem(request.path, request.headers)
        if problem is not None:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{problem}\n")
        place = request.path.partition("?")[0].lstrip("/")[len(self.guard.token) :]
        if place == "/socket":
            return None
        if place in ("", "/", "/index.html"):
            if place == "":  # the page asks for its data beside itself
                return self._respond(HTTPStatus.MOVED_PERMANENTLY, b"", "text/plain", Location=f"/{self.guard.token}/")
            return self._respond(HTTPStatus.OK, self.page, "text/html; charset=utf-8")
        if place == "/scene.bin":
            from asyncio import to_thread

            data = await to_thread(self.data)  # which may not be ready yet
            return self._respond(HTTPStatus.OK, data, "application/octet-stream")
        return connection.respond(HTTPStatus.NOT_FOUND, "not found\n")

    @staticmethod
    def _respond(status: HTTPStatus, body: bytes, kind: str, **more: str) -> Any:
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        told = {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **more}
        return Response(status.value, status.phrase, Headers(told), body)

    async def _visit(self, connection: Any) -> None:
        import asyncio

        visitor = Visitor(asyncio.Event())
        self.visitors.add(visitor)
        self.arrived(visitor)
        sending = asyncio.create_task(self._send(connection, visitor))
        try:
            async for raw in connection:
                found = command(raw)
                if found is not None:
                    self.received(visitor, found)
        finally:
            self.visitors.discard(visitor)
            sending.cancel()

    async def _send(self, connection: Any, visitor: Visitor) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                await visitor.news.wait()
                visitor.news.clear()
                state, visitor.state = visitor.state, None
                if state is not None:
                    await connection.send(state)
                while visitor.texts:
                    await connection.send(visitor.texts.popleft())
        except ConnectionClosed:
            return

    def publish(self, state: bytes) -> None:
        """The latest state, for everybody."""
        self.frames += 1
        self.bytes += len(state)
        self._soon(self._put, state)

    def _put(self, state: bytes) -> None:
        for visitor in self.visitors:
            visitor.state = state
            visitor.news.set()

    def tell(self, message: dict[str, Any], visitor: Visitor | None = None) -> None:
        """A message for one visitor, or for everybody."""
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
        self._soon(self._say, text, visitor)

    def give(self, data: bytes, visitor: Visitor | None = None) -> None:
        """Arrays for everybody or one visitor; unlike states they are never skipped."""
        self._soon(self._hand, data, visitor)

    def _hand(self, data: bytes, visitor: Visitor | None) -> None:
        for one in self.visitors if visitor is None else (visitor,):
            one.texts.append(data)  # type: ignore[arg-type]  the line carries bytes as well
            one.news.set()

    def _say(self, text: str, visitor: Visitor | None) -> None:
        for one in self.visitors if visitor is None else (visitor,):
            one.texts.append(text)
            one.news.set()

    def close(self) -> None:
        self._ready.wait()
        if self._thread.is_alive() and self._loop is not None:
            self._soon(self._end.set)
            self._thread.join(timeout=10)


__all__ = ["Hub", "Visitor"]
