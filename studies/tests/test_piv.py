"""The particle-flow study: its measures against known flows, its claims, and all of it in small."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from orbical import scan
from orbical.datasets import particle_pairs
from orbical.errors import InputError
from orbical.tasks import Flow
from orbical_studies.__main__ import main
from orbical_studies.data import solved_flows
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.piv import measures, report, scans, six_kinds, study, training_means, trainings
from orbical_studies.piv.settings import GROUP, MODELS, Settings


def stretching(rate: float, size: int = 33) -> Tensor:
    """Return the flow u = rate * x along x."""
    x = (torch.arange(size) - (size - 1) / 2).expand(size, size)
    return torch.stack([rate * x, torch.zeros(size, size)])[None]


def test_self_advection_of_a_stretching_flow() -> None:
    """u . grad u = rate^2 x."""
    found = measures.self_advection(stretching(0.2))[0]
    np.testing.assert_allclose(found[16], 0.04 * np.abs(np.arange(33) - 16), atol=1e-5)


@pytest.mark.parametrize("share", [-0.5, 0.5])
def test_flow_carried_to_another_time_of_a_stretching_flow(share: float) -> None:
    """F = rate (x - share F), so F = rate x / (1 + share rate)."""
    found = measures.carried(stretching(0.2), share)[0, 0, 16, 8:-8]
    expected = 0.2 * (np.arange(33) - 16)[8:-8] / (1 + 0.2 * share)
    # Bicubic reading is not exact even for linear fields; carrying moves them by up to 0.16.
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_frames_tell_the_time_of_their_truth() -> None:
    data = particle_pairs(4, size=128, kinds=["turbulence"], seed=2)
    rows = pd.DataFrame(measures.truth_time_rows("generated", data))
    found = rows.groupby("share")["likeness"].mean()
    assert found.idxmax() == 0.5
    assert report.best_time(found, found.index) == pytest.approx(0.5, abs=0.05)
    assert np.isnan(report.best_time([1.0, 1.0, 1.0], [0.0, 0.5, 1.0]))


def test_numbers_that_change_slowly_over_the_map_are_told_by_the_neighbors() -> None:
    place = np.random.default_rng(0).normal(size=(40, 2))
    smooth = np.column_stack([place, place[:, 0]])
    rough = np.column_stack([place, np.random.default_rng(1).normal(size=40)])
    assert report.with_neighbors(smooth) > 0.9
    assert abs(report.with_neighbors(rough)) < 0.4
    assert np.isnan(report.with_neighbors(np.column_stack([place, np.ones(40)])))
    assert np.isnan(report.with_neighbors(smooth[:3]))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InputError, match="pairs: expected at least 1, got 0"):
        Settings(pairs=0)
    with pytest.raises(InputError, match="size: expected a multiple of 16, got 50"):
        Settings(size=50)


def moving_right(by: float) -> Callable[[Tensor], Tensor]:
    """Return a model that answers the same flow to every pair."""

    def model(pairs: Tensor) -> Tensor:
        flow = torch.zeros(len(pairs), 2, *pairs.shape[-2:])
        flow[:, 0] = by
        return flow

    return model


BIAS = dict(zip(MODELS, (0.0, 1.0, 2.0, 4.0), strict=True))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole command with four cheap models: one answers nothing, the others move rightwards."""
    folder = tmp_path_factory.mktemp("study")
    few = ["--pairs", "1", "--size", "32", "--angles", "4", "--turned", "1", "--no-real"]
    few += ["--seeds", "2", "--steps", "1", "--view", "32", "--batch", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scans, "estimators", lambda: {n: moving_right(by) for n, by in BIAS.items()})
        short = partial(solved_flows.plane_flows, 2, viscosity=1e-3, size=64, steps=2)
        for kind in solved_flows.SOLVERS:
            patch.setitem(solved_flows.SOLVERS, kind, short)
        main(["piv", *few, "--results", str(folder), "--page", str(folder / "piv.md")])
    return folder


def test_a_constant_answer_has_the_gap_that_it_must(small: Path) -> None:
    """Over D4 x time reversal the un-moved answers point along all axes: their mean is 0."""
    rows = Results(small)["samples"]
    bias = rows["model"].map(BIAS)
    assert np.allclose(rows["gap"], bias, atol=1e-5)
    assert np.allclose(rows["gap_plane"], bias, atol=1e-5)
    assert np.allclose(rows["time_difference"], 2 * bias, atol=1e-5)
    assert np.allclose(rows["consensus_error"], rows["speed"], rtol=1e-4)
    assert np.allclose(rows[rows["model"] == "farneback"]["error_spread"], 0, atol=1e-5)


def test_a_constant_answer_is_judged_by_its_gap_on_the_six_kinds(small: Path) -> None:
    rows = Results(small)["six-kinds"]
    assert rows.groupby("kind").size().tolist() == [2 * 4] * 6
    assert np.allclose(rows["gap"], rows["model"].map(BIAS), atol=1e-5)
    found = six_kinds.decided(rows)
    assert found["holds"] == {"nearly": True, "less": True, "mended": False, "spared": False}
    assert found["pairs"] == 12


