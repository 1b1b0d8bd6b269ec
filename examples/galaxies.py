"""Label galaxies and rank them by their stage, turn them, and see what changes.

Run: python examples/galaxies.py (photographs of the EFIGI catalog where they are at hand; generated
galaxies otherwise)

A galaxy may have a bar, a ring and dust at once: several labels. Its Hubble stage is one of a few
classes in an order. Both are asked of two kinds of models: linear in the pixels, and linear in how
bright and how even the image is at each distance from the center, which no turn changes.
"""

import csv
import io
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orbical as ob
from orbical.errors import InputError

SIZE = 32
LABELS = {"bar": "Bar_Length", "arms": "Arm_Strength", "ring": "Inner_Ring", "dust": "Visible_Dust",
          "knots": "Hot_Spots", "edge-on": "Inclination"}  # fmt: skip
STAGES = {"elliptical": -3.5, "lenticular": 0.5, "early": 4.5, "late": 8.5, "irregular": np.inf}
GROUP = "dihedral:4"


@cache
def galaxies(count: int = 600) -> tuple[Tensor, Tensor, Tensor]:
    """Return images [N, 1, S, S], labels [N, 6] of 0, 1 and NaN, and stages [N]."""
    try:
        table = ob.datasets.data_file("EFIGI_attributes.csv", None, "efigi")
        archive = ob.datasets.data_file("images100.zip", None, "efigi")
    except InputError:
        return generated(count)
    from PIL import Image

    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))[: 7 * count : 7]
    with zipfile.ZipFile(archive) as files:
        pictures = [Image.open(io.BytesIO(files.read(f"{row['PGCname']}.jpg"))) for row in rows]
        gray = np.stack([np.array(one.convert("L").resize((SIZE, SIZE))) for one in pictures])
    images = torch.from_numpy(gray)[:, None].float() / 255
    shares = torch.tensor([[float(row[name]) for name in LABELS.values()] for row in rows])
    labels = (shares >= 0.5).float().masked_fill(shares < 0, torch.nan)  # -1 is unknown
    ends = torch.tensor([*STAGES.values()][:-1])
    return images, labels, torch.bucketize(torch.tensor([float(row["T"]) for row in rows]), ends)


