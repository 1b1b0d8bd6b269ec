"""Crops of a moving view are copied once, and only those of one batch at a time."""

from __future__ import annotations

import numpy as np
import torch

import orbical as ob
from orbical.actions import Window
from orbical.actions.pixel_grids import _pixel_crops_at_once, _pixel_crops_in_turn
from orbical.groups import translations


def test_crops_are_one_copy_in_the_order_of_a_batch() -> None:
    image = torch.rand(2, 3, 24, 20)
    group = translations(2)
    crops = Window(16).apply(group, image)
    assert crops.is_contiguous()  # so that making a batch of them copies nothing again
    for crop, dx, dy in zip(crops, group.coords["dx"], group.coords["dy"], strict=True):
        top, left = 4 + int(dy), 2 - int(dx)
        assert torch.equal(crop, image[:, :, top : top + 16, left : left + 16])


def test_crops_made_at_once_equal_those_made_in_turn() -> None:
    corners = np.random.default_rng(0).integers(0, 5, (7, 2))
    shared = torch.rand(1, 3, 2, 20, 20)
    for images in (shared.expand(7, -1, -1, -1, -1), torch.rand(7, 3, 2, 20, 20)):
        joined = _pixel_crops_in_turn(images, corners, 16)
        assert joined.is_contiguous()
        assert torch.equal(joined, _pixel_crops_at_once(images, corners, 16))
        row, left = corners[3]
        assert torch.equal(joined[3], images[3, ..., row : row + 16, left : left + 16])


def test_a_view_moved_beyond_the_image_shows_zeros_there() -> None:
    crops = Window(4).apply(translations(2), torch.ones(1, 1, 6, 6))
    assert crops.shape == (25, 1, 1, 4, 4)
    for crop, dx in zip(crops, translations(2).coords["dx"], strict=True):
        outside = max(0, abs(int(dx)) - 1)
        assert (crop[0, 0].sum(0) < 1e-4).sum() == outside


def test_a_scan_never_holds_more_crops_than_a_batch() -> None:
    largest = 0

    class Counting(Window):
        def move(self, elements: object, x: torch.Tensor) -> torch.Tensor:
            nonlocal largest
            crops = super().move(elements, x)  # type: ignore[arg-type]
            largest = max(largest, crops.shape[0] * crops.shape[1])
            return crops

    def answer(views: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(views), 1, 6)

    ob.scan(
        answer,
        torch.rand(3, 1, 48, 48),
        group="translations:8:1",
        task=ob.tasks.Detection(Counting(32)),
        batch_size=20,
        progress=False,
    )
    assert largest <= 20
