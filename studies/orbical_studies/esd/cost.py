"""What a training step costs with each loss (the paper's Fig. 3)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import cycle

import torch
from torch import Tensor

from . import trial
from .batches import Split, partition
from .results import Row
from .settings import BASELINE, BATCH, LOSSES, NAMES, Configuration

WARM_UP = 10


def milliseconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Median time of one call, after a warm-up, the device's work included.

    Args:
        work: what to time.
        device: waited for after each call.
        repeats: timed calls.

    Example:
        >>> milliseconds(lambda: None, torch.device("cpu"), repeats=3) < 10
        True
    """
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    times = []
    for repeat in range(WARM_UP + repeats):
        wait()
        start = time.perf_counter()
        work()
        wait()
        if repeat >= WARM_UP:
            times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def of_steps(
    data: str, splits: dict[str, Split], device: torch.device, batch: int = BATCH, repeats: int = 40
) -> list[Row]:
    """Time a whole training step, and the loss alone forward and backward.

    A step with a calibration loss sees two batches; `NLL, both batches` is the likelihood on as
    many images, so that the difference is the loss's own cost.

    Args:
        data: `"mnist"` or `"cifar10"`.
        splits: its `train` split, on the device.
        device: where.
        batch: images in a batch.
        repeats: timed steps.

    Returns:
        one row a loss: `step_ms` and `loss_ms`.
    """
    parts = partition(splits["train"])
    generator = torch.Generator(device).manual_seed(0)
    logits = torch.randn(batch, 10, generator=generator, device=device)
    labels = torch.randint(10, (batch,), generator=generator, device=device)
    rows = []
    for name, images in ((BASELINE, 2 * batch), *((name, batch) for name in NAMES)):
        configuration = Configuration(data, name, 1.0, seed=0, batch=images)
        step = _step(configuration, parts, generator, device)
        both = name == BASELINE and images != batch
        loss_ms = 0.0
        if name in LOSSES:
            loss_ms = milliseconds(_alone(name, logits, labels), device, repeats)
        shown = f"{name}, both batches" if both else name
        rows.append(
            {
                "key": f"cost/{data}/{shown}/batch={batch}",
                "data": data,
                "loss": shown,
                "step_ms": milliseconds(step, device, repeats),
                "loss_ms": loss_ms,
                "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
            }
        )
    return rows


def _step(
    configuration: Configuration,
    parts: dict[str, Split],
    generator: torch.Generator,
    device: torch.device,
) -> Callable[[], object]:
    model = trial.network(configuration.data, device)
    optimizer = trial.optimiser_of(model)
    objective, batches = trial.objective_and_batches(configuration, parts, generator)
    stream = cycle([batch for batch, _ in zip(batches, range(4), strict=False)])
    dtype = trial.precision(configuration.data, device)

    def step() -> None:
        with torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None):
            loss = objective(model, next(stream))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def _alone(name: str, logits: Tensor, labels: Tensor) -> Callable[[], object]:
    def work() -> None:
        own = logits.clone().requires_grad_()
        LOSSES[name](own, labels).backward()

    return work
