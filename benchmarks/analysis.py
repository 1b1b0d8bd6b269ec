"""Analysis of large scans and outputs: memory and time of what reads them.

    python benchmarks/analysis.py                   every row
    python benchmarks/analysis.py orbit_memory      some rows
    python benchmarks/analysis.py --json out.json   and a file

Each piece of work has a process of its own. Memory is the peak above that of the process with the
scan opened; times of commands are processor time above that of importing what they need. The report
has two threads, and its time is wall time, which needs an idle machine.
The scan is synthetic, 200,000 samples x 360 rotations of one model, and takes 1 GB of disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from timing import Row, at_most, extra_megabytes, processor_seconds, run

SAMPLES, ELEMENTS = 200_000, 360

ORBIT_WORK = {
    "ECE along the orbit": "ob.calibration.along_orbit(ob.load(store), 'ece')",
    "KS along the orbit": "ob.calibration.along_orbit(ob.load(store), 'ks')",
    "ESD along the orbit": "ob.calibration.along_orbit(ob.load(store), 'esd')",
    "PCA": "ob.embedding.embed(ob.load(store), 'pca')",
    "orbical check": "command('check', store, '--max-ece=1', '--max-worst-ece=1', '--max-ks=1', "
    "'--max-pooled-ece=1', '--max=pooled_ks=1', '--min-accuracy=0', '--max-accuracy-drop=1', "
    "'--max-gap=1')",
    "orbical calibration": "command('calibration', store)",
}
"""What reads a scan, as expressions of `ob`, `command` and the path `store`."""


def synthetic_scan(path: Path, samples: int, elements: int) -> None:
    """Write a scan of one model whose scores change smoothly along the orbit."""
    import torch

    import orbical as ob
    from orbical.store.creation import create
    from orbical.store.layout import ArraySpec, Fixed

    group = ob.groups.rotations(elements)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 10))
    few = (torch.rand(8, 1, 4, 4), torch.arange(8))
    small = ob.scan({"model": net}, few, group=group, task="classification", progress=False)
    record = replace(
        small.record,
        data=replace(small.record.data, samples=samples),
        run=replace(small.record.run, chunk=min(2**17 // elements, samples)),
    )
    specs = {}
    for name, array in small.arrays.items():
        dims = array.metadata.dimension_names
        shape = tuple(
            samples if dim == "sample" else size
            for dim, size in zip(dims, array.shape, strict=True)
        )
        specs[name] = ArraySpec(dims, shape, str(array.dtype), dict(array.attrs))
    del specs["label"]
    label = np.random.default_rng(0).integers(0, 10, samples)
    truth = {"label": Fixed(("sample",), label, {"meaning": "truth"})}
    store = create(path, record, specs, group, truth)
    for chunk in range(record.chunks):
        rng = np.random.default_rng(chunk)
        mine = label[record.rows(chunk), None]
        shape = (len(mine), elements)
        store.finish(None, chunk, {"action_defect": 0.1 * rng.random(shape, np.float32)})
        turn = np.cos(np.deg2rad(group.coords["angle"]) - rng.normal(0, 0.3, (len(mine), 1)))
        odds = rng.normal(0, 1, (len(mine), 1)) + 2 * turn
        odds = odds.astype(np.float32) + 0.3 * rng.standard_normal(shape, np.float32)
        score = 1 / (1 + np.exp(-odds))
        sure = np.maximum(score, 1 - score)
        correct = rng.random(shape, np.float32) < sure**1.3
        mean = np.full((len(mine), 10), 0.01, np.float32)
        np.put_along_axis(mean, mine, score.mean(1)[:, None], 1)
        outputs = {
            "score": score,
            "score_vs_consensus": score,
            "confidence": sure,
            "correct": correct,
            "predicted": np.where(correct, mine, (mine + 1) % 10),
            "consensus": mean,
            "consensus_vs_truth": score.mean(1),
            "invariance_gap": score.std(1),
        }
        store.finish(0, chunk, outputs)


def command(*arguments: str) -> None:
    """Run a command of `orbical` in this process; the exit status of `check` does not matter."""
    from orbical.cli import main

    sys.argv = ["orbical", *arguments]
    with contextlib.suppress(SystemExit):
        main()


def measure(work: str, store: str) -> None:
    """Print the memory, processor time and wall time of an expression, once a scan is opened."""
    import orbical as ob
    import orbical.cli

    ob.load(store)
    known = {"ob": ob, "command": command, "store": store}
    spent = []

    def timed() -> None:
        start = time.perf_counter()
        spent.append(processor_seconds(lambda: eval(work, known)))
        spent.append(time.perf_counter() - start)

    print(json.dumps([extra_megabytes(timed), *spent]), file=sys.stderr)


def in_a_process(function: str, *arguments: str, threads: int = 1) -> list[float]:
    """Call a function of this module in a process of its own, and return the numbers it prints."""
    code = f"import analysis; analysis.{function}(*{arguments!r})"
    wanted = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    environment = {**os.environ, **wanted, "PYTHONPATH": os.pathsep.join(sys.path)}
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{arguments[0]}: {done.stderr}")
    numbers: list[float] = json.loads(done.stderr.splitlines()[-1])
    return numbers


def within(work: str, value: float, unit: str, limit: float) -> Row:
    """Compare a number with its limit."""
    ours, theirs = f"{value:.3g} {unit}", f"{limit:g} {unit}"
    return Row(work, ours, "limit", theirs, value / limit, "<= 1", value <= limit)


def orbit_memory(samples: int = SAMPLES, elements: int = ELEMENTS) -> Iterator[Row]:
    """Measure everything that reads a scan along its orbit: at most 0.5 GB."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/run.zarr"
        synthetic_scan(Path(store), samples, elements)
        for name, work in ORBIT_WORK.items():
            memory, spent, _ = in_a_process("measure", work, store)
            title = f"{name}, {samples:,} x {elements}, memory ({spent:.3g} s)"
            yield within(title, memory / 1024, "GB", 0.5)


