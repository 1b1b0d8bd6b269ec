"""PP-OCR recognition: what does a line of text say in the mirror, upside down and tilted?"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

import orbical as ob
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
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

NAME, TITLE = "pp_ocr", "PP-OCRv6 small"
HEIGHT, WIDTH = 160, 448
"""Of the paper, on which a line has room to turn by 15 degrees."""
LINE, SHORTEST = 48, 320
"""Height of the lines that the network reads, and their least width, as in the package."""
ANGLES = (0, -15, -12, -9, -6, -4, -2, -1, 1, 2, 4, 6, 9, 12, 15)
SURE, WRONG_SURE, ALLOWED = 0.8, 0.05, 0.03
POSITIONS = {"upright": 0, "mirrored": None, "upside down": 180, "tilted by 10°": 10}
SYMMETRIC = (
    *("AIM", "AUTO", "AXIOM", "HAT", "HAY", "HIT", "HOT", "MAMMOTH", "MAXIMUM", "MAY", "MOUTH"),
    *("OATH", "OUT", "TAXI", "THAT", "TOMATO", "TOY", "WAIT", "WAX", "WAY", "WHAT", "WHY", "WITH"),
)
"""Words of letters that are their own mirror images."""


def loaded() -> Any:
    """Return a function that cuts lines out of paper and reads them: texts and confidences."""
    with loading("PP-OCRv6_rec_small of rapidocr 3.10.0", NAME):
        package = Path(str(find_spec("rapidocr").origin)).parent  # type: ignore[union-attr]
        network = ob.predictors.OnnxPredictor(str(package / "models/PP-OCRv6_rec_small.onnx"))
    letters = ["", *network.metadata["character"].split("\n"), " "]

    def read(ink: Tensor) -> tuple[list[str], Tensor]:
        found = [spelled(network(line_of(sheet)[None])[0], letters) for sheet in ink]
        return [text for text, _ in found], torch.tensor([sure for _, sure in found])

    return read


def spelled(probabilities: Tensor, letters: Sequence[str]) -> tuple[str, float]:
    """Return the text of probabilities `[place, letter]`, and its mean confidence.

    Letter 0 is the gap between letters; one letter at several places in a row is one.

    >>> spelled(torch.eye(3)[[1, 1, 0, 1, 2, 2]], ["", "o", "k"])
    ('ook', 1.0)
    """
    best, index = probabilities.max(-1)
    new = (index > 0) & (index != F.pad(index, (1, 0))[:-1])
    text = "".join(letters[place] for place in index[new])
    return text, float(best[new].mean()) if text else 0.0


def scanned(read: Any, ink: Tensor, texts: list[str], group: Any, store: Path) -> ob.Scan:
    """Scan lines that move on their paper; ink is 1, so that what enters is paper."""
    return ob.scan(
        {TITLE: read},
        (ink, texts),
        group=group,
        task=ob.tasks.Text(),
        keep="inputs",
        out=store,
        progress=False,
    )


def line_of(ink: Tensor) -> Tensor:
    """Cut the upright box around the ink out of paper `[1, H, W]`, as the network takes it."""
    rows, columns = (torch.nonzero(ink[0].amax(axis) > 0.3).flatten() for axis in (1, 0))
    top, left = (max(int(found[0]) - 4, 0) for found in (rows, columns))
    cut = 1 - ink[:, top : int(rows[-1]) + 5, left : int(columns[-1]) + 5]
    width = max(16, round(LINE * cut.shape[2] / cut.shape[1]))
    line = F.interpolate(cut[None], (LINE, width), mode="bilinear", antialias=True)[0]
    scaled = (line.expand(3, -1, -1) - 0.5) / 0.5
    return F.pad(scaled, (0, max(0, SHORTEST - width)))


def tilts() -> ob.groups.Group:
    """Return small rotations, counter-clockwise."""
    angle_rad = np.deg2rad(ANGLES)
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    turns = np.moveaxis(np.array([[cosine, -sine], [sine, cosine]]), -1, 0)
    return ob.groups.from_matrices(plane=turns, coords={"angle": np.array(ANGLES, float)})


def on_paper(text: str, font: ImageFont.FreeTypeFont) -> Tensor:
    """Return the ink `[1, 160, 448]` of a line in the middle of its paper."""
    sheet = Image.new("L", (WIDTH, HEIGHT), 0)
    middle = (WIDTH / 2, HEIGHT / 2)
    ImageDraw.Draw(sheet).text(middle, text, fill=255, font=font, anchor="mm")
    return torch.from_numpy(np.asarray(sheet, np.float32))[None] / 255


def line(number: int, fonts: Sequence[str]) -> tuple[Tensor, str]:
    """Draw a line of license text: other words, another font and size for each number."""
    rng = np.random.default_rng([19, number])
    font = free_font(fonts[number % len(fonts)], int(rng.integers(22, 33)))
    words = license_words()[int(rng.integers(len(license_words()) - 40)) :]
    count = 1
    while font.getlength(" ".join(words[: count + 1])) < 0.85 * WIDTH:
        count += 1
    text = " ".join(words[:count])
    return on_paper(text, font), text


def lines(start: int, stop: int, fonts: Sequence[str] = FONTS) -> tuple[Tensor, list[str]]:
    """Return the ink `[N, 1, 160, 448]` of some lines, and their texts."""
    ink, texts = zip(*(line(number, fonts) for number in range(start, stop)), strict=True)
    return torch.stack(ink), [*texts]


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan flips and tilts; then symmetric letters, and other lines with the package itself."""
    read = loaded()
    ink, texts = lines(0, size["lines"])
    flipped = scanned(read, ink, texts, "flips", folder / "scan.zarr")
    tilted = scanned(read, ink, texts, tilts(), folder / "tilts.zarr")
    flip = flipped.data["flip"].values
    angle = np.abs(tilted.data["angle"].values)
    chosen = {
        "mirrored": (flipped, (flip == "horizontal") | (flip == "vertical")),
        "upside down": (flipped, flip == "both"),
        "tilted by up to 4°": (tilted, (angle > 0) & (angle < 5)),
        "tilted by 6 to 15°": (tilted, angle > 5),
    }
    first = flipped.data["correct"].values[0][:, flipped.group.identity] > 0
    first &= tilted.data["correct"].values[0][:, tilted.group.identity] > 0
    pictures = {
        "mirror": Picture(
            drawn(read, flipped),
            "Mirrored lines, with what the network reads: the five predictions with letters "
            "that it is "
            "most confident of",
        ),
        "tilts": Picture(
            curves(tilted, first), "Share of lines read exactly, and confidence, at every tilt"
        ),
    }
    tables = {
        "upright": Table(
            "Upright lines: the share that is read exactly, letter by letter, the character error "
            "rate, and the mean confidence.",
            [of_upright(flipped, seed)],
        ),
        "families": Table(
            "Lines that are read exactly upright: the share of the views that are read exactly, "
            "the character error rate, the share of lines that change at some view, the mean "
            "confidence and its largest change, the share of the views that are wrong with a "
            "confidence above 0.8, and of these without those whose text is spaces only. (The last "
            "column was added after the run; the rule does not use it.)",
            [
                {"family": name, **measured(scan, first, views, seed)}
                for name, (scan, views) in chosen.items()
            ],
        ),
        "symmetric": Table(
            "Lines of letters that are their own mirror images, mirrored left-right: the letters "
            "that are seen then are the line, backward.",
            [of_symmetric(read, size["again"], seed)],
        ),
        "package": Table(
            "Other lines in another font (STIX), moved by Pillow and read by the package: by its "
            "recognition alone, and by all of it, which finds lines, rotates those that are upside "
            "down, and then reads. A text of spaces is nothing read.",
            of_package(*lines(size["lines"], size["lines"] + size["again"], ["STIXGeneral"])),
        ),
    }
    return Outcome(tables, pictures)


