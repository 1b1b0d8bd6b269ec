"""Why a model fails: one sample along its orbit with its flips, and the layers of a network."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..._trees import concatenate, to_device, tree_map
from ...errors import OrbicalError
from ...groups import chart_of
from ...store import Json
from .input_pictures import thumbnails
from .request import Answer, Request, unavailable
from .scan_view import ScanView

if TYPE_CHECKING:
    from ...adversarial import Flip

FRAMES = 12
"""The most pictures of a film strip."""
LAYER_SAMPLES = 64
"""Samples that the errors of layers are measured on, as in `orbical why`."""
MOST_COMPARED = 2_000
"""The most samples among which the nearest is searched without a model."""
_ROWS = 256


def flips(request: Request) -> Answer:
    """Answer one sample along its orbit: pictures, and where the predictions of models flip.

    Flips of models that can run are refined by bisection; those of others lie between two elements.
    """
    view, number = request.view, request.sample
    chart = chart_of(view.group)
    if "predicted" not in view.reader or chart is None or len(chart.names) != 1 or chart.held:
        return unavailable("this needs predicted classes along one continuous coordinate")
    try:
        found = {name: _flips_of(view, number, name) for name in request.names}
    except OrbicalError as error:
        return unavailable(error)
    places = chart.start[:, 0]
    low = float(places.min())
    closed = view.group.layout.kind == "circle"
    high = float(places.max()) + (float(chart.step[0]) if closed else 0.0)
    count = min(FRAMES, len(places))
    centers = low + (np.arange(count) + 0.5) * (high - low) / count
    frames = np.abs(places[None] - centers[:, None]).argmin(1)

    def shown(flip: Flip) -> Json:
        here = view.live.locator.at(int(np.abs(places - flip.at).argmin()), (flip.at,))
        return {**flip.to_dict(), "element": here.element, "position": list(here.position)}

    def bands(name: str, own: list[Flip]) -> list[Json]:
        """Return the classes along the orbit, each with its share of it."""
        last = view.reader.row("predicted", number, view.models.index(name))[int(places.argmax())]
        classes = [*(one.before for one in own), own[0].before if own and closed else int(last)]
        ends = [low, *(one.at for one in own), high]
        label = classes if view.label is None else [int(view.label[number])]
        return [
            {"share": float(share), "class": seen, "wrong": seen not in label}
            for share, seen in zip(np.diff(ends) / (high - low), classes, strict=True)
        ]

    about: Json = {
        "available": True,
        "sample": number,
        "frames": frames.tolist(),
        "span": [low, high],
        "models": [
            {"name": name, "bands": bands(name, own), "flips": [shown(one) for one in own]}
            for name, own in found.items()
        ],
    }
    pictures = thumbnails(view, [number] * count, frames.tolist())
    return about, {} if pictures is None else {"frames": pictures}


def _flips_of(view: ScanView, sample: int, name: str) -> list[Flip]:
    """Return the flips of one model in the order of the coordinate, refined if it can run."""
    from ...adversarial import flips as find_flips

    live = view.live

    def compute() -> list[Flip]:
        if name in live.answering:
            given = {**live.settings(name), "data": live.data}
            refine = partial(find_flips, view.scan, sample, models={name: live.models[name]})
            with contextlib.suppress(OrbicalError):  # those of the scan are known all the same
                found = live.run(name, partial(refine, **given))
                return [one for one in found if one.model == name]
        known = [one for one in find_flips(view.scan, sample) if one.model == name]
        return _with_nearest(view, sample, known)

    return view.cache.get_or_compute(("flips", sample, name), compute)


def _with_nearest(view: ScanView, sample: int, flips: list[Flip]) -> list[Flip]:
    """Add the nearest samples of the classes that predictions flip to, from inputs alone."""
    from ...adversarial import nearest_samples

    live, chart, label = view.live, chart_of(view.group), view.label
    if not flips or label is None or chart is None or not live.has_inputs or live.action is None:
        return flips
    ends = np.array([[one.at + one.width / 2] for one in flips])
    moved = live.moved(sample, chart.elements(ends, np.zeros(len(flips), int)))
    classes = np.array([one.after for one in flips])
    numbers = np.flatnonzero(np.isin(label, classes))[:MOST_COMPARED]
    blocks = (
        (part, concatenate([live.input(int(one)) for one in part]), label[part])
        for part in np.array_split(numbers, -(-len(numbers) // _ROWS))
        if len(part)
    )
    flat = tree_map(lambda leaf: leaf[:, 0], moved)
    found = nearest_samples(flat, classes, np.full(len(flips), sample), blocks)
    return [replace(flip, nearest=near) for flip, near in zip(flips, found, strict=True)]


def layers(request: Request) -> Answer:
    """Answer at which layers of each network the symmetry is lost."""
    from ...testing import layer_errors

    view, live = request.view, request.view.live
    modules = [name for name in request.names if name in live.answering and live.module(name)]
    task = live.task
    if not modules or task is None:
        return unavailable("this needs a torch module: pass it as models")

    def compute(name: str) -> Json:
        given = concatenate([live.input(one) for one in range(min(LAYER_SAMPLES, view.samples))])
        # A copy: others run the model meanwhile, and layers are replaced here.
        module, device = copy.deepcopy(live.module(name)), live.settings(name)["device"]
        found = layer_errors(
            module,
            to_device(given, torch.device(device)),
            group=view.group,
            task=task,
            preprocess=live.settings(name)["preprocess"],
        )
        return {**found.to_dict(), "titles": found.titles, "first": found.first}

    about: list[Json] = []
    for name in modules:
        try:
            found = view.cache.get_or_compute(("layers", name), partial(compute, name))
            about.append({"model": name, **found})
        except OrbicalError as error:
            about.append({"model": name, "error": str(error)})
    return {"available": True, "models": about}, {}
