"""Height, slope and detail of spectra, and rank correlations between tables of numbers."""

from __future__ import annotations

import torch
from torch import Tensor

SMOOTH = 9
"""Points of the moving average that leaves the detail of a spectrum: 180 cm^-1."""


def squares_explained(truth: Tensor, answer: Tensor) -> Tensor:
    """Compute R^2 of each spectrum `[n]`: 1 minus the squared error over the spectrum's variation.

    >>> line = torch.tensor([[0.0, 1.0, 2.0]])
    >>> squares_explained(line, line), squares_explained(line, torch.ones(1, 3))
    (tensor([1.]), tensor([0.]))
    """
    own = (truth - truth.mean(-1, keepdim=True)).square().sum(-1)
    return 1 - (truth - answer).square().sum(-1) / own


def slope(spectra: Tensor) -> Tensor:
    """Compute the slope of spectra `[n, points]`: half the change between neighbors.

    >>> slope(torch.tensor([[0.0, 1.0, 4.0]]))
    tensor([[1., 2., 3.]])
    """
    return torch.gradient(spectra, dim=-1)[0].abs()


def detail(spectra: Tensor) -> Tensor:
    """Compute the detail of spectra `[n, points]`: what a moving average does not follow.

    >>> detail(torch.ones(1, 20)).max() < 1e-6
    tensor(True)
    """
    half = SMOOTH // 2
    wide = torch.nn.functional.pad(spectra[:, None], (half, half), mode="replicate")
    return (spectra - torch.nn.functional.avg_pool1d(wide, SMOOTH, 1)[:, 0]).abs()


def ranks(values: Tensor) -> Tensor:
    """Rank along the last axis, centered and of unit length: products are Spearman correlations.

    >>> round(float(ranks(torch.tensor([1.0, 5.0, 9.0])) @ ranks(torch.tensor([2.0, 3.0, 8.0]))), 6)
    1.0
    """
    order = values.double().argsort(-1).argsort(-1).double()
    centered = order - order.mean(-1, keepdim=True)
    return centered / centered.norm(dim=-1, keepdim=True)


def correlations(one: Tensor, other: Tensor) -> dict[str, float]:
    """Compute rank correlations of two tables `[n, points]`.

    Returns:
        `all`: over all entries; `along`: along the spectrum of a molecule, the median over
        molecules; `across`: over molecules at one wavenumber, the median over wavenumbers.
    """
    first, second = ranks(one), ranks(other)
    down, beside = ranks(one.T), ranks(other.T)
    return {
        "all": float(ranks(one.flatten()) @ ranks(other.flatten())),
        "along": float((first * second).sum(-1).quantile(0.5)),
        "across": float((down * beside).sum(-1).quantile(0.5)),
    }


def partial_correlation(one: Tensor, other: Tensor, given: Tensor) -> float:
    """Compute the rank correlation of two tables over all entries, controlling for a third.

    >>> x = torch.arange(4.0)
    >>> abs(partial_correlation(x, x + 0, torch.tensor([1.0, 0, 1, 0]))) > 0.9
    True
    """
    a, b, c = (ranks(values.flatten()) for values in (one, other, given))
    ab, ac, bc = float(a @ b), float(a @ c), float(b @ c)
    # Where one of them is constant nothing is left to correlate.
    return (ab - ac * bc) / max((1 - ac**2) * (1 - bc**2), 1e-300) ** 0.5
