"""Who may ask: host names, origins and the token, checked on every request and socket.

A page of another site can make a browser send requests to this machine. It can neither know the
token nor hold the cookie; a site that points its own name here (DNS rebinding) is known by the
name it asks for.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from ..errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    return host in LOOPBACK


class AccessGuard:
    """Decides who is let in.

    Arguments:
        port: the port, part of the cookie's name, so that two views on one machine do not clash.
        hosts: host names under which the server may be asked, besides those of this machine.
        origins: further origins (`https://hub.example.org`) of pages behind a proxy.
    """

    def __init__(self, port: int, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self.token = secrets.token_urlsafe(24)
        self.cookie = f"orbical-{port}"
        self.origins = frozenset(_checked_origin(origin) for origin in origins)
        behind = (urlsplit(origin).hostname or "" for origin in self.origins)
        self.hosts = frozenset({*LOOPBACK, *(host.lower() for host in hosts), *behind})

    def refusal(self, headers: Mapping[str, str], socket: bool = False) -> str:
        """Say why a request is refused for where it comes from; empty where it is not."""
        host = headers.get("host", "")
        if _hostname(host) not in self.hosts:
            return "this server is not known under that host name"
        origin = headers.get("origin")
        if origin is None:
            return "a socket needs an origin" if socket else ""
        if origin not in self.origins and not _same(origin, host):
            return "the request comes from a page of another origin"
        return ""

    def knows_token(self, given: str | None) -> bool:
        """Compare a token in constant time."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def knows_cookie(self, header: str | None) -> bool:
        """Look for the token among the cookies."""
        try:
            cookies = SimpleCookie(header or "")
        except CookieError:
            return False
        return self.cookie in cookies and self.knows_token(cookies[self.cookie].value)

    def cookie_header(self) -> str:
        """Give the cookie; without a path it belongs to the folder of the page, as proxies need."""
        return f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict"


def _hostname(host: str) -> str:
    """Give the name in a Host header; a header that holds more than name and port has none."""
    if any(sign in host for sign in "@/?#\\"):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _same(origin: str, host: str) -> bool:
    """Whether an origin is that of the page that this very host serves."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() != ""


def _checked_origin(origin: str) -> str:
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise InputError(
            f"allow_origin: {origin!r} given, scheme://host[:port] expected, without a path"
        )
    return origin
