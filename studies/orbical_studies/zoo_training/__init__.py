"""Training of the networks of `orbical.zoo`, whose weights ship with the package.

    python -m orbical_studies.zoo_training.digits --out FOLDER

Here stands what the trainings share: checks, files and the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from orbical.errors import InputError, MissingExtra

from ..framework.training_loop import cosine

Network = TypeVar("Network", bound=nn.Module)


def build(network: Callable[[], Network], seed: int) -> Network:
    """Build a network with seeded weights, without changing the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network()


def one_cycle(progress: float, start: float = 0.0) -> float:
    """Return the factor of the learning rate: a linear warm-up over 5 %, then a half cosine to 0.

    >>> [round(one_cycle(progress, 0.01), 3) for progress in (0.0, 0.05, 0.525, 1.0)]
    [0.01, 1.0, 0.5, 0.0]
    """
    if progress < 0.05:
        return max(start, progress / 0.05)
    return cosine((progress - 0.05) / 0.95)


def check_labels(labels: Tensor, count: int) -> None:
    """Raise an error unless there is one int64 label per sample."""
    if labels.shape != (count,) or labels.dtype != torch.int64:
        raise InputError(
            "labels",
            f"torch.int64 of shape ({count},)",
            f"{labels.dtype} of shape {tuple(labels.shape)}",
        )


def save(weights: Mapping[str, Tensor], path: str | Path, metadata: Mapping[str, str]) -> Path:
    """Write weights and their metadata to a file, and create its folder."""
    from safetensors.torch import save as serialize

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
    # Not save_file, whose files only their owner may read, even inside a wheel.
    path.write_bytes(serialize(kept, metadata=dict(metadata)))
    return path


def run_command(
    network: ModuleType,
    arguments: Sequence[str] | None,
    write: Callable[..., Path],
    report_every: int,
    **defaults: Any,
) -> None:
    """Train networks from the command line; each of `defaults` is an option of `write`."""
    names = network.NAMES
    parser = argparse.ArgumentParser(
        description="Train the networks whose weights ship with orbical."
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
        for key, value in {**network.provenance(name, folder), "saved to": str(path)}.items():
            print(f"{name}: {key} {value}", flush=True)
