"""`orbical bounds`: what a symmetry makes possible at best and at worst, for a scan or for data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arrays import read_npy, read_npz

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..bounds import Bounds, Comparison, OrbitTable
    from ..store.scan_result import Scan

_UNMATCHED = (
    "these data do not show what the symmetry costs, and its ceiling says nothing. "
    "A larger --tolerance joins samples that are nearly equal."
)
THEOREMS = {
    "prop1": "Proposition 1, no symmetry used",
    "thm4_fiberwise": "Theorem 4, fiber by fiber",
    "thm4": "Theorem 4, as printed",
    "cor1": "Corollary 1",
    "cor2": "Corollary 2, two labels",
    "fiber_free": "Corollary 2, stronger and free of fibers",
    "thm5": "Theorem 5",
    "prop4": "Proposition 4",
    "prop6": "Proposition 6, an oracle's sampling error",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bounds")(bounds)


def bounds(
    store: Annotated[
        Path | None,
        typer.Argument(metavar="STORE", help="A stored classification scan, such as run.zarr."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file with x and y (and perhaps confidence and predicted): data to bound "
            "without a scan, or the data of the scan, to find its orbits by matching."
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="The symmetry for --data, such as cyclic:4. Repeatable; several are compared.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which model of the scan; all by default.")
    ] = None,
    orbits: Annotated[
        Path | None,
        typer.Option(
            help="An .npy file with a whole number for each sample of the scan: samples of one "
            "orbit have the same."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="The distance within which two samples of --data count as equal; without it they "
            "must be equal up to rounding."
        ),
    ] = None,
    bins: Annotated[
        int, typer.Option(min=1, help="Bins of the calibration error, the fibers.")
    ] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Compute the accuracy and calibration that a symmetry allows.

    \b
    orbical bounds --data data.npz --group cyclic:4 --group dihedral:4
    orbical bounds run.zarr --data data.npz
    orbical bounds run.zarr --orbits ids.npy

    Which samples share an orbit is found by matching the data, or told by ids. No invariant model
    can label two samples of one orbit differently: that is what limits it.
    """
    from ..errors import InputError

    if store is not None:
        _print_all(_of_scan(store, model, _orbits(orbits, data, tolerance), bins), as_json)
        return
    if data is None:
        raise InputError("bounds: expected a stored scan, or --data with --group")
    if not group:
        raise InputError("--group: expected with --data, such as --group cyclic:4")
    arrays = _read(data)
    comparison = _compared(arrays, group, tolerance)
    found = {}
    if {"confidence", "predicted"} & arrays.keys():
        found = {name: _of_data(arrays, name, tolerance, bins) for name in group}
    if as_json:
        answer = {
            "tolerance": comparison.tolerance,
            "groups": comparison.rows(),
            "forced_overconfidence": _forced(comparison),
            **_plain(found),
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    _print_comparison(comparison)
    if found:
        _print_all(found, as_json=False)


def _of_scan(
    store: Path, model: str | None, orbits: Callable[[Scan], Any], bins: int
) -> dict[str, Bounds]:
    from ..bounds import OrbitTable, classification
    from ..store.scan_result import load

    scan = load(store)
    ids = orbits(scan)
    names = scan.models if model is None else [model]
    return {
        name: classification(OrbitTable.from_scan(scan, name, orbit=ids), bins=bins)
        for name in names
    }


def _orbits(ids: Path | None, data: Path | None, tolerance: float | None) -> Callable[[Scan], Any]:
    """Say where the orbits of a scan come from: a file, matching its data, or the scan itself."""
    from ..bounds import match_orbits
    from ..errors import InputError

    if ids is not None and data is not None:
        raise InputError("bounds: expected --orbits or --data for a scan, and not both")
    if ids is not None:
        given = read_npy(ids, "--orbits")
        return lambda scan: given
    if data is None:
        return _stored_orbits
    x = _read(data)["x"]
    return lambda scan: match_orbits(x, scan.group, tolerance=tolerance, action=_action(x)).orbit


def _stored_orbits(scan: Scan) -> None:
    """Leave the orbits to the scan's own coordinate, or say what the command takes instead."""
    from ..errors import InputError

    if "orbit" not in scan.data:
        raise InputError(
            "bounds: the scan does not say which samples share an orbit, and alone it knows no "
            "dissent: every ceiling would be 1. Give its data with --data x.npz, to match them, "
            "or the orbit of each sample with --orbits ids.npy"
        )


def _read(path: Path) -> dict[str, Any]:
    from ..errors import InputError

    arrays = read_npz(path, "--data")
    missing = {"x", "y"} - arrays.keys()
    if missing:
        raise InputError(
            f"--data: {path.name} holds {sorted(arrays)}; expected x and y "
            f"(missing: {', '.join(sorted(missing))})"
        )
    return arrays


def _action(x: Any) -> Any:
    """Pictures `[N, C, H, W]` move as images; everything else as points."""
    from ..actions import Images

    return Images() if x.ndim == 4 else None


def _compared(arrays: dict[str, Any], groups: list[str], tolerance: float | None) -> Comparison:
    from ..bounds import compare_groups

    x = arrays["x"]
    return compare_groups((x, arrays["y"]), groups, tolerance=tolerance, action=_action(x))


def _of_data(arrays: dict[str, Any], name: str, tolerance: float | None, bins: int) -> Bounds:
    from ..bounds import OrbitTable, classification
    from ..groups import parse

    x = arrays["x"]
    answers = {key: arrays[key] for key in ("confidence", "predicted") if key in arrays}
    table: OrbitTable = OrbitTable.from_data(
        x, arrays["y"], parse(name), tolerance=tolerance, action=_action(x), **answers
    )
    return classification(table, bins=bins)


def _forced(comparison: Comparison) -> dict[str, Any]:
    """Give the curves: the calibration error that each group forces on models of confidence p."""
    return {
        "confidence": comparison.confidence.tolist(),
        "groups": {
            each.name: {
                "one_confidence": each.forced.tolist(),
                "orbitwise": each.forced_orbitwise.tolist(),
            }
            for each in comparison.candidates
        },
    }


def _plain(found: dict[str, Bounds]) -> dict[str, Any]:
    return {"bounds": {name: each.to_dict() for name, each in found.items()}} if found else {}


def _print_all(found: dict[str, Bounds], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({name: each.to_dict() for name, each in found.items()}, indent=2))
        return
    from rich.console import Console

    console = Console(soft_wrap=False)
    for name, each in found.items():
        _print_bounds(console, name, each)


def _print_bounds(console: Any, name: str, found: Bounds) -> None:
    from rich.rule import Rule
    from rich.table import Table

    about = found.about
    console.print(Rule(f"[bold]{name}[/]", align="left"))
    ceiling = float(found["accuracy_ceiling"])
    floor = float(found["accuracy_floor"])
    console.print(f"No invariant model is more accurate than [bold]{ceiling:.4f}[/].")
    console.print(f"None is less accurate than {floor:.4f}.", end=" ")
    if about["accuracy"] is not None:
        console.print(f"This one: {about['accuracy']:.4f}.")
    else:
        console.print()
    facts = [f"{about['orbits']} orbits", f"{about['labels']} labels"]
    if about["fibers"] is not None:
        facts.append(f"{about['fibers']} fibers in {about['bins']} bins")
    if about["invariance_gap"] is not None:
        facts.append(f"measured invariance gap {about['invariance_gap']:.3g}")
    console.print("; ".join(facts), style="dim")
    if about["samples"] == about["orbits"]:
        console.print(f"[yellow]No two samples share an orbit: {_UNMATCHED}[/]")
    if about["averaged"]:
        console.print(
            "[yellow]The answers differ within an orbit; these are the bounds of their average.[/]"
        )
    if found["sharp_upper"].applies:
        console.print()
        console.print(_interval(found), highlight=False)
    table = Table(show_edge=False, pad_edge=False, box=None, padding=(0, 2, 0, 0))
    for column, justify in (("statement", "left"), ("bound", "right"), ("", "left")):
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for key, title in THEOREMS.items():
        bound = found[key]
        side = {"upper": "at most", "lower": "at least"}[bound.kind]
        value = "-" if bound.value is None else f"{side} {bound.value:.4f}"
        notes = [] if bound.applies else ["does not apply:"]
        notes += ["vacuous;"] if bound.vacuous else []
        notes.append(_in_words(bound.reason))
        table.add_row(title, value, f"[dim]{' '.join(notes).strip(' ;')}[/]")
    console.print()
    console.print(table)
    console.print()


def _in_words(reason: str) -> str:
    """Name other statements by their titles, as the table does."""
    for key in ("prop1", "fiber_free"):
        reason = reason.replace(key, THEOREMS[key])
    return reason


def _interval(found: Bounds, width: int = 50) -> str:
    """Draw the interval as a line of text, the model's own ECE in its place."""
    low, high = float(found["sharp_lower"]), float(found["sharp_upper"])

    def place(value: float) -> int:
        return round(min(1.0, max(0.0, value)) * width)

    cells = ["·"] * (width + 1)
    cells[place(low) : place(high) + 1] = ["━"] * (place(high) - place(low) + 1)
    text = (
        f"calibration error of an invariant model with these confidences: {low:.4f} to {high:.4f}"
    )
    if found["ece"].applies:
        ece = float(found["ece"])
        cells[place(ece)] = "[bold]●[/]"
        text += f"\nthis model's own: [bold]{ece:.4f}[/]"
    return f"{text}\n0 {''.join(cells)} 1"


def _print_comparison(comparison: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    rows = comparison.rows()
    for row in rows[1:]:
        if row["orbits"] == rows[0]["orbits"]:
            console.print(
                f"[yellow]Under {row['group']} no two different samples share an orbit: "
                f"{_UNMATCHED}[/]"
            )
            continue
        console.print(
            f"No {row['group']}-invariant model is more accurate than "
            f"[bold]{row['accuracy_ceiling']:.4f}[/] on these data."
        )
    console.print()
    table = Table(show_edge=False, pad_edge=False, box=None, padding=(0, 1, 0, 0))
    titles = {
        "group": "group",
        "elements": "size",
        "orbits": "orbits",
        "accuracy_ceiling": "ceiling",
        "cost": "cost",
        "accuracy_floor": "floor",
        "correct": "correct",
        "incorrect": "incorrect",
        "extrinsic": "extrinsic",
        "forced_at_full_confidence": "forced",
    }
    for title in titles.values():
        name = title == "group"
        table.add_column(
            title, justify="left" if name else "right", no_wrap=not name, overflow="fold"
        )
    for row in rows:
        cells = (row[key] for key in titles)
        table.add_row(*(f"{c:.4f}" if isinstance(c, float) else str(c) for c in cells))
    console.print(table)
    console.print(
        f"points match within {comparison.tolerance:.3g}; cost: against the trivial group; "
        "forced: the ECE of a model that is always certain",
        style="dim",
    )
    console.print()
