"""The session behind a local web server: page, socket, and who may use them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket as sockets
import sys
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

from ..errors import InputError
from .access import HEADERS, AccessGuard, is_loopback
from .daemon_threads import DaemonPool
from .request_queues import AsyncRequestQueue
from .session import KINDS, Session
from .static_files import StaticFile, read_static_files
from .timeouts import impatient_protocol

FIRST_PORT = 8420
PORTS_TRIED = 100
MOST_MESSAGE_BYTES = 1 << 18
THREADS = 8


class Server:
    """A server of one session.

    Arguments:
        session: what is served.
        host: the address to listen on; another than this machine's own needs `exposed`.
        port: the port; None takes the next free one from 8420.
        exposed: whether others on the network may connect.
        allow_origin: origins of pages behind a proxy.
    """

    def __init__(
        self,
        session: Session,
        host: str = "127.0.0.1",
        port: int | None = None,
        exposed: bool = False,
        allow_origin: Iterable[str] = (),
    ) -> None:
        if not is_loopback(host) and not exposed:
            raise InputError(
                f"host: {host!r} given, which others on the network can reach; expected 127.0.0.1, "
                "or the flag that says you mean it (--expose)"
            )
        self.session = session
        self.host = host
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        names = () if is_loopback(host) else _names_of(host)
        self.guard = AccessGuard(self.port, names, allow_origin)
        self.files = read_static_files()
        self.clients = 0
        self._pool = DaemonPool(THREADS)
        self._uvicorn: Any = None

    @property
    def url(self) -> str:
        """The address to open, with its token."""
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/?token={self.guard.token}"

    def run(self) -> None:
        """Serve until interrupted."""
        import uvicorn

        config = uvicorn.Config(
            self.application(),
            log_level="warning",
            http=impatient_protocol(),
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=MOST_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._uvicorn = uvicorn.Server(config)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._uvicorn.run(sockets=[self._socket])
        finally:
            self.close()

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._uvicorn is not None and bool(self._uvicorn.started)

    def stop(self) -> None:
        """Ask it to end, from another thread."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    def close(self) -> None:
        """Give back port and threads."""
        self._socket.close()
        self._pool.shutdown()
        self.session.close()

    def application(self) -> Any:
        """Make the ASGI application: a few routes, written out."""
        from starlette.responses import PlainTextResponse, Response
        from starlette.websockets import WebSocket, WebSocketDisconnect

        guard = self.guard

        def respond(scope: Any) -> Response:
            headers = _headers(scope)
            refusal = guard.refusal(headers)
            if refusal:
                return PlainTextResponse(refusal, 403, HEADERS)
            if scope["method"] not in ("GET", "HEAD"):
                return PlainTextResponse("only GET", 405, {**HEADERS, "Allow": "GET, HEAD"})
            path = scope["path"].removeprefix("/")
            given = _query(scope).get("token")
            entering = path == "" and guard.knows_token(given)
            if not entering and not guard.knows_cookie(headers.get("cookie")):
                return PlainTextResponse(
                    "open the address that the program printed, with its token", 403, HEADERS
                )
            file = self.files.get(path or "index.html")
            if file is None:
                return PlainTextResponse("no such file", 404, HEADERS)
            return self._file(file, headers, entering, not path)

        async def application(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                await respond(scope)(scope, receive, send)
                return
            if scope["type"] != "websocket":
                return
            web_socket = WebSocket(scope, receive, send)
            headers = _headers(scope)
            refused = guard.refusal(headers, socket=True)
            known = guard.knows_cookie(headers.get("cookie"))
            if refused or not known or scope["path"] != "/ws":
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

    def _file(self, file: StaticFile, headers: dict[str, str], entering: bool, page: bool) -> Any:
        from starlette.responses import Response

        own = {**HEADERS, "ETag": file.tag, "Cache-Control": "no-store" if page else "no-cache"}
        if entering:
            own["Set-Cookie"] = self.guard.cookie_header()
        if not page and headers.get("if-none-match") == file.tag:
            return Response(None, 304, own)
        return Response(file.content, 200, own, file.type)

    async def _converse(self, web_socket: Any) -> None:
        """Take requests from one client until it leaves or says something that is none."""
        queue = AsyncRequestQueue(self._answers, web_socket.send_bytes)
        try:
            while True:
                event = await web_socket.receive()
                if event["type"] == "websocket.disconnect":
                    return
                message = _read(event.get("text"))
                if message is None:
                    await web_socket.close(1007, "JSON objects with a known kind expected")
                    return
                queue.put(message["kind"], message)
        finally:
            await queue.close()

    async def _answers(self, message: Any) -> AsyncIterator[bytes]:
        """Give the frames of a request, made in another thread: the socket is never held up."""
        loop = asyncio.get_running_loop()
        if message["kind"] == "embedding":
            early = await loop.run_in_executor(self._pool, self.session.announcement, message)
            if early is not None:
                yield early
        yield await loop.run_in_executor(self._pool, self.session.answer, message)


def _read(text: str | None) -> dict[str, Any] | None:
    """Read a request; None where it is none, which no page of ours sends."""
    try:
        message = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("kind") not in KINDS:
        return None
    return message


def _headers(scope: Any) -> dict[str, str]:
    return {
        key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]
    }


def _query(scope: Any) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


def _listening(host: str, port: int | None) -> sockets.socket:
    """Bind the port asked for, or the next free one."""
    if port is not None and not 0 <= port <= 65535:
        raise InputError(f"port: {port} given, 0 to 65535 expected")
    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    tried = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED) if port is None else [port]
    for number in (*tried, *([0] if port is None else [])):
        one = sockets.socket(family, sockets.SOCK_STREAM)
        if os.name == "posix":
            one.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        try:
            one.bind((host, number))
            one.listen(128)
        except OSError as error:
            one.close()
            if port is not None:
                raise InputError(f"port: {port} on {host} cannot be used: {error}") from None
        else:
            return one
    raise InputError(f"port: none is free on {host}")


def _names_of(host: str) -> list[str]:
    """Give the names under which a machine that others can reach is asked."""
    names = [host, sockets.gethostname(), sockets.getfqdn()]
    with contextlib.suppress(OSError):
        names += [entry[4][0] for entry in sockets.getaddrinfo(sockets.gethostname(), None)]  # type: ignore[misc]
    return [str(name) for name in names]


def announced(server: Server) -> str:
    """Say where the page is, and how to reach it from elsewhere when this is a session of SSH."""
    lines = [f"orbical view: {server.url}"]
    if os.environ.get("SSH_CONNECTION"):
        here = sockets.gethostname()
        lines.append(f"on your own machine: ssh -L {server.port}:127.0.0.1:{server.port} {here}")
    return "\n".join([*lines, "Ctrl-C ends it"])


def serve(server: Server, open_browser: bool = True) -> None:
    """Say where the page is, open it, and serve until interrupted."""
    print(announced(server), file=sys.stderr, flush=True)
    threading.Thread(target=server.session.warm, name="warm", daemon=True).start()
    if open_browser:
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
    server.run()
