"""Every model on every pair along its orbit, and what is measured of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbical.datasets import particle_pairs, piv
from orbical.datasets.particle_images import ParticlePairs
from orbical.errors import InputError

from ..pages import Row, write_csv
from .measures import element_rows, milliseconds, put_on_map, sample_rows, truth_time_rows
from .settings import GROUP, SEED, Settings

Models = Mapping[str, Any]
Tell = Callable[[str], None]


def estimators() -> dict[str, Any]:
    """Give the four models: two of OpenCV, two networks of equal budget."""
    from orbical.zoo import flownet
    from orbical.zoo.classical_flow import Farneback, InverseSearch

    found = {"farneback": Farneback(), "dis": InverseSearch()}
    return found | {name: flownet.load(name) for name in flownet.NAMES}


def data_sets(settings: Settings) -> dict[str, ParticlePairs]:
    """Give the generated pairs, and the real-data pairs where they are at hand."""
    from orbical.datasets.flow_fields import KINDS

    made = {"generated": particle_pairs(settings.pairs * len(KINDS), settings.size, seed=SEED)}
    if settings.real:
        try:
            made["Cai et al."] = piv()
        except InputError:
            print("the pairs of Cai et al. are not at hand: left out", flush=True)
    return made


def batch_for(size: int) -> int:
    """How many pairs of a size to ask for at once: as many as stay in the cache of a processor."""
    return max(1, 2**16 // size**2)


def by_kind(data: ParticlePairs) -> Iterator[tuple[str, list[int]]]:
    """Give the kinds of flow and which pairs are of each: parts small enough to keep all flows."""
    for kind in dict.fromkeys(data["kinds"]):
        yield kind, [number for number, one in enumerate(data["kinds"]) if one == kind]


def orbits(data: ParticlePairs, models: Models, name: str, tell: Tell) -> Iterator[dict[str, Any]]:
    """Scan each kind over the 16 elements, and give its scan with all flows."""
    from orbical import scan
    from orbical.tasks import Flow

    for kind, rows in by_kind(data):
        started = time.process_time()
        found = scan(
            models,
            (data["pair"][rows], data["flow"][rows]),
            group=GROUP,
            task=Flow(),
            keep=("flow",),
            batch_size=batch_for(data["pair"].shape[-1]),
            progress=False,
        )
        tell(f"{name}, {kind}: {len(rows)} pairs, {time.process_time() - started:.0f} s")
        yield {"kind": kind, "rows": rows, "scan": found.data.load()}


def turned(settings: Settings, models: Models, tell: Tell) -> list[Row]:
    """Scan arbitrary rotations of a view that stays inside; one row a kind, model and angle."""
    from orbical import scan
    from orbical.datasets.flow_fields import KINDS
    from orbical.tasks import Flow

    view = settings.size
    # The side whose largest admissible view is the wanted one, with whole pixels around it.
    side = int(np.ceil((view - 1) * np.sqrt(2) + 1))
    side += (side - view) % 2
    data = particle_pairs(settings.turned * len(KINDS), side, seed=SEED + 1)
    rows: list[Row] = []
    for kind, chosen in by_kind(data):
        found = scan(
            models,
            (data["pair"][chosen], data["flow"][chosen]),
            group=f"rotations:{settings.angles}",
            task=Flow(window=view, interpolation="bicubic"),
            batch_size=batch_for(view),
            progress=False,
        ).data.load()
        tell(f"rotations, {kind}: {len(chosen)} pairs of {side} pixels seen through {view}")
        for model in found["model"].values:
            one = found.sel(model=model)
            for element, angle in enumerate(found["angle"].values):
                here = one.isel(element=element)
                rows.append(
                    {
                        "kind": kind,
                        "model": str(model),
                        "angle": float(angle),
                        "pairs": len(chosen),
                        "side": side,
                        "view": view,
                        "error": float(here["score"].mean()),
                        "defect": float(here["action_defect"].mean()),
                        "gap": float(one["invariance_gap"].mean()),
                        "consensus_error": float(one["consensus_vs_truth"].mean()),
                    }
                )
    return rows


def run(settings: Settings, folder: Path, models: Models, tell: Tell) -> None:
    """Scan everything and write the files from which the page is made."""
    samples: list[Row] = []
    elements: list[Row] = []
    timing: list[Row] = []
    for name, data in data_sets(settings).items():
        timing += truth_time_rows(name, data)
        found: list[Row] = []
        errors: dict[str, list[np.ndarray]] = {model: [] for model in models}
        for part in orbits(data, models, name, tell):
            names = [data["names"][row] for row in part["rows"]]
            rows = sample_rows(name, part["kind"], names, part["scan"])
            for model, ask in models.items():
                errors[model].append(part["scan"]["score"].sel(model=model).values.astype(float))
                taken = dict(zip(names, milliseconds(ask, data["pair"][part["rows"]]), strict=True))
                for row in rows:
                    if row["model"] == model:
                        row["milliseconds"] = taken[row["name"]]
            found += rows
            elements += element_rows(name, part["kind"], part["scan"])
            if name == "generated" and part["kind"] == "cylinder":
                save_example(folder / "example.npz", part["scan"])
        put_on_map(found, errors)
        samples += found
        write_csv(folder / "samples.csv", samples)
        write_csv(folder / "elements.csv", elements)
        write_csv(folder / "truth-time.csv", timing)
    write_csv(folder / "rotations.csv", turned(settings, models, tell))


def save_example(path: Path, data: Any) -> Path:
    """Keep the small maps of the pair whose error changes most along the orbit of `directed`."""
    error = data["score"].sel(model="directed").values
    sample = int((error.std(1) / error.mean(1)).argmax())
    one = data.isel(sample=sample)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        models=np.array([str(model) for model in one["model"].values]),
        score=one["score"].values.astype(np.float32),
        **{
            name: one[name].values.astype(np.float16)
            for name in ("flow_map", "truth_map", "error_map")
        },
    )
    return path
