"""The static files of the page, read from the package when the server starts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}


@dataclass(frozen=True)
class StaticFile:
    """A file of the page: its content, MIME type and ETag."""

    content: bytes
    type: str
    tag: str


def read_static_files() -> dict[str, StaticFile]:
    """Read every file of the page, by path below `web/`."""
    found: dict[str, StaticFile] = {}
    _gather(files("orbical.interface") / "web", "", found)
    return found


def _gather(folder: Traversable, prefix: str, found: dict[str, StaticFile]) -> None:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        suffix = f".{entry.name.rpartition('.')[2]}"
        if entry.is_dir():
            _gather(entry, f"{path}/", found)
        elif suffix in TYPES:
            content = entry.read_bytes()
            tag = hashlib.sha256(content).hexdigest()[:16]
            found[path] = StaticFile(content, TYPES[suffix], f'"{tag}"')
