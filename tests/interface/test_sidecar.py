"""The folder beside a scan: what is written is found again, whole, by several writers at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orbical.errors import InputError, StoreError
from orbical.interface import sidecar
from orbical.interface.sidecar import Sidecar, bits_key


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "run.zarr"
    place.mkdir()
    return place


def added(item: int):
    return lambda found: [*found, item]


def test_a_document_is_found_again_by_another_process(store: Path) -> None:
    assert Sidecar(store).update("findings", [], added(3)) == [3]
    assert (store.parent / "run.zarr.view" / "findings.json").is_file()
    assert Sidecar(store).read("findings", []) == [3]
    assert Sidecar(store).read("sets", {}) == {}


def test_writers_at_the_same_time_lose_nothing(store: Path) -> None:
    pages = [Sidecar(store) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(pages[i % 4].update, "findings", [], added(i)) for i in range(40)]
        [job.result() for job in jobs]
    assert sorted(Sidecar(store).read("findings", [])) == [*range(40)]


def test_bits_are_kept_by_their_contents_and_altered_ones_are_not_used(store: Path) -> None:
    key = Sidecar(store).keep_bits(b"\x05\x01")
    assert key == bits_key(b"\x05\x01")
    assert Sidecar(store).bits(key) == b"\x05\x01"
    (store.parent / "run.zarr.view" / f"{key}.bits").write_bytes(b"\x06\x01")
    assert Sidecar(store).bits(key) is None
    assert Sidecar(store).bits("../run.zarr/zarr.json") is None


def test_a_place_that_cannot_be_written_is_stated_and_changes_stay_in_memory(store: Path) -> None:
    (store.parent / "run.zarr.view").write_text("a file where the folder would be")
    beside = Sidecar(store)
    assert beside.update("findings", [], added(1)) == [1]
    assert beside.update("findings", [], added(2)) == [1, 2] == beside.read("findings", [])
    assert beside.bits(beside.keep_bits(b"\x01")) == b"\x01"
    assert "'run.zarr.view' cannot be written" in beside.unsaved


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions bind others only")
def test_a_folder_without_permission_keeps_its_findings_readable(store: Path) -> None:
    Sidecar(store).update("findings", [], added(1))
    folder = store.parent / "run.zarr.view"
    folder.chmod(0o500)
    beside = Sidecar(store)
    assert beside.update("findings", [], added(2)) == [1, 2]
    assert "cannot be written" in beside.unsaved
    folder.chmod(0o700)
    assert Sidecar(store).read("findings", []) == [1]


def test_a_link_is_never_followed(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (store.parent / "run.zarr.view").symlink_to(other)
    beside = Sidecar(store)
    beside.update("findings", [], added(1))
    assert "is a link" in beside.unsaved
    assert not any(other.iterdir())


def test_a_damaged_document_is_named_and_never_overwritten(store: Path) -> None:
    Sidecar(store).update("findings", [], added(1))
    path = store.parent / "run.zarr.view" / "findings.json"
    path.write_text("[1,")
    with pytest.raises(StoreError, match=r"findings.json cannot be read; repair or remove it"):
        Sidecar(store).update("findings", [], added(2))
    assert path.read_text() == "[1,"


def test_sizes_and_names_are_limited(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Sidecar(store)
    monkeypatch.setattr(sidecar, "MOST_DOCUMENT_BYTES", 100)
    with pytest.raises(InputError, match=r"findings.json: expected at most 100 bytes, got 10"):
        beside.update("findings", [], lambda found: ["x" * 100])
    monkeypatch.setattr(sidecar, "MOST_FILES", 1)
    beside.update("findings", [], added(1))
    beside.update("findings", [], added(2))
    with pytest.raises(InputError, match="at most 1 files beside a scan"):
        beside.keep_bits(b"\x01")
    with pytest.raises(InputError, match="name: expected lowercase letters"):
        beside.read("../zarr", [])
