"""The static files of the page, read from the package when the server starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
    """A file of the page: its content and MIME type."""

    content: bytes
    type: str


def read_static_files() -> dict[str, StaticFile]:
    """Read every file of the page, by path below `web/`."""
    web = Path(__file__).with_name("web")
    return {
        path.relative_to(web).as_posix(): StaticFile(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(web.rglob("*"))
        if path.suffix in TYPES
    }


def icon() -> str:
    """Read the mark of the page, as SVG: an orbit with a point on it."""
    return Path(__file__).with_name("web").joinpath("icon.svg").read_text("utf-8").strip()
