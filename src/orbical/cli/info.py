"""`orbical info`: what a stored scan holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("info")(info)


def info(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A stored scan, such as run.zarr.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every finished unit and check its checksums.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Show what a stored scan contains and how much of it is complete."""
    from ..store.scan_result import load

    scan = load(store)
    damaged = scan.verify() if verify else []
    if as_json:
        facts = {**scan.record.to_json(), "share_done": scan.share_done, "damaged_units": damaged}
        typer.echo(json.dumps(facts, indent=2))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(soft_wrap=True)
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _facts(scan):
        table.add_row(name, escape(value))
    console.print(table)
    if damaged:
        console.print(
            f"[bold red]{len(damaged)} damaged units[/], unset: run the scan again to redo them"
        )
        raise typer.Exit(1)
    if verify:
        console.print("every finished unit is sound")


def _facts(scan: Any) -> list[tuple[str, str]]:
    record, sizes = scan.record, scan.data.sizes
    state = "complete" if scan.complete else f"{scan.share_done:.1%} done"
    run = record.run
    facts = [
        ("scan", f"{scan.path} ({state})"),
        ("task", f"{record.task.name}; score = {record.score.meaning}"),
        (
            "group",
            f"{scan.group.spec}: {len(scan.group)} elements, drawn as {scan.group.layout.kind}, "
            f"weights {scan.group.measure}",
        ),
        (
            "data",
            f"{sizes['sample']} samples, {'with' if scan.labeled else 'without'} truth "
            f"[{record.data.fingerprint}]",
        ),
    ]
    for number, entry in enumerate(record.models):
        done = scan.done[number].mean()
        steady = "" if entry.deterministic else ", answers differ from call to call"
        facts.append(
            (
                "model",
                f"{entry.name} = {entry.source} "
                f"[{entry.fingerprint or 'known by its answers'}], {done:.0%} done{steady}",
            )
        )
        for failed in entry.failures[:1]:
            count = len(entry.failures)
            facts.append(
                (
                    "failed",
                    f"{entry.name} gave no answer on {count} samples; on sample "
                    f"{failed['sample']}: {failed['error']}",
                )
            )
    facts += [
        ("holds", ", ".join(sorted(map(str, scan.data.data_vars)))),
        (
            "made",
            f"{record.created} on {run.device}, {run.threads} threads, batches of "
            f"{run.batch_size}, units of {run.chunk} samples",
        ),
        ("versions", ", ".join(f"{name} {text}" for name, text in record.versions.items())),
    ]
    return facts
