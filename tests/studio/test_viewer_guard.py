"""Strangers at the page: foreign names, foreign pages, no token, and messages that no control sends."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import polybody as pb

viser = pytest.importorskip("viser", reason="the viewer's packages are an extra: pip install polybody[viewer]")

import msgspec  # noqa: E402
from websockets.exceptions import InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from polybody.studio.viewer import Viewer  # noqa: E402


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    served = Viewer(pb.load("two-link"), port=8170)
    yield served
    served.close()


def page(viewer: Viewer, path: str | None = None, **headers: str) -> tuple[int, bytes]:
    place = urlsplit(viewer.url)
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=10)
    try:
        line.putrequest("GET", place.path if path is None else path, skip_host="Host" in headers)
        for name, value in headers.items():
            line.putheader(name, value)
        line.endheaders()
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def socket_of(viewer: Viewer, path: str | None = None, **options: Any) -> Any:
    place = urlsplit(viewer.url)
    return connect(f"ws://127.0.0.1:{viewer.port}{place.path.rstrip('/') if path is None else path}", proxy=None,
                   subprotocols=[f"viser-v{viser.__version__}"], max_size=None, open_timeout=10, **options)  # fmt: skip


def test_the_printed_address_shows_the_page(viewer: Viewer) -> None:
    status, text = page(viewer)
    assert status == 200
    assert b"<html" in text.lower()
    assert page(viewer, Host=f"localhost:{viewer.port}", Origin=f"http://localhost:{viewer.port}")[0] == 200


@pytest.mark.parametrize("path", ["/", "/index.html", "/wrong/", "//", "/?token"])
def test_without_the_token_nothing_is_shown(viewer: Viewer, path: str) -> None:
    status, text = page(viewer, path)
    assert status == 403
    assert b"token" in text
    with pytest.raises(InvalidStatus, match="403"):
        socket_of(viewer, path)


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example:8170", "x@127.0.0.1", "", "[::1"])
def test_a_foreign_name_for_this_machine_is_refused(viewer: Viewer, host: str) -> None:
    assert page(viewer, Host=host)[0] == 403


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_a_foreign_page_gets_no_socket(viewer: Viewer, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        socket_of(viewer, origin=origin)


def test_own_page_gets_a_socket_and_its_scene(viewer: Viewer) -> None:
    with socket_of(viewer, origin=f"http://127.0.0.1:{viewer.port}") as line:
        assert len(line.recv(timeout=10)) > 16


def test_each_launch_has_its_own_token(viewer: Viewer) -> None:
    other = Viewer(pb.load("two-link"), port=8175)
    try:
        assert page(other, urlsplit(viewer.url).path)[0] == 403
    finally:
        other.close()


def test_only_messages_of_the_controls_are_heard(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request for a public address, uploads, damaged messages: dropped, and the connection lives on."""
    opened: list[Any] = []
    monkeypatch.setattr("viser._viser.ViserTunnel", lambda *place, **_: opened.append(place))
    heard: list[str] = []
    deserialize = viser._messages.Message.deserialize.__func__

    def listen(cls: Any, raw: bytes) -> Any:
        message = deserialize(cls, raw)
        heard.append(type(message).__name__)
        return message

    monkeypatch.setattr(viser._messages.Message, "deserialize", classmethod(listen))
    slider = viewer.panel.sliders[0][1]
    with socket_of(viewer) as line:
        for message in (
            {"type": "ShareUrlRequest"}, {"type": "ShareUrlDisconnect"},
            {"type": "RunJavascriptMessage", "source": "1"},
            {"type": "FileTransferStartUpload", "source_component_uuid": "x", "transfer_uuid": "y", "filename": "f",
             "mime_type": "x", "part_count": 1, "size_bytes": 1}, {"type": 3}, [1], {},
        ):  # fmt: skip
            line.send(msgspec.msgpack.encode(message))
        line.send(b"\xc1")
        line.send("text")
        line.send(msgspec.msgpack.encode({"type": "GuiUpdateMessage", "uuid": slider._impl.uuid,
                                          "updates": {"value": 0.25}}))  # fmt: skip
        until = time.monotonic() + 10
        while slider.value != 0.25 and time.monotonic() < until:
            time.sleep(0.02)
    assert slider.value == 0.25, "what the controls send is heard"
    assert heard == ["GuiUpdateMessage"]
    assert opened == []
    with pytest.raises(pb.PolybodyError, match="this machine only"):
        viewer.server.request_share_url()


def test_another_way_of_serving_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A viser that no longer calls what is wrapped is not trusted."""
    from polybody.studio.viewer.guard import Guard

    with pytest.raises(pb.PolybodyError, match="cannot be guarded"), Guard("127.0.0.1").around_viser():
        pass
