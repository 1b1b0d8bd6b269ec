"""The images of the detection study, if they exist."""

from __future__ import annotations

from pathlib import Path

from orbical.datasets.key_objects import find_key_objects
from orbical_studies.data.coco_images import FIVE_CLASSES, coco_five


def test_the_data_of_the_study_hold_as_many_key_objects_as_counted(shared_data: Path) -> None:
    parts = coco_five(shared_data / "coco")
    counts = {
        radius: sum(
            len(find_key_objects(some, FIVE_CLASSES, 128, radius)) for some in parts.values()
        )
        for radius in (32, 64)
    }
    assert counts == {32: 591, 64: 170}
    image = parts["coco_five_480"][0]
    assert image.read().shape == (image.height, image.width, 3)
