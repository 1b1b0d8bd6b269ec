"""Convolutional networks that are invariant to C_n or D_n by construction, in plain torch.

A regular group convolution has one feature map for each group element and field. Its kernel for
the element g is the base kernel transformed by g in the plane, with its input elements permuted by
g. Maps are ordered element by element, so that with `torch.channels_last` the fields of one pixel
and element are adjacent in memory, and statistics shared by the elements need no copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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

from .layout import images_in_layout

__all__ = ["FieldNorm", "GroupCNN", "GroupConv"]


def _checked_cnn_group(group: Group | str) -> Group:
    """Check that a group is C_n or D_n: closed, and acting on the plane about its center.

    >>> len(_checked_cnn_group("dihedral:4"))
    8
    >>> _checked_cnn_group("rotations3d:8")
    Traceback (most recent call last):
        ...
    orbical.errors.InputError: group: expected cyclic:n or dihedral:n, got 'rotations3d:8'
    """
    checked = as_group(group)
    planar = {*checked.parts} == {"plane"} and not checked.parts["plane"][:, :2, 2].any()
    if not (planar and checked.closed):
        raise InputError("group", "cyclic:n or dihedral:n", repr(checked.spec))
    return checked


def _moved_cnn_kernels(group: Group, size: int) -> Tensor:
    """Return each element as a linear map of kernels, `[K, size^2, size^2]`.

    A permutation where the element maps the grid onto itself. Elsewhere the kernel is interpolated
    linearly and then corrected, by the smallest change, so that its moments up to second order
    rotate exactly: these moments determine the convolution of a smooth image. On smooth images this
    is more than ten times closer to equivariance than interpolation alone.

    >>> import orbical as ob
    >>> quarter = _moved_cnn_kernels(ob.groups.cyclic(4), 3)[1]
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
    # One by one, so that the elements of C_8 that are in D4 are permutations, not resampled.
    grid = dihedral(4)
    place = int(grid.index_of(group[k : k + 1])[0])
    element = group[k : k + 1] if place < 0 else grid[place : place + 1]
    result: np.ndarray = Images().apply(element, pixels)[0].reshape(len(pixels), -1).numpy()
    return result


_Cache = tuple[tuple[Any, ...], Tensor, Tensor]
_EMPTY_CACHE: _Cache = ((), torch.empty(0), torch.empty(0))
"""The identity of a kernel, the kernel, and its filters."""


