"""What every benchmark file shares: timing on one thread, extra memory, and one table.

Times are processor time of this process, the least of several runs, so that a busy machine changes
them little; ratios compare numbers of one run only.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `ratio` is `theirs / ours` where more is better ("at least") and `ours / theirs` where the
    target is an upper limit ("at most").
    """

    work: str
    ours: str
    against: str
    theirs: str
    ratio: float
    target: str
    met: bool


def seconds(function: Callable[[], Any], runs: int = 5) -> float:
    """Return the least processor time of a call, after one call to warm up."""
    function()
    return min(processor_seconds(function) for _ in range(runs))


def processor_seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def accelerator_seconds(work: Callable[[], Any], enough: float = 0.0) -> float:
    """Return the least wall time of a call, the accelerator's work included.

    Calls are repeated until they took `enough` seconds together: the first of a size takes memory
    and chooses kernels.
    """
    import torch

    times: list[float] = []
    while not times or sum(times) < enough:
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def in_turns(
    first: Callable[[], Any],
    second: Callable[[], Any],
    rounds: int,
    clock: Callable[[Callable[[], Any]], float] = processor_seconds,
) -> tuple[float, float]:
    """Return the least time of each of two calls that take turns, and so meet the same machine."""
    turns = [(clock(first), clock(second)) for _ in range(rounds)]
    return min(one for one, _ in turns), min(other for _, other in turns)


def at_most(work: str, ours: float, against: str, theirs: float, limit: float) -> Row:
    """Compare times where ours may take at most `limit` of theirs."""
    ratio = float(ours / theirs)  # JSON does not know NumPy's numbers
    return Row(work, show(ours), against, show(theirs), ratio, f"<= {limit:g}", ratio <= limit)


def at_least(work: str, ours: float, against: str, theirs: float, factor: float) -> Row:
    """Compare times where ours must be at least `factor` times faster."""
    ratio = float(theirs / ours)
    return Row(work, show(ours), against, show(theirs), ratio, f">= {factor:g}", ratio >= factor)


def show(duration: float) -> str:
    """Print a duration with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if duration >= size:
            return f"{duration / size:.3g} {unit}"
    return f"{duration / 1e-6:.3g} µs"


def extra_megabytes(function: Callable[[], Any]) -> float:
    """Return how far a call lifts this process's memory above where it started (Linux)."""
    status = Path("/proc/self/status")

    def kilobytes(field: str) -> int:
        line = next(row for row in status.read_text().splitlines() if row.startswith(field))
        return int(line.split()[1])

    ctypes.CDLL(None).malloc_trim(0)  # memory that was freed but kept would hide what is taken
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = kilobytes("VmRSS")
    function()
    return (kilobytes("VmHWM") - before) / 1024


def keep_freed_memory() -> None:
    """Let the process keep what it frees (Linux with glibc; elsewhere nothing happens).

    Otherwise the layout of the heap decides, run by run, whether large tensors that come and go are
    taken from the system anew each time, which can double the time of a small network.
    """
    try:
        adjust = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        adjust(option, 1 << 30)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def installed(module: str) -> Any | None:
    """Import a peer, or say that it is absent and go on without it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"without {module}: {error}")
        return None


def run(
    rows: Iterable[Callable[[], Iterator[Row]]],
    description: str,
    on_request: Iterable[Callable[[], Iterator[Row]]] = (),
) -> None:
    """Run the rows whose names are asked for, print the table, write JSON if asked to."""
    import torch

    parser = argparse.ArgumentParser(description=description)
    usual = [row.__name__ for row in rows]
    known = {row.__name__: row for row in (*rows, *on_request)}
    some = f"some of: {', '.join(known)} (default: {', '.join(usual)})"
    parser.add_argument("rows", nargs="*", help=some)
    parser.add_argument("--json", type=Path, help="write the table here too")
    options = parser.parse_args()
    for name in options.rows:
        if name not in known:
            parser.error(f"unknown row {name!r}; known: {', '.join(known)}")
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table = []
    for name in options.rows or usual:
        with attempt(name):
            for row in known[name]():
                table.append(asdict(row))
                print(line(row), flush=True)
                if options.json:
                    facts = {"torch": torch.__version__, "threads": 1, "rows": table}
                    options.json.write_text(json.dumps(facts, indent=2) + "\n")
    if _failed:
        raise SystemExit(f"failed: {', '.join(_failed)}")


@contextmanager
def attempt(work: str) -> Iterator[None]:
    """Print what fails and go on, so that one row does not lose the others."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        _failed.append(work)


_failed: list[str] = []


def line(row: Row) -> str:
    """Print a row as a line of a Markdown table."""
    verdict = "met" if row.met else "missed"
    return (
        f"| {row.work} | {row.ours} | {row.against} | {row.theirs} "
        f"| {row.ratio:.3g} | {row.target} | {verdict} |"
    )
