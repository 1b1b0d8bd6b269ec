"""The detector: suppression against kornia's, what it answers, and the weights that ship."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.zoo import detector


def boxes_of(seed: int, count: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    corner = 60 * torch.rand(1, count, 2, generator=random)
    size = 10 + 20 * torch.rand(1, count, 2, generator=random)
    confidence = 0.05 + 0.95 * torch.rand(1, count, generator=random)
    return torch.cat([corner, corner + size], -1), confidence


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(6))
def test_suppression_keeps_what_kornia_keeps(seed: int) -> None:
    reference = pytest.importorskip("kornia.geometry.bbox", reason="kornia is not installed")
    boxes, confidence = boxes_of(seed)
    places, values = detector.suppress(boxes, confidence, torch.zeros(1, 40), 0.4, 40)
    expected = reference.nms(boxes[0], confidence[0], 0.4)
    assert places[0][values[0] > 0].tolist() == expected.tolist()


def test_suppression_of_many_views_equals_one_by_one_and_spares_other_classes() -> None:
    cases = [boxes_of(seed) for seed in range(4)]
    boxes, confidence = (torch.cat(part) for part in zip(*cases, strict=True))
    labels = torch.arange(40).remainder(3).expand(4, -1)
    places, values = detector.suppress(boxes, confidence, labels, 0.4, 12)
    for number, (box, score) in enumerate(cases):
        alone = detector.suppress(box, score, labels[:1], 0.4, 12)
        assert torch.equal(places[number], alone[0][0])
        assert torch.equal(values[number], alone[1][0])
    same = boxes[:1, :1].expand(1, 2, 4)
    kept = detector.suppress(same, torch.tensor([[0.9, 0.8]]), torch.tensor([[0, 1]]), 0.4, 2)
    assert kept[1].tolist() == [[pytest.approx(0.9), pytest.approx(0.8)]]


def test_the_shipped_detectors_differ_in_where_they_look() -> None:
    made = ob.datasets.scenes(6, seed=77)
    nets = {name: detector.load(name) for name in detector.NAMES}
    scan = ob.scan(
        nets,
        (made["images"], made["objects"]),
        group="translations:24:24",
        task=ob.tasks.Detection(),
        progress=False,
    )
    score = scan.data["score"].mean("sample")
    assert bool((score.isel(element=4) > 0.75).all())  # both find what is in the middle
    away = score.isel(element=[0, 2, 6, 8]).mean("element")
    assert float(away.sel(model="centered")) < 0.1
    assert float(away.sel(model="jittered")) > 0.7


def test_unknown_names_and_absent_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'centered'"):
        detector.load("centred")
    with pytest.raises(InputError, match=r"with 'scenes-centered\.safetensors'"):
        detector.load("centered", tmp_path)
