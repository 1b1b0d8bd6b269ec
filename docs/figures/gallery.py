"""Make the gallery: its pictures, from the code that the page shows, and the page.

    python docs/figures/gallery.py

runs each example below, writes its figure to docs/guide/img/gallery and the page docs/gallery.md.
Tasks, studies and audits are shown by pictures that their own scripts have made. About a minute.
"""

# ruff: noqa: E501, code and tables of pictures are easier to read whole
from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from orbical.figures import save

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "guide" / "img" / "gallery"
AUDITS = DOCS / "audits"
LARGE, SMALL = 900, 440

SETUP = """
import numpy as np

import orbical as ob
from orbical import bounds, calibration, selective
from orbical.figures import bounds as draw_bounds
from orbical.figures import calibration as draw_calibration

models = {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES}
images, labels = ob.datasets.mnist("test")
scan = ob.scan(
    models,
    (images[:500], labels[:500]),
    group="rotations:36",
    task="classification",
    keep=("probabilities", "inputs"),
    progress=False,
)
"""


class Example(NamedTuple):
    """A figure: the function that draws it, what it shows, and the code that makes `fig`."""

    function: str
    shows: str
    code: str


FIGURES = (
    Example(
        "figures.aggregate",
        "The mean score at every element of the group, for each model and class.",
        'fig = ob.figures.aggregate(ob.nero.aggregate(scan, by="label"))',
    ),
    Example(
        "figures.individual",
        "One sample: its input, and the score of each model along its orbit.",
        "fig = ob.figures.individual(ob.nero.individual(scan, 2), images[2, 0])",
    ),
    Example(
        "figures.embedding",
        "Every sample as a point; samples with similar responses are close together.",
        'fig = ob.figures.embedding(ob.embedding.embed(scan, "pca", model="plain"))',
    ),
    Example(
        "figures.averaging",
        "Accuracy, likelihood and calibration of predictions averaged over the orbit.",
        "fig = ob.figures.averaging(ob.nero.averaging(scan))",
    ),
    Example(
        "figures.layer_errors",
        "What each layer of a network adds to the error of its predictions.",
        "found = ob.testing.layer_errors(\n"
        '    models["plain"], images[:64], group="cyclic:4", task="classification"\n'
        ")\n"
        "fig = ob.figures.layer_errors(found)",
    ),
    Example(
        "figures.calibration.reliability_diagram",
        "Accuracy against confidence, without bins, with an interval and the density of confidences.",
        "curves = {}\n"
        "for model in scan.models:\n"
        "    confidence, correct = calibration.pair_at(scan, element=3, model=model)\n"
        "    curves[model] = calibration.reliability_curve(confidence, correct)\n"
        "fig = draw_calibration.reliability_diagram(curves)",
    ),
    Example(
        "figures.calibration.cumulative_plot",
        "Cumulative accuracy and confidence, whose difference KS and ESD measure.",
        "curves = {\n"
        "    model: calibration.cumulative_curve(*calibration.pair_at(scan, element=3, model=model))\n"
        "    for model in scan.models\n"
        "}\n"
        "fig = draw_calibration.cumulative_plot(curves)",
    ),
    Example(
        "figures.calibration.error_along_orbit",
        "The calibration error at every element, here the ECE.",
        'fig = draw_calibration.error_along_orbit(calibration.along_orbit(scan, "ece"))',
    ),
    Example(
        "figures.risk_coverage_plot",
        "The error rate if the model abstains on the least certain samples.",
        "curves = {\n"
        "    model: selective.risk_coverage(*calibration.pair_at(scan, element=3, model=model))\n"
        "    for model in scan.models\n"
        "}\n"
        "fig = ob.figures.risk_coverage_plot(curves)",
    ),
    Example(
        "figures.group_picture",
        "How the elements of a group move a flag in the plane or in space.",
        'fig = ob.figures.group_picture("octahedral", "rotations:8", "dihedral:4")',
    ),
    Example(
        "figures.bounds.group_comparison",
        "The best accuracy that each group allows, computed before training.",
        "rng = np.random.default_rng(0)\n"
        "points = rng.integers(-3, 4, size=(500, 2)).astype(float)\n"
        "sides = (points[:, 0] + points[:, 1] > 0).astype(int)\n"
        'groups = ["cyclic:2", "cyclic:4", "flips", "dihedral:4"]\n'
        "fig = draw_bounds.group_comparison(bounds.compare_groups((points, sides), groups))",
    ),
    Example(
        "figures.bounds.dissent_per_orbit",
        "How much the labels within each orbit disagree.",
        "mass = rng.dirichlet([0.4] * 3, size=12) / 12\n"
        "table = bounds.OrbitTable(\n"
        "    mass, confidence=rng.uniform(0.5, 1, 12).round(1), predicted=mass.argmax(1)\n"
        ")\n"
        "fig = draw_bounds.dissent_per_orbit(table)",
    ),
    Example(
        "figures.bounds.calibration_interval",
        "The range of calibration errors that an invariant model can have.",
        "fig = draw_bounds.calibration_interval(bounds.classification(table))",
    ),
    Example(
        "figures.bounds.forced_overconfidence",
        "The calibration error that a symmetry forces on a model, by confidence.",
        "p = np.linspace(0, 1, 101)\n"
        'curves = {"twelve orbits": bounds.forced_overconfidence(table, p)}\n'
        "fig = draw_bounds.forced_overconfidence(p, curves)",
    ),
    Example(
        "figures.bounds.fibers",
        "Orbits with the same confidence form a fiber, whose accuracy is what counts for calibration.",
        "orbit, angle = rng.integers(1, 4, 72), rng.integers(0, 24, 72) * np.pi / 12\n"
        "x = orbit[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)\n"
        "label = (np.sin(orbit * angle) > 0).astype(int)\n"
        "confidence = np.where(orbit < 3, 0.7, 0.9)\n"
        'fig = draw_bounds.fibers(x, label, [orbit], [confidence], ["rotations"])',
    ),
    Example(
        "figures.bounds.taxonomy_map",
        "Where a symmetry is correct, incorrect or extrinsic.",
        "found = bounds.taxonomy(x, label, ob.groups.rotations(12), support=0.1)\n"
        "fig = draw_bounds.taxonomy_map(x, found)",
    ),
)


