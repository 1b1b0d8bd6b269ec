"""`orbical conformal`: coverage and size of prediction sets, along the orbit of a scan."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, check_name
from .arguments import AsJson, path_or_url
from .calibration_tables import print_csv, print_json
from .outputs import read_outputs
from .sheets import Cell, Number, print_sheet

if TYPE_CHECKING:
    from ..store.scan_result import Scan


def conformal(
    store: Annotated[Any, typer.Argument(parser=path_or_url, metavar="STORE")],
    coverage: float = 0.9,
    method: str | None = None,
    calibrate: Annotated[list[str] | None, typer.Option("--calibrate", metavar="WHERE")] = None,
    share: float = 0.5,
    level: float = 0.95,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    figure: Path | None = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv")] = False,
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
        as_json: Print all positions as JSON.
        as_csv: Print all positions as CSV.
    """
    if as_json and as_csv:
        raise InputError("--json, --csv", "at most one of them", "both")
    settings = {"share": share, "level": level, "seed": seed}
    if store.suffix == ".npz":
        if figure is not None or calibrate:
            raise InputError("--figure, --calibrate", "a scan for them", "saved outputs")
        rows = [_of_outputs(store, method, coverage, settings)]
        _show(rows, as_json, as_csv, lambda: _print_outputs(rows, coverage, level))
        return
    from ..conformal.orbit_coverage import holds_values
    from ..store.scan_result import load

    scan = load(store)
    if not scan.complete:
        warnings.warn(scan.caveat, stacklevel=2)
    chosen = _method(method, coverage, holds_values(scan.data))
    rows = list(_of_scan(scan, chosen, calibrate, settings))
    if figure is not None:
        _draw(scan, chosen, settings, figure)
    _show(rows, as_json, as_csv, lambda: _print_scan(scan, rows, coverage, level))


def _method(name: str | None, coverage: float, regression: bool) -> Any:
    from ..conformal import APS, LAC, RAPS, Absolute, Normalized

    known: dict[str, Any] = {"lac": LAC, "aps": APS, "raps": RAPS}
    if regression:
        known = {"absolute": Absolute, "normalized": Normalized}
    if name is not None:
        check_name("--method", name, known)
    return known[name or next(iter(known))](coverage)


