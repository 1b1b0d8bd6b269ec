"""`orbical bounds`: the best and worst accuracy and calibration that a symmetry allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import counted, in_column, number, percent, printable
from ..data import read_npy, read_npz
from ..errors import InputError
from .arguments import Options
from .printing import Cell, Number, Sheet, Span, format_flags, print_json, print_results

if TYPE_CHECKING:
    import numpy as np

    from ..actions import Action
    from ..bounds import Bounds, Comparison, Orbits
    from ..store import Scan

_UNMATCHED = "these data give no bound on the cost of the symmetry."
_ESTIMATE = (
    "Nearest neighbors give an estimate instead: orbical bounds --data data.npz --group GROUP, "
    "with the inputs as x and the labels as y."
)
_LONG_NAME = 16
_COLUMNS = {
    **{"group": "group", "elements": "size", "orbits": "orbits", "matched": "matched"},
    **{"accuracy_ceiling": "ceiling", "error_floor": "floor", "cost": "cost"},
    **{"accuracy_floor": "worst", "forced_at_full_confidence": "forced", "neighbor_cost": "effect"},
}
_MORE = {
    **{"group": "group", "certified_low certified_high": "certified"},
    **{"neighbor_low neighbor_high": "estimate"},
    **{"correct": "correct", "incorrect": "incorrect", "extrinsic": "extrinsic"},
}


@format_flags("json", "csv", "markdown", "latex")
def bounds(
    store: Annotated[Path | None, typer.Argument(metavar="STORE")] = None,
    data: Path | None = None,
    group: Annotated[list[str] | None, typer.Option("--group", metavar="GROUP")] = None,
    model: str | None = None,
    orbits: Path | None = None,
    tolerance: float | None = None,
    representation: str | None = None,
    bins: Annotated[int, typer.Option(min=1)] = 15,
    format_: str = "text",
) -> None:
    """Compute the best accuracy and calibration a symmetry allows.

    \b
    orbical bounds --data data.npz --group cyclic:4 --group dihedral:4
    orbical bounds run.zarr --data data.npz
    orbical bounds run.zarr --orbits ids.npy

    An invariant model predicts the same label for all samples of an orbit, which limits its
    accuracy. The orbits are found by matching the data, or given with --orbits. Where no samples
    match, nearest neighbors across orbits give an estimate.

    Args:
        store: A saved classification scan, such as run.zarr.
        data: An .npz file with x and y, and optionally confidence and predicted: data to analyze
            without a scan, or the data of the scan, to find its orbits by matching. A scan made
            with --keep inputs needs none.
        group: The symmetry group for --data, such as cyclic:4. Repeatable, to compare groups.
        model: A model of the scan. Default: all of them.
        orbits: An .npy file with the orbit id of each sample of the scan, an integer.
        tolerance: The largest distance at which two samples of --data match. Default: rounding
            errors only. With a larger one, the results are estimates, not bounds.
        representation: For values y instead of labels: how the group acts on them, invariant or
            vector.
        bins: Number of bins of the calibration error (fibers).
    """
    from ..bounds import OrbitTable, classification, compare_groups
    from ..store import load

    if store is not None:
        scan = load(store)
        ids = _orbits_of_scan(scan, orbits, data, tolerance)
        names = scan.models if model is None else [model]
        tables = {name: OrbitTable.from_scan(scan, name, orbit=ids) for name in names}
        found = {name: classification(table, bins=bins) for name, table in tables.items()}
        _print_found_bounds(found, format_)
        if format_ == "text" and any(_is_unmatched(each) for each in found.values()):
            typer.secho(_ESTIMATE, fg="yellow")
        return
    if data is None:
        raise InputError("STORE", "a saved scan, or --data with --group", "neither")
    if not group:
        remedy = "pass for example --group cyclic:4"
        raise InputError("--group", "a group with --data", "none", remedy=remedy)
    arrays = _data_of_bounds(data)
    comparison = compare_groups(
        (arrays["x"], arrays["y"]),
        group,
        tolerance=tolerance,
        action=_action_of_shape(arrays["x"]),
        representation=representation,
        progress=True,
    )
    predicted = {"confidence", "predicted"} & arrays.keys()
    found = {name: _bounds_of_data(arrays, name, tolerance, bins) for name in group if predicted}
    if format_ == "json":
        bounded = {"bounds": _as_json(found)} if found else {}
        print_json(comparison.to_dict() | bounded)
    elif format_ != "text":
        print_results(format_, comparison.rows(), _comparison_sheets(comparison))
    else:
        _print_bounds_comparison(comparison)
        _print_found_bounds(found, format_)


def _orbits_of_scan(
    scan: Scan, ids: Path | None, data: Path | None, tolerance: float | None
) -> Orbits | np.ndarray | None:
    """Return the orbits of a scan from a file or by matching; None if the scan contains them."""
    from ..bounds import match_orbits
    from ..tasks import Task

    if ids is not None and data is not None:
        raise InputError("--orbits", "--orbits or --data for a scan", "both")
    if ids is not None:
        known: np.ndarray = read_npy(ids, "--orbits")
        return known
    if data is not None:
        x, count = _data_of_bounds(data)["x"], scan.record.data.samples
        if len(x) != count:
            expected = f"the {count} samples of the scan"
            raise InputError("--data", expected, f"{len(x)} in {data.name}")
        return match_orbits(x, scan.group, tolerance=tolerance, action=_action_of_shape(x))
    if "orbit" in scan.data:
        return None
    if "input" in scan.data:  # of one field; what has several is matched by --orbits alone
        action = Task.from_record(asdict(scan.record.task)).input
        x = scan.data["input"].values
        return match_orbits(x, scan.group, tolerance=tolerance, action=action)
    raise InputError(
        "--orbits",
        "the orbit of each sample, without which every ceiling is 1",
        "a scan without orbits or inputs",
        remedy="pass its data with --data x.npz, or the orbits with --orbits ids.npy",
    )


def _data_of_bounds(path: Path) -> Options:
    if path.is_dir():
        raise InputError(
            "--data",
            "an .npz file with arrays x and y",
            f"{str(path)!r}, which is a folder",
            remedy="photographs hardly ever coincide, so use the estimate from neighbors: save "
            "images and labels as x and y, and run orbical bounds --data photos.npz --group "
            "rotations:4",
        )
    arrays = read_npz(path, "--data")
    if not {"x", "y"} <= arrays.keys():
        raise InputError("--data", "arrays x and y", f"{sorted(arrays)} in {path.name}")
    return arrays


def _action_of_shape(x: np.ndarray) -> Action | None:
    """Return the action by shape: images `[N, C, H, W]`, volumes `[N, C, D, H, W]`, or points."""
    from ..actions import Images, Volumes

    return {4: Images(), 5: Volumes()}.get(x.ndim)


def _bounds_of_data(arrays: Options, name: str, tolerance: float | None, bins: int) -> Bounds:
    from ..bounds import OrbitTable, classification
    from ..groups import parse

    x = arrays["x"]
    outputs = {key: arrays[key] for key in ("confidence", "predicted") if key in arrays}
    matching: Options = {"tolerance": tolerance, "action": _action_of_shape(x)}
    table = OrbitTable.from_data(x, arrays["y"], parse(name), **matching, **outputs)
    return classification(table, bins=bins)


def _as_json(found: dict[str, Bounds]) -> dict[str, object]:
    return {name: each.to_dict() for name, each in found.items()}


def _print_found_bounds(found: dict[str, Bounds], format_: str) -> None:
    if format_ == "text":
        for name, each in found.items():
            _print_bounds(name, each)
    else:
        rows = [
            {"model": name, "bound": key, **vars(bound)}
            for name, each in found.items()
            for key, bound in each.items()
        ]
        sheets = [_bounds_to_print(name, each)[0] for name, each in found.items()]
        print_results(format_, _as_json(found), sheets, records=rows)


def _print_bounds(name: str, found: Bounds) -> None:
    about = found.about
    typer.secho(printable(name), bold=True)
    ceiling, floor = found["accuracy_ceiling"], found["accuracy_floor"]
    own = _accuracy_beside_printed_bounds(about)
    if ceiling.applies:
        typer.echo(f"No invariant model is more accurate than {in_column(float(ceiling))}.")
        typer.echo(f"No invariant model is less accurate than {in_column(float(floor))}.{own}")
    else:
        typer.secho(f"No bounds, only estimates: {ceiling.reason}.", fg="yellow")
        typer.echo(f"estimated accuracy ceiling {in_column(ceiling.value or 0.0)}.{own}")
    facts = [counted(about["orbits"], "orbit"), counted(about["labels"], "label")]
    if about["fibers"] is not None:
        facts.append(f"{counted(about['fibers'], 'fiber')} in {counted(about['bins'], 'bin')}")
    if about["invariance_gap"] is not None:
        facts.append(f"measured invariance gap {number(about['invariance_gap'])}")
    typer.secho("; ".join(facts), dim=True)
    if _is_unmatched(found):
        typer.secho(f"No two samples share an orbit: {_UNMATCHED}", fg="yellow")
    if about["averaged"]:
        differ = "The outputs differ within an orbit; these are the bounds of their mean."
        typer.secho(differ, fg="yellow")
    typer.echo(_bounds_on_cost(found))
    if found["sharp_upper"].applies:
        typer.echo(f"\n{_bounds_as_text(found)}")
    typer.echo()
    sheet, missing = _bounds_to_print("", found)
    print_results("text", None, [sheet])
    for reason, titles in missing.items():
        typer.secho(f"does not apply: {reason} ({'; '.join(titles)})", dim=True)


def _is_unmatched(found: Bounds) -> bool:
    return bool(found.about["samples"] == found.about["orbits"])


def _accuracy_beside_printed_bounds(about: Mapping[str, float | None]) -> str:
    """Return the accuracy of the model in words, and that of its mean over orbits if it differs.

    >>> _accuracy_beside_printed_bounds({"accuracy": 0.465, "model_accuracy": 0.98})
    ' This model averaged over its orbits: 0.4650. The model itself: 0.9800.'
    """
    averaged, own = about["accuracy"], about["model_accuracy"]
    if averaged is None:
        return ""
    value = in_column(averaged)
    if own is None or own == averaged:
        return f" This model: {value}."
    return f" This model averaged over its orbits: {value}. The model itself: {in_column(own)}."


def _bounds_to_print(name: str, found: Bounds) -> tuple[Sheet, dict[str, list[str]]]:
    """Return the bounds that have a value, and the others by the reason why they have none."""
    from ..bounds import TITLES

    missing: dict[str, list[str]] = defaultdict(list)
    rows: list[list[Cell]] = []
    for key, title in TITLES.items():
        bound = found[key]
        reason = " ".join(TITLES.get(word, word) for word in bound.reason.split(" "))
        if bound.value is None and not bound.applies:
            missing[reason].append(title)
            continue
        side = {"upper": "at most", "lower": "at least"}.get(bound.kind, bound.kind)
        value = "-" if bound.value is None else f"{side} {in_column(bound.value)}"
        notes = [] if bound.applies else ["does not apply:"]
        notes += ["vacuous;"] if bound.vacuous else []
        rows.append([title, value, " ".join([*notes, reason]).strip(" ;")])
    return Sheet(name, ["statement", "bound", ""], rows, corner="model"), missing


def _bounds_on_cost(found: Bounds) -> str:
    """Return what holds for a model that need not be invariant, beside what was measured."""
    broken, needed, about = found["broken_symmetry"], found["broken_at_least"], found.about
    if not broken.applies:
        return ""
    accuracy = about["model_accuracy"]
    goal = "this accuracy" if accuracy is None else f"an accuracy of {percent(accuracy, 1)}"
    text = (
        f"To reach {goal} a model must break the symmetry on at least "
        f"{percent(needed.value or 0.0, 1)} of the samples; this one does on "
        f"{percent(broken.value or 0.0, 1)}"
    )
    if about["broken_along_orbits"] is not None:
        text += f", and on {percent(about['broken_along_orbits'], 1)} along the scanned orbits"
    text += "."
    error = found["any_ece"]
    if error.applies and not error.vacuous:
        text += f" Its calibration error is at least {in_column(float(error))} in any bins."
    return text


def _bounds_as_text(found: Bounds, width: int = 50) -> str:
    """Draw the interval, with the model's own ECE, as a line of text."""
    low, high = float(found["forced_ece"]), float(found["sharp_upper"])

    def place(value: float) -> int:
        return round(min(1.0, max(0.0, value)) * width)

    cells = ["·"] * (width + 1)
    cells[place(low) : place(high) + 1] = ["━"] * (place(high) - place(low) + 1)
    text = "calibration error of an invariant model with these confidences: "
    text += f"{in_column(low)} to {in_column(high)}"
    least = found["least_ece_lower"], found["least_ece_upper"]
    if all(bound.applies for bound in least):
        text += "\nthe least one possible: " + " to ".join(in_column(float(end)) for end in least)
    if found["ece"].applies:
        ece = float(found["ece"])
        cells[place(ece)] = "●"
        text += f"\nthis model's own: {in_column(ece)}"
    return f"{text}\n0 {''.join(cells)} 1"