class Shown(NamedTuple):
    """A task or a study: its name, its picture and page below docs, and the code that makes it."""

    name: str
    image: str
    page: str
    code: str


TASKS = (
    Shown("classification", "images/interface.png", "guide/scan.md", "orbical demo"),
    Shown("choice", "audits/gemma/letters.webp", "guide/language-models.md", "make audit NAME=gemma"),
    Shown("multilabel", "guide/img/labels-view.png", "guide/labels.md", "python examples/galaxies.py"),
    Shown("ordinal", "guide/img/grades-view.png", "guide/labels.md#grades", "python examples/galaxies.py"),
    Shown("text", "guide/img/text-view.png", "guide/labels.md#text", "python examples/text_lines.py"),
    Shown("segmentation", "guide/img/segmentation-view.png", "guide/dense.md", "python examples/segmentation.py"),
    Shown("detection", "guide/img/detection-aggregate.png", "guide/detection.md", "orbical demo detection"),
    Shown("dense_regression", "guide/img/depth-view.png", "guide/dense.md", "python examples/dense_regression.py"),
    Shown("key_points", "guide/img/key-points.png", "guide/dense.md#key-points-and-pose", "python examples/key_points.py"),
    Shown("flow", "studies/piv/quivers.png", "studies/piv.md", "orbical demo piv"),
    Shown("regression", "guide/img/two-kinds-of-uncertainty.png", "guide/uncertainty.md", "python examples/molecules.py"),
    Shown("regression of signals", "guide/img/signals-view.png", "guide/signals.md", "python examples/signals.py"),
    Shown("mixed", "guide/img/poses.png", "guide/scan.md#scan-inputs-other-than-images", "python examples/poses.py"),
    Shown("point_classification", "guide/img/points-view.png", "guide/points.md", "python examples/points.py"),
    Shown("atoms", "guide/img/crystals.png", "guide/molecules.md", "python examples/crystals.py"),
    Shown("volumes", "guide/img/volumes-view.png", "guide/volumes.md", "python examples/volumes.py"),
    Shown("your own task", "guide/img/own-task.png", "guide/own-task.md", "python examples/own_task.py"),
    Shown("your own group", "guide/img/own-group.png", "guide/own-group.md", "python examples/own_group.py"),
)  # fmt: skip

STUDIES = {
    "digits-nero": "details.png",
    "detection": "aggregate.png",
    "piv": "flows.png",
    "point-clouds": "ball.png",
    "examples": "fibers.png",
    "swiss-roll": "worlds.png",
    "digits": "collisions.png",
    "galaxies": "nero.png",
    "esd": "fronts.png",
    "vector-field": "fields.png",
    "qm9": "curves.png",
    "spectra": "samples.png",
}

INTRODUCTION = """---
hide: [navigation]
---

# Gallery

Click a picture to see the code that makes it. Every figure function takes computed results and returns a
matplotlib figure; save it with `ob.figures.save(fig, "name.pdf")`. This page is generated by
`python docs/figures/gallery.py`.
"""

