"""Scans on remote file systems, named by a URL: written, resumed, read and refused."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import orbical as ob
from orbical.cli import _register, app

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("upath")

IMAGES, LABELS = (
    torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(3)),
    torch.arange(24) % 4,
)
SETTINGS: dict[str, Any] = {
    "group": "cyclic:4", "task": "classification", "chunk": 8, "progress": False
}  # fmt: skip


def status(*words: str) -> int:
    _register()
    return CliRunner().invoke(app, words).exit_code


def net(x: torch.Tensor) -> torch.Tensor:
    return x.flatten(1)[:, :4] * 3


@pytest.fixture
def url() -> Iterator[str]:
    yield "memory://bucket/runs/run.zarr"
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.fixture
def local(tmp_path: Path) -> ob.Scan:
    return ob.scan(net, (IMAGES, LABELS), out=tmp_path / "run.zarr", **SETTINGS)


def test_a_remote_scan_equals_a_local_one(url: str, local: ob.Scan) -> None:
    remote = ob.scan(net, (IMAGES, LABELS), out=url, **SETTINGS)
    assert remote.complete
    assert str(remote.path) == url
    for name in local.data:
        np.testing.assert_array_equal(remote.data[name].values, local.data[name].values)
    assert remote.verify() == []


def test_a_remote_scan_is_resumed(url: str, local: ob.Scan) -> None:
    calls = 0

    def dies(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise KeyboardInterrupt
        return net(x)

    with pytest.raises(ob.errors.Interrupted, match="stopped at"):
        ob.scan(dies, (IMAGES, LABELS), out=url, **SETTINGS)
    assert 0 < ob.load(url).share_done < 1
    ended = ob.scan(net, (IMAGES, LABELS), out=url, **SETTINGS)
    np.testing.assert_array_equal(ended.data["score"].values, local.data["score"].values)


def test_a_lost_remote_file_is_refused_and_repaired(url: str) -> None:
    ob.scan(net, (IMAGES, LABELS), out=url, **SETTINGS)
    fsspec.filesystem("memory").rm("/bucket/runs/run.zarr/score/c/0/1/0")
    with pytest.raises(ob.errors.StoreError, match=r"score/c/0/1/0 .* is missing"):
        ob.load(url).data["score"].load()
    assert status("info", "--verify", url) != 0
    assert status("info", "--repair", url) == 0
    assert ob.load(url).share_done == pytest.approx(2 / 3)


def test_commands_take_a_url(url: str) -> None:
    ob.scan(net, (IMAGES, LABELS), out=url, **SETTINGS)
    assert status("info", url) == 0
    assert status("calibration", url, "--resamples", "20") == 0
    assert status("check", url, "--min-score", "0", "--resamples", "20") == 0


def test_a_store_without_a_root_is_made_again(url: str) -> None:
    """The root is written last, so a scan that was killed before left no store."""
    fsspec.filesystem("memory").pipe("/bucket/runs/run.zarr/score/zarr.json", b"{}")
    assert ob.scan(net, (IMAGES, LABELS), out=url, **SETTINGS).complete
    assert ob.scan(net, (IMAGES, LABELS), out=url, overwrite=True, **SETTINGS).complete


def test_a_scan_is_read_from_a_web_server(local: ob.Scan) -> None:
    try:
        fsspec.filesystem("http")
    except ImportError as error:
        pytest.skip(str(error))
    assert local.path is not None
    handler = functools.partial(QuietHandler, directory=str(local.path.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        read = ob.load(f"http://127.0.0.1:{server.server_port}/run.zarr")
        assert read.complete
        np.testing.assert_array_equal(read.data["score"].values, local.data["score"].values)
    finally:
        server.shutdown()
        server.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Write nothing."""


@pytest.mark.parametrize("given", ["nosuch://bucket/run.zarr", "://run.zarr"])
def test_unknown_protocols_are_named(given: str) -> None:
    with pytest.raises(ob.errors.InputError, match="out: expected a folder, or a URL that fsspec"):
        ob.scan(net, IMAGES, out=given, **SETTINGS)


def test_a_missing_remote_store_is_named(url: str) -> None:
    with pytest.raises(ob.errors.StoreError, match="which does not exist"):
        ob.load(url)
