"""The detection study: its measures on known maps, its claims, and all of it in small."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from orbical.datasets import data_folder, scenes
from orbical.errors import InputError
from orbical.groups import translations
from orbical.zoo import detector
from orbical_studies.__main__ import main
from orbical_studies.detection import fine_tuning, images, published, report, study, training
from orbical_studies.detection.measures import (
    correlation,
    neighborhood_mean,
    neighbors_median,
    peak_width,
    seen_objects,
    summarize,
)
from orbical_studies.detection.tables import read_tables
from orbical_studies.detection.training import JITTERS, Settings, scan_shifts
from orbical_studies.framework import Paths, Results, audits
from orbical_studies.framework.page import parted, render
from orbical_studies.zoo_training.detectors import Crops

TABLES = (
    *("trainings", "levels", "classes", "dark-spots", "period", "consensus", "certainty"),
    *("objects", "section", "shifts", "published", "published-rings", "published-shifts"),
    "order",
)


def test_the_width_of_a_square_peak_is_its_side() -> None:
    mean = np.zeros((33, 33))
    mean[10:20, 10:20] = 1
    assert peak_width(mean.ravel(), 2) == 20


def test_a_single_dark_cell_lies_below_its_neighbors() -> None:
    maps = np.ones((1, 25))
    maps[0, 12] = 0.2
    fall = neighbors_median(maps) - maps
    assert np.argmax(fall) == 12
    assert fall[0, 12] == pytest.approx(0.8)
    assert np.count_nonzero(np.abs(fall) > 1e-9) == 1


def test_the_median_of_neighbors_leaves_out_what_lies_beyond_the_rim() -> None:
    maps = np.random.default_rng(0).normal(size=(2, 36))
    grid = np.pad(maps.reshape(2, 6, 6), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    for row, column in ((0, 0), (0, 3), (2, 2), (5, 5)):
        around = grid[:, row : row + 3, column : column + 3].reshape(2, 9)
        expected = np.nanmedian(np.delete(around, 4, axis=1), axis=1)
        assert np.allclose(neighbors_median(maps)[:, 6 * row + column], expected)


def test_smoothing_keeps_slow_changes_and_removes_stripes() -> None:
    across = np.arange(33.0)
    slope, stripes = np.tile(across, (33, 1)), np.tile((-1.0) ** across, (33, 1))
    smooth = neighborhood_mean(np.stack([slope, stripes]))
    assert np.allclose(smooth[0, :, 4:-4], slope[:, 4:-4])
    assert np.abs(smooth[1, :, 4:-4]).max() < 0.2


def test_correlation_equals_numpys() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 5, 40))
    expected = [np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)]
    assert np.allclose(correlation(a, b), expected)


SHIFTS, SCENES = translations(32, 16), scenes(3, seed=5)


@pytest.fixture(scope="module")
def scan() -> dict[str, np.ndarray]:
    """The shipped detector of scenes at 25 shifts of three of them."""
    return scan_shifts(detector.load("jittered"), SCENES["images"], SCENES["objects"], SHIFTS)


@pytest.fixture(scope="module")
def summary(scan: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return summarize(scan, SCENES["objects"], SHIFTS)


def test_average_precision_ranks_all_views_of_a_shift(scan: dict, summary: dict) -> None:
    element = 12
    correct, confidence = (scan[n][:, element].ravel() for n in ("box_correct", "box_score"))
    order = np.argsort(-confidence, kind="stable")
    right = correct[order][~np.isnan(correct[order])].astype(float)
    precision = right.cumsum() / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    expected = (best * right).sum() / seen_objects(SCENES["objects"], SHIFTS)[element]
    assert summary["shifts/ap"][element] == pytest.approx(expected, abs=1e-3)
    assert summary["shifts/ap"].min() > 0.5  # the detector of scenes is good


def test_an_object_counts_if_the_view_shows_a_quarter_of_it() -> None:
    box = torch.tensor([[[100.0, 100, 120, 120, 0], [-10, 0, 10, 20, 1], [torch.nan] * 5]])
    counted = seen_objects(box, SHIFTS)
    assert counted[SHIFTS.identity] == 2
    assert 1 in counted


def test_a_summary_holds_the_means_of_its_scan(scan: dict, summary: dict) -> None:
    score = scan["iou"].astype(float) * scan["match_confidence"].astype(float)
    assert np.allclose(summary["shifts/score"], score.mean(0), atol=1e-6)
    assert np.allclose(summary["objects/orbit"], score.mean(1), atol=1e-6)
    assert np.allclose(summary["objects/centre"], score[:, 12], atol=1e-6)
    assert summary["levels/centre"] == pytest.approx(score[:, 12].mean(), abs=1e-6)
    assert summary["objects/consensus_iou"].min() > 0.7
    assert summary["consensus/hit"] == 1


@pytest.fixture
def coco() -> Path:
    """The folder of the images, or a skip that says it is absent."""
    try:
        return data_folder() / "coco"
    except InputError as absent:
        pytest.skip(str(absent))


def test_nothing_is_tested_that_was_trained_on(coco: Path) -> None:
    parts = images.split()
    names = {part: {image.name for image in some} for part, some in parts.items()}
    assert not names["train"] & names["test"]
    assert len(names["test"]) == 85
    _, objects = images.views_to_test(parts["test"][:20], None)
    crops = images.training_crops(parts["train"][:6])
    assert crops.pixels.shape[1:] == (256, 256, 3)
    assert not bool(crops.known[:, 4].any())  # books are unlabeled in these
    for first in (objects[:, 0, :4], crops.objects[:, 0, :4]):
        assert torch.allclose((first[:, :2] + first[:, 2:]) / 2, torch.tensor(64.0), atol=0.51)


def test_packed_images_are_the_same_images(coco: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run the step 'pack'"):
        images.unpack(tmp_path)
    images.pack(Settings(images=3), Results(tmp_path, tmp_path))
    packed, whole = images.unpack(tmp_path), images.split()
    assert {part: len(some) for part, some in packed.items()} == {"train": 3, "test": 3}
    for part, most in (("test", 8), ("train", 16)):
        for one, other in zip(packed[part], whole[part], strict=False):
            assert (one.name, list(one.unlabeled)) == (other.name, list(other.unlabeled))
            assert np.allclose(one.boxes, other.boxes)
            assert np.abs(one.read().astype(float) - other.read()).mean() <= most


def one_dark_spot(settings: Settings, results: Results) -> None:
    """Write the table of two objects whose most confident detection is lost at one shift."""
    first = np.ones((2, 25))
    first[:, 12] = 0
    results.write("order", published.dark_spots(first, np.ones((2, 25))))


def test_one_command_goes_from_images_to_the_page(
    coco: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "LARGE", partial(detector.Detector, channels=(8, 8, 8, 8)))
    for step in ("pack-published", "fine-tune", "collect-fine-tuned"):
        monkeypatch.setitem(study.steps, step, lambda settings, results: None)
    monkeypatch.setitem(study.steps, "order", one_dark_spot)  # a published detector takes minutes
    few = "--steps 2 --batch 2 --step-px 15 --objects 4 --images 8"
    page, work = tmp_path / "detection.md", tmp_path / "work"
    options = [*few.split(), "--results", str(tmp_path), "--work", str(work), "--page", str(page)]
    main(["detection", "pack", *options])
    main(["detection", "train", *options, "--seeds", "2", "--only", "jitter-100"])
    first = (work / "jitter-100.npz").read_bytes()
    main(["detection", *options, "--seeds", "1"])
    assert "4 trainings to run, 2 finished before" in capsys.readouterr().out
    assert (work / "jitter-100.npz").read_bytes() == first
    assert {path.stem for path in work.glob("*.safetensors")} == {
        *("jitter-050", "jitter-100"),  # those that the page shows, of one seed
    }
    for name in TABLES:
        written = (tmp_path / f"{name}.csv").read_text().partition("\n")[0]
        committed = Paths.in_checkout("detection").results / f"{name}.csv"
        assert written == committed.read_text().partition("\n")[0]
    text = (tmp_path / "detection" / "protocol.md").read_text("utf-8")
    assert "not confirmed here" in text  # two steps teach nothing, and the page says so
    assert "2 steps of 2 views for each of 5 detectors, the five levels with seeds 0\n" in text
    assert "1 seeds lack a level and are left out" in text
    made = {path.name for path in (tmp_path / "detection").glob("*.png")}
    assert made == {
        "published.png",
        "aggregate.png",
        "section.png",
        "individual.png",
        "consensus.png",
    }


class Trunk(torch.nn.Module):
    """Sixteenths of an enlarged view, channels last, as the graph of YOLOv5s has them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", 0.01 * torch.ones(7, 3, 16, 16))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), self.kernel, stride=16)
        return (self.scale * found).permute(0, 2, 3, 1)


