"""Make the moving picture of the README: a digit that is dragged along its orbit.

    python docs/figures/drag.py

serves 300 test digits with the two networks that ship, drags the handle of the orbit once around
in a Chromium, and writes docs/images/drag.webp.
"""

from __future__ import annotations

import io
import math
import tempfile
from pathlib import Path
from typing import Any

from headless import launched
from PIL import Image

import orbical as ob
from orbical.interface.server import Server
from orbical.interface.session import Session

PATH = Path(__file__).resolve().parents[1] / "images" / "drag.webp"
SIZE = {"width": 1440, "height": 900}
WIDTH, STEPS, PAUSE_MS = 960, 40, 90


def drag(page: Any) -> list[Image.Image]:
    """Drag the handle around the circle of one sample, and take a picture at each step."""
    rings = page.locator(".individual .orbit-plot svg circle[fill=none]").all()
    box = max((ring.bounding_box() for ring in rings), key=lambda one: one["width"])
    x, y, radius = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.4 * box["width"]
    pictures = []
    page.mouse.move(x, y - radius)
    page.mouse.down()
    for step in range(STEPS):
        angle = 2 * math.pi * step / STEPS
        page.mouse.move(x - radius * math.sin(angle), y - radius * math.cos(angle))
        page.wait_for_timeout(350)
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        height = round(shot.height * WIDTH / shot.width)
        pictures.append(shot.resize((WIDTH, height), Image.Resampling.LANCZOS))
    page.mouse.up()
    return pictures


def main() -> None:
    """Serve the digits, drag, and write the picture."""
    from playwright.sync_api import sync_playwright

    networks = {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES}
    images, labels = ob.datasets.mnist("test")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        scan = ob.scan(
            networks,
            (images[:300], labels[:300]),
            group="rotations:72",
            task="classification",
            out=Path(folder) / "digits.zarr",
            keep=("probabilities", "inputs"),
            progress=False,
        )
        server = Server(Session({"digits": scan}, models=networks), port=0)
        server.start()
        browser = launched(driver)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(f"{server.url}#sample=2")
        for name in ("aggregate", "embedding", "individual", "input", "detail"):
            page.wait_for_selector(f".section.{name}[data-state=ready]", timeout=120_000)
        page.wait_for_timeout(900)
        first, *rest = drag(page)
        browser.close()
        server.stop()
    first.save(
        PATH, save_all=True, append_images=rest, duration=PAUSE_MS, loop=0, quality=60, method=6
    )
    print(f"{PATH.name}: {len(rest) + 1} frames, {PATH.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
