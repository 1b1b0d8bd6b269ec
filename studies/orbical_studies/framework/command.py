"""The command line of every study."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orbical.errors import OrbicalError

from .page import write_page
from .paths import Paths
from .results import Results
from .settings import add_options, from_options
from .study import Study


def run_study(study: Study, arguments: Sequence[str] | None = None) -> None:
    """Run a study, or one step of it, from the command line.

    Without a step all of them run in their order, and then the page is written. Errors that the
    package raises on purpose end the program with one line and status 2.

    Args:
        study: The study.
        arguments: Of the command line, without the study's name; default those of the program.
    """
    steps = (*study.steps, "page")
    parser = argparse.ArgumentParser(
        prog=f"orbical-study {study.name}",
        description=study.description,
        epilog="With changed settings, results and page are written into the folder of large files",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("step", nargs="?", choices=steps, help="default: all, in this order")
    parser.add_argument("--results", type=Path, metavar="DIR", help="folder of the CSV files")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder of large files")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where to write the page")
    parser.add_argument("--no-figures", action="store_true", help="write the page's text alone")
    add_options(parser.add_argument_group("settings"), study.settings)
    given = parser.parse_args(arguments)
    try:
        settings = from_options(given, study.settings)
        paths = Paths.in_checkout(study.name)
        if settings != study.settings:  # never over the committed results
            paths = replace(paths, results=paths.work / "results", page=paths.work / "page.md")
        changed = {n: getattr(given, n) for n in ("results", "work", "page") if getattr(given, n)}
        paths = replace(paths, **changed)
        results = Results(paths.results, paths.work)
        for name in (given.step,) if given.step else steps:
            if name != "page":
                study.steps[name](settings, results)
                continue
            for path in write_page(study, results, paths, figures=not given.no_figures):
                print(f"wrote {path}", flush=True)
    except OrbicalError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
