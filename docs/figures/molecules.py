"""Make the table and the picture of the guide to potentials.

    python docs/figures/molecules.py

audits three calculators on six molecules at 256 rotations (a minute on one core), prints what
`orbical scan --task atoms` prints, and writes what the view shows of it to docs/guide/img.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from ase.build import molecule
from ase.calculators.emt import EMT
from headless import launched
from PIL import Image

import orbical as ob
from orbical.cli.scan_summaries import print_audit
from orbical.interface.server import Server
from orbical.interface.session import Session

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "guide" / "img" / "audit.png"
NAMES = {
    "H2O": "water",
    "CH4": "methane",
    "NH3": "ammonia",
    "CO2": "carbon dioxide",
    "CH3OH": "methanol",
    "CH3CH2OH": "ethanol",
}
PLACE = "sample=5&element=53&models=tb,rounded"


def audited(folder: Path) -> Any:
    """Scan the molecules of the guide."""
    sys.path.insert(0, str(ROOT / "examples"))
    from audit_calculator import Rounded, calculator

    molecules = [molecule(formula) for formula in NAMES]
    for one, name in zip(molecules, NAMES.values(), strict=True):
        one.info["name"] = name
    return ob.scan(
        {"tb": calculator, "rounded": Rounded(), "emt": EMT()},
        molecules,
        group="rotations3d:256",
        task="atoms",
        keep="inputs",
        out=folder / "run.zarr",
    )


def pictured(scan: Any) -> None:
    """Serve a scan, and keep what a browser shows of it."""
    from playwright.sync_api import sync_playwright

    server = Server(Session({"audit": scan}), port=0)
    server.start()
    with sync_playwright() as driver:
        browser = launched(driver)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        page.goto(f"{server.url}#{PLACE}")
        for name in ("aggregate", "embedding", "individual", "input", "detail"):
            page.wait_for_selector(f".section.{name}[data-state=ready]", timeout=60_000)
        page.wait_for_timeout(900)
        seen = page.screenshot()
        browser.close()
    server.stop()
    picture = Image.open(io.BytesIO(seen)).convert("RGB")
    # kmeans: without it the ground of the page takes another tint.
    few = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1)
    few.save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}  {PICTURE.stat().st_size // 1024} kB")


def main() -> None:
    """Audit, print, and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        scan = audited(Path(folder))
        os.environ["COLUMNS"] = "170"
        print_audit(scan)
        pictured(scan)


if __name__ == "__main__":
    main()
