"""Nothing in the process that scans grows with the number of samples."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.scanning import recipe
from orbical.store import layout, scan_result


class Made(Sequence):
    """Values that are made when they are sliced."""

    def __init__(self, count, make):
        self.count, self.make = count, make

    def __len__(self):
        return self.count

    def __getitem__(self, rows):
        return self.make(np.arange(*rows.indices(self.count)))


class Numbered(ob.data.Source):
    """Samples with names, labels and a column, all of which are made when they are read."""

    def __init__(self, count, classes=3):
        self._count = count
        self.names = Made(count, lambda rows: [f"sample {row}" for row in rows])
        self.labels = Made(count, lambda rows: rows % classes)
        self.columns = {
            "half": Made(count, lambda rows: rows / 2),
            "site": Made(count, lambda rows: ["north" if row % 2 else "south" for row in rows]),
        }

    def __len__(self):
        return self._count

    def read(self, start, stop):
        return torch.arange(start, stop).float().view(-1, 1, 1, 1).expand(-1, 1, 2, 2), None


def net(x):
    return x.flatten(1)[:, :3]


@pytest.fixture
def few_are_held(monkeypatch):
    monkeypatch.setattr(layout, "_CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr(recipe, "_MOST_TARGETS", 1 << 12)
    monkeypatch.setattr(recipe, "_CHECKED_AT_ONCE", 1 << 12)
    monkeypatch.setattr(scan_result, "_HELD_NUMBERS", 1 << 12)
    monkeypatch.setattr(scan_result, "_HELD_TEXTS", 1 << 12)


def scanned(path, samples, **settings):
    settings = {"fingerprint": "numbered", "progress": False, **settings}
    return ob.scan(net, samples, group="cyclic:2", task="classification", out=path, **settings)


def peak_of_scan(path, count):
    """Return the most bytes in use while a unit is run, the scan continued, and its data opened."""
    settings = {"part": f"1/{count}", "chunk": 1000}
    tracemalloc.start()
    try:
        scanned(path, Numbered(count), **settings)
        scan = scanned(path, Numbered(count), **settings)
        assert scan.data.sizes["sample"] == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_samples(tmp_path, few_are_held):
    peak_of_scan(tmp_path / "imports.zarr", 2000)
    few = peak_of_scan(tmp_path / "few.zarr", 20_000)
    many = peak_of_scan(tmp_path / "many.zarr", 120_000)
    assert many - few < 8 * 100_000, "bytes: names alone would take 240 each"


def test_what_is_made_when_it_is_read_is_stored(tmp_path, few_are_held):
    count = 5000
    scan = scanned(tmp_path / "made.zarr", Numbered(count))
    assert scan.record.data.labeled
    assert scan.names == [f"sample {row}" for row in range(count)]
    assert scan.data["label"].values.tolist() == [row % 3 for row in range(count)]
    assert scan.metadata["half"].tolist() == [row / 2 for row in range(count)]
    assert scan.metadata["site"][:3].tolist() == ["south", "north", "south"]
    few = scanned(tmp_path / "few.zarr", Numbered(3000))
    assert few.data["score"].equals(scan.data["score"].isel(sample=slice(0, 3000)))


def test_labels_of_many_samples_are_checked_before_the_scan(tmp_path, few_are_held):
    samples = Numbered(5000)
    samples.labels = Made(5000, lambda rows: np.where(rows == 4999, -1, rows % 3))
    with pytest.raises(InputError, match="class indices from 0, got -1"):
        scanned(tmp_path / "none.zarr", samples)
    assert not (tmp_path / "none.zarr").exists()
