"""The detector: its views, its loss and its training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.zoo import detector
from orbical.zoo._weights import read_zoo_header
from orbical_studies.zoo_training.detectors import Crops, loss_of, main, train, views, write

TINY = partial(detector.Detector, channels=(8, 8, 8, 8))


def test_weights_survive_a_file(tmp_path: Path) -> None:
    net = detector.Detector().eval()
    path = write(net, tmp_path / "a.safetensors", {"jitter": "0"})
    again = detector.read(path)
    assert read_zoo_header(path)["jitter"] == "0"
    for key, value in net.state_dict().items():
        if value.is_floating_point():
            assert torch.allclose(again.state_dict()[key], value, atol=1e-2), key


def crops(count: int = 6) -> Crops:
    made = ob.datasets.scenes(count, seed=3)
    pixels = (made["images"] * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    return Crops(pixels, made["objects"], torch.ones(count, 5, dtype=torch.bool))


def test_views_show_what_their_boxes_say() -> None:
    """Boxes are drawn from the pixels again: a marked key object lies where its box is."""
    material = crops()
    material.pixels.zero_()
    for pixels, objects in zip(material.pixels, material.objects, strict=True):
        left, top, right, bottom = (int(edge) + 32 for edge in objects[0, :4])
        pixels[top:bottom, left:right] = 255
    images, objects, _ = views(material, 16, 32, 128, torch.Generator().manual_seed(0))
    for image, (key, *_) in zip(images, objects, strict=True):
        rows, columns = (image.mean(0) > 0.2).nonzero(as_tuple=True)
        found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert torch.allclose(torch.stack(found).float(), key[:4].round())


def test_without_jitter_the_key_object_stays_in_the_middle() -> None:
    material = crops()
    _, still, _ = views(material, 32, 0, 128, torch.Generator().manual_seed(0))
    _, moved, _ = views(material, 32, 32, 128, torch.Generator().manual_seed(0))
    middle = (still[:, 0, :2] + still[:, 0, 2:4]) / 2
    assert float((middle - 64).abs().max()) < 6
    assert float(((moved[:, 0, :2] + moved[:, 0, 2:4]) / 2 - 64).abs().max()) > 20


def test_the_loss_asks_nothing_of_cells_in_other_objects_or_of_unknown_classes() -> None:
    objects = torch.full((1, 2, 5), torch.nan)
    objects[0, 0] = torch.tensor([50.0, 50, 78, 78, 0])
    known = torch.ones(1, 5, dtype=torch.bool)
    logits = torch.zeros(1, 256, 5, requires_grad=True)
    boxes = torch.tensor([[40.0, 40, 90, 90]]).expand(1, 256, 4)
    loss_of(logits, boxes, objects, known, 128).backward()
    corner = logits.grad[0, 0].clone()
    assert bool((corner > 0).all())
    objects[0, 1] = torch.tensor([0.0, 0, 20, 20, 1])
    known[0, 4] = False
    logits.grad = None
    loss_of(logits, boxes, objects, known, 128).backward()
    assert bool((logits.grad[0, 0] == 0).all())
    assert bool((logits.grad[0, :, 4] == 0).all())


def test_a_perfect_answer_costs_nothing() -> None:
    objects = torch.tensor([[[50.0, 50, 78, 78, 2]]])
    known = torch.ones(1, 5, dtype=torch.bool)
    boxes = objects[:, :, :4].expand(1, 256, 4)
    center = detector.cell_centers(128, 128)
    mine = ((center - 64).abs().amax(-1) <= 12).float()
    logits = torch.full((1, 256, 5), -30.0)
    logits[0, :, 2] = 60 * mine - 30
    assert float(loss_of(logits, boxes, objects, known, 128)) == pytest.approx(0, abs=1e-4)


def test_training_repeats_and_refuses_a_jitter_beyond_one() -> None:
    material = crops()
    first, again = (train(material, 0.5, TINY, 2, seed=1, batch=4) for _ in range(2))
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(InputError, match="jitter"):
        train(material, 1.5, TINY, 1)
    with pytest.raises(InputError, match="steps"):
        train(material, 0.5, TINY, 0)


def test_one_command_trains_both_detectors_of_scenes(tmp_path: Path) -> None:
    main(f"--out {tmp_path} --scenes 2 --steps 1 --batch 2 --device cpu".split())
    for name, jitter in (("centered", "0.0"), ("jittered", "1.0")):
        header = detector.provenance(name, tmp_path)
        assert header["training set"] == "orbical.datasets.scenes(2, seed=1)"
        assert (header["jitter"], header["steps"], header["seed"]) == (jitter, "1", "0")


def test_a_training_past_its_time_stops_and_tells_its_steps() -> None:
    taken: list[int] = []

    def follow(step: int, loss: torch.Tensor) -> None:
        taken.append(step)

    train(crops(), 0.5, TINY, 3, batch=2, after_step=follow)
    train(crops(), 0.5, TINY, 10**6, batch=2, seconds=1e-9, after_step=follow)
    assert taken == [1, 2, 3, 1]


def test_scenes_hold_what_their_boxes_say() -> None:
    made = ob.datasets.scenes(8, seed=4)
    again = ob.datasets.scenes(3, seed=4)
    assert torch.equal(made["images"][:3], again["images"])  # not of how many are asked for
    first = made["objects"][:, 0]
    assert np.allclose((first[:, 0] + first[:, 2]) / 2, 64, atol=8)
    assert bool(((first[:, 2:4] - first[:, :2]) >= 10).all())
    with pytest.raises(InputError, match="count"):
        ob.datasets.scenes(0)
