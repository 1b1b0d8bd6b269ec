"""Predict how deep each pixel lies inside a cell nucleus, and turn the image.

Run: python examples/dense_regression.py (needs the images of nuclei, see `orbical.datasets.nuclei`)

Both models are linear in blurred copies of the image. One blurs around each pixel, the other only
to its right. Nuclei have no direction, so both are as good at every angle on average: only the
distance from their consensus shows that the second one's answer does not turn with the image.
"""

from typing import Any

import torch
import torch.nn.functional as F
from scipy.ndimage import distance_transform_edt
from torch import Tensor

import orbical as ob

WIDTHS = (1, 3, 5, 9, 13)


class Linear:
    """A linear model of blurred images, shifted by `shift` widths, with a variance."""

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def features(self, images: Tensor) -> Tensor:
        copies = [torch.ones_like(images)]
        for width in WIDTHS:
            blurred = F.avg_pool2d(images, width, 1, width // 2, count_include_pad=False)
            copies.append(blurred.roll(-round(self.shift * width), -1))
        return torch.cat(copies, 1)

    def fit(self, images: Tensor, depth: Tensor) -> "Linear":
        rows = self.features(images).movedim(1, -1).flatten(0, 2).double()
        found = torch.linalg.solve(rows.T @ rows, rows.T @ depth.double().reshape(-1, 1))
        self.weights = found[:, 0].float()
        inside = depth > 0
        error = (self.mean(images) - depth).square()
        self.variance = torch.stack([error[~inside].mean(), error[inside].mean()])
        return self

    def mean(self, images: Tensor) -> Tensor:
        return torch.einsum("nchw,c->nhw", self.features(images), self.weights)[:, None]

    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.mean(images)
        return mean, self.variance[(mean > 0.5).long()]


def scanned() -> tuple[dict[str, Any], ob.Scan]:
    """Fit both models, and scan them over rotations."""
    images, maps = ob.datasets.nuclei(count=30)
    images, maps = F.avg_pool2d(images, 4), maps[:, 2::4, 2::4]  # 64 x 64 pixels
    depth = torch.stack([torch.from_numpy(distance_transform_edt(one)) for one in maps])
    depth = depth.float()[:, None]
    models = {
        "around": Linear(0.0).fit(images[:20], depth[:20]),
        "right": Linear(1.0).fit(images[:20], depth[:20]),
    }
    scan = ob.scan(
        models,
        (images[20:], depth[20:]),
        group="rotations:16",
        task=ob.tasks.DenseRegression(uncertainty="variance"),
        keep="inputs",
        progress=False,
    )
    return models, scan


def main() -> None:
    """Print and draw the result."""
    _, scan = scanned()
    likely = ob.calibration.along_orbit(scan, "gaussian_nll")
    for model in scan.models:
        data = scan.data.sel(model=model)
        curve = data["score"].mean("sample").values
        print(
            f"{model:>6}: mean error {curve.min():.3f} to {curve.max():.3f} px, distance from the "
            f"consensus {float(data['score_vs_consensus'].mean()):.3f} px, NLL "
            f"{float(likely.sel(model=model).mean()):.2f}"
        )
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "dense-regression.png")
    # ob.view(scan)


if __name__ == "__main__":
    main()
