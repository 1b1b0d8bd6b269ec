"""Scans in a bucket, on a server that speaks the protocol of S3."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from s3_server import s3_server

import orbical as ob
from orbical._imports_and_paths import as_path
from orbical.interface import open_session
from orbical.store import open_store

pytestmark = pytest.mark.peers

IMAGES = torch.rand(48, 1, 8, 8, generator=torch.Generator().manual_seed(3))
LABELS = torch.arange(48) % 10
SETTINGS: dict[str, Any] = {
    "group": "cyclic:4", "task": "classification", "chunk": 4, "progress": False, "threads": 1
}  # fmt: skip


class Always(torch.nn.Module):
    """Predicts one class."""

    def __init__(self, klass: int, pause: float = 0.0) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(10.0 * torch.eye(10)[klass], requires_grad=False)
        self.pause = pause

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.pause)
        return self.bias + 0.1 * x.flatten(1)[:, :10]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server with a bucket."""
    pytest.importorskip("s3fs")
    with s3_server("runs") as url:
        yield url


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    return f"s3://runs/{abs(hash(request.node.name))}/run.zarr"


def scan(models: object, out: str | Path, **settings: Any) -> ob.Scan:
    return ob.scan(models, (IMAGES, LABELS), out=out, **{**SETTINGS, **settings})


def assert_equal(found: ob.Scan, expected: ob.Scan) -> None:
    assert found.complete
    for name in expected.data.variables:
        np.testing.assert_array_equal(found.data[name].values, expected.data[name].values, name)


def test_two_scans_that_each_add_a_model_keep_both(url: str) -> None:
    """They took the same place: `always3` held class 7 in all cells, with nothing to complain."""
    scan({"first": Always(0)}, url)
    adders = [
        threading.Thread(target=scan, args=({f"always{klass}": Always(klass, 0.01)}, url))
        for klass in (3, 7, 5)
    ]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()
    found = ob.load(url)
    assert sorted(found.models) == ["always3", "always5", "always7", "first"]
    assert found.complete
    assert found.verify() == []
    for name in found.models:
        predicted = found.data["predicted"].sel(model=name).values
        assert {*predicted.ravel()} == {0 if name == "first" else int(name[-1])}


def test_a_place_is_claimed_once(url: str) -> None:
    """Of stores that were opened before any of them added a model, each finds another place."""
    scan({"first": Always(0)}, url)
    entry = open_store_of(url).record.models[0]
    from dataclasses import replace

    stores = [open_store_of(url) for _ in range(3)]
    for number, store in enumerate(stores):
        store.add_models([replace(entry, name=f"added{number}")])
    assert open_store_of(url).record.names == ["first", "added0", "added1", "added2"]
    stores[0].add_models([])
    assert stores[0].record.names == ["first", "added0", "added1", "added2"]


def open_store_of(url: str) -> Any:
    return open_store(as_path("path", url))


def test_only_one_scan_creates_a_store(url: str, tmp_path: Path) -> None:
    from functools import partial

    from orbical.errors import StoreError
    from orbical.store import creation

    here = scan(Always(1), tmp_path / "run.zarr")
    assert here.path is not None
    send = partial(creation._send, here.path, as_path("path", url))
    send()
    with pytest.raises(StoreError, match="was created by another scan in the meantime"):
        send()


