"""A headless Chromium driven through its DevTools protocol: open a page, run JavaScript, move the mouse, look."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium() -> str | None:
    """The browser's program, if this machine has one; POLYBODY_CHROMIUM names another."""
    chosen = os.environ.get("POLYBODY_CHROMIUM")
    return chosen or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One tab."""

    def __init__(self, program: str, width: int = 1280, height: int = 800) -> None:
        from websockets.sync.client import connect

        self._folder = tempfile.TemporaryDirectory(prefix="polybody-chromium", ignore_cleanup_errors=True)
        flags = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-port=0",
                 "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--mute-audio",
                 f"--window-size={width},{height}", f"--user-data-dir={self._folder.name}"]  # fmt: skip
        self._process = subprocess.Popen(
            [program, *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._number = 0
        self.logs: list[str] = []
        port = self._port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as answer:
            tab = next(t for t in json.load(answer) if t["type"] == "page")
        self._socket = connect(tab["webSocketDebuggerUrl"], max_size=None, proxy=None)
        for domain in ("Page", "Runtime"):
            self.send(f"{domain}.enable")

    def _port(self) -> int:
        file = Path(self._folder.name) / "DevToolsActivePort"
        for _ in range(300):
            if file.exists() and (lines := file.read_text().splitlines()):
                return int(lines[0])
            if self._process.poll() is not None:
                raise RuntimeError(f"Chromium ended with code {self._process.returncode}")
            time.sleep(0.1)
        raise RuntimeError("Chromium did not open its debugging port in 30 s")

    def send(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=240))
            if message.get("method") == "Runtime.exceptionThrown":
                self.logs.append(str(message["params"]["exceptionDetails"].get("text")))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def script(self, text: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 60.0) -> Any:
        """The value of a JavaScript expression once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.script(condition):
                return value
            time.sleep(0.2)
        raise TimeoutError(f"not true within {seconds:g} s: {condition}")

    def click(self, x: float, y: float) -> None:
        self.drag((x, y), (x, y))

    def drag(
        self, start: tuple[float, float], end: tuple[float, float], modifiers: int = 0, release: bool = True
    ) -> None:
        def mouse(kind: str, at: tuple[float, float], buttons: int) -> None:
            where = {
                "x": at[0],
                "y": at[1],
                "button": "left",
                "buttons": buttons,
                "clickCount": 1,
                "modifiers": modifiers,
            }
            self.send("Input.dispatchMouseEvent", type=kind, **where)

        mouse("mousePressed", start, 1)
        if start != end:
            for part in (0.25, 0.5, 0.75, 1.0):
                mouse("mouseMoved", tuple(a + part * (b - a) for a, b in zip(start, end, strict=True)), 1)  # type: ignore[arg-type]
        if release:
            mouse("mouseReleased", end, 0)

    def drop(self, at: tuple[float, float]) -> None:
        """Let go what a drag holds."""
        where = {"x": at[0], "y": at[1], "button": "left", "buttons": 0, "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mouseReleased", **where)

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        """How large the page is, in its own pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def key(self, key: str, modifiers: int = 0) -> None:
        """Press and release a key by its name."""
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def press(self, selector: str) -> None:
        """Click the middle of the element that a CSS selector finds, scrolled into sight."""
        found = f"document.querySelector({selector!r})"
        self.script(f"{found}.scrollIntoView({{block: 'center'}})")
        x, y, width, height = self.place(found)
        self.click(x + width / 2, y + height / 2)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a list."""
        self.script(f"(() => {{ const box = document.querySelector({selector!r}); box.value = {value!r}; "
                    "box.dispatchEvent(new Event('change')); })()")  # fmt: skip

    def slide(self, selector: str, value: float) -> None:
        """Set a slider as a hand would leave it."""
        self.script(f"(() => {{ const box = document.querySelector({selector!r}); box.value = {value}; "
                    "box.dispatchEvent(new Event('input')); box.dispatchEvent(new Event('change')); })()")  # fmt: skip

    def place(self, selector: str) -> tuple[float, float, float, float]:
        """(x, y, width, height) of an element given by a JavaScript expression."""
        box = self.script(f"(() => {{ const r = ({selector}).getBoundingClientRect(); "
                          "return [r.x, r.y, r.width, r.height]; })()")  # fmt: skip
        return tuple(box)  # type: ignore[return-value]

    def picture(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._folder.cleanup()
