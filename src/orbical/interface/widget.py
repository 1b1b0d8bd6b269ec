"""The interface in a notebook: the same page, through anywidget's messages.

Requests come as messages and are answered from threads, the newest of a kind first, so that a slow
model holds up neither the kernel nor the page. Frames travel as message buffers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from ..errors import MissingExtra
from .fallback import Fallback
from .link import link, web_sources, web_style
from .selection import Selection
from .session import KINDS, Session

WORKERS = 2


class Desk:
    """Requests that wait, one of each kind, and the threads that answer them.

    A newer request takes the place of an older one of its kind that still waits. Two kinds at most
    are worked on at the same time.
    """

    def __init__(
        self, answer: Callable[[Any], Iterable[bytes]], send: Callable[[bytes], None]
    ) -> None:
        self._answer, self._send = answer, send
        self._slots: dict[str, Any] = {}
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="orbical widget")

    def put(self, kind: str, message: Any) -> None:
        """Leave a request."""
        with self._lock:
            self._slots[kind] = message
            if kind in self._busy:
                return
            self._busy.add(kind)
        self._pool.submit(self._empty, kind)

    def close(self) -> None:
        """Take no more requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _empty(self, kind: str) -> None:
        while True:
            with self._lock:
                if kind not in self._slots:
                    self._busy.discard(kind)
                    return
                message = self._slots.pop(kind)
            for frame in self._answer(message):
                self._send(frame)


def widget(session: Session, height: int = 900) -> Any:
    """Make the widget that shows a session (needs the extra `notebook`).

    Its `selection` is what is selected in it now; `fragment` is the same as text, synced with the
    page, so that setting it moves the page.

    Arguments:
        session: what is shown.
        height: of the widget in pixels, at least; a narrow notebook needs more.

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
    """Make the class when it is first needed: anywidget is an extra."""
    try:
        import anywidget
        import traitlets
    except ImportError as missing:
        raise MissingExtra("anywidget", "notebook", "the interface in a notebook") from missing

    class ScanWidget(anywidget.AnyWidget):
        """A scan, shown in a notebook."""

        _esm = link("app.js", web_sources())
        _css = web_style()
        fragment = traitlets.Unicode("").tag(sync=True)

        def __init__(self, session: Session, height: int) -> None:
            super().__init__()
            self.layout.min_height = f"{height}px"
            self.layout.width = "100%"
            self.session = session
            self._desk = Desk(self._frames, self._send_frame)
            self._fallback = Fallback(session)
            self.on_msg(self._receive)

        @property
        def selection(self) -> Selection:
            """What is selected."""
            return Selection.from_fragment(self.fragment)

        def _receive(self, _: Any, content: Any, buffers: Any) -> None:
            self._fallback.fold()
            kind = content.get("kind") if isinstance(content, dict) else None
            if kind in KINDS:
                self._desk.put(str(kind), content)

        def _frames(self, message: Any) -> Iterator[bytes]:
            early = self.session.announcement(message)
            if early is not None:
                yield early
            yield self.session.answer(message)

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
            """End the widget and its threads."""
            self._desk.close()
            self.session.close()
            super().close()

    return ScanWidget
