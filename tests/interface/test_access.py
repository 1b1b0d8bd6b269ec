"""Who is let in by the server, asked over real sockets: tokens, hosts, origins, paths."""

from __future__ import annotations

import http.cookiejar
import re
import socket
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from talking import dial, finished, get, hear, say
from websockets.exceptions import ConnectionClosed, InvalidStatus

from orbical.errors import InputError
from orbical.interface.access import AccessGuard
from orbical.interface.server import Server, serve
from orbical.interface.session import Session

Serving = Callable[..., SimpleNamespace]


def test_the_token_opens_the_page_and_leaves_a_cookie(running: SimpleNamespace) -> None:
    status, headers, body = get(running, f"/?token={running.server.guard.token}")
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert b"<script" in body
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"orbical-{running.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path" not in cookie  # its path is the page's folder, whatever a proxy puts before it
    assert running.server.guard.token not in cookie
    again, _, _ = get(running, "/", Cookie=cookie.partition(";")[0])
    assert again == 200


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "orbical=x",
        "orbical-{port}=wrong",
        "orbical-{port}=",
        "=;==;\x01",
        "orbical-{port}={token}",
    ],
)
def test_without_the_token_nothing_is_served(running: SimpleNamespace, cookie: str) -> None:
    cookie = cookie.format(port=running.port, token=running.server.guard.token)
    given = {"Cookie": cookie} if cookie else {}
    for path in ("/", "/app.js", "/?token=wrong", "/?token=", "/app.js?token=wrong"):
        status, headers, body = get(running, path, **given)
        assert status == 403
        assert "set-cookie" not in headers
        assert running.server.guard.token.encode() not in body


def test_the_cookie_goes_to_the_folder_of_the_page_only(running: SimpleNamespace) -> None:
    """Browsers send a cookie to all ports of a host, and to the folder it came from."""
    outside = SimpleNamespace(port=running.port, folder="")
    token = running.server.guard.token
    for path in ("/", f"/?token={token}", "/app.js", f"{running.folder}", f"/x{running.folder}/"):
        status, headers, _ = get(outside, path, Cookie=running.cookie)
        assert status == 403
        assert "set-cookie" not in headers
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    opener.open(running.server.url, timeout=60).close()
    (cookie,) = jar
    assert cookie.path == running.folder
    assert cookie.value not in running.server.url


def test_a_launch_token_is_valid_once(running: SimpleNamespace) -> None:
    token = running.server.guard.launch_token()
    assert get(running, f"/?token={token}")[0] == 200
    assert get(running, f"/?token={token}")[0] == 403
    assert get(running, f"/?token={running.server.guard.token}")[0] == 200


def test_the_secret_of_the_cookie_is_no_token(running: SimpleNamespace) -> None:
    assert get(running, f"/?token={running.cookie.partition('=')[2]}")[0] == 403


