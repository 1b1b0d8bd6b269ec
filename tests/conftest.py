"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def pytest_configure() -> None:
    """Collect tests without collecting garbage: almost everything that is imported stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave the modules out of the garbage collections of the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def setpriority() -> Iterator[Any]:
    """Let no test wait for all others: long work of the view gives way to whatever else runs."""
    real = getattr(os, "setpriority", None)
    with pytest.MonkeyPatch.context() as patch:
        if real is not None:
            patch.setattr(os, "setpriority", lambda *_: None)
        yield real


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests remember from one run of a program to the next out of the user's folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, or a skip that says it is absent."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ORBICAL_DATA", beside))
    if not folder.is_dir():
        pytest.skip("real data absent: set ORBICAL_DATA to the folder that holds it")
    return folder


@pytest.fixture
def sketched_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures once, coarsely, without a layout: for tests of the programs that save them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def sketch(self: Figure, path: Path, **_: Any) -> None:
        self.set_layout_engine("none")
        self.set_dpi(20)
        FigureCanvasAgg(self).print_png(path)

    monkeypatch.setattr(Figure, "savefig", sketch)


@pytest.fixture(scope="session")
def own_task() -> ModuleType:
    """The example of a task of one's own, as a module."""
    path = Path(__file__).resolve().parents[1] / "examples" / "own_task.py"
    spec = importlib.util.spec_from_file_location("own_task", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def own_models(own_task: ModuleType) -> dict[str, Any]:
    """The two models of that example, fitted."""
    import torch

    torch.manual_seed(0)
    training = own_task.scenes(40, seed=0)
    return {
        "places": own_task.fitted(own_task.OfPlaces(), *training),
        "contrast": own_task.fitted(own_task.OfContrast(), *training),
    }
