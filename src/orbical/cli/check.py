"""`orbical check`: a gate for continuous integration, from a stored scan and a few thresholds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._imports_and_paths import existing_file
from .._text import printable
from ..errors import InputError
from .arguments import Import, Options, Store, announce_folder
from .printing import Columns, Number, Sheet, Span, format_flags, print_results

if TYPE_CHECKING:
    from ..checks import Check

INCONCLUSIVE = 3
"""The exit status of checks of which none fails and some are inconclusive; 2 is that of errors."""

SHORTCUTS = {
    "max_gap": "Largest invariance gap; of atoms, that of every quantity in its unit.",
    "max_changed": "Largest share of samples whose prediction changes somewhere on the orbit.",
    "min_accuracy": "Smallest accuracy, mean over the orbit.",
    "min_worst_accuracy": "Smallest accuracy at the worst element.",
    "max_accuracy_drop": "Largest loss of accuracy from the identity to the worst element.",
    "max_ece": "Largest calibration error, mean over the orbit.",
    "max_worst_ece": "Largest calibration error at the worst element.",
    "max_pooled_ece": "Largest calibration error, pooled over the orbit.",
    "max_ks": "Largest KS calibration error, mean over the orbit.",
    "max_mahalanobis": "Largest Mahalanobis calibration error, mean over the orbit.",
    "max_worst_mahalanobis": "Largest Mahalanobis calibration error at the worst element.",
    "max_bleed": "Largest aleatoric bleed of noise-free targets.",
    "min_score": "Smallest score, mean over the orbit.",
    "max_score": "Largest score, mean over the orbit.",
}
"""Thresholds that have an option of their own; `--max` and `--min` take all others."""
_COLORS = {"pass": None, "fail": "red", "inconclusive": "yellow"}


def _check_with_shortcuts(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each of the `SHORTCUTS`, which the command takes as its last keywords."""
    *others, _ = inspect.signature(command, eval_str=True).parameters.values()
    options = []
    for name, text in SHORTCUTS.items():
        option = typer.Option(help=text, rich_help_panel="Thresholds")
        kind, own = inspect.Parameter.KEYWORD_ONLY, Annotated[float | None, option]
        options.append(inspect.Parameter(name, kind, default=None, annotation=own))
    command.__signature__ = inspect.Signature([*others, *options])  # type: ignore[attr-defined]
    return command


