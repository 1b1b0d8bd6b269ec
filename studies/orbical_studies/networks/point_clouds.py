"""Classifiers of point clouds with attention: among neighborhoods of points, or within them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class PointAttention(nn.Module):
    """Attention among neighborhoods of points, then the maximum and the mean, then two layers.

    Each of the first `patches` points of a cloud, whose points must be in random order, is the
    center of a token: its nearest points, relative to it and as they are, through a small network
    and a maximum, plus an embedding of where the center lies. Rotating a cloud keeps the
    neighborhoods and changes their coordinates, so the output changes, as that of the point
    transformer of the NERO paper. Unlike there it also changes with the order of the points, which
    decides where the centers are; only the order of all others does not matter.

    Args:
        classes: Number of classes.
        patches: Number of tokens.
        neighbors: Number of points of a token.
        width: Width of a token.
        layers: Number of attention layers.

    Example:
        >>> PointAttention(10)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 10])

    Paper: tokens as in Yu et al. 2022 (Point-BERT), attention as in Zhao et al. 2021 among all
    tokens; the Point Transformer of the latter attends within neighborhoods.
    """

    def __init__(
        self,
        classes: int,
        patches: int = 64,
        neighbors: int = 16,
        width: int = 96,
        layers: int = 3,
    ) -> None:
        super().__init__()
        self.patches, self.neighbors = patches, neighbors
        self.shape = nn.Sequential(
            *(nn.Linear(6, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()),
            nn.Linear(width, width),
        )
        self.place = nn.Sequential(nn.Linear(3, width), nn.GELU(), nn.Linear(width, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.attend = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.classify = nn.Sequential(
            *(nn.Linear(2 * width, width, bias=False), nn.BatchNorm1d(width)),
            *(nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, classes)),
        )

    def forward(self, clouds: Tensor) -> Tensor:
        """Compute the logits `[n, classes]` of clouds `[n, points, 3]`."""
        centers = clouds[:, : self.patches]
        near = torch.cdist(centers, clouds).topk(self.neighbors, largest=False).indices
        rows = torch.arange(len(clouds), device=clouds.device)[:, None, None]
        points = clouds[rows, near]
        both = torch.cat([points - centers[:, :, None], points], -1)
        shape = self.shape(both.flatten(0, 2)).unflatten(0, both.shape[:3]).amax(2)
        tokens = self.attend(shape + self.place(centers))
        result: Tensor = self.classify(torch.cat([tokens.amax(1), tokens.mean(1)], 1))
        return result


def gathered(values: Tensor, rows: Tensor) -> Tensor:
    """Return the rows `[n, ..., c]` of values `[n, points, c]` for indices `[n, ...]`."""
    flat = rows.flatten(1)[..., None].expand(-1, -1, values.shape[-1])
    return values.gather(1, flat).unflatten(1, rows.shape[1:])


@torch.no_grad()
def distances(points: Tensor) -> Tensor:
    """Return squared distances `[n, points, points]` of points `[n, points, 3]`.

    Each is computed by itself, so that the order of the points does not change it.
    """
    x, y, z = ((axis[:, :, None] - axis[:, None]).square_() for axis in points.unbind(-1))
    return x.add_(y).add_(z)


@torch.no_grad()
def spread_points(points: Tensor, apart: Tensor, count: int) -> Tensor:
    """Choose points that lie far apart, `[n, count]`: each is the farthest from those before.

    The first is the farthest from the center, so that the choice does not depend on the order of
    the points.

    >>> points = torch.tensor([[[0.0, 0, 0], [0.1, 0, 0], [2.0, 0, 0]]])
    >>> spread_points(points, distances(points), 2).tolist()
    [[2, 0]]
    """
    far = (points - points.mean(1, keepdim=True)).square().sum(-1)
    rows = torch.arange(len(points), device=points.device)
    chosen = [far.argmax(1)]
    far = torch.full_like(far, torch.inf)
    for _ in range(count - 1):
        far = torch.minimum(far, apart[rows, chosen[-1]])
        chosen.append(far.argmax(1))
    return torch.stack(chosen, 1)


def layers(before: int, after: int) -> nn.Sequential:
    """Return a linear layer, a norm over channels and a ReLU, for values `[..., channels]`."""
    return nn.Sequential(nn.Linear(before, after), nn.LayerNorm(after), nn.ReLU())


class VectorAttention(nn.Module):
    """Attention of each point to its neighbors with one weight for each channel, and a residual.

    Args:
        width: Channels of a point.

    Paper: Zhao et al. 2021, "Point Transformer", eqs. 3 and 4: the softmax over neighbors of
    `weigh(query_i - key_j + place_ij)` times `value_j + place_ij`, where `place_ij` is a function
    of the difference of coordinates.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.after = layers(width, width), nn.Linear(width, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.place = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.weigh = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, points: Tensor, features: Tensor, near: Tensor) -> Tensor:
        """Return features `[n, points, width]`; `near` holds the neighbors of each point."""
        inner = self.before(features)
        place = self.place(points[:, :, None] - gathered(points, near))
        key, value = (gathered(layer(inner), near) for layer in (self.key, self.value))
        weights = self.weigh(self.query(inner)[:, :, None] - key + place).softmax(2)
        result: Tensor = features + self.after((weights * (value + place)).sum(2))
        return result


class PointTransformer(nn.Module):
    """A point transformer for classification: attention at several resolutions, then the mean.

    At each resolution every point attends to its neighbors. Between two of them points that lie far
    apart are kept, each with the maximum over its neighbors. The output does not depend on the
    order of the points. Rotating a cloud keeps neighborhoods and changes differences of
    coordinates, so it changes the output.

    Args:
        classes: Number of classes.
        widths: Channels at each resolution; each has a quarter of the points of the one before.
        neighbors: Number of neighbors of a point, itself included.

    Example:
        >>> PointTransformer(10)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 10])

    Paper: Zhao et al. 2021, with three resolutions of one layer each in place of five of up to six;
    used in the NERO paper, section 3.3.
    """

    def __init__(
        self, classes: int, widths: Sequence[int] = (32, 64, 128), neighbors: int = 16
    ) -> None:
        super().__init__()
        self.neighbors = neighbors
        self.embed = layers(3, widths[0])
        self.attend = nn.ModuleList(VectorAttention(width) for width in widths)
        self.shrink = nn.ModuleList(layers(3 + one, other) for one, other in pairwise(widths))
        self.classify = nn.Sequential(
            *(nn.Linear(widths[-1], widths[-1]), nn.BatchNorm1d(widths[-1]), nn.ReLU()),
            *(nn.Dropout(0.3), nn.Linear(widths[-1], classes)),
        )

    def forward(self, clouds: Tensor) -> Tensor:
        """Compute the logits `[n, classes]` of clouds `[n, points, 3]`."""
        points, features, apart = clouds, self.embed(clouds), distances(clouds)
        for place, attend in enumerate(self.attend):
            if place:
                chosen = spread_points(points, apart, max(1, points.shape[1] // 4))
                near = self._nearest(gathered(apart, chosen))
                centers = gathered(points, chosen)
                shifts = gathered(points, near) - centers[:, :, None]
                joined = torch.cat([shifts, gathered(features, near)], -1)
                points, features = centers, self.shrink[place - 1](joined).amax(2)
                apart = distances(points)
            features = attend(points, features, self._nearest(apart))
        result: Tensor = self.classify(features.mean(1))
        return result

    def _nearest(self, apart: Tensor) -> Tensor:
        """Return the indices of the nearest points in each row of distances."""
        count = min(self.neighbors, apart.shape[-1])
        return apart.topk(count, largest=False, sorted=False).indices
