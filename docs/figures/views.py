"""Make the pictures of the interactive view in the guides to tasks.

    python docs/figures/views.py [NAME ...]

runs the scans of examples on real data, serves them, and writes what a Chromium shows to
docs/guide/img.
"""

from __future__ import annotations

import io
import runpy
import sys
from pathlib import Path

from headless import launched
from PIL import Image
from playwright.sync_api import sync_playwright

from orbical.interface.server import Server
from orbical.interface.session import Session

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {
    "segmentation-view": ("segmentation", "sample=3&element=10"),
    "depth-view": ("dense_regression", "sample=9&element=2&reference=consensus"),
    "crystals-view": ("crystals", "sample=1&element=3&reference=consensus"),
    "points-view": ("points", "sample=1&element=6"),
    "signals-view": ("signals", "sample=3&element=9"),
    "labels-view": ("galaxies", "sample=72&element=2"),
    "grades-view": ("galaxies", "sample=72&element=2", "ordinal"),
    "text-view": ("text_lines", "sample=8&element=7"),
    "volumes-view": ("volumes", "sample=1&element=18"),
}


def main() -> None:
    """Take each picture, or those that are named."""
    chosen = {name: PICTURES[name] for name in sys.argv[1:]} or PICTURES
    with sync_playwright() as driver:
        browser = launched(driver)
        for name, (example, place, *options) in chosen.items():
            _, scan = runpy.run_path(str(ROOT / "examples" / f"{example}.py"))["scanned"](*options)
            server = Server(Session({example: scan}), port=0)
            server.start()
            page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
            page.goto(f"{server.url}#{place}")
            for section in ("aggregate", "embedding", "individual", "input", "detail"):
                page.wait_for_selector(f".section.{section}[data-state=ready]")
            page.wait_for_timeout(2000)
            path = ROOT / "docs" / "guide" / "img" / f"{name}.png"
            Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(path, optimize=True)
            print(path.relative_to(ROOT))
            server.stop()
        browser.close()


if __name__ == "__main__":
    main()
