"""Forecast a field on the globe: where is the seam of the map?

Run: python examples/globe.py

Weather maps end at some meridian, but the globe does not. Two networks forecast a field that drifts
to the east and spreads. They differ in one thing: one pads its input with zeros, the other with
what lies on the other side of the map. Turned about its axis, the globe shows what that costs.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orbical as ob

ROWS, COLUMNS = 24, 48


def weather(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return smooth fields on the globe, and what has become of them after a drift to the east."""
    random = torch.Generator().manual_seed(seed)
    latitude = torch.linspace(1, -1, 2 * ROWS + 1)[1::2] * torch.pi / 2
    angle = torch.arange(COLUMNS) * 2 * torch.pi / COLUMNS
    fields, later = torch.zeros(2, count, 1, ROWS, COLUMNS)
    for wave in range(1, 6):
        phase = 2 * torch.pi * torch.rand(count, 1, 1, generator=random)
        size = torch.randn(count, 1, 1, generator=random) * latitude.cos()[:, None] ** wave
        drift = 2 * torch.pi / COLUMNS * (1 + latitude.cos()[:, None])
        fields[:, 0] += size * torch.cos(wave * angle + phase)
        later[:, 0] += 0.9**wave * size * torch.cos(wave * (angle - drift) + phase)
    return fields, later


class Forecast(nn.Module):
    """Two convolutions, whose input is continued around the globe or by zeros."""

    def __init__(self, around: bool) -> None:
        super().__init__()
        self.around = around
        self.layers = nn.ModuleList([nn.Conv2d(2, 16, 5), nn.Conv2d(16, 1, 5)])

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.linspace(-1, 1, x.shape[-2])[:, None].square().expand_as(x)
        x = torch.cat([x, rows], 1)
        for layer in self.layers:
            x = F.pad(x, (2, 2, 0, 0), mode="circular" if self.around else "constant")
            x = layer(F.pad(torch.tanh(x), (0, 0, 2, 2)))
        return x


def trained(around: bool) -> Forecast:
    """Fit a network."""
    torch.manual_seed(0)
    net = Forecast(around)
    fields, later = weather(256, seed=0)
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(10):
        for rows in torch.randperm(len(fields)).split(32):
            optimizer.zero_grad()
            F.mse_loss(net(fields[rows]), later[rows]).backward()
            optimizer.step()
    return net.eval()


def scanned() -> ob.Scan:
    """Scan both networks under turns of the globe."""
    models = {"zeros": trained(around=False), "around": trained(around=True)}
    task = ob.tasks.DenseRegression(ob.actions.Globe())
    return ob.scan(models, weather(64, seed=1), group="longitudes:24", task=task, progress=False)


def main() -> None:
    """Print the errors, weighted by area, and how far a forecast depends on the seam of the map."""
    scan = scanned()
    for model in scan.models:
        data = scan.data.sel(model=model)
        rmse = float(np.sqrt(np.square(data["rmse"]).mean()))
        gap = float(np.sqrt(np.square(data["invariance_gap"]).mean()))
        print(f"{model:>6}: root mean square error {rmse:.3f}, of which {gap:.3f} by the seam")
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "globe.png")


if __name__ == "__main__":
    main()
