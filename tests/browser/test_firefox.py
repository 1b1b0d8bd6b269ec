"""A handful of what the view does, in a real Firefox: puppeteer over WebDriver BiDi."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

_PUPPETEER = "25.16.0"


def _puppeteer() -> Path:
    """Return the module, kept beside other caches and fetched once, never in the repository."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "orbical" / f"puppeteer-{_PUPPETEER}"
    package = folder / "node_modules" / "puppeteer-core"
    if not package.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("puppeteer is not at hand: npm is not installed")
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run(
            [*command, f"puppeteer-core@{_PUPPETEER}"],
            capture_output=True,
            timeout=120,
            check=False,
        )
    if not package.is_dir():
        pytest.skip("puppeteer is not at hand: it could not be fetched")
    described = json.loads((package / "package.json").read_text("utf-8"))
    entry = described["exports"]["."]
    return package / (entry["import"] if isinstance(entry, dict) else entry)


@pytest.fixture(scope="module")
def seen(live_server: Any) -> dict[str, Any]:
    """What the script saw, all in one visit."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        pytest.skip("no firefox is installed")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = Path(__file__).with_name("firefox.mjs")
    command = [node, str(script), str(_puppeteer()), firefox, live_server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_the_page_opens_without_complaint(seen):
    assert seen["troubles"] == []
    assert seen["heading"] == "Image 2"


def test_keys_move_along_the_orbit(seen):
    assert "element=" in seen["moved"]


def test_the_stage_fills_the_window_and_zooms(seen):
    assert seen["stage"] == [0, 0, 1440, 900]
    assert seen["zoom"] == pytest.approx(1.5, abs=0.05)


def test_the_theme_is_switched(seen):
    assert {*seen["themes"]} == {"light", "dark"}