def test_published_weights_are_trained_at_every_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def graph(path: Path, outputs: list[str], enlarged: float) -> Trunk:
        asked.append((outputs, enlarged))
        return Trunk()

    monkeypatch.setattr("orbical_audits.tfjs.read_graph", graph)
    made = scenes(3, radius=64)
    pixels = (made["images"] * 255).byte().permute(0, 2, 3, 1)
    crops = Crops(pixels, made["objects"], torch.ones(3, 5, dtype=torch.bool))
    loaded = crops, made["images"], made["objects"]
    monkeypatch.setattr(fine_tuning, "load", lambda settings, work: loaded)
    file = fine_tuning.model_file(tmp_path)
    file.parent.mkdir(parents=True)
    node = {"name": f"{fine_tuning.HEAD}BiasAdd", "input": ["features", "kernel", "bias"]}
    file.write_text(json.dumps({"modelTopology": {"node": [{"name": "x"}, node]}}))
    results = Results(tmp_path / "tables", tmp_path)
    settings = Settings(seeds=1, steps=2, batch=2, step_px=30)
    fine_tuning.fine_tune(settings, results)
    fine_tuning.collect_fine_tuned(settings, results)
    assert results["fine-tuned"]["jitter"].tolist() == list(JITTERS)
    assert asked[0] == (["features"], 0.4)
    network = fine_tuning.FineTuned(5, file)
    assert {name for name, _ in network.named_parameters()} == {
        *("trunk.kernel", "answer.weight", "answer.bias")
    }
    logits, boxes = network.maps(torch.zeros(2, 3, 128, 128))
    assert logits.shape == (2, 256, 5)
    assert boxes.shape == (2, 256, 4)


