"""Addresses that outlive a server: what is kept, where, and who can read it."""

from __future__ import annotations

import json
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from talking import get

import orbical as ob
from orbical.interface import open_session
from orbical.interface.access import MOST_TICKETS, Address, private_folder
from orbical.interface.server import Server

pytest.importorskip("fcntl", reason="addresses are kept where files can be locked")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the addresses of this test are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "orbical" / "views"


@pytest.fixture
def started(home: Path, folder: Path) -> Iterator[list[Server]]:
    """Servers to stop in the end."""
    servers: list[Server] = []
    yield servers
    for server in servers:
        server.stop()


def start(folder: Path, servers: list[Server], **settings: object) -> SimpleNamespace:
    server = Server(open_session(folder / "digits.zarr"), **settings)  # type: ignore[arg-type]
    server.start()
    servers.append(server)
    return SimpleNamespace(server=server, port=server.port, folder=f"/{server.guard.folder}")


def test_the_address_is_the_same_after_a_restart(
    folder: Path, home: Path, started: list[Server]
) -> None:
    first = start(folder, started)
    cookie = first.server.guard.cookie_header()
    first.server.stop()
    second = start(folder, started)
    assert second.server.url == first.server.url
    assert get(second, f"/?token={first.server.guard.token}")[0] == 200
    # What a browser sent by itself to whoever had the port in the meantime opens nothing.
    assert second.server.guard.cookie_header() != cookie
    assert get(second, "/", Cookie=cookie.partition(";")[0])[0] == 403
    (kept,) = home.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_another_store_has_another_address(folder: Path, home: Path, digits: ob.Scan) -> None:
    one, other = Address([folder / "digits.zarr"]), Address([folder])
    assert one.folder != other.folder
    assert one.token != other.token


def test_a_second_server_of_the_same_store_has_its_own_address(
    folder: Path, home: Path, started: list[Server]
) -> None:
    first, second = start(folder, started), start(folder, started)
    assert first.folder != second.folder
    assert first.server.guard.token != second.server.guard.token
    first.server.stop()
    third = start(folder, started)
    assert third.server.url == first.server.url


def test_an_address_whose_port_was_taken_is_given_up(
    folder: Path, home: Path, started: list[Server]
) -> None:
    """Old links lead to the program that has the port, which may have seen the token."""
    first = start(folder, started)
    first.server.stop()
    with socket.create_server(("127.0.0.1", first.port)):
        second = start(folder, started)
        assert second.port != first.port
        assert second.folder != first.folder
        assert get(second, f"/?token={first.server.guard.token}")[0] == 403
        second.server.stop()
    third = start(folder, started)
    assert third.server.url == second.server.url


def test_what_others_can_reach_has_new_secrets_each_time(
    folder: Path, home: Path, started: list[Server]
) -> None:
    urls = {start(folder, started, host="0.0.0.0", exposed=True).server.url for _ in range(2)}
    assert len(urls) == 2
    assert not home.exists()


def test_a_copied_link_opens_once_also_after_a_restart(
    folder: Path, home: Path, started: list[Server]
) -> None:
    first = start(folder, started)
    about, _ = first.server.session.handle({"kind": "link", "sequence": 1})
    assert about["token"] != first.server.guard.token
    first.server.stop()
    second = start(folder, started)
    path = f"/?token={about['token']}"
    status, headers, _ = get(second, path)
    assert status == 200
    assert "set-cookie" in headers
    assert get(second, path)[0] == 403
    assert get(second, "/?token=%C3%A9")[0] == 403


def test_a_link_without_a_token_says_what_to_do(
    folder: Path, home: Path, started: list[Server]
) -> None:
    status, _, body = get(start(folder, started), "/")
    assert status == 403
    for words in (b"orbical view printed", b"Copy link", b"Another person needs"):
        assert words in body


def test_few_tickets_are_kept(home: Path) -> None:
    address = Address()
    tickets = [address.ticket() for _ in range(MOST_TICKETS + 1)]
    assert not address.redeem(tickets[0])
    assert all(map(address.redeem, tickets[1:]))


@pytest.mark.parametrize(
    "content",
    ["", "no json", "[]", '{"port": 1}', '{"port":"x","folder":"../../etc","token":"","once":[]}'],
)
def test_a_damaged_file_is_replaced(home: Path, content: str, tmp_path: Path) -> None:
    first = Address([tmp_path])
    first.use(8420)
    first.close()
    (path,) = home.iterdir()
    path.write_text(content)
    second = Address([tmp_path])
    assert second.port is None
    assert re.fullmatch(r"[\w-]{12,64}", second.folder)
    second.use(8421)
    assert json.loads(path.read_text())["folder"] == second.folder


def test_secrets_that_others_could_read_are_not_used_again(home: Path, tmp_path: Path) -> None:
    first = Address([tmp_path])
    first.use(8420)
    first.close()
    (path,) = home.iterdir()
    path.chmod(0o644)
    second = Address([tmp_path])
    assert second.token != first.token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_links_and_open_folders_are_not_private(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    assert private_folder(tmp_path / "open") is None
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    assert private_folder(tmp_path / "link") is None
    assert private_folder(tmp_path / "own") == tmp_path / "own"
