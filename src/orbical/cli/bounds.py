"""`orbical bounds`: the best and worst accuracy and calibration that a symmetry allows."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import counted
from ..data.array_files import read_npy, read_npz
from ..errors import InputError
from .arguments import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from ..bounds import Bounds, Comparison
    from ..store.scan_result import Scan

_UNMATCHED = "these data give no bound on the cost of the symmetry."
_LONG_NAME = 16
_COLUMNS = {
    **{"group": "group", "elements": "size", "orbits": "orbits", "matched": "matched"},
    **{"accuracy_ceiling": "ceiling", "error_floor": "floor", "cost": "cost"},
    **{"accuracy_floor": "worst", "forced_at_full_confidence": "forced"},
}
_MORE = {
    **{"group": "group", "certified_low certified_high": "certified"},
    **{"neighbor_low neighbor_high": "estimate", "neighbor_cost": "effect"},
    **{"correct": "correct", "incorrect": "incorrect", "extrinsic": "extrinsic"},
}


def bounds(
    store: Annotated[Path | None, typer.Argument(metavar="STORE")] = None,
    data: Path | None = None,
    group: Annotated[list[str] | None, typer.Option("--group", metavar="GROUP")] = None,
    model: str | None = None,
    orbits: Path | None = None,
    tolerance: float | None = None,
    representation: str | None = None,
    bins: Annotated[int, typer.Option(min=1)] = 15,
    as_json: AsJson = False,
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
            without a scan, or the data of the scan, to find its orbits by matching.
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
    from ..store.scan_result import load

    if store is not None:
        scan = load(store)
        ids = _orbits(scan, orbits, data, tolerance)
        names = scan.models if model is None else [model]
        tables = {name: OrbitTable.from_scan(scan, name, orbit=ids) for name in names}
        _print_all({n: classification(table, bins=bins) for n, table in tables.items()}, as_json)
        return
    if data is None:
        raise InputError("STORE", "a saved scan, or --data with --group", "neither")
    if not group:
        raise InputError(
            "--group", "a group with --data", "none", remedy="pass for example --group cyclic:4"
        )
    arrays = _read(data)
    x = arrays["x"]
    comparison = compare_groups(
        (x, arrays["y"]),
        group,
        tolerance=tolerance,
        action=_action(x),
        representation=representation,
        progress=True,
    )
    found = {}
    if {"confidence", "predicted"} & arrays.keys():
        found = {name: _of_data(arrays, name, tolerance, bins) for name in group}
    if as_json:
        answer = {
            "tolerance": comparison.tolerance,
            "level": comparison.level,
            "groups": comparison.rows(),
            "forced_overconfidence": _forced(comparison),
            **({"bounds": _as_json(found)} if found else {}),
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    _print_comparison(comparison)
    if found:
        _print_all(found, as_json=False)


def _orbits(scan: Scan, ids: Path | None, data: Path | None, tolerance: float | None) -> Any:
    """Return the orbits of a scan from a file or from its data; None if the scan contains them."""
    from ..bounds import match_orbits

    if ids is not None and data is not None:
        raise InputError("--orbits", "--orbits or --data for a scan", "both")
    if ids is not None:
        return read_npy(ids, "--orbits")
    if data is not None:
        x, count = _read(data)["x"], scan.record.data.samples
        if len(x) != count:
            raise InputError(
                "--data", f"the {count} samples of the scan", f"{len(x)} in {data.name}"
            )
        return match_orbits(x, scan.group, tolerance=tolerance, action=_action(x))
    if "orbit" not in scan.data:
        raise InputError(
            "--orbits",
            "the orbit of each sample, without which every ceiling is 1",
            "a scan without orbits",
            remedy="pass its data with --data x.npz, or the orbits with --orbits ids.npy",
        )
    return None


def _read(path: Path) -> dict[str, Any]:
    arrays = read_npz(path, "--data")
    if not {"x", "y"} <= arrays.keys():
        raise InputError("--data", "arrays x and y", f"{sorted(arrays)} in {path.name}")
    return arrays


def _action(x: Any) -> Any:
    """Return the action by shape: images `[N, C, H, W]`, volumes `[N, C, D, H, W]`, or points."""
    from ..actions import Images, Volumes

    return {4: Images(), 5: Volumes()}.get(x.ndim)


def _of_data(arrays: dict[str, Any], name: str, tolerance: float | None, bins: int) -> Bounds:
    from ..bounds import OrbitTable, classification
    from ..groups import parse

    x = arrays["x"]
    outputs = {key: arrays[key] for key in ("confidence", "predicted") if key in arrays}
    table = OrbitTable.from_data(
        x, arrays["y"], parse(name), tolerance=tolerance, action=_action(x), **outputs
    )
    return classification(table, bins=bins)


def _forced(comparison: Comparison) -> dict[str, Any]:
    """Return the calibration error that each group forces on models of confidence p."""
    groups = {
        name: {"one_confidence": mean.tolist(), "orbitwise": orbitwise.tolist()}
        for name, (mean, orbitwise) in comparison.forced.items()
    }
    return {"confidence": comparison.confidence.tolist(), "groups": groups}


def _as_json(found: dict[str, Bounds]) -> dict[str, Any]:
    return {name: each.to_dict() for name, each in found.items()}


def _print_all(found: dict[str, Bounds], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=2))
        return
    for name, each in found.items():
        _print_bounds(name, each)


def _print_bounds(name: str, found: Bounds) -> None:
    from rich.rule import Rule
    from rich.table import Table

    from .._console import Console
    from ..bounds.classification_bounds import TITLES

    console, about = Console(), found.about
    console.print(Rule(f"[bold]{name}[/]", align="left"))
    ceiling, floor = found["accuracy_ceiling"], found["accuracy_floor"]
    own = "" if about["accuracy"] is None else f" This model: {about['accuracy']:.4f}."
    if ceiling.applies:
        console.print(f"No invariant model is more accurate than [bold]{float(ceiling):.4f}[/].")
        console.print(f"No invariant model is less accurate than {float(floor):.4f}.{own}")
    else:
        console.print(f"[yellow]No bounds, only estimates: {ceiling.reason}.[/]")
        console.print(f"estimated accuracy ceiling {ceiling.value:.4f}.{own}")
    facts = [counted(about["orbits"], "orbit"), counted(about["labels"], "label")]
    if about["fibers"] is not None:
        facts.append(f"{counted(about['fibers'], 'fiber')} in {counted(about['bins'], 'bin')}")
    if about["invariance_gap"] is not None:
        facts.append(f"measured invariance gap {about['invariance_gap']:.3g}")
    console.print("; ".join(facts), style="dim")
    if about["samples"] == about["orbits"]:
        console.print(f"[yellow]No two samples share an orbit: {_UNMATCHED}[/]")
    if about["averaged"]:
        console.print(
            "[yellow]The outputs differ within an orbit; these are the bounds of their mean.[/]"
        )
    console.print(_price(found), highlight=False)
    if found["sharp_upper"].applies:
        console.print()
        console.print(_interval(found), highlight=False)
    table = Table(show_edge=False, pad_edge=False, box=None, padding=(0, 2, 0, 0))
    for column, justify in (("statement", "left"), ("bound", "right"), ("", "left")):
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    missing: dict[str, list[str]] = defaultdict(list)
    for key, title in TITLES.items():
        bound = found[key]
        reason = " ".join(TITLES.get(word, word) for word in bound.reason.split(" "))
        if bound.value is None and not bound.applies:
            missing[reason].append(title)
            continue
        side = {"upper": "at most", "lower": "at least"}.get(bound.kind, bound.kind)
        value = "-" if bound.value is None else f"{side} {bound.value:.4f}"
        notes = [] if bound.applies else ["does not apply:"]
        notes += ["vacuous;"] if bound.vacuous else []
        notes += [reason]
        table.add_row(title, value, f"[dim]{' '.join(notes).strip(' ;')}[/]")
    console.print()
    console.print(table)
    console.print()
    for reason, titles in missing.items():
        console.print(f"[dim]does not apply: {reason} ({'; '.join(titles)})[/]", highlight=False)


def _price(found: Bounds) -> str:
    """Return what holds for a model that need not be invariant, beside what was measured."""
    broken, needed, about = found["broken_symmetry"], found["broken_at_least"], found.about
    if not broken.applies:
        return ""
    own = "" if about["model_accuracy"] is None else f" ({about['model_accuracy']:.4f})"
    text = (
        f"Any model as accurate as this one{own} answers at least [bold]{needed.value:.1%}[/] of "
    )
    text += f"the samples unlike most of their orbit; this one {broken.value:.1%}"
    if about["broken_along_orbits"] is not None:
        text += f", and {about['broken_along_orbits']:.1%} along the scanned orbits"
    text += "."
    if found["any_ece"].applies and not found["any_ece"].vacuous:
        text += f" Its calibration error is at least {found['any_ece'].value:.4f} in any bins."
    return text


def _interval(found: Bounds, width: int = 50) -> str:
    """Draw the interval, with the model's own ECE, as a line of text."""
    low, high = float(found["forced_ece"]), float(found["sharp_upper"])

    def place(value: float) -> int:
        return round(min(1.0, max(0.0, value)) * width)

    cells = ["·"] * (width + 1)
    cells[place(low) : place(high) + 1] = ["━"] * (place(high) - place(low) + 1)
    text = (
        f"calibration error of an invariant model with these confidences: {low:.4f} to {high:.4f}"
    )
    least = found["least_ece_lower"], found["least_ece_upper"]
    if all(bound.applies for bound in least):
        text += f"\nthe least one possible: {least[0].value:.4f} to {least[1].value:.4f}"
    if found["ece"].applies:
        ece = float(found["ece"])
        cells[place(ece)] = "[bold]●[/]"
        text += f"\nthis model's own: [bold]{ece:.4f}[/]"
    return f"{text}\n0 {''.join(cells)} 1"


