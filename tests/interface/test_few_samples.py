"""Scans of one to three samples: what cannot be said of so few is left out, the rest is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface import open_session


def few(count: int) -> ob.Scan:
    """Scan the first digits with one linear network."""
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    return ob.scan(
        {"net": net},
        (images[:count], labels[:count]),
        group="cyclic:4",
        task="classification",
        keep=("probabilities", "inputs"),
        progress=False,
    )


def test_the_mean_share_of_one_sample_may_be_almost_anything() -> None:
    _, one = open_session(few(1)).handle({"kind": "aggregate", "sequence": 1})
    assert np.isfinite(one["values"]).all()
    assert (one["high"] - one["low"] > 0.95).all()
    _, two = open_session(few(2)).handle({"kind": "aggregate", "sequence": 1})
    assert (two["high"] - two["low"] < one["high"] - one["low"]).all()


@pytest.mark.parametrize("count", [1, 3])
def test_a_report_needs_no_map(count: int, tmp_path: Path) -> None:
    path = ob.report(few(count), tmp_path / "few.html")
    assert path.is_file()
    assert ("1 sample ·" if count == 1 else "3 samples ·") in path.read_text("utf-8")


def test_differences_of_shares_are_written_as_shares() -> None:
    header, _ = open_session(few(1)).handle({"kind": "state", "sequence": 1})
    unit = {metric["name"]: metric["unit"] for metric in header["metrics"]}
    assert unit["ece"] == unit["ks"] == unit["smooth_ece"] == "share"
    assert unit["esd"] == "number"
