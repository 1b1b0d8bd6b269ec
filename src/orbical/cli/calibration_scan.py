"""`orbical calibration run.zarr`: a stored scan at the identity, and along its orbit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .calibration_tables import numbers, print_csv, print_json, show_measures, show_orbit

if TYPE_CHECKING:
    from ..calibration import Interval, Measure
    from ..store.scan_result import Scan

_PLACES = ("identity", "mean", "pooled", "worst")
_ENDS = ("low", "high", "calibrated")
_MOST_POINTS = 2048


def show_scan(path: Path, settings: dict[str, Any], figure: Path | None, format_: str) -> None:
    """Print how calibrated each model is at the identity and along the orbit."""
    from ..calibration.orbit.regression_orbit import holds_regression
    from ..store.scan_result import load

    scan = load(path)
    if not scan.complete:
        warnings.warn(scan.caveat, stacklevel=2)
    regression = holds_regression(scan)
    plain: dict[str, dict[str, dict[str, float]]] = {}
    rows: list[dict[str, Any]] = []
    for kind, outputs in _kinds(scan):
        tables = (_regressors if regression else _classifiers)(outputs, scan, settings)
        plain |= {f"{model}{kind}": numbers(table) for model, table in tables}
        found = (
            row | {"model": f"{row['model']}{kind}"} for row in _along(outputs, scan, settings)
        )
        rows += [_as_in(plain, row) for row in found if row["model"] in plain]
        for model in scan.models:
            if f"{model}{kind}" not in plain:
                said = "variance" if regression else "confidence"
                warnings.warn(
                    f"model {model!r}: returns no {said}, so it is not measured", stacklevel=2
                )
    if figure is not None:
        from ..calibration import MEASURES
        from ..figures import save
        from ..figures.calibration import error_along_orbit

        shown = MEASURES["gence" if regression else "ece"]
        save(error_along_orbit(_curve(_kinds(scan)[0][1], shown, settings)), figure)
    if format_ == "json":
        print_json({"level": settings["level"], "identity": plain, "orbit": rows})
    elif format_ == "csv":
        print_csv([*_identity_rows(plain, scan), *_orbit_rows(rows, plain)])
    elif format_ == "latex":
        show_measures(plain, settings["level"], latex_corner="model")
        show_orbit(rows, settings["level"], latex=True)
    else:
        titled = {f"{model}, at the identity": table for model, table in plain.items()}
        show_measures(titled, settings["level"])
        show_orbit(rows, settings["level"], latex=False)


def _kinds(scan: Scan) -> list[tuple[str, Any]]:
    """Return what is measured, after what is added to a model's name.

    A segmentation has pixels and regions, classified clouds have points. Of maps of values some
    points are taken, far enough apart that they say more than neighbors do: intervals draw them one
    by one, many times.
    """
    from ..calibration import pairs_within
    from ..calibration.orbit.pixel_bins import by_point, holds_pixels

    if holds_pixels(scan):
        if by_point(scan):
            return [(", points", scan)]
        return [(", pixels", scan), (", regions", pairs_within(scan))]
    points = scan.data.sizes.get("point", 1)
    every = -(-scan.data.sizes["sample"] * points // _MOST_POINTS) | 1  # odd: rows have even sides
    if scan.record.views.detail != "maps" or every == 1:
        return [("", scan)]
    kept = list(range(min(every, points) // 2, points, every))
    return [(f", {len(kept)} of {points} points", scan.data.isel(point=kept))]


def _classifiers(
    outputs: Any, scan: Scan, settings: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Interval]]]:
    from ..calibration.measure_tables import pair_table
    from ..calibration.orbit.pixel_bins import holds_pixels, pixels_at
    from ..calibration.orbit.positions import pair_at

    identity = scan.group.identity
    if holds_pixels(outputs):
        chosen = {name: settings[name] for name in ("bins", "level", "seed")}
        for model, error in zip(scan.models, pixels_at(outputs, identity, **chosen), strict=True):
            yield model, {"ece": error}
        return
    for model in scan.models:
        confidence, correct = pair_at(outputs, identity, model)
        if len(confidence):  # a model that states none cannot be measured
            yield model, pair_table(confidence, correct, **settings)


def _regressors(
    outputs: Any, scan: Scan, settings: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Interval]]]:
    from ..calibration.measure_tables import regression_table
    from ..calibration.orbit.regression_orbit import predictions_along, predictions_at

    for place, model in enumerate(scan.models):
        aleatoric = predictions_along(outputs, place).aleatoric[scan.group.identity]
        if len(aleatoric):  # a model without a variance cannot be measured
            given = predictions_at(outputs, scan.group.identity, place)
            yield model, regression_table(*given, aleatoric=aleatoric, **settings)


def _curve(scan: Any, measure: Measure, settings: dict[str, Any], by: str | None = None) -> Any:
    """Return a measure with its interval at each element, from a fifth of the draws each."""
    from ..calibration.orbit.positions import along_orbit

    options = measure.accepted({"bins": settings["bins"]})
    draws = {"level": settings["level"], "seed": settings["seed"], "by": by}
    draws["resamples"] = max(20, settings["resamples"] // 5)
    return along_orbit(scan, measure, interval=True, **draws, **options)


def _along(outputs: Any, scan: Scan, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Summarize each measure of each model: at the identity, over the orbit, at its worst."""
    from ..calibration import MEASURES, scan_measures
    from ..calibration.orbit.pixel_bins import holds_pixels

    binned = [MEASURES["ece"]] if holds_pixels(outputs) else scan_measures(outputs, listed="orbit")
    for measure in binned:
        curve = _curve(outputs, measure, settings)
        pooled = _pooled(outputs, scan, measure, settings)
        for model in scan.models:
            row = _summary(curve.sel(model=model), scan) | pooled[model]
            yield {"model": model, "measure": measure.name, **row}
    if "variance" in scan.data and scan.data["variance"].shape[-1] > 1:
        bleed = MEASURES["aleatoric_bleed"]
        apart = _curve(outputs, bleed, settings, by="component")
        for model in scan.models:
            for component in range(scan.data.sizes["component"]):
                row = _summary(apart.sel(model=model).isel(component=component), scan)
                row |= {"pooled": row["mean"]}  # a mean over samples
                yield {"model": model, "measure": f"{bleed.name}, component {component}", **row}


