"""Estimate the pose of persons, turn and mirror the image, and see what the estimate is worth.

Run: python examples/key_points.py (needs persons of COCO, see `orbical.datasets.coco_persons`)

Both models are linear in the pixels. One was fitted to upright persons, the other to all eight
quarter turns and mirrors of them, with left and right exchanged by the mirrors. Their confidence
in a point is how often it was close to the truth in training.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

import orbical as ob

SIZE = 64
GROUP = ob.groups.dihedral(4)
TASK = ob.tasks.KeyPoints(
    (SIZE, SIZE),
    swaps=ob.tasks.COCO_SWAPS,
    sigmas=ob.tasks.COCO_SIGMAS,
    edges=ob.tasks.COCO_EDGES,
    radius=0.2,
)


class Linear:
    """Places of key points, linear in the pixels of a small image."""

    def features(self, images: Tensor) -> Tensor:
        small = F.avg_pool2d(images.mean(1, keepdim=True), 4).flatten(1)
        return small - small.mean(1, keepdim=True)

    def fit(self, images: Tensor, points: Tensor) -> "Linear":
        rows = self.features(images)
        weights, means = [], []
        for point in points.unbind(1):  # each has labels of its own
            known = point[:, 2] > 0
            some, places = rows[known], point[known, :2]
            ridge = some.T @ some + 100.0 * torch.eye(some.shape[1])
            means.append(places.mean(0))
            weights.append(torch.linalg.solve(ridge, some.T @ (places - means[-1])))
        self.weights, self.mean = torch.stack(weights), torch.stack(means)
        truth = points[..., :2].where(points[..., 2:] > 0, torch.nan)
        close = (self.places(images) - truth).norm(dim=-1) < TASK.radius * SIZE * 0.8
        known = points[..., 2] > 0
        self.confidence = (close & known).sum(0) / known.sum(0)
        return self

    def places(self, images: Tensor) -> Tensor:
        return self.mean + torch.einsum("nf,pfc->npc", self.features(images), self.weights)

    def __call__(self, images: Tensor) -> Tensor:
        sure = self.confidence.expand(len(images), -1)[..., None]
        return torch.cat([self.places(images), sure], -1)


def everywhere(images: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return all transformed images with their points."""
    moved = TASK.input.apply(GROUP, images), TASK.output.apply(GROUP, points)
    return moved[0].flatten(0, 1), moved[1].flatten(0, 1)


def main() -> None:
    """Fit both models, scan them, and print and draw the result."""
    images, points = ob.datasets.coco_persons(size=SIZE)
    train, test = slice(0, 200), slice(200, None)
    models = {
        "upright": Linear().fit(images[train], points[train]),
        "augmented": Linear().fit(*everywhere(images[train], points[train])),
    }
    scan = ob.scan(
        models,
        (images[test], points[test]),
        group=GROUP,
        task=TASK,
        keep="inputs",
        progress=False,
    )
    error = ob.calibration.along_orbit(ob.calibration.pairs_within(scan), "ece")
    for model in scan.models:
        data = scan.data.sel(model=model).mean("sample")
        pck = data["pck"].values
        print(
            f"{model:>9}: PCK {pck[GROUP.identity]:.2f} upright, {pck.mean():.2f} over the orbit, "
            f"{pck.min():.2f} at worst; ECE of points {float(error.sel(model=model)[0]):.2f} "
            f"upright, {float(error.sel(model=model).mean()):.2f} over the orbit"
        )
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan, metric="pck")), "key-points.png")
    # ob.view(scan, models)


if __name__ == "__main__":
    main()
