"""`orbical check`: a gate for continuous integration, from a stored scan and a few thresholds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._imports import existing_file
from ..errors import InputError
from .arguments import Import, Store
from .thresholds import SHORTCUTS, judge, limits_from, settings_from

if TYPE_CHECKING:
    from .thresholds import Verdict


def _with_shortcuts(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each of the `SHORTCUTS`, which the command takes as its last keywords."""
    *others, _ = inspect.signature(command, eval_str=True).parameters.values()
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[float | None, typer.Option(help=text)],
        )
        for name, text in SHORTCUTS.items()
    ]
    command.__signature__ = inspect.Signature([*others, *options])  # type: ignore[attr-defined]
    return command


@_with_shortcuts
def check(
    store: Store,
    max_: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="NAME=VALUE",
            help="Largest value of any registered measure, mean over the orbit, such as "
            "smooth_ece=0.05; worst_smooth_ece, pooled_smooth_ece or identity_smooth_ece for "
            "another place. Repeatable.",
        ),
    ] = None,
    min_: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="NAME=VALUE", help="Smallest value, as --max. Repeatable."),
    ] = None,
    bins: Annotated[int | None, typer.Option(help="Number of bins of binned measures.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Check only this model. Repeatable.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with tool.orbical.check; ./pyproject.toml by default."),
    ] = None,
    imports: Import = None,
    **shortcuts: float | None,
) -> None:
    """Check a scan against thresholds, for CI. Exits with status 1 if any fails.

    \b
    orbical check run.zarr --max-gap 0.02 --min-accuracy 0.9
    orbical check run.zarr --max smooth_ece=0.05 --max worst_ks=0.1

    Thresholds can also be set in the table [tool.orbical.check] of pyproject.toml, for example
    max_gap = 0.02. Options on the command line take precedence.
    """
    from ..calibration.inputs import whole_number
    from ..store.scan_result import load

    scan = load(store)
    given = shortcuts | _thresholds("max", max_) | _thresholds("min", min_)
    chosen = existing_file("--config", config) if config else Path("pyproject.toml")
    settings = settings_from(chosen) if chosen.is_file() else {}
    limits = limits_from(given, settings)
    cells = whole_number("bins", settings.get("bins", 15) if bins is None else bins)
    verdicts = judge(scan, limits, cells, model)
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(junit_xml(verdicts, str(store)), encoding="utf-8")
    for verdict in verdicts:
        typer.secho(verdict.line(), fg=None if verdict.passed else "red")
    failed = sum(not verdict.passed for verdict in verdicts)
    if failed:
        typer.echo(f"{failed} of {len(verdicts)} checks failed")
        raise typer.Exit(1)


def _thresholds(side: str, given: list[str] | None) -> dict[str, float | None]:
    """Read thresholds written as NAME=VALUE."""
    found: dict[str, float | None] = {}
    for text in given or []:
        name, _, number = text.partition("=")
        try:
            found[f"{side}_{name.strip().replace('-', '_')}"] = float(number)
        except ValueError:
            raise InputError(f"--{side}: expected NAME=VALUE, got {text!r}") from None
    return found


def junit_xml(verdicts: list[Verdict], suite: str) -> str:
    """Write verdicts as JUnit XML, a test case for each rule and model."""
    from xml.etree import ElementTree

    failed = sum(not verdict.passed for verdict in verdicts)
    root = ElementTree.Element(
        "testsuite", name=f"orbical check {suite}", tests=str(len(verdicts)), failures=str(failed)
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            root, "testcase", classname=verdict.model, name=verdict.rule.name
        )
        if not verdict.passed:
            ElementTree.SubElement(case, "failure", message=verdict.line())
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
