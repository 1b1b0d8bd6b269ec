"""Fixtures shared by the tests of the studies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data sets, or skip the test if it does not exist."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ORBICAL_DATA", beside))
    if not folder.is_dir():
        pytest.skip("real data not found: set ORBICAL_DATA to their folder")
    return folder


@pytest.fixture(scope="module", autouse=True)  # ends before a test elsewhere begins
def sketched_figures() -> Iterator[None]:
    """Draw figures once, coarsely, without a layout, which takes most of the time of a page."""

    def sketch(self: Figure, path: Path, **_: Any) -> None:
        self.set_layout_engine("none")
        self.set_dpi(20)
        # `savefig` would draw everything once more to measure what it then cuts off.
        FigureCanvasAgg(self).print_png(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", sketch)
        yield
