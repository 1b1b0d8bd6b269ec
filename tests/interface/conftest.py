"""Small scans on disk, sessions on them, and a real server in a thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import orbical as ob
from orbical.interface import open_session
from orbical.interface.session import Session

sys.path.insert(0, str(Path(__file__).parent))  # for `talking`, beside this file

SAMPLES = 120


def linear_net(seed: int) -> torch.nn.Module:
    """A network that answers something, the same each time."""
    generator = torch.Generator().manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return net.eval()


@pytest.fixture(scope="session")
def nets() -> dict[str, torch.nn.Module]:
    """Two models."""
    return {"first": linear_net(0), "second": linear_net(1)}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, nets: dict[str, torch.nn.Module]) -> Path:
    """A folder with one scan, `digits.zarr`: four units of 32 samples, inputs kept."""
    images, labels = ob.datasets.digits()
    here = tmp_path_factory.mktemp("scans")
    ob.scan(
        nets,
        (images[:SAMPLES], labels[:SAMPLES]),
        group="rotations:24",
        task="classification",
        out=here / "digits.zarr",
        keep=("probabilities", "inputs"),
        batch_size=32,
        chunk=32,
        progress=False,
    )
    return here


@pytest.fixture(scope="session")
def digits(folder: Path) -> ob.Scan:
    """That scan."""
    return ob.load(folder / "digits.zarr")


@pytest.fixture(scope="session")
def scan() -> ob.Scan:
    """A smaller scan, of one model, in memory."""
    images, labels = ob.datasets.digits()
    return ob.scan(
        {"linear": linear_net(0)},
        (images[:90], labels[:90]),
        group="rotations:8",
        task="classification",
        keep=("inputs", "probabilities"),
        progress=False,
    )


@pytest.fixture(scope="module")
def serving() -> Iterator[Callable[..., SimpleNamespace]]:
    """Start real servers in threads: `serving(session)` gives server, base address and cookie."""
    from orbical.interface.server import Server

    running: list[Server] = []

    def start(session: object, **options: object) -> SimpleNamespace:
        server = Server(session, port=0, **options)  # type: ignore[arg-type]
        server.start()
        running.append(server)
        return SimpleNamespace(
            server=server,
            port=server.port,
            base=f"http://127.0.0.1:{server.port}",
            cookie=server.guard.cookie_header().partition(";")[0],
            folder=f"/{server.guard.folder}",
        )

    yield start
    for server in running:
        server.stop()
        assert not server.running, "the server did not end"


@pytest.fixture(scope="module")
def session(folder: Path) -> Session:
    """A session on that scan, without models."""
    return open_session(folder / "digits.zarr")


@pytest.fixture(scope="module")
def running(serving: Callable[..., SimpleNamespace], session: Session) -> SimpleNamespace:
    """A server of that session."""
    return serving(session)
