from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import ndimage

from orbical import datasets
from orbical.errors import InputError
from orbical.zoo import digits
from orbical_studies.zoo_training import digits as retraining


@pytest.fixture(scope="module")
def few() -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = datasets.mnist("train")
    return images[:256], labels[:256]


def test_augmented_reads_digits_at_every_angle_and_plain_does_not() -> None:
    images, labels = (part[::6] for part in datasets.mnist("test"))
    angles = [2 * math.pi * k / 12 for k in range(12)]
    over_the_circle = {
        name: np.mean([retraining.accuracy(digits.load(name), images, labels, a) for a in angles])
        for name in digits.NAMES
    }
    assert over_the_circle["augmented"] >= 0.92
    assert over_the_circle["plain"] < 0.6


@pytest.mark.parametrize("name", digits.NAMES)
def test_shipped_weights_are_small_and_say_how_they_were_made(name: str) -> None:
    facts = digits.provenance(name)
    assert digits.weights_file(name).stat().st_size < 1_000_000
    assert facts["seed"] == str(retraining.SEED)
    assert facts["epochs"] == str(retraining.EPOCHS)
    assert facts["rotate"] == str(name == "augmented")
    assert set(facts) >= {"torch", "threads", "training set", "network"}


@pytest.mark.parametrize("name", digits.NAMES)
def test_the_recorded_accuracy_is_the_measured_one(name: str) -> None:
    images, labels = datasets.mnist("test")
    recorded = float(digits.provenance(name)["test accuracy upright"])
    measured = retraining.accuracy(digits.load(name), images, labels)
    # Another processor may sum in another order and flip a digit or two.
    assert abs(measured - recorded) <= 0.003
    assert measured >= {"plain": 0.97, "augmented": 0.9}[name]


def test_training_learns(few: tuple[torch.Tensor, torch.Tensor]) -> None:
    losses: list[float] = []
    retraining.train(*few, False, 8, 0, lambda _, loss: losses.append(loss))
    assert losses[-1] < 0.6 * losses[0]


def test_training_is_the_same_for_a_seed_and_leaves_the_random_state(
    few: tuple[torch.Tensor, torch.Tensor],
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two, other = (retraining.train(*few, True, 1, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not torch.equal(one["classify.weight"], other["classify.weight"])


@pytest.mark.parametrize("degrees", [30.0, 90.0, 200.0])
def test_turn_is_a_counter_clockwise_bilinear_rotation(degrees: float) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.zeros(2, 1, 28, 28)
    images[:, :, 8:20, 8:20] = torch.rand(2, 1, 12, 12, generator=generator)
    angles = torch.full((2,), math.radians(degrees))
    ours = retraining.turn(images, angles)[:, 0].numpy()
    # scipy's first axis is the row, which points down: its positive angle is counter-clockwise.
    theirs = [ndimage.rotate(x[0].numpy(), degrees, reshape=False, order=1) for x in images]
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_each_image_is_turned_by_its_own_angle() -> None:
    images = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    quarters = torch.arange(4) * (math.pi / 2)
    for k, image in enumerate(retraining.turn(images, quarters)):
        torch.testing.assert_close(image, images[k].rot90(k, (1, 2)), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("images", "labels", "epochs", "message"),
    [
        (torch.zeros(0, 1, 28, 28), torch.zeros(0, dtype=torch.int64), 1, "images: expected shape"),
        (torch.zeros(4, 3, 28, 28), torch.arange(4), 1, "images: expected shape"),
        (torch.zeros(4, 1, 28, 28), torch.arange(3), 1, "labels: .* got torch.int64 of shape"),
        (torch.zeros(4, 1, 28, 28), torch.zeros(4), 1, "labels: .* got torch.float32"),
        (torch.zeros(4, 1, 28, 28), torch.arange(8, 12), 1, "labels: .* got 8 to 11"),
        (torch.zeros(4, 1, 28, 28), torch.arange(4), 0, "epochs: expected an integer >= 1, got 0"),
    ],
)
def test_unusable_arguments_are_refused_by_name(
    images: torch.Tensor, labels: torch.Tensor, epochs: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        retraining.train(images, labels, False, epochs)


def test_the_command_writes_what_load_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels = datasets.mnist("train")
    few = {"train": 128, "test": 16}  # the latter are rotated 72 times
    monkeypatch.setattr(datasets, "mnist", lambda s: (images[: few[s]], labels[: few[s]]))
    retraining.main(["--out", str(tmp_path / "new"), "--epochs", "1", "--seed", "7"])
    again = retraining.train(images[:128], labels[:128], True, 1, 7)
    loaded = digits.load("augmented", tmp_path / "new")
    assert torch.equal(loaded(images[:8]), again(images[:8]))
    assert digits.provenance("plain", tmp_path / "new")["seed"] == "7"
    assert "over 72 rotations" in capsys.readouterr().out
