"""Networks that predict a vector field in space with its uncertainty: one equivariant, one not.

What an O(3)-equivariant network can predict at one point x is known. Rotations about x and mirrors
that contain x leave the input unchanged, so they must leave the output unchanged:

    mean(x) = c(|x|) x,    covariance(x) = a(|x|) 1 + b(|x|) x x^T

A linear equivariant map has a constant c; `VectorFieldNet` learns c as a function of the length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orbical import training

HEADS = {"scalar": training.VectorVarianceHead, "full": training.VectorCovarianceHead}
"""Forms of uncertainty that can rotate with a vector, and their heads."""


class GatedVectors(nn.Module):
    """A layer on scalars and vectors that commutes with O(3): scalars from norms, vectors gated.

        u_k = sum_j W_kj v_j,   s' = silu(A [s, |u|] + b),   v'_k = (G s' + g)_k u_k

    Args:
        scalars: Number of input scalars.
        vectors: Number of input vectors.
        hidden: Number of output scalars.
        channels: Number of output vectors.

    >>> _ = torch.manual_seed(0)
    >>> layer = GatedVectors(4, 2, hidden=8, channels=3)
    >>> s, v = layer(torch.randn(5, 4), torch.randn(5, 2, 3))
    >>> s.shape, v.shape
    (torch.Size([5, 8]), torch.Size([5, 3, 3]))
    """

    def __init__(self, scalars: int, vectors: int, hidden: int, channels: int) -> None:
        super().__init__()
        self.mix = nn.Linear(vectors, channels, bias=False)
        self.mixed_scalars = nn.Linear(scalars + channels, hidden)
        self.gate = nn.Linear(hidden, channels)

    def forward(self, scalars: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Map `[n, scalars]` and `[n, vectors, 3]` to `[n, hidden]` and `[n, channels, 3]`."""
        mixed = self.mix(vectors.mT).mT
        norms = (mixed.square().sum(-1) + 1e-12).sqrt()  # with a gradient at 0
        passed = nn.functional.silu(self.mixed_scalars(torch.cat([scalars, norms], -1)))
        return passed, self.gate(passed)[..., None] * mixed


class VectorFieldNet(nn.Module):
    """A vector field with its uncertainty, equivariant under rotations and mirrors of space.

    Two gated layers, then a head of `orbical.training`. Train with `losses.beta_nll` (scalar) or
    `losses.covariance_nll` (full), scan with `tasks.Regression(actions.Vectors(), "vector",
    uncertainty="variance")` or `"covariance"`.

    Args:
        variance: `"scalar"`, one variance for all coordinates, or `"full"`, a covariance.
        hidden: Width of the scalars (32 in the paper).
        channels: Number of vectors.

    >>> _ = torch.manual_seed(0)
    >>> net, x = VectorFieldNet(), torch.randn(6, 3)
    >>> mean, variance = net(x)
    >>> mean.shape, variance.shape
    (torch.Size([6, 3]), torch.Size([6, 1]))
    >>> torch.allclose(net(-x).mean, -mean, atol=1e-6)
    True

    Paper: Berman et al., section 6.1.1, whose network is linear in x and predicts `c x`.
    """

    def __init__(self, variance: str = "scalar", hidden: int = 32, channels: int = 8) -> None:
        super().__init__()
        self.first = GatedVectors(0, 1, hidden, channels)
        self.second = GatedVectors(hidden, channels, hidden, channels)
        self.head = HEADS[variance](hidden, channels)

    def forward(self, x: Tensor) -> training.MeanVariance | training.MeanCovariance:
        """Predict at points `[n, 3]`."""
        features = self.second(*self.first(x[..., :0], x[..., None, :]))
        predicted: training.MeanVariance | training.MeanCovariance = self.head(features)
        return predicted


class VectorPerceptron(nn.Module):
    """A vector field with its uncertainty from an unconstrained network of similar size.

    Three hidden layers, then a head. A diagonal variance is possible here: nothing determines how
    the output rotates.

    Args:
        variance: `"scalar"`, one variance for all coordinates, or `"diagonal"`, one for each.
        hidden: Width of the hidden layers (32 in the paper).

    >>> _ = torch.manual_seed(0)
    >>> mean, variance = VectorPerceptron("diagonal")(torch.randn(6, 3))
    >>> mean.shape, variance.shape
    (torch.Size([6, 3]), torch.Size([6, 3]))
    """

    def __init__(self, variance: str = "scalar", hidden: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(3, hidden), nn.SiLU()),
            *(nn.Linear(hidden, hidden), nn.SiLU()),
            *(nn.Linear(hidden, hidden), nn.SiLU()),
        )
        shared = {"scalar": True, "diagonal": False}[variance]
        self.head = training.MeanVarianceHead(hidden, targets=3, shared=shared)

    def forward(self, x: Tensor) -> training.MeanVariance:
        """Predict at points `[n, 3]`."""
        predicted: training.MeanVariance = self.head(self.layers(x))
        return predicted
