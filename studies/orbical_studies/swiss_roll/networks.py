"""Networks for the Swiss roll: one that cannot see the height, and a plain perceptron."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orbical.errors import InputError


class SymmetricSets(nn.Module):
    """Permutation-equivariant layer on sets, `own(x_i) + shared(sum_j x_j)` (Maron et al. 2020).

    >>> _ = torch.manual_seed(0)
    >>> layer, x = SymmetricSets(2, 3), torch.randn(5, 4, 2)
    >>> torch.allclose(layer(x.flip(1)), layer(x).flip(1), atol=1e-6)
    True
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.own = nn.Linear(before, after)
        self.shared = nn.Linear(before, after, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map `[..., set, before]` to `[..., set, after]`."""
        return self.own(x) + self.shared(x.sum(-2, keepdim=True))


class HeightInvariant(nn.Module):
    """Classify points `(x, y, z)`, z = 0 or 1, without telling the heights apart.

    (x, y) goes into the first of two slots if z = 0 and into the second if z = 1; the other slot
    holds zeros. Three layers on sets follow, and the mean over the slots. Swapping the heights
    swaps the slots, which leaves the mean unchanged (Berman et al., appendix C).

    Args:
        width: Of the two hidden layers (512 in the paper).

    Example:
        >>> _ = torch.manual_seed(0)
        >>> network = HeightInvariant(width=8)
        >>> low, high = torch.tensor([[0.3, 0.1, 0.0]]), torch.tensor([[0.3, 0.1, 1.0]])
        >>> torch.allclose(network(low), network(high), atol=1e-6)
        True
    """

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(SymmetricSets(2, width), nn.ReLU()),
            *(SymmetricSets(width, width), nn.ReLU()),
            SymmetricSets(width, 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return logits `[n, 2]` of points `[n, 3]`."""
        plane, height = x[:, :2], x[:, 2:]
        if x.shape[1:] != (3,) or not torch.equal(height, height.square()):
            raise InputError("x", "shape (n, 3) with z = 0 or 1", tuple(x.shape))
        slots = torch.stack([plane * (1 - height), plane * height], 1)
        return self.layers(slots).mean(1)


def perceptron(width: int = 181) -> nn.Sequential:
    """Make the unconstrained network: three linear layers on (x, y, z).

    With the default widths it has as many parameters as `HeightInvariant`, within 1 in 1,000.
    """
    return nn.Sequential(
        *(nn.Linear(3, width), nn.ReLU()),
        *(nn.Linear(width, width), nn.ReLU()),
        nn.Linear(width, 2),
    )