def report(samples: int = SAMPLES, elements: int = ELEMENTS) -> Iterator[Row]:
    """Measure `orbical report` on two threads: 60 s and 1 GB."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/run.zarr"
        synthetic_scan(Path(store), samples, elements)
        work = f"command('report', store, '--out={folder}/report.html')"
        memory, spent, wall = in_a_process("measure", work, store, threads=2)
    about = f"({spent:.3g} s of processor time, load {os.getloadavg()[1]:.0f})"
    yield within(f"orbical report, {samples:,} x {elements}, wall time {about}", wall, "s", 60)
    yield within(f"orbical report, {samples:,} x {elements}, memory", memory / 1024, "GB", 1)


def outputs_file(path: Path, samples: int, classes: int) -> None:
    """Write outputs of a classifier that is somewhat underconfident."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((samples, classes), np.float32)
    odds = np.exp(logits.astype(np.float64)).cumsum(1)
    drawn = rng.random((samples, 1)) * odds[:, -1:]
    labels = (odds < drawn).sum(1)
    logits[np.arange(samples), labels] += 1
    np.savez(path, logits=logits, labels=labels)


def command_seconds(*arguments: str) -> float:
    """Return the processor time of Python with these arguments, in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, *arguments]
    subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def saved_outputs(
    sizes: tuple[tuple[int, int, float], ...] = (
        (10_000, 10, 1.0),
        (10_000, 100, 2.5),
        (2_000, 1000, 4.0),
    ),
) -> Iterator[Row]:
    """Time `orbical calibration` of saved outputs, all measures and intervals."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outputs.npz"
        for samples, classes, limit in sizes:
            outputs_file(path, samples, classes)
            work = ("-m", "orbical", "calibration", str(path))
            empty = min(
                command_seconds("-c", "from orbical.calibration import ece") for _ in range(2)
            )
            spent = min(command_seconds(*work) for _ in range(2)) - empty
            yield within(f"orbical calibration, outputs {samples:,} x {classes}", spent, "s", limit)


def start_up(samples: int = 100, elements: int = 12) -> Iterator[Row]:
    """Time commands that need no network on a small scan, beside importing torch: half of it."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/run.zarr"
        synthetic_scan(Path(store), samples, elements)
        commands = {
            "orbical info": ("info", store),
            "orbical groups": ("groups",),
            "orbical check": ("check", store, "--min-score=0"),
        }
        torch = min(command_seconds("-c", "import torch") for _ in range(3))
        for name, arguments in commands.items():
            spent = min(command_seconds("-m", "orbical", *arguments) for _ in range(3))
            yield at_most(f"{name}, from start to end", spent, "import torch", torch, 0.5)


ROWS = [orbit_memory, report, saved_outputs, start_up]

if __name__ == "__main__":
    run(ROWS, __doc__)
