"""Serving the page: on the loopback interface, on the port asked for or the next free one, to who has its URL."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.model.model import Model
from polybody.studio.record import Record
from polybody.studio.viewer.beginning import page_content, require_packages
from polybody.studio.viewer.content import with_meshes
from polybody.studio.viewer.guard import Guard
from polybody.studio.viewer.html import page
from polybody.studio.viewer.hub import Hub
from polybody.studio.viewer.pack import compressed
from polybody.studio.viewer.session import Session

if TYPE_CHECKING:
    from polybody.studio.viewer.live import Live
    from polybody.studio.viewer.posing import Posing

HOST = "127.0.0.1"


def listening(wanted: int, tries: int = 50) -> socket.socket:
    """A socket that listens on the port, or on the first free one after it."""
    for port in range(wanted, min(wanted + tries, 65536)):
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if os.name == "posix":  # a page that was just closed does not hold its port
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((HOST, port))
            found.listen(100)
        except BaseException as reason:
            found.close()
            if not isinstance(reason, OSError):
                raise
        else:
            return found
    raise InputError(f"no free port from {wanted} to {wanted + tries - 1}: give another with --port")


class Later:
    """Bytes that are made once, by who asks first; others wait for them."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._found: bytes | None = None

    def __call__(self) -> bytes:
        with self._lock:
            if self._found is None:
                self._found = self._make()
            return self._found


class Viewer:
    """A page that is being served. `url` is where, with the launch's token in it; `close()` ends it.

    `record` is a run, or several of one model that are shown together; `live` simulates in the page.
    """

    def __init__(
        self, model: Model, record: Record | Sequence[Record] | None = None, port: int = 8080, *, live: bool = False,
        names: Sequence[str] | None = None, q: Any = None,
    ) -> None:  # fmt: skip
        require_packages()
        if not 1 <= port <= 65535:
            raise InputError(f"port is {port}; expected a number from 1 to 65535")
        records = [] if record is None else [record] if isinstance(record, Record) else list(record)
        self.stage, self.posing, content = page_content(model, records, names, q)
        self.live = _live(model, self.posing, self.stage.size) if live and not records else None
        self.session = Session(self.stage, self.posing, self.live)
        more: dict[str, Any] = {"configurations": list(self.session.configurations)}
        if self.live is not None:
            more |= {"mode": "live", "live": self.live.settings()}
        self._scene = Later(lambda: compressed(with_meshes(self.stage, content() | more)))
        guard, title = Guard(HOST), page(f"polybody: {model.name}")
        served = listening(port)
        self.port = served.getsockname()[1]
        self.moved = self.port != port
        self.url = f"http://{HOST}:{self.port}/{guard.token}/"
        self.hub = Hub(
            served, guard, title, self._scene, self.session.received, self.session.arrived, self._prepare
        )
        self.session.start(self.hub)

    def _prepare(self) -> None:
        """Make the scene while the browser starts; not before, as it would compete with what the page needs first."""
        threading.Thread(target=self._scene, name="polybody scene", daemon=True).start()

    @property
    def q(self) -> np.ndarray:
        """The configuration that the page shows."""
        return self.live.q if self.live is not None else self.posing.q

    def close(self) -> None:
        self.session.close()
        self.hub.close()


def _live(model: Model, posing: Posing, size: float) -> Live:
    from polybody.studio.viewer.live import Live  # its import takes 10 ms, which other pages do without

    return Live(model, posing, size)


def serve(
    model: Model, record: Record | Sequence[Record] | None = None, port: int = 8080, say: Callable[[str], None] = print,
    **options: Any,
) -> None:  # fmt: skip
    """Serve the page until Ctrl-C."""
    viewer = Viewer(model, record, port, **options)
    if viewer.moved:
        say(f"port {port} is in use, so the page is on {viewer.port}")
    say(f"{viewer.url}  (this machine only; Ctrl-C ends it)")
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        say("ended")
    finally:
        viewer.close()


__all__ = ["HOST", "Viewer", "listening", "serve"]
