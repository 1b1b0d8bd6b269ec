"""Classifiers of 32 x 32 images that train in seconds to minutes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class LeNet5(nn.Module):
    """LeNet-5 with ReLU and maximum pooling: two convolutions and three linear layers.

    Args:
        classes: Number of classes.
        channels: Channels of the images, which are 32 x 32.

    Example:
        >>> import torch
        >>> LeNet5()(torch.zeros(2, 1, 32, 32)).shape
        torch.Size([2, 10])

    Paper: LeCun et al. 1998; used for MNIST in the ESD paper, section 5.1.
    """

    def __init__(self, classes: int = 10, channels: int = 1) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(channels, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        )
        self.classify = nn.Sequential(
            *(nn.Linear(16 * 5 * 5, 120), nn.ReLU()),
            *(nn.Linear(120, 84), nn.ReLU()),
            nn.Linear(84, classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return logits `[n, classes]` of images `[n, channels, 32, 32]`."""
        return self.classify(self.features(images).flatten(1))


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with batch norm, added to the input (projected where shapes differ).

    Args:
        before: Channels of the input.
        after: Channels of the output.
        stride: Of the first convolution.

    Example:
        >>> import torch
        >>> ResidualBlock(8, 16, stride=2)(torch.zeros(1, 8, 4, 4)).shape
        torch.Size([1, 16, 2, 2])

    Paper: He et al. 2016, the basic block.
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            *(nn.BatchNorm2d(after), nn.ReLU()),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, images: Tensor) -> Tensor:
        """Return the output `[n, after, h / stride, w / stride]` of input `[n, before, h, w]`."""
        return functional.relu(self.branch(images) + self.shortcut(images))


