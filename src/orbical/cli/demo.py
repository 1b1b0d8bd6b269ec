"""`orbical demo`: real digits, two networks, one orbit, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

SHOWN_DIGITS = (4, 6, 9)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Where the scan and the figures go.")] = Path(
        "orbical-demo"
    ),
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Train the two networks anew instead of using the shipped weights."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete a scan of other digits or networks first.")
    ] = False,
    samples: Annotated[int, typer.Option(min=1, help="How many test digits to scan.")] = 1000,
    view: Annotated[
        bool, typer.Option("--view/--no-view", help="Open the interactive view at the end.")
    ] = True,
) -> None:
    """Scan two digit networks over 72 rotations of real MNIST digits, and draw what they answer.

    Both networks have the same architecture and training budget; one saw only upright digits, the
    other turned ones. Neither has seen the digits that are scanned.
    """
    from rich.console import Console

    from ..datasets import mnist
    from ..engine import scan as run
    from ..groups import rotations
    from ..tasks import Classification
    from ..zoo import digits
    from .tables import print_summary

    console = Console()
    images, labels = mnist(split="test")
    weights = out / "weights" if train else None
    if weights is not None:
        digits.main(["--out", str(weights)])
    models = {name: digits.load(name, weights) for name in ("plain", "augmented")}
    result = run(
        models,
        (images[:samples], labels[:samples]),
        group=rotations(72),
        task=Classification(),
        out=out / "scan.zarr",
        overwrite=train or overwrite,
        keep=("probabilities", "inputs"),
    )
    print_summary(result, console)
    for path in draw(result, out):
        console.print(f"figure  {path}")
    console.print(f"scan    {result.path}   (orbical info {result.path})")


def draw(scan: Any, out: Path) -> list[Path]:
    """Draw the aggregate plot of each digit, some individual plots and the embedding."""
    import numpy as np

    from .. import figures, nero, reduce

    response = scan.data["score"].sel(model="plain").values
    label = scan.data["label"].values
    spread = response.std(1)
    images = scan.data["input"].values
    embedding = reduce.embed(scan, model="plain")
    beside = reduce.representatives(embedding, 8).tolist()
    made = {
        "aggregate": figures.aggregate(nero.aggregate(scan, by="label")),
        "embedding": figures.embedding(
            embedding, nero.individual(scan, beside), image=images[beside]
        ),
    }
    for digit in sorted({*SHOWN_DIGITS} & {*label.tolist()}):
        among = np.flatnonzero(label == digit)
        sample = int(among[spread[among].argmax()])  # the one whose answer changes most
        made[f"individual-{digit}"] = figures.individual(
            nero.individual(scan, sample), image=images[sample, 0]
        )
    return [figures.save(figure, out / f"{name}.png") for name, figure in made.items()]
