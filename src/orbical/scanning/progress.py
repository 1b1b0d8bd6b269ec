"""A progress bar on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def scan_progress_bar(
    total: int,
    done: int,
    per_sample: int,
    shown: bool | Callable[[int, int], None],
    title: str = "scan",
    each: str = "elements",
) -> Iterator[Callable[[int], None]]:
    """Show samples, evaluations per second and the time left, on the error stream.

    A function in place of a bar is called with the evaluations done and their total.
    """
    if callable(shown):
        yield _progress_counter(total, done, shown)
        return
    if not shown:
        yield lambda inputs: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from .._console import Console

    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.fields[samples]}/{task.fields[all]} samples"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        number = bar.add_task(
            "",
            total=total,
            completed=done,
            samples=done // per_sample,
            all=total // per_sample,
            rate="",
        )

        def advance(inputs: int) -> None:
            bar.advance(number, inputs)
            entry = bar.tasks[0]
            # After one step there is no speed yet, and it may have been the only one.
            speed = entry.speed or (entry.completed - done) / max(entry.elapsed or 0, 1e-9)
            rate = f"{speed:,.0f}" if speed >= 10 else f"{speed:.1g}"
            samples = int(entry.completed) // per_sample
            bar.update(number, samples=samples, rate=f"{rate} {each}/s")

        yield advance


def _progress_counter(
    total: int, done: int, told: Callable[[int, int], None]
) -> Callable[[int], None]:
    finished = done

    def advance(inputs: int) -> None:
        nonlocal finished
        finished += inputs
        told(finished, total)

    return advance
