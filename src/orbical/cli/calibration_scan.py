"""`orbical calibration run.zarr`: a stored scan at the identity, and along its orbit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .calibration_latex import latex_numbers, latex_orbit
from .calibration_tables import numbers, print_csv, print_json, print_orbit, print_tables

if TYPE_CHECKING:
    from ..calibration._interval import Interval
    from ..store.scan_result import Scan

_OF_CLASSIFIERS = ("ece", "ks")
_OF_ONE_TARGET = ("gaussian_crps", "ence", "regression_esd", "quantile_calibration")
_OF_TARGETS = (
    "gaussian_nll",
    "gence",
    "mahalanobis_calibration",
    "regression_esd_normalized",
    "aleatoric_bleed",
)
_BINNED = ("ece", "ence")
_PLACES = ("identity", "orbit", "worst")
_ENDS = ("low", "high", "calibrated")


def show_scan(path: Path, settings: dict[str, Any], figure: Path | None, format_: str) -> None:
    """Tell how calibrated each model is where the group leaves the input alone, and elsewhere."""
    from ..calibration.regression_orbit import holds_regression
    from ..store.scan_result import load

    scan = load(path)
    regression = holds_regression(scan)
    tables = dict(_regressors(scan, settings) if regression else _classifiers(scan, settings))
    plain = {model: numbers(table) for model, table in tables.items()}
    rows = [_as_in(plain, row) for row in _along(scan, regression, settings)]
    if figure is not None:
        from ..figures import save
        from ..figures.calibration import error_along_orbit

        save(error_along_orbit(_curve(scan, "gence" if regression else "ece", settings)), figure)
    if format_ == "json":
        print_json({"level": settings["level"], "identity": plain, "orbit": rows})
    elif format_ == "csv":
        print_csv([*_identity_rows(plain, scan), *_orbit_rows(rows, plain)])
    elif format_ == "latex":
        typer.echo(latex_numbers(plain, "model", settings["level"]))
        typer.echo(latex_orbit(rows))
    else:
        titled = {f"{model}, at the identity": table for model, table in plain.items()}
        print_tables(titled, [], settings["level"])
        print_orbit(rows, settings["level"])


def _classifiers(scan: Scan, settings: dict[str, Any]) -> Iterator[tuple[str, dict[str, Interval]]]:
    from ..calibration.orbit import pair_at
    from ..calibration.table import pair_table

    for model in scan.models:
        yield model, pair_table(*pair_at(scan, scan.group.identity, model), **settings)


def _regressors(scan: Scan, settings: dict[str, Any]) -> Iterator[tuple[str, dict[str, Interval]]]:
    from ..calibration.regression_orbit import predictions_along, predictions_at
    from ..calibration.table import regression_table

    for place, model in enumerate(scan.models):
        aleatoric = predictions_along(scan, place).aleatoric[scan.group.identity]
        if len(aleatoric):  # a model that answers no variance has nothing to be judged
            given = predictions_at(scan, scan.group.identity, place)
            yield model, regression_table(*given, aleatoric=aleatoric, **settings)


def _curve(scan: Scan, name: str, settings: dict[str, Any], by: str | None = None) -> Any:
    """Give a measure with its interval at each element; a fifth of the draws each, for there are
    many elements.
    """
    from ..calibration.orbit import along_orbit

    options: dict[str, Any] = {"bins": settings["bins"]} if name in _BINNED else {}
    draws = {"level": settings["level"], "seed": settings["seed"], "by": by}
    draws["resamples"] = max(20, settings["resamples"] // 5)
    return along_orbit(scan, name, interval=True, **draws, **options)


def _along(scan: Scan, regression: bool, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Summarize each measure of each model: at the identity, over the orbit, at its worst."""
    components = scan.data.sizes.get("component", 1)
    names = _OF_CLASSIFIERS
    if regression:
        names = (*(_OF_ONE_TARGET if components == 1 else ()), *_OF_TARGETS)
    for name in names:
        curve = _curve(scan, name, settings)
        for model in scan.models:
            yield {"model": model, "measure": name, **_summary(curve.sel(model=model), scan)}
    if regression and scan.data["variance"].shape[-1] > 1:  # one for all bleeds alike in each
        apart = _curve(scan, "aleatoric_bleed", settings, by="component")
        for model in scan.models:
            for component in range(components):
                chosen = apart.sel(model=model).isel(component=component)
                name = f"aleatoric_bleed, component {component}"
                yield {"model": model, "measure": name, **_summary(chosen, scan)}


def _summary(curve: Any, scan: Scan) -> dict[str, Any]:
    """Give value and interval at three places; over the orbit the interval is the mean of the
    elements' intervals, which is no narrower than that of the mean.
    """
    worst = int(curve.fillna(float("-inf")).argmax("element"))
    found: dict[str, Any] = {}
    for place in _PLACES:
        parts = {"": curve, **{f"_{end}": curve[end] for end in _ENDS}}
        for end, values in parts.items():
            if place == "orbit":
                value = values.weighted(curve["weight"]).mean("element")
            else:
                value = values[scan.group.identity if place == "identity" else worst]
            found[f"{place}{end}"] = float(value)
    return {**found, "worst_element": scan.group.name(worst)}


def _identity_rows(
    plain: dict[str, dict[str, dict[str, float]]], scan: Scan
) -> Iterator[dict[str, Any]]:
    where = {"place": "identity", "element": scan.group.name(scan.group.identity)}
    for model, table in plain.items():
        for measure, values in table.items():
            yield {"model": model, **where, "measure": measure, **values}


def _as_in(plain: dict[str, dict[str, dict[str, float]]], row: dict[str, Any]) -> dict[str, Any]:
    """Take the identity's numbers from its own table, which has more draws: one number, one
    interval.
    """
    known = plain.get(row["model"], {}).get(row["measure"])
    if known is None:
        return row
    return {**row, "identity": known["value"], **{f"identity_{end}": known[end] for end in _ENDS}}


def _orbit_rows(
    rows: list[dict[str, Any]], plain: dict[str, dict[str, dict[str, float]]]
) -> Iterator[dict[str, Any]]:
    """Give each place of each measure; what the identity's table holds is not said again."""
    for row in rows:
        said = row["measure"] in plain.get(row["model"], {})
        for place in _PLACES[1:] if said else _PLACES:
            yield {
                "model": row["model"],
                "place": place,
                "element": row["worst_element"] if place == "worst" else "",
                "measure": row["measure"],
                "value": row[place],
                **{end: row[f"{place}_{end}"] for end in _ENDS},
            }
