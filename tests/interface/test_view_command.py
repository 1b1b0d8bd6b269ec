"""`orbical view` as a user starts it: a program of its own, asked over the network, interrupted."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.sync.client import connect

import orbical as ob
from orbical.cli.view import view
from orbical.errors import InputError, StoreError
from orbical.interface import open_session, scans_for_interface
from orbical.interface.server import Server, startup_message


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command, and give what it printed up to its last line."""
    program = subprocess.Popen(
        [sys.executable, "-m", "orbical", "view", *arguments, "--no-browser"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    printed = ""
    assert program.stderr is not None
    try:
        while "Ctrl-C" not in printed:
            line = program.stderr.readline()
            assert line, f"it ended: {printed}"
            printed += line
        yield program, printed
    finally:
        program.kill()
        program.wait()


BUSY = """
import pathlib, torch

weight = torch.randn(200, 200)

def net(x):
    while pathlib.Path("busy").exists():
        pathlib.Path("begun").touch()
        for _ in range(100):
            torch.relu(weight @ weight)
    return torch.zeros(len(x), 10)
"""


@pytest.mark.system
def test_the_command_serves_until_it_is_interrupted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "busy_net.py").write_text(BUSY)
    monkeypatch.chdir(tmp_path)
    arguments = (str(folder / "digits.zarr"), "--model", "first=busy_net:net")
    with started(*arguments) as (program, printed):
        address = re.search(r"http://127\.0\.0\.1:\d+/\S+/\?token=\S+", printed)
        assert address is not None
        answer = urllib.request.urlopen(address.group(0), timeout=60)
        assert answer.status == 200
        assert b"<script" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.group(0).partition("?")[0], timeout=60)
        assert "ssh" not in printed
        (tmp_path / "busy").touch()
        leave_in_the_middle(address.group(0))
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        assert program.wait(60) == 0  # although torch is at work, which aborts if it is cut off
        assert program.stderr is not None
        assert "Traceback" not in program.stderr.read()


def leave_in_the_middle(address: str) -> None:
    """Ask for live answers, and do not wait for them."""
    parts = urlsplit(address)
    cookie = urllib.request.urlopen(address, timeout=60).headers["Set-Cookie"].partition(";")[0]
    origin = f"http://{parts.netloc}"
    with connect(
        f"ws://{parts.netloc}{parts.path}ws", origin=origin, additional_headers={"Cookie": cookie}
    ) as client:
        client.send(json.dumps({"kind": "place", "sequence": 1, "selection": {}}))
        client.send(json.dumps({"kind": "state", "sequence": 2, "selection": {}}))
        client.recv(60)


def test_under_ssh_the_tunnel_is_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(open_session(folder), port=0)
    tunnel = f"ssh -L {server.port}:127.0.0.1:{server.port}"
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert tunnel not in startup_message(server, "press Ctrl-C to stop")
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert tunnel in startup_message(server, "press Ctrl-C to stop")
    assert server.url in startup_message(server, "press Ctrl-C to stop")
    server.close()


def test_a_script_goes_on_while_the_view_is_served(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ob.view(folder / "digits.zarr", port=0, open_browser=False, block=False)
    printed = capsys.readouterr().err
    assert printed == f"orbical view: serving at {server.url} (call stop() to end it)\n"
    assert urllib.request.urlopen(server.url, timeout=60).status == 200
    server.stop()
    assert not server.running
    with pytest.raises(OSError, match=r"refused|reset"):
        urllib.request.urlopen(server.url, timeout=60)


def test_a_script_that_waits_says_so_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setattr(Server, "run", lambda server: server.close())
    assert ob.view(folder / "digits.zarr", port=0, open_browser=False) is None
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"orbical view: serving at http://\S+ \(press Ctrl-C to stop\)", line)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "--expose"),
        ({"model": ["first"]}, "NAME=SOURCE"),
        ({"model": ["first=torch.nn:Identity()", "first=torch.nn:Identity()"]}, "twice"),
        ({"model": ["third=torch.nn:Identity()"]}, "third"),
        ({"model": ["first=no.such.module:net"]}, "cannot be imported"),
        ({"allow_origin": ["hub"]}, "allow_origin"),
        ({"orbits": Path("no-such.npy")}, "--orbits"),
        ({"data": "nothing"}, "--data"),
    ],
)
def test_mistakes_are_told_before_anything_is_served(
    folder: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        view([str(folder / "digits.zarr")], **options, browser=False)


def test_a_folder_of_scans_is_a_menu(folder: Path, tmp_path: Path, nets: dict[str, object]) -> None:
    shutil.copytree(folder / "digits.zarr", tmp_path / "b.zarr")
    images, _ = ob.datasets.digits()
    ob.scan(
        {"third": nets["first"]},
        images[:12],
        group="cyclic:4",
        task="classification",
        out=tmp_path / "a.zarr",
        progress=False,
    )
    (tmp_path / "notes.txt").write_text("no scan")
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "zarr.json").write_text("{}")
    assert [*scans_for_interface(tmp_path)] == ["a", "b"]
    session = open_session(tmp_path, {"second": nets["second"]})
    header, _ = session.state()
    assert header["scan"] == "a"
    assert [entry["name"] for entry in header["scans"]] == ["a", "b"]
    assert header["samples"] == 12
    header, _ = session.handle({"kind": "state", "selection": {"scan": "b"}})
    assert header["samples"] == 120
    assert header["models"] == [{"name": "first", "live": False}, {"name": "second", "live": True}]


def test_several_scans_are_a_menu(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("last/digits.zarr", "before.zarr"):
        shutil.copytree(folder / "digits.zarr", tmp_path / place)
    served: list[Server] = []
    monkeypatch.setattr(Server, "run", lambda server: (served.append(server), server.close()))
    monkeypatch.chdir(tmp_path)
    view([str(folder / "digits.zarr"), "before.zarr", "last/digits.zarr"], browser=False)
    (server,) = served
    assert [*server.session.scans] == ["digits", "before", "last/digits.zarr"]
    with pytest.raises(InputError, match=r"scan: .* 'lost.zarr', which does not exist"):
        view(["lost.zarr", "before.zarr"], browser=False)


def test_a_damaged_scan_stays_in_the_menu_and_says_why(folder: Path, tmp_path: Path) -> None:
    for name in ("good", "torn"):
        shutil.copytree(folder / "digits.zarr", tmp_path / f"{name}.zarr")
    root = tmp_path / "torn.zarr" / "zarr.json"
    root.write_text(root.read_text()[:-40])
    session = open_session(tmp_path)
    header, _ = session.state()
    assert [entry["title"] for entry in header["scans"]][1] == "torn (damaged)"
    with pytest.raises(StoreError, match="torn"):
        session.handle({"kind": "state", "selection": {"scan": "torn"}})
    shutil.rmtree(tmp_path / "good.zarr")
    with pytest.raises(InputError, match="which has none"):
        open_session(tmp_path)


def test_folders_without_scans_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which has none"):
        scans_for_interface(tmp_path)
    with pytest.raises(InputError, match=r"a folder of them, got .* does not exist"):
        open_session(tmp_path / "nothing")
