"""The server: the page and its data over HTTP, commands and states over a websocket, for any number of visitors.

Each visitor has a line of texts, which all arrive, and one place for the latest state: a visitor that is slow skips
states instead of falling behind. The server runs in a thread of its own; `publish` and `tell` may be called from any
other.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from polybody.errors import PolybodyError
from polybody.studio.viewer.guard import HEADERS, MESSAGE_BYTES, Guard, command


class Visitor:
    """One page that is open."""

    def __init__(self) -> None:
        self.texts: deque[str] = deque()
        self.state: bytes | None = None
        self.layers: set[str] = set()
        self.news = asyncio.Event()


class Hub:
    """Serves `page` and `data`; `received` (a visitor's command) and `arrived` are called in the server's thread."""

    def __init__(
        self, host: str, port: int, guard: Guard, page: str, data: Callable[[], bytes],
        received: Callable[[Visitor, dict[str, Any]], None], arrived: Callable[[Visitor], None],
    ) -> None:  # fmt: skip
        self.host, self.port, self.guard, self.page, self.data = host, port, guard, page.encode(), data
        self.received, self.arrived = received, arrived
        self.visitors: set[Visitor] = set()
        self.frames, self.bytes = 0, 0
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="polybody page", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise PolybodyError(f"the page cannot be served on {host}:{port}: {self._problem}")

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = serve(self._visit, self.host, self.port, process_request=self._request, max_size=MESSAGE_BYTES,
                           compression=None, ping_interval=20, ping_timeout=60, server_header=None)  # fmt: skip
            async with server:
                self._ready.set()
                await self._end.wait()
        except OSError as error:
            self._problem = error
        finally:
            self._ready.set()

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
            data = await asyncio.to_thread(self.data)  # which may not be ready yet
            return self._respond(HTTPStatus.OK, data, "application/octet-stream")
        return connection.respond(HTTPStatus.NOT_FOUND, "not found\n")

    @staticmethod
    def _respond(status: HTTPStatus, body: bytes, kind: str, **more: str) -> Any:
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        told = {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **more}
        return Response(status.value, status.phrase, Headers(told), body)

    async def _visit(self, connection: Any) -> None:
        visitor = Visitor()
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
        self._loop.call_soon_threadsafe(self._put, state)

    def _put(self, state: bytes) -> None:
        for visitor in self.visitors:
            visitor.state = state
            visitor.news.set()

    def tell(self, message: dict[str, Any], visitor: Visitor | None = None) -> None:
        """A message for one visitor, or for everybody."""
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
        self._loop.call_soon_threadsafe(self._say, text, visitor)

    def give(self, data: bytes, visitor: Visitor | None = None) -> None:
        """Arrays for everybody or one visitor; unlike states they are never skipped."""
        self._loop.call_soon_threadsafe(self._hand, data, visitor)

    def _hand(self, data: bytes, visitor: Visitor | None) -> None:
        for one in self.visitors if visitor is None else (visitor,):
            one.texts.append(data)  # type: ignore[arg-type]  the line carries bytes as well
            one.news.set()

    def _say(self, text: str, visitor: Visitor | None) -> None:
        for one in self.visitors if visitor is None else (visitor,):
            one.texts.append(text)
            one.news.set()

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(timeout=10)


__all__ = ["Hub", "Visitor"]
