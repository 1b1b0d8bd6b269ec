"""Super-resolution: does every pixel turn with the picture, or only their mean?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import orbical as ob
from orbical.errors import ModelError
from orbical_audits import Audit, Outcome, Package, Picture, Table, interval, loading
from orbical_audits.environment import npm_folder
from orbical_audits.tfjs_layers import read_layers
from orbical_audits.verdicts import Verdict, verdict_of

PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "hubble_deep_field.jpg")
"""In the public domain or CC0, and in color."""
SIDE = 48
"""Pixels of the small pictures."""
SCALES = (2, 4)
VISIBLE = 8.0
"""Of 255 levels: a difference that an eye may see."""


def loaded(scale: int, folder: Path) -> Any:
    """Load ESRGAN-slim as a function that makes pictures smaller and enlarges them again."""
    with loading(f"ESRGAN-slim x{scale} 1.0.0", "esrgan_slim"):
        files = npm_folder(folder, "@upscalerjs/esrgan-slim")
        network = read_layers(files / "models" / f"x{scale}" / "model.json")
    return lambda large: network(F.avg_pool2d(large, scale))


def scanned(model: Any, large: Tensor, scale: int, store: Path) -> ob.Scan:
    """Scan on pictures [N, 3, H, W] in 0..255, which should come back as they are."""
    return ob.scan(
        {f"x{scale}": model},
        (large, large),
        group="dihedral:4",
        task="dense_regression",
        keep=("inputs", "predicted_maps"),
        out=store,
        batch_size=16,
        progress=False,
    )


def drawn(large: Tensor, ranges: np.ndarray) -> Any:
    """Draw the pictures whose pixels change most, and the range of each pixel along the orbit."""
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 3.6)
        axes = fig.subplots(2, 4)
        for column, sample in enumerate(np.argsort(-ranges.max((1, 2, 3)))[:4]):
            axes[0, column].imshow(large[sample].permute(1, 2, 0).numpy().astype(np.uint8))
            image = axes[1, column].imshow(ranges[sample].max(0), vmin=0, vmax=ranges.max())
        for each in axes.flat:
            each.set(xticks=[], yticks=[])
        axes[0, 0].set_ylabel("picture")
        axes[1, 0].set_ylabel("range")
        fig.colorbar(image, ax=axes[1], label="levels of 255").outline.set_visible(False)
    return fig


def photographs(side: int, each: int, seed: int) -> Tensor:
    """Cut random squares [N, 3, side, side] in 0..255, as many from each photograph."""
    from PIL import Image

    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise ModelError(
            "scikit-image: expected the package with its photographs, got none installed; install "
            "it with: make audit NAME=esrgan_slim"
        )
    generator = np.random.default_rng(seed)
    cut = []
    for name in PHOTOGRAPHS:
        whole = np.asarray(Image.open(Path(found.origin).parent / "data" / name).convert("RGB"))
        for _ in range(each):
            top, left = (generator.integers(size - side) for size in whole.shape[:2])
            cut.append(whole[top : top + side, left : left + side])
    return torch.from_numpy(np.stack(cut)).permute(0, 3, 1, 2).float()


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan both networks, and compare the orbit of other squares without orbical."""
    rows, again, pictures = [], [], {}
    for scale in SCALES:
        model = loaded(scale, folder)
        large = photographs(scale * SIDE, size["squares"], seed)
        file = "scan.zarr" if scale == SCALES[0] else f"scan-x{scale}.zarr"  # the first is shown
        scan = scanned(model, large, scale, folder / file)
        maps = torch.from_numpy(scan.data["predicted_maps"].values[0]).transpose(0, 1)
        back = ob.actions.Images().move(scan.group.inverse(), maps)  # exact: pixels only move
        ranges = (back.amax(0) - back.amin(0)).numpy()
        score = scan.data["score"].values[0][:, scan.group.identity]
        gap = scan.data["invariance_gap"].values[0]
        rows.append(measured(f"x{scale}", ranges, score, gap, seed))
        other = photographs(scale * SIDE, max(1, size["squares"] // 2), seed + 1)
        again.append({"network": f"x{scale}", **columns(by_hand(model, other), seed)})
        pictures[f"x{scale}"] = Picture(
            drawn(large, ranges), f"Enlarged pictures and the range of each pixel, x{scale}"
        )
    caption = (
        "In levels of 255, over squares: the error of the enlarged picture; the root mean square "
        "distance of the eight predictions from their mean; the range of a pixel along the "
        "orbit, in "
        "the mean and at the worst pixel; and the share of pixels whose range is above 8 levels."
    )
    second = "Other squares, rotated and mirrored by NumPy: the same ranges."
    return Outcome({"networks": Table(caption, rows), "again": Table(second, again)}, pictures)


def by_hand(model: Any, large: Tensor) -> np.ndarray:
    """Return the ranges along D4 without orbical."""
    answers = []
    for turns in range(4):
        for mirror in (False, True):
            given = np.rot90(large.numpy(), turns, (2, 3))
            given = (given[..., ::-1] if mirror else given).copy()
            answer = model(torch.from_numpy(given)).detach().numpy()
            answer = answer[..., ::-1] if mirror else answer
            answers.append(np.rot90(answer, -turns, (2, 3)))
    return np.ptp(np.stack(answers), axis=0)


def columns(ranges: np.ndarray, seed: int) -> dict[str, Any]:
    """Return what the ranges of pixels [sample, channel, row, column] say."""
    parts = {
        "mean range": ranges.mean((1, 2, 3)),
        "worst pixel": ranges.max((1, 2, 3)),
        "visible": (ranges.max(1) > VISIBLE).mean((1, 2)),
    }
    return {key: interval(value.astype(float), seed=seed) for key, value in parts.items()}


def measured(
    name: str, ranges: np.ndarray, score: np.ndarray, gap: np.ndarray, seed: int
) -> dict[str, Any]:
    """Return one row of the table."""
    error = {"error": score, "distance": gap}
    first = {key: interval(value.astype(float), seed=seed) for key, value in error.items()}
    return {"network": name, **first, **columns(ranges, seed)}


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each network."""
    return {f"ESRGAN-slim {row['network']}": _decide(row) for row in tables["networks"]}


def _decide(row: Any) -> Verdict:
    worst = row["worst pixel"]
    return verdict_of(worst, VISIBLE, exact=worst["high"] < 1e-2)


audit = Audit(
    title="ESRGAN-slim, pictures made larger",
    question="Does the enlarged picture rotate with the picture, pixel by pixel?",
    group="quarter turns and mirrors (D4), which move pixels exactly",
    inputs="squares of five photographs in scikit-image (astronaut, cat, coffee, rocket, Hubble "
    "deep field), made smaller by the mean of 2 x 2 or 4 x 4 pixels, which rotates exactly",
    packages=(
        Package("@upscalerjs/esrgan-slim", "1.0.0", source="npm"),
        Package("scikit-image", "0.26.0", dependencies=False),
    ),
    license="MIT, code and weights; the photographs are CC0 or in the public domain",
    promise="Pictures two, three, four or eight times as large; nothing is said about rotated "
    "ones. "
    "A picture has no preferred direction for an enlargement, so that one may be expected to "
    "rotate with it.",
    promised="nothing",
    rule="By the range of single pixels along the eight positions, moved back, in levels of "
    "255: **invariant** if the worst pixel of a square changes by less than 0.01 levels, "
    "in the mean over squares (upper limit); **within tolerance** if by less than 8 "
    "levels, which an eye hardly sees (upper limit); else **not invariant**, however "
    "small the mean over pixels is. The network states no confidence.",
    decide=decide,
    finding="On average it does: the eight predictions lie within {{ networks[0].distance | "
    "cell }} "
    "levels of 255 (x2) and {{ networks[1].distance | cell }} levels (x4) of their mean, far less "
    "than the error of the enlargement.\n\n"
    "Single pixels do not: the worst pixel of a square changes by "
    "{{ networks[0]['worst pixel'] | cell }} and {{ networks[1]['worst pixel'] | cell }} "
    "levels, and {{ networks[0].visible | percent }} and {{ networks[1].visible | percent }} of "
    "the pixels change by more than 8. The pictures show where: for x2 the worst pixels "
    "are in the corners, where the network sees zeros beyond the picture; for x4 "
    "(in the protocol) they are at bright edges inside. The authors promise nothing else.",
    advice="Average the eight orientations where single pixels matter, and give x2 a margin that "
    "is cut off afterwards, because its worst pixels are at the border.",
    confirmed="Other squares, rotated and mirrored by NumPy without orbical: the worst pixel "
    "changes by {{ again[0]['worst pixel'] | cell }} (x2) and {{ again[1]['worst pixel'] | cell }} "
    "levels (x4), and {{ again[0].visible | percent }} and {{ again[1].visible | percent }} of the "
    "pixels change by more than 8.",
    sizes={"quick": {"squares": 5}, "full": {"squares": 40}},
    run=run,
    shown=(loaded, scanned, drawn),
    shareable="photographs in scikit-image, CC0 or in the public domain",
)
