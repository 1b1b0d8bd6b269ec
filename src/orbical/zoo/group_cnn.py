"""Convolutional networks that are invariant to C_n or D_n by construction, in plain torch.

A regular group convolution holds one feature map for each field and group element. Its kernel for
the element g is the base kernel moved by g in the plane, with its input elements permuted by g.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from orbical.actions import Images
from orbical.errors import InputError
from orbical.groups import Group, as_group, dihedral
from orbical.tasks import Classification
from orbical.testing import equivariance_error


def planar_point_group(group: Group | str) -> Group:
    """Check that a group is C_n or D_n: closed, and moving the plane alone about its centre.

    >>> len(planar_point_group("dihedral:4"))
    8
    >>> planar_point_group("rotations3d:8")
    Traceback (most recent call last):
        ...
    orbical.errors.InputError: group: 'rotations3d:8' given, cyclic:n or dihedral:n expected
    """
    checked = as_group(group)
    planar = {*checked.parts} == {"plane"} and not checked.parts["plane"][:, :2, 2].any()
    if not (planar and checked.closed):
        raise InputError(f"group: {checked.spec!r} given, cyclic:n or dihedral:n expected")
    return checked


def moved_kernels(group: Group, size: int) -> Tensor:
    """Give each element as a linear map of kernels, `[K, size^2, size^2]`: row k moves pixel k.

    An array move where the element maps the grid onto itself. Elsewhere the kernel is interpolated
    linearly and then corrected, by the least change, so that its moments up to the second turn
    exactly: a convolution sees a smooth image through these moments. On smooth images this is more
    than ten times closer to equivariance than interpolation alone.

    >>> import orbical as ob
    >>> quarter = moved_kernels(ob.groups.cyclic(4), 3)[1]
    >>> bool((quarter.sum(1) == 1).all())
    True
    """
    axis = (np.arange(size) - (size - 1) / 2) / max(1, size // 2)
    x, y = (part.ravel() for part in np.meshgrid(axis, -axis))  # y points up, as in the groups
    moments = _monomials(x, y)
    pixels = torch.eye(size * size, dtype=torch.float64).view(-1, 1, size, size)
    maps = []
    for k, linear in enumerate(group.linear("plane")):
        moved = _interpolated(group, k, pixels)
        exact = _monomials(*(linear @ np.stack((x, y))))
        maps.append(moved + (np.linalg.pinv(moments) @ (exact - moments @ moved.T)).T)
    return torch.as_tensor(np.stack(maps)).float()


def _monomials(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y])


def _interpolated(group: Group, k: int, pixels: Tensor) -> np.ndarray:
    # One by one, so that the elements of C_8 that lie in D4 are array moves and not resampled.
    grid = dihedral(4)
    place = int(grid.index_of(group[k : k + 1])[0])
    element = group[k : k + 1] if place < 0 else grid[place : place + 1]
    return Images().apply(element, pixels)[0].reshape(len(pixels), -1).numpy()


class GroupConv(nn.Module):
    """A regular group convolution: fields over a group in, fields over the group out.

    Args:
        group: C_n or D_n.
        before: fields of the input; each has one map, or one map an element if `regular`.
        after: fields of the output, each with one map an element.
        size: odd width of the kernel; the image keeps its size.
        regular: False for the first layer, whose input is a plain image.

    Example:
        >>> GroupConv("cyclic:4", 3, 8, 5, regular=False)(torch.zeros(1, 3, 16, 16)).shape
        torch.Size([1, 32, 16, 16])

    Paper: Cohen and Welling 2016.
    """

    maps: Tensor
    source: Tensor

    def __init__(
        self, group: Group | str, before: int, after: int, size: int, regular: bool = True
    ) -> None:
        super().__init__()
        group = planar_point_group(group)
        if size % 2 == 0:
            raise InputError(f"size: {size} given, an odd kernel width expected")
        count = len(group)
        self.size, self.order = size, count
        self.register_buffer("maps", moved_kernels(group, size), persistent=False)
        out, into = np.divmod(np.arange(count**2), count)
        relative = group.index_of(group[out].inverse().compose(group[into]))  # g^-1 h
        source = torch.zeros(count, 1, dtype=torch.int64)
        if regular:
            source = torch.as_tensor(relative).view(count, count)
        self.register_buffer("source", source, persistent=False)
        inputs = before * (count if regular else 1)
        bound = math.sqrt(6 / (inputs * size * size))  # as He et al. 2015 have it for ReLU
        kernel = torch.empty(after, before, source.shape[1], size * size)
        self.kernel = nn.Parameter(kernel.uniform_(-bound, bound))

    def filters(self) -> Tensor:
        """Give the kernel of an ordinary convolution, `[after * K, before * K, size, size]`."""
        turned = torch.einsum("oihp,gpq->goihq", self.kernel, self.maps)
        chosen = self.source[:, None, None, :, None].expand(*turned.shape[:3], -1, turned.shape[-1])
        ordered = turned.gather(3, chosen).transpose(0, 1)
        after, _, before, inputs, _ = ordered.shape
        return ordered.reshape(after * self.order, before * inputs, self.size, self.size)

    def forward(self, images: Tensor) -> Tensor:
        """Fields `[n, after * K, h, w]` of fields `[n, before * K, h, w]`."""
        return functional.conv2d(images, self.filters(), padding=self.size // 2)


class FieldNorm(nn.BatchNorm3d):
    """Batch norm whose statistics are shared by all elements of a field, so that it is equivariant.

    Example:
        >>> FieldNorm(2, order=4)(torch.zeros(1, 8, 5, 5)).shape
        torch.Size([1, 8, 5, 5])
    """

    def __init__(self, fields: int, order: int) -> None:
        super().__init__(fields)
        self.order = order

    def forward(self, images: Tensor) -> Tensor:
        """Normalise fields `[n, fields * K, h, w]`."""
        fields = images.unflatten(1, (self.num_features, self.order))
        return super().forward(fields).flatten(1, 2)


class GroupCNN(nn.Module):
    """A classifier that is invariant to C_n or D_n: three group convolutions and two linear layers.

    Fields are averaged over the plane and the maximum is taken over the group, so that nothing of
    the position or the orientation is left. Exact for the elements that are multiples of 90 degrees
    if the image is square and its side divisible by 4; other elements are as good as the
    interpolation: `defect` measures it. `GroupCNN("cyclic:1")` is the plain network of this width.

    Args:
        group: C_n or D_n, as an object or as text.
        classes: number of classes.
        channels: channels of the images.
        fields: fields of the three convolutions; each holds one feature map an element.
        hidden: width of the linear layer.
        dropout: share of features dropped in training.

    Example:
        >>> model = GroupCNN("cyclic:4", classes=2, fields=(2, 2, 2)).eval()
        >>> model.defect(torch.rand(2, 3, 16, 16)) < 1e-5
        True

    Paper: the networks of the equivariant-calibration paper, section 4.7.2, which flatten the
    feature map instead and are therefore not invariant.
    """

    def __init__(
        self,
        group: Group | str = "cyclic:1",
        classes: int = 3,
        channels: int = 3,
        fields: Sequence[int] = (8, 16, 32),
        hidden: int = 256,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.group = planar_point_group(group)
        order = len(self.group)
        layers: list[nn.Module] = []
        widths = (channels, *fields)
        for place, (before, after) in enumerate(zip(widths, fields, strict=False)):
            first = place == 0
            layers += [
                GroupConv(self.group, before, after, 5 if first else 3, regular=not first),
                *(FieldNorm(after, order), nn.ReLU(inplace=True)),
                *([nn.MaxPool2d(2)] if place < len(fields) - 1 else []),
            ]
        self.features = nn.Sequential(*layers)
        self.classify = nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(fields[-1], hidden), nn.LayerNorm(hidden)),
            *(nn.ReLU(), nn.Linear(hidden, classes)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits `[n, classes]` of images `[n, channels, h, w]`."""
        fields = self.features(images).mean(dim=(2, 3)).unflatten(1, (-1, len(self.group)))
        return self.classify(fields.amax(-1))

    def defect(self, images: Tensor, group: Any = None) -> float:
        """Measure the largest change of the probabilities over a group, its own unless given."""
        error = equivariance_error(
            self, images, group=self.group if group is None else group, task=self._task
        )
        return error.largest

    @cached_property
    def _task(self) -> Classification:
        return Classification()
