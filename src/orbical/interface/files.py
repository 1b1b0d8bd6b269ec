"""The files of the page: a fixed list, read from the package when the server starts."""

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
class WebFile:
    """A file of the page: its bytes, type and the tag by which a browser knows it again."""

    content: bytes
    type: str
    tag: str


def web_files() -> dict[str, WebFile]:
    """Read every file of the page, by its path below `web/`."""
    found: dict[str, WebFile] = {}
    _gather(files("orbical.interface") / "web", "", found)
    return found


def _gather(folder: Traversable, prefix: str, found: dict[str, WebFile]) -> None:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        suffix = f".{entry.name.rpartition('.')[2]}"
        if entry.is_dir():
            _gather(entry, f"{path}/", found)
        elif suffix in TYPES:
            content = entry.read_bytes()
            tag = hashlib.sha256(content).hexdigest()[:16]
            found[path] = WebFile(content, TYPES[suffix], f'"{tag}"')
