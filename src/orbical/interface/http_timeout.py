"""HTTP timeouts: a connection that does not finish its request is closed."""

from __future__ import annotations

from typing import Any

TIMEOUT_S = 10.0
"""How long a client may take to send the head of a request."""


def protocol_with_timeout() -> Any:
    """Return uvicorn's HTTP protocol with a limit on the time to send the head of a request.

    uvicorn itself waits forever for the second half of a request.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    whole: Any = AutoHTTPProtocol

    class ProtocolWithTimeout(whole):  # type: ignore[misc]
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
                self._alarm = self.loop.call_later(TIMEOUT_S, self._give_up)

        def _end(self) -> None:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

        def _give_up(self) -> None:
            if self.transport.get_protocol() is self:  # and not that of a socket by now
                self.transport.close()

    return ProtocolWithTimeout
