"""Vector fields on a plane in space: one that rotates with its points, one that mirrors break.

Section 6.1.1 of Berman et al., "On Uncertainty Calibration for Equivariant Functions". Both fields
are functions of the place alone, without noise: the true aleatoric variance is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

REACH = 5.0
"""Half a side of the square, and the radius of the disc."""

DOMAINS = ("square", "disc")


def spiral(x: Tensor) -> Tensor:
    """Rotate every point by a right angle about the z axis: `(-y, x, 0)`.

    It commutes with rotations about z, but not with mirrors, nor with rotations by half a turn
    about an axis in the plane, which mirror the plane. The paper gives "in general rotations in
    R^3 do not commute" as the reason; those that keep the plane's sides do.

    Args:
        x: `[..., 3]`.

    >>> spiral(torch.tensor([1.0, 2.0, 0.0]))
    tensor([-2.,  1.,  0.])
    """
    return torch.stack([-x[..., 1], x[..., 0], torch.zeros_like(x[..., 2])], -1)


def sinusoid(x: Tensor) -> Tensor:
    """Scale every point by a function of its length: `-sin^2(|x|) x`.

    It commutes with every rotation and every mirror, but not with translations, which do not keep
    `|x|` (the paper says that they do).

    Args:
        x: `[..., 3]`.

    >>> sinusoid(torch.tensor([0.0, torch.pi / 2, 0.0])).round(decimals=4)
    tensor([-0.0000, -1.5708, -0.0000])
    """
    return -torch.linalg.vector_norm(x, dim=-1, keepdim=True).sin().square() * x


FIELDS: dict[str, Callable[[Tensor], Tensor]] = {"spiral": spiral, "sinusoid": sinusoid}


def vector_fields(
    field: str = "spiral", domain: str = "square", samples: int = 2000, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Draw points of a plane in space, and a vector field there.

    Args:
        field: `"spiral"` (no network that is equivariant under O(3) can follow it) or
            `"sinusoid"` (one can).
        domain: `"square"`, [-5, 5]^2, whose corners leave it when rotated, or `"disc"`, of
            radius 5, which rotations map to itself. Points are uniform there, and z = 0.
        samples: Number of points.
        seed: Of the draw.

    Returns:
        Points and vectors, both `[samples, 3]` in single precision.

    >>> x, y = vector_fields("spiral", "disc", samples=4)
    >>> x.shape, bool((x * y).sum(-1).abs().max() < 1e-5), bool((x.norm(dim=-1) <= 5).all())
    (torch.Size([4, 3]), True, True)
    """
    generator = torch.Generator().manual_seed(seed)
    x = _placed(domain, *torch.rand(2, samples, generator=generator, dtype=torch.float64))
    return x.float(), FIELDS[field](x).float()


def whole_field(field: str, domain: str, side: int = 40) -> tuple[Tensor, Tensor]:
    """Cover a domain evenly: midpoints of equal squares, or equal angles on rings of equal area.

    Whole orbits of rotations by a `side`-th of a turn on the disc, and of D4 on the square; means
    over the points are means over the domain, up to the grid.

    Args:
        field: `"spiral"` or `"sinusoid"`.
        domain: `"square"` or `"disc"`.
        side: Points on each side of the square; rings, and points on each ring.

    Returns:
        Points and vectors, both `[side * side, 3]` in double precision.

    >>> x, y = whole_field("spiral", "disc")
    >>> x.shape, round(float(y.square().sum(-1).mean()), 6)  # half the squared radius
    (torch.Size([1600, 3]), 12.5)
    """
    middle = (torch.arange(side, dtype=torch.float64) + 0.5) / side
    first, second = (part.flatten() for part in torch.meshgrid(middle, middle, indexing="ij"))
    x = _placed(domain, first, second)
    return x, FIELDS[field](x)


def _placed(domain: str, first: Tensor, second: Tensor) -> Tensor:
    """Map the unit square onto a domain so that equal areas stay equal; `[n, 3]`."""
    if domain == "square":
        columns = [REACH * (2 * first - 1), REACH * (2 * second - 1)]
    else:
        radius, angle = REACH * first.sqrt(), 2 * math.pi * second
        columns = [radius * angle.cos(), radius * angle.sin()]
    return torch.stack([*columns, torch.zeros_like(first)], -1)
