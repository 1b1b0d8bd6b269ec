"""Train both networks several times and ask each along the orbit; needs torch and NumPy only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical.actions import ImagePair, VectorField
from orbical.datasets import particle_pairs, piv
from orbical.errors import InputError
from orbical.groups import parse
from orbical.zoo import flownet

from ..framework import Results
from ..framework.packs import arrays_under, read_pack, write_pack
from ..framework.training import Trained, device, read_trained
from ..framework.training import train as train_all
from ..zoo_training import flow_networks
from .measures import carried, unmoved_columns
from .settings import GROUP, KINDS, SEED, Settings

FILE = "cai.npz"
Pairs = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """One training of one of the two networks; its text is its name."""

    model: str
    training: int

    def __str__(self) -> str:
        return f"{self.model}/{self.training}"


def trials(settings: Settings) -> Iterator[Trial]:
    """List all trainings."""
    for training in range(settings.seeds):
        yield from (Trial(model, training) for model in flownet.NAMES)


def generated(settings: Settings) -> Pairs:
    """Return the generated pairs, as many of each kind."""
    return particle_pairs(settings.pairs * KINDS, settings.size, seed=SEED)


def cai() -> Pairs | None:
    """Read the pairs of Cai et al., if they are at hand."""
    try:
        return piv()
    except InputError:
        print("the pairs of Cai et al. are not at hand: left out", flush=True)
        return None


def pack(settings: Settings, results: Results) -> None:
    """Write the pairs of Cai et al., if they are at hand, as a small file."""
    if data := cai():
        arrays = {
            "pair": (255 * data["pair"]).round().byte().numpy(),
            "flow": data["flow"].numpy().astype(np.float16),
            **{name: np.array(data[name]) for name in ("names", "kinds")},
        }
        write_pack(results.work / FILE, arrays)


def _pairs_to_ask(settings: Settings, work: Path) -> dict[str, Pairs]:
    """Return the generated pairs of the study and, if packed, those of Cai et al."""
    made = {"generated": generated(settings)}
    if settings.real and (work / FILE).is_file():
        arrays = read_pack(work / FILE)
        made["Cai et al."] = {
            "pair": torch.from_numpy(arrays["pair"]).float() / 255,
            "flow": torch.from_numpy(arrays["flow"].astype(np.float32)),
            **{name: arrays[name].tolist() for name in ("names", "kinds")},
        }
    return made


def train(settings: Settings, results: Results) -> None:
    """Train the networks that are not there yet, and ask each about every pair."""
    setup = partial(_load, settings, results.work)
    train_all(trials(settings), settings, results.work, setup, run)


def _load(settings: Settings, work: Path) -> tuple[Settings, dict[str, Pairs]]:
    torch.backends.cudnn.benchmark = True  # all steps have the same size
    return settings, _pairs_to_ask(settings, work)


def run(loaded: tuple[Settings, dict[str, Pairs]], trial: Trial) -> Trained:
    """Train one network, and measure it on every pair.

    Returns:
        Steps and seconds, and arrays `SET/COLUMN` with a number for each pair.
    """
    settings, sets = loaded
    begun = time.monotonic()
    net, steps = flow_networks.train(
        symmetric=trial.model == "symmetric",
        steps=settings.steps,
        seconds=settings.seconds,
        size=settings.view,
        batch=settings.batch,
        seed=100 + trial.training,  # of none of the networks that ship with the package
        device=str(device()),
    )
    row = {"steps": steps, "seconds": time.monotonic() - begun}

    @torch.inference_mode()
    def ask(pairs: Tensor) -> Tensor:
        return torch.cat([net(some.to(device())).cpu() for some in pairs.split(4)])

    arrays = {
        f"{name}/{column}": values
        for name, data in sets.items()
        for column, values in measured(ask, data).items()
    }
    return row, arrays


def measured(ask: Callable[[Tensor], Any], data: Pairs) -> dict[str, np.ndarray]:
    """Evaluate an estimator on every pair at all 16 elements: columns of the table `trainings`."""
    group = parse(GROUP)
    seen_first = carried(data["flow"], -0.5)
    rows = []
    for pair, truth, first in zip(data["pair"], data["flow"], seen_first, strict=True):
        flows = torch.as_tensor(ask(ImagePair().apply(group, pair[None])[:, 0]))
        home = VectorField().move(group.inverse(), flows[:, None])[:, 0]
        error = (home - truth).norm(dim=1).mean((1, 2))
        rows.append(
            {
                "error": float(error[group.identity]),
                "error_over_orbit": float(error.mean()),
                "error_worst": float(error.max()),
                "error_best": float(error.min()),
                **unmoved_columns(home, truth, first, group),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def collect(settings: Settings, results: Results) -> None:
    """Write the table `trainings`, a row for each training and pair, from what `train` stored."""
    sets = _pairs_to_ask(settings, results.work)
    rows: list[dict[str, Any]] = []
    for line, arrays in read_trained(trials(settings), results.work):
        known = {name: line[name] for name in ("model", "training", "steps")}
        for name, data in sets.items():
            columns = arrays_under(arrays, f"{name}/")
            for place, pair in enumerate(data["names"]):
                values = {column: float(v[place]) for column, v in columns.items()}
                about = {"set": name, "kind": data["kinds"][place], "name": pair}
                rows.append({**about, **known, **values})
    results.write("trainings", rows)
