"""Define a task in one file: image segmentation, scanned over flips.

Run: python examples/own_task.py

`docs/guide/own-task.md` explains it. The images are lit from the left, so a model that learns where
it is bright fails on mirrored images. A model of local contrast does not.
"""

import io
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.tasks import Task, Variable

CLASSES = ("background", "disc")
FLIPS = ob.groups.flips().coords["flip"]


class Segmentation(Task):
    """Predict the class of each pixel; class maps transform with the image."""

    name: ClassVar[str] = "own_segmentation"
    score_meaning = "intersection over union"
    higher_is_better: ClassVar[bool] = True
    truth_name: ClassVar[str] = "map"
    truth_dims = ("class", "row", "column")
    detail_view: ClassVar[str] = "png"

    def __init__(self, classes: int) -> None:
        super().__init__(input=ob.actions.Images(), output=ob.actions.Images())
        self.classes = classes

    def read(self, raw: Any, outputs: str | None = None) -> Tensor:
        """Return probabilities from logits [N, C, H, W]."""
        logits = self.picked(raw)
        if not isinstance(logits, Tensor) or logits.ndim != 4 or logits.shape[1] != self.classes:
            raise ModelError(
                f"model output: expected logits [sample, {self.classes}, row, column], "
                f"got {tuple(getattr(logits, 'shape', ())) or type(logits).__name__}"
            )
        return logits.softmax(1)

    def check_target(self, target: Any, count: int) -> Tensor:
        """Return class maps [N, H, W] as one-hot planes, which can be transformed."""
        maps = torch.as_tensor(target)
        if maps.ndim != 3 or len(maps) != count or maps.is_floating_point():
            raise InputError(
                "labels",
                f"class indices [{count}, row, column]",
                f"{maps.dtype} of shape {tuple(maps.shape)}",
            )
        if int(maps.min()) < 0 or int(maps.max()) >= self.classes:
            raise InputError(
                "labels",
                f"class indices 0 .. {self.classes - 1}",
                f"{int(maps.min())} .. {int(maps.max())}",
            )
        return F.one_hot(maps.long(), self.classes).movedim(-1, 1).float()

    def check_range(self, target: Tensor, outputs: Tensor) -> None:
        if target.shape[1:] != outputs.shape[1:]:
            raise InputError(
                "labels",
                f"maps of {tuple(outputs.shape[2:])} pixels, as the model predicts",
                f"maps of {tuple(target.shape[2:])} pixels",
            )

    def variables(self, labeled: bool) -> dict[str, Variable]:
        own = {
            "segments": Variable(("sample", "element", "row", "column"), "most probable class"),
            "share": Variable(("sample", "element", "class"), "share of pixels per class"),
        }
        if labeled:
            own["overlap"] = Variable(
                ("sample", "element", "class"), "intersection over union of each class"
            )
        return self.common_variables(labeled, self.truth_dims) | own

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean overlap of the classes that occur, [K, B]."""
        return _overlap(outputs, reference, valid).nanmean(-1)

    def reference(self, consensus: Tensor) -> Tensor:
        """Return the most probable class of each pixel, as one-hot planes."""
        return _winners(consensus)

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Any) -> dict[str, Tensor]:
        extras = {
            "segments": outputs.argmax(2).float(),
            "share": _winners(outputs).mean((-2, -1)),
        }
        if target is not None:
            moved = self.output.move(elements, target[None])
            extras["overlap"] = _overlap(outputs, moved, self.output.valid(elements, outputs))
        return extras

    def draw_detail(self, details: dict[str, Any], models: list[str]) -> bytes:
        """Draw the predictions at one position, [model, row, column], for the view."""
        from matplotlib.figure import Figure

        fig = Figure(figsize=(1.6 * len(models), 1.9), layout="constrained")
        panels = fig.subplots(1, len(models), squeeze=False)[0]
        for axes, name, segments in zip(panels, models, details["segments"], strict=True):
            axes.imshow(segments, vmin=0, vmax=self.classes - 1)
            axes.set(title=name, xticks=[], yticks=[])
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=120)
        return buffer.getvalue()


def _winners(probabilities: Tensor) -> Tensor:
    """Return one-hot planes [..., C, H, W] of the most probable class."""
    return F.one_hot(probabilities.argmax(-3), probabilities.shape[-3]).movedim(-1, -3).float()


def _overlap(outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
    """Return the intersection over union [K, B, C] per class, NaN if a class does not occur."""
    predicted, truth = _winners(outputs), reference > 0.5
    seen = torch.ones_like(predicted) if valid is None else valid[:, None, None].to(predicted)
    both = (predicted * truth * seen).sum((-2, -1))
    either = (torch.maximum(predicted, truth.to(predicted)) * seen).sum((-2, -1))
    return both / either.where(either > 0, torch.nan)


def scenes(count: int, seed: int, size: int = 32) -> tuple[Tensor, Tensor]:
    """Return images [N, 1, H, W] of discs lit from the left, and class maps [N, H, W]."""
    random = torch.Generator().manual_seed(seed)
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    center = torch.rand(count, 2, 1, 1, generator=random) * 16 + 8
    radius = torch.rand(count, 1, 1, generator=random) * 4 + 3
    maps = (rows - center[:, 0]) ** 2 + (columns - center[:, 1]) ** 2 < radius**2
    light = 0.6 * (1 - columns / size)
    noise = 0.05 * torch.randn(count, size, size, generator=random)
    return (light + 0.3 * maps + noise)[:, None], maps.long()


class OfPlaces(nn.Module):
    """Uses each pixel and its position, so it can learn the lighting."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        row, column = torch.linspace(-1, 1, height), torch.linspace(-1, 1, width)
        places = torch.stack(torch.meshgrid(row, column, indexing="ij"))
        return self.layer(torch.cat([images, places.expand(len(images), -1, -1, -1)], 1))


class OfContrast(nn.Module):
    """Uses each pixel minus the median of its column, which removes light from the side."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.layer(images - images.median(-2, keepdim=True).values)


def fitted(model: nn.Module, images: Tensor, maps: Tensor) -> nn.Module:
    """Fit a model with L-BFGS, in less than a second."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=200)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(model(images), maps)
        value.backward()
        return value

    optimizer.step(loss)
    return model.eval()


def main() -> None:
    """Fit both models, scan them over flips, and print and draw the scores."""
    torch.manual_seed(0)
    training = scenes(100, seed=0)
    models = {"places": fitted(OfPlaces(), *training), "contrast": fitted(OfContrast(), *training)}
    scan = ob.scan(
        models,
        scenes(100, seed=1),
        group="flips",
        task=Segmentation(len(CLASSES)),
        keep="inputs",
        progress=False,
    )
    for model in scan.models:
        overlap = scan.data["score"].sel(model=model).mean("sample").values
        words = [f"{flip} {value:.3f}" for flip, value in zip(FLIPS, overlap, strict=True)]
        print(f"{model:>8}: {', '.join(words)}")
    print(
        "consensus against truth:", scan.data["consensus_vs_truth"].mean("sample").values.round(3)
    )
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "own-task.png")
    # ob.view(scan, models, task=Segmentation(len(CLASSES)))


if __name__ == "__main__":
    main()
