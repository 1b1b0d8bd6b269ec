"""The Chromium that the pictures of the view are taken with."""

from __future__ import annotations

import shutil
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "chromium-headless-shell")


def launched(driver: Any) -> Any:
    """Start the installed Chromium, or that of playwright."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    return driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
