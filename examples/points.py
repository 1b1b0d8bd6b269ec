"""Classify the points of table tops and legs, also of rotated tables, with and without coordinates.

Run: python examples/points.py (needs the point clouds of ModelNet10, see `tables`)

Tables have between 200 and 512 points, and both models take them in one batch without padding. One
sees coordinates, the other only distances within a table. A point belongs to the top if it is in
the upper eighth of the upright table.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

import orbical as ob

GROUP = ob.groups.product(ob.groups.rotations3d(8), ob.groups.inversion())
TASK = ob.tasks.PointClassification(classes=["leg", "top"])


def coordinates(pos: Tensor) -> Tensor:
    """Features of a model that was trained on upright tables: the position, and its squares."""
    return torch.cat([pos, pos**2, pos[:, 2:] ** 3], 1)


def distances(pos: Tensor) -> Tensor:
    """Features that do not change when a table is rotated: how far other points are."""
    apart = torch.cdist(pos, pos).sort(1).values
    quantiles = apart[:, torch.linspace(4, len(pos) - 1, 12).long()]
    return torch.cat([quantiles, quantiles**2], 1)


class Logistic(torch.nn.Module):
    """Logistic regression on features of each point."""

    def __init__(self, features) -> None:
        super().__init__()
        self.features = features

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        ends = pairwise(batch["ptr"].tolist())
        return torch.cat([self.features(batch["pos"][start:stop]) for start, stop in ends])

    def fit(self, batch: dict[str, Tensor], labels: Tensor) -> "Logistic":
        rows = self.rows(batch)
        self.center, self.spread = rows.mean(0), rows.std(0) + 1e-6
        self.linear = torch.nn.Linear(rows.shape[1], 2)
        optimizer = torch.optim.LBFGS(self.parameters(), max_iter=60)

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = torch.nn.functional.cross_entropy(self.scores(rows), labels)
            value.backward()
            return value

        optimizer.step(loss)
        return self

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.scores(self.rows(batch))

    def scores(self, rows: Tensor) -> Tensor:
        return self.linear((rows - self.center) / self.spread)


def tables(split: str, count: int) -> tuple[dict[str, Tensor], Tensor]:
    """Return tables of different sizes as one ragged batch, and the class of each point."""
    stored = np.load(ob.datasets.data_file("modelnet10_512.npz", None, "modelnet10"))
    chosen = stored[f"{split}_labels"] == [*stored["classes"]].index("table")
    clouds = torch.as_tensor(stored[f"{split}_points"][chosen][:count]).float()
    sizes = np.random.default_rng(0).integers(200, 513, count)
    clouds = [cloud[:size] for cloud, size in zip(clouds, sizes, strict=True)]
    low = [cloud[:, 2].max() - 0.125 * (cloud[:, 2].max() - cloud[:, 2].min()) for cloud in clouds]
    labels = [(cloud[:, 2] > edge).long() for cloud, edge in zip(clouds, low, strict=True)]
    ptr = torch.as_tensor(np.cumsum([0, *sizes]))
    return {"pos": torch.cat(clouds), "ptr": ptr}, torch.cat(labels)


def scanned() -> tuple[dict[str, ob.predictors.Predictor], ob.Scan]:
    """Fit both models on upright tables, and scan them."""
    torch.manual_seed(0)
    batch, labels = tables("train", 30)
    models = {
        name: ob.predictors.RaggedPredictor(Logistic(features).fit(batch, labels))
        for name, features in (("coordinates", coordinates), ("distances", distances))
    }
    data = tables("test", 10)
    return models, ob.scan(models, data, group=GROUP, task=TASK, keep="inputs", progress=False)


def main() -> None:
    """Print what each model gets right, how well it is calibrated, and how often it changes."""
    _, scan = scanned()
    ece = ob.calibration.along_orbit(scan, "ece")
    changed = ob.nero.consistency(scan)["changed"]
    for model in scan.models:
        score = scan.data["score"].sel(model=model).mean("sample").values
        error = ece.sel(model=model).values
        print(
            f"{model:>11}: {score[0]:.2f} of the points right upright, {score.min():.2f} at worst; "
            f"ECE {error[0]:.2f} and {error.max():.2f}; {float(changed.sel(model=model)):.0%} of "
            "the points change their class"
        )
    # ob.view(scan, models)


if __name__ == "__main__":
    main()
