"""Scans that are being written: how far they are, and views of what is finished by now."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import OrbicalError, check_name
from ...store import Json, load
from ..selection import Selection
from .scan_view import ScanView

LEAST_BETWEEN_S = 2.0
"""The least time between two looks at a store."""
_PATIENCE = 10
"""Looks take at most one part in this of the time: a store of many units, or far away, is slow."""


@dataclass
class _Seen:
    """What is known of a store: when it is read again, and what the page was told."""

    due: float = 0.0
    version: int = 0
    look: int = 0
    error: str = ""
    first: tuple[float, float] = field(default=(0.0, 0.0))


class Following:
    """Reads stores again while they grow.

    Args:
        views: The views by name; those of stores with more finished units are replaced.
    """

    def __init__(self, views: dict[str, ScanView]) -> None:
        self._views = views
        self._seen: dict[str, _Seen] = {}
        self._turn = threading.Lock()

    def shown(self, name: str) -> Json | None:
        """Return what the page can show, as a number that grows with it; None if all is there."""
        view = self._views[name]
        if view.complete or view.scan.path is None:
            return None
        seen = self._seen.setdefault(name, _Seen(first=(time.monotonic(), view.scan.share_done)))
        return {"version": seen.version, "look": seen.look, "follows": True}

    def answer(self, message: Mapping[str, object]) -> Json:
        """Answer how much of a scan is finished, after a look at its store if one is due."""
        name = Selection.from_json(message.get("selection", {})).scan or next(iter(self._views))
        check_name("selection scan", name, self._views)
        with self._turn:
            self.shown(name)
            seen = self._seen.setdefault(name, _Seen())
            if not self._views[name].complete and time.monotonic() >= seen.due:
                self._read_again(name, seen)
            view = self._views[name]
        share, (since, before) = view.scan.share_done, seen.first
        took = time.monotonic() - since
        left = took * (1 - share) / (share - before) if share > before else None
        return {
            "phase": "finished" if view.complete else "scanning",
            "version": seen.version,
            "look": seen.look,
            "share": share,
            "seconds_left": left,
            "sentence": view.scan.caveat,
            "total": view.samples,
            **({"error": seen.error} if seen.error else {}),
        }

    def _read_again(self, name: str, seen: _Seen) -> None:
        start, view = time.monotonic(), self._views[name]
        try:
            assert view.scan.path is not None
            scan = load(view.scan.path)
            other = scan.record != view.scan.record  # written anew in its place
            if other or scan.done.sum() != view.scan.done.sum():
                self._views[name] = view.renewed(scan)
                seen.version += 1
                seen.look += other or scan.complete  # what the page says of the scan has changed
            seen.error = ""
        except OrbicalError as error:  # it may be written anew just now: the page keeps what it has
            seen.error = str(error)
        now = time.monotonic()
        seen.due = now + max(LEAST_BETWEEN_S, _PATIENCE * (now - start))
