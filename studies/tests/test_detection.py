"""The detection study: its measures on known maps, and the whole of it in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.datasets import scenes
from orbical.errors import InputError
from orbical.groups import translations
from orbical.zoo import detector
from orbical_studies.detection import findings, main, material, tables, training
from orbical_studies.detection.numbers import peak_width
from orbical_studies.detection.scans import Results
from orbical_studies.detection.settings import JITTERS, trials
from orbical_studies.detection.summaries import (
    Summary,
    correlation,
    neighbourhood_mean,
    neighbours_median,
    seen_objects,
    summarised,
)
from orbical_studies.pages import Row


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


def test_the_median_of_neighbours_leaves_out_what_lies_beyond_the_rim() -> None:
    maps = np.random.default_rng(0).normal(size=(2, 36))
    grid = np.pad(maps.reshape(2, 6, 6), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    for row, column in ((0, 0), (0, 3), (2, 2), (5, 5)):
        around = grid[:, row : row + 3, column : column + 3].reshape(2, 9)
        expected = np.nanmedian(np.delete(around, 4, axis=1), axis=1)
        assert np.allclose(neighbours_median(maps, 6)[:, 6 * row + column], expected)


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


@pytest.fixture(scope="module")
def scan() -> dict[str, np.ndarray]:
    """The shipped detector of scenes at 25 shifts of three of them."""
    return training.scanned(
        detector.load("jittered"), scenes(3, seed=5), translations(32, 16), "cpu"
    )


@pytest.fixture(scope="module")
def summary(scan: dict[str, np.ndarray]) -> Summary:
    return summarised(scan, scenes(3, seed=5), translations(32, 16))


def test_average_precision_and_calibration_of_all_views_at_a_shift(
    scan: dict[str, np.ndarray], summary: Summary
) -> None:
    assert summary.ap.shape == summary.ece.shape == (25,)
    assert summary.ap.min() > 0.5  # the detector of scenes is good
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
    objects = seen_objects(scenes(3, seed=5), translations(32, 16))
    expected = (best * right).sum() / objects[element]
    assert summary.ap[element] == pytest.approx(expected, abs=1e-3)


def test_a_summary_holds_the_means_of_its_scan_and_is_read_as_it_was_written(
    scan: dict[str, np.ndarray], summary: Summary, tmp_path: Path
) -> None:
    score = scan["iou"].astype(float) * scan["match_confidence"].astype(float)
    assert np.allclose(summary.score, score.mean(0), atol=1e-6)
    assert np.allclose(summary.over_orbit, score.mean(1), atol=1e-6)
    assert np.allclose(summary.at_centre, score[:, 12], atol=1e-6)
    path = summary.write(tmp_path / "summary.npz")
    for name, values in vars(Summary.read(path)).items():
        assert np.array_equal(values, getattr(summary, name), equal_nan=True), name
    with np.load(path) as arrays:
        np.savez(path, **{name: arrays[name] for name in arrays.files if name != "ap"})
    with pytest.raises(InputError, match=r"'summary\.npz' lacks ap"):
        Summary.read(path)


def test_a_consensus_of_the_key_object_overlaps_it(summary: Summary) -> None:
    assert summary.consensus_iou.min() > 0.7
    assert summary.consensus_vs_truth.min() > 0.5
    assert np.array_equal(summary.consensus_label, summary.labels)


def test_absent_and_partial_results_are_refused(summary: Summary, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trials\.jsonl"):
        Results.read(tmp_path)
    with pytest.raises(InputError, match=r"no file 'detection\.npz'"):
        material.unpack(tmp_path)
    first, *others = trials(2)
    lines = [f'{{"name": "{one}", "jitter": {one.jitter}, "seed": {one.seed}}}' for one in others]
    (tmp_path / "trials.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=f"results: {first} not found"):
        Results.read(tmp_path)


def level(jitter: int, seed: int, **numbers: float) -> Row:
    usual = {"centre": 0.4, "orbit": 0.1, "corner": 0.1, "width_px": 10.0 + jitter}
    return {"jitter": jitter, "seed": seed} | usual | numbers


def test_a_claim_is_asked_of_every_seed_by_itself() -> None:
    growing = [level(jitter, 0) for jitter in JITTERS]
    broken = [level(jitter, 1, width_px=50.0 - (jitter == 50)) for jitter in JITTERS]
    claims = [findings.widens(rows) for rows in findings.by_seed([*growing, *broken])]
    assert claims == [True, False]
    # The means over both seeds do widen: that alone confirms nothing.
    means = [float(np.mean(tables.values_of([*growing, *broken], j, "width_px"))) for j in JITTERS]
    assert means == sorted(means)
    assert findings.held(claims) == "confirmed by 1 of 2 seeds"
    assert findings.held(claims[:1]) == "confirmed"
    assert findings.held(claims[1:]) == "not confirmed here"


def test_a_level_is_flat_or_centred_by_its_corners() -> None:
    flat, steep = level(100, 0, centre=0.2, corner=0.15), level(0, 0, centre=0.4, corner=0.01)
    assert findings.is_flat(flat)
    assert not findings.is_centred(flat)
    assert findings.is_centred(steep)
    assert not findings.is_flat(steep)
    assert findings.lowers([steep, flat])
    assert not findings.lowers([flat, steep])


def test_levels_whose_ranges_overlap_are_not_told_apart() -> None:
    rows = [
        level(jitter, seed, centre=0.5 - jitter / 500 + seed * (0.06 if jitter > 50 else 0.01))
        for seed in (0, 1)
        for jitter in JITTERS
    ]
    objects = [{"jitter": j, "centre": c, "orbit": c / 2} for j in JITTERS for c in (0.1, 0.3)]
    said = findings.resolution_sentence(rows, objects)
    assert "overlap for 50 and 75 % at the centre, 75 and 100 % at the centre, 0 and 25 %" in said
    assert "is up to 0.100 at the centre and 0.050 over the orbit" in said
    assert "one training a level" in findings.resolution_sentence(rows[:5], objects)


def test_a_consensus_as_good_as_the_truth_in_one_seed_alone_is_no_confirmation() -> None:
    def row(seed: int, miss: float) -> list[Row]:
        found = {"seed": seed, "hit": 0.2, "median_hit": 0.95, "median_miss": miss}
        return [{"jitter": jitter, **found} for jitter in JITTERS]

    assert "truth: corrected" in findings.consensus_sentence([*row(0, 0.1), *row(1, 0.3)])
    mixed = findings.consensus_sentence([*row(0, 0.96), *row(1, 0.3)])
    assert "truth: confirmed by 1 of 2 seeds" in mixed


def test_only_a_detector_that_errs_more_off_centre_and_as_surely_is_called_so() -> None:
    def said(confidence: float, *orbit: float) -> str:
        rows = [
            {"jitter": jitter, "seed": seed, "ece_centre": 0.1, "ece_orbit": error}
            for seed, error in enumerate(orbit)
            for jitter in JITTERS
        ]
        right = {"precision_centre": 0.5, "precision_orbit": 0.2, "confidence_centre": 0.5}
        return findings.calibration_sentence(rows, [right | {"confidence_orbit": confidence}])

    assert "errs more and is hardly less sure" in said(0.45, 0.3, 0.2)
    assert "less sure" not in said(0.45, 0.3, 0.05)
    assert "less sure" not in said(0.3, 0.3, 0.2)


def test_a_training_that_was_stopped_or_lacks_a_level_is_told() -> None:
    rows = [{"jitter": j, "seed": 0, "steps": 90, "asked": 90, "batch": 8} for j in JITTERS]
    assert "90 steps of 8 views for each of 5 detectors" in findings.training_sentence(rows)
    assert "seed 0 alone" in findings.training_sentence(rows)
    rows += [{**row, "seed": 1} for row in rows] + [{**rows[0], "seed": 2}]
    rows[1] = {**rows[1], "steps": 70}
    said = findings.training_sentence(rows)
    assert "70 to 90 steps of 8 views for each of 10 detectors" in said
    assert "with seeds 0, 1." in said
    assert "1 of them were stopped" in said
    assert "Of seed 2 a level is missing" in said


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
    shared_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detector, "LARGE", (8, 8, 8, 8))
    material.pack(tmp_path / "packed", shared_data / "coco", count=8)
    page, results = tmp_path / "detection.md", tmp_path / "results"
    few = "--seeds 2 --steps 2 --batch 2 --step-px 16 --objects 2 --workers 0 --device cpu"
    words = [*few.split(), "--data", str(tmp_path / "packed"), "--out", str(results)]
    main(["train", *words, "--only", "jitter-100-seed-0"])
    assert "jitter-100-seed-0: score" in capsys.readouterr().out
    first = (results / "jitter-100.tar").read_bytes()
    main([*words, "--page", str(page)])
    said = capsys.readouterr().out
    assert "9 detectors to train, 1 already there" in said
    assert "jitter-100-seed-1: score" in said
    assert f"wrote {page}" in said
    assert (results / "jitter-100.tar").read_bytes() == first
    # Whole scans of one seed alone, and nothing of the detectors that ship.
    archives = {path.name for path in results.glob("*.tar")}
    assert archives == {f"jitter-{jitter:03d}.tar" for jitter in JITTERS}
    text = page.read_text("utf-8")
    assert "not confirmed here" in text  # two steps teach nothing, and the page says so
    assert "2 steps of 2 views for each of 10 detectors, the five levels with seeds 0, 1." in text
    assert (tmp_path / "detection" / "aggregate.png").stat().st_size > 5000


def test_the_detectors_of_scenes_are_made_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--scenes", "2", "--scene-steps", "1", "--batch", "2", "--device", "cpu"]
    main(["scenes", *words, "--out", str(tmp_path / "made")])
    assert f"wrote {tmp_path / 'made' / 'scenes.tar'}" in capsys.readouterr().out


def test_a_training_that_fails_is_named_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--data", str(tmp_path), "--out", str(tmp_path), "--workers", "0"]
    with pytest.raises(SystemExit):
        main([*words, "--only", "seed-1", "--seeds", "2"])
    said = capsys.readouterr()
    assert "no file 'detection.npz'" in said.out
    names = ", ".join(f"jitter-{jitter:03d}-seed-1" for jitter in JITTERS)
    assert f"{names} did not end well" in said.err
    with pytest.raises(SystemExit):
        main([*words, "--seeds", "0"])
    assert "seeds: 0 given, at least 1 expected" in capsys.readouterr().err
