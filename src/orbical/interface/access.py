"""Access control: host names, origins and the token, checked on every request and socket.

A page of another site can make a browser send requests to this machine, but it has neither the
token nor the cookie. A site that points its own name here (DNS rebinding) is recognized by the host
name in its requests.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
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
    """Check whether a host name refers to this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    return host in LOOPBACK


class AccessGuard:
    """Decides which requests are accepted.

    Args:
        port: Port, part of the cookie's name, so that two views on one machine do not clash.
        hosts: Host names that the server answers to, besides those of this machine.
        origins: Further origins (`https://hub.example.org`) of pages behind a proxy.
    """

    def __init__(self, port: int, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self.token = secrets.token_urlsafe(24)
        self.cookie = f"orbical-{port}"
        self.origins = frozenset(_checked_origin(origin) for origin in origins)
        behind = (urlsplit(origin).hostname or "" for origin in self.origins)
        self.hosts = frozenset({*LOOPBACK, *(host.lower() for host in hosts), *behind})

    def refusal(self, headers: Mapping[str, str], socket: bool = False) -> str:
        """Return why a request is refused because of its host or origin; empty if it is not."""
        host = headers.get("host", "")
        if _hostname(host) not in self.hosts:
            return "host name not allowed"
        origin = headers.get("origin")
        if origin is None:
            return "missing origin" if socket else ""
        if origin not in self.origins and not _same(origin, host):
            return "origin not allowed"
        return ""

    def knows_token(self, given: str | None) -> bool:
        """Compare a token in constant time."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def knows_cookie(self, cookies: Mapping[str, str]) -> bool:
        """Check whether the token is among the cookies."""
        return self.knows_token(cookies.get(self.cookie))

    def cookie_header(self) -> str:
        """Return the cookie; without a path it belongs to the page's folder, as proxies need."""
        return f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict"


def _hostname(host: str) -> str:
    """Return the name in a Host header, empty if it holds more than a name and a port."""
    if any(sign in host for sign in "@/?#\\"):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _same(origin: str, host: str) -> bool:
    """Check whether an origin is that of the page served by this host."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() != ""


def _checked_origin(origin: str) -> str:
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise InputError(
            f"allow_origin: expected scheme://host[:port] without a path, got {origin!r}"
        )
    return origin