def _print_comparison(comparison: Comparison) -> None:
    from .._console import Console

    console, rows = Console(), comparison.rows()
    for row in rows[1:]:
        console.print(_answer(row), highlight=False)
    console.print()
    for columns in (_COLUMNS, _MORE):
        console.print(
            _table(rows, {k: columns[k] for k in columns if rows[0].keys() >= {*k.split()}})
        )
        console.print()
    notes = {
        "matched": "share of samples that share their orbit with another",
        "cost": "distance from the trivial group",
        "forced": "ECE of a model with confidence 1",
        "certified": f"the population's ceiling, {comparison.level:.0%} confidence",
        "estimate": "from nearest neighbors across orbits, not a bound",
        "effect": "of the group on the error of the nearest neighbor, negative if it helps",
    }
    for name, text in notes.items():
        console.print(f"{name}: {text}", style="dim")
    console.print(f"points match within {comparison.tolerance:.3g}", style="dim")


def _answer(row: dict[str, Any]) -> str:
    """Return the answer for a group in a sentence."""
    name, low, high = row["group"], row["neighbor_low"], row["neighbor_high"]
    best = row.get("accuracy_ceiling", row.get("error_floor"))
    kind = "accuracy ceiling" if "accuracy_ceiling" in row else "floor of the squared error"
    estimate = f"Nearest neighbors estimate the {kind} at [bold]{low:.3f} to {high:.3f}[/]."
    if best is None:
        return (
            f"[yellow]Under {name} samples were joined within a tolerance: no bounds.[/] {estimate}"
        )
    if row["cost"] is None:
        unmatched = f"Under {name} no two different samples share an orbit: {_UNMATCHED}"
        return f"[yellow]{unmatched}[/] {estimate}"
    if "error_floor" in row:
        return (
            f"Every {name}-equivariant model has a squared error of at least [bold]{best:.4g}[/]."
        )
    return f"No {name}-invariant model is more accurate than [bold]{best:.4f}[/] on these samples."


def _table(rows: list[dict[str, Any]], columns: dict[str, str]) -> Table:
    """Lay out some columns of a comparison."""
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, box=None, padding=(0, 1, 0, 0))
    for key, title in columns.items():
        justify = "left" if key == "group" else "right"
        table.add_column(title, justify=justify, overflow="fold", no_wrap=key != "group")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(" ".join(_cell(row, one) for one in key.split()) for key in columns))
    return table


def _cell(row: dict[str, Any], key: str) -> str:
    value = row[key]
    if key == "group" and len(value) > _LONG_NAME:  # a product wraps between its factors
        return str(value).replace("*", "*\n")
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
