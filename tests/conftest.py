"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, or a skip that says it is absent."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ORBICAL_DATA", beside))
    if not folder.is_dir():
        pytest.skip("real data absent: set ORBICAL_DATA to the folder that holds it")
    return folder
