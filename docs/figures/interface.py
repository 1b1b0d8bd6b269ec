"""Make the pictures of the guide to the interface.

    python docs/figures/interface.py

scans 1,000 test digits with the two networks that ship (or takes the demo's scan where it is),
serves them, drives a Chromium through the tour and writes what it sees to docs/images. It prints
the numbers that the guide quotes.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from headless import launched

import orbical as ob
from orbical.interface.server import Server
from orbical.interface.session import Session
from orbical.zoo import digits

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1440, "height": 900}
SIX = "sample=2&element=30&of=plain"


def demo_scan(networks: dict[str, Any], folder: Path) -> Any:
    """Give the scan of the demo, made anew where there is none."""
    for place in ("scan.zarr", "digits.zarr"):
        if (ROOT / "orbical-demo" / place).is_dir():
            return ob.load(ROOT / "orbical-demo" / place)
    images, labels = ob.datasets.mnist(split="test")
    return ob.scan(
        networks,
        (images[:1000], labels[:1000]),
        group="rotations:72",
        task="classification",
        out=folder / "digits.zarr",
        keep=("probabilities", "inputs"),
    )


def save(name: str, picture: bytes) -> None:
    """Write a picture, packed as tightly as it can be with every color kept."""
    from PIL import Image

    path = IMAGES / f"{name}.png"
    Image.open(io.BytesIO(picture)).convert("RGB").save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} kB")


def settled(page: Any, fragment: str | None = None) -> None:
    """Open a view and wait until everything is drawn."""
    if fragment is not None:
        page.goto("about:blank")
        page.goto(f"{page.start}#{fragment}")
    for name in ("aggregate", "embedding", "calibration", "individual", "input", "detail"):
        page.wait_for_selector(f".section.{name}[data-state=ready]")
    page.wait_for_timeout(900)


def lasso(page: Any, corners: list[tuple[float, float]]) -> None:
    """Draw around points of the embedding, in shares of its width and height."""
    box = page.locator(".embedding .scatter").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.get_by_role("button", name="lasso").click()
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in [*places[1:], places[0]]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()
    page.mouse.move(5, 5)
    page.locator(".section.calibration", has_text=" of 1,000 images").wait_for()
    settled(page)


def tour(page: Any) -> None:
    """Take the pictures in the order of the guide."""

    def part(selector: str) -> bytes:
        return bytes(page.locator(selector).first.screenshot())

    settled(page, SIX)
    save("interface", page.screenshot())
    save("interface-individual", part(".one"))
    settled(page, "sample=2&order=variable")
    save("interface-aggregate", part(".aggregate"))
    settled(page, f"{SIX}&filter=label:6,9&color=label&metric=ece")
    save("interface-sixes-and-nines", page.screenshot())
    for row in page.locator(".measures li").all_inner_texts():
        print("sixes and nines at 150 degrees:", " ".join(row.split()))
    settled(page, "sample=2")
    box = page.locator(".embedding .scatter").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.3 * box["height"])
    page.wait_for_timeout(500)
    save("interface-hover", part(".embedding"))
    lasso(page, [(0.02, 0.3), (0.3, 0.3), (0.34, 0.98), (0.02, 0.98)])
    save("interface-lasso", page.screenshot())
    settled(page, "sample=2&element=36&reference=consensus")
    page.keyboard.press("x")
    page.wait_for_timeout(200)
    save("interface-export", page.screenshot(clip={"x": 960, "y": 0, "width": 480, "height": 340}))
    page.keyboard.press("Escape")
    page.emulate_media(color_scheme="dark")
    settled(page, f"{SIX}&filter=label:6,9&color=label")
    save("interface-dark", page.screenshot())


def main() -> None:
    """Serve the scan, and take the pictures."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    networks = {name: digits.load(name) for name in ("plain", "augmented")}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        scan = demo_scan(networks, Path(folder))
        server = Server(Session({"digits": scan}, models=networks), port=0)
        server.start()
        browser = launched(driver)
        page: Any = browser.new_page(viewport=SIZE, color_scheme="light")
        page.start = server.url
        tour(page)
        browser.close()
        server.stop()


if __name__ == "__main__":
    main()
