"""A backbone of molecules with four small networks that answer a whole spectrum each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn

from orbical.training.heads import Evidence, softened
from orbical_studies.networks.molecules import GIN, InvariantMPNN
from orbical_studies.networks.steerable import SteerableMPNN

from .settings import BONDS, DISTANCES, STEERABLE

FEATURES = 128
WIDTH = 256


BACKBONES: dict[str, Callable[[], nn.Module]] = {
    BONDS: partial(GIN, FEATURES, layers=4, inner=288),
    DISTANCES: partial(InvariantMPNN, FEATURES, layers=3),
    STEERABLE: partial(SteerableMPNN, FEATURES, layers=3, channels=(64, 32, 16)),
}
"""Backbones of about 300,000 parameters, each of which answers `[n, 128]`."""


class SpectrumNet(nn.Module):
    """Evidential outputs at every wavenumber: one network 128-256-points for each parameter.

    Args:
        network: what the backbone sees.
        points: wavenumbers.

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
        """Answer for molecules, in the training's units: four parameters `[n, points]`."""
        features = self.backbone(batch)
        return self.evidence(self.decoders[0](features), features)

    def apart(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Evidence]:
        """Answer the same, with slopes in two parts.

        Returns:
            gamma, whose slopes move its own decoder and the backbone; and the evidence about it,
            whose slopes move the three other decoders alone.
        """
        features = self.backbone(batch)
        gamma = self.decoders[0](features)
        return gamma, self.evidence(gamma.detach(), features.detach())

    def evidence(self, gamma: Tensor, features: Tensor) -> Evidence:
        """What the decoders say beside a gamma, from features `[n, 128]`."""
        nu, alpha, beta = (decoder(features) for decoder in list(self.decoders)[1:])
        return Evidence(gamma, softened(nu), 1 + softened(alpha), softened(beta))
