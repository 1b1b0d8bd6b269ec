"""Large scans: read a little at a time, whatever their size, with the same answers."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from talking import ask, lassoed

import orbical as ob
from orbical.interface import open_session
from orbical.interface.session import Session, element_columns, sample_maps
from orbical.interface.session.cached_reader import Cache, ReaderTurns, ScanReader, _size_of
from orbical.store import scan_arrays

LASSO = [[-0.6, -1], [0.6, -1], [0.6, 1], [-0.6, 1]]


def spoil(folder: Path, keep: int) -> None:
    """Make every chunk of samples but one unreadable."""
    names = ("score", "score_vs_consensus", "confidence", "correct", "predicted", "probabilities")
    for name in (*names, "consensus", "input", "action_defect"):
        chunks = folder / name / "c"
        for file in chunks.rglob("*"):
            place = file.relative_to(chunks).parts
            by_model = name not in ("input", "action_defect")
            if file.is_file() and int(place[1 if by_model else 0]) != keep:
                file.write_bytes(b"spoiled")


def test_one_sample_is_read_from_its_own_chunk_alone(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "digits.zarr", tmp_path / "run.zarr")
    session = open_session(tmp_path / "run.zarr")
    spoil(tmp_path / "run.zarr", keep=2)  # a store that is damaged already is refused
    whole = ob.load(folder / "digits.zarr").data
    assert ask(session, "state")[0]["samples"] == 120
    _, arrays = ask(session, "sample", sample=70)
    np.testing.assert_array_equal(arrays["values"], whole["score"].values[:, 70])
    _, arrays = ask(session, "place", sample=95, element=3)
    np.testing.assert_array_equal(
        arrays["detail/probabilities"], whole["probabilities"].values[:, 95, 3]
    )
    session.handle({"kind": "hover", "samples": [64, 80], "selection": {}})
    with pytest.raises(Exception, match=r"\S"):
        ask(session, "sample", sample=0)


def test_the_cache_is_bounded_and_changes_nothing(
    digits: ob.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_arrays, "BLOCK_ROWS", 32)
    small = Session({"digits": digits})
    small.scan_view().reader._cache = Cache(size=3 * 32 * 24 * 4)
    usual = open_session(digits)
    lassoed(usual, LASSO)
    for kind, selection in (
        ("aggregate", {}),
        ("aggregate", {"metric": "correct", "subset": lassoed(small, LASSO)}),
        ("aggregate", {"metric": "ece"}),
        ("embedding", {}),
        ("calibration", {"element": 3}),
        ("sample", {"sample": 119}),
    ):
        one, other = ask(small, kind, **selection)[1], ask(usual, kind, **selection)[1]
        for name, array in other.items():
            np.testing.assert_allclose(one[name], array, atol=1e-5)
        assert small.scan_view().reader._cache.size <= 3 * 32 * 24 * 4


def test_rows_of_huge_chunks_are_kept_without_their_chunk(digits: ob.Scan) -> None:
    few = ScanReader(digits, size=8 * 1000)  # a chunk of inputs is larger than an eighth of it
    for sample in (3, 64, 119):
        np.testing.assert_array_equal(
            few.row("input", sample, None), digits.data["input"].values[sample]
        )
    assert few._cache.size == 3 * 64 * 4


def test_a_scan_turned_on_its_side_in_a_file_is_the_same(
    digits: ob.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = open_session(digits)
    monkeypatch.setattr(element_columns, "MOST_IN_MEMORY", 0)
    on_disk = open_session(digits)
    for selection in ({"element": 7}, {"scope": "orbit"}, {"filter": ["label:3,4"]}):
        one = ask(held, "calibration", **selection)
        other = ask(on_disk, "calibration", **selection)
        assert one[0] == other[0]
        for name, array in one[1].items():
            np.testing.assert_array_equal(other[1][name], array)
    pairs = element_columns.columns_of_view(on_disk.scan_view(), "truth")
    assert _size_of(pairs) == 0
    (sure,), (right,) = pairs.pairs(1, [5], slice(None))
    np.testing.assert_array_equal(sure, digits.data["confidence"].values[1, :, 5])
    np.testing.assert_array_equal(right, digits.data["correct"].values[1, :, 5])


def test_many_samples_are_placed_by_their_neighbors(
    digits: ob.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_maps, "REPRESENTATIVES", 60)
    header, arrays = ask(open_session(digits), "embedding", method="isomap")
    assert header["note"] == "60 of 120 samples embedded, the rest by their neighbors"
    xy = arrays["xy"]
    assert np.isfinite(xy).all()
    points = np.concatenate([*digits.data["score"].values], 1)
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1) + 9 * np.eye(120)
    nearest = apart.argmin(1)
    near = np.linalg.norm(xy - xy[nearest], axis=1).mean()
    anyone = np.linalg.norm(xy - np.roll(xy, 17, 0), axis=1).mean()
    assert near < 0.5 * anyone


def test_a_linear_map_of_many_samples_is_the_same_map(
    digits: ob.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask(open_session(digits), "embedding", method="ica")[1]["xy"]
    monkeypatch.setattr(sample_maps, "REPRESENTATIVES", 119)
    most = ask(open_session(digits), "embedding", method="ica")[1]["xy"]
    for axis in range(2):
        found = max(abs(np.corrcoef(whole[:, axis], most[:, other])[0, 1]) for other in range(2))
        assert found > 0.98


def test_axes_may_come_from_every_nth_sample(
    digits: ob.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask(open_session(digits), "embedding")[1]["xy"]
    monkeypatch.setattr(ob.embedding, "MOST_PRODUCTS", 120 * 48**2 / 2)
    header, arrays = ask(open_session(digits), "embedding")
    assert header["note"] == "axes from 60 of 120 samples"
    assert abs(np.corrcoef(whole[:, 0], arrays["xy"][:, 0])[0, 1]) > 0.9


def test_a_question_is_worked_on_once() -> None:
    cache, worked, asking = Cache(), [], threading.Semaphore(0)

    def compute() -> str:
        worked.append(1)
        for _ in range(8):
            assert asking.acquire(timeout=60)
        return "answer"

    def ask() -> None:
        asking.release()
        answers.append(cache.get_or_compute("key", compute))

    answers: list[str] = []
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["answer"] * 8
    assert len(worked) == 1


def test_an_error_is_not_remembered() -> None:
    cache = Cache()
    with pytest.raises(ZeroDivisionError):
        cache.get_or_compute("key", lambda: 1 / 0)
    assert cache.get_or_compute("key", lambda: 2) == 2


def test_the_oldest_go_first() -> None:
    cache = Cache(entries=10, size=100)
    for key in "abcd":
        cache.get_or_compute(key, lambda: np.zeros(30, np.uint8))
    assert cache.get("a") is None
    assert cache.get("b") is not None
    assert cache.size == 90
    cache.get_or_compute(
        "large", lambda: np.zeros(500, np.uint8)
    )  # it alone may be larger than the cachery
    assert cache.size == 500
    for _ in range(2):
        cache.get_or_compute("small", lambda: np.zeros(1, np.uint8))
    assert cache.get("large") is None


def test_a_patient_pass_lets_others_go_first() -> None:
    passes, order = ReaderTurns(), []
    begun = threading.Event()

    def patient() -> None:
        for block in range(3):
            with passes.turn(patient=True):
                order.append(f"patient {block}")
                begun.set()
                while not block and not passes._urgent:
                    time.sleep(0.005)

    def urgent() -> None:
        with passes.turn():
            order.append("urgent")

    one = threading.Thread(target=patient)
    one.start()
    begun.wait(60)
    other = threading.Thread(target=urgent)
    other.start()
    for thread in (one, other):
        thread.join(60)
    assert order == ["patient 0", "urgent", "patient 1", "patient 2"]
