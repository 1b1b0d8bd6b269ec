"""What the trainings of the networks share: checks, optimizer steps and the command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orbical.errors import InputError, MissingExtra

from ._weights import Network, read_header

AfterStep = Callable[[int, Any], None]
"""Called with the number of finished steps (or epochs) and the last loss, a float or a scalar."""


def build(network: Callable[[], Network], seed: int) -> Network:
    """Build a network with seeded weights, without changing the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, clip: float | None = None) -> None:
    """Take one step of the optimizer, with the norm of the gradient at most `clip`."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], clip)
    optimizer.step()


def one_cycle(progress: float, start: float = 0.0) -> float:
    """Return the factor of the learning rate: a linear warm-up over 5 %, then a half cosine to 0.

    >>> [round(one_cycle(progress, 0.01), 3) for progress in (0.0, 0.05, 0.525, 1.0)]
    [0.01, 1.0, 0.5, 0.0]
    """
    if progress < 0.05:
        return max(start, progress / 0.05)
    return (1 + math.cos(math.pi * (progress - 0.05) / 0.95)) / 2


def check_labels(labels: Tensor, count: int) -> None:
    """Raise an error unless there is one int64 label per sample."""
    if labels.shape != (count,) or labels.dtype != torch.int64:
        raise InputError(
            "labels",
            f"torch.int64 of shape ({count},)",
            f"{labels.dtype} of shape {tuple(labels.shape)}",
        )


def run_command(
    program: str,
    arguments: Sequence[str] | None,
    names: Sequence[str],
    write: Callable[..., Path],
    report_every: int,
    **defaults: Any,
) -> None:
    """Train networks from the command line; each of `defaults` is an option of `write`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description="Train the networks whose weights ship with orbical.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument(
        "--names", nargs="+", choices=names, default=names, help="networks to train (default: all)"
    )
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default, help="%(default)s")
    options = vars(parser.parse_args(arguments))
    folder, chosen = options.pop("out"), options.pop("names")
    for name in chosen:

        def show(done: int, loss: Any, name: str = name) -> None:
            if done % report_every == 0:
                print(f"{name}: {done} done, loss {float(loss):.4f}", flush=True)

        try:
            path = write(folder, name, **options, after_step=show)
        except MissingExtra as error:
            print(f"{name}: skipped. {error}")
            continue
        for key, value in {**read_header(path), "saved to": str(path)}.items():
            print(f"{name}: {key} {value}", flush=True)
