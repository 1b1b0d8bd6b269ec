"""NIfTI files: axes, spacing, labels and maps, against arrays made by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, MissingExtra

nibabel = pytest.importorskip("nibabel", reason="nibabel is not installed")
RNG = np.random.default_rng(0)


def save(path, values, affine=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(
        nibabel.Nifti1Image(values, np.diag([1, 1, 3, 1.0]) if affine is None else affine), path
    )


def test_axes_are_those_of_the_body_whatever_the_file_says(tmp_path):
    values = RNG.random((5, 4, 3)).astype(np.float32)  # right, front, head
    save(tmp_path / "a" / "plain.nii.gz", values)
    # The same body, stored head, left, front.
    turned = values[::-1].transpose(2, 0, 1)
    affine = np.zeros((4, 4))
    affine[2, 0], affine[0, 1], affine[1, 2], affine[3, 3] = 3, -1, 1, 1
    save(tmp_path / "a" / "turned.nii", turned, affine)
    scans = ob.data.Nifti(tmp_path / "a")
    assert (scans.names, scans.action.spacing) == (["plain.nii.gz", "turned.nii"], [3.0, 1.0, 1.0])
    scans.check()
    (plain, turned), _ = scans.read(0, 2)
    np.testing.assert_array_equal(plain, turned)
    for right, front, head in ((0, 0, 0), (4, 1, 2), (2, 3, 1)):
        assert plain[0, head, 3 - front, right] == values[right, front, head]


def ball(spacing, center=(0.0, 0.0, 0.0), sides=(13, 39, 39)):
    """Return a rod along x in mm, `[D, H, W]`, in voxels of a spacing."""
    z, y, x = np.meshgrid(
        *((np.arange(n) - (n - 1) / 2) * step for n, step in zip(sides, spacing, strict=True)),
        indexing="ij",
    )
    away = ((x - center[0]) / 15) ** 2 + ((-y - center[1]) / 6) ** 2 + ((z - center[2]) / 6) ** 2
    return torch.tensor(1 / (1 + np.exp(8 * (away - 1))), dtype=torch.float32)


def test_a_turn_is_by_mm_and_not_by_voxels():
    rod = ball((3.0, 1.0, 1.0))[None, None]
    quarter = ob.groups.from_matrices(
        space=[
            np.eye(3),
            [[np.cos(1.2), 0, -np.sin(1.2)], [0, 1, 0], [np.sin(1.2), 0, np.cos(1.2)]],
        ]
    )
    z, x = np.meshgrid((np.arange(13) - 6) * 3, np.arange(39) - 19, indexing="ij")
    for spacing, right in (((3.0, 1.0, 1.0), True), (None, False)):
        moved = ob.actions.Volumes(spacing=spacing).apply(quarter, rod)[1, 0, 0, :, 19].numpy()
        tilt = np.degrees(
            0.5 * np.arctan2(2 * (moved * z * x).sum(), (moved * (x**2 - z**2)).sum())
        )
        assert (abs(abs(tilt) - np.degrees(1.2)) < 2) == right


def test_shifts_are_in_mm_and_masks_and_vectors_follow():
    action = ob.actions.Volumes(padding="border", spacing=(3, 1, 1))
    group = ob.groups.translations3d(3, 3)
    x = torch.rand(1, 1, 5, 7, 7)
    up = int(
        np.flatnonzero(
            (group.coords["dz"] == 3) & (group.coords["dx"] == 0) & (group.coords["dy"] == 0)
        )[0]
    )
    moved = action.apply(group, x)[up, 0, 0]
    np.testing.assert_allclose(moved[1:], x[0, 0, :-1], atol=1e-5)  # one slice
    assert action.valid(group, x)[up].float().mean((1, 2)).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    maps = ob.actions.ValueMaps("vector", action)
    still = maps.apply(group, torch.ones(1, 3, 5, 7, 7))
    np.testing.assert_allclose(still[up], 1.0, atol=1e-5)
    assert ob.actions.Action.from_record(action.describe()).spacing == [3.0, 1.0, 1.0]
    with pytest.raises(InputError, match="3 x 1 x 1 mm as sides of a voxel; resample"):
        action.check(ob.groups.octahedral(), torch.rand(1, 1, 5, 5, 5))
    with pytest.raises(InputError, match="three sides > 0"):
        ob.actions.Volumes(spacing=(1, 0, 1))


def test_folders_are_classes_and_maps_are_labels(tmp_path):
    for name in ("sick/1", "sick/2", "well/3"):
        values = RNG.random((6, 6, 6)).astype(np.float32)
        save(tmp_path / "scans" / f"{name}.nii.gz", values, np.diag([2, 2, 2, 1.0]))
        save(
            tmp_path / "maps" / f"{name}.nii.gz",
            (values > 0.5).astype(np.uint8),
            np.diag([2, 2, 2, 1.0]),
        )

    def bright(x):
        return x.mean((1, 2, 3, 4)) - 0.5

    scan = ob.scan(
        bright, tmp_path / "scans", group="octahedral", task="classification", progress=False
    )
    assert (scan.classes, scan.data["label"].values.tolist()) == (["sick", "well"], [0, 0, 1])
    assert scan.record.task.input["spacing"] == [2.0, 2.0, 2.0]
    data = (tmp_path / "scans", tmp_path / "maps")
    found = ob.scan(lambda x: torch.cat([0.5 - x, x - 0.5], 1), data, group="octahedral",
                    task="segmentation", progress=False)  # fmt: skip
    assert float(found.data["score"].min()) == 1.0
    values = ob.scan(bright, (tmp_path / "scans", [1.0, 2.0, 3.0]), group="rotations3d:4",
                     task="regression", progress=False)  # fmt: skip
    assert values.record.task.input["spacing"] == [2.0, 2.0, 2.0]


def test_what_does_not_fit_is_named(tmp_path, monkeypatch):
    save(tmp_path / "a.nii", np.zeros((4, 4, 4), np.float32))
    save(tmp_path / "b.nii", np.zeros((4, 4, 4), np.float32), np.eye(4))
    with pytest.raises(InputError, match=r"\[3.0, 1.0, 1.0\] mm, as the first, got .* in 'b.nii'"):
        ob.scan(len, tmp_path, group="octahedral", task="regression")
    (tmp_path / "c.nii").write_bytes(b"no volume")
    with pytest.raises(InputError, match=r"'c\.nii' cannot be read as NIfTI"):
        ob.data.Nifti([tmp_path / "c.nii"])
    with pytest.raises(InputError, match="none in"):
        ob.data.Nifti(
            tmp_path.parent / "empty" if (tmp_path.parent / "empty").mkdir() is None else ""
        )
    with pytest.raises(InputError, match="one for each of 1 samples"):
        ob.data.Nifti(tmp_path / "a.nii", [1, 2])
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(MissingExtra, match=r"medical"):
        ob.data.Nifti(tmp_path / "a.nii")
