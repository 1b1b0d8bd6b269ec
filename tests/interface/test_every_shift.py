"""Every pixel shift of one sample, on demand, between the shifts of a scan."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.live_models import BATCH
from orbical.interface.orbit_positions import OrbitLocator
from orbical.interface.session import Session


def brightest(views: torch.Tensor) -> torch.Tensor:
    """Answer a box of 8 pixels around the brightest pixel, surer the brighter the corner is."""
    assert len(views) <= BATCH
    flat = views[:, 0].flatten(1).argmax(1)
    row, column = flat // 32, flat % 32
    sure = 0.2 + 0.8 * views[:, 0, 0, 0]
    zero = torch.zeros_like(sure)
    edges = [column - 4, row - 4, column + 4, row + 4]
    return torch.stack([*(edge.float() for edge in edges), sure, zero], -1)[:, None]


@pytest.mark.parametrize(
    ("scanned", "expected"),
    [
        ("translations:32:2", "translations:32:1"),
        ("translations:32:4", "translations:32:1"),
        ("translations:32:8", "translations:32:1"),
        ("translations:34:17", "translations:34:1"),
        ("translations:64:8", "translations:64:2"),  # every pixel would be 16,641 shifts
        ("translations:66:6", "translations:66:2"),
        ("translations:66:33", "translations:66:3"),
        ("translations:2:1", "translations:2:0.5"),  # between pixels
        ("translations:3:1.5", "translations:3:0.75"),
    ],
)
def test_shifts_become_those_of_one_pixel_or_as_few_as_divide_them(
    scanned: str, expected: str
) -> None:
    group = ob.groups.parse(scanned)
    finer = OrbitLocator(group).finer()
    assert finer is not None
    assert (finer.spec, len(finer) <= 5000) == (expected, True)
    places = {(dx, dy) for dx, dy in zip(finer.coords["dx"], finer.coords["dy"], strict=True)}
    assert {*zip(group.coords["dx"], group.coords["dy"], strict=True)} < places


@pytest.mark.parametrize("scanned", ["translations:64:2", "translations:48:1", "translations:0:1"])
def test_where_finer_shifts_are_too_many_there_are_none(scanned: str) -> None:
    assert OrbitLocator(ob.groups.parse(scanned)).finer() is None


def test_all_shifts_of_one_sample_are_asked_in_batches_and_equal_a_scan_of_them() -> None:
    random = torch.Generator().manual_seed(0)
    images = 0.9 * torch.rand(5, 1, 56, 56, generator=random)
    images[:, 0, 28, 28] = 1
    objects = torch.tensor([[[12.0, 12, 20, 20, 0]]]).repeat(5, 1, 1)
    task = ob.tasks.Detection(ob.actions.Window(32))
    coarse, fine = (
        ob.scan(
            brightest,
            (images, objects),
            group=f"translations:12:{step}",
            task=task,
            keep="inputs",
            batch_size=64,
            progress=False,
        )
        for step in (4, 1)
    )
    session = Session({"shifts": coarse}, models={"model": brightest})
    asked = {"sample": 3, "dense": True}
    header, arrays = session.handle({"kind": "sample", "sequence": 1, "selection": asked})
    assert header["group"]["spec"] == "translations:12:1"
    assert arrays["values"].shape == (1, 625)
    np.testing.assert_allclose(arrays["values"][0], fine.data["score"].values[0, 3], atol=1e-6)
    assert np.ptp(arrays["values"]) > 0.1
    session.close()