VIEW = (1440, 900)
SAMPLE = (945, 621, 1435, 895)  # of the view: the input of one sample, and its prediction


def thumbnail(image: Image.Image, path: Path, width: int) -> Path:
    """Write a small copy of a picture, on white."""
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    if white.width > width:
        white = white.resize((width, round(white.height * width / white.width)), Image.LANCZOS)
    path.parent.mkdir(parents=True, exist_ok=True)
    white.save(path, quality=82, method=6)
    return path


def draw_figures(space: dict[str, Any]) -> None:
    """Run the code of every figure and write its picture."""
    exec(SETUP, space)
    for one in FIGURES:
        exec(one.code, space)
        raw = save(space["fig"], FOLDER / "drawn.png")
        thumbnail(Image.open(raw), FOLDER / f"{anchor(one)}.webp", LARGE)
        raw.unlink()


def anchor(one: Example) -> str:
    """Return the name of a figure on the page."""
    return one.function.rpartition(".")[2]


def card(image: str, link: str, words: str) -> str:
    """Return a thumbnail that is a link."""
    picture = f'<img src="../{image}" alt="">'
    return f'<a href="{link}">{picture}<span>{words}</span></a>\n'


def audit_card(picture: Path) -> str:
    """Return the thumbnail of an audit; its page begins with its title."""
    name = picture.parent.name
    title = (AUDITS / f"{name}.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
    words = f"{title}<code>make audit NAME={name}</code>"
    return card(f"audits/{name}/thumbnail.webp", f"../audits/{name}/", words)


def grid(cards: list[str]) -> str:
    """Return thumbnails side by side."""
    return f'\n<div class="gallery">\n{"".join(cards)}</div>\n'


def page() -> str:
    """Return the page in Markdown."""
    parts = [INTRODUCTION, "\n## Figures\n"]
    image = "guide/img/gallery/{}.webp".format
    parts.append(
        grid([card(image(anchor(one)), f"#{anchor(one)}", anchor(one)) for one in FIGURES])
    )
    parts.append(
        "\n## Tasks\n\nA picture opens the guide to the task. The command below it makes the scan.\n"
    )
    parts.append(
        grid(
            [
                card(
                    image(f"task-{slug(one.name)}"),
                    address(one.page),
                    f"{one.name}<code>{one.code}</code>",
                )
                for one in TASKS
            ]
        )
    )
    parts.append("\n## Studies\n\nA picture opens the study. The command below it repeats it.\n")
    parts.append(
        grid(
            [
                card(
                    image(f"study-{name}"),
                    f"../studies/{name}/",
                    f"{name}<code>make study NAME={name}</code>",
                )
                for name in STUDIES
            ]
        )
    )
    parts.append(
        "\n## Audits\n\nWhat orbical finds in published models. A picture opens the audit. The command "
        "below it repeats it. One table lists [all verdicts](audits/index.md).\n"
    )
    parts.append(grid([audit_card(path) for path in sorted(AUDITS.glob("*/thumbnail.webp"))]))
    parts.append(
        f"\n## Code of the figures\n\nAll examples use this scan:\n\n```python\n{SETUP.strip()}\n```\n"
    )
    for one in FIGURES:
        alt = one.shows.rstrip(".")
        parts.append(
            f"\n### {anchor(one)} {{ #{anchor(one)} }}\n\n`ob.{one.function}`: {one.shows}\n\n"
            f"```python\n{one.code}\n```\n\n![{alt}]({image(anchor(one))})\n"
        )
    return "".join(parts)


def slug(name: str) -> str:
    """Return a name for a file."""
    return name.replace(" ", "-").replace("_", "-")


def address(place: str) -> str:
    """Return the address of a page of the site, from the gallery."""
    name, _, part = place.partition("#")
    return f"../{name.removesuffix('.md')}/" + (f"#{part}" if part else "")


def main() -> None:
    """Write the pictures and the page."""
    draw_figures({})
    for one in TASKS:
        image = Image.open(DOCS / one.image)
        part = image.crop(SAMPLE) if image.size == VIEW else image
        thumbnail(part, FOLDER / f"task-{slug(one.name)}.webp", SMALL)
    for name, picture in STUDIES.items():
        source = DOCS / "studies" / name / picture
        thumbnail(Image.open(source), FOLDER / f"study-{name}.webp", SMALL)
    (DOCS / "gallery.md").write_text(page(), "utf-8")
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len([*FOLDER.iterdir()])} pictures, {size // 1024} kB")


if __name__ == "__main__":
    main()