def test_parts_write_into_a_bucket(url: str, tmp_path: Path) -> None:
    expected = scan(Always(2), tmp_path / "run.zarr")
    processes = [
        subprocess.Popen([sys.executable, __file__, url, f"{number}/3"]) for number in (1, 2, 3)
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert_equal(ob.load(url), expected)


def test_a_pool_writes_into_a_bucket_and_leaves_no_recipe(url: str, tmp_path: Path) -> None:
    import fsspec

    expected = scan(Always(2), tmp_path / "run.zarr")
    with ProcessPoolExecutor(2) as pool:
        assert_equal(scan(Always(2), url, executor=pool), expected)
    assert fsspec.filesystem("s3").ls(url.rpartition("/")[0], refresh=True) == [url[5:]]


def test_dask_workers_write_into_a_bucket_though_one_is_killed(url: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    expected = scan(Always(2), tmp_path / "run.zarr")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = [*client.run(os.getpid).values()]
        running = threading.Thread(
            target=scan, args=(Always(2, 0.05), url), kwargs={"executor": client}
        )
        running.start()
        seen = 0.0
        while seen < 0.2:
            time.sleep(0.1)
            try:
                seen = ob.load(url).share_done  # as a view that is opened while it grows
            except ob.errors.StoreError:
                continue
        os.kill(pids[0], signal.SIGKILL)
        running.join()
    found = ob.load(url)
    assert_equal(found, expected)
    assert found.verify() == []


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_a_bucket_is_viewed_while_workers_fill_it_and_one_is_killed(
    url: str, tmp_path: Path, count: int
) -> None:
    pytest.importorskip("distributed")
    import growing_bucket

    expected = growing_bucket.scan(count, tmp_path / "run.zarr")
    seen = growing_bucket.watch(count, url)
    growing_bucket.assert_equal(ob.load(url), expected)
    assert 0.2 < seen["killed"] < 1
    assert 0.1 * count < seen["samples"] < count
    assert seen["shares"] == sorted(seen["shares"])
    assert min(seen["shares"]) < 1  # it was seen while it grew
    here = open_session(expected).handle({"kind": "aggregate", "sequence": 1, "selection": {}})
    np.testing.assert_array_equal(seen["curve"], here[1]["values"])


@pytest.mark.parametrize("fingerprint", [None, "v1"])
def test_a_resumed_scan_lists_and_does_not_ask_for_each_file(
    url: str, monkeypatch: Any, fingerprint: str | None
) -> None:
    """Of each unit only the hash of its samples is read, and that only if they have no name."""
    import s3fs

    scan(Always(2), url, fingerprint=fingerprint)
    calls: list[str] = []
    call = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(method)
        return await call(self, method, *args, **kwargs)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    assert scan(Always(2), url, fingerprint=fingerprint).complete
    chunks = 12
    print(len(calls), {name: calls.count(name) for name in {*calls}}, file=sys.stderr)
    assert len(calls) <= (21 if fingerprint else 21 + chunks)
    assert calls.count("put_object") == 0


def test_what_a_bucket_has_lost_is_found_by_a_list_and_computed_again(
    url: str, tmp_path: Path
) -> None:
    expected = scan(Always(2), tmp_path / "run.zarr")
    scan(Always(2), url)
    path = as_path("path", url)
    for name in ("score/c/0/3/0", "weight/c/0", "label/zarr.json"):
        (path / name).unlink()
    with (
        pytest.warns(UserWarning, match="2 files were lost or damaged and have been restored"),
        pytest.warns(UserWarning, match="1 units are damaged and will be computed again"),
    ):
        found = scan(Always(2), url)
    assert_equal(found, expected)
    assert found.verify() == []


def test_data_and_models_have_urls(server: str, tmp_path: Path, monkeypatch: Any) -> None:
    import fsspec

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    np.save(tmp_path / "x.npy", IMAGES.numpy())
    np.save(tmp_path / "y.npy", LABELS.numpy())
    program = torch.export.export(
        Always(2).eval(), (IMAGES[:2],), dynamic_shapes=({0: torch.export.Dim("n")},)
    )
    torch.export.save(program, tmp_path / "net.pt2")
    s3 = fsspec.filesystem("s3")
    for name in ("x.npy", "y.npy", "net.pt2"):
        s3.put_file(str(tmp_path / name), f"runs/data/{name}")
    places = ("s3://runs/data/x.npy", "s3://runs/data/y.npy")
    found = ob.scan("s3://runs/data/net.pt2", places, **SETTINGS)
    assert_equal(found, ob.scan(str(tmp_path / "net.pt2"), (IMAGES, LABELS), **SETTINGS))
    with ProcessPoolExecutor(1) as pool:
        out = tmp_path / "run.zarr"
        assert_equal(ob.scan(Always(2), places, out=out, executor=pool, **SETTINGS), scan_here())
    with pytest.raises(ob.errors.InputError, match=r"s3://runs/data/z.npy', which does not exist"):
        ob.scan(Always(2), "s3://runs/data/z.npy", **SETTINGS)


def scan_here() -> ob.Scan:
    return ob.scan(Always(2), (IMAGES, LABELS), **SETTINGS)


def test_reports_and_views_read_a_bucket(url: str, tmp_path: Path) -> None:
    scan(Always(2), url)
    ob.report(ob.load(url), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    command = [sys.executable, "-m", "orbical", "view", url, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        printed = iter(program.stderr.readline, "")
        assert any("press Ctrl-C to stop" in line for line in printed)
        program.kill()


if __name__ == "__main__":
    sys.modules["test_buckets"] = sys.modules["__main__"]
    Always.__module__ = "test_buckets"
    scan(Always(2), sys.argv[1], part=sys.argv[2])
