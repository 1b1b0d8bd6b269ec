from __future__ import annotations

from pathlib import Path

import pytest
import torch

from orbical.errors import InputError
from orbical.zoo import digits


def test_the_network_is_six_convolutions_with_batch_norm_and_relu() -> None:
    layers = list(digits.DigitCNN().features)
    kinds = [type(layer).__name__ for layer in layers if not isinstance(layer, torch.nn.MaxPool2d)]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU"] * 6


def test_absent_weights_say_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"python -m orbical_studies\.zoo_training\.digits --out"):
        digits.load("plain", tmp_path)