@format_flags("json", "csv", "markdown")
@_check_with_shortcuts
def check(
    store: Store,
    max_: Annotated[list[str] | None, typer.Option("--max", metavar="NAME=VALUE")] = None,
    min_: Annotated[list[str] | None, typer.Option("--min", metavar="NAME=VALUE")] = None,
    bins: int | None = None,
    level: float | None = None,
    resamples: int | None = None,
    strict: Annotated[bool | None, typer.Option("--strict")] = None,
    model: Annotated[list[str] | None, typer.Option("--model", metavar="NAME")] = None,
    junit: Path | None = None,
    config: Path | None = None,
    imports: Import = None,
    format_: str = "text",
    **shortcuts: float | None,
) -> None:
    """Check a scan against thresholds, for CI. Exits with status 1 if any fails.

    \b
    orbical check run.zarr --max-gap 0.02 --min-accuracy 0.9
    orbical check run.zarr --max smooth_ece=0.05 --max worst_ks=0.1
    orbical check outputs.npz --max-ece 0.05

    Each value has a confidence interval, which is corrected for the number of positions if the
    value is that of the worst element. A check passes if the whole interval is within the threshold
    and fails if it is beyond. Otherwise there are too few samples to tell: the check is
    inconclusive and says how many would decide, and the status is 3 if none fails.

    Thresholds can also be set in the table [tool.orbical.check] of pyproject.toml, for example
    max_gap = 0.02. Options on the command line take precedence.

    Args:
        store: A saved scan, such as run.zarr, or saved outputs, such as outputs.npz.
        max_: Largest value of a measure, mean over the orbit, such as smooth_ece=0.05;
            worst_smooth_ece, identity_smooth_ece or pooled_ece for another place. Measures of all
            outputs, such as nll, need saved outputs. Repeatable.
        min_: Smallest value of a measure, written as for --max. Repeatable.
        bins: Number of bins of binned measures.
        level: Nominal coverage of the intervals. Default: 0.95.
        resamples: Number of resamples for each interval. Default: 1000.
        strict: Count inconclusive checks as failures.
        model: Check only this model. Repeatable.
        junit: Write JUnit XML to this file.
        config: A TOML file with tool.orbical.check; ./pyproject.toml by default.
    """
    from ..checks import check as checked
    from ..checks import configured_check
    from ..data import OUTPUT_SUFFIXES
    from ..store import load

    subject = store if store.suffix in OUTPUT_SUFFIXES else load(store)
    given: Options = shortcuts | _check_thresholds("max", max_) | _check_thresholds("min", min_)
    given |= {"bins": bins, "level": level, "resamples": resamples, "strict": strict}
    given["models"] = model
    table = existing_file("--config", config) if config else Path("pyproject.toml")
    settings = configured_check(table, given)
    counted_as_failures = settings.pop("strict", False)
    rows = checked(subject, **settings)
    if junit is not None:
        announce_folder(junit)
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(junit_xml(rows, str(store), counted_as_failures), encoding="utf-8")
    failed, unsure = (sum(row.outcome == name for row in rows) for name in ("fail", "inconclusive"))
    if format_ == "text":
        _print_checks(rows, failed, unsure, counted_as_failures)
    else:
        print_results(format_, [asdict(row) for row in rows], [Sheet.of("checks", rows, _COLUMNS)])
    if failed or unsure:
        raise typer.Exit(1 if failed or counted_as_failures else INCONCLUSIVE)


def _check_thresholds(side: str, given: list[str] | None) -> dict[str, float | None]:
    """Read thresholds written as NAME=VALUE."""
    found: dict[str, float | None] = {}
    for text in given or []:
        name, _, number = text.partition("=")
        try:
            found[f"{side}_{name.strip().replace('-', '_')}"] = float(number)
        except ValueError:
            raise InputError(f"--{side}", "NAME=VALUE", repr(text)) from None
    return found


def _print_checks(rows: list[Check], failed: int, unsure: int, strict: bool) -> None:
    for row in rows:
        typer.secho(printable(row), fg=_COLORS[row.outcome])
    if failed or unsure:
        counted = ", which --strict counts as failures" if strict else ""
        doubt = f", {unsure} inconclusive: too few samples to tell{counted}" if unsure else ""
        typer.echo(f"{failed} of {len(rows)} checks failed{doubt}")


_COLUMNS: Columns = {
    "model": lambda row: row.model,
    "threshold": lambda row: row.name,
    "what": lambda row: row.what,
    "value": lambda row: Number(row.value),
    "interval": lambda row: Span(row.low, row.high),
    "limit": lambda row: Number(row.limit),
    "outcome": lambda row: f"{row.outcome}{row.outlook and ': '}{row.outlook}",
}


def junit_xml(rows: list[Check], suite: str, strict: bool) -> str:
    """Write checks as JUnit XML, a test case for each threshold and model.

    An inconclusive check is a skipped test or, if strict, a failed one.
    """
    from xml.etree import ElementTree

    name = printable(f"orbical check {suite}")
    root = ElementTree.Element("testsuite", name=name, tests=str(len(rows)))
    counts = {"failure": 0, "skipped": 0}
    for row in rows:
        about = {"classname": printable(row.model), "name": row.name}
        case = ElementTree.SubElement(root, "testcase", about)
        if row.outcome != "pass":
            kind = "failure" if strict or row.outcome == "fail" else "skipped"
            counts[kind] += 1
            ElementTree.SubElement(case, kind, message=printable(row))
    root.attrib |= {"failures": str(counts["failure"]), "skipped": str(counts["skipped"])}
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