def generated(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return discs with a bulge that is smaller at later stages, and parts as the labels say."""
    random = torch.Generator().manual_seed(0)
    labels = (torch.rand(count, len(LABELS), generator=random) > 0.6).float()
    stage = torch.randint(len(STAGES), (count,), generator=random)
    line = torch.linspace(-1, 1, SIZE)
    angle = torch.rand(count, 1, 1, generator=random) * torch.pi
    y, x = torch.meshgrid(line, line, indexing="ij")
    along, across = x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()
    bar, arms, ring, dust, knots, thin = labels.T[..., None, None]
    radius = (along**2 + (across * (1 + 2 * thin)) ** 2).sqrt()
    bulge = (1.0 - 0.2 * stage)[:, None, None]
    image = 0.4 * torch.exp(-3 * radius) + bulge * torch.exp(-8 * radius)
    image += 0.3 * bar * torch.exp(-((across / 0.08) ** 2) - (along / 0.4) ** 2)
    image += 0.2 * ring * torch.exp(-(((radius - 0.5) / 0.07) ** 2))
    image += (
        0.15 * arms * torch.exp(-2 * radius) * (2 * torch.atan2(across, along) + 9 * radius).cos()
    )
    image -= 0.2 * dust * torch.exp(-((across / 0.05) ** 2))
    noise = torch.randn(image.shape, generator=random)
    image += 0.02 * noise * (1 + 4 * knots)
    labels[:50, 2] = torch.nan  # of some nobody knows whether they have a ring
    return image[:, None], labels, stage


def pixels(images: Tensor) -> Tensor:
    """Return each pixel of a coarse image."""
    return F.avg_pool2d(images, 2).flatten(1)


def profile(images: Tensor) -> Tensor:
    """Return mean and deviation of the pixels at each distance from the center."""
    line = torch.arange(SIZE) - (SIZE - 1) / 2
    rings = (line[:, None] ** 2 + line**2).sqrt().flatten().long().clamp(max=15)
    member = F.one_hot(rings, 16).float()
    member = member / member.sum(0)
    flat = images[:, 0].flatten(1)
    mean = flat @ member
    return torch.cat([mean, ((flat**2) @ member - mean**2).clamp_min(1e-8).sqrt()], 1)


class Linear(nn.Module):
    """Outputs that are linear in features of an image."""

    def __init__(self, features: Callable[[Tensor], Tensor], images: Tensor, outputs: int) -> None:
        super().__init__()
        self.features = features
        rows = features(images)
        self.mean, self.scale = rows.mean(0), rows.std(0) + 1e-6
        self.layer = nn.Linear(rows.shape[1], outputs)

    def forward(self, images: Tensor) -> Tensor:
        return self.layer((self.features(images) - self.mean) / self.scale)


def fitted(model: Linear, images: Tensor, loss: Callable[[Tensor], Tensor]) -> Linear:
    """Fit a model with L-BFGS and a penalty."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=30)

    def step() -> Tensor:
        optimizer.zero_grad()
        value = loss(model(images)) + 3e-3 * model.layer.weight.square().sum()
        value.backward()
        return value

    optimizer.step(step)
    return model.eval()


def scanned(kind: str = "multilabel") -> tuple[dict[str, Any], ob.Scan]:
    """Fit both kinds of models to the labels or the stages, and scan them over D4."""
    torch.manual_seed(0)
    images, labels, stages = galaxies()
    train, test = slice(0, 450), slice(450, None)
    known = labels[train].isfinite()

    def of_labels(logits: Tensor) -> Tensor:
        truth = labels[train].nan_to_num()
        return F.binary_cross_entropy_with_logits(logits, truth, weight=known.float())

    def of_stages(logits: Tensor) -> Tensor:
        return F.cross_entropy(logits, stages[train])

    several = kind == "multilabel"
    loss, outputs = (of_labels, len(LABELS)) if several else (of_stages, len(STAGES))
    models = {
        name: fitted(Linear(features, images[train], outputs), images[train], loss)
        for name, features in {"pixels": pixels, "profile": profile}.items()
    }
    task = (
        ob.tasks.MultiLabel(classes=[*LABELS]) if several else ob.tasks.Ordinal(classes=[*STAGES])
    )
    scan = ob.scan(
        models,
        (images[test], (labels if several else stages)[test]),
        group=GROUP,
        task=task,
        keep="inputs",
        progress=False,
    )
    return models, scan


def main() -> None:
    """Print and draw the result."""
    _, several = scanned("multilabel")
    error = ob.calibration.along_orbit(ob.calibration.pairs_within(several), "ece", by="class_name")
    changed = ob.nero.consistency(several)["changed"]
    for number, model in enumerate(several.models):
        data = several.data.sel(model=model).mean(["sample", "element"])
        print(
            f"{model:>8}: F1 {float(data['f1']):.2f}, all labels right "
            f"{float(data['correct']):.0%}, labels of {float(changed[number]):.0%} change; ECE of "
            + ", ".join(
                f"{name} {float(error.sel(model=model, class_name=name).mean()):.2f}"
                for name in LABELS
            )
        )
    _, ordered = scanned("ordinal")
    error = ob.calibration.along_orbit(ob.calibration.pairs_within(ordered), "ece", by="threshold")
    kappa, changed = ob.nero.quadratic_kappa(ordered), ob.nero.consistency(ordered)["changed"]
    for number, model in enumerate(ordered.models):
        data = ordered.data.sel(model=model).mean(["sample", "element"])
        print(
            f"{model:>8}: {float(data['rank_error']):.2f} stages off, RPS "
            f"{float(data['rps']):.3f}, kappa {float(kappa[number].mean()):.2f}, stages of "
            f"{float(changed[number]):.0%} change; ECE of cumulative probabilities "
            f"{float(error.sel(model=model).mean()):.2f}"
        )
    ob.figures.save(ob.figures.aggregate(kappa), "stages.png")
    # ob.view(several, models)


if __name__ == "__main__":
    main()
