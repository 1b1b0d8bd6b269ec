"""A static figure and table in place of the widget, for notebooks read without a kernel.

Exported notebooks and viewers without widget support show it. It is part of the widget's output and
is also published as a separate output: exporters of a notebook that was executed without a browser
prefer the widget's saved state, which nothing can answer, to the figure in the same output. As soon
as a page sends a request, the separate output is collapsed.
"""

from __future__ import annotations

import base64
import html
import io
from functools import cached_property
from typing import Any

from ..groups import PLACES
from .session import Session

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
        picture = _picture(view.scan)
        shown = (
            f"<img alt='{html.escape(view.name)}: score along the orbit' "
            f"src='data:image/png;base64,{picture}' style='max-width:100%;background:#fff'>"
            if picture
            else ""
        )
        return (
            f"<div class='orbical-static'><p style='{_TITLE}'>"
            f"{html.escape(self._plain)}</p>{shown}{_table(summary(view.scan))}</div>"
        )


def _picture(scan: Any) -> str:
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
    return base64.b64encode(held.getvalue()).decode("ascii")


def _table(table: Any) -> str:
    """Format the summary of each model as an HTML table."""
    shown = table[[name for name in _HEADINGS if name in table]]
    rows = shown.assign_coords(place=[PLACES[str(place)] for place in shown["place"].values])
    frame = rows.to_dataframe().unstack("place", sort=False)
    return str(frame.rename_axis(None).to_html(float_format="{:.3f}".format, border=0))
