"""`orbical calibration`: every measure of saved outputs, or of a scan, with intervals."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..store.files import is_remote
from .arguments import Import, path_or_url
from .calibration_pairs import compared
from .calibration_scan import show_scan
from .calibration_tables import (
    latex_by_method,
    numbers,
    print_csv,
    print_groups,
    print_json,
    show_comparisons,
    show_measures,
)
from .outputs import read_outputs
from .sheets import Number

if TYPE_CHECKING:
    from ..calibration.intervals.interval_ends import Interval


def calibration(
    files: Annotated[list[Any] | None, typer.Argument(parser=path_or_url, metavar="FILES")] = None,
    group: Annotated[list[str] | None, typer.Option("--group", metavar="NAME=PATTERN")] = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    figure: Path | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    as_csv: Annotated[bool, typer.Option("--csv")] = False,
    as_latex: Annotated[bool, typer.Option("--latex")] = False,
    imports: Import = None,
) -> None:
    """Measure how well a model's confidence is calibrated.

    \b
    orbical calibration outputs.npz --figure reliability.png
    orbical calibration mine.npz theirs.npz
    orbical calibration run.zarr

    Each measure is printed with its interval and the value expected of a calibrated model.

    Args:
        files: Saved outputs, .npz with logits or probs, and labels; or target with mean and
            variance, covariance, or aleatoric and epistemic; or with gamma, nu, alpha and beta.
            Several files are compared in pairs. Or one saved scan, such as run.zarr.
        group: Files of one method with different seeds, such as esd='esd-*.npz'. Prints mean and
            standard deviation. Repeatable.
        bins: Number of bins of binned measures.
        level: Nominal coverage of the intervals.
        resamples: Number of resamples for each interval.
        seed: Seed of the resampling.
        figure: Write a reliability figure: .png, .pdf or .svg.
        as_json: Print the numbers as JSON.
        as_csv: Print the numbers as CSV.
        as_latex: Print a LaTeX table.
    """
    from ..errors import InputError

    settings: dict[str, Any] = {"bins": bins, "level": level, "resamples": resamples, "seed": seed}
    if sum((as_json, as_csv, as_latex)) > 1:
        raise InputError("--json, --csv, --latex", "at most one of them", "several")
    format_ = "json" if as_json else "csv" if as_csv else "latex" if as_latex else "text"
    given = list(files or [])
    if group:
        if given:
            raise InputError("files", "none with --group", given[0])
        if figure is not None:
            raise InputError("--figure", "none with --group", "one")
        _show_groups({name: _tables(paths, settings) for name, paths in _groups(group)}, format_)
        return
    if not given:
        raise InputError("files", "outputs.npz, run.zarr or --group name=glob", "none")
    if any(path.is_dir() or is_remote(path) for path in given):
        if len(given) > 1:
            raise InputError("files", "a single stored scan", "several paths")
        show_scan(given[0], settings, figure, format_)
        return
    outputs = _named_outputs(given)
    tables = {name: _table(name, one, settings) for name, one in outputs.items()}
    comparisons = compared(outputs, settings)
    if figure is not None:
        _draw(outputs, figure, settings)
    _show(tables, comparisons, format_, level)


def _named_outputs(paths: list[Path]) -> dict[str, dict[str, Any]]:
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return {name: read_outputs(path) for name, path in zip(names, paths, strict=True)}


def _groups(given: list[str]) -> list[tuple[str, list[Path]]]:
    from ..errors import InputError

    found = []
    for text in given:
        name, equals, pattern = text.partition("=")
        if not equals or not name or not pattern:
            raise InputError("--group", "name=pattern", repr(text))
        paths = sorted(map(Path, glob.glob(pattern)))  # noqa: PTH207 - it may be absolute
        if not paths:
            raise InputError("--group", f"files that match {pattern!r}", "none")
        found.append((name, paths))
    return found


def _tables(paths: list[Path], settings: dict[str, Any]) -> list[dict[str, Interval]]:
    few = {**settings, "resamples": 20}
    return [_table(str(path), read_outputs(path), few) for path in paths]


def _table(name: str, outputs: Mapping[str, Any], settings: dict[str, Any]) -> dict[str, Interval]:
    from ..calibration.measure_tables import classification_table, regression_table
    from ..errors import InputError

    table = regression_table if "mean" in outputs else classification_table
    try:
        return table(**outputs, **settings)
    except InputError as error:
        raise InputError(name, problem=str(error)) from error


def _draw(outputs: dict[str, dict[str, Any]], path: Path, settings: dict[str, Any]) -> None:
    from ..calibration import top_label
    from ..calibration.intervals.curves import reliability_curve
    from ..errors import InputError
    from ..figures import save
    from ..figures.calibration import reliability_diagram

    classifiers = {name: one for name, one in outputs.items() if "labels" in one}
    if not classifiers:
        raise InputError("--figure", "outputs of a classifier", "those of regressors")
    draws = {key: settings[key] for key in ("level", "resamples", "seed")}
    curves = {
        name: reliability_curve(*top_label(**one), **draws) for name, one in classifiers.items()
    }
    save(reliability_diagram(curves), path)


def _show(
    tables: dict[str, dict[str, Interval]],
    comparisons: list[dict[str, Any]],
    format_: str,
    level: float,
) -> None:
    plain = {name: numbers(table) for name, table in tables.items()}
    if format_ == "json":
        print_json({"level": level, "outputs": plain, "comparisons": comparisons})
    elif format_ == "csv":
        rows = [
            {"outputs": name, "measure": measure, **values}
            for name, table in plain.items()
            for measure, values in table.items()
        ]
        print_csv(rows + [_as_output(row) for row in comparisons])
    else:
        if format_ == "latex":
            cells = {
                name: {key: Number(part["value"]) for key, part in table.items()}
                for name, table in plain.items()
            }
            typer.echo(latex_by_method(cells, "outputs"))
        else:
            show_measures(plain, level)
        show_comparisons(comparisons, level, format_ == "latex")


def _as_output(row: dict[str, Any]) -> dict[str, Any]:
    """Return a difference as a row of the same table: that of `outputs` minus that of `minus`."""
    return {
        "outputs": row["a"],
        "minus": row["b"],
        "measure": row["measure"],
        "value": row["difference"],
        **{key: row[key] for key in ("low", "high", "p_value")},
    }


def over_seeds(tables: list[dict[str, Interval]]) -> dict[str, Number]:
    """Return each measure's mean and standard deviation over seeds; None for a single seed."""
    import statistics

    found = {}
    for measure in tables[0]:
        values = [float(table[measure].value) for table in tables if measure in table]
        spread = statistics.stdev(values) if len(values) > 1 else None
        found[measure] = Number(statistics.fmean(values), spread)
    return found


def _show_groups(groups: dict[str, list[dict[str, Interval]]], format_: str) -> None:
    found = {name: over_seeds(tables) for name, tables in groups.items()}
    seeds = {name: len(tables) for name, tables in groups.items()}
    rows = [
        {
            "group": name,
            "seeds": seeds[name],
            "measure": measure,
            "mean": number.value,
            "sd": number.spread,
        }
        for name, table in found.items()
        for measure, number in table.items()
    ]
    if format_ == "json":
        print_json(rows)
    elif format_ == "csv":
        print_csv(rows)
    elif format_ == "latex":
        typer.echo(latex_by_method(found, "method"))
    else:
        print_groups(found, seeds)
