"""Access control: host names, origins and the token, checked on every request and socket.

A page of another site can make a browser send requests to this machine, but it has neither the
token nor the cookie. Browsers send a cookie to every port of a host, so that other programs on
this machine could read it: the page lies in a folder with a random name, and the cookie goes to
this folder only. A site that points its own name here (DNS rebinding) is recognized by the host
name in its requests.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from ..errors import InputError
from .addresses import Address, equal

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


def check_host(host: str, exposed: bool) -> None:
    """Refuse an address that others can reach, unless that is wanted."""
    if not is_loopback(host) and not exposed:
        raise InputError(
            "host",
            "127.0.0.1",
            f"{host!r}, which others on the network can reach",
            remedy="pass exposed=True (--expose) to allow it",
        )


class AccessGuard:
    """Decides which requests are accepted.

    Args:
        port: Port, part of the cookie's name, so that two views on one machine do not clash.
        hosts: Host names that the server answers to, besides those of this machine.
        origins: Further origins (`https://hub.example.org`) of pages behind a proxy.
        address: The token in the address that is printed, and the folder of the page, so that its
            cookie goes nowhere else; by default new ones.
    """

    def __init__(
        self,
        port: int,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        address: Address | None = None,
    ) -> None:
        self.address = address or Address()
        self.token, self.folder = self.address.token, self.address.folder
        self._secret = secrets.token_urlsafe(24)  # in the cookie only, and new at each start
        self._launches: list[str] = []
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

    def launch_token(self) -> str:
        """Return a token that is valid once."""
        self._launches.append(secrets.token_urlsafe(24))
        return self._launches[-1]

    def admits(self, given: str | None) -> bool:
        """Check a token; the token of a launch is used up."""
        if given is None:
            return False
        used = [one for one in self._launches if equal(given, one)]
        self._launches = [one for one in self._launches if one not in used]
        return bool(used) or equal(given, self.token) or self.address.redeem(given)

    def knows_cookie(self, cookies: Mapping[str, str]) -> bool:
        """Check whether the secret is among the cookies."""
        return equal(cookies.get(self.cookie, ""), self._secret)

    def cookie_header(self) -> str:
        """Return the cookie; without a path it belongs to the page's folder, as proxies need."""
        return f"{self.cookie}={self._secret}; HttpOnly; SameSite=Strict"


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
        raise InputError("allow_origin", "scheme://host[:port] without a path", repr(origin))
    return origin