def test_the_browser_gets_a_private_file_and_no_token(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line of a browser is there for all to read."""
    opened: list[str] = []
    known = threading.Event()
    monkeypatch.setattr(webbrowser, "open", lambda page: (opened.append(page), known.set()))
    server = serve(Server(session, port=0), block=False)
    assert server is not None
    assert known.wait(60)
    (page,) = opened
    path = Path(urllib.request.url2pathname(page.removeprefix("file://")))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    (address,) = {*re.findall(r"http://[^\s\"]+", path.read_text())}
    assert server.guard.token not in address
    assert address.rpartition("=")[2] not in page
    assert urllib.request.urlopen(address, timeout=60).status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address, timeout=60)
    server.stop()
    assert not path.parent.exists()


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "",
        "localhost.evil.example",
        "evil.example@127.0.0.1:{port}",
        "evil.example?@localhost",
    ],
)
def test_a_rebound_name_is_refused_even_with_the_token(running: SimpleNamespace, host: str) -> None:
    path = f"/?token={running.server.guard.token}"
    status, _, _ = get(running, path, Host=host.format(port=running.port), Cookie=running.cookie)
    assert status in (400, 403)


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "127.0.0.1:9999", "[::1]:{port}", "LOCALHOST"]
)
def test_names_of_this_machine_are_known_at_any_port(running: SimpleNamespace, host: str) -> None:
    """A tunnel of SSH may end at another port."""
    status, _, _ = get(running, "/", Host=host.format(port=running.port), Cookie=running.cookie)
    assert status == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:1", "file://", "http://localhost:{port}"],
)
def test_a_foreign_origin_is_refused_on_requests_and_sockets(
    running: SimpleNamespace, origin: str
) -> None:
    origin = origin.format(port=running.port)
    status, _, _ = get(running, "/app.js", Cookie=running.cookie, Origin=origin)
    assert status == 403

    async def attempt() -> None:
        async with dial(running, origin=origin):
            pytest.fail("a foreign page has a socket")

    with pytest.raises(InvalidStatus) as refused:
        finished(attempt())
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "options",
    [
        {"cookie": ""},
        {"cookie": "orbical-1=x"},
        {"origin": None},
        {"headers": {"Host": "evil.example"}},
        {"path": "/other"},
        {"path": "/ws/../ws"},
    ],
)
def test_a_socket_needs_token_origin_host_and_path(
    running: SimpleNamespace, options: dict[str, Any]
) -> None:
    async def attempt() -> None:
        async with dial(running, **options):
            pytest.fail("a stranger has a socket")

    with pytest.raises((InvalidStatus, ConnectionClosed, OSError, ValueError)):
        finished(attempt())


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fpyproject.toml",
        "/core/../../server.py",
        "/%2e%2e/server.py",
        "//etc/passwd",
        "/core\\..\\..\\server.py",
        "/app.js/",
        "/app.js%00.css",
        "/core",
        "/digits.zarr/zarr.json",
        "/.git/config",
    ],
)
def test_no_path_leaves_the_list_of_files(running: SimpleNamespace, path: str) -> None:
    status, _, body = get(running, path, Cookie=running.cookie)
    assert status in (400, 404)
    assert b"import" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_is_allowed(running: SimpleNamespace, method: str) -> None:
    assert get(running, "/", method, Cookie=running.cookie)[0] == 405


def test_a_proxy_is_let_in_by_its_origin(serving: Serving, session: Session) -> None:
    running = serving(session, allow_origin=["https://hub.example.org"])
    behind = {"Host": "hub.example.org", "Origin": "https://hub.example.org"}
    assert get(running, "/app.js", Cookie=running.cookie, **behind)[0] == 200
    other = {**behind, "Origin": "https://evil.example"}
    assert get(running, "/app.js", Cookie=running.cookie, **other)[0] == 403

    async def talk() -> None:
        client = dial(running, origin="https://hub.example.org")
        async with client as one:
            await say(one, "state")
            assert (await hear(one))[0]["kind"] == "state"

    finished(talk())


def test_a_socket_is_refused_for_its_host_and_for_want_of_an_origin() -> None:
    guard = AccessGuard(8000)
    own = {"host": "localhost:8000", "origin": "http://localhost:8000"}
    assert guard.refusal(own, socket=True) == ""
    assert "host" in guard.refusal({**own, "host": "evil.example:8000"}, socket=True)
    assert "origin" in guard.refusal({"host": own["host"]}, socket=True)
    assert guard.refusal({"host": own["host"]}) == ""
    assert "host" in guard.refusal({}, socket=True)


@pytest.mark.parametrize(
    "origin", ["hub.example.org", "https://hub.example.org/path", "ftp://x", ""]
)
def test_an_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(InputError, match="allow_origin"):
        AccessGuard(8000, origins=[origin])


def test_another_address_than_this_machine_needs_a_word(session: Session) -> None:
    with pytest.raises(InputError, match=r"0\.0\.0\.0.*--expose"):
        Server(session, host="0.0.0.0")
    server = Server(session, host="0.0.0.0", port=0, exposed=True)
    assert socket.gethostname().lower() in server.guard.hosts
    server.close()