def of_upright(scan: ob.Scan, seed: int) -> dict[str, Any]:
    """Return the row of upright lines."""
    part = {
        name: scan.data[name].values[0][:, scan.group.identity]
        for name in ("correct", "cer", "confidence")
    }
    return {
        "lines": len(part["correct"]),
        "exact": share(part["correct"]),
        "character error rate": interval(part["cer"], seed=seed),
        "confidence": interval(part["confidence"], seed=seed),
    }


def measured(scan: ob.Scan, first: np.ndarray, views: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the columns of a family of views, over the lines that are read exactly upright."""
    right = scan.data["correct"].values[0][first][:, views] > 0
    rates = scan.data["cer"].values[0][first][:, views]
    upright = scan.data["confidence"].values[0][first][:, [scan.group.identity]]
    sure = scan.data["confidence"].values[0][first][:, views]
    letters = np.strings.strip(scan.data["text"].values[0][first][:, views]) != ""
    failed = ~right & (sure > SURE)
    return {
        "exact": interval(right.mean(1), seed=seed),
        "character error rate": interval(rates.mean(1), seed=seed),
        "changes somewhere": share(~right.all(1)),
        "confidence": interval(sure.mean(1), seed=seed),
        "confidence changes by": float(np.abs(sure - upright).max()),
        "wrong and confident": interval(failed.mean(1), seed=seed),
        "wrong and confident, with letters": interval((failed & letters).mean(1), seed=seed),
    }


def of_symmetric(read: Any, count: int, seed: int) -> dict[str, Any]:
    """Read mirrored lines of symmetric letters, against their letters in reversed order."""
    rng = np.random.default_rng([20, seed])
    texts = [" ".join(rng.choice(SYMMETRIC, 3)) for _ in range(count)]
    ink = torch.stack([on_paper(text, free_font(FONTS[0], 28)) for text in texts])
    task = ob.tasks.Text()
    scan = ob.scan({TITLE: read}, (ink.flip(-1), [text[::-1] for text in texts]), group="trivial",
                   task=task, progress=False)  # fmt: skip
    return of_upright(scan, seed)


def of_package(ink: Tensor, texts: list[str]) -> list[dict[str, Any]]:
    """Return a row for each position and each way of asking the package."""
    from rapidocr import RapidOCR

    quiet = {"Global.log_level": "critical"}
    alone = RapidOCR(params={**quiet, "Global.use_det": False, "Global.use_cls": False})
    return [
        *rows_of("recognition alone", alone, ink, texts),
        *rows_of("whole package", RapidOCR(params=quiet), ink, texts),
    ]


def rows_of(asked: str, reader: Any, ink: Tensor, texts: list[str]) -> list[dict[str, Any]]:
    """Return a row for each position of the lines."""
    rows = []
    for position, angle in POSITIONS.items():
        found = [answered(reader, sheet, angle, asked == "whole package") for sheet in ink]
        right = np.array([given == text for (given, _), text in zip(found, texts, strict=True)])
        sure = np.array([score > SURE for _, score in found])
        none = np.array([not given.strip() for given, _ in found])
        rows.append(
            {
                "asked": asked,
                "position": position,
                "exact": share(right),
                "nothing read": share(none),
                "wrong and confident": share(~right & ~none & sure),
            }
        )
    return rows


def answered(reader: Any, ink: Tensor, angle: float | None, whole: bool) -> tuple[str, float]:
    """Return the text and the least confidence that the package gives for paper that is moved."""
    paper = Image.fromarray(((1 - ink[0]) * 255).byte().numpy())
    if angle is None:
        paper = paper.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    else:
        paper = paper.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)
    if not whole:  # as a line: the box around its ink
        ink_box = Image.eval(paper, lambda level: 255 - level).getbbox()
        left, top, right, bottom = ink_box or (0, 0, *paper.size)
        paper = paper.crop((left - 4, top - 4, right + 4, bottom + 4))
    found = reader(np.asarray(paper.convert("RGB")))
    texts, scores = found.txts or (), found.scores or ()
    return " ".join(texts), min(scores, default=0.0)


def drawn(read: Any, scan: ob.Scan) -> Any:
    """Draw the mirrored lines in which the network is most confident, and what it reads."""
    place = int(np.flatnonzero(scan.data["flip"].values == "horizontal")[0])
    letters = np.strings.strip(scan.data["text"].values[0][:, place]) != ""
    sure = scan.data["confidence"].values[0][:, place] * letters
    chosen = np.argsort(-sure)[:5]
    mirrored = torch.from_numpy(scan.data["input"].values[chosen]).flip(-1)
    texts, _ = read(mirrored)
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 3.0)
        grid = fig.subplots(len(chosen), 1)
        for axes, sheet, text, score in zip(grid, mirrored, texts, sure[chosen], strict=True):
            axes.imshow(1 - sheet[0, 55:105].numpy(), cmap="gray", aspect="equal")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            axes.set_xlabel(f"read: {drawable(text)}   (confidence {score:.2f})")
    return fig


def drawable(text: str) -> str:
    """Draw an empty square for each letter that the font of the figures does not have.

    >>> print(drawable("to 」ə"))
    to □ə
    """
    from matplotlib.font_manager import findfont, get_font

    letters = get_font(findfont("DejaVu Sans")).get_charmap()
    return "".join(x if ord(x) in letters else "□" for x in text)


def curves(scan: ob.Scan, first: np.ndarray) -> Any:
    """Draw the share of exact lines and the mean confidence against the tilt."""
    angle = scan.data["angle"].values
    order = np.argsort(angle)
    columns = {"read exactly": "correct", "confidence": "confidence"}
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.2)
        axes = fig.subplots()
        for (label, name), color in zip(columns.items(), ob.figures.MODELS[1::-1], strict=True):
            values = scan.data[name].values[0][first].astype(float).mean(0)
            axes.plot(angle[order], values[order], "o-", ms=3, color=color, label=label)
        axes.set(xlabel="tilt in degrees", ylim=(-0.02, 1.05))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each family."""
    return {f"{TITLE}, {row['family']}": _decide(row) for row in tables["families"]}


def _decide(row: Any) -> Verdict:
    changes = row["changes somewhere"]
    exact = changes["value"] == 0 and row["confidence changes by"] < 1e-6
    confident = stays_confident(row["wrong and confident"], high=WRONG_SURE, low=WRONG_SURE)
    return verdict_of(changes, ALLOWED, exact=exact, confident=confident)


audit = Audit(
    title="PP-OCR, the recognition of a line",
    question="What does a text recognizer read in the mirror, upside down and in tilted lines, and "
    "does it know when it cannot read?",
    group="the four flips of the plane, among them the half turn, and rotations by up to 15 "
    "degrees; mirrored text is not text, so the best prediction there is none",
    inputs="lines of the text of this project's license (Apache-2.0), drawn in four fonts of the "
    "DejaVu family, each cut out by the upright box around its ink and scaled to 48 pixels",
    packages=(Package("rapidocr", "3.10.0"),),
    license="Apache-2.0 (code of RapidOCR; weights of PaddleOCR, PP-OCRv6 small)",
    promise="Upright lines, for this network alone. In the package a detector cuts out lines and "
    "levels them, a classifier rotates those that are upside down, and readings with a confidence "
    "below 0.5 are dropped (`text_score`). Nothing is said about mirror images. The audit asks the "
    "network alone; the last table asks the package.",
    promised="upright lines; the package rotates the others first",
    rule="Over lines that are read exactly, letter by letter, when upright, by families of "
    "views: **mirrored** (left-right, and top-bottom), **upside down** (a half turn), "
    "**tilted by up to 4°**, **tilted by 6 to 15°**. **Invariant** if no line changes and "
    "no confidence by more than 1e-6; **within tolerance** if less than 3 % of the lines "
    "change at some view (upper limit); **not invariant and confident** if more than 5 % "
    "of the views are wrong with a confidence above 0.8 (lower limit); **not invariant, "
    "low confidence there** if less than 5 % are (upper limit); else **not invariant**. A "
    "mirrored line cannot be read, so that only the confidence decides there.",
    decide=decide,
    finding="Tilted by up to 4 degrees, every line is read as upright: "
    "{{ families[2]['changes somewhere'] | percent }} of the lines change.\n\nTilted by 6 to 15 "
    "degrees, {{ families[3].exact | percent }} of the views are read exactly, and "
    "{{ families[3]['wrong and confident'] | percent }} are wrong and confident; of all letters "
    "in these "
    "views {{ families[3]['character error rate'] | percent }} are wrong.\n\nIn the mirror no "
    "line can be read, and for {{ families[0]['wrong and confident'] | percent }} of the views the "
    "network states another text with a confidence above 0.8. For "
    "{{ families[0]['wrong and confident, with letters'] | percent }} of the views this text has "
    "letters, as in the picture; for the others it is spaces only, which the whole package drops."
    "\n\nUpside down it is wrong for every line, and confident for "
    "{{ families[1]['wrong and confident'] | percent }}: too few to call it confident, too many "
    "to say that "
    "it knows.",
    advice="Level lines to 4° and correct their direction before recognition, as the whole package "
    "does. Confidence alone does not reject mirrored or strongly tilted lines.",
    main_table="families",
    confirmed="On other lines in another font, moved by Pillow and read by the recognition of the "
    "package, {{ package[1]['wrong and confident'] | percent }} of the mirrored lines, "
    "{{ package[2]['wrong and confident'] | percent }} of those upside down and "
    "{{ package[3]['wrong and confident'] | percent }} of those tilted by 10 degrees are wrong and "
    "confident. The whole package, which levels and rotates lines first, reads "
    "{{ package[6].exact | percent }} of the lines upside down and "
    "{{ package[7].exact | percent }} of the tilted ones exactly; in the mirror "
    "{{ package[5]['wrong and confident'] | percent }} of its predictions are wrong and "
    "confident. Lines of "
    "letters that are their own mirror images, mirrored, are read letter by letter backward for "
    "{{ symmetric[0].exact | percent }} of the lines.",
    sizes={"quick": {"lines": 200, "again": 60}, "full": {"lines": 600, "again": 200}},
    run=run,
    shown=(loaded, scanned),
    shareable="text of a license that may be copied, drawn with a free font",
)
