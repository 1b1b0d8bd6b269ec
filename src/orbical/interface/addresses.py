"""The address of a view: in a private file of the user, so that links outlive the server."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

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


def equal(given: str, known: str) -> bool:
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
        kept = [one for one in self._tickets if not equal(given, one)]
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
