"""A scan as a table: every measure at each place of the orbit, and one at each element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._warnings import warn
from ..errors import InputError
from ..groups import PLACES, Group
from ..store import Scan, opened_scan
from .intervals.interval_ends import NUMBERS, Interval
from .measure_tables import MeasureTableSettings, pair_table, regression_table
from .orbit.labeled_results import CAUTION, ENDS
from .orbit.pixel_bins import bins_are_of_points, holds_pixel_calibration, pixel_error_intervals
from .orbit.positions import along_orbit, pair_at
from .orbit.regression_orbit import holds_regression_calibration, read_regression_orbit
from .orbit.whole_orbit import pooled_over_orbit, whole_orbit_caution
from .pairs.from_scans import pairs_within
from .registry import MEASURES, RESAMPLES, Draws, Measure, MeasureLike, list_measures

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["at_places", "error_curve", "scan_measures", "scan_table"]

_MOST_POINTS = 2048


def at_places(
    scan: Scan | xr.Dataset,
    measure: MeasureLike = "ece",
    *,
    by: str | None = None,
    interval: bool = False,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Return a measure of a scan at each of the `orbical.groups.PLACES`, for each model.

    The interval of the mean over the orbit is the mean of the elements' intervals, which is no
    narrower than its own; that of the worst element does not account for its selection. Of pooled
    positions only the ECE of classifiers has an interval.

    Args:
        scan: A labeled scan of classification or segmentation, or of regression with uncertainty;
            or its `data`.
        measure: The name of a measure, an entry of `MEASURES`, or a function; see `along_orbit`.
        by: A coordinate on `sample`, or "component" of regression; see `along_orbit`. Nothing is
            pooled then.
        interval: Whether to compute `low`, `high` and `calibrated` too; see `along_orbit`.
        level: Nominal coverage of the intervals.
        resamples: Number of draws of the intervals.
        seed: Seed of the draws.
        options: Options of the measure, such as `bins`.

    Returns:
        `value` `[model, place]`, or `[model, by, place]`, and the ends; NaN where a place has none;
        with an interval its `caution`, in the mean that of any position. `element` is the index of
        the worst element `[model]`, or `[model, by]`.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> at_places(scan, "ece")["value"].sel(place=["identity", "worst"]).dims
        ('model', 'place')
    """
    import xarray as xr

    draws = Draws(level=level, seed=seed, resamples=resamples)
    curve = along_orbit(scan, measure, by=by, interval=interval, **draws, **options)
    table = _with_ends(curve.drop_vars(CAUTION, errors="ignore"))
    worth = curve if curve.attrs.get("higher_is_better", False) else -curve
    worst = worth.fillna(np.inf).argmin("element")
    places = {
        "identity": table.isel(element=curve.attrs["identity"]),
        "mean": table.weighted(table["weight"]).mean("element"),
        "worst": table.isel(element=worst),
    }
    said = {}
    if interval:
        cautions = curve[CAUTION].drop_vars(ENDS)
        said = {
            "identity": cautions.isel(element=curve.attrs["identity"]),
            "mean": whole_orbit_caution(cautions),
            "pooled": xr.full_like(whole_orbit_caution(cautions), ""),
            "worst": cautions.isel(element=worst),
        }
    if by is None:
        known = (
            interval
            and measure in ("ece", MEASURES["ece"])
            and not holds_regression_calibration(scan)
        )
        try:
            pooled = pooled_over_orbit(
                scan, measure, interval=known, level=level, seed=seed, **options
            )
            places["pooled"] = _with_ends(pooled)
        except InputError:  # the group's weights differ, and the measure takes none
            pass
    parts = [
        places.get(place, places["mean"] * np.nan)
        .reset_coords(drop=True)
        .assign({CAUTION: said[place].reset_coords(drop=True)} if place in said else {})
        .expand_dims(place=[place])
        for place in PLACES
    ]
    found = xr.concat(parts, "place").transpose(..., "place").assign(element=worst)
    return found.assign_attrs(curve.attrs)