class GroupConv(nn.Module):
    """A regular group convolution: fields over a group in, fields over the group out.

    Args:
        group: C_n or D_n, as an object or as text.
        before: Number of input fields, with one map per element if `regular`, otherwise one map.
        after: Number of output fields, with one map per element.
        size: Odd width of the kernel; the size of the image does not change.
        regular: False for the first layer, whose input is an image.

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
        group = _checked_cnn_group(group)
        if size % 2 == 0:
            raise InputError("size", "an odd kernel width", size)
        count = len(group)
        self.size, self.order = size, count
        self.register_buffer("maps", _moved_cnn_kernels(group, size), persistent=False)
        out, into = np.divmod(np.arange(count**2), count)
        relative = group.index_of(group[out].inverse().compose(group[into]))  # g^-1 h
        source = out * count + relative if regular else np.arange(count)
        self.register_buffer("source", torch.as_tensor(source), persistent=False)
        inputs = before * (count if regular else 1)
        bound = math.sqrt(6 / (inputs * size * size))  # as He et al. 2015 have it for ReLU
        kernel = torch.empty(after, before, len(source) // count, size * size)
        self.kernel = nn.Parameter(kernel.uniform_(-bound, bound))
        self._cache = _EMPTY_CACHE

    def filters(self) -> Tensor:
        """Return the kernel of an ordinary convolution, `[K * after, K * before, size, size]`."""
        turned = torch.einsum("oihp,gpq->ghoiq", self.kernel, self.maps)
        ordered = turned.flatten(0, 1).index_select(0, self.source).unflatten(0, (self.order, -1))
        elements, inputs, after, before, _ = ordered.shape
        result: Tensor = ordered.transpose(1, 2).reshape(
            elements * after, inputs * before, self.size, self.size
        )
        return result

    def forward(self, images: Tensor) -> Tensor:
        """Convolve maps `[n, K * before, h, w]` to maps `[n, K * after, h, w]`."""
        fixed = not (torch.is_grad_enabled() or torch.compiler.is_compiling())
        filters = self._cached_filters() if fixed else self.filters()
        return functional.conv2d(images, filters, padding=self.size // 2)

    def _cached_filters(self) -> Tensor:
        """Return the filters of the last call if the kernel has not changed.

        On the CPU the values of the kernel are compared. On a GPU, where that would wait for the
        device, its address and version are: after a change through `.data`, call `eval()`.
        """
        kernel = self.kernel
        mark = (kernel.data_ptr(), kernel._version, self.maps.dtype)
        known, made_for, kept = self._cache
        if mark != known or not (kernel.is_cuda or torch.equal(made_for, kernel)):
            kept = self.filters().contiguous(memory_format=torch.channels_last)
            held = kernel.detach()  # kept alive, so that no other kernel gets its address
            self._cache = (mark, held if kernel.is_cuda else held.clone(), kept)
        return kept

    def train(self, mode: bool = True) -> GroupConv:
        """Switch between training and evaluation mode, and clear the cached filters."""
        self._cache = _EMPTY_CACHE
        return super().train(mode)


def _is_plain(images: Tensor) -> bool:
    """Check whether maps are stored channels last and no operation is recorded or compiled."""
    recorded = torch.is_grad_enabled() or torch.compiler.is_compiling()
    return not recorded and images.is_contiguous(memory_format=torch.channels_last)


class FieldNorm(nn.BatchNorm2d):
    """Equivariant batch norm: statistics are shared by all elements of a field.

    Args:
        fields: Number of fields.
        order: Number of group elements, K.

    Example:
        >>> FieldNorm(2, order=4)(torch.zeros(1, 8, 5, 5)).shape
        torch.Size([1, 8, 5, 5])
    """

    momentum: float
    num_batches_tracked: Tensor

    def __init__(self, fields: int, order: int) -> None:
        super().__init__(fields)
        self.order = order

    def forward(self, images: Tensor) -> Tensor:
        """Normalize maps `[n, K * fields, h, w]`."""
        count, _, height, width = images.shape
        if images.is_contiguous():  # elements become samples: a view
            samples = images.view(count * self.order, self.num_features, height, width)
            return self._normed(samples).view(images.shape)
        # Elements become columns: a view of maps that are stored channels last.
        if _is_plain(images):  # the same view in one operation, because each has a cost on a GPU
            across, fields = width * self.order, self.num_features
            shape = (count, fields, height, across)
            strides = (height * across * fields, 1, across * fields, fields)
            return self._normed(images.as_strided(shape, strides)).as_strided(
                images.shape, images.stride()
            )
        columns = images.permute(0, 2, 3, 1).reshape(count, height, -1, self.num_features)
        normed = self._normed(columns.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return normed.reshape(count, height, width, -1).permute(0, 3, 1, 2)

    def _normed(self, columns: Tensor) -> Tensor:
        if not self.training:
            return super().forward(columns)
        # Not cuDNN's kernel, which has one block of threads per field: fields are few.
        self.num_batches_tracked.add_(1)
        statistics = (self.running_mean, self.running_var)
        return torch.native_batch_norm(
            columns, self.weight, self.bias, *statistics, True, self.momentum, self.eps
        )[0]


class GroupCNN(nn.Module):
    """A classifier that is invariant to C_n or D_n: three group convolutions and two linear layers.

    Fields are averaged over the plane, and the maximum is taken over the group, which removes
    position and orientation. The invariance is exact for multiples of 90 degrees if the image is
    square and its side is divisible by 4; for other elements it is limited by interpolation, which
    `defect` measures. `GroupCNN("cyclic:1")` is the ordinary network of this width.

    Args:
        group: C_n or D_n, as an object or as text.
        classes: Number of classes.
        channels: Number of channels of the images.
        fields: Number of fields of the three convolutions; each has one feature map per element.
        hidden: Width of the linear layer.
        dropout: Dropout probability.

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
        self.group = _checked_cnn_group(group)
        order = len(self.group)
        layers: list[nn.Module] = []
        widths = (channels, *fields)
        for place, (before, after) in enumerate(zip(widths, fields, strict=False)):
            first = place == 0
            layers += [
                GroupConv(self.group, before, after, 5 if first else 3, regular=not first),
                FieldNorm(after, order),
                *([nn.MaxPool2d(2)] if place < len(fields) - 1 else []),
                nn.ReLU(inplace=True),  # commutes with the maximum, and is cheaper after it
            ]
        self.features = nn.Sequential(*layers)
        self.classify = nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(fields[-1], hidden), nn.LayerNorm(hidden)),
            *(nn.ReLU(), nn.Linear(hidden, classes)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Compute the logits `[n, classes]` of images `[n, channels, h, w]`."""
        result: Tensor = self.classify(self.pooled(images))
        return result

    def pooled(self, images: Tensor) -> Tensor:
        """Compute invariant features `[n, fields]`: mean over the plane, maximum over the group."""
        maps = self.features(images_in_layout(images))
        result: Tensor = maps.mean(dim=(2, 3)).unflatten(1, (len(self.group), -1)).amax(1)
        return result

    def defect(self, images: Tensor, group: Any = None) -> float:
        """Compute the largest change of the probabilities over a group.

        Args:
            images: Tensor `[n, channels, h, w]`.
            group: The group. By default, the network's own.

        Returns:
            The largest absolute difference of a probability.
        """
        group = self.group if group is None else group
        return equivariance_error(self, images, group=group, task=Classification()).largest
