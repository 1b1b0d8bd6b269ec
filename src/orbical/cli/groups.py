"""`orbical groups`: list the groups, and show one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import counted, printable
from .arguments import AsJson, Import

if TYPE_CHECKING:
    from ..groups import Group

_MOST_LISTED = 60


def groups(
    name: Annotated[str | None, typer.Argument(metavar="[GROUP]")] = None,
    draw: Annotated[Path | None, typer.Option("--draw", metavar="FILE")] = None,
    imports: Import = None,
    as_json: AsJson = False,
) -> None:
    """List the symmetry groups, or show one with its elements.

    \b
    orbical groups
    orbical groups octahedral:full
    orbical groups 'dihedral:4*time_reversal' --draw d4.png

    The degree of exactness is the largest degree up to which averages over the elements equal those
    over all rotations: of Wigner matrices in space, of Fourier series in the plane.

    Args:
        name: A group to show, such as octahedral or rotations:8*flips; without one, all are listed.
        draw: Draw the group, or all, to this file (.png, .pdf, .svg): a flag moved by each element.
    """
    from ..groups import parse
    from ..groups.group_names import CATALOG

    entry = CATALOG.get((name or "").partition(":")[0])
    chosen = [parse(entry.example if entry and name in CATALOG else name)] if name else _examples()
    if draw is not None:
        from ..figures import group_picture, save

        save(group_picture(*chosen), draw)
    if name is None:
        _list(chosen, as_json)
        return
    (group,) = chosen
    if as_json:
        elements = [
            {"name": group.name(one), "weight": float(group.weights[one])}
            for one in range(len(group))
        ]
        typer.echo(json.dumps({**_facts(group), "elements": elements}, indent=2))
        return
    about = {"usage": entry.usage, "about": entry.summary} if entry and "*" not in name else {}
    _show(group, about | ({"drawing": str(draw)} if draw else {}))


def _examples() -> list[Group]:
    """Return an example of each group, those that move the same beside each other."""
    from ..groups import parse
    from ..groups.group_names import CATALOG

    made = [parse(entry.example) for entry in CATALOG.values()]
    return sorted(made, key=lambda group: sorted(group.parts))


def _list(made: list[Group], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([_facts(group) for group in made], indent=2))
        return
    from rich.markup import escape
    from rich.table import Table

    from .._console import Console

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("group", no_wrap=True)
    table.add_column("elements", justify="right")
    table.add_column("exact to", justify="right")
    table.add_column("moves")
    table.add_column("measure")
    for group in made:
        degree = _exact_to(group, "")
        row = (group.spec, f"{len(group):,}", degree, _parts(group), group.measure)
        table.add_row(*(escape(printable(word)) for word in row))
    console = Console(soft_wrap=True)
    console.print(table)
    console.print()
    _print_users(console, {part for group in made for part in group.parts})
    console.print("Groups are combined by *, such as rotations:8*flips.")


def _show(group: Group, about: dict[str, str]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from .._console import Console

    console = Console(soft_wrap=True)
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    even = "equal" if max(group.weights) - min(group.weights) < 1e-12 else "different"
    rows = {
        "group": f"{group.spec}: {counted(len(group), 'element')}",
        "weights": f"{group.measure}, {even}",
        "closed": "yes: the sample is a group" if group.closed else "no: a sample",
        "exact to": _exact_to(group, "no degree of all rotations"),
        "moves": _parts(group),
        "drawn as": group.layout.kind,
    }
    for key, words in (rows | about).items():
        if words:
            table.add_row(key, escape(printable(words)))
    console.print(table)
    console.print()
    for one in range(min(len(group), _MOST_LISTED)):
        note = "   (identity)" if one == group.identity else ""
        weight = "" if even == "equal" else f"   weight {group.weights[one]:.4g}"
        console.print(escape(printable(f"{one:>5}  {group.name(one)}{weight}{note}")))
    if len(group) > _MOST_LISTED:
        console.print(f"       and {len(group) - _MOST_LISTED:,} more; --json prints all")
    console.print()
    _print_users(console, {*group.parts})


def _exact_to(group: Group, nothing: str) -> str:
    """Return the degree up to which averages are exact, as text; nothing if none is defined."""
    from ..groups import exact_degree

    degree = exact_degree(group)
    return "" if degree is None else f"degree {degree}" if degree else nothing


def _facts(group: Group) -> dict[str, Any]:
    from ..groups import exact_degree

    return {
        "spec": group.spec,
        "size": len(group),
        "measure": group.measure,
        "closed": group.closed,
        "exact_to": exact_degree(group),
        "moves": sorted(group.parts),
        "layout": group.layout.kind,
    }


def _parts(group: Group) -> str:
    return ", ".join(sorted(group.parts)) or "nothing"


def _print_users(console: Any, parts: set[str]) -> None:
    """Print which data each part moves."""
    from ..groups.group_parts import PARTS

    for part in sorted(parts):
        moves = PARTS[part].moves or "your own data"
        console.print(printable(f"{part} moves {moves}."), markup=False)
