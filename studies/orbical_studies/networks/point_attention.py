"""A classifier of point clouds with attention: tokens are small neighborhoods of points."""

from __future__ import annotations

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
