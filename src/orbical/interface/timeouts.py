"""HTTP with an end to waiting: a connection that does not finish its request is closed."""

from __future__ import annotations

from typing import Any

PATIENCE_S = 10.0
"""How long a client may take from opening a connection, or beginning a request, to its end."""


def impatient_protocol() -> Any:
    """Make uvicorn's HTTP protocol, with a limit to how long the head of a request may take.

    uvicorn itself waits for ever for the second half of a request.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    whole: Any = AutoHTTPProtocol

    class Impatient(whole):
        _alarm: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:  # the head of a request is complete
                self._end()
            elif before is None or before.response_complete:
                self._begin()

        def _begin(self) -> None:
            if self._alarm is None:
                self._alarm = self.loop.call_later(PATIENCE_S, self._give_up)

        def _end(self) -> None:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

        def _give_up(self) -> None:
            if self.transport.get_protocol() is self:  # and not that of a socket by now
                self.transport.close()

    return Impatient
