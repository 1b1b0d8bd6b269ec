"""A local web server for a session: the page, its web socket and access control."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import html
import json
import logging
import os
import socket as sockets
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..store import Json
from .access import HEADERS, AccessGuard, Address, check_host, is_loopback
from .background import STOP, AsyncRequestQueue, BackgroundPool, frames_from, yield_to_readers
from .bundling import page_files
from .session import KINDS, Session

__all__ = ["Server", "serve"]

FIRST_PORT = 8420
PORTS_TRIED = 100
MOST_MESSAGE_BYTES = 1 << 20
"""Enough for a set among six million samples, whose bits the page may have to send again."""
THREADS = 8
LIVE_THREADS = 32
"""Threads that wait for models, so that a model that hangs delays no other answer."""
LIVE_KINDS = ("place", "sample")
PATIENT_KINDS = ("advice", "columns", "consistency", "failures", "headline")
"""These read the whole scan for what a page asks for last; a click goes first."""
_LAUNCH = """<!doctype html><meta charset="utf-8"><title>orbical</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={address}">
<a href="{address}">orbical view</a>
"""

_NO_TOKEN = """missing token: open the address that orbical view printed

To open a view in another browser of yours, copy a link in the one that shows it: Export, Copy link.
Another person needs the scan and orbical view, or a report: orbical report.
"""

_CACHED = "private, max-age=3600, immutable"
"""The address of a file names its content, so a reload need not ask whether it changed."""


class Server:
    """A local web server for one session.

    Args:
        session: The session to serve.
        host: The address to listen on; any but this machine's own needs `exposed`.
        port: The port; None takes the next free one from 8420.
        exposed: Whether others on the network may connect.
        allow_origin: Origins of pages behind a proxy.

    Raises:
        InputError: If the address or the port cannot be used.
    """

    def __init__(
        self,
        session: Session,
        host: str = "127.0.0.1",
        port: int | None = None,
        exposed: bool = False,
        allow_origin: Iterable[str] = (),
    ) -> None:
        check_host(host, exposed)
        self.session = session
        self.host = host
        lasting = is_loopback(host) and port != 0  # what others can reach has new secrets each time
        address = Address(session.stores if lasting else ())
        try:
            self._socket = _listening_server_socket(host, port, address.port)
        except InputError:
            address.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        address.use(self.port, taken=port is None and address.port not in (None, self.port))
        names = () if is_loopback(host) else _names_of(host)
        self.guard = AccessGuard(self.port, names, allow_origin, address)
        session.link = address.ticket
        self.files = page_files()
        self.clients = 0
        self._pool = BackgroundPool(THREADS, "answers")
        self._live = BackgroundPool(LIVE_THREADS, "live answers")
        self._patient = BackgroundPool(len(PATIENT_KINDS), "patient answers", yield_to_readers)
        self._pools = dict.fromkeys(LIVE_KINDS, self._live)
        self._pools |= dict.fromkeys(PATIENT_KINDS, self._patient)
        self._launch: tempfile.TemporaryDirectory[str] | None = None
        self._uvicorn: Any = None
        self._thread: threading.Thread | None = None

    @property
    def _page(self) -> str:
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/{self.guard.folder}/"

    @property
    def url(self) -> str:
        """The address to open, with its token."""
        return f"{self._page}?token={self.guard.token}"

    def launch_file(self) -> Path:
        """Write a page that leads a browser to this one, and that only this user can read.

        The command line of a browser can be read by everyone on the machine, so that it must not
        hold a token.
        """
        if self._launch is None:
            self._launch = tempfile.TemporaryDirectory(prefix="orbical-")  # others cannot enter it
        path = Path(self._launch.name) / "open.html"
        path.touch(mode=0o600)
        address = f"{self._page}?token={self.guard.launch_token()}"
        path.write_text(_LAUNCH.format(address=html.escape(address)), "utf-8")
        return path

    def run(self) -> None:
        """Serve until interrupted."""
        import uvicorn

        config = uvicorn.Config(
            self.application(),
            log_level="warning",
            http=_protocol_with_timeout(),
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=MOST_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        logging.getLogger("uvicorn.error").addFilter(_is_no_client_error)
        self._uvicorn = uvicorn.Server(config)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._uvicorn.run(sockets=[self._socket])
        finally:
            self.close()

    def start(self) -> None:
        """Serve in a thread, which does not keep the program from ending; return once it runs."""
        self._thread = threading.Thread(target=self.run, name="orbical view", daemon=True)
        self._thread.start()
        while not self.running and self._thread.is_alive():
            time.sleep(0.01)

    def warm(self) -> None:
        """Compute what every page requests first, while the browser is starting."""
        self._pool.submit(self.session.warm)

    @property
    def running(self) -> bool:
        """Whether the server accepts requests in its thread."""
        alive = self._thread is not None and self._thread.is_alive()
        return alive and self._uvicorn is not None and bool(self._uvicorn.started)

    def stop(self) -> None:
        """Stop the server, from another thread; wait for its own thread to end."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join(10)

    def close(self) -> None:
        """Release the port and the threads."""
        self._socket.close()
        self.guard.address.close()
        for pool in (self._pool, self._live, self._patient):
            pool.shutdown()
        self.session.close()
        if self._launch is not None:
            self._launch.cleanup()

    def application(self) -> Any:
        """Return the ASGI application."""
        from starlette.requests import HTTPConnection
        from starlette.websockets import WebSocket, WebSocketDisconnect

        async def application(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                await self._respond(scope["method"], HTTPConnection(scope))(scope, receive, send)
                return
            if scope["type"] != "websocket":
                return
            web_socket = WebSocket(scope, receive, send)
            refused = self.guard.refusal(web_socket.headers, socket=True)
            known = self.guard.knows_cookie(web_socket.cookies)
            if refused or not known or scope["path"] != f"/{self.guard.folder}/ws":
                await web_socket.close(1008)  # before it is accepted: the client sees 403
                return
            await web_socket.accept()
            self.clients += 1
            try:
                await self._converse(web_socket)
            except (WebSocketDisconnect, RuntimeError, OSError):
                pass  # the client went away
            finally:
                self.clients -= 1

        return application

    def _respond(self, method: str, request: Any) -> Any:
        """Return the response to a request for a file of the page."""
        from starlette.responses import PlainTextResponse, Response

        refusal = self.guard.refusal(request.headers)
        if refusal:
            return PlainTextResponse(refusal, 403, HEADERS)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("only GET", 405, {**HEADERS, "Allow": "GET, HEAD"})
        folder, slash, path = request.scope["path"].removeprefix("/").partition("/")
        inside = slash and folder == self.guard.folder
        entering = inside and not path and self.guard.admits(request.query_params.get("token"))
        if not inside or not (entering or self.guard.knows_cookie(request.cookies)):
            return PlainTextResponse(_NO_TOKEN, 403, HEADERS)
        file = self.files.get(path or "index.html")
        if file is None:
            return PlainTextResponse("no such file", 404, HEADERS)
        own = {**HEADERS, "Cache-Control": _CACHED if path else "no-store"}
        if entering:
            own["Set-Cookie"] = self.guard.cookie_header()
        return Response(file.content, 200, own, file.type)

    async def _converse(self, web_socket: Any) -> None:
        """Answer one client until it disconnects or sends something that is not a request."""
        from starlette.websockets import WebSocketDisconnect

        async def send(frame: bytes) -> None:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
                await web_socket.send_bytes(frame)  # unless the client went away
            await asyncio.sleep(0)  # a lost connection is noticed before the next frame

        queue = AsyncRequestQueue(self._answers, send)
        try:
            while True:
                event = await web_socket.receive()
                if event["type"] == "websocket.disconnect":
                    return
                message = _read(event.get("text"))
                if message is None:
                    await web_socket.close(1007, "expected a JSON object with a known kind")
                    return
                queue.put(message["kind"], message)
        finally:
            await queue.close()

    def _answers(self, message: Json, outdated: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield the frames that answer a request."""
        pool = self._pools.get(message["kind"], self._pool)
        return frames_from(pool, self.session.frames(message, outdated))


def _is_no_client_error(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn logs, with a traceback, of a client that sends text that is none."""
    return "Invalid UTF-8" not in record.getMessage()


def _read(text: str | None) -> Json | None:
    """Parse a request; None if it is malformed."""
    try:
        message = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    known = isinstance(message, dict) and message.get("kind") in (*KINDS, STOP)
    return message if known else None


def _listening_server_socket(
    host: str, port: int | None, earlier: int | None = None
) -> sockets.socket:
    """Bind the port; for None the earlier one, or the next that is free."""
    if port is not None and not 0 <= port <= 65535:
        raise InputError("port", "0 to 65535", port)
    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    tried = [*range(FIRST_PORT, FIRST_PORT + PORTS_TRIED), 0] if port is None else [port]
    if port is None and earlier is not None:
        tried.insert(0, earlier)
    for number in tried:
        try:
            return sockets.create_server((host, number), family=family, backlog=128)
        except OSError as error:
            reason = error
    given = "any" if port is None else port
    raise InputError("port", f"a free port of {host}", f"{given}: {reason}")


def _names_of(host: str) -> list[str]:
    """Return the host names of a machine that others can reach."""
    names = [host, sockets.gethostname(), sockets.getfqdn()]
    with contextlib.suppress(OSError):
        names += [entry[4][0] for entry in sockets.getaddrinfo(sockets.gethostname(), None)]  # type: ignore[misc]
    return [str(name) for name in names]


def startup_message(server: Server, end: str) -> str:
    """Return the address of the page, with the command for a tunnel if this is an SSH session."""
    lines = [f"orbical view: serving at {server.url} ({end})"]
    if os.environ.get("SSH_CONNECTION"):
        here = sockets.gethostname()
        lines.append(f"on your own machine: ssh -L {server.port}:127.0.0.1:{server.port} {here}")
    return "\n".join(lines)


def serve(server: Server, open_browser: bool = True, block: bool = True) -> Server | None:
    """Print the address of the page, open it and serve: until interrupted, or in a thread."""
    message = startup_message(server, "press Ctrl-C to stop" if block else "call stop() to end it")
    print(message, file=sys.stderr, flush=True)
    server.warm()
    if open_browser:
        import webbrowser

        page = server.launch_file().as_uri()
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
    if block:
        gc.freeze()  # what was imported is never searched for garbage, which would delay a click
        server.run()
        return None
    server.start()
    return server


TIMEOUT_S = 10.0
"""How long a client may take to send the head of a request."""


def _protocol_with_timeout() -> Any:
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
