"""`orbical groups`: list the groups, and show one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._text import counted, number, printable
from .arguments import Import, save_figure
from .printing import Sheet, format_flags, print_facts, print_json, print_results

if TYPE_CHECKING:
    from ..groups import Group

_MOST_LISTED = 60


@format_flags("json", "markdown")
def groups(
    name: Annotated[str | None, typer.Argument(metavar="[GROUP]")] = None,
    draw: Path | None = None,
    imports: Import = None,
    format_: str = "text",
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
    from ..groups import CATALOG, PARTS, parse

    entry = CATALOG.get((name or "").partition(":")[0])
    chosen = _example_groups()
    if name is not None:
        chosen = [parse(entry.example if entry and name in CATALOG else name)]
    if draw is not None:
        from ..figures import group_picture

        save_figure(group_picture(*chosen), draw, "--draw")
    facts = [_facts_of_group(group) for group in chosen]
    if name is None:
        rows = [
            [group.spec, f"{len(group):,}", _exact_to(group, ""), _moves(group), group.measure]
            for group in chosen
        ]
        headings = ["group", "elements", "exact to", "moves", "measure"]
        print_results(format_, facts, [Sheet("", headings, rows)])
    elif format_ == "json":
        elements = [
            {"name": group.name(one), "weight": float(group.weights[one])}
            for group in chosen
            for one in range(len(group))
        ]
        print_json({**facts[0], "elements": elements})
    else:
        about = {"usage": entry.usage, "about": entry.summary} if entry and "*" not in name else {}
        _print_group(chosen[0], about | ({"drawing": str(draw)} if draw else {}))
    if format_ == "text":
        for part in sorted({part for group in chosen for part in group.parts}):
            typer.echo(printable(f"{part} moves {PARTS[part].moves or 'your own data'}."))
        if name is None:
            typer.echo("Groups are combined by *, such as rotations:8*flips.")


def _example_groups() -> list[Group]:
    """Return an example of each group, those that move the same beside each other."""
    from ..groups import CATALOG, parse

    made = [parse(entry.example) for entry in CATALOG.values()]
    return sorted(made, key=lambda group: sorted(group.parts))


def _print_group(group: Group, about: dict[str, str]) -> None:
    """Print what a group is, and its first elements."""
    even = "equal" if max(group.weights) - min(group.weights) < 1e-12 else "different"
    facts = {
        "group": f"{group.spec}: {counted(len(group), 'element')}",
        "weights": f"{group.measure}, {even}",
        "closed": "yes: the sample is a group" if group.closed else "no: a sample",
        "exact to": _exact_to(group, "no degree of all rotations"),
        "moves": _moves(group),
        "drawn as": group.layout.kind,
    }
    print_facts((key, words) for key, words in (facts | about).items() if words)
    typer.echo()
    for one in range(min(len(group), _MOST_LISTED)):
        note = "   (identity)" if one == group.identity else ""
        weight = "" if even == "equal" else f"   weight {number(group.weights[one])}"
        typer.echo(printable(f"{one:>5}  {group.name(one)}{weight}{note}"))
    if len(group) > _MOST_LISTED:
        typer.echo(f"       and {len(group) - _MOST_LISTED:,} more; --json prints all")
    typer.echo()


def _exact_to(group: Group, nothing: str) -> str:
    """Return the degree up to which averages are exact, as text; nothing if none is defined."""
    from ..groups import exact_degree

    degree = exact_degree(group)
    return "" if degree is None else f"degree {degree}" if degree else nothing


def _facts_of_group(group: Group) -> dict[str, object]:
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


def _moves(group: Group) -> str:
    return ", ".join(sorted(group.parts)) or "nothing"
