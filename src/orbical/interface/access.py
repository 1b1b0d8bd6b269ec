"""Access control: the secret address of a view, and what is checked on every request and socket.

A page of another site can make a browser send requests to this machine, but it has neither the
token nor the cookie. Browsers send a cookie to every port of a host, so that other programs on
this machine could read it: the page lies in a folder with a random name, and the cookie goes to
this folder only. A site that points its own name here (DNS rebinding) is recognized by the host
name in its requests. The address is kept in a private file of the user, so that links outlive the
server.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import InputError

try:
    import fcntl
except ImportError:  # pragma: no cover - no such locks on this system
    fcntl = None  # type: ignore[assignment]

MOST_TICKETS = 20
"""The most links that were copied and not opened; older ones end."""
_MOST_BYTES = 1 << 14
_SECRET = re.compile(r"[\w-]{12,64}")


def private_folder(folder: Path) -> Path | None:
    """Make a folder that only this user can enter; None if it is another's, a link, or open."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not hasattr(os, "getuid"):
            return folder
        about = folder.lstat()
        own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
        return folder if own and not about.st_mode & 0o077 else None
    return None


def _equal_tokens(given: str, known: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode(), known.encode())


class Address:
    """Port, folder and token of a view, and the tickets of links that were copied.

    With stores they are kept in a file of mode 600, and stay the same when a server of these stores
    is started again. A running server holds a lock on the file; a second one has secrets of its
    own, which are not kept.

    Args:
        stores: The paths of the scans; none for an address that ends with the server.

    Example:
        >>> address = Address()
        >>> address.redeem(address.ticket()), address.redeem("another")
        (True, False)
    """

    def __init__(self, stores: Iterable[Path] = ()) -> None:
        self.port: int | None = None
        self._file: int | None = None
        self.renew()
        names = sorted(map(str, stores))
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        if not names or fcntl is None:
            return
        folder = private_folder(Path(home) / "orbical" / "views")
        if folder is not None:
            key = hashlib.sha256("\0".join(names).encode()).hexdigest()[:24]
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                self._open(folder / f"{key}.json")

    def renew(self) -> None:
        """Take new secrets: earlier links open nothing any more."""
        self.folder = secrets.token_urlsafe(9)
        self.token = secrets.token_urlsafe(24)
        self._tickets: list[str] = []

    def use(self, port: int, taken: bool = False) -> None:
        """Keep the port; if another program has taken the earlier one, its links are given up."""
        if taken:
            self.renew()
        self.port = port
        self._save()

    def ticket(self) -> str:
        """Return a token for a link, which is valid once."""
        self._tickets = [*self._tickets, secrets.token_urlsafe(24)][-MOST_TICKETS:]
        self._save()
        return self._tickets[-1]

    def redeem(self, given: str) -> bool:
        """Check a ticket, and use it up."""
        kept = [one for one in self._tickets if not _equal_tokens(given, one)]
        used = len(kept) < len(self._tickets)
        if used:
            self._tickets = kept
            self._save()
        return used

    def close(self) -> None:
        """Let another server of the same stores have the address."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        about = os.fstat(file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return
        self._file = file
        if about.st_uid != os.getuid() or about.st_mode & 0o077:  # others may have read it
            os.fchmod(file, 0o600)
            return
        found = json.loads(os.pread(file, _MOST_BYTES, 0))
        port, folder, token, tickets = (found[key] for key in ("port", "folder", "token", "once"))
        if all(map(_SECRET.fullmatch, (folder, token, *tickets))) and type(port) is int:
            self.port, self.folder, self.token, self._tickets = port, folder, token, tickets

    def _save(self) -> None:
        if self._file is None:
            return
        kept = {"port": self.port, "folder": self.folder, "token": self.token}
        text = json.dumps({**kept, "once": self._tickets}).encode()
        with contextlib.suppress(OSError):  # without space the address ends with the server
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text, 0)


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
        given = f"{host!r}, which others on the network can reach"
        remedy = "pass exposed=True (--expose) to allow it"
        raise InputError("host", "127.0.0.1", given, remedy=remedy)


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
        used = [one for one in self._launches if _equal_tokens(given, one)]
        self._launches = [one for one in self._launches if one not in used]
        return bool(used) or _equal_tokens(given, self.token) or self.address.redeem(given)

    def knows_cookie(self, cookies: Mapping[str, str]) -> bool:
        """Check whether the secret is among the cookies."""
        return _equal_tokens(cookies.get(self.cookie, ""), self._secret)

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
