"""Serving the page: on the loopback interface, on the port asked for or the next free one, to who has its URL."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from polybody.errors import InputError, PolybodyError
from polybody.model.model import Model
from polybody.studio.record import Record
from polybody.studio.viewer.guard import Guard, close_tunnels
from polybody.studio.viewer.panel import FRAMES_A_SECOND, Panel
from polybody.studio.viewer.scene import Scene

HOST = "127.0.0.1"


def free_port(wanted: int, tries: int = 50) -> int:
    """The port, or the first free one after it."""
    for port in range(wanted, min(wanted + tries, 65536)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
            if os.name == "posix":  # a page that was just closed does not hold its port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port
    raise InputError(f"no free port from {wanted} to {wanted + tries - 1}: give another with --port")


class Viewer:
    """A page that is being served. `url` is where, with the launch's token in it; `close()` ends it."""

    def __init__(self, model: Model, record: Record | None = None, port: int = 8080) -> None:
        try:
            import viser
        except ImportError as error:
            raise PolybodyError(
                f"the viewer needs the package viser ({error}): pip install 'polybody[viewer]'"
            ) from None
        if not 1 <= port <= 65535:
            raise InputError(f"port is {port}; wanted a number from 1 to 65535")
        self.port = free_port(port)
        self.moved = self.port != port
        guard = Guard(HOST)
        # viser announces itself in its own words
        with contextlib.redirect_stdout(io.StringIO()), guard.around_viser():
            self.server = viser.ViserServer(host=HOST, port=self.port, verbose=False, label=f"polybody: {model.name}")
        close_tunnels(self.server)
        self.url = f"http://{HOST}:{self.port}/{guard.token}/"
        self.server.gui.configure_theme(control_layout="collapsible", control_width="large", dark_mode=False,
                                        show_logo=False)  # fmt: skip
        shown = model.neutral()[None] if record is None else record.q[:: max(1, len(record.q) // 20)]
        self.scene = Scene(self.server, model, shown)
        self._aim()
        self.panel = Panel(self.server, self.scene, record)
        self._ended = threading.Event()
        self._player = threading.Thread(target=self._play, name="polybody player", daemon=True)
        self._player.start()

    def _aim(self) -> None:
        """Look at the mechanism from a corner, as every visitor arrives."""
        import numpy as np

        size, middle = self.scene.span, self.scene.middle
        up = -np.asarray(self.scene.model.gravity)
        up = up / np.linalg.norm(up) if np.any(up) else np.array([0.0, 0.0, 1.0])
        side = np.cross(up, [0.0, 1.0, 0.0]) if abs(up[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
        other = np.cross(side, up)

        @self.server.on_client_connect
        def _(client: Any) -> None:
            client.camera.position = tuple(middle + size * (1.0 * side - 0.8 * other + 0.5 * up))
            client.camera.look_at = tuple(middle)

    def _play(self) -> None:
        before = time.monotonic()
        while not self._ended.wait(1 / FRAMES_A_SECOND):
            now = time.monotonic()
            self.panel.tick(now - before)
            before = now

    def close(self) -> None:
        self._ended.set()
        self._player.join(timeout=5)
        self.server.stop()


def serve(model: Model, record: Record | None = None, port: int = 8080, say: Callable[[str], None] = print) -> None:
    """Serve the page until Ctrl-C."""
    viewer = Viewer(model, record, port)
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


__all__ = ["HOST", "Viewer", "free_port", "serve"]
