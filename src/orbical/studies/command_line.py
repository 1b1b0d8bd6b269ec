"""How every study's command begins and ends: its options, what it wrote, an error in one line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from orbical.errors import OrbicalError


def study_parser(
    name: str, description: str | None, page: Path, steps: Sequence[str] = ("run", "report")
) -> argparse.ArgumentParser:
    """Make the parser of a study that writes a page; the study adds its own options.

    Args:
        name: of the study, as `orbical study` knows it.
        description: what `--help` begins with, line by line as it stands.
        page: where the page goes unless `--page` says otherwise.
        steps: what can be done apart; the first is done where none is named, and `report` writes
            the page again from finished results.

    >>> parser = study_parser("tides", "How high the water is.", Path("docs/tides.md"))
    >>> parser.parse_args([]).step, parser.parse_args(["report"]).page.name
    ('run', 'tides.md')
    """
    parser = argparse.ArgumentParser(
        prog=f"orbical study {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "step", nargs="?", choices=steps, default=steps[0], help="report: the page alone"
    )
    parser.add_argument("--page", type=Path, default=page, help=f"default {page}")
    return parser


@contextmanager
def one_line_errors(parser: argparse.ArgumentParser) -> Iterator[None]:
    """End the program with status 2 and one line where the package refuses what it was given."""
    try:
        yield
    except OrbicalError as error:
        parser.exit(2, f"error: {error}\n")


def say_written(paths: Iterable[Path]) -> None:
    """Name each file as soon as it is written.

    >>> say_written([Path("docs/tides.md")])
    wrote docs/tides.md
    """
    for path in paths:
        print(f"wrote {path}", flush=True)
