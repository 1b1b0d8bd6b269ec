"""Small smooth deformations that hurt a classifier most: an action of your own in `worst_case`.

A deformation moves each pixel of a digit by at most half a pixel along a sum of smooth waves. A
scan of some random deformations hardly harms the network; a search between them does.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats.qmc import Sobol
from torch import Tensor, nn

import orbical as ob
from orbical.actions import Action
from orbical.figures import style

WAVES = ((1, 1), (1, 2), (2, 1), (2, 2))
"""Half waves across and along the image; all are 0 at its border."""
NAMES = tuple(f"{axis}{i}{j}" for axis in ("x", "y") for i, j in WAVES)

# Displacements of a few pixels at most add up where deformations follow each other.
ob.groups.register_part("deformation", ob.groups.Part.shifts("DeformedImages"))


@ob.groups.register("deformations:0.5:16")
def deformations(size: float = 0.5, pairs: int = 16) -> ob.groups.Group:
    """Return deformations of at most `size` pixels along each axis, each with its opposite."""
    even = Sobol(len(NAMES), scramble=False).fast_forward(1)  # past a corner, to the center
    points = (2 * even.random(pairs) - 1) * size / len(WAVES)
    kept = np.unique(np.concatenate([points, -points]).round(12) + 0.0, axis=0)
    return ob.groups.from_parts(
        f"deformations:{size:g}:{pairs}",
        {"deformation": kept},
        coords=dict(zip(NAMES, kept.T, strict=True)),
        measure="uniform in the box of amplitudes",
    )


@ob.groups.register_chart("deformations")
def amplitudes(group: ob.groups.Group) -> ob.groups.Chart:
    """Return the amplitudes as continuous coordinates, within the box that bounds the size."""
    limit = float(group.spec.split(":")[1]) / len(WAVES)
    chart = ob.groups.Chart.of_grid(group, lambda coords: {"deformation": coords})
    every = np.full(len(NAMES), limit)
    return dataclasses.replace(chart, low=-every, high=every)


@ob.actions.register
class DeformedImages(Action):
    """Images `[B, C, H, W]` whose pixels are taken from displaced places."""

    parts: ClassVar[tuple[str, ...]] = ("deformation",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "channel", "row", "column")
    drawn_as: ClassVar[str] = "image"

    def move(self, elements: ob.groups.Elements, x: Tensor) -> Tensor:
        """Deform `x[K or 1, B, C, H, W]`."""
        count, height, width = len(elements), *x.shape[-2:]
        x = x.expand(count, *x.shape[1:])
        amount = torch.as_tensor(elements.parts["deformation"], dtype=x.dtype, device=x.device)
        rows, columns = ((torch.arange(n, device=x.device) + 0.5) / n for n in (height, width))
        waves = torch.stack(
            [
                torch.sin(np.pi * j * rows)[:, None] * torch.sin(np.pi * i * columns)
                for i, j in WAVES
            ]
        ).to(x)
        shift = torch.einsum("kaw,whv->khva", amount.unflatten(1, (2, -1)), waves)  # in pixels
        still = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), -1).to(x)
        places = 2 * (still - shift / still.new_tensor([width, height])) - 1
        moved = F.grid_sample(x.flatten(1, 2), places, align_corners=False, padding_mode="border")
        return moved.reshape(x.shape)


def trained(images: Tensor, labels: Tensor) -> nn.Module:
    """Return a small network, trained for a second."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
    return net


if __name__ == "__main__":
    images, labels = ob.datasets.digits()
    net = trained(images[:1000], labels[:1000])
    test_set = images[1000:1100], labels[1000:1100]
    task = ob.tasks.Classification(input=DeformedImages())
    found = ob.worst_case({"net": net}, test_set, group="deformations:0.5:16", task=task)
    table = found[["mean", "mean_low", "mean_high"]].to_dataframe().round(3)
    table["accuracy"] = found["correct"].mean("sample").to_series().round(2)
    print(table.to_string())
    print(f"the sampled deformations missed {float(found['mean_missed'][0]):.3f} on average")

    sample = int(found["missed"][0].argmax("sample"))
    worst = {"deformation": np.array([[float(found[name][0, sample]) for name in NAMES]])}
    moved = task.input.apply(ob.groups.Elements(worst, 1), test_set[0][sample : sample + 1])[0]
    true = int(test_set[1][sample])
    with style.styled():
        figure = style.figure(style.COLUMN, 2.1)
        pictures = {"upright": test_set[0][sample : sample + 1], "worst deformation": moved}
        for axis, (name, image) in zip(figure.subplots(1, 2), pictures.items(), strict=True):
            probability = net(image).softmax(-1)[0]
            axis.imshow(image[0, 0], cmap="gray_r")
            said = f"predicted {int(probability.argmax())}, p({true}) = {probability[true]:.2f}"
            axis.set(title=name, xlabel=said, xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
    style.save(figure, "deformations.png")
