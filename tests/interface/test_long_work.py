"""Long work: maps, finer steps and exports say how far they are, come coarse first, and stop."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from talking import decode, finished

import orbical as ob
from orbical.embedding import METHODS
from orbical.interface import open_session
from orbical.interface.background import AsyncRequestQueue, BackgroundProgress
from orbical.interface.live_models import coarse_to_fine
from orbical.interface.selection import Selection
from orbical.interface.session import Session, sample_maps
from orbical.interface.session.subset_request import SubsetRequest


@pytest.fixture
def session(folder: Path, nets: dict[str, torch.nn.Module]) -> Iterator[Session]:
    made = open_session(folder / "digits.zarr", nets)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orbical.interface.session.session.TICK_S", 0.02)


def endless(begun: threading.Event, ended: threading.Event) -> Any:
    """A method of maps that works in Python until it is stopped."""

    def embed(*_: Any) -> np.ndarray:
        begun.set()
        try:
            while True:
                time.sleep(0.005)
        finally:
            ended.set()

    return embed


def received(session: Session, request: Any, shown: threading.Event) -> list[Any]:
    """All frames of an answer; the event tells when the first with arrays has come."""
    frames = []
    for frame in session.frames(request):
        frames.append(decode(frame))
        if frames[-1][1]:
            shown.set()
    return frames


ISOMAP = {"kind": "embedding", "sequence": 3, "selection": {"method": "isomap"}}


def test_a_map_comes_coarse_first_with_its_share_and_the_time_left(session, monkeypatch):
    real, sizes, shown = METHODS["isomap"], [], threading.Event()

    def slow(points: np.ndarray, *rest: Any) -> np.ndarray:
        sizes.append(len(points))
        assert len(points) == 40 or shown.wait(60)
        return real(points, *rest)

    monkeypatch.setitem(METHODS, "isomap", slow)
    monkeypatch.setattr(sample_maps, "COARSE", 40)
    *partial, last = received(session, ISOMAP, shown)
    assert sizes == [40, 120]
    coarse = [arrays["xy"] for about, arrays in partial if arrays]
    assert [xy.shape for xy in coarse] == [(120, 2)]  # once; other reports are only of the share
    shares = [about["progress"] for about, _ in partial]
    assert shares == sorted(shares)
    assert 0 < shares[-1] < 1
    assert partial[-1][0]["seconds_left"] >= 0
    assert all(about["sequence"] == 3 for about, _ in partial)
    assert "progress" not in last[0]
    np.testing.assert_array_equal(last[1]["xy"], session.handle(ISOMAP)[1]["xy"])


def test_a_map_that_nobody_waits_for_is_not_made_coarse_first(session, monkeypatch):
    """A report would embed some samples, and place all others beside them, for nothing."""

    def refused(*_):
        raise AssertionError("a coarse map for nobody")

    monkeypatch.setattr(sample_maps, "COARSE", 40)
    monkeypatch.setattr(sample_maps, "_first_impression", refused)
    request = SubsetRequest(session.scan_view(), Selection(method="ica"))
    assert np.isfinite(sample_maps.sample_map(request).xy).all()


def test_a_map_that_is_stopped_ends_its_computation(session, monkeypatch):
    begun, ended = threading.Event(), threading.Event()
    monkeypatch.setitem(METHODS, "isomap", endless(begun, ended))
    *_, last = (decode(frame)[0] for frame in session.frames(ISOMAP, begun.is_set))
    assert last["stopped"]
    assert ended.wait(60)
    monkeypatch.undo()
    assert "error" not in session.handle(ISOMAP)[0]  # and it can be computed another time


def test_closing_the_session_ends_long_work(session, monkeypatch):
    begun, ended = threading.Event(), threading.Event()
    monkeypatch.setitem(METHODS, "isomap", endless(begun, ended))
    frames = session.frames(ISOMAP)
    next(frames)
    assert begun.wait(60)
    session.close()
    assert ended.wait(60)


def test_a_newer_request_ends_long_work_for_an_older_one():
    seen: list[str] = []
    begun = asyncio.Event()

    async def answer(message: Any, outdated: Any) -> Any:
        begun.set()
        while message["name"] == "slow" and not outdated():
            await asyncio.sleep(0.005)
        seen.append(message["name"])
        yield b""

    async def send(frame: bytes) -> None:
        pass

    async def until(ended: int) -> None:
        async with asyncio.timeout(60):
            while len(seen) < ended:
                await asyncio.sleep(0.005)

    async def talk() -> None:
        queue = AsyncRequestQueue(answer, send)
        queue.put("embedding", {"name": "slow"})
        await begun.wait()
        queue.put("embedding", {"name": "newer"})
        await until(2)
        assert seen == ["slow", "newer"]
        begun.clear()
        queue.put("embedding", {"name": "slow"})
        await begun.wait()
        queue.put("stop", {"of": "embedding"})
        await until(3)
        assert seen == ["slow", "newer", "slow"]
        await queue.close()

    finished(talk())


DENSE = {"kind": "sample", "sequence": 4, "selection": {"sample": 5, "dense": True}}


def test_finer_steps_come_coarse_first_and_end_exact(session, monkeypatch):
    ask, batches, shown = session.scan_view().live.ask, itertools.count(), threading.Event()

    def slow(*given: Any) -> Any:
        assert next(batches) == 0 or shown.wait(60)
        return ask(*given)

    monkeypatch.setattr(session.scan_view().live, "ask", slow)
    *partial, last = received(session, DENSE, shown)
    about, arrays = next((about, arrays) for about, arrays in partial if arrays)
    assert about["group"]["spec"] == "rotations:96"
    assert arrays["values"].shape == (2, 96)
    assert np.isfinite(arrays["values"]).all()
    assert 0 < about["progress"] < 1
    exact = session.handle(DENSE)[1]["values"]
    np.testing.assert_allclose(last[1]["values"], exact, atol=1e-5)
    known = np.isclose(arrays["values"], exact, atol=1e-5).mean()
    assert known >= about["progress"] - 0.01


def test_a_model_that_fails_at_finer_steps_is_named(folder):
    def broken(images: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("out of order")

    session = open_session(folder / "digits.zarr", {"first": broken})
    header, arrays = session.handle(DENSE)
    assert "out of order" in header["errors"]["first"]
    assert "group" not in header
    assert arrays["values"].shape[1] == 24
    session.close()


@pytest.fixture
def few(nets: dict[str, torch.nn.Module]) -> Iterator[Session]:
    """A session on a few answers: a report of them takes no time, at the lowest priority too."""
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        nets["first"],
        (images[:12], labels[:12]),
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    made = open_session(scan)
    yield made
    made.close()


def test_exports_tell_what_they_are_at_and_can_be_stopped(few):
    message = {"kind": "export", "sequence": 5, "selection": {}, "what": "report"}
    *partial, last = (decode(frame) for frame in few.frames(message))
    assert partial
    assert last[0]["filename"] == "scan.html"
    progress = BackgroundProgress()
    assert "error" not in decode(few.answer(message, progress))[0]
    about, _ = progress.news()
    assert about["note"]
    assert about["progress"] > 0
    progress.stop()
    stopped = decode(few.answer(message, progress))[0]
    assert stopped["stopped"]


def test_a_request_cannot_bring_its_own_progress(session):
    header, _ = session.handle({**ISOMAP, "progress": "mine"})
    assert header["method"] == "isomap"


def test_places_are_visited_coarse_to_fine():
    for count in (1, 2, 7, 24, 96):
        order = coarse_to_fine(count)
        assert sorted(order.tolist()) == [*range(count)]
    assert np.diff(sorted(coarse_to_fine(96)[:12])).max() <= 16
