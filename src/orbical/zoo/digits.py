"""Two networks for MNIST digits that differ only in the rotations seen in training.

Both have the same architecture, data, seed and budget. `plain` was trained on upright digits only;
`augmented` was trained on digits rotated by a new random angle each time. Their weights ship with
the package; `python -m orbical_studies.zoo_training.digits --out FOLDER` trains them again.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from . import _weights
from .layout import images_in_layout

__all__ = ["CHANNELS", "DigitCNN", "augmented", "load", "plain", "provenance", "weights_file"]

NAMES = ("plain", "augmented")
CHANNELS = (12, 16, 24, 32, 48, 64)
POOLED = (0, 2)
FILES = _weights.WeightFiles("digits", NAMES, "orbical_studies.zoo_training.digits")
weights_file, provenance = FILES.weights_file, FILES.provenance


class DigitCNN(nn.Module):
    """Six cascaded convolutions, each with batch norm and ReLU, and a linear layer.

    The first and the third are followed by 2 x 2 max pooling; global average pooling precedes the
    linear layer. 54,718 parameters.

    Example:
        >>> import torch
        >>> DigitCNN()(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])

    Paper: NERO, the digit recognition experiment (six cascaded convolutions); the widths are
    our choice, so that a scan of 72 rotations takes seconds on a CPU.
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(zip((1, *CHANNELS), CHANNELS, strict=False)):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)]
            # Max pooling commutes with ReLU, which then has a quarter of the pixels.
            layers += [nn.MaxPool2d(2)] if i in POOLED else []
            layers += [nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.classify = nn.Linear(CHANNELS[-1], 10)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the logits.

        Args:
            images: Tensor `[n, 1, h, w]`, float32 in 0..1.

        Returns:
            Logits `[n, 10]`.
        """
        result: Tensor = self.classify(self.features(images_in_layout(images)).mean(dim=(2, 3)))
        return result


def load(name: str, folder: str | Path | None = None) -> DigitCNN:
    """Load one of the two trained networks, `"plain"` or `"augmented"`.

    Args:
        name: Name of the network.
        folder: Folder with the weights. By default, those that ship with the package.

    Returns:
        The network, in evaluation mode.

    Raises:
        InputError: If the name is unknown or the file does not exist.

    Example:
        >>> import torch
        >>> load("plain")(torch.zeros(1, 1, 28, 28)).shape
        torch.Size([1, 10])
    """
    return _weights.restore_zoo_weights(DigitCNN(), weights_file(name, folder))


def plain() -> DigitCNN:
    """Load the network trained on upright digits; for commands, `orbical.zoo.digits:plain()`.

    Returns:
        The network, in evaluation mode.

    Example:
        >>> plain().training
        False
    """
    return load("plain")


def augmented() -> DigitCNN:
    """Load the network trained on rotated digits; for commands, `orbical.zoo.digits:augmented()`.

    Returns:
        The network, in evaluation mode.

    Example:
        >>> augmented().training
        False
    """
    return load("augmented")
