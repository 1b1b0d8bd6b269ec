"""The HTML page of a report: style, script and data in one file, or data in files beside it.

The page's content security policy forbids it to load or send anything: it may run its own script,
use its own style and show images that it made. Data in files beside it are scripts, because a page
opened from a folder may load scripts but not read files.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from ..bundling import bundle, icon, web_sources, web_style
from .encoding import as_text

MOST_BYTES = 20_000_000
"""A larger report is a folder: browsers are slow to read one large file."""
ENTRY = "hosts/static.js"

Heading = tuple[str, list[str]]
"""The title of a page, and the lines of its footer."""

_MADE_BY = '<meta name="generator" content="orbical">'
_PAGE = Path(__file__).with_name("page.html")


def page_text(heading: Heading, data: str, from_files: bool, runtime: str = "") -> str:
    """Return the HTML of the page around its data; with a runtime, it may run WebAssembly."""
    title, footer = heading
    program = "\n" + bundle(ENTRY, web_sources()).replace("</script", "<\\/script")
    style = web_style()
    sources = f"{_hash(program)} 'self' file:" if from_files else _hash(program)
    if runtime:
        sources += f" {_hash(runtime)} 'wasm-unsafe-eval'"
        data += f'<script type="module">{runtime}</script>\n'
    policy = (
        f"default-src 'none'; script-src {sources}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.read_text("utf-8").format(
        policy=policy,
        made_by=_MADE_BY,
        title=html.escape(title),
        icon=f"data:image/svg+xml,{quote(icon())}",
        style=style,
        footer="".join(f"<p>{html.escape(line)}</p>" for line in footer),
        data=data,
        program=program,
    )


def single_page(heading: Heading, parts: Mapping[str, bytes], runtime: str = "") -> str:
    """Return a report as one page.

    >>> text = single_page(("digits", ["made today"]), {"state": b"..."})
    >>> "<title>digits</title>" in text, 'id="part:state"' in text
    (True, True)
    """
    data = "".join(
        f'<script type="text/plain" id="part:{html.escape(name)}">{as_text(part)}</script>\n'
        for name, part in parts.items()
    )
    return page_text(heading, data, False, runtime)


def write_folder(
    path: Path, heading: Heading, parts: Mapping[str, bytes], runtime: str = ""
) -> Path:
    """Write a report as a folder: the page `index.html`, and `parts/` with its data."""
    remove(path)
    (path / "parts").mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        text = (
            "(globalThis.orbicalParts ??= {})"
            f"[{json.dumps(name)}] = {json.dumps(as_text(part))};\n"
        )
        (path / "parts" / file_name(name)).write_text(text, "ascii")
    page = path / "index.html"
    page.write_text(page_text(heading, "", True, runtime), "utf-8")
    return page


def is_report(path: Path) -> bool:
    """Check whether a folder is a report that `write_folder` wrote."""
    page = path / "index.html"
    if not (page.is_file() and (path / "parts").is_dir()):
        return False
    with page.open("r", encoding="utf-8", errors="replace") as text:
        return _MADE_BY in text.read(4096)


def remove(path: Path) -> None:
    """Delete an earlier report, and nothing else in its folder."""
    if not is_report(path):
        return
    (path / "index.html").unlink()
    shutil.rmtree(path / "parts")
    if not any(path.iterdir()):
        path.rmdir()


def file_name(part: str) -> str:
    """Return the file name of a part, as the page does.

    >>> file_name("values/score")
    'values_score.js'
    """
    return re.sub(r"[^A-Za-z0-9_.-]", "_", part) + ".js"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