def _print_bounds_comparison(comparison: Comparison) -> None:
    for row in comparison.rows()[1:]:
        typer.echo(printable(_bounds_on_group(row)))
    typer.echo()
    notes = {
        "matched": "share of samples that share their orbit with another",
        "cost": "distance from the trivial group",
        "forced": "ECE of a model with confidence 1",
        "certified": f"the population's ceiling, {percent(comparison.level)} confidence",
        "estimate": "from nearest neighbors across orbits, not a bound",
        "effect": "of the group on the error of the nearest neighbor, negative if it helps",
    }
    footer = [f"{name}: {text}" for name, text in notes.items()]
    footer.append(f"points match within {number(comparison.tolerance)}")
    print_results("text", None, _comparison_sheets(comparison), "\n".join(footer))


def _comparison_sheets(comparison: Comparison) -> list[Sheet]:
    rows = comparison.rows()
    sheets = []
    for columns in (_COLUMNS, _MORE):
        shown = {keys: columns[keys] for keys in columns if rows[0].keys() >= {*keys.split()}}
        cells = [[_cell_of(*(row[key] for key in keys.split())) for keys in shown] for row in rows]
        sheets.append(Sheet("", [*shown.values()], cells))
    return sheets


def _bounds_on_group(row: dict[str, Any]) -> str:
    """Return the answer for a group in a sentence."""
    name, low, high = row["group"], row["neighbor_low"], row["neighbor_high"]
    best = row.get("accuracy_ceiling", row.get("error_floor"))
    kind = "accuracy ceiling" if "accuracy_ceiling" in row else "floor of the squared error"
    ends = f"{in_column(low)} to {in_column(high)}"
    estimate = f"Nearest neighbors estimate the {kind} at {ends}"
    if not row["neighbor_dense"]:
        estimate += ", which says little, because they are far apart"
    change = " to ".join(in_column(row[f"neighbor_cost_{end}"]) for end in ("low", "high"))
    estimate += f"; the group changes their error by {change}."
    if best is None:
        return f"Under {name} samples were joined within a tolerance: no bounds. {estimate}"
    if row["cost"] is None:
        return f"Under {name} no two different samples share an orbit: {_UNMATCHED} {estimate}"
    value = in_column(best)
    if "error_floor" in row:
        return f"Every {name}-equivariant model has a squared error of at least {value}."
    return f"No {name}-invariant model is more accurate than {value} on these samples."


def _cell_of(*values: Any) -> Cell:
    if len(values) > 1:
        return "-" if values[0] is None else Span(*values)
    (value,) = values
    if isinstance(value, str) and len(value) > _LONG_NAME:  # a product wraps between its factors
        return value.replace("*", "*\n")
    return "-" if value is None else Number(value) if isinstance(value, float) else str(value)