class CompactResNet(nn.Module):
    """A residual network that halves the image early, so that its time goes into wide layers.

    A 3 x 3 stem, then one basic block a width, each halving the image, a global average and a
    linear layer. With the default widths it has 1.2 million parameters and 45 million
    multiplications an image of 32 x 32.

    Args:
        classes: Number of classes.
        widths: Channels of the stem, then of each block.

    Example:
        >>> import torch
        >>> CompactResNet(widths=(4, 8))(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Paper: He et al. 2016; stands where the ESD paper has ResNet-50 for CIFAR-10.
    """

    def __init__(self, classes: int = 10, widths: Sequence[int] = (32, 64, 128, 256)) -> None:
        super().__init__()
        stem = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
        blocks = [ResidualBlock(before, after, stride=2) for before, after in pairwise(widths)]
        self.features = nn.Sequential(stem, nn.BatchNorm2d(widths[0]), nn.ReLU(), *blocks)
        self.classify = nn.Linear(widths[-1], classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits `[n, classes]` of images `[n, 3, h, w]`."""
        return self.classify(self.features(images).mean(dim=(2, 3)))


class ResNet9(nn.Module):
    """A residual network for short trainings: three groups of which two have a residual block.

    A 3 x 3 stem; three convolutions, each doubling the width and followed by a pooling; two more
    convolutions with a residual sum after the first and the third; the largest value of each
    channel and a linear layer, whose logits are divided by 8.

    Args:
        classes: Number of classes.
        width: Channels of the stem; the last group has eight times as many.

    Example:
        >>> import torch
        >>> ResNet9(width=4)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Paper: after He et al. 2016, in the form that entered the DAWNBench competition (Page 2018).
    """

    def __init__(self, classes: int = 10, width: int = 64) -> None:
        super().__init__()
        groups: list[nn.Module] = [_convolution(3, width)]
        for before, residual in ((width, True), (2 * width, False), (4 * width, True)):
            after = 2 * before
            groups.append(_convolution(before, after, nn.MaxPool2d(2)))
            if residual:
                inner = nn.Sequential(_convolution(after, after), _convolution(after, after))
                groups.append(Residual(inner))
        self.features = nn.Sequential(*groups, nn.AdaptiveMaxPool2d(1), nn.Flatten())
        self.classify = nn.Linear(8 * width, classes, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits `[n, classes]` of images `[n, 3, h, w]`."""
        return self.classify(self.features(images)) / 8


class Residual(nn.Module):
    """The sum of the input and of what `inner` makes of it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        """Return the output, of the shape of the input."""
        return images + self.inner(images)


def _convolution(before: int, after: int, *pooling: nn.Module) -> nn.Sequential:
    """Pool before the norm, which then has a quarter of the values to go through."""
    layer = nn.Conv2d(before, after, 3, padding=1, bias=False)
    return nn.Sequential(layer, *pooling, nn.BatchNorm2d(after), nn.ReLU(inplace=True))


class WhitenedNet(nn.Module):
    """Six convolutions behind a fixed one that decorrelates patches of 2 x 2 pixels.

    Neighboring pixels are alike; a first layer that makes its outputs uncorrelated saves the others
    from learning to. Its filters are the principal directions of the patches and their negatives,
    each divided by its standard deviation, and are not trained. Then three groups of two 3 x 3
    convolutions with batch norm and GELU, the first of each pooled, the largest value of each
    channel, and a linear layer. The convolutions begin as the identity on as many channels as come
    in.

    Args:
        images: `[n, 3, h, w]`, from which the patches are taken.
        classes: Number of classes.
        widths: Channels of the groups.

    Example:
        >>> images = torch.rand(64, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        >>> WhitenedNet(images, widths=(8, 8, 8))(images[:2]).shape
        torch.Size([2, 10])

    Paper: after Jordan 2024, "94% on CIFAR-10 in 3.29 seconds on a single GPU".
    """

    def __init__(
        self, images: Tensor, classes: int = 10, widths: Sequence[int] = (64, 256, 256)
    ) -> None:
        super().__init__()
        filters = _whitening_filters(images)
        self.whiten = nn.Conv2d(3, len(filters), 2)
        with torch.no_grad():
            self.whiten.weight.copy_(filters).requires_grad_(False)
        groups = []
        for before, after in pairwise((len(filters), *widths)):
            groups += [_begun_as_identity(before, after, nn.MaxPool2d(2))]
            groups += [_begun_as_identity(after, after)]
        last = (nn.AdaptiveMaxPool2d(1), nn.Flatten())
        self.features = nn.Sequential(self.whiten, nn.GELU(), *groups, *last)
        self.classify = nn.Linear(widths[-1], classes, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits `[n, classes]` of images `[n, 3, h, w]`."""
        return self.classify(self.features(images)) / 9


def _whitening_filters(images: Tensor, size: int = 2, least: float = 5e-4) -> Tensor:
    """Return filters `[2 d, c, size, size]` whose outputs are uncorrelated, d = c size^2.

    Args:
        images: `[n, c, h, w]`.
        size: Side of a patch.
        least: Added to each variance.

    Example:
        >>> noise = torch.randn(50, 3, 16, 16, generator=torch.Generator().manual_seed(0))
        >>> filters = _whitening_filters(noise)
        >>> outputs = functional.conv2d(noise, filters).transpose(0, 1).flatten(1)
        >>> bool((torch.cov(outputs)[:12, :12] - torch.eye(12)).abs().max() < 0.01)
        True
    """
    patches = functional.unfold(images, size).transpose(1, 2).flatten(0, 1)
    variances, directions = torch.linalg.eigh(torch.cov(patches.T.double()))
    filters = (directions / (variances + least).sqrt()).T.unflatten(1, (-1, size, size))
    return torch.cat([filters, -filters]).to(images.dtype)


def _begun_as_identity(before: int, after: int, *pooling: nn.Module) -> nn.Sequential:
    layer = nn.Conv2d(before, after, 3, padding=1, bias=False)
    nn.init.dirac_(layer.weight[:before].data)
    norm = nn.BatchNorm2d(after, eps=1e-12, momentum=0.4)
    norm.weight.requires_grad_(False)
    return nn.Sequential(layer, *pooling, norm, nn.GELU())
