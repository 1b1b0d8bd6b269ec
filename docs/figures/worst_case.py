"""Make the picture of the view in the guide to the worst case.

    python docs/figures/worst_case.py

scans 60 test digits with the two networks that ship, searches between the scanned angles, and
writes what a Chromium shows to docs/guide/img.
"""

from __future__ import annotations

import io
from pathlib import Path

from headless import launched
from PIL import Image
from playwright.sync_api import sync_playwright

import orbical as ob
from orbical.interface.server import Server
from orbical.interface.session import Session
from orbical.zoo import digits

TARGET = Path(__file__).resolve().parents[1] / "guide" / "img" / "worst-case-view.png"


def main() -> None:
    """Take the picture at the digit for which the scan misses most."""
    images, labels = ob.datasets.mnist(split="test")
    nets = {name: digits.load(name) for name in ("plain", "augmented")}
    data = images[:60], labels[:60]
    keep = ("inputs", "probabilities")
    scan = ob.scan(nets, data, group="rotations:12", task="classification", keep=keep)
    found = ob.worst_case(nets, scan)
    missed = found["missed"].sel(model="augmented")
    sample = int(missed.argmax("sample"))
    place = found.sel(model="augmented", sample=sample)
    print(f"sample {sample}: {float(place['missed']):.2f} worse at {float(place['angle']):.1f}")
    server = Server(Session({"digits": scan}, worst=found), port=0)
    server.start()
    with sync_playwright() as driver:
        browser = launched(driver)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        page.goto(f"{server.url}#sample={sample}&element={int(place['nearest'])}")
        for section in ("aggregate", "embedding", "calibration", "individual", "input", "detail"):
            page.wait_for_selector(f".section.{section}[data-state=ready]")
        page.wait_for_selector(".individual .worst-mark")
        page.wait_for_timeout(1000)
        Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(TARGET, optimize=True)
        browser.close()
    server.stop()


if __name__ == "__main__":
    main()
