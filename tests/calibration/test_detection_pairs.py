"""Calibration of detections: each one is a sample, and views have any number of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.calibration import along_orbit, ece, esd, pair_at, pairs_within
from orbical.errors import InputError

GROUP = "translations:8:4"


def some_detections(views: torch.Tensor) -> torch.Tensor:
    """Between none and three detections, by what the view shows; near the middle."""
    random = np.random.default_rng(int(views.double().sum() * 1e3) % 2**32)
    answer = np.zeros((len(views), 3, 6), np.float32)
    for row in answer:
        for place in range(random.integers(0, 4)):
            corner = random.uniform(2, 10, 2)
            row[place] = [*corner, *(corner + random.uniform(8, 20, 2)), random.uniform(0.1, 1), 0]
    return torch.from_numpy(answer)


@pytest.fixture(scope="module")
def scan() -> ob.Scan:
    made = ob.datasets.scenes(12, window=32, radius=8)
    made["objects"][..., 4] *= 0
    task = ob.tasks.Detection(ob.actions.Window(32), threshold=0.3, most=3)
    data = (made["images"], made["objects"])
    return ob.scan(some_detections, data, group=GROUP, task=task, batch_size=4, progress=False)


@pytest.mark.parametrize(("name", "measure"), [("ece", ece), ("esd", esd)])
def test_every_measure_sees_each_detection_once(scan: ob.Scan, name: str, measure) -> None:
    got = along_orbit(pairs_within(scan), name)
    confidence = scan.data["box_score"].values[0]
    correct = scan.data["box_correct"].values[0]
    for element in range(len(scan.group)):
        judged = ~np.isnan(correct[:, element])
        expected = measure(confidence[:, element][judged], correct[:, element][judged])
        assert float(got[0, element]) == pytest.approx(float(expected), abs=1e-7)


def test_one_element_gives_as_many_pairs_as_there_are_detections(scan: ob.Scan) -> None:
    confidence, correct = pair_at(pairs_within(scan), 7)
    assert len(confidence) == int((~np.isnan(scan.data["box_correct"].values[0, :, 7])).sum())
    assert 0 < len(confidence) < 36
    assert 0 < int(correct.sum()) < len(confidence)


def test_the_most_confident_detection_alone_is_calibrated_where_there_is_one(
    scan: ob.Scan,
) -> None:
    got = along_orbit(scan, "esd")
    confidence, correct = (scan.data[name].values[0] for name in ("confidence", "correct"))
    for element in range(len(scan.group)):
        there = ~np.isnan(confidence[:, element])
        expected = esd(confidence[there, element], correct[there, element])
        assert float(got[0, element]) == pytest.approx(float(expected), abs=1e-7)


def test_a_scan_of_another_task_is_refused() -> None:
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    classified = ob.scan(
        net, (images[:4], labels[:4]), group="cyclic:4", task="classification", progress=False
    )
    with pytest.raises(InputError, match=r"labeled scan of detection, .* got one of class"):
        pairs_within(classified)
