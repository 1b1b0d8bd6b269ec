"""Failures between the elements of a scan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import orbical as ob
from orbical_studies.hidden_failures import count_failures, search_failures, with_shares

PLACES = ["identity", "grid", "refined"]


def test_a_hidden_failure_is_right_at_all_scanned_elements_and_wrong_at_the_worst_case() -> None:
    right = [[1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 0]]
    means = {name: ("place", [0.9, 0.6, 0.5]) for name in ("mean", "mean_low", "mean_high")}
    missed = {f"mean_missed{end}": 0.1 for end in ("", "_low", "_high")}
    found = xr.Dataset(
        {"correct": (("place", "sample"), right), **means, **missed}, {"place": PLACES}
    )
    row = count_failures(found, np.array([True, False, True, False]))
    counts = {name: row[name] for name in ("wrong_upright", "wrong_scanned", "wrong_found")}
    assert counts == {"wrong_upright": 1, "wrong_scanned": 2, "wrong_found": 3}
    assert row["hidden"] == 1
    assert row["mean_grid"] == 0.6


class Blind(torch.nn.Module):
    """Tells class 1 only where an upright bar has turned by about 45 degrees to one side."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        at = torch.arange(images.shape[-1]) - (images.shape[-1] - 1) / 2
        turned = (images[:, 0] * at * at[:, None]).mean((1, 2))
        return torch.stack([torch.full_like(turned, 0.4), turned], 1)


def test_a_search_finds_what_quarter_turns_hide() -> None:
    images = torch.zeros(2, 1, 17, 17)
    images[..., 8] = 1.0
    data = images, torch.zeros(2, dtype=torch.long)
    task = ob.tasks.Classification()
    found = search_failures({"blind": Blind()}, data, "rotations:4", task)["blind"]
    assert (found["wrong_scanned"], found["hidden"], found["wrong_found"]) == (0, 2, 2)


def test_shares_have_intervals_of_all_rows_at_once() -> None:
    rows = with_shares(pd.DataFrame({"hidden": [0, 50, 5], "samples": [1000, 100, 100]}), 3)
    assert rows["holds"].tolist() == [True, False, False]
    assert rows["refuted"].tolist() == [False, True, False]
    alone = with_shares(pd.DataFrame({"hidden": [5], "samples": [100]}), 1)
    assert alone["high"].iloc[0] == pytest.approx(0.1118, abs=1e-4)
    assert rows["high"].iloc[2] > alone["high"].iloc[0]
