"""Sets of classes with a chosen coverage: how often they hold the truth, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...calibration import interval_of_sums, share_interval_of_sums
from ...errors import InputError
from ...store import Json
from ..selection import Selection
from .confusions import PLACE
from .sample_sets import Answer, mask_of
from .scan_view import ScanView

Array = np.ndarray

MOST_SAMPLES = 20_000
MOST_CELLS = 1 << 25
PARTS = ("coverage", "size")


@dataclass(frozen=True)
class TestedSets:
    """The sets of the samples that did not calibrate them.

    Attributes:
        rows: `[n]`, these samples, ascending.
        hits: `[M, n, K]`, whether a set contains the true class.
        sizes: `[M, n, K]`, the number of classes in it.
        held: The number of samples that calibrated.
    """

    rows: Array
    hits: Array
    sizes: Array
    held: int


def coverage(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer coverage and mean size of conformal sets at each element, `[M, K]` with intervals.

    Half of the samples calibrate, at the identity or over the orbit; the others are
    tested, and those of them in the subset are counted.
    """
    from ...conformal import LAC

    stored = view.reader.dims.get("probabilities", ())[:3] == PLACE and view.label is not None
    if not stored:
        reason = "sets need labels and class probabilities; scan with --keep probabilities"
        return {"available": False, "reason": reason}, {}
    place = "pooled" if selection.scope == "orbit" else "identity"
    try:
        found = view.cache.get_or_compute(("sets", place), lambda: _tested(view, place))
    except InputError as error:  # too few samples: the page shows the message
        return {"available": False, "reason": str(error)}, {}
    models, mask = view.shown(selection), mask_of(view, selection)
    chosen = np.ones(len(found.rows), bool) if mask is None else mask[found.rows]
    about = {
        "available": True,
        "calibrated": place,
        "wanted": LAC().coverage,
        "held": found.held,
        "count": int(chosen.sum()),
        "models": [view.models[model] for model in models],
    }
    arrays: Json = {}
    each = ((found.hits, share_interval_of_sums), (found.sizes, interval_of_sums))
    for name, (values, interval) in zip(PARTS, each, strict=True):
        given = values[models][:, chosen].astype(np.float64)
        count = np.full((len(models), given.shape[2]), float(given.shape[1]))
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = interval(count, given.sum(1), np.square(given).sum(1))
        arrays |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    return about, arrays


def _tested(view: ScanView, place: str) -> TestedSets:
    """Calibrate on half of the samples and test the others; of very many, evenly chosen ones."""
    from ...conformal import LAC, halves, tested

    models, elements = len(view.models), len(view.group)
    most = min(MOST_SAMPLES, MOST_CELLS // (models * elements))
    usable = _finished(view)
    usable = usable[:: -(-len(usable) // most)] if len(usable) else usable
    parts = halves(usable, 0.5, 0)
    shape = (models, len(parts[1]), elements)
    hits, sizes = np.zeros(shape, bool), np.zeros(shape, np.uint16)
    at = view.group.identity if place == "identity" else place
    for model in range(models):
        with view.passes.turn(patient=True):
            for rows, hit, size in tested(view.reader, LAC(), model, parts, at):
                here = np.searchsorted(parts[1], rows)
                hits[model, here], sizes[model, here] = hit, size
    return TestedSets(parts[1], hits, sizes, len(parts[0]))


def _finished(view: ScanView) -> Array:
    """Return the samples that have a label and outputs of every model at every element."""
    assert view.label is not None
    good = view.label >= 0
    if not view.complete:
        for rows in view.blocks("score"):
            for model in range(len(view.models)):
                good[rows] &= np.isfinite(view.responses("score", rows, model)).all(1)
    return np.flatnonzero(good)
