"""`orbical check`: a gate for continuous integration, from a stored scan and a few thresholds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._imports import existing_file
from .._text import printable
from ..errors import InputError, unknown_name
from .arguments import Import, path_or_url
from .thresholds import SHORTCUTS, limits_from, settings_from, table_from

if TYPE_CHECKING:
    from .findings import Finding

INCONCLUSIVE = 3
"""The exit status of checks of which none fails and some are inconclusive; 2 is that of errors."""

_COLORS = {"pass": None, "fail": "red", "inconclusive": "yellow"}


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
    store: Annotated[Any, typer.Argument(parser=path_or_url, metavar="STORE")],
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
    inconclusive, and the status is 3 if none fails.

    Thresholds can also be set in the table [tool.orbical.check] of pyproject.toml, for example
    max_gap = 0.02. Options on the command line take precedence.

    Args:
        store: A saved scan, such as run.zarr, or saved outputs, such as outputs.npz.
        max_: Largest value of a measure, mean over the orbit, such as smooth_ece=0.05;
            worst_smooth_ece, pooled_smooth_ece or identity_smooth_ece for another place. Measures
            of all outputs, such as nll, need saved outputs. Repeatable.
        min_: Smallest value of a measure, written as for --max. Repeatable.
        bins: Number of bins of binned measures.
        level: Nominal coverage of the intervals. Default: 0.95.
        resamples: Number of resamples for each interval. Default: 200.
        strict: Count inconclusive checks as failures.
        model: Check only this model. Repeatable.
        junit: Write JUnit XML to this file.
        config: A TOML file with tool.orbical.check; ./pyproject.toml by default.
    """
    from ..store.scan_result import load
    from .findings import judge, judge_outputs

    scan = None if store.suffix == ".npz" else load(store)
    given = shortcuts | _thresholds("max", max_) | _thresholds("min", min_)
    chosen = existing_file("--config", config) if config else Path("pyproject.toml")
    table = table_from(chosen) if chosen.is_file() else {}
    limits = limits_from(given, table)
    settings = settings_from(table, bins=bins, level=level, resamples=resamples, strict=strict)
    if scan is None:
        for name in model or []:
            if name != store.stem:
                raise unknown_name("model", name, [store.stem])
        findings = judge_outputs(store, limits, settings)
    else:
        findings = judge(scan, limits, settings, model)
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(junit_xml(findings, str(store), settings.strict), encoding="utf-8")
    for finding in findings:
        typer.secho(printable(finding.line()), fg=_COLORS[finding.outcome])
    failed, unsure = (sum(f.outcome == name for f in findings) for name in ("fail", "inconclusive"))
    if failed or unsure:
        counted = ", which --strict counts as failures" if settings.strict else ""
        doubt = f", {unsure} inconclusive: too few samples to tell{counted}" if unsure else ""
        typer.echo(f"{failed} of {len(findings)} checks failed{doubt}")
        raise typer.Exit(1 if failed or settings.strict else INCONCLUSIVE)


def _thresholds(side: str, given: list[str] | None) -> dict[str, float | None]:
    """Read thresholds written as NAME=VALUE."""
    found: dict[str, float | None] = {}
    for text in given or []:
        name, _, number = text.partition("=")
        try:
            found[f"{side}_{name.strip().replace('-', '_')}"] = float(number)
        except ValueError:
            raise InputError(f"--{side}", "NAME=VALUE", repr(text)) from None
    return found


def junit_xml(findings: list[Finding], suite: str, strict: bool) -> str:
    """Write findings as JUnit XML, a test case for each rule and model.

    An inconclusive check is a skipped test or, if strict, a failed one.
    """
    from xml.etree import ElementTree

    name = printable(f"orbical check {suite}")
    root = ElementTree.Element("testsuite", name=name, tests=str(len(findings)))
    counts = {"failure": 0, "skipped": 0}
    for finding in findings:
        case = ElementTree.SubElement(
            root, "testcase", classname=printable(finding.model), name=finding.rule.name
        )
        if finding.outcome != "pass":
            kind = "failure" if strict or finding.outcome == "fail" else "skipped"
            counts[kind] += 1
            ElementTree.SubElement(case, kind, message=printable(finding.line()))
    root.attrib |= {"failures": str(counts["failure"]), "skipped": str(counts["skipped"])}
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
