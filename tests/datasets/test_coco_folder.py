"""Folders in COCO's format: which objects can be key objects, and what is cut around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from orbical.datasets import coco
from orbical.errors import InputError


def write_folder(
    folder: Path, notes: list[dict[str, Any]], size: tuple[int, int] = (120, 100)
) -> Path:
    """Write two images of random pixels, and annotations in COCO's format."""
    random = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    entries = []
    for number in (7, 3):
        pixels = random.integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        entries.append(
            {"id": number, "file_name": f"{number}.png", "width": size[0], "height": size[1]}
        )
    content = {
        "images": entries,
        "annotations": notes,
        "categories": [{"id": 44, "name": "bottle"}, {"id": 47, "name": "cup"}],
    }
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances.json").write_text(json.dumps(content))
    return folder


def note(image: int, box: list[float], category: int = 47, **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": box, **more}


def test_key_objects_are_cut_with_room_for_the_view(tmp_path: Path) -> None:
    """The pixels around each key object, and every box in pixels of the un-moved view."""
    folder = write_folder(
        tmp_path / "a",
        [note(3, [50, 40, 20, 20]), note(3, [8, 44, 30, 10], 44), note(7, [0, 0, 9, 9])],
    )
    found = coco(folder, window=32, radius=8)
    assert found["images"].shape == (1, 3, 48, 48)
    assert found["classes"] == ["bottle", "cup"]
    assert found["names"] == ["3.png"]
    whole = np.asarray(Image.open(folder / "images" / "3.png"), np.float32) / 255
    assert np.allclose(found["images"][0].permute(1, 2, 0), whole[26:74, 36:84])
    # The view begins 8 pixels inside the cut, at (44, 34) of the image.
    assert found["objects"][0].tolist() == [[6, 6, 26, 26, 1], [-36, 10, -6, 20, 0]]


def test_the_key_object_of_a_scan_is_where_its_box_says(tmp_path: Path) -> None:
    import orbical as ob

    folder = write_folder(tmp_path / "a", [note(3, [50, 40, 20, 20])])
    found = coco(folder, window=32, radius=8)

    def exact(views: torch.Tensor) -> torch.Tensor:
        """Find the key object by comparing with the pixels that it has."""
        key = found["images"][0, :, 14:34, 14:34]
        places = views.unfold(2, 20, 1).unfold(3, 20, 1)
        wrong = (places - key[None, :, None, None]).abs().sum((1, 4, 5)).flatten(1)
        top, left = wrong.argmin(1) // 13, wrong.argmin(1) % 13
        one = torch.ones_like(top)
        return torch.stack([left, top, left + 20, top + 20, one, one], -1)[:, None].float()

    task = ob.tasks.Detection(ob.actions.Window(32))
    data = (found["images"], found["objects"])
    scan = ob.scan(exact, data, group="translations:6:3", task=task, progress=False)
    assert np.allclose(scan.data["iou"], 1)


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ([50, 40, 3, 3], "less than 1 %"),
        ([42, 32, 36, 36], "more than 50 %"),
        ([4, 40, 20, 20], "no room"),
    ],
)
def test_objects_that_fail_a_criterion_are_no_key_objects(
    tmp_path: Path, box: list[float], reason: str
) -> None:
    folder = write_folder(tmp_path / "a", [note(3, box)])
    with pytest.raises(InputError, match="got none among 1 boxes"):
        coco(folder, window=32, radius=8)


def test_only_asked_classes_count_and_crowds_do_not(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "a", [note(3, [50, 40, 20, 20]), note(7, [50, 40, 20, 20], iscrowd=1)]
    )
    with pytest.raises(InputError, match="none among 1 boxes"):
        coco(folder, ["bottle"], window=32, radius=8)
    with pytest.raises(InputError, match="classes: unknown name 'book'"):
        coco(folder, ["book"], window=32, radius=8)


@pytest.mark.parametrize("box", [[100, 40, 40, 20], [50, 40, -5, 20], [50, float("nan"), 5, 20]])
def test_boxes_outside_turned_or_nan_are_named(tmp_path: Path, box: list[float]) -> None:
    folder = write_folder(tmp_path / "a", [note(3, box)])
    with pytest.raises(InputError, match=r"inside '3\.png', which is 120 x 100, got"):
        coco(folder, window=32, radius=8)


def test_boxes_without_area_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", [note(3, [50, 40, 0, 20]), note(3, [50, 40, 20, 20])])
    with pytest.warns(UserWarning, match=r"1 of the boxes in 'instances\.json' .* '3\.png'"):
        found = coco(folder, window=32, radius=8)
    assert found["objects"].shape == (1, 1, 5)


def test_one_of_several_annotation_files_is_chosen_by_its_path(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", [note(3, [50, 40, 20, 20])])
    (folder / "annotations" / "captions.json").write_text("{}")
    with pytest.raises(InputError, match=r"2 JSON files .*pass the path of one"):
        coco(folder, window=32, radius=8)
    found = coco(folder / "annotations" / "instances.json", window=32, radius=8)
    assert found["names"] == ["3.png"]


def test_boxes_of_three_numbers_and_impossible_views_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", [note(3, [50, 40, 20])])
    with pytest.raises(InputError, match="not in COCO's format"):
        coco(folder)
    with pytest.raises(InputError, match=r"window: .* got 0"):
        coco(folder, window=0)
    with pytest.raises(InputError, match=r"radius: .* got -4"):
        coco(folder, radius=-4)


def test_folders_that_are_not_in_the_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        coco(tmp_path / "none")
    (tmp_path / "b").mkdir()
    with pytest.raises(InputError, match="got a folder without one"):
        coco(tmp_path / "b")
    (tmp_path / "b" / "x.json").write_text('{"images": []}')
    with pytest.raises(InputError, match="not in COCO's format"):
        coco(tmp_path / "b")
    folder = write_folder(tmp_path / "c", [note(3, [50, 40, 20, 20])])
    (folder / "images" / "3.png").unlink()
    with pytest.raises(InputError, match=r"expected the image '3\.png' .* got no file"):
        coco(folder)
