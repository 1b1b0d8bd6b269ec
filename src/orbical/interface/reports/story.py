"""The findings of a scan as the story of its report, in the numbers of the report's samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ..._text import counted
from ..selection import Selection
from ..session.findings import Finding, saved_findings
from ..session.sample_sets import ALL, UnknownSet, mask_of_set, packed
from ..session.scan_view import ScanView
from ..sidecar import bits_key
from .sampling import Array, ChosenSamples


def with_findings(view: ScanView, chosen: ChosenSamples) -> ChosenSamples:
    """Add the samples that findings show to those of a report."""
    wanted = [number for one in saved_findings(view) for number in _shown(view, one)]
    samples = np.union1d(chosen.samples, np.array(wanted, chosen.samples.dtype))
    more = len(samples) - len(chosen.samples)
    if not more:
        return chosen
    whole = len(samples) == chosen.of
    how = "" if whole else f"{chosen.how}, and {counted(more, 'sample')} of the findings"
    return ChosenSamples(samples, chosen.of, how)


def story(
    view: ScanView, chosen: ChosenSamples, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], Array]:
    """Return the findings as the page of a report takes them, and the bits `[S, ...]` of sets."""
    sets: dict[str, Array] = {}
    told = [_told(view, one, chosen.samples, methods, sets) for one in saved_findings(view)]
    empty = np.zeros((0, -(-len(chosen.samples) // 8)), np.uint8)
    return told, np.stack([*sets.values()]) if sets else empty


def _shown(view: ScanView, finding: Finding) -> list[int]:
    selection = Selection.from_fragment(finding.view)
    return [one for one in (selection.sample, *selection.pins) if 0 <= one < view.samples]


def _told(
    view: ScanView,
    finding: Finding,
    samples: Array,
    methods: Sequence[str],
    sets: dict[str, Array],
) -> dict[str, Any]:
    selection = Selection.from_fragment(finding.view)
    here = {int(sample): place for place, sample in enumerate(samples)}
    kept = replace(
        selection,
        subset=_set_here(view, selection.subset, samples, sets),
        sample=here.get(selection.sample, 0),
        pins=tuple(here[one] for one in selection.pins if one in here),
        method=selection.method if selection.method in methods else methods[0],
    )
    return {**asdict(finding), "view": kept.to_fragment()}


def _set_here(view: ScanView, name: str, samples: Array, sets: dict[str, Array]) -> str:
    """Return the name of a set among the samples of a report, and keep its bits in `sets`."""
    try:
        mask = mask_of_set(view, name)[samples]
    except UnknownSet:  # its file was removed or altered
        return ALL
    if mask.all():
        return ALL
    bits = packed(mask)
    here = bits_key(bits.tobytes())
    sets[here] = bits
    return here
