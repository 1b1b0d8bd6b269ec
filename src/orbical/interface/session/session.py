"""The session: the scans it serves, and the handler of each kind of request."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._warnings import warn
from ...errors import InputError, OrbicalError, StoreError, check_name, check_type, unknown_name
from ...store import Json, Scan
from ..background import TICK_S, BackgroundPool, BackgroundProgress, Stopped, yield_to_readers
from ..live_models import LiveExtras
from ..selection import Selection
from ..wire import encode_frame
from . import runs, sample_maps, sample_views, scan_state
from .calibration_plots import subset_calibration_plots
from .class_answers import class_set_coverage, confusion
from .diagnosis import advice, diagnosed_flips, diagnosed_layers, failures, whatif
from .following import Following
from .listing import listed_samples, listing_histograms
from .saved_lists import FINDINGS, set_names
from .scan_view import ScanView
from .set_recipes import sample_set
from .subset_curves import aggregate, subset_consistency, subset_curves_by_class, subset_spread
from .subset_request import Answer, SubsetRequest, UnknownSubset, subset
from .worst_cases_and_bounds import bounds, worst_cases

HANDLERS: dict[str, Callable[[SubsetRequest], Answer]] = {
    "advice": advice,
    "aggregate": aggregate,
    "failures": failures,
    "flips": diagnosed_flips,
    "layers": diagnosed_layers,
    "whatif": whatif,
    "consistency": subset_consistency,
    "columns": listing_histograms,
    "spread": subset_spread,
    "classes": subset_curves_by_class,
    "embedding": sample_maps.map_answer,
    "findings": FINDINGS.answer,
    "headline": scan_state.headline,
    "color": sample_maps.map_color,
    "names": set_names,
    "set": sample_set,
    "subset": subset,
    "list": listed_samples,
    "sample": sample_views.sample,
    "hover": sample_views.hovered_samples,
    "place": sample_views.sample_at_position,
    "pinned": sample_views.pinned_samples,
    "calibration": subset_calibration_plots,
    "confusion": confusion,
    "coverage": class_set_coverage,
    "bounds": bounds,
    "worst": worst_cases,
}
KINDS = ("state", *HANDLERS, "runs", "export", "preview", "link")
_LIVE = ("place", "sample")
_LONG = ("export", "runs", "flips", "layers")
_LABELED = ("advice", "bounds", "failures", "flips", "layers", "whatif", "worst")
"""Kinds that labeled arrays are needed for."""
_IMPORTING = threading.Lock()
MOST_LONG = 4
"""The most long computations at the same time."""


def _import_labeled_arrays() -> None:
    """Import xarray and dask in one thread at a time: of two, one sees half of dask."""
    with _IMPORTING:
        import dask.array  # noqa: F401
        import xarray  # noqa: F401


class Session:
    """Answers requests about scans, and keeps no selection.

    Args:
        scans: A scan, or scans by name; the first is shown if a selection names none. Of one that
            is damaged, why; it stays in the menu.
        models: Models by their names in the scans, for live outputs.
        data: The inputs, if a scan did not keep them; of several scans, those that they fit use
            them.
        about: Further fields of `LiveExtras`: `task`, `classes`, `names` and others.

    Raises:
        InputError: If there is no scan, or if a model or the data are not of any scan.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> session = Session({"digits": scan})
        >>> header, arrays = session.handle({"kind": "aggregate", "sequence": 1, "selection": {}})
        >>> header["count"], arrays["values"].shape
        (20, (1, 8))
    """

    def __init__(
        self,
        scans: Mapping[str, Scan | StoreError] | Scan,
        models: Mapping[str, object] | None = None,
        data: object = None,
        **about: Any,
    ) -> None:
        given = {"scan": scans} if isinstance(scans, Scan) else dict(scans)
        served = {name: one for name, one in given.items() if isinstance(one, Scan)}
        self.damaged = {name: one for name, one in given.items() if isinstance(one, StoreError)}
        if not served:
            raise InputError("scans", "at least one", "none")
        extras = LiveExtras(models or {}, data, **about)
        if extras.worst is not None and len(served) > 1:
            raise InputError("worst", "none with several scans", f"{len(served)} scans")
        known = {name for scan in served.values() for name in scan.models}
        for name in extras.models:
            check_name("models", name, known)
        self.preview: Any = None
        self.link: Callable[[], str] | None = None
        self.guide = False
        self.command = False
        self._asked = 0.0
        self._working: set[BackgroundProgress] = set()
        self._pool = BackgroundPool(MOST_LONG, "long work", yield_to_readers)
        self._former: dict[str, ScanView] = {}
        self.scans = _views_opened_by_session(served, extras)
        self._following = Following(self.scans)

    def scan_view(self, name: str = "") -> ScanView:
        """Return the view of a scan by name; the first for an empty name."""
        if not name:
            return next(iter(self.scans.values()))
        if name in self.damaged:
            raise self.damaged[name]
        check_name("selection scan", name, self.scans)
        return self.scans[name]

    @property
    def stores(self) -> list[Path]:
        """Where the only scan is, or the folder of several; none if one is in memory."""
        paths = [view.scan.path for view in self.scans.values()]
        found = [path.absolute() for path in paths if path is not None]
        if len(found) < len(paths):
            return []
        return found if len(found) == 1 else [*{path.parent for path in found}]

    def state(self, name: str = "") -> Answer:
        """Describe a scan."""
        titles = [
            {"name": view.name, "title": scan_state.page_title(view)}
            for view in self.scans.values()
        ]
        titles += [{"name": name, "title": f"{name} (damaged)"} for name in self.damaged]
        follower = self._following.shown(self.scan_view(name).name)
        shown = follower if self.preview is None else self.preview.shown  # first: it may go on
        about, arrays = scan_state.state(self.scan_view(name), titles)
        about |= {"guide": self.guide, "command": self.command}
        about |= {} if self.link is None else {"link": True}
        about["runs"] = runs.comparable_run(self.scan_view(name), self.scans)
        if shown is not None:  # which says itself how far the scan is
            about |= {"preview": shown, "warnings": self.scan_view(name).live.warnings}
        return about, arrays

    @property
    def idle_s(self) -> float:
        """Seconds since a page last asked for something that needs the models."""
        return time.monotonic() - self._asked

    def handle(
        self, message: Mapping[str, Any], progress: BackgroundProgress | None = None
    ) -> Answer:
        """Answer a request.

        Args:
            message: The request: `kind`, `sequence`, `selection`, and fields of its kind.
            progress: Where long work reports how far it is.

        Returns:
            The header and the arrays of the answer.

        Raises:
            InputError: If the request is malformed or cannot be answered.
        """
        check_type("request", message, Mapping, "an object")
        kind, sequence = message.get("kind"), message.get("sequence", 0)
        if not isinstance(kind, str) or kind not in KINDS:
            raise unknown_name("kind", kind, KINDS)
        if isinstance(sequence, bool) or not isinstance(sequence, int):
            raise InputError("sequence", "an integer", repr(sequence))
        selection = Selection.from_json(message.get("selection", {}))
        if kind in _LIVE:
            self._asked = time.monotonic()
        if kind == "link":
            if self.link is None:
                raise InputError("kind", "a server, whose pages have links", "'link'")
            return {"token": self.link(), "kind": kind, "sequence": sequence}, {}
        if kind == "preview":
            told = (self.preview or self._following).answer(message)
            return {**told, "kind": kind, "sequence": sequence}, {}
        if kind in _LABELED:
            _import_labeled_arrays()
        body = {**message, "progress": progress}
        request = SubsetRequest(self.scan_view(selection.scan), selection, body)
        if kind == "state":
            fields, arrays = self.state(selection.scan)
        elif kind == "export":
            from ..export import exported

            fields, arrays = exported(request)
        elif kind == "runs":
            fields, arrays = runs.runs(request, self.scans)
        else:
            fields, arrays = HANDLERS[kind](request)
        return {**fields, "kind": kind, "sequence": sequence}, arrays

    def show(self, other: Session) -> None:
        """Answer from the scans of another session; requests on the earlier scans may still run."""
        for view in self._former.values():
            view.live.close()
        self._former, self.scans = self.scans, other.scans

    def answer(self, message: Any, progress: BackgroundProgress | None = None) -> bytes:
        """Answer a request with a frame; errors become a frame with an `error`."""
        start = time.perf_counter()
        try:
            header, arrays = self.handle(message, progress)
            took_ms = 1000 * (time.perf_counter() - start)  # a page asks no faster than that
            return encode_frame({**header, "took_ms": took_ms}, arrays)
        except Stopped as stop:
            return encode_frame({**_session_error_header(message, str(stop)), "stopped": True}, {})
        except UnknownSubset as error:
            about = {"code": error.code, "set": error.set}
            return encode_frame({**_session_error_header(message, str(error)), **about}, {})
        except OrbicalError as error:
            text = str(error)
        except Exception as error:  # shown in the page; the session goes on
            text = f"{type(error).__name__}: {error}"
        return encode_frame(_session_error_header(message, text), {})

    def warm(self) -> None:
        """Compute what every page requests first, while the browser is starting."""
        with contextlib.suppress(OrbicalError):  # the page will get the error
            for handler in (aggregate, sample_maps.map_answer, subset_calibration_plots):
                handler(SubsetRequest(self.scan_view()))

    def frames(self, message: Any, stopped: Callable[[], bool] = lambda: False) -> Iterator[bytes]:
        """Yield the answer to a request; before that of long work, how far it is.

        Args:
            message: The request.
            stopped: Whether nobody waits for the answer any more.
        """
        header = self._long(message)
        if header is None:
            yield self.answer(message)
            return
        progress = BackgroundProgress()
        self._working.add(progress)
        work = self._pool.submit(self.answer, message, progress)
        try:
            while not work.done() and not stopped():
                about, arrays = progress.news()
                yield encode_frame({**header, **about}, arrays)
                wait([work], TICK_S)
            progress.stop()  # unless it has ended
            stopped_early = encode_frame({**header, "stopped": True, "error": ""}, {})
            yield work.result() if work.done() else stopped_early
        finally:
            progress.stop()
            self._working.discard(progress)

    def _long(self, message: Any) -> Json | None:
        """Return the header of reports about a request, None if its answer is fast."""
        kind = message.get("kind") if isinstance(message, Mapping) else None
        if kind not in ("embedding", "sample", *_LONG):
            return None
        header = {"kind": kind, "sequence": message.get("sequence", 0)}
        try:
            selection = Selection.from_json(message.get("selection", {}))
            request = SubsetRequest(self.scan_view(selection.scan), selection)
            if kind == "sample":
                return header if selection.dense and request.view.live.answering else None
            if kind in _LONG:
                return header
            fast = selection.method in ("pca", "ica") or sample_maps.map_is_cached(request)
            return None if fast else {**header, "method": selection.method}
        except OrbicalError:
            return None  # the answer itself will be the error

    def close(self) -> None:
        """End the models' threads, long work, and the scan of a first look."""
        for progress in [*self._working]:
            progress.stop()
        self._pool.shutdown()
        if self.preview is not None:
            self.preview.close()
        for view in (*self.scans.values(), *self._former.values()):
            view.live.close()


def _views_opened_by_session(scans: Mapping[str, Scan], extras: LiveExtras) -> dict[str, ScanView]:
    """Open the views of scans; of several, those whose data were not passed do without."""
    views, unfit = {}, {}
    for name, scan in scans.items():
        own = extras.of(scan)
        try:
            views[name] = ScanView(name, scan, own)
        except InputError as error:
            if len(scans) == 1 or error.argument != "data":
                raise
            unfit[name] = error.problem
            views[name] = ScanView(name, scan, replace(own, data=None))
    if len(unfit) == len(scans):
        reasons = "; ".join(f"{name}: {problem}" for name, problem in unfit.items())
        raise InputError("data", problem=f"fit none of the scans; {reasons}")
    if unfit:
        used = ", ".join(name for name in views if name not in unfit)
        message = f"data: used for {used}; they do not fit {', '.join(unfit)}"
        warn(message)
    return views


def _session_error_header(message: Any, text: str) -> Json:
    """Return the header of an error, with the kind and number of the request."""
    given = message if isinstance(message, Mapping) else {}
    kind, sequence = given.get("kind"), given.get("sequence")
    return {
        "kind": kind if kind in KINDS else "error",
        "sequence": sequence if isinstance(sequence, int) else 0,
        "error": text,
    }
