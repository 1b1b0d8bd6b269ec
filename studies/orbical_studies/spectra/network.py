"""A backbone for molecules with four small networks that each predict a whole spectrum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn
from torch.nn.functional import softplus

from orbical.training import Evidence

from ..networks.molecules import GIN, InvariantMPNN
from ..networks.steerable import SteerableMPNN

FEATURES, WIDTH, FLOOR = 128, 256, 1e-6
BACKBONES: dict[str, Callable[[], nn.Module]] = {
    "bonds": partial(GIN, FEATURES, layers=4, inner=288),
    "distances": partial(InvariantMPNN, FEATURES, layers=3),
    "steerable": partial(SteerableMPNN, FEATURES, layers=3, channels=(64, 32, 16)),
}
"""Backbones of about 300,000 parameters, each of which returns `[n, 128]`."""


class SpectrumNet(nn.Module):
    """Evidential outputs at every wavenumber: one network 128-256-points for each parameter.

    Args:
        network: What the backbone sees, one of `BACKBONES`.
        points: Number of wavenumbers.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> found = SpectrumNet("distances", points=176)(water)
    >>> found.gamma.shape, bool((found.alpha > 1).all())
    (torch.Size([1, 176]), True)

    Paper: the equivariance paper's section 6.1.2 and appendix E: four independent networks.
    """

    def __init__(self, network: str, points: int) -> None:
        super().__init__()
        self.backbone = BACKBONES[network]()
        self.decoders = nn.ModuleList(
            nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.SiLU(), nn.Linear(WIDTH, points))
            for _ in Evidence._fields
        )

    def forward(self, batch: Mapping[str, Tensor]) -> Evidence:
        """Predict four parameters `[n, points]` in the training's units."""
        return self.parted(batch, squares=False, apart=False)[1]

    def parted(
        self, batch: Mapping[str, Tensor], squares: bool, apart: bool
    ) -> tuple[Tensor, Evidence]:
        """Predict the same, with gradients in two parts.

        Args:
            batch: Molecules.
            squares: The evidence does not move gamma.
            apart: The three other decoders do not move the backbone.

        Returns:
            Gamma, and the evidence about it.
        """
        features = self.backbone(batch)
        gamma = self.decoders[0](features)
        center, others = gamma.detach() if squares else gamma, features
        return gamma, self.evidence(center, others.detach() if apart else others)

    def evidence(self, gamma: Tensor, features: Tensor) -> Evidence:
        """Return the distribution about gamma, from features `[n, 128]`."""
        raw = (softplus(decoder(features)) + FLOOR for decoder in list(self.decoders)[1:])
        nu, alpha, beta = raw
        return Evidence(gamma, nu, 1 + alpha, beta)
