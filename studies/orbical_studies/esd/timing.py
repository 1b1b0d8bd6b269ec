"""What a training step costs with each loss (the paper's Fig. 3)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import torch

from ..framework import Results
from ..framework.training import device
from . import training
from .batches import Split, partition
from .packing import unpack
from .settings import BASELINE, BATCH, LOSSES, Settings, Trial

WARM_UP, REPEATS = 10, 40


def cost(settings: Settings, results: Results) -> None:
    """Time the losses on this machine, and write the table `cost`."""
    splits = unpack(settings, results, device())
    rows = [row for name, split in splits.items() for row in _cost_rows(name, split["train"])]
    results.write("cost", rows)


def milliseconds(work: Callable[[], object], place: torch.device, repeats: int) -> float:
    """Measure the median time of one call, after a warm-up, the device's work included.

    >>> milliseconds(lambda: None, torch.device("cpu"), repeats=3) < 10
    True
    """
    wait = torch.cuda.synchronize if place.type == "cuda" else (lambda: None)
    times = []
    for _ in range(WARM_UP + repeats):
        wait()
        start = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[WARM_UP:])


def _cost_rows(data: str, split: Split) -> list[dict[str, Any]]:
    """Time a whole training step (`step_ms`), and the loss alone forward and backward (`loss_ms`).

    A step with a calibration loss sees two batches; `NLL, both batches` is the likelihood on as
    many images, so that the difference is the loss's own cost.
    """
    parts, place = partition(split), split.labels.device
    generator = torch.Generator(place).manual_seed(0)
    logits = torch.randn(BATCH, 10, generator=generator, device=place, requires_grad=True)
    labels = torch.randint(10, (BATCH,), generator=generator, device=place)
    rows = []
    for name, images in ((BASELINE, 2 * BATCH), *((n, BATCH) for n in (BASELINE, *LOSSES))):
        step = _step(Trial(data, name, 1.0, 0, images, 1), parts, generator)
        shown = name if images == BATCH else f"{name}, both batches"
        own: Any = LOSSES.get(name)

        def alone(own: Any = own) -> None:
            own(logits, labels).backward()

        rows.append(
            {"key": f"cost/{data}/{shown}/batch={BATCH}", "data": data, "loss": shown}
            | {"step_ms": milliseconds(step, place, REPEATS)}
            | {"loss_ms": milliseconds(alone, place, REPEATS) if own else 0.0}
            | {"device": torch.cuda.get_device_name() if place.type == "cuda" else "CPU"}
        )
    return rows


def _step(
    trial: Trial, parts: dict[str, Split], generator: torch.Generator
) -> Callable[[], object]:
    place = generator.device
    model = training.network(trial.data, place)
    optimizer = training.optimizer_of(model)
    objective, batches = training.objective_and_batches(trial, parts, generator)
    stream = cycle([batch for batch, _ in zip(batches, range(4), strict=False)])
    dtype = training.precision(trial.data, place)

    def step() -> None:
        with torch.autocast(place.type, dtype or torch.bfloat16, enabled=dtype is not None):
            loss = objective(model, next(stream))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step
