"""`orbical advise`: what would help the models of a saved scan."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .._text import number, percent
from .arguments import Import, Seed, Store, open_scan
from .printing import Columns, Number, Sheet, format_flags, print_results


@format_flags("json", "csv", "markdown")
def advise(
    store: Store,
    passing: float = 0.5,
    coverage: float = 0.9,
    margin: float = 0.02,
    level: float = 0.95,
    seed: Seed = 0,
    code: Annotated[bool, typer.Option("--code")] = False,
    imports: Import = None,
    format_: str = "text",
) -> None:
    """List what would help a model, with measured gains and costs.

    \b
    orbical advise run.zarr
    orbical advise run.zarr --code

    Temperatures, thresholds, prediction sets and averages over the orbit are fitted on one half of
    the samples and judged on the other, from stored predictions: no model runs. The gain is that in
    the cost of a prediction over the orbit, where an error costs 1 and a prediction whose
    confidence is too low is passed on at the cost of --passing.

    Args:
        store: A saved scan with labels, made with --keep probabilities for most remedies.
        passing: The cost of passing a prediction on to a person, relative to that of an error.
        coverage: The coverage of prediction sets.
        margin: A gain that is too small to matter.
        level: Nominal coverage of the intervals, of all remedies of a model together.
        seed: Seed of the halves.
        code: Print the Python code of the first remedy that helps.
    """
    from ..advice import advise as of_scan

    scan = open_scan(store)
    found = of_scan(scan, passing=passing, coverage=coverage, margin=margin, level=level, seed=seed)
    records = [
        {"model": one.model, "verdict": one.verdict}
        | {key: value for key, value in remedy.to_dict().items() if key != "change"}
        for one in found
        for remedy in one.remedies
    ]
    sheets = []
    for one in found:
        shown = one.remedies if format_ != "text" else [r for r in one.remedies if r.helps]
        if shown:
            sheets.append(Sheet.of(one.model, shown, _COLUMNS, corner="model"))
        if format_ == "text":
            typer.echo(f"{one.model}: {one.sentence}")
            if shown:
                typer.echo("")
                print_results("text", None, sheets[-1:])
            for expected in one.expectations:
                typer.echo(f"Expected of training: {expected.name}: {expected.expect}.")
                typer.echo(f"  {expected.link}")
            for why in one.missing:
                typer.echo(f"Not tried: {why}.")
            first = next((remedy for remedy in one.remedies if remedy.helps), None)
            if code:
                typer.echo(f"\n{first.code if first else 'No code: no remedy is shown to help.'}")
            typer.echo("")
    if format_ != "text":
        print_results(format_, [one.to_dict() for one in found], sheets, records=records)


def _change(remedy: Any, name: str) -> str:
    """Write a share before and after; nothing for scores, which have none."""
    if name not in remedy.before:
        return number(remedy.after["score"]) if name == "accuracy" else "-"
    return f"{percent(remedy.before[name], 1)} to {percent(remedy.after[name], 1)}"


_COLUMNS: Columns = {
    "remedy": lambda one: one.name,
    "gain": lambda one: Number(one.gain, interval=(one.low, one.high)),
    "accuracy": lambda one: _change(one, "accuracy"),
    "ECE": lambda one: _change(one, "pooled_ece"),
    "acts on": lambda one: _change(one, "answered"),
    "passes": lambda one: str(one.passes),
}
