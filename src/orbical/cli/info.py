"""`orbical info`: describe a saved scan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._text import counted, percent, printable
from .arguments import Store
from .printing import format_flags, print_facts, print_json

if TYPE_CHECKING:
    from ..store import Scan

_MOST_NAMES = 20


@format_flags("json")
def info(
    store: Store,
    verify: Annotated[bool, typer.Option("--verify")] = False,
    repair: Annotated[bool, typer.Option("--repair")] = False,
    format_: str = "text",
) -> None:
    """Describe a saved scan and how much of it is finished.

    Args:
        verify: Read all results and verify their checksums, without changing anything. Exits with
            status 1 if any is damaged.
        repair: Restore what can be restored, and mark damaged units as unfinished, so that the same
            scan, run again, computes only these.
    """
    from ..store import load

    if repair:
        _repair_in_info(store)
    if verify and _print_damage_in_info(store, format_):
        raise typer.Exit(1)
    scan = load(store)
    if format_ == "json":
        print_json(scan.info() | {"damaged": []})
        return
    print_facts(_info_facts_of_scan(scan))
    if verify:
        typer.echo("all checksums are correct")


def _repair_in_info(path: Path) -> None:
    from ..store import locked, open_store, repair

    open_store(path)  # a path that is no store is refused by name
    with locked(path):
        store = open_store(path)
        done = repair(store)
    for key in done.restored:
        typer.echo(printable(f"restored    {key}"))
    for unit in done.unfinished:
        name = printable(store.unit_name(*unit))
        typer.echo(f"unfinished  {name}; run the same scan again to compute it")


def _print_damage_in_info(path: Path, format_: str) -> bool:
    """Print what is missing or damaged; return whether anything is."""
    from ..store import open_store, verify

    store = open_store(path)
    found = verify(store)
    if found and format_ == "json":
        print_json({"damaged": [{"file": one.key, "why": one.why} for one in found]})
    elif found:
        for one in found:
            unit = "" if one.unit is None else f" ({store.unit_name(*one.unit)})"
            typer.echo(printable(f"{one.key}{unit} is {one.why}"))
        many = counted(len(found), "damaged file")
        typer.echo(f"{many}; repair with: orbical info --repair {path}")
    return bool(found)


def _count_and_names(names: list[str]) -> str:
    """Return the number of names and the first of them."""
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"{len(names)}: {', '.join(names[:_MOST_NAMES])}{more}"


def _info_facts_of_scan(scan: Scan) -> list[tuple[str, str]]:
    record, group, run = scan.record, scan.group, scan.record.run
    state = "complete" if scan.complete else f"{percent(scan.share_done, 1)} done"
    drawn = f"{group.layout.kind} plot, {group.measure} weights"
    truth = "labeled" if scan.labeled else "unlabeled"
    fingerprint = record.data.fingerprint or record.data.first
    facts = [
        ("scan", f"{scan.path} ({state})"),
        ("task", f"{record.task.name}; score = {record.score.meaning}"),
        ("group", f"{group.spec}: {counted(len(group), 'element')}, {drawn}"),
        ("data", f"{counted(record.data.samples, 'sample')}, {truth} [{fingerprint}]"),
    ]
    if scan.classes:
        facts.append(("classes", _count_and_names(scan.classes)))
    if scan.metadata:
        facts.append(("metadata", ", ".join(scan.metadata)))
    for number, entry in enumerate(record.models):
        source = f"{entry.source} [{entry.fingerprint or 'identified by its outputs'}]"
        varies = "" if entry.deterministic else ", outputs differ from call to call"
        done = f"{percent(scan.done[number].mean())} done{varies}"
        facts.append(("model", f"{entry.name} = {source}, {done}"))
        failures = scan.failures[entry.name]
        if failures:
            first = failures[0]
            failed = f"{entry.name} failed on {counted(len(failures), 'sample')}"
            facts.append(("failed", f"{failed}; on sample {first['sample']}: {first['error']}"))
    computed = f"{run.device}, {counted(run.threads, 'thread')}, batches of {run.batch_size}"
    return [
        *facts,
        ("variables", ", ".join(sorted(scan.arrays))),
        ("created", f"{record.created} on {computed}, units of {counted(run.chunk, 'sample')}"),
        ("versions", ", ".join(f"{name} {text}" for name, text in record.versions.items())),
    ]
