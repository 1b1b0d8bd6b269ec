"""A part, a group, an action and a task of one's own in one file, from the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import orbical as ob

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_group.py"


def test_one_file_runs_through_scan_view_and_report(orbical, tmp_path, monkeypatch):
    shutil.copy(EXAMPLE, tmp_path / "boosted.py")
    with (tmp_path / "boosted.py").open("a", encoding="utf-8") as file:
        file.write("\n\nnet = Covariant()\ndata = decays(12, seed=1)\n")
    own, model = ("--task", "boosted:FourMomentum"), ("--model", "net=boosted:net")
    said = orbical(
        tmp_path, "scan", *model, "--data", "boosted:data", "--group", "boosts:2:5", *own,
        "--keep", "inputs", "--out", "run.zarr",
    )  # fmt: skip
    assert "error of the four-momentum" in said
    served = []
    monkeypatch.setattr("orbical.interface.server.serve", lambda one, browser: served.append(one))
    orbical(tmp_path, "view", "run.zarr", *model, *own, "--no-browser")
    place = {"kind": "place", "selection": {"sample": 3, "element": 1}}
    about, arrays = served[0].session.handle(place)
    assert about["live"]
    still = served[0].session.handle({"kind": "place", "selection": {"sample": 3}})[1]
    assert not np.allclose(arrays["input/values"], still["input/values"])
    orbical(tmp_path, "report", "run.zarr", *own, "--out", "run.html")
    assert (tmp_path / "run.html").stat().st_size > 100_000
    given = ("-d", "boosted:data", "-g", "boosts:2:5", "-t", "boosted:net")
    wrong = orbical(tmp_path, "scan", *model, *given, expect=2)
    assert "--task: expected a task, got 'boosted:net', a Covariant" in wrong


def test_maps_move_by_an_action_of_your_own(orbical, tmp_path):
    (tmp_path / "globes.py").write_text(
        """
import numpy as np, torch
import orbical as ob

@ob.actions.register
class OwnGlobe(ob.actions.Action):
    parts = ("plane",)

    def move(self, elements, x):
        x = x.expand(len(elements), *x.shape[1:])
        turn = elements.parts["plane"]
        columns = np.rint(np.arctan2(turn[:, 1, 0], turn[:, 0, 0]) / np.pi * x.shape[-1] / 2)
        return torch.stack([one.roll(int(by), -1) for one, by in zip(x, columns)])

maps = torch.rand(4, 1, 8, 8)
data = maps, 2 * maps
def net(x):
    return 2 * x
"""
    )
    orbical(
        tmp_path, "scan", "-m", "net=globes:net", "-d", "globes:data", "-g", "cyclic:8",
        "-t", "dense_regression", "--import", "globes", "--input", "OwnGlobe", "-o", "run.zarr",
    )  # fmt: skip
    assert float(ob.load(tmp_path / "run.zarr").data["score"].max()) == 0.0
