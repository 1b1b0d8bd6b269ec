"""Networks for vector fields in space that say how sure they are: one equivariant, one not.

What an O(3)-equivariant network can answer at one point x is known. Rotations about x and mirrors
that hold x leave the input as it is, so they must leave the answer as it is:

    mean(x) = c(|x|) x,    covariance(x) = a(|x|) 1 + b(|x|) x x^T

A linear equivariant map has a constant c; `VectorFieldNet` learns c as a function of the length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orbical.errors import InputError, unknown_name
from orbical.training import (
    MeanCovariance,
    MeanVariance,
    MeanVarianceHead,
    VectorCovarianceHead,
    VectorVarianceHead,
)

HEADS = {"scalar": VectorVarianceHead, "full": VectorCovarianceHead}
"""Forms of uncertainty that can turn with a vector, and the heads that answer them."""


class GatedVectors(nn.Module):
    """A layer on scalars and vectors that commutes with O(3): scalars from norms, vectors gated.

        u_k = sum_j W_kj v_j,   s' = silu(A [s, |u|] + b),   v'_k = (G s' + g)_k u_k

    Args:
        scalars: number of scalars that come in.
        vectors: number of vectors that come in.
        hidden: number of scalars that go out.
        channels: number of vectors that go out.

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
        """Answer `[n, hidden]` and `[n, channels, 3]` for `[n, scalars]` and `[n, vectors, 3]`."""
        mixed = self.mix(vectors.mT).mT
        norms = (mixed.square().sum(-1) + 1e-12).sqrt()  # a root that has a gradient at 0
        passed = nn.functional.silu(self.mixed_scalars(torch.cat([scalars, norms], -1)))
        return passed, self.gate(passed)[..., None] * mixed


class VectorFieldNet(nn.Module):
    """A vector field with its uncertainty, equivariant under rotations and mirrors of space.

    Two gated layers, then a head of `orbical.training`. Train with `losses.beta_nll` (scalar) or
    `losses.covariance_nll` (full), scan with `tasks.Regression(actions.Vectors(), "vector",
    uncertainty="variance")` or `"covariance"`.

    Args:
        variance: `"scalar"`, one variance for all coordinates, or `"full"`, a covariance.
        hidden: width of the scalars (32 in the paper).
        channels: number of vectors.

    >>> _ = torch.manual_seed(0)
    >>> net, x = VectorFieldNet(), torch.randn(6, 3)
    >>> mean, variance = net(x)
    >>> mean.shape, variance.shape
    (torch.Size([6, 3]), torch.Size([6, 1]))
    >>> torch.allclose(net(-x).mean, -mean, atol=1e-6)
    True

    Paper: Berman et al., section 6.1.1, whose network is linear in x and answers `c x`.
    """

    def __init__(self, variance: str = "scalar", hidden: int = 32, channels: int = 8) -> None:
        super().__init__()
        if variance not in HEADS:
            raise unknown_name("variance", variance, HEADS)
        self.first = GatedVectors(0, 1, hidden, channels)
        self.second = GatedVectors(hidden, channels, hidden, channels)
        self.head = HEADS[variance](hidden, channels)

    def forward(self, x: Tensor) -> MeanVariance | MeanCovariance:
        """Answer for points `[n, 3]`."""
        x = _points(x)
        features = self.second(*self.first(x[..., :0], x[..., None, :]))
        answer: MeanVariance | MeanCovariance = self.head(features)
        return answer


class VectorPerceptron(nn.Module):
    """A vector field with its uncertainty from an unconstrained network of like size.

    Three hidden layers, then a head. A diagonal variance is no trouble here: nothing is said of
    how the answer turns.

    Args:
        variance: `"scalar"`, one variance for all coordinates, or `"diagonal"`, one for each.
        hidden: width of the hidden layers (32 in the paper).

    >>> _ = torch.manual_seed(0)
    >>> mean, variance = VectorPerceptron("diagonal")(torch.randn(6, 3))
    >>> mean.shape, variance.shape
    (torch.Size([6, 3]), torch.Size([6, 3]))
    """

    def __init__(self, variance: str = "scalar", hidden: int = 32) -> None:
        super().__init__()
        if variance not in ("scalar", "diagonal"):
            raise unknown_name("variance", variance, ("scalar", "diagonal"))
        self.layers = nn.Sequential(
            *(nn.Linear(3, hidden), nn.SiLU()),
            *(nn.Linear(hidden, hidden), nn.SiLU()),
            *(nn.Linear(hidden, hidden), nn.SiLU()),
        )
        self.head = MeanVarianceHead(hidden, targets=3, shared=variance == "scalar")

    def forward(self, x: Tensor) -> MeanVariance:
        """Answer for points `[n, 3]`."""
        answer: MeanVariance = self.head(self.layers(_points(x)))
        return answer


def _points(x: Tensor) -> Tensor:
    if x.ndim != 2 or x.shape[-1] != 3:
        raise InputError(f"x: got {tuple(x.shape)}; expected points [n, 3]")
    return x
