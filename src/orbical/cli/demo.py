"""`orbical demo`: scan models that ship with the package, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import Overwrite
from .demos import DEMOS, DemoOptions, find_demo


def demo(
    name: Annotated[str, typer.Argument(metavar="NAME")] = "digits",
    out: Path = Path("orbical-demo"),
    weights: Path | None = None,
    overwrite: Overwrite = False,
    samples: Annotated[int | None, typer.Option(min=1)] = None,
    view: bool = True,
) -> None:
    """Run a demo with models that ship with the package.

    Prints a table, saves figures, and opens the interactive view with live models. The demos:

    {demos}

    Args:
        name: One of {names}.
        out: The folder for the scan and the figures.
        weights: A folder with weights that you trained, as `python -m orbical_studies.zoo_training`
            does for each family. Default: those that ship.
        overwrite: Replace a scan of other data or networks.
        samples: Number of samples to scan. Default: depends on the demo.
        view: Open the interactive view at the end.
    """
    from .. import figures
    from .._console import Console
    from .scan_summaries import print_summary

    console = Console()
    made = find_demo(name).run(DemoOptions(name, out, samples, overwrite, weights))
    print_summary(made.scan)
    for title, figure in made.figures.items():
        console.print(f"figure  {figures.save(figure, out / name / f'{title}.png')}")
    console.print(f"scan    {made.scan.path}   (orbical view {made.scan.path})")
    if view:
        from ..interface import Server, open_session, serve

        session = open_session(made.scan, made.models)
        session.guide = True
        serve(Server(session))


demo.__doc__ = f"{demo.__doc__}".format(
    demos="\n\n    ".join(f"{name}: {find_demo(name).PURPOSE}." for name in DEMOS),
    names=", ".join(DEMOS),
)
