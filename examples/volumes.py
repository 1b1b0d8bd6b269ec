"""Classify shapes and segment a brain: volumes under turns of the cube and any turn of space.

Run: python examples/volumes.py (on ModelNet10 voxels and the MNI152 brain where `ORBICAL_DATA` has
them, see `orbical.datasets.voxel_shapes` and `brain_template`; on generated volumes otherwise)

A network trained on upright chairs and monitors fails on rotated ones, and one trained on quarter
turns fails between them. A tissue network that looks around in its slice alone changes its
predictions when the brain is rotated; one that looks around in all directions does not.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orbical as ob
from orbical.errors import InputError

BLOCK = 20


def shapes(count: int) -> tuple[Tensor, Tensor]:
    """Return volumes `[n, 1, 16, 16, 16]` of chairs and monitors."""
    try:
        volumes, labels = ob.datasets.voxel_shapes(count=count)
        return F.avg_pool3d(volumes, 2), labels
    except InputError:  # no such data here: boxes of random size
        random = torch.Generator().manual_seed(0)
        labels = torch.randint(0, 2, (count,), generator=random)
        volumes = torch.zeros(count, 1, 16, 16, 16)
        for volume, label in zip(volumes[:, 0], labels.tolist(), strict=True):
            wide = int(torch.randint(3, 6, (), generator=random))
            middle = slice(8 - wide, 8 + wide)
            if label:  # a screen on a foot
                volume[7:9, 2:11, middle] = 1
                volume[6:10, 11:14, 7:9] = 1
            else:  # a seat with a back
                volume[3:13, 8:10, middle] = 1
                volume[11:13, 2:8, middle] = 1
                volume[3:13:8, 10:14, middle] = 1
        return volumes, labels


def brain() -> tuple[Tensor, Tensor]:
    """Return an image `[1, 1, D, H, W]` and the label map of its tissues."""
    try:
        return ob.datasets.brain_template()
    except InputError:  # a ball of white matter in a shell of gray matter, with noise
        z, y, x = torch.meshgrid(
            *[torch.linspace(-1, 1, side) for side in (94, 116, 99)], indexing="ij"
        )
        radius = (x**2 + y**2 + z**2).sqrt() + 0.1 * torch.sin(9 * y) * torch.cos(7 * z)
        tissue = (radius < 0.9).long() + (radius < 0.6).long()
        noise = torch.randn(tissue.shape, generator=torch.Generator().manual_seed(0))
        return (0.3 * tissue + 0.1 * noise)[None, None], tissue[None]


def classifier(volumes: Tensor, labels: Tensor, turns: ob.groups.Group) -> nn.Module:
    """Train a small network on volumes that are rotated at random."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv3d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv3d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 4**3, 2),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(6):
        for rows in torch.randperm(len(volumes)).split(32):
            one = int(torch.randint(len(turns), ()))
            (moved,) = ob.actions.Volumes().apply(turns[one : one + 1], volumes[rows])
            optimizer.zero_grad()
            F.cross_entropy(net(moved), labels[rows]).backward()
            optimizer.step()
    return net.eval()


class TissueNetwork(nn.Module):
    """Decides for each voxel by its value and the means around it, in boxes of the given sides."""

    def __init__(self, *boxes: tuple[int, int, int]) -> None:
        super().__init__()
        self.boxes = boxes
        self.layers = nn.Sequential(
            nn.Conv3d(1 + len(boxes), 8, 1), nn.Tanh(), nn.Conv3d(8, len(ob.datasets.TISSUES), 1)
        )

    def features(self, images: Tensor) -> Tensor:
        means = [
            F.avg_pool3d(images, box, 1, [side // 2 for side in box], count_include_pad=False)
            for box in self.boxes
        ]
        return torch.cat([images, *means], 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(self.features(images))


def fit(model: TissueNetwork, images: Tensor, maps: Tensor) -> None:
    """Fit a model with L-BFGS."""
    features = model.features(images)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=40)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(model.layers(features), maps)
        value.backward()
        return value

    optimizer.step(loss)


def classifiers() -> tuple[dict[str, Any], tuple[Tensor, Tensor]]:
    """Train on upright and on rotated shapes; return both networks, and shapes to scan."""
    volumes, labels = shapes(300)
    models = {
        "upright": classifier(volumes[50:], labels[50:], ob.groups.pointgroup("1")),
        "rotated": classifier(volumes[50:], labels[50:], ob.groups.octahedral()),
    }
    return models, (volumes[:50], labels[:50])


def scanned(group: str = "octahedral") -> tuple[dict[str, Any], ob.Scan]:
    """Fit tissue networks to the back of the head, and scan them on blocks of the front.

    The left half would be no test of the right one: the template is its own mirror image.
    """
    image, tissue = brain()
    torch.manual_seed(0)
    models = {
        "slices": TissueNetwork((1, 5, 5), (1, 11, 11)),
        "isotropic": TissueNetwork((3, 3, 3), (5, 5, 5)),
    }
    for model in models.values():
        fit(model, image[..., 30:60, 64:94, 0:40], tissue[..., 30:60, 64:94, 0:40])
    corners = [(z, y, 26) for z in (30, 42, 54) for y in (18, 36)]
    blocks = [tuple(slice(side, side + BLOCK) for side in corner) for corner in corners]
    data = tuple(torch.cat([maps[(..., *block)] for block in blocks]) for maps in (image, tissue))
    task = ob.tasks.Segmentation(classes=ob.datasets.TISSUES)
    return models, ob.scan(models, data, group=group, task=task, keep="inputs", progress=False)


def main() -> None:
    """Print the results."""
    models, data = classifiers()
    task = ob.tasks.Classification(classes=ob.datasets.SHAPES)
    for group in ("octahedral", "rotations3d:16"):
        scan = ob.scan(models, data, group=group, task=task, progress=False)
        correct, defect = scan.data["correct"].mean("sample"), scan.data["action_defect"]
        print(f"{scan.group} and back lose {float(defect.mean()):.0%} of the volumes")
        for model in scan.models:
            one = correct.sel(model=model)
            print(
                f"{model:>9} under {scan.group}: {float(one[scan.group.identity]):.0%} correct "
                f"upright, {float(one.mean()):.0%} on average, {float(one.min()):.0%} at worst"
            )
    models, scan = scanned()
    for model in scan.models:
        data = scan.data.sel(model=model)
        print(
            f"{model:>9} under {scan.group}: {float(data['score'].mean()):.1%} of voxels correct, "
            f"mean IoU {float(data['mean_iou'].mean()):.3f}, "
            f"{float(data['changed_pixels'].mean()):.1%} of voxels change their tissue"
        )
    # ob.view(scan, models)


if __name__ == "__main__":
    main()
