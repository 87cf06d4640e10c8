"""Strangers at the page: foreign names, foreign pages, no token, and messages that no control sends."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import polybody as pb

pytest.importorskip("websockets", reason="the viewer's packages are an extra: pip install polybody[viewer]")

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from polybody.studio.viewer import serve
from polybody.studio.viewer.hub import Hub
from polybody.studio.viewer.serve import Viewer


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    served = Viewer(pb.load("two-link"), port=8170)
    yield served
    served.close()


def page(viewer: Viewer, path: str | None = None, **headers: str) -> tuple[int, bytes]:
    place = urlsplit(viewer.url)
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
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
    return connect(f"ws://127.0.0.1:{viewer.port}{place.path + 'socket' if path is None else path}", proxy=None,
                   max_size=None, open_timeout=60, **options)  # fmt: skip


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
        assert len(line.recv(timeout=60)) > 16


def test_each_launch_has_its_own_token(viewer: Viewer) -> None:
    other = Viewer(pb.load("two-link"), port=8175)
    try:
        assert page(other, urlsplit(viewer.url).path)[0] == 403
    finally:
        other.close()


def test_only_messages_of_the_controls_are_heard(viewer: Viewer) -> None:
    """Unknown commands, fields of wrong types, damaged and huge messages: dropped, and the connection lives on."""
    key = viewer.posing.coordinates[0].key
    with socket_of(viewer) as line:
        for message in (
            {"do": "share", "n": 1}, {"do": "set", "key": key, "value": "1e9", "n": 1},
            {"do": "set", "key": key, "n": 1},
            {"do": "set", "key": key, "value": 0.7, "n": -1}, {"do": "set", "key": 3, "value": 0.7, "n": 1}, [1], {}, 3,
            {"do": "drag", "frame": "tip", "target": [1, 2], "turn": False, "n": 1}, {"do": "_direct", "n": 1},
            {"do": "layers", "keys": ["x"] * 1000, "n": 1}, {"do": "save", "name": "x" * 5000, "n": 1},
        ):  # fmt: skip
            line.send(json.dumps(message))
        line.send('{"do": "set", "key": "' + key + '", "value": NaN, "n": 1}')
        line.send("[" * 5000)
        line.send(b"\xc1")
        line.send(json.dumps({"do": "set", "key": key, "value": 0.25, "n": 7}))
        until = time.monotonic() + 10
        heard = []
        while time.monotonic() < until and {"k": "ack", "n": 7} not in heard:
            told = line.recv(timeout=60)
            if isinstance(told, str):
                heard.append(json.loads(told))
    assert viewer.q[0] == 0.25, "what the controls send is heard"
    assert [m for m in heard if m["k"] in ("ack", "notice")] == [{"k": "ack", "n": 7}], "and nothing else"


def test_a_command_that_cannot_be_done_is_told_and_ends_nothing(viewer: Viewer) -> None:
    with socket_of(viewer) as line:
        impossible = (
            {"do": "set", "key": "no such joint", "value": 1}, {"do": "configuration", "name": "unknown"},
            {"do": "drag", "frame": "nowhere", "target": [0, 0, 0], "turn": False}, {"do": "save", "name": " "},
            {"do": "option", "key": "running", "value": True},
        )  # fmt: skip
        for n, message in enumerate(impossible, start=1):
            line.send(json.dumps(message | {"n": n}))
        notices = []
        while len(notices) < 5:
            told = line.recv(timeout=60)
            if isinstance(told, str) and json.loads(told)["k"] == "notice":
                notices.append(json.loads(told)["text"])
    for words in ("no such joint", "nowhere", "unknown", "--live", "name"):
        assert any(words in text for text in notices), (words, notices)


def test_the_page_runs_no_scripts_from_elsewhere_and_cannot_be_framed(viewer: Viewer) -> None:
    place = urlsplit(viewer.url)
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    line.request("GET", place.path)
    answer = line.getresponse()
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    text = answer.read().decode()
    assert 'src="http' not in text
    assert "@import" not in text


def test_the_page_is_there_before_its_meshes_and_its_scene_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    go, asked = threading.Event(), threading.Event()
    make = serve.with_meshes

    def slowly(*given: Any) -> dict[str, Any]:
        asked.set()
        assert go.wait(60)
        return make(*given)

    monkeypatch.setattr(serve, "with_meshes", slowly)
    served = Viewer(pb.load("two-link"), port=8171)
    try:
        assert page(served)[0] == 200
        assert asked.wait(60)  # the thread has begun without being asked
        threading.Timer(0.1, go.set).start()
        status, data = page(served, urlsplit(served.url).path + "scene.bin")
        assert status == 200
        text = gzip.decompress(data)
        assert json.loads(text[4 : 4 + int.from_bytes(text[:4], "little")])["meshes"]
    finally:
        go.set()
        served.close()


def test_who_comes_before_the_server_is_there_is_answered_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    go, run = threading.Event(), Hub._run

    def late(hub: Hub) -> None:
        go.wait(20)
        run(hub)

    monkeypatch.setattr(Hub, "_run", late)
    served = Viewer(pb.load("two-link"), port=8173)
    try:
        assert not go.is_set()
        assert served.hub._loop is None  # no server yet, and the constructor has returned
        place = urlsplit(served.url)
        line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        line.request("GET", place.path)
        go.set()
        answer = line.getresponse()
        assert answer.status == 200
        assert b"<html" in answer.read().lower()
        line.close()
    finally:
        go.set()
        served.close()
    with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.1", served.port), 5):
        pass


def test_a_server_that_does_not_start_is_told_and_gives_its_port_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_: Hub) -> None:
        raise OSError("no loop")

    monkeypatch.setattr(Hub, "_serve", fails)
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    served = Viewer(pb.load("two-link"), port=8174)
    with pytest.raises(pb.PolybodyError, match="is not served"):
        served.hub.tell({"k": "notice"})
    served.close()
    assert "no loop" in str(told[0].exc_value)
    with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.1", served.port), 5):
        pass


def test_a_scene_that_cannot_be_made_is_an_error_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> dict[str, Any]:
        raise pb.InputError("no scene")

    monkeypatch.setattr(serve, "with_meshes", fails)
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    served = Viewer(pb.load("two-link"), port=8172)
    try:
        assert page(served, urlsplit(served.url).path + "scene.bin")[0] == 500
        assert "no scene" in str(told[0].exc_value)
    finally:
        served.close()
