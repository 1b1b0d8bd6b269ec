"""CIFAR-10 from sheets: made up for the test, and the real ones where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orbical.errors import InputError
from orbical_studies.data import cifar10

pytest.importorskip("PIL")
from PIL import Image


def write_sheets(folder: Path, labels: int) -> np.ndarray:
    tiles = np.random.default_rng(0).integers(0, 256, (2, 6, 32, 32, 3), dtype=np.uint8)
    for i, sheet in enumerate(tiles):
        image = sheet.reshape(2, 3, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(64, 96, 3)
        Image.fromarray(image).save(folder / f"test_{i:02}.webp", lossless=True, exact=True)
    np.save(folder / "test_labels.npy", np.arange(labels) % 10)
    return tiles.reshape(12, 32, 32, 3)


def test_tiles_come_row_by_row_sheet_by_sheet_as_many_as_labels(tmp_path: Path) -> None:
    tiles = write_sheets(tmp_path, labels=11)
    pixels, labels = cifar10(tmp_path, "test")
    assert pixels.dtype == np.uint8
    assert (pixels == tiles[:11]).all()
    assert labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]


def test_what_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"test_labels\.npy"):
        cifar10(tmp_path)
    write_sheets(tmp_path, labels=13)
    with pytest.raises(InputError, match=r"expected at least 13 tiles.* got 12"):
        cifar10(tmp_path)
    (tmp_path / "test_01.webp").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"'test_01\.webp' is not a whole image"):
        cifar10(tmp_path)
    Image.new("RGB", (33, 32)).save(tmp_path / "test_01.webp")
    with pytest.raises(InputError, match=r"multiples of 32, got 33 x 32 pixels"):
        cifar10(tmp_path)
    with pytest.raises(InputError, match=r"^split"):
        cifar10(tmp_path, "valid")


def test_the_real_files_have_the_published_means() -> None:
    try:
        pixels, labels = cifar10(split="test")
    except InputError:
        pytest.skip("CIFAR-10 is not here")
    assert pixels.shape == (10_000, 32, 32, 3)
    assert np.bincount(labels).tolist() == [1000] * 10
    # Channel means of the 10,000 test images.
    assert pixels.mean((0, 1, 2)) == pytest.approx([126.02, 123.71, 114.85], abs=0.01)
