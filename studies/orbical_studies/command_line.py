"""How every study's command begins and ends: its options, what it wrote, an error in one line.

To be removed: `framework` replaces it, and only studies in `NOT_YET_PORTED` still use it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from orbical.errors import OrbicalError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")


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


def add_settings(
    parser: argparse.ArgumentParser, defaults: DataclassInstance, texts: Mapping[str, str]
) -> None:
    """Give a parser an option for each of some settings, with its default value.

    Args:
        parser: of a study.
        defaults: the settings; one that is a tuple takes several values.
        texts: names of settings, and what `--help` says of them.
    """
    for name, text in texts.items():
        value = getattr(defaults, name)
        several = isinstance(value, tuple)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(value[0] if several else value),
            nargs="+" if several else None,
            default=value,
            help=text,
        )


def given_settings(options: argparse.Namespace, defaults: Settings) -> Settings:
    """Take each setting from the option of its name, and leave the others; several are sorted.

    >>> from orbical_studies.swiss_roll.training import Settings
    >>> parser = argparse.ArgumentParser()
    >>> add_settings(parser, Settings(), {"epochs": "lengths of training", "seeds": "networks"})
    >>> chosen = given_settings(parser.parse_args(["--epochs", "9", "3"]), Settings())
    >>> chosen.epochs, chosen.seeds == Settings().seeds
    ((3, 9), True)
    """
    given = {
        field.name: getattr(options, field.name)
        for field in fields(defaults)
        if hasattr(options, field.name)
    }
    ordered = {k: tuple(sorted(v)) if isinstance(v, list) else v for k, v in given.items()}
    return replace(defaults, **ordered)


@contextmanager
def one_line_errors(parser: argparse.ArgumentParser) -> Iterator[None]:
    """End the program with status 2 and one line where the package refuses what it was given."""
    try:
        yield
    except OrbicalError as error:
        parser.exit(2, f"error: {error}\n")


def run_and_report(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    run: Callable[[argparse.Namespace], None],
    report: Callable[[Path], Iterable[Path]],
) -> None:
    """Run a study and write its page; with the step `report` write the page alone.

    Args:
        parser: of the study, with the steps `run` and `report`.
        arguments: of the command line.
        run: makes the results from the options, in the folder beside the page.
        report: writes the page from them, and returns what it wrote.
    """
    options = parser.parse_args(arguments)
    with one_line_errors(parser):
        if options.step == "run":
            run(options)
        say_written(report(options.page))


def say_written(paths: Iterable[Path]) -> None:
    """Name each file as soon as it is written.

    >>> say_written([Path("docs/tides.md")])
    wrote docs/tides.md
    """
    for path in paths:
        print(f"wrote {path}", flush=True)
