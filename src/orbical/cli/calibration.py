"""`orbical calibration`: every measure of saved outputs, or of a scan, with intervals."""

from __future__ import annotations

import glob
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from .._text import p_value, percent
from ..errors import InputError
from .arguments import Import, Seed, open_scan, path_or_url, save_figure
from .printing import Cell, Number, Sheet, Span, format_flags, print_results

if TYPE_CHECKING:
    from ..calibration import Interval

Row = dict[str, Any]


class _Draws(TypedDict):
    bins: int
    level: float
    resamples: int
    seed: int


_CAPTION = "if calibrated: mean and range of a calibrated model with the same predictions; "
_CAPTION += "bold: a value outside that range"
_FEW_COMPONENTS = 8
_ERRORS = ("ece", "mahalanobis_calibration")
"""Measures whose finding is said, the first that a table has."""


@format_flags("json", "csv", "markdown", "latex")
def calibration(
    files: Annotated[list[Any] | None, typer.Argument(parser=path_or_url, metavar="FILES")] = None,
    runs: Annotated[list[str] | None, typer.Option("--runs", metavar="NAME=PATTERN")] = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int | None = None,
    seed: Seed = 0,
    figure: Path | None = None,
    imports: Import = None,
    format_: str = "text",
) -> None:
    """Measure how well a model's confidence is calibrated.

    \b
    orbical calibration outputs.npz --figure reliability.png
    orbical calibration mine.npz theirs.npz
    orbical calibration run.zarr

    Each measure is printed with its interval and the value expected of a calibrated model.

    Args:
        files: Saved outputs, .npz with logits or probs, and labels; or target with mean and
            variance, covariance, or aleatoric and epistemic; or with gamma, nu, alpha and beta. Or
            a .csv, .tsv or .parquet of probabilities, with a column for each class and one named
            label. Several files are compared in pairs. Or one saved scan, such as run.zarr.
        runs: Files of several runs of one method, such as esd='esd-*.npz'. Prints mean and standard
            deviation. Repeatable.
        bins: Number of bins of binned measures.
        level: Nominal coverage of the intervals.
        resamples: Number of resamples for each interval. Default: 1000.
        seed: Seed of the resampling.
        figure: Write a reliability figure: .png, .pdf or .svg.
    """
    from ..calibration import RESAMPLES
    from ..store import is_remote

    drawn = RESAMPLES if resamples is None else resamples
    settings: _Draws = {"bins": bins, "level": level, "resamples": drawn, "seed": seed}
    given = list(files or [])
    if runs:
        if given:
            raise InputError("FILES", "none with --runs", given[0])
        if figure is not None:
            raise InputError("--figure", "none with --runs", "one")
        _show_calibration_of_runs(dict(map(_calibration_run_and_files, runs)), settings, format_)
        return
    if not given:
        raise InputError("FILES", "outputs.npz, run.zarr or --runs NAME=PATTERN", "none")
    if any(path.is_dir() or is_remote(path) for path in given):
        if len(given) > 1:
            raise InputError("FILES", "a single stored scan", "several paths")
        _show_calibration_of_scan(given[0], settings, figure, format_)
        return
    _show_calibration_of_outputs(given, settings, figure, format_)


def _show_calibration_of_outputs(
    paths: list[Path], settings: _Draws, figure: Path | None, format_: str
) -> None:
    from ..calibration import compare_outputs

    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    outputs = {
        name: _calibration_outputs_of_file(path) for name, path in zip(names, paths, strict=True)
    }
    tables = {name: _as_rows(_measured(name, one, settings)) for name, one in outputs.items()}
    several = len(outputs) > 1  # else pandas need not be imported
    differences = compare_outputs(outputs, **settings).to_dict("records") if several else []
    if figure is not None:
        _draw_calibration_of_outputs(outputs, figure, settings)
    if format_ == "latex":
        cells = {
            name: {measure: Number(row["value"]) for measure, row in table.items()}
            for name, table in tables.items()
        }
        sheets = [_sheet_by_method(cells, "outputs")]
    else:
        sheets = [_calibration_sheet(name, table, settings) for name, table in tables.items()]
    pairs = groupby(differences, lambda row: (row["a"], row["b"]))
    compared = [
        _calibration_difference_sheet(*pair, rows, settings["level"]) for pair, rows in pairs
    ]
    records = [
        {"outputs": name, "measure": measure, **row}
        for name, table in tables.items()
        for measure, row in table.items()
    ]
    for row in differences:  # in the same table: that of `outputs` minus that of `minus`
        named = {"outputs": row["a"], "minus": row["b"], "value": row["difference"]}
        same = ("measure", "low", "high", "p_value", "needed", "caution")
        records.append(named | {key: row[key] for key in same})
    content = {"level": settings["level"], "outputs": tables, "comparisons": differences}
    footer = (
        "needed: about how many samples would show a difference of this size\n"
        "Differences on the same samples are bold if 0 is outside the interval."
    )
    print_results(format_, content, sheets + compared, footer if compared else "", records)