def test_the_command_writes_results_page_and_figures(small: Path) -> None:
    for name in ("samples", "elements", "rotations", "truth-time"):
        committed = Paths.in_checkout("piv").results / f"{name}.csv"
        header = committed.read_text().partition("\n")[0]
        assert (small / f"{name}.csv").read_text().partition("\n")[0] == header
    assert len(list((small / "piv").glob("*.png"))) == 7
    assert "| generated | uniform | 1 | " in (small / "piv" / "protocol.md").read_text()


def test_each_training_is_asked_about_each_pair(small: Path) -> None:
    rows = Results(small)["trainings"]
    assert rows.groupby(["model", "training"]).size().tolist() == [6] * 4
    assert (rows["error_best"] <= rows["error_over_orbit"]).all()
    assert (rows["error_over_orbit"] <= rows["error_worst"]).all()


def test_a_rule_holds_only_if_it_holds_in_every_set_and_training() -> None:
    once = training_means.shipped(Results(Paths.in_checkout("piv").results))
    rows = pd.concat([once, once.assign(training=1)], ignore_index=True)
    assert training_means.holds(rows)["mended"]
    spoiled = rows.query("training == 1 and set == 'generated' and model == 'symmetric'").index
    rows.loc[spoiled, "gap"] *= 10
    assert not training_means.holds(rows)["mended"]
    assert training_means.holds(rows)["less_equivariant"]


def test_means_over_pairs_of_gaps_are_root_mean_squares() -> None:
    rows = pd.DataFrame({"set": "s", "training": 0, "model": "m", "name": ["a", "b"]})
    rows = rows.assign(gap=[3.0, 4.0], gap_plane=0.0, rmse=0.0, error=[3.0, 4.0])
    found = training_means.by_training(rows).iloc[0]
    assert found["gap", "m"] == pytest.approx(12.5**0.5)
    assert found["error", "m"] == 3.5
    value, low, high = training_means.interval(rows, "error", "m", "s")
    assert value == 3.5
    assert low < 3 < 4 < high  # two pairs say little


def test_the_measures_of_trainings_are_those_of_the_scan() -> None:
    """A network that moves to the right, asked directly and by a scan."""
    net = moving_right(2.0)
    data = particle_pairs(2, size=32, seed=1)
    found = trainings.measured(net, data)
    scanned = scan(net, (data["pair"], data["flow"]), group=GROUP, task=Flow(), progress=False).data
    assert np.allclose(found["error_worst"], scanned["score"].values[0].max(1), atol=1e-4)
    assert np.allclose(found["error_over_orbit"], scanned["score"].values[0].mean(1), atol=1e-4)
    assert np.allclose(found["gap"], scanned["invariance_gap"].values[0], atol=1e-4)
    assert np.allclose(found["consensus_error"], scanned["consensus_vs_truth"][0], atol=1e-4)


def test_rotations_are_seen_through_a_view_that_stays_inside(small: Path) -> None:
    rows = Results(small)["rotations"]
    assert set(rows["view"]) == {32}
    assert set(rows["side"]) == {46}
    assert set(rows["angle"]) == {0, 90, 180, 270}


def verdicts(page: str) -> dict[str, str]:
    """Return the verdict on the networks of the package of every claim of a page."""
    lines = [line.split("|") for line in page.splitlines() if line.count("|") == 7]
    return {cells[1].strip(): cells[5].strip() for cells in lines}


def test_claims_have_to_hold_in_every_set_of_pairs(tmp_path: Path) -> None:
    paths = Paths.in_checkout("piv")
    committed, changed = Results(paths.results), Results(tmp_path)
    rows = committed["samples"].copy()
    worse = {
        "farneback": {"gap_plane": 1.0, "time_difference": 0.1, "gap": 0.01, "milliseconds": 1e3},
        "dis": {"error": 0.01, "error_worst": 9.0, "gap": 9.0, "consensus_error": 9.0},
        "directed": {"error_forward_truth": 0.05, "error_spread": 0.1, "consensus_likeness": 0.1},
        "symmetric": {"error_forward_truth": 0.2, "error": 0.04, "consensus_likeness": 1.0},
    }
    for model, changes in worse.items():
        here = (rows["set"] == "Cai et al.") & (rows["model"] == model)
        rows.loc[here, list(changes)] = list(changes.values())
    rows.loc[rows["set"] == "Cai et al.", "hard_share"] = 0.3
    rows.loc[rows["kind"] == "uniform", "error"] *= np.where(rows["model"] == "farneback", 99, 1)[
        rows["kind"] == "uniform"
    ]
    changed.write("samples", rows)
    for name in ("rotations", "truth-time", "pixels", "trainings", "laboratory", "six-kinds"):
        changed.write(name, committed[name])
    before = verdicts(paths.protocol.read_text("utf-8"))
    after = verdicts(parted(render(study, changed, paths.template), study.name)[1])
    claims = {claim for claim, verdict in before.items() if verdict == "confirmed"}
    assert len(claims) == 16
    held = {claim for claim in claims if after[claim] == "confirmed"}
    assert held == {
        "The learned model is less equivariant.",  # Farneback's gap is smaller still
        "Here: what the map shows first is how large the error is.",
    }
