"""The interface in a notebook: the same page, over anywidget messages.

Requests arrive as messages and are answered in threads, so that a slow model blocks neither the
kernel nor the page. Frames are sent as message buffers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import MissingExtra
from .bundling import bundle, web_sources, web_style
from .request_queues import STOP, ThreadedRequestQueue
from .selection import Selection
from .session import KINDS, Session
from .widget_fallback import WidgetFallback

__all__ = ["widget"]


def widget(session: Session, height: int = 900) -> Any:
    """Return a widget that shows a session (extra `notebook`).

    Its attribute `selection` is the current selection; `fragment` is the same as text, synchronized
    with the page, so that setting it changes what the page shows.

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
    """
    return _class()(session, height)


@cache
def _class() -> Any:
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
        def selection(self) -> Selection:
            """The current selection."""
            return Selection.from_fragment(self.fragment)

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
