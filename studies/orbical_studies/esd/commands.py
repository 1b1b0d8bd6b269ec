"""The study's steps: pack the images, run parts of it, make the page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orbical.errors import InputError, unknown_name

from ..command_line import one_line_errors
from .settings import BEYOND_GRID, EPOCHS, GRID, PARTS, SMALLER_BATCHES

PAGE = Path("docs/studies/esd.md")
RESULTS = Path("results/esd.jsonl")


def pack(folder: Path) -> None:
    """Write the images of both data sets to a folder, compressed.

    Args:
        folder: where to.
    """
    from . import packing

    for name in packing.DATA_SETS:
        path = packing.pack(folder, name)
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")


def run(
    only: Sequence[str],
    data: Path | None,
    results: Path,
    *,
    device: str = "auto",
    workers: int = 0,
    seeds: int = 3,
    epochs: int | None = None,
    images: int | None = None,
    limit_s: float = 1e9,
) -> None:
    """Run parts of the study, skipping what the results file already has.

    Args:
        only: parts, of `PARTS`.
        data: folder with the packed images, or None for the public files.
        results: the results file, `.jsonl`.
        device: `"cpu"`, `"cuda"`, or `"auto"`.
        workers: processes; 0 trains in this one.
        seeds: how many.
        epochs: of every run; None takes the study's own numbers.
        images: only the first so many images of each split, to try things out.
        limit_s: seconds after which no training may still run.
    """
    for part in only:
        if part not in PARTS:
            raise unknown_name("only", part, PARTS)
    if seeds < 1 or workers < 0 or (epochs is not None and epochs < 1):
        raise InputError(
            f"seeds, workers, epochs: got {seeds}, {workers}, {epochs}; "
            "expected at least 1, at least 0, and at least 1 (or none)"
        )
    import torch

    from . import pool
    from .page import latest
    from .results import Results
    from .tables import main_table

    deadline = time.time() + limit_s
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    place = torch.device(chosen)
    names = [n for n in EPOCHS if n in only or "cost" in only or "lambda" in only]
    if "ablation" in only and "cifar10" not in names:
        names.append("cifar10")
    splits = {name: pool.load(data, name, place, images) for name in names}
    file = Results(results)
    for part in (p for p in PARTS if p in only):
        print(f"part {part}", flush=True)
        started, before = time.time(), len(file.rows)
        if part == "cost":
            _costs(file, splits, place)
            continue
        pool.run_all(
            _configurations(part, file, list(range(seeds)), epochs),
            file,
            splits,
            device=place,
            workers=workers,
            deadline=deadline,
            say=lambda line: print(line, flush=True),
        )
        seen = sum(row["images"] for row in file.rows[before:])
        seconds = time.time() - started
        print(f"part {part}: {seconds:.0f} s, {seen / seconds:,.0f} images/s", flush=True)
    for name in (n for n in EPOCHS if n in only):
        print(f"\n{name}: ours over seeds [the paper's]\n{main_table(latest(file.rows), name)}")


def _costs(file: Any, splits: dict[str, Any], device: Any) -> None:
    from .cost import of_steps

    for name, split in splits.items():
        for row in of_steps(name, split, device):
            print(f"{row['key']}: step {row['step_ms']:.2f} ms, loss {row['loss_ms']:.2f} ms")
            if row["key"] not in file.keys:
                file.add(row)


def _configurations(part: str, file: Any, seeds: list[int], epochs: int | None) -> list[Any]:
    from . import settings
    from .summaries import chosen_weights

    def length(data: str) -> int:
        return epochs or EPOCHS[data]

    if part in EPOCHS:
        return settings.grid(part, GRID, seeds, length(part))
    if part == "ablation":
        weights = chosen_weights(file.rows, "cifar10", length("cifar10"))
        return settings.ablation(weights, seeds, length("cifar10"), SMALLER_BATCHES)
    return [
        configuration
        for data in EPOCHS
        for configuration in settings.grid(data, BEYOND_GRID, seeds[:1], length(data))
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and run one step."""
    parser = argparse.ArgumentParser(
        prog="orbical study esd", description="The ESD paper's experiments."
    )
    steps = parser.add_subparsers(dest="step", required=True)
    packing = steps.add_parser("pack", help="write the images of both data sets, compressed")
    packing.add_argument("folder", type=Path, help="where to write them")
    running = steps.add_parser("run", help="train and measure parts of the study")
    running.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    running.add_argument("--data", type=Path, help="folder that pack wrote; else public files")
    running.add_argument("--results", type=Path, default=RESULTS, help=f"default {RESULTS}")
    running.add_argument("--device", default="auto", help="auto, cpu or cuda")
    running.add_argument("--workers", type=int, default=0, help="processes beside; 0: none")
    running.add_argument("--seeds", type=int, default=3, help="runs of each setting")
    running.add_argument("--epochs", type=int, help="instead of each data set's own number")
    running.add_argument("--images", type=int, help="only the first so many of each split")
    running.add_argument("--limit", type=float, default=1e9, help="seconds to start runs in")
    reporting = steps.add_parser("report", help="tables, CSV, figures and the page")
    reporting.add_argument(
        "--results",
        type=Path,
        nargs="+",
        help=f"default {RESULTS}, or without it the CSV files beside the page",
    )
    reporting.add_argument("--page", type=Path, default=PAGE, help=f"default {PAGE}")
    options = parser.parse_args(arguments)
    with one_line_errors(parser):
        if options.step == "pack":
            pack(options.folder)
        elif options.step == "run":
            run(
                options.only.split(","),
                options.data,
                options.results,
                device=options.device,
                workers=options.workers,
                seeds=options.seeds,
                epochs=options.epochs,
                images=options.images,
                limit_s=options.limit,
            )
        else:
            from .page import report

            at_hand = RESULTS if RESULTS.is_file() else options.page.with_suffix("")
            report(options.results or [at_hand], options.page)
