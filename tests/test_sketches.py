"""Sketches of the guide, fenced as `py`: each runs with what its page calls the reader's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import orbical as ob

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.docs
NEEDS_MORE = {
    ("language-models", 0): "the weights of Gemma",
    ("molecules", 2): "two networks on packed structures",
    ("volumes", 1): "folders of NIfTI files",
    ("cluster", 0): "a file that its workers import; tests/scanning runs the like",
    ("cluster", 2): "Ray",
    ("faq", 0): "the weights of ResNet-50; the README has the same block, which is tested",
    ("faq", 1): "Lightning; tests/integrations runs the like",
}
"""Sketches that are not run, and what they need."""
SKETCHES = {
    (path.stem, number): block
    for path in sorted([*ROOT.glob("docs/guide/*.md"), ROOT / "docs" / "faq.md"])
    for number, block in enumerate(re.findall(r"```py\n(.*?)```", path.read_text("utf-8"), re.S))
}


class PerPixel(torch.nn.Module):
    """A value for each of some classes at each pixel."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.layer = torch.nn.Conv2d(1, outputs, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch)


def flat(size: int, outputs: int) -> torch.nn.Module:
    """Return a linear classifier of flattened inputs."""
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size, outputs))


def of_the_reader(page: str) -> dict[str, object]:
    """Return what a page calls the reader's own: a model, data, and what was made of them."""
    torch.manual_seed(0)
    images, labels = torch.rand(40, 1, 8, 8), torch.arange(40) % 3
    network = flat(64, 3)
    logits = torch.randn(200, 3)
    own: dict[str, object] = {"ob": ob, "images": images, "labels": labels, "network": network}
    own |= {"model": network, "logits": logits, "held_out_logits": logits}
    own |= {"held_out_labels": logits.argmax(1)}
    if page == "dense":
        own |= {"network": PerPixel(1), "maps": (images[:, 0] > 0.5).long(), "depth": images}
    elif page == "bounds":
        orbits = ob.bounds.OrbitTable.from_labels(
            [0, 0, 1, 1], [0, 1, 1, 1], confidence=[0.7, 0.7, 0.9, 0.9], predicted=[0, 0, 1, 1]
        )
        own |= {"x": torch.rand(40, 2).numpy(), "table": orbits}
    elif page == "molecules":
        build = pytest.importorskip("ase.build", reason="ase is not installed")
        from ase.calculators.emt import EMT

        crystals = [build.bulk("Cu", cubic=True)]
        crystals[0].rattle(0.05, seed=0)
        own |= {"calculator": EMT(), "molecules": [build.molecule("CH3OH")]}
        own |= {"EMT": EMT, "crystals": crystals}
    elif page in ("calibration", "decisions"):
        scan = ob.scan(
            {"plain": network},
            (images, labels),
            group="rotations:4",
            task="classification",
            keep="probabilities",
            progress=False,
        )
        own |= {"scan": scan, "labels": torch.arange(200) % 3}
    elif page == "points":
        sizes = range(4, 10)
        own |= {"clouds": [torch.rand(size, 3) for size in sizes]}
        own |= {"labels": [torch.arange(size) % 2 for size in sizes]}
        own |= {"values": [torch.rand(size) for size in sizes]}
        own |= {"model": lambda pos, mask: pos[..., :2], "charges": lambda pos, mask: pos[..., 0]}
    elif page == "labels":
        own |= {"marks": torch.rand(40, 3) > 0.5}
    elif page == "signals":
        own |= {"network": flat(32, 3), "signals": torch.rand(40, 1, 32)}
    elif page == "uncertainty":
        x = torch.rand(40, 5, 3)
        own |= {
            "x": x,
            "y": x.mean(1),
            "model": lambda x: (x.mean(1), 0.1 + x.std((1, 2))[:, None]),
        }
    elif page == "volumes":
        own |= {"network": flat(64, 3), "volumes": torch.rand(12, 1, 4, 4, 4)}
        own |= {"labels": labels[:12]}
    return own


@pytest.mark.parametrize("sketch", [key for key in SKETCHES if key not in NEEDS_MORE], ids=str)
def test_a_sketch_runs_with_what_the_reader_has(sketch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(SKETCHES[sketch], f"{sketch}", "exec"), of_the_reader(sketch[0]))


def test_every_sketch_that_is_not_run_exists():
    assert {*NEEDS_MORE} <= {*SKETCHES}
