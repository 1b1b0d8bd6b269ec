"""The sentence of a first look says an agreement or a distance, by the direction of the score."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.previews.summary_sentence import found, score_sentence

HIGHER = {"classification", "detection", "key_points", "multilabel", "point_classification"}
HIGHER |= {"segmentation"}


@pytest.mark.parametrize("name", ob.tasks.TASKS)
def test_the_direction_is_that_of_the_task(name: str) -> None:
    task = ob.tasks.TASKS[name]
    assert task.higher_is_better == (name in HIGHER)
    values = np.full((1, 12), 0.5)
    values[0, 1] = 0.25
    said = score_sentence(
        values, ["net"], ob.groups.rotations(12), "the score", task.higher_is_better
    )
    how, to = ("agrees with", "to") if name in HIGHER else ("differs from", "by")
    assert said == (
        f"net {how} its average over the orbit {to} 0.25 when turned by 30° and {to} 0.5 as they "
        "are (the score)."
    )


def test_a_segmentation_agrees_with_itself_to_the_share_of_pixels() -> None:
    images = torch.rand(4, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    scan = ob.scan(
        lambda batch: 9 * batch,
        (images, images.argmax(1)),
        group="cyclic:4",
        task="segmentation",
        progress=False,
    )
    said = found(scan, images=True)
    assert "agrees with its average over the orbit to 1 when turned by" in said
    assert said.endswith("(share of correct pixels).")
