from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical import datasets
from orbical.errors import InputError


def write_pairs(folder: Path, **changes: np.ndarray | None) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray | None] = {
        "SQG_1/img1": rng.integers(0, 256, (4, 6), dtype=np.uint8),
        "SQG_1/img2": rng.integers(0, 256, (4, 6), dtype=np.uint8),
        "SQG_1/flow": rng.normal(size=(4, 6, 2)).astype(np.float32),
    }
    arrays |= changes
    np.savez(folder / "piv_pairs.npz", **{k: v for k, v in arrays.items() if v is not None})


def test_piv_reads_the_real_pairs(shared_data: Path) -> None:
    data = datasets.piv(shared_data / "piv")
    assert data["pair"].shape == (20, 2, 1, 256, 256)
    assert data["flow"].shape == (20, 2, 256, 256)
    assert data["pair"].dtype == data["flow"].dtype == torch.float32
    assert 0 <= float(data["pair"].min()) < float(data["pair"].max()) <= 1
    assert len(set(data["names"])) == 20
    assert Counter(data["kinds"]) == {
        "turbulence": 3,
        "surface quasi-geostrophic": 2,
        "isotropic": 2,
        "backstep": 3,
        "uniform": 10,
    }


def test_the_second_image_is_the_first_moved_by_the_flow(shared_data: Path) -> None:
    # A uniform flow of five pixels to the right: this fixes the order and the sign of the axes.
    data = datasets.piv(shared_data / "piv")
    index = data["kinds"].index("uniform")
    first, second = data["pair"][index, :, 0]
    dx, dy = data["flow"][index].flatten(1).median(1).values.tolist()
    assert (dx, dy) == (5.0, 0.0)

    def mismatch(right: int, down: int) -> float:
        moved = first.roll((down, right), (0, 1))
        return float((moved - second)[16:-16, 16:-16].square().mean())

    assert min(
        ((mismatch(x, y), x, y) for x in range(-6, 7) for y in range(-6, 7)),
    )[1:] == (5, 0)


def test_axes_and_values_are_kept(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    data = datasets.piv(tmp_path)
    with np.load(tmp_path / "piv_pairs.npz") as raw:
        np.testing.assert_array_equal(data["flow"][0, 1].numpy(), raw["SQG_1/flow"][:, :, 1])
        np.testing.assert_allclose(data["pair"][0, 1, 0].numpy() * 255, raw["SQG_1/img2"])
    assert data["names"] == ["SQG_1"]


def test_a_pair_without_its_flow_is_refused_by_name(tmp_path: Path) -> None:
    write_pairs(tmp_path, **{"SQG_1/flow": None})
    with pytest.raises(InputError, match=r"without \['SQG_1/flow'\]"):
        datasets.piv(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the file 'piv_pairs\.npz'"):
        datasets.piv(tmp_path)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "piv_pairs.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(InputError, match="not a readable npz file"):
        datasets.piv(tmp_path)
