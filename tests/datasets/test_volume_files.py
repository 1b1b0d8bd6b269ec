"""Volumes in files, and the generated ones of the example where the files are absent."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "volumes.py"


def test_shapes_are_read_upright_and_in_a_fixed_order(tmp_path: Path) -> None:
    for name, height in (("chair", 3), ("monitor", 30)):
        bits = np.zeros((3, 32, 32, 32), np.uint8)
        bits[1:, 4, 7, height] = 1  # x, y and the height of one voxel; the first shape is empty
        np.savez(
            tmp_path / f"{name}.npz", packed=np.packbits(bits.reshape(3, -1), axis=1), shape=()
        )
    volumes, labels = ob.datasets.voxel_shapes(tmp_path)
    assert volumes.shape == (4, 1, 32, 32, 32)
    assert sorted(labels.tolist()) == [0, 0, 1, 1]
    for volume, label in zip(volumes[:, 0], labels.tolist(), strict=True):
        row = 31 - (3, 30)[label]
        assert volume.nonzero().tolist() == [[7, row, 4]]
    some, _ = ob.datasets.voxel_shapes(tmp_path, count=2)
    assert torch.equal(some, volumes[:2])


def test_the_brain_equals_its_mirror_image(shared_data: Path) -> None:
    image, tissue = ob.datasets.brain_template(shared_data / "volumes")
    assert (image.shape[2:], tissue.shape[1:]) == ((94, 116, 99), (94, 116, 99))
    mirrored = ob.actions.Volumes().apply(ob.groups.reflections3d(), image)[4]
    assert torch.equal(mirrored, image)  # across x
    assert torch.equal(tissue.flip(-1), tissue)
    assert {*tissue.unique().tolist()} == {0, 1, 2}


def test_the_example_generates_volumes_where_there_are_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path))
    example = runpy.run_path(str(EXAMPLE))
    volumes, labels = example["shapes"](12)
    assert volumes.shape == (12, 1, 16, 16, 16)
    assert {*labels.tolist()} == {0, 1}
    image, tissue = example["brain"]()
    assert image.shape[2:] == tissue.shape[1:]
    assert {*tissue.unique().tolist()} == {0, 1, 2}