def test_intervals_of_audits_become_columns_and_a_missing_audit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "FOLDER", tmp_path)
    results = Results(tmp_path / "results")
    with pytest.raises(InputError, match=r"there is no file .*; run: make audit NAME=yolov5"):
        published.copy_audits(Settings(), results)
    share = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 9}
    rows = {"rows": [{"transformation": "shifts", "found and lost": share}]}
    for name in published.DETECTORS:
        content = {"tables": dict.fromkeys(published.TABLES, rows)}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    published.copy_audits(Settings(), results)
    first = results["published"].iloc[0]
    assert first["detector"] == "YOLOv5s"
    assert first[["found_and_lost", "found_and_lost_low"]].tolist() == [0.5, 0.25]


def test_one_seed_is_enough_to_refute_a_claim(tmp_path: Path) -> None:
    paths = Paths.in_checkout("detection")
    committed, changed = Results(paths.results), Results(tmp_path)
    frames = {name: committed[name].copy() for name in TABLES}
    levels = frames["levels"].set_index(["seed", "jitter"])
    levels.loc[1, "width_px"] = 50
    levels.loc[(1, 0), ["corner", "orbit", "ece_orbit"]] = [0.3, 0.5, 0.1]
    levels.loc[(1, 100), "corner"] = 0.01
    frames["levels"] = levels.reset_index()
    zeros = {"dark-spots": ["dark"], "period": ["dx", "dy"], "consensus": ["median_hit"]}
    for name, columns in zeros.items():
        frames[name].loc[frames[name]["seed"] == 1, columns] = 0
    frames["certainty"]["confidence_orbit"] = 0.2
    frames["order"]["reordered"] = 0
    for name, frame in frames.items():
        changed.write(name, frame)
    before, after = (
        {
            line.split(" | ")[0]: line.rsplit(" | ", 1)[1]
            for line in text.split("\n")
            if " | " in line
        }
        for text in (
            parted(render(study, Results(paths.results), paths.template), study.name)[1],
            parted(render(study, changed, paths.template), study.name)[1],
        )
    )
    claims = {claim for claim, verdict in before.items() if verdict == "confirmed |"}
    assert len(claims) == 8
    assert {after[claim] for claim in claims} == {"not confirmed here |"}


def test_a_difference_between_levels_has_to_hold_over_images() -> None:
    """Objects of one image count together: 20 alike of one image say no more than one."""
    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(12), [20, *[1] * 11])
    gained = np.where(image == 0, 0.5, rng.normal(0, 0.2, len(image)))
    base = {"object": np.arange(len(image)), "image": image, "centre": 0.4}
    rows = [pd.DataFrame({**base, "jitter": 0, "orbit": 0.1})]
    rows += [pd.DataFrame({**base, "jitter": 100, "orbit": 0.1 + gained})]
    levels = pd.DataFrame({"jitter": [0, 100], "corner": [0.01, 0.2]})
    found = report.over_images(pd.concat(rows), levels)
    assert found["orbit_gained"][0] == pytest.approx(gained.mean())
    assert found["orbit_gained"][1] < 0.05  # over objects the lower end would be 0.2
    assert found["centre_lost"] == pytest.approx((0, 0, 0))
    assert found["centre_minus_corner"][0] == pytest.approx(0.4 - 0.01)
    assert found["centre_minus_corner"][1] < 0.4 - 0.01


def test_results_without_all_levels_are_refused(tmp_path: Path) -> None:
    rows = [{"name": str(jitter), "jitter": jitter, "seed": 0} for jitter in JITTERS[1:]]
    (tmp_path / "trials.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(InputError, match="all levels of seed 0"):
        read_tables(tmp_path)


def test_a_dark_spot_is_explained_by_another_order_where_the_box_is_still_there() -> None:
    best = np.full((2, 25), 0.8)
    first = best.copy()
    first[:, 12] = 0.1  # in the middle: another box comes first
    best[1, 12] = 0.1  # of the second object the box itself is lost
    first[:, 0] = 0.0  # at the rim
    rows = pd.DataFrame(published.dark_spots(first, best))
    assert rows[["dark", "reordered"]].to_numpy().tolist() == [[1, 1], [1, 0]]
    many = published.Order(pd.concat([rows[:1]] * 12))
    assert (many.dark, many.share, many.verdict) == (12, (1.0, 1.0, 1.0), "confirmed")
    assert published.Order(pd.concat([rows[:1]] * 9)).verdict == "open"  # too few
    assert published.Order(pd.concat([rows[1:]] * 12)).verdict == "contradicted"
    assert published.Order(pd.concat([rows] * 12)).verdict == "open"
