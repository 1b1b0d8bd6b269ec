"""The interface in a notebook: the same page, over anywidget messages.

Requests arrive as messages and are answered in threads, so that a slow model blocks neither the
kernel nor the page. Frames are sent as message buffers.
"""

from __future__ import annotations

import dataclasses
import html
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..errors import MissingExtra
from ..groups import PLACES
from .background import STOP, ThreadedRequestQueue
from .bundling import bundle, web_sources, web_style
from .selection import Selection, selected_mask
from .session import KINDS, Session
from .session.subset_request import SubsetRequest, keep_set
from .wire import as_base64

__all__ = ["widget"]


def widget(session: Session, height: int = 900) -> Any:
    """Return a widget that shows a session (extra `notebook`).

    Its attribute `selection` is what the page shows, with the indices of the samples in the subset
    and the coordinates of the position. Setting it changes the page: to indices or a mask of
    samples, or to a dictionary of fields. `fragment` is the same as text.

    Args:
        session: The session to show.
        height: The least height of the widget in pixels; narrow notebooks need more.

    Returns:
        The widget.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> shown = widget(Session({"digits": scan}))
        >>> shown.fragment = "sample=3&metric=ece"
        >>> shown.selection.sample
        3
        >>> shown.selection = [2, 3, 5]
        >>> shown.selection.samples
        array([2, 3, 5])
        >>> shown.selection = {"sample": 7, "element": 2}
        >>> shown.selection.place
        {'angle': 90.0}
    """
    return _widget_class()(session, height)


@dataclass(frozen=True, eq=False)
class WidgetSelection(Selection):
    """A selection with what its names stand for.

    Attributes:
        samples: The indices of the samples in the subset that the filters keep.
        place: The coordinates of the position on the orbit, such as `{"angle": 90.0}`.
    """

    samples: Any = ()
    place: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def looked_up(cls, session: Session, selection: Selection) -> WidgetSelection:
        """Look up the samples and the position of a selection."""
        request = SubsetRequest(session.scan_view(selection.scan), selection)
        coords = request.view.group.coords
        at = selection.position or [values[request.element].item() for values in coords.values()]
        place = dict(zip(coords, at, strict=False))
        samples = np.flatnonzero(request.subset.members)
        return cls(**vars(selection), samples=samples, place=place)


def changed_widget_selection(session: Session, now: Selection, given: Any) -> Selection:
    """Return a selection after a change: another one, samples of the subset, or some fields."""
    if isinstance(given, Selection):
        fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(Selection)}
        return Selection(**fields)
    fields = dict(given) if isinstance(given, Mapping) else {"samples": given}
    view = session.scan_view(fields.get("scan", now.scan))
    if "samples" in fields:
        mask = selected_mask(fields.pop("samples"), view.samples)
        fields = {"subset": keep_set(view, mask), "filter": (), **fields}
    made = Selection.from_json({**vars(now), **fields})
    request = SubsetRequest(view, made)
    _ = request.sample, request.element, request.metric, request.models  # refuse what is not there
    return made


@cache
def _widget_class() -> Any:
    """Return the class, made when first needed: anywidget is an extra."""
    try:
        import anywidget
        import traitlets
    except ImportError as missing:
        raise MissingExtra("anywidget", "notebook", "the interface in a notebook") from missing

    class ScanWidget(anywidget.AnyWidget):
        """A session in a notebook."""

        _esm = bundle("app.js", web_sources())
        _css = web_style()
        fragment = traitlets.Unicode("").tag(sync=True)

        def __init__(self, session: Session, height: int) -> None:
            super().__init__()
            self.layout.min_height = f"{height}px"
            self.layout.width = "100%"
            self.session = session
            self._queue = ThreadedRequestQueue(session.frames, self._send_frame)
            self._fallback = WidgetFallback(session)
            self.on_msg(self._receive)

        @property
        def selection(self) -> WidgetSelection:
            """What the page shows; setting it changes the page."""
            return WidgetSelection.looked_up(self.session, Selection.from_fragment(self.fragment))

        @selection.setter
        def selection(self, given: Any) -> None:
            now = Selection.from_fragment(self.fragment)
            self.fragment = changed_widget_selection(self.session, now, given).to_fragment()

        def _receive(self, _: Any, content: Any, buffers: Any) -> None:
            self._fallback.fold()
            kind = content.get("kind") if isinstance(content, dict) else None
            if kind in (*KINDS, STOP):
                self._queue.put(str(kind), content)

        def _send_frame(self, frame: bytes) -> None:
            self.send({"frame": len(frame)}, buffers=[frame])

        def _repr_mimebundle_(self, **options: Any) -> Any:
            bundle = super()._repr_mimebundle_(**options)
            if bundle is None:
                return None
            data, about = bundle if isinstance(bundle, tuple) else (bundle, {})
            self._fallback.publish()
            return {**data, **self._fallback.bundle()}, about

        def close(self) -> None:
            """Close the widget and end its threads."""
            self._queue.close()
            self.session.close()
            super().close()

    return ScanWidget


_HEADINGS = ("accuracy", "confidence", "score")
_TITLE = "font:600 14px system-ui,sans-serif;margin:4px 0"


class WidgetFallback:
    """The figure and the table of a session's first scan, made when first shown."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._handle: Any = None

    def bundle(self) -> dict[str, str]:
        """Return the content by MIME type, for a notebook's output."""
        return {"text/html": self._html, "text/plain": self._plain}

    def publish(self) -> None:
        """Publish the content as a separate output, if a notebook kernel is running."""
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            return
        if getattr(get_ipython(), "kernel", None) is None:
            return
        self._handle = display(self.bundle(), raw=True, display_id=True)

    def fold(self) -> None:
        """Collapse the separate output to one line, once a page is connected."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        folded = (
            "<details style='font:12px system-ui,sans-serif;color:#777'><summary>static figure, "
            f"for readers without a kernel</summary>{self._html}</details>"
        )
        handle.update({"text/html": folded, "text/plain": self._plain}, raw=True)

    @property
    def _plain(self) -> str:
        return repr(self._session.scan_view().scan)

    @cached_property
    def _html(self) -> str:
        from ..nero import summary

        view = self._session.scan_view()
        picture = _widget_picture(view.scan)
        words = f"<img alt='{html.escape(view.name)}: score along the orbit' "
        source = f"src='data:image/png;base64,{picture}' style='max-width:100%;background:#fff'>"
        shown = words + source if picture else ""
        return (
            f"<div class='orbical-static'><p style='{_TITLE}'>"
            f"{html.escape(self._plain)}</p>{shown}{_table(summary(view.scan))}</div>"
        )


def _widget_picture(scan: Any) -> str:
    """Draw the score along the orbit as a PNG in base64; empty if the layout has no figure."""
    from .. import figures, nero
    from ..errors import OrbicalError

    try:
        figure = figures.aggregate(nero.aggregate(scan).compute())
    except OrbicalError:
        return ""
    held = io.BytesIO()
    with figures.style.styled():
        figure.savefig(held, format="png", dpi=130, bbox_inches="tight")
    return as_base64(held.getvalue())


def _table(table: Any) -> str:
    """Format the summary of each model as an HTML table."""
    shown = table[[name for name in _HEADINGS if name in table]]
    rows = shown.assign_coords(place=[PLACES[str(place)] for place in shown["place"].values])
    frame = rows.to_dataframe().unstack("place", sort=False)
    return str(frame.rename_axis(None).to_html(float_format="{:.3f}".format, border=0))
