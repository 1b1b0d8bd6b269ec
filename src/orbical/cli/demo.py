"""`orbical demo`: models, data and an orbit that come with the package, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .demos import DEMOS, Order, find

_HELP = "\n".join(
    [
        "Scan models that ship with the package and show the results.",
        "",
        "Prints a table, draws figures, and opens the interactive view, where the models answer",
        "live. The demos:",
        "",
        *(f"{name}: {find(name).PURPOSE}.\n" for name in DEMOS),
    ]
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", help=_HELP)(demo)


def demo(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=f"One of {', '.join(DEMOS)}.")
    ] = "digits",
    out: Annotated[Path, typer.Option(help="Where the scan and the figures go.")] = Path(
        "orbical-demo"
    ),
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Train the networks anew instead of using the shipped weights."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete a scan of other data or networks first.")
    ] = False,
    samples: Annotated[
        int | None, typer.Option(min=1, help="How many samples to scan (default: the demo's own).")
    ] = None,
    view: Annotated[
        bool, typer.Option("--view/--no-view", help="Open the interactive view at the end.")
    ] = True,
) -> None:
    """Run one demo from its data to the view."""
    from rich.console import Console

    from .. import figures
    from .tables import print_summary

    console = Console()
    made = find(name).run(Order(name, out, samples, overwrite, train))
    print_summary(made.scan, console)
    for title, figure in made.figures.items():
        console.print(f"figure  {figures.save(figure, out / name / f'{title}.png')}")
    console.print(f"scan    {made.scan.path}   (orbical view {made.scan.path})")
    if view:
        from ..interface import view as open_view

        open_view(made.scan, models=made.models)