def _calibration_run_and_files(text: str) -> tuple[str, list[Path]]:
    """Return the name and the files of `NAME=PATTERN`."""
    name, equals, pattern = text.partition("=")
    if not equals or not name or not pattern:
        raise InputError("--runs", "NAME=PATTERN", repr(text))
    paths = sorted(map(Path, glob.glob(pattern)))  # noqa: PTH207 - it may be absolute
    if not paths:
        raise InputError("--runs", f"files that match {pattern!r}", "none")
    return name, paths


def _calibration_outputs_of_file(path: Path) -> Row:
    from ..data import read_outputs

    try:
        return read_outputs(path)
    except InputError as error:
        if error.argument == "files":  # otherwise it begins with the name of the file
            raise error.about("FILES") from error
        raise InputError("FILES", problem=str(error)) from error


def _measured(name: str, outputs: Row, settings: _Draws) -> dict[str, Interval]:
    from ..calibration import measure_table

    try:
        return measure_table(outputs, **settings)
    except InputError as error:
        raise InputError("FILES", problem=f"{name}: {error}") from error


def _as_rows(table: dict[str, Interval]) -> dict[str, Row]:
    fields = ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high")
    return {
        name: {field: float(getattr(found, field)) for field in fields} | {"caution": found.caution}
        for name, found in table.items()
    }


def _draw_calibration_of_outputs(outputs: dict[str, Row], path: Path, settings: _Draws) -> None:
    from ..calibration import reliability_curve, top_label
    from ..figures.calibration import reliability_diagram

    classifiers = {name: one for name, one in outputs.items() if "labels" in one}
    if not classifiers:
        raise InputError("--figure", "outputs of a classifier", "those of regressors")
    draws: Row = {name: value for name, value in settings.items() if name != "bins"}
    curves = {
        name: reliability_curve(*top_label(**one), **draws) for name, one in classifiers.items()
    }
    save_figure(reliability_diagram(curves), path, "--figure")


def _titled(measure: str) -> str:
    from ..calibration import measure_title

    return measure_title(measure)


def _calibration_sheet(
    name: str, table: Mapping[str, Row], settings: _Draws, about: str = ""
) -> Sheet:
    """Return the measures of one model, and what its calibration error says."""
    from ..calibration import MEASURES, error_finding

    rows: list[list[Cell]] = []
    for measure, row in table.items():
        mean = measure in MEASURES and MEASURES[measure].interval == "bootstrap"
        below = mean and row["value"] < row["calibrated_low"]
        bold = below or row["value"] > row["calibrated_high"]
        value, ends = Number(row["value"], bold=bold), Span(row["low"], row["high"])
        usual = Span(row["calibrated_low"], row["calibrated_high"])
        rows.append([_titled(measure), value, ends, Number(row["calibrated"]), usual])
    caption = _CAPTION
    for error in [name for name in _ERRORS if name in table][:1]:
        said = error_finding(*(table[error][end] for end in ("value", "low", "high")))
        caption += said and f". {_titled(error)}: {said}"
    caption += _cautions({measure: row["caution"] for measure, row in table.items()})
    interval = f"{percent(settings['level'])} interval"
    headings = ["measure", "value", interval, "if calibrated", "its range"]
    return Sheet(name, headings, rows, about, caption, "model")


def _cautions(by_measure: Mapping[str, str]) -> str:
    """Return a line for each caution, after the measures that need it."""
    named: dict[str, list[str]] = defaultdict(list)
    for measure, text in by_measure.items():
        named[text].append(_titled(measure))
    of_text = sorted((text, "; ".join(measures)) for text, measures in named.items() if text)
    return "".join(f"\nCaution ({measures}): {text}" for text, measures in of_text)


def _calibration_difference_sheet(a: str, b: str, rows: Iterable[Row], level: float) -> Sheet:
    rows = list(rows)
    cells: list[list[Cell]] = [
        [
            _titled(row["measure"]),
            Number(row["difference"], bold=row["low"] > 0 or row["high"] < 0),
            Span(row["low"], row["high"]),
            p_value(row["p_value"]),
            "" if math.isnan(row["needed"] or math.nan) else f"{round(row['needed']):,}",
        ]
        for row in rows
    ]
    headings = ["measure", "difference", f"{percent(level)} interval", "p", "needed"]
    caption = _cautions({row["measure"]: row["caution"] for row in rows}).strip()
    return Sheet(f"{a} minus {b}", headings, cells, caption=caption, corner="models")


