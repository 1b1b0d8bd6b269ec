"""Intervals and comparisons say where their coverage was not shown, and elsewhere nothing."""

from __future__ import annotations

import re

import interval_tables as worlds
import numpy as np
import pytest
import torch

import orbical as ob
from orbical import calibration

ROWS = {row.name.removeprefix("calibration."): row for row in worlds.rows()}
RARE, FEW = ("rare failures",), ("few samples",)
UNBOUNDED = [
    *("squared_error", "gaussian_nll", "gaussian_crps", "gence", "gence_sq"),
    *("regression_esd", "regression_esd_normalized"),
]
OUTSIDE = {
    "interval ece": RARE,
    "interval ece_l2": RARE,
    "interval ece_debiased": RARE,
    "interval mmce_squared": RARE,
    "interval mmce": ("sharp", *RARE),
    "reliability_curve band": ("sharp", *RARE),
    "brier_part_intervals brier_refinement": (*RARE, *FEW),
    **{f"regression_interval {name}": RARE for name in UNBOUNDED},
    "regression_interval gence_sq_fiber": FEW,
    "regression_table aleatoric_bleed": FEW,
    "bootstrap_interval": (*RARE, *FEW),
    "unbounded_mean_interval": (*RARE, *FEW),
    "interval_of_sums": (*RARE, *FEW),
    "compare ece": RARE,
}
"""The rows of `docs/intervals.md` with limits of use, and the worlds that are beyond them."""
UNLIMITED = re.compile("regression_|unbounded|interval_of_sums")
"""Rows about errors without bounds, which need more samples."""


@pytest.fixture(autouse=True)
def only_cautions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "RESAMPLES", 20)
    for truth in ("pair_truth", "outputs_truth", "regression_truth"):
        monkeypatch.setattr(worlds, truth, lambda *_: 0.0)


def share_with_caution(name: str, world: str, draws: int = 100) -> float:
    rng = np.random.default_rng(7)
    return float(np.mean([ROWS[name].cells[world](rng)[1] != "" for _ in range(draws)]))


@pytest.mark.parametrize(
    ("name", "world"), [(name, world) for name, those in OUTSIDE.items() for world in those]
)
def test_a_caution_stands_where_coverage_is_out_of_range(name: str, world: str) -> None:
    assert share_with_caution(name, world) >= 0.8


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_usual_calibrated_model_has_no_caution(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(worlds.FEW, "calibrated", 1200 if UNLIMITED.search(name) else 500)
    assert share_with_caution(name, "calibrated", 50) <= 0.1


def test_every_result_prints_its_caution() -> None:
    right = np.arange(200) >= 2
    found = calibration.interval("ece", np.full(200, 0.99), right, resamples=20)
    expected = "2 wrong (or correct) predictions, fewer than 6: the interval may be too short"
    assert found.caution == expected
    model = (np.full(200, 0.99), right)
    results = [
        found,
        calibration.compare("ece", model, model, resamples=20),
        calibration.reliability_curve(*model, resamples=20),
        calibration.bootstrap_interval(right[:10].astype(float), resamples=20),
        calibration.unbounded_mean_interval(right[:10].astype(float)),
        calibration.compare_means(right[:50].astype(float), right[:50].astype(float)),
    ]
    for result in results:
        assert result.caution
        assert result.caution in repr(result)
        assert result.caution in str(result)


def test_each_row_has_its_own_caution() -> None:
    right = np.arange(200) >= np.array([[2], [20]])
    found = calibration.interval("ece", np.full((2, 200), 0.95), right, resamples=20)
    assert found.caution[0].startswith("2 wrong")
    assert found.caution[1] == ""
    assert found.caution[0] in str(found)
    some = np.stack([np.full(1200, 3.0), np.arange(1200.0)])
    assert [bool(text) for text in calibration.unbounded_mean_interval(some).caution] == [
        True,
        False,
    ]


@pytest.fixture(scope="module")
def sharp_scan() -> ob.Scan:
    """A model that is wrong for two samples of forty, at three of four positions."""
    images, labels = ob.datasets.digits()
    images, labels = images[:40], labels[:40]

    def model(x: torch.Tensor) -> torch.Tensor:
        place = (x[:, None] - images[None]).flatten(2).abs().sum(-1).argmin(1)
        known = (x - images[place]).flatten(1).abs().sum(1) < 1e-3
        right = known | (place > 1)
        answer = torch.where(right, labels[place], (labels[place] + 1) % 10)
        return 4.0 * torch.nn.functional.one_hot(answer, 10)

    return ob.scan(model, (images, labels), group="cyclic:4", task="classification", progress=False)


def test_a_caution_shows_everywhere_its_number_does(sharp_scan: ob.Scan) -> None:
    table = calibration.scan_table(sharp_scan, resamples=20)
    rows = table[table["measure"] == "ece"].set_index("place")["caution"]
    assert {place for place in rows.index if rows[place]} == {"identity", "mean", "worst"}
    along = calibration.along_orbit(sharp_scan, "ece", interval=True, resamples=20)
    assert along["caution"].dims == along.dims
    mean = calibration.mean_over_orbit(sharp_scan, "ece", interval=True, resamples=20)
    assert mean["caution"].item() == rows["mean"]
    judged = calibration.verdict(sharp_scan, "ece", maximum=0.5, resamples=20)["model"]
    (checked,) = ob.check(sharp_scan, max_worst_ece=0.5, resamples=20)
    assert judged.caution == checked.caution != ""
    assert checked.caution in str(checked)
    assert judged.caution in str(judged)
