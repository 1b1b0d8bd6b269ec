"""Poses and orientations: outputs that turn, are shifted, or are angles.

Run: python examples/poses.py

The pose of a rigid body has six degrees of freedom. As outputs that move it is a position and two
directions, front and up. A fit to all points follows every motion; a fit that trusts the middle of
a box along the axes does not. The orientation of a handwritten digit is an angle with a period of
180 degrees: the axis of its ink follows a rotation, a linear model of its pixels hardly does.
"""

import torch
from torch import Tensor

import orbical as ob

random = torch.Generator().manual_seed(0)
BODY = torch.randn(12, 3, generator=random)
BODY -= BODY.mean(0)


def turn(points: Tensor) -> Tensor:
    """Return the rotations [N, 3, 3] that carry the body closest to points (Kabsch)."""
    left, _, right = torch.linalg.svd((points - points.mean(1, keepdim=True)).mT @ BODY)
    handed = torch.ones(len(points), 3)
    handed[:, 2] = torch.linalg.det(left @ right)
    return left @ torch.diag_embed(handed) @ right


def fitted(points: Tensor) -> dict[str, Tensor]:
    turned = turn(points)
    return {"center": points.mean(1), "front": turned[..., 0], "up": turned[..., 2]}


def boxed(points: Tensor) -> dict[str, Tensor]:  # the box does not rotate with the points
    return {**fitted(points), "center": (points.amax(1) + points.amin(1)) / 2}


def poses() -> ob.Scan:
    """Scan both fits on noisy copies of the body, under motions of space."""
    points = BODY + 0.1 * torch.randn(60, 12, 3, generator=random)
    truth = {"center": torch.zeros(60, 3), "front": torch.eye(3)[:1], "up": torch.eye(3)[2:]}
    truth = {name: part.expand(60, 3) for name, part in truth.items()}
    task = ob.tasks.Mixed(
        ob.actions.Points(),
        {"center": "position", "front": "vector", "up": "vector"},
        units={"center": "Å"},
    )
    models = {"fitted": fitted, "middle of the box": boxed}
    return ob.scan(models, (points, truth), group="se3:64:2", task=task, progress=False)


def axis(images: Tensor) -> Tensor:
    """Return the angle of the longest axis of the ink, in degrees, from its second moments."""
    rows, columns = (torch.linspace(-1, 1, side) for side in images.shape[-2:])
    ink = images[:, 0] / images.sum((1, 2, 3))[:, None, None]
    x, y = (torch.einsum("nrc,c->n", ink, columns), torch.einsum("nrc,r->n", ink, rows))
    across, down = columns - x[:, None], rows - y[:, None]
    xx, yy, xy = (
        torch.einsum("nrc,nr,nc->n", ink, *parts)
        for parts in ((1 + 0 * down, across**2), (down**2, 1 + 0 * across), (down, across))
    )
    return torch.rad2deg(torch.atan2(-2 * xy, xx - yy)) / 2


class Linear:
    """The doubled angle as a linear function of the pixels."""

    def __init__(self, images: Tensor) -> None:
        doubled = torch.deg2rad(2 * axis(images))
        pixels = images.flatten(1)
        inner = pixels.mT @ pixels + 10 * torch.eye(pixels.shape[1])
        target = torch.stack([doubled.cos(), doubled.sin()], 1)
        self.weights = torch.linalg.solve(inner, pixels.mT @ target)

    def __call__(self, images: Tensor) -> Tensor:
        cosine, sine = (images.flatten(1) @ self.weights).unbind(1)
        return torch.rad2deg(torch.atan2(sine, cosine)) / 2


def orientations() -> ob.Scan:
    """Scan both models of the orientation of digits, under rotations by any angle."""
    images = torch.nn.functional.pad(ob.datasets.digits()[0][:400], (3, 3, 3, 3))
    models = {"moments": axis, "linear": Linear(images[200:])}
    task = ob.tasks.Regression(representation="angle:degrees:180")
    data = (images[:200], axis(images[:200]))
    return ob.scan(models, data, group="rotations:24", task=task, progress=False)


def main() -> None:
    """Print the results."""
    scan = poses()
    print(scan.data[["gap_center", "gap_front"]].mean("sample").to_dataframe().round(3))
    orbit = ob.nero.aggregate(scan, metric="error_center")
    ob.figures.save(ob.figures.aggregate(orbit), "poses.png")
    scan = orientations()
    error = scan.data["score"].median("sample")
    for model in scan.models:
        one = error.sel(model=model)
        upright = float(one[scan.group.identity])
        print(f"{model}: median error {upright:.1f}° upright, {float(one.max()):.1f}° at worst")


if __name__ == "__main__":
    main()
