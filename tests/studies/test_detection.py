"""The detection study: its measures on known maps, and the whole of it in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.datasets import scenes
from orbical.errors import InputError
from orbical.groups import translations
from orbical.studies.detection import main, material, numbers, training
from orbical.studies.detection.numbers import (
    Results,
    correlation,
    neighbourhood_mean,
    neighbours_median,
    peak_width,
)
from orbical.zoo import detector


def test_the_width_of_a_square_peak_is_its_side() -> None:
    mean = np.zeros((33, 33))
    mean[10:20, 10:20] = 1
    assert peak_width(mean.ravel(), 2) == 20


def test_a_single_dark_cell_lies_below_its_neighbours() -> None:
    maps = np.ones((1, 25))
    maps[0, 12] = 0.2
    fall = neighbours_median(maps, 5) - maps
    assert np.argmax(fall) == 12
    assert fall[0, 12] == pytest.approx(0.8)
    assert np.count_nonzero(np.abs(fall) > 1e-9) == 1


def test_smoothing_keeps_slow_changes_and_takes_stripes_away() -> None:
    across = np.arange(33.0)
    slope, stripes = np.tile(across, (33, 1)), np.tile((-1.0) ** across, (33, 1))
    smooth = neighbourhood_mean(np.stack([slope, stripes]))
    assert np.allclose(smooth[0, :, 4:-4], slope[:, 4:-4])
    assert np.abs(smooth[1, :, 4:-4]).max() < 0.2


def test_correlation_equals_numpys() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 5, 40))
    expected = [np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)]
    assert np.allclose(correlation(a, b), expected)


def small_results() -> tuple[Results, dict[str, np.ndarray]]:
    made = scenes(3, seed=5)
    group = translations(32, 16)
    net = detector.load("jittered")
    found = training.scanned(net, made, group, "cpu")
    kept = {name: value.astype(np.float32) for name, value in found.items()}
    every = dict.fromkeys(training.JITTERS, kept)
    return Results(every, made, group, Path()), kept


def test_average_precision_and_calibration_of_all_views_at_a_shift() -> None:
    results, scan = small_results()
    assert results.in_view.shape == (3, 25)
    ap = numbers.ap_along(results, 0)
    error = numbers.ece_along(results, 0)
    assert ap.shape == error.shape == (25,)
    assert ap.min() > 0.5  # the detector of scenes is good
    # One shift by hand: rank all detections of all samples by confidence.
    element = 12
    pairs = [
        (confidence, correct)
        for sample in range(3)
        for confidence, correct in zip(
            scan["box_score"][sample, element], scan["box_correct"][sample, element], strict=True
        )
        if not np.isnan(correct)
    ]
    pairs.sort(key=lambda one: -one[0])
    right = np.array([correct for _, correct in pairs])
    precision = right.cumsum() / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    assert ap[element] == pytest.approx(
        (best * right).sum() / results.in_view[:, element].sum(), abs=1e-3
    )


def test_a_consensus_of_the_key_object_overlaps_it() -> None:
    results, _ = small_results()
    rows = numbers.consensus_rows(results)
    assert len(rows) == 15
    assert min(row["consensus_iou"] for row in rows) > 0.7
    assert min(row["consensus_vs_truth"] for row in rows) > 0.5


def test_results_of_other_objects_and_absent_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file 'jitter-000\.tar'"):
        Results.read(tmp_path)
    with pytest.raises(InputError, match=r"no file 'detection\.npz'"):
        material.unpack(tmp_path)


def test_packed_images_are_the_same_images(shared_data: Path, tmp_path: Path) -> None:
    material.pack(tmp_path, shared_data / "coco", count=3)
    packed = material.unpack(tmp_path)
    whole = material.split(shared_data / "coco")
    assert {part: len(images) for part, images in packed.items()} == {"train": 3, "test": 3}
    for one, other in zip(packed["test"], whole["test"], strict=False):
        assert one.name == other.name
        assert np.array_equal(one.read(), other.read())
        assert np.allclose(one.boxes, other.boxes)
    for one, other in zip(packed["train"], whole["train"], strict=False):
        apart = np.abs(one.read().astype(float) - other.read()).mean()
        assert 0 < apart < 12
        assert one.unlabelled == other.unlabelled


def test_nothing_is_tested_that_was_trained_on(shared_data: Path) -> None:
    parts = material.split(shared_data / "coco")
    names = {part: {image.name for image in images} for part, images in parts.items()}
    assert not names["train"] & names["test"]
    assert len(names["test"]) == 133
    views = material.test_views(parts["test"][:20])
    first = views["objects"][:, 0, :4]
    assert torch.allclose((first[:, :2] + first[:, 2:]) / 2, torch.tensor(64.0), atol=0.51)


def test_training_crops_hold_their_key_object_in_the_middle(shared_data: Path) -> None:
    parts = material.split(shared_data / "coco")
    crops = material.training_crops(parts["train"][:6])
    assert crops.pixels.shape[1:] == (192, 192, 3)
    first = crops.objects[:, 0, :4]
    assert torch.allclose((first[:, :2] + first[:, 2:]) / 2, torch.tensor(64.0), atol=0.51)
    assert not bool(crops.known[:, 4].any())  # books are unlabelled in these


def test_one_command_goes_from_images_to_the_page(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    material.pack(tmp_path / "packed", shared_data / "coco", count=8)
    page = tmp_path / "detection.md"
    few = "--steps 2 --scenes 4 --scene-steps 1 --batch 2 --step-px 16 --objects 3 --workers 0"
    words = [*few.split(), "--device", "cpu", "--data", str(tmp_path / "packed")]
    main([*words, "--out", str(tmp_path / "results"), "--page", str(page)])
    said = capsys.readouterr().out
    assert "jitter-100: score" in said
    assert f"wrote {page}" in said
    text = page.read_text("utf-8")
    assert "not confirmed here" in text  # two steps teach nothing, and the page says so
    assert (tmp_path / "results" / "scenes.tar").is_file()
    assert (tmp_path / "detection" / "aggregate.png").stat().st_size > 5000


def test_a_training_that_fails_is_named_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--data", str(tmp_path), "--out", str(tmp_path), "--workers", "0"]
    with pytest.raises(SystemExit):
        main([*words, "--scenes", "2", "--scene-steps", "1", "--batch", "2"])
    said = capsys.readouterr()
    assert "no file 'detection.npz'" in said.out
    assert "jitter-0, jitter-25, jitter-50, jitter-75, jitter-100 did not end well" in said.err
