"""A scan that is being written: the session shows what is finished by now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface import open_session
from orbical.interface.session import following

SAMPLES, PARTS = 24, 3


def write(path: Any, part: int, seed: int = 0) -> None:
    """Scan one part of three of some images."""
    images = torch.rand(SAMPLES, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3)).eval()
    ob.scan(
        {"net": net},
        (images, torch.arange(SAMPLES) % 3),
        group="rotations:8",
        task="classification",
        out=path,
        chunk=8,
        keep="inputs",
        part=f"{part}/{PARTS}",
        progress=False,
    )


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the store upon every request."""
    monkeypatch.setattr(following, "LEAST_BETWEEN_S", 0.0)
    monkeypatch.setattr(following, "_PATIENCE", 0)


def asked(session: Any, kind: str, **fields: Any) -> Any:
    return session.handle({"kind": kind, "sequence": 1, "selection": {}, **fields})


@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore:.*unfinished")
def test_the_session_follows_a_store_until_it_is_complete(tmp_path: Path) -> None:
    write(tmp_path / "run.zarr", 1)
    session = open_session(tmp_path / "run.zarr")
    told, _ = asked(session, "preview")
    assert (told["phase"], told["share"], told["version"]) == ("scanning", pytest.approx(1 / 3), 0)
    assert "33% done" in told["sentence"]
    assert asked(session, "state")[0]["preview"] == {"version": 0, "look": 0, "follows": True}
    first = asked(session, "aggregate")
    assert first[0]["count"] == 8
    sets = session.scan_view().sets

    write(tmp_path / "run.zarr", 2)
    told, _ = asked(session, "preview")
    assert (told["version"], told["look"]) == (1, 0)
    assert told["seconds_left"] > 0
    assert session.scan_view().sets is sets  # what the reader has made stays
    assert asked(session, "aggregate")[0]["count"] == 16

    write(tmp_path / "run.zarr", 3)
    told, _ = asked(session, "preview")
    assert (told["phase"], told["version"], told["look"]) == ("finished", 2, 1)
    about, values = asked(session, "aggregate")
    whole = open_session(tmp_path / "run.zarr")
    np.testing.assert_array_equal(values["values"], asked(whole, "aggregate")[1]["values"])
    assert about["count"] == SAMPLES
    assert "preview" not in asked(session, "state")[0]


def test_a_store_is_not_read_more_often_than_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "run.zarr", 1)
    session = open_session(tmp_path / "run.zarr")
    reads: list[object] = []

    def load(path: Path) -> ob.Scan:
        reads.append(path)
        return ob.load(path)

    monkeypatch.setattr(following, "load", load)
    for _ in range(20):
        asked(session, "preview")
    assert len(reads) == 1


@pytest.mark.usefixtures("eager")
def test_a_store_that_is_written_anew_is_shown_anew(tmp_path: Path) -> None:
    import shutil

    write(tmp_path / "run.zarr", 1)
    session = open_session(tmp_path / "run.zarr")
    shutil.rmtree(tmp_path / "run.zarr")
    told, _ = asked(session, "preview")
    assert "expected a saved scan" in told["error"]
    write(tmp_path / "run.zarr", 1, seed=1)
    told, _ = asked(session, "preview")
    assert told["look"] == 1
    assert "error" not in told


@pytest.mark.usefixtures("eager")
def test_a_store_behind_an_address_is_followed_too(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    import fsspec

    files = fsspec.filesystem("memory")
    for part in (1, 2):
        write(tmp_path / "run.zarr", part)
        files.put(str(tmp_path / "run.zarr") + "/", "/growing/run.zarr/", recursive=True)
        if part == 1:
            session = open_session("memory://growing/run.zarr")
    told, _ = asked(session, "preview")
    assert (told["share"], told["version"]) == (pytest.approx(2 / 3), 1)
    assert asked(session, "aggregate")[0]["count"] == 16


def test_a_complete_scan_has_nothing_to_follow(tmp_path: Path) -> None:
    for part in range(1, PARTS + 1):
        write(tmp_path / "run.zarr", part)
    session = open_session(tmp_path / "run.zarr")
    assert "preview" not in asked(session, "state")[0]
    assert asked(session, "preview")[0]["phase"] == "finished"
