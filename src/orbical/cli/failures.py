"""`orbical failures`: subsets of the samples and parts of the orbit that a model fails on."""

from __future__ import annotations

from typing import Annotated

import typer

from .._text import counted, percent
from .arguments import Import, Seed, Store, open_scan
from .printing import Columns, Number, Sheet, format_flags, print_results

_COLUMNS: Columns = {
    "failure": lambda one: f"{one.column} {one.value} {one.where}".strip(),
    "share wrong": lambda one: Number(one.wrong),
    "confidence": lambda one: Number(one.confidence),
    "harm": lambda one: Number(one.harm),
    "harm of others": lambda one: Number(one.others),
    "harm elsewhere": lambda one: Number(one.elsewhere),
    "samples": lambda one: str(one.samples),
}


@format_flags("json", "csv", "markdown")
def failures(
    store: Store,
    by: Annotated[list[str] | None, typer.Option("--by", metavar="COLUMN")] = None,
    clusters: Annotated[int, typer.Option(min=0)] = 0,
    most: Annotated[int, typer.Option(min=1)] = 10,
    level: float = 0.95,
    seed: Seed = 0,
    imports: Import = None,
    format_: str = "text",
) -> None:
    """Find where a model is confidently wrong.

    \b
    orbical failures run.zarr
    orbical failures run.zarr --by label --by camera

    Labels, values of columns and quarters of numeric ones are searched at all arcs of the orbit, on
    one half of the samples. What was found is judged on the other half, against other samples at
    the same positions and the same samples at other positions.

    Args:
        store: A saved scan, such as run.zarr.
        by: A column to choose subsets by; by default the labels and all metadata. Repeatable.
        clusters: Also search so many clusters of the inputs (scans with --keep inputs).
        most: How many failures to judge, for each model.
        level: The probability that no listed failure is due to chance.
        seed: Seed of the halves.
    """
    from ..nero import failures as find

    scan = open_scan(store)
    found = find(scan, by or None, clusters=clusters, most=most, level=level, seed=seed)
    if format_ == "text":
        typer.echo(str(found))
        if found.found:
            typer.echo(
                f"\nFound among {found.searched:,} subsets and parts of the orbit; "
                f"{counted(len(found.open), 'suspicion')} not confirmed (--json lists all). "
                f"With probability {percent(level)} none of the listed is due to chance."
            )
    else:
        records = [one.to_dict() for one in (*found.found, *found.open)]
        sheet = Sheet.of("failures", found, _COLUMNS)
        print_results(format_, found.to_dict(), [sheet], records=records)