def _summary(curve: Any, scan: Scan) -> dict[str, Any]:
    """Return value and interval at three places; the interval of the mean over the orbit is the
    mean of the elements' intervals, which is no narrower.
    """
    higher = curve.attrs["higher_is_better"]
    worst = int((-curve if higher else curve).fillna(float("-inf")).argmax("element"))
    found: dict[str, Any] = {f"pooled_{end}": float("nan") for end in _ENDS}
    for place in ("identity", "mean", "worst"):
        parts = {"": curve, **{f"_{end}": curve[end] for end in _ENDS}}
        for end, values in parts.items():
            if place == "mean":
                value = values.weighted(curve["weight"]).mean("element")
            else:
                value = values[scan.group.identity if place == "identity" else worst]
            found[f"{place}{end}"] = float(value)
    return {**found, "worst_element": scan.group.name(worst)}


def _pooled(
    outputs: Any, scan: Scan, measure: Measure, settings: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """Return the measure of all elements pooled by model, NaN if the group's weights forbid it."""
    from ..calibration import pooled_over_orbit
    from ..errors import InputError

    options = measure.accepted({"bins": settings["bins"]})
    if measure.name == "ece":
        options |= {"interval": True, "level": settings["level"], "seed": settings["seed"]}
    try:
        found = pooled_over_orbit(outputs, measure, **options)
    except InputError:
        return {model: {"pooled": float("nan")} for model in scan.models}
    ends = [end for end in _ENDS if end in found.coords]
    return {
        model: {
            "pooled": float(found.sel(model=model)),
            **{f"pooled_{end}": float(found[end].sel(model=model)) for end in ends},
        }
        for model in scan.models
    }


def _identity_rows(
    plain: dict[str, dict[str, dict[str, float]]], scan: Scan
) -> Iterator[dict[str, Any]]:
    where = {"place": "identity", "element": scan.group.name(scan.group.identity)}
    for model, table in plain.items():
        for measure, values in table.items():
            yield {"model": model, **where, "measure": measure, **values}


def _as_in(plain: dict[str, dict[str, dict[str, float]]], row: dict[str, Any]) -> dict[str, Any]:
    """Use the identity's numbers of its own table, which has more draws."""
    known = plain.get(row["model"], {}).get(row["measure"])
    if known is None:
        return row
    return {**row, "identity": known["value"], **{f"identity_{end}": known[end] for end in _ENDS}}


def _orbit_rows(
    rows: list[dict[str, Any]], plain: dict[str, dict[str, dict[str, float]]]
) -> Iterator[dict[str, Any]]:
    """Yield each place of each measure, except the identity where its table has the measure."""
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
