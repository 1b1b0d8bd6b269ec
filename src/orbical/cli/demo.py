"""`orbical demo`: scan models that ship with the package, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .demos import DEMOS, Request, find


def demo(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=f"One of {', '.join(DEMOS)}.")
    ] = "digits",
    out: Annotated[Path, typer.Option(help="The folder for the scan and the figures.")] = Path(
        "orbical-demo"
    ),
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Train the networks again instead of using the shipped weights."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a scan of other data or networks.")
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Number of samples to scan. Default: depends on the demo."),
    ] = None,
    view: Annotated[
        bool, typer.Option("--view/--no-view", help="Open the interactive view at the end.")
    ] = True,
) -> None:
    """Run a demo with models that ship with the package.

    Prints a table, saves figures, and opens the interactive view with live models. The demos:
    """
    from .. import figures
    from .._console import Console
    from .tables import print_summary

    console = Console()
    made = find(name).run(Request(name, out, samples, overwrite, train))
    print_summary(made.scan, console)
    for title, figure in made.figures.items():
        console.print(f"figure  {figures.save(figure, out / name / f'{title}.png')}")
    console.print(f"scan    {made.scan.path}   (orbical view {made.scan.path})")
    if view:
        from ..interface import view as open_view

        open_view(made.scan, models=made.models)


demo.__doc__ = "\n\n    ".join(
    [f"{demo.__doc__}", *(f"{name}: {find(name).PURPOSE}." for name in DEMOS)]
)