def _sheet_by_method(cells: Mapping[str, Mapping[str, Number]], corner: str) -> Sheet:
    """Return a row for each method and a column for each measure."""
    listed = list(dict.fromkeys(key for row in cells.values() for key in row))
    rows = [[name, *(row.get(key, "--") for key in listed)] for name, row in cells.items()]
    return Sheet("", [corner, *map(_titled, listed)], rows)


def _show_calibration_of_runs(
    methods: dict[str, list[Path]], settings: _Draws, format_: str
) -> None:
    """Show mean and standard deviation over runs, which one run does not have."""
    few: _Draws = {**settings, "resamples": 20}
    cells: dict[str, dict[str, Number]] = {}
    for name, paths in methods.items():
        tables = [
            _as_rows(_measured(str(path), _calibration_outputs_of_file(path), few))
            for path in paths
        ]
        values = {
            measure: [table[measure]["value"] for table in tables if measure in table]
            for measure in tables[0]
        }
        cells[name] = {
            measure: Number(statistics.fmean(of), statistics.stdev(of) if len(of) > 1 else None)
            for measure, of in values.items()
        }
    records = [
        {"method": name, "runs": len(methods[name]), "measure": measure}
        | {"mean": number.value, "sd": number.spread}
        for name, table in cells.items()
        for measure, number in table.items()
    ]
    sheet = _sheet_by_method(cells, "method")
    if format_ != "latex":
        measured = dict.fromkeys(key for row in cells.values() for key in row)
        rows = [[_titled(key), *(row.get(key, "-") for row in cells.values())] for key in measured]
        headings = ["measure", *(f"{name} ({len(methods[name])})" for name in cells)]
        sheet = Sheet("Mean and standard deviation over runs", headings, rows)
    print_results(format_, records, [sheet])


def _show_calibration_of_scan(
    path: Path, settings: _Draws, figure: Path | None, format_: str
) -> None:
    """Show how calibrated each model of a scan is, at the identity and along the orbit."""
    from ..calibration import scan_table

    scan = open_scan(path)
    rows = scan_table(scan, **settings).to_dict("records")
    if figure is not None:
        from ..calibration import error_curve
        from ..figures.calibration import error_along_orbit

        save_figure(error_along_orbit(error_curve(scan, **settings)), figure, "--figure")
    by_model: dict[str, dict[str, dict[str, Row]]] = {}
    for row in rows:
        of_model = by_model.setdefault(row["model"], {})
        of_model.setdefault(row["measure"], {})[row["place"]] = row
    sheets = []
    for model, table in by_model.items():
        whole = {name: at["identity"] for name, at in table.items() if "component" not in name}
        sheets.append(_calibration_sheet(model, whole, settings, ", at the identity"))
    sheets += [_calibration_sheet_of_orbit(model, table) for model, table in by_model.items()]
    footer = (
        f"In brackets: {percent(settings['level'])} intervals. Mean: mean of the measure over the "
        "elements, with\nthe mean of their intervals. Pooled: the measure of the outputs of all "
        "elements\ntogether; its interval is known for the ECE only. Worst: the interval is not\n"
        "corrected for picking the worst."
    )
    content = {"level": settings["level"], "rows": rows}
    print_results(format_, content, sheets, footer, records=rows)


def _calibration_sheet_of_orbit(model: str, table: Mapping[str, Mapping[str, Row]]) -> Sheet:
    """Return each measure at each place; of many components those with the most bleed."""
    from ..groups import PLACES

    along = {measure: at for measure, at in table.items() if "mean" in at}
    apart = [measure for measure in along if "component" in measure]
    most = sorted(apart, key=lambda one: -along[one]["mean"]["value"])[:_FEW_COMPONENTS]

    def cell(place: str, row: Row) -> Number:
        note = row["element"] if place == "worst" else ""
        return Number(row["value"], interval=(row["low"], row["high"]), note=note)

    rows: list[list[Cell]] = [
        [_titled(measure), *(cell(place, row) for place, row in at.items())]
        for measure, at in along.items()
        if measure not in apart or measure in most
    ]
    cautions = {
        measure: next((text for row in at.values() if (text := row["caution"])), "")
        for measure, at in along.items()
    }
    said = f"the {len(most)} of {len(apart)} components with the most bleed"
    headings = ["measure", *("\nthe ".join(text.rsplit(" the ", 1)) for text in PLACES.values())]
    caption = (said if len(apart) > len(most) else "") + _cautions(cautions)
    return Sheet(model, headings, rows, ", along the orbit", caption.strip(), "model")
