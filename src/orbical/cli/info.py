"""`orbical info`: describe a saved scan."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .arguments import AsJson, Store


def info(
    store: Store,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all results and verify their checksums.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Describe a saved scan and how much of it is finished."""
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
            f"[bold red]{len(damaged)} damaged units[/] were reset: run the scan again to redo them"
        )
        raise typer.Exit(1)
    if verify:
        console.print("all checksums are correct")


def _facts(scan: Any) -> list[tuple[str, str]]:
    record, sizes, group, run = scan.record, scan.data.sizes, scan.group, scan.record.run
    state = "complete" if scan.complete else f"{scan.share_done:.1%} done"
    weights = f"{group.measure} weights"
    truth = "labeled" if scan.labeled else "unlabeled"
    facts = [
        ("scan", f"{scan.path} ({state})"),
        ("task", f"{record.task.name}; score = {record.score.meaning}"),
        ("group", f"{group.spec}: {len(group)} elements, {group.layout.kind} plot, {weights}"),
        ("data", f"{sizes['sample']} samples, {truth} [{record.data.fingerprint}]"),
    ]
    for number, entry in enumerate(record.models):
        source = f"{entry.source} [{entry.fingerprint or 'identified by its outputs'}]"
        varies = "" if entry.deterministic else ", outputs differ from call to call"
        done = f"{scan.done[number].mean():.0%} done{varies}"
        facts.append(("model", f"{entry.name} = {source}, {done}"))
        if entry.failures:
            first = entry.failures[0]
            failed = f"{entry.name} failed on {len(entry.failures)} samples"
            facts.append(("failed", f"{failed}; on sample {first['sample']}: {first['error']}"))
    computed = f"{run.device}, {run.threads} threads, batches of {run.batch_size}"
    return [
        *facts,
        ("variables", ", ".join(sorted(map(str, scan.data.data_vars)))),
        ("created", f"{record.created} on {computed}, units of {run.chunk} samples"),
        ("versions", ", ".join(f"{name} {text}" for name, text in record.versions.items())),
    ]
