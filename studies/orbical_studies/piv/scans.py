"""Scan every model on every pair along its orbit, and write what is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from orbical import scan
from orbical.actions import ImagePair, VectorField
from orbical.datasets import particle_pairs
from orbical.groups import parse
from orbical.tasks import Flow
from orbical.zoo import flownet
from orbical.zoo.classical_flow import Farneback, InverseSearch

from ..framework import Results
from ..framework.audits import audit_rows
from ..framework.packs import write_pack
from .measures import Row, milliseconds, principal_components, sample_rows, truth_time_rows
from .settings import GROUP, KINDS, SEED, Settings
from .trainings import Pairs, cai, generated


def estimators() -> dict[str, Any]:
    """Return the four models: two of OpenCV, two networks of equal budget."""
    networks = {name: flownet.load(name) for name in flownet.NAMES}
    return {"farneback": Farneback(), "dis": InverseSearch()} | networks


def data_sets(settings: Settings) -> dict[str, Pairs]:
    """Return the generated pairs, and those of Cai et al. if they are at hand."""
    measured = cai() if settings.real else None
    return {"generated": generated(settings)} | ({"Cai et al.": measured} if measured else {})


def _scan_kinds(
    data: Pairs, models: Mapping[str, Any], view: int, **how: Any
) -> Iterator[tuple[str, list[int], Any]]:
    """Scan one kind of flow after another; yield the kind, the rows of its pairs, and the scan."""
    batch = max(1, 2**16 // view**2)  # pairs that stay in the cache of a processor
    for kind in dict.fromkeys(data["kinds"]):
        rows = [number for number, one in enumerate(data["kinds"]) if one == kind]
        pairs = (data["pair"][rows], data["flow"][rows])
        started = time.process_time()
        found = scan(models, pairs, batch_size=batch, progress=False, **how).data.load()
        spent = time.process_time() - started
        print(f"{kind}: {len(rows)} pairs, {len(found['element'])} elements, {spent:.0f} s")
        yield kind, rows, found


def means(
    found: Any, names: Mapping[str, str], place: Sequence[str], before: Row, after: Row
) -> list[Row]:
    """Return a row for each model and element: its place in the group, and means over pairs."""
    frame = found[list(names)].mean("sample").to_dataframe(["model", "element"]).reset_index()
    return [
        before
        | {name: row[name] for name in ("model", *place)}
        | after
        | {title: row[name] for name, title in names.items()}
        for row in frame.to_dict("records")
    ]


def rotate(settings: Settings, models: Mapping[str, Any]) -> list[Row]:
    """Scan arbitrary rotations of a view that stays inside; a row by kind, model and angle."""
    view = settings.size
    # The side whose largest admissible view is the wanted one, with whole pixels around it.
    side = int(np.ceil((view - 1) * np.sqrt(2) + 1))
    side += (side - view) % 2
    data = particle_pairs(settings.turned * KINDS, side, seed=SEED + 1)
    how = {"group": f"rotations:{settings.angles}"}
    task = Flow(window=view, interpolation="bicubic")
    names = {"score": "error", "action_defect": "defect", "invariance_gap": "gap"}
    names["consensus_vs_truth"] = "consensus_error"
    rows: list[Row] = []
    for kind, some, found in _scan_kinds(data, models, view, task=task, **how):
        facts = {"pairs": len(some), "side": side, "view": view}
        rows += means(found, names, ["angle"], {"kind": kind}, facts)
    return rows


def run(settings: Settings, results: Results) -> None:
    """Scan everything and write the files from which the page is made."""
    models = estimators()
    names = {"score": "error", "rmse": "rmse", "angular_error": "angular_error"}
    names["score_vs_consensus"] = "error_vs_consensus"
    samples, elements, timing = [], [], []
    with torch.inference_mode():
        for name, data in data_sets(settings).items():
            timing += truth_time_rows(name, data)
            found: list[Row] = []
            errors: dict[str, list[np.ndarray]] = {model: [] for model in models}
            how = {"group": GROUP, "task": Flow(), "keep": ("flow",)}
            for kind, some, scanned in _scan_kinds(data, models, data["pair"].shape[-1], **how):
                labels = [data["names"][row] for row in some]
                rows = sample_rows(name, kind, labels, scanned)
                for model, ask in models.items():
                    errors[model].append(scanned["score"].sel(model=model).values.astype(float))
                    mine = [row for row in rows if row["model"] == model]
                    taken = milliseconds(ask, data["pair"][some])
                    for row, spent in zip(mine, taken, strict=True):
                        row["milliseconds"] = spent
                found += rows
                before, after = {"set": name, "kind": kind}, {"pairs": len(some)}
                place = ["element", "angle", "flip", "time"]
                elements += means(scanned, names, place, before, after)
                if name == "generated" and kind == "cylinder":
                    _save_example(results, scanned)
            for model, parts in errors.items():
                places = principal_components(np.concatenate(parts))
                mine = [row for row in found if row["model"] == model]
                for row, (first, second) in zip(mine, places, strict=True):
                    row |= {"map_1": float(first), "map_2": float(second)}
            samples += found
        results.write("samples", samples)
        results.write("elements", elements)
        results.write("truth-time", timing)
        results.write("rotations", rotate(settings, models))


def pixels(settings: Settings, results: Results) -> None:
    """Write how far single pixels of Farneback's answers lie apart under turns and mirrors.

    Its gap is a mean over pixels; this is the largest distance from the mean of the eight un-moved
    answers at any pixel, and between any two of them.
    """
    group = parse(GROUP)
    plane = group[np.flatnonzero(group.parts["time"] > 0)]
    model, rows = Farneback(), []
    for name, data in data_sets(settings).items():
        for number, pair in enumerate(data["pair"]):
            answers = torch.as_tensor(model(ImagePair().apply(plane, pair[None])[:, 0]))
            home = VectorField().move(plane.inverse(), answers[:, None])[:, 0]
            about = {"set": name, "kind": data["kinds"][number], "name": data["names"][number]}
            from_mean = (home - home.mean(0)).norm(dim=1)
            apart = (home[:, None] - home).norm(dim=2)
            rows.append({**about, "from_mean": float(from_mean.max()), "apart": float(apart.max())})
    results.write("pixels", rows)


def laboratory(settings: Settings, results: Results) -> None:
    """Copy the audit of the same estimators on laboratory images, which have no truth."""
    results.write("laboratory", audit_rows("particle_flow", "experiments"))


def _save_example(results: Results, data: Any) -> None:
    """Keep the small maps of the pair whose error changes most along the orbit of `directed`."""
    error = data["score"].sel(model="directed").values
    one = data.isel(sample=int((error.std(1) / error.mean(1)).argmax()))
    maps = {name: one[name].values for name in ("flow_map", "truth_map", "error_map")}
    arrays = {name: values.astype(np.float16) for name, values in maps.items()}
    arrays["models"] = np.array([str(model) for model in one["model"].values])
    arrays["score"] = one["score"].values.astype(np.float32)
    write_pack(results.folder / "example.npz", arrays)