def _of_scan(
    scan: Scan, method: Any, calibrate: list[str] | None, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each place of calibration, model and element."""
    from ..conformal.orbit_coverage import CALIBRATED, along_orbit, holds_values

    averaged = scan.group.closed and not holds_values(scan.data)
    usual = [place for place in CALIBRATED if place != "average" or averaged]
    for place in calibrate or usual:
        check_name("--calibrate", place, CALIBRATED)
        found = along_orbit(scan, method, calibrate=place, **settings)
        for model in scan.models:
            for element in range(len(scan.group)):
                at = {"model": model, "calibrated": place, "element": scan.group.name(element)}
                yield at | {
                    f"{part.name}{end}": float(values.sel(model=model)[element])
                    for part in found
                    for end, values in (("", part), ("_low", part.low), ("_high", part.high))
                }


def _of_outputs(
    path: Path, method: str | None, coverage: float, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return coverage and size of saved outputs, by a random half."""
    import numpy as np
    import torch

    from ..calibration import interval_of_sums, wilson_interval
    from ..conformal.orbit_coverage import halves

    outputs = read_outputs(path)
    regression = "mean" in outputs
    chosen = _method(method, coverage, regression)
    if regression:
        truth, spread = outputs["target"], np.sqrt(outputs["variance"])
        if truth.reshape(len(truth), -1).shape[1] != 1 or outputs["variance"].ndim > 2:
            raise InputError(path, "one target for each sample", truth.shape)
        columns = [outputs["mean"], spread][: len(chosen.columns)]
        X, truth = np.stack([part.reshape(-1) for part in columns], 1), truth.reshape(-1)
    else:
        kind = "logits" if "logits" in outputs else "probs"
        X, truth = outputs[kind], outputs["labels"]
        chosen.set_params(outputs="logits" if kind == "logits" else "probabilities")
    held, new = halves(np.arange(len(X)), settings["share"], settings["seed"])
    chosen.fit(X[held], truth[held])
    if regression:
        low, high = chosen.predict_interval(X[new]).T
        hits, sizes = (low <= truth[new]) & (truth[new] <= high), high - low
    else:
        sets = chosen.predict_set(X[new])
        index = np.searchsorted(chosen.classes_, truth[new])
        hits, sizes = sets[np.arange(len(new)), index], sets.sum(1).astype(float)
    share, n = torch.tensor(hits.mean()), torch.tensor(float(len(new)))
    ends = [float(end) for end in wilson_interval(share, n, settings["level"])]
    count, total, squares = (
        np.asarray(part) for part in (len(new), sizes.sum(), np.square(sizes).sum())
    )
    size = map(float, interval_of_sums(count, total, squares, settings["level"]))
    found = zip(("coverage", "coverage_low", "coverage_high"), (float(share), *ends), strict=True)
    named = dict(found) | dict(zip(("size", "size_low", "size_high"), size, strict=True))
    return {"model": path.stem, "calibration": len(held), "test": len(new), **named}


def _show(rows: list[dict[str, Any]], as_json: bool, as_csv: bool, table: Any) -> None:
    if as_json:
        print_json(rows)
    elif as_csv:
        print_csv(rows)
    else:
        table()


def _number(row: dict[str, Any], name: str, note: str = "") -> Number:
    return Number(row[name], interval=(row[f"{name}_low"], row[f"{name}_high"]), note=note)


def _print_outputs(rows: list[dict[str, Any]], coverage: float, level: float) -> None:
    (row,) = rows
    cells: list[Cell] = [str(row["test"]), _number(row, "coverage"), _number(row, "size")]
    headings = ["test samples", f"coverage, {coverage:g} asked for", "mean size"]
    print_sheet(f"{row['model']}, calibrated on {row['calibration']} samples", headings, [cells])
    typer.echo(f"In brackets: {level:.0%} intervals.")


def _print_scan(scan: Scan, rows: list[dict[str, Any]], coverage: float, level: float) -> None:
    """Print a row for each place of calibration: coverage at three places, and the mean size."""
    from ..conformal.orbit_coverage import CALIBRATED, holds_values

    numbers = holds_values(scan.data)
    what, extent = ("intervals", "width") if numbers else ("sets", "size")
    headings = [
        "calibrated",
        "coverage at\nthe identity",
        "mean over\nthe orbit",
        "at the worst\nelement",
        f"mean {extent} over\nthe orbit",
    ]
    for model in scan.models:
        sheet: list[list[Cell]] = []
        for place in CALIBRATED:
            found = [row for row in rows if (row["model"], row["calibrated"]) == (model, place)]
            if found:
                worst = min(found, key=lambda row: row["coverage"])
                mean = _mean(found, scan.group.weights)
                cells = [found[scan.group.identity], mean, worst]
                notes = ("", "", worst["element"])
                covered = [
                    _number(row, "coverage", note) for row, note in zip(cells, notes, strict=True)
                ]
                sheet.append([place, *covered, _number(mean, "size")])
        print_sheet(f"{model}, {what} for a coverage of {coverage:g}", headings, sheet)
    typer.echo(
        f"In brackets: {level:.0%} intervals. Mean: of the elements, with the mean of their\n"
        "intervals. Worst: the interval of that element, which does not account for its\n"
        f"selection. The coverage is guaranteed where the {what} are calibrated, on\n"
        "average over calibration sets."
    )


def _mean(rows: list[dict[str, Any]], weights: Any) -> dict[str, float]:
    names = [name for name in rows[0] if name.startswith(("coverage", "size"))]
    return {
        name: float(sum(w * row[name] for w, row in zip(weights, rows, strict=True)))
        for name in names
    }


def _draw(scan: Scan, method: Any, settings: dict[str, Any], path: Path) -> None:
    from ..conformal import along_orbit
    from ..figures import save
    from ..figures.calibration import error_along_orbit

    found = along_orbit(scan, method, calibrate="identity", **settings)
    save(error_along_orbit(found.coverage, limits=(0.0, 1.0)), path)
