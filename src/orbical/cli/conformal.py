"""`orbical conformal`: coverage and size of prediction sets, along the orbit of a scan."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import number, percent
from ..errors import InputError, check_name
from .arguments import Options, Seed, Store, open_scan, save_figure
from .printing import Cell, Sheet, format_flags, print_results, with_interval

if TYPE_CHECKING:
    import pandas as pd

    from ..conformal import ConformalIntervals, ConformalSets


@format_flags("json", "csv", "markdown", "latex")
def conformal(
    store: Store,
    coverage: float = 0.9,
    method: str | None = None,
    calibrate: Annotated[list[str] | None, typer.Option("--calibrate", metavar="WHERE")] = None,
    share: float = 0.5,
    level: float = 0.95,
    seed: Seed = 0,
    figure: Path | None = None,
    format_: str = "text",
) -> None:
    """Measure the coverage of prediction sets along orbits.

    \b
    orbical conformal run.zarr --coverage 0.9
    orbical conformal outputs.npz --method aps

    Some of the samples calibrate the sets; the others test them. Coverage is guaranteed at the
    positions where the sets are calibrated, and nowhere else.

    Args:
        store: A saved scan with probabilities, such as run.zarr (orbical scan --keep
            probabilities), or saved outputs, such as outputs.npz.
        coverage: The share of sets that should contain the truth.
        method: lac, aps or raps for classes; absolute or normalized for numbers. Default: lac or
            absolute.
        calibrate: Where the sets of a scan are calibrated: identity, pooled, position or average.
            Default: all that apply. Repeatable.
        share: The share of the samples used for calibration.
        level: Nominal coverage of the intervals of the measured values.
        seed: Seed of the split into calibration and test samples.
        figure: Write the coverage along the orbit, with sets calibrated at the identity: .png,
            .pdf or .svg.
    """
    from ..conformal import CALIBRATED, along_orbit, coverage_table, holds_values
    from ..data import OUTPUT_SUFFIXES, read_outputs

    settings: Options = {"share": share, "level": level, "seed": seed}
    saved = store.suffix in OUTPUT_SUFFIXES
    if saved and (figure is not None or calibrate):
        raise InputError("--figure, --calibrate", "a scan for them", "saved outputs")
    subject: Any = read_outputs(store) if saved else open_scan(store)
    numbers = holds_values(subject if saved else subject.data)
    for place in calibrate or []:
        check_name("--calibrate", place, CALIBRATED)
    chosen = _conformal_method(method, coverage, numbers)
    table = coverage_table(subject, chosen, calibrate=calibrate, **settings)
    if saved:
        table = table.assign(model=store.stem)
    if figure is not None:
        from ..figures.calibration import error_along_orbit

        curve = along_orbit(subject, chosen, calibrate="identity", **settings).coverage
        save_figure(error_along_orbit(curve, limits=(0.0, 1.0)), figure, "--figure")
    what = "intervals" if numbers else "sets"
    about = f", {what} for a coverage of {number(coverage)}"
    sheet = _sheet_without_orbit if saved else _conformal_sheet
    sheets = [
        sheet(str(name), rows, about, "width" if numbers else "size")
        for name, rows in table.groupby("model", sort=False)
    ]
    of_orbits = "" if saved else _OF_ORBITS
    where = "for samples like those that calibrate" if saved else f"where the {what} are calibrated"
    footer = (
        f"In brackets: {percent(level)} intervals. {of_orbits}The coverage is guaranteed {where}, "
        "on average over calibration sets."
    )
    print_results(format_, table.to_dict("records"), sheets, textwrap.fill(footer, 80))


_OF_ORBITS = (
    "Mean: of the elements, with the mean of their intervals. Worst: the interval is not corrected "
    "for picking the worst. "
)


def _conformal_method(
    name: str | None, coverage: float, numbers: bool
) -> ConformalSets | ConformalIntervals:
    from ..conformal import APS, LAC, RAPS, Absolute, Normalized

    known: Options = {"absolute": Absolute, "normalized": Normalized}
    if not numbers:
        known = {"lac": LAC, "aps": APS, "raps": RAPS}
    if name is not None:
        check_name("--method", name, known)
    chosen: ConformalSets | ConformalIntervals = known[name or next(iter(known))](coverage)
    return chosen


def _conformal_sheet(model: str, table: pd.DataFrame, about: str, extent: str) -> Sheet:
    """Return a row for each place of calibration: coverage at three places, and the mean size."""
    rows: list[list[Cell]] = []
    for place, each in table.groupby("calibrated", sort=False):
        worst = each.loc[each["coverage"].idxmin()]
        parts = each[[name for name in each if name.startswith(("coverage", "size"))]]
        mean = parts.mul(each["weight"], axis=0).sum()
        covered = [
            with_interval(each.iloc[int(each["identity"].argmax())], "coverage"),
            with_interval(mean, "coverage"),
            with_interval(worst, "coverage", worst["element"]),
        ]
        rows.append([str(place), *covered, with_interval(mean, "size")])
    headings = ["calibrated", "coverage at\nthe identity", "mean over\nthe orbit"]
    headings += ["at the worst\nelement", f"mean {extent} over\nthe orbit"]
    return Sheet(model, headings, rows, about, _samples(table), "model")


def _sheet_without_orbit(model: str, table: pd.DataFrame, about: str, extent: str) -> Sheet:
    """Return the coverage and the mean size of saved outputs."""
    cells: list[Cell] = [with_interval(table.iloc[0], name) for name in ("coverage", "size")]
    return Sheet(model, ["coverage", f"mean {extent}"], [cells], about, _samples(table), "model")


def _samples(table: pd.DataFrame) -> str:
    held, tested = (int(table[name].iloc[0]) for name in ("held", "tested"))
    return f"calibrated on {held} samples, tested on {tested}"