def _with_ends(values: xr.DataArray) -> xr.Dataset:
    """Return values and the ends of their intervals as variables."""
    ends = [end for end in ENDS if end in values.coords]
    return values.rename("value").to_dataset().reset_coords(ends)


def scan_table(
    scan: Scan | xr.Dataset,
    *,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute every measure of each model of a scan at the identity, and along the orbit.

    A segmentation has pixels and regions, classified clouds have points. Of maps of values some
    points are taken, far enough apart that they say more than neighbors do. The names of models
    then say what was measured.

    Args:
        scan: A labeled scan of classification or segmentation, or of regression with uncertainty;
            its `data`, or `pairs_within(scan)`. Models without confidence or variance are left out,
            with a warning.
        bins: Number of bins of the binned measures.
        level: Nominal coverage.
        resamples: Number of draws at the identity; a fifth of it at each element of the orbit.
        seed: Seed of the draws.

    Returns:
        A row for each `model`, `measure` and `place` of `orbical.groups.PLACES`, with `value`, the
        ends `low` and `high` of its interval, what a `calibrated` model shows (at the identity also
        `calibrated_low` and `calibrated_high`), the `caution` of the interval, if any, and the name
        of the `element`, if it is a single one.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> table = ob.calibration.scan_table(scan, resamples=100)
        >>> table[table["measure"] == "ece"]["place"].tolist()
        ['identity', 'mean', 'pooled', 'worst']
    """
    import pandas as pd

    settings = {"bins": bins, "level": level, "resamples": resamples, "seed": seed}
    data, group = opened_scan(scan)
    models = [str(name) for name in data["model"].values]
    at_identity: list[dict[str, Any]] = []
    along: list[dict[str, Any]] = []
    home = {"place": "identity", "element": group.name(group.identity)}
    for kind, outputs in _kinds_of_scan_table(scan):
        tables = dict(_scan_tables_at(outputs, models, group.identity, settings))
        for model, table in tables.items():
            for measure, found in table.items():
                numbers = {field: float(getattr(found, field)) for field in NUMBERS}
                named = {"model": model + kind, "measure": measure, **home}
                at_identity.append({**named, **numbers, "caution": found.caution})
        for row in _scan_table_along_orbit(outputs, group, settings):
            known = tables.get(row["model"])
            said = row["place"] == "identity" and row["measure"] in (known or ())
            if known is not None and not said:  # the identity's own table has more draws
                along.append(row | {"model": row["model"] + kind})
        for model in [name for name in models if name not in tables]:
            lack = "variance" if holds_regression_calibration(scan) else "confidence"
            text = f"model {model!r}: returns no {lack}, so it is not measured"
            warn(text)
    return pd.DataFrame(at_identity + along)


def error_curve(
    scan: Scan | xr.Dataset,
    *,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> xr.DataArray:
    """Return the calibration error at each element, of what `scan_table` measures first.

    It is the ECE of classifiers, with intervals, and the GENCE of regressors; the arguments are
    those of `scan_table`, and `orbical.figures.calibration.error_along_orbit` draws it.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> error_curve(scan, resamples=100).sizes["element"]
        4
    """
    measure = MEASURES["gence" if holds_regression_calibration(scan) else "ece"]
    settings = MeasureTableSettings(bins, level, resamples, seed)
    options = settings.options(measure, settings.fewer)
    return along_orbit(_kinds_of_scan_table(scan)[0][1], measure, interval=True, **options)


def _kinds_of_scan_table(scan: Scan | xr.Dataset) -> list[tuple[str, Any]]:
    """Return what is measured, after what is added to a model's name."""
    if holds_pixel_calibration(scan):
        if bins_are_of_points(scan):
            return [(", points", scan)]
        return [(", pixels", scan), (", regions", pairs_within(scan))]
    data, _ = opened_scan(scan)
    points = data.sizes.get("point", 1)
    every = -(-data.sizes["sample"] * points // _MOST_POINTS) | 1  # odd: rows have even sides
    if data is scan or scan.record.views.detail != "maps" or every == 1:
        return [("", scan)]
    kept = list(range(min(every, points) // 2, points, every))
    return [(f", {len(kept)} of {points} points", data.isel(point=kept))]


def _scan_tables_at(
    outputs: Any, models: list[str], element: int, settings: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Interval]]]:
    """Yield the measures of each model at an element, of those that state their uncertainty."""
    if holds_pixel_calibration(outputs):
        chosen = {name: settings[name] for name in ("bins", "level", "seed")}
        errors = pixel_error_intervals(outputs, element, **chosen)
        yield from ((model, {"ece": error}) for model, error in zip(models, errors, strict=True))
    elif holds_regression_calibration(outputs):
        for place, model in enumerate(models):
            predictions = read_regression_orbit(outputs, place)
            noise = predictions.aleatoric[element]
            if len(noise):
                given = predictions.at(element)
                yield model, regression_table(*given, aleatoric=noise, **settings)
    else:
        for model in models:
            pair = pair_at(outputs, element, model)
            if len(pair[0]):
                yield model, pair_table(*pair, **settings)


def _scan_table_along_orbit(
    outputs: Any, group: Group, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield each measure of each model at each place."""
    pixels = holds_pixel_calibration(outputs)
    for measure in [MEASURES["ece"]] if pixels else scan_measures(outputs, listed="orbit"):
        yield from _rows_of_scan_table(outputs, group, measure, settings)
    data, _ = opened_scan(outputs)
    if "variance" in data and data["variance"].shape[-1] > 1:
        yield from _rows_of_scan_table(
            outputs, group, MEASURES["aleatoric_bleed"], settings, by="component"
        )


def _rows_of_scan_table(
    outputs: Any, group: Group, measure: Measure, settings: dict[str, Any], by: str | None = None
) -> Iterator[dict[str, Any]]:
    given = MeasureTableSettings(**settings)
    options = given.options(measure, given.fewer)
    table = at_places(outputs, measure, by=by, interval=True, **options)
    if by is not None:  # a mean over samples: the pool has the mean of its positions
        same = table["value"].sel(place="mean")
        table["value"] = table["value"].fillna(same.where(table["place"] == "pooled"))
    for row in table.to_dataframe().reset_index().to_dict("records"):
        places = {"worst": int(row.pop("element")), "identity": group.identity}
        at = group.name(places[row["place"]]) if row["place"] in places else ""
        part = "" if by is None else f", {by} {row.pop(by)}"
        yield {**row, "measure": measure.name + part, "element": at}


def scan_measures(scan: Scan | xr.Dataset, listed: str | None = None) -> list[Measure]:
    """Return the registered measures that a scan can be measured by along its orbit.

    Args:
        scan: A scan, or its `data`.
        listed: Only those listed there: "table", "comparison", "orbit" or "view".

    Returns:
        Measures of pairs for labeled classification or `pairs_within`, measures of regression for
        regression with uncertainty, and none for other scans.

    Example:
        >>> import xarray as xr
        >>> pairs = xr.Dataset({"confidence": 0.5, "correct": 1.0})
        >>> [measure.name for measure in scan_measures(pairs, listed="orbit")]
        ['ece', 'ks']
    """
    held: Any = scan.data_vars if hasattr(scan, "data_vars") else scan.arrays
    kinds = calibration_kinds(held)
    targets = held["error"].shape[-1] if "regression" in kinds else 1
    return list_measures(*kinds, listed=listed, targets=targets) if kinds else []


def calibration_kinds(variables: Iterable[object]) -> tuple[str, ...]:
    """Return the kinds of measures that a scan with these variables can be measured by.

    >>> calibration_kinds(["confidence", "correct"]), calibration_kinds(["confidence"])
    (('pair',), ())
    """
    held = {*variables}
    if {"error", "variance"} <= held:
        return ("regression", "aleatoric")
    return ("pair",) if {"confidence", "correct"} <= held else ()
