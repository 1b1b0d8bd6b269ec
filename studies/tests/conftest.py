"""Fixtures shared by the tests of the studies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data sets, or skip the test if it does not exist."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ORBICAL_DATA", beside))
    if not folder.is_dir():
        pytest.skip("real data not found: set ORBICAL_DATA to their folder")
    return folder
