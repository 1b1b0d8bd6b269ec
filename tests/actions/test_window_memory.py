"""Crops of a moving view are copied once, and only those of one batch at a time."""

from __future__ import annotations

import torch

import orbical as ob
from orbical.actions import Window
from orbical.groups import translations


def test_crops_are_one_copy_in_the_order_of_a_batch() -> None:
    image = torch.rand(2, 3, 24, 20)
    group = translations(2)
    crops = Window(16).apply(group, image)
    assert crops.is_contiguous()  # so that making a batch of them copies nothing again
    for crop, dx, dy in zip(crops, group.coords["dx"], group.coords["dy"], strict=True):
        top, left = 4 + int(dy), 2 - int(dx)
        assert torch.equal(crop, image[:, :, top : top + 16, left : left + 16])


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
