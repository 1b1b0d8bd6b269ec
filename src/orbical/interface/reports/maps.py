"""The maps of a report: which methods, models and references, as far as time and size allow."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InputError, check_name
from ..selection import Selection
from ..session.findings import saved_findings
from ..session.sample_maps import available_methods, is_cached, sample_map
from ..session.scan_view import ScanView
from .encoding import Array, encode_part, quantize

LINEAR = ("pca", "ica")
"""The methods that are quick enough for every model and reference."""
FIRST = (*LINEAR, "isomap")
"""The methods of a report that names none; the others take minutes."""
MOST_BYTES = 2_000_000
"""The most that maps add to a report, before compression."""
_BYTES = 4
"""Bytes of a sample on a map."""

Map = tuple[str, str, str]
"""Method, model (empty for all together) and reference."""


@dataclass(frozen=True)
class MapPlan:
    """The maps of a report, and those left out."""

    maps: list[Map]
    left_out: list[Map]

    @property
    def methods(self) -> list[str]:
        """The methods of which there is a map."""
        return [*dict.fromkeys(method for method, _, _ in self.maps)]

    def note(self) -> str:
        """Name what was left out; empty if nothing was."""
        present = {*self.methods}
        whole = [*dict.fromkeys(method for method, _, _ in self.left_out if method not in present)]
        parts = [*dict.fromkeys(method for method, _, _ in self.left_out if method in present)]
        words = [*whole, *(f"{method} of some models or references" for method in parts)]
        return f"maps left out: {', '.join(words)}" if words else ""


def check_methods(methods: Sequence[str] | None) -> None:
    """Check the names of methods, before any work."""
    if methods is None or [*methods] == ["all"]:
        return
    for method in methods:
        check_name("methods", method, [*available_methods(), "all"])
    if not methods:
        raise InputError("methods", "at least one", "none")


def planned_maps(
    view: ScanView, methods: Sequence[str] | None, references: Sequence[str], samples: int
) -> MapPlan:
    """Choose the maps of a report: what findings show, then what is quick or was asked for."""
    every = [*itertools.product(available_methods(), ("", *view.models), references)]
    if methods is None:
        asked = [one for one in every if _is_usual(view, one, references[0])]
    else:
        chosen = [name for name in available_methods() if {name, "all"} & {*methods}]
        asked = [one for one in every if one[0] in chosen]
    first = [one for one in _of_findings(view) if one in every]
    wanted = [*dict.fromkeys([*asked[:1], *first, *asked])]
    kept = wanted[: max(1, MOST_BYTES // (_BYTES * max(1, samples)))]
    return MapPlan(kept, [one for one in every if one not in kept])


def encoded_maps(view: ScanView, samples: Array, maps: Iterable[Map]) -> bytes:
    """Encode the positions of the samples of a report on each map."""
    about: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for one in maps:
        name = "/".join(one)
        try:
            with warnings.catch_warnings():  # an ICA that did not converge is a map all the same
                warnings.simplefilter("ignore", UserWarning)
                found = sample_map(view, _selection(one))
        except InputError as error:  # too few samples for a map: the page shows the message
            about[name] = {"error": str(error)}
            continue
        arrays[name] = quantize(found.xy[samples], 16, -1.0, 1.0)
        about[name] = {"explained": found.explained, "note": found.note, "metric": "score"}
    return encode_part({"about": about}, arrays)


def _is_usual(view: ScanView, one: Map, reference: str) -> bool:
    method, of, against = one
    whole = method in FIRST and not of and against == reference
    return method in LINEAR or whole or is_cached(view, _selection(one))


def _of_findings(view: ScanView) -> list[Map]:
    shown = [Selection.from_fragment(one.view) for one in saved_findings(view)]
    return [(one.method, one.of, view.reference(one)) for one in shown]


def _selection(one: Map) -> Selection:
    method, of, reference = one
    return Selection(method=method, of=of, reference=reference)
