"""Segment cell nuclei, and shift the field of view pixel by pixel.

Run: python examples/segmentation.py (needs the images of nuclei, see `orbical.datasets.nuclei`)

Both networks see the same features. The coarse one decides for blocks of 4 x 4 pixels, so that its
answer changes with every shift that is not a multiple of 4, while its accuracy hardly does.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orbical as ob


class Network(nn.Module):
    """Decides for each block of `block` x `block` pixels."""

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block
        self.layers = nn.Sequential(nn.Conv2d(2, 8, 1), nn.Tanh(), nn.Conv2d(8, 2, 1))

    def forward(self, images: Tensor) -> Tensor:
        around = F.avg_pool2d(images, 5, 1, 2)
        blocks = F.avg_pool2d(torch.cat([images, around], 1), self.block)
        return F.interpolate(self.layers(blocks), scale_factor=self.block)


def fitted(model: nn.Module, images: Tensor, maps: Tensor) -> nn.Module:
    """Fit a model with L-BFGS."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=40)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(model(images), maps)
        value.backward()
        return value

    optimizer.step(loss)
    return model.eval()


def scanned() -> tuple[dict[str, Any], ob.Scan]:
    """Fit both networks, and scan them over shifts."""
    torch.manual_seed(0)
    images, maps = ob.datasets.nuclei(count=30)
    images, maps = F.avg_pool2d(images, 4), maps[:, 2::4, 2::4]  # 64 x 64 pixels
    models = {
        "coarse": fitted(Network(4), images[:20], maps[:20]),
        "fine": fitted(Network(1), images[:20], maps[:20]),
    }
    scan = ob.scan(
        models,
        (images[20:], maps[20:]),
        group="translations:3:1",
        task=ob.tasks.Segmentation(ob.actions.Window(48), classes=["background", "nucleus"]),
        keep="inputs",
        progress=False,
    )
    return models, scan


def main() -> None:
    """Print and draw the result."""
    _, scan = scanned()
    error = ob.calibration.along_orbit(scan, "ece")
    for model in scan.models:
        data = scan.data.sel(model=model)
        shared = data["class_intersection"].sum("sample") / data["class_union"].sum("sample")
        print(
            f"{model:>6}: {float(data['score'].mean()):.1%} of pixels correct, IoU of nuclei "
            f"{float(shared.isel({'class': 1}).mean()):.3f}, ECE over pixels "
            f"{float(error.sel(model=model).mean()):.3f}, "
            f"{float(data['changed_pixels'].mean()):.1%} of pixels change their class"
        )
    ob.figures.save(
        ob.figures.aggregate(ob.nero.aggregate(scan, metric="mean_iou")), "segmentation.png"
    )
    # ob.view(scan)


if __name__ == "__main__":
    main()
