"""The particle-flow study: its measures against known flows, and the whole of it in small."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical.datasets import particle_pairs
from orbical.datasets.particle_seeding import Seeding
from orbical.errors import InputError
from orbical.studies.pages import read_csv
from orbical.studies.piv import commands, main, measures, tables
from orbical.studies.piv.settings import MODELS, Settings


def stretching(rate, size=33):
    """The flow u = rate * x along x."""
    x = (torch.arange(size) - (size - 1) / 2).expand(size, size)
    return torch.stack([rate * x, torch.zeros(size, size)])[None]


def test_self_advection_of_a_stretching_flow():
    """u . grad u = rate^2 x."""
    found = measures.self_advection(stretching(0.2))[0]
    np.testing.assert_allclose(found[16], 0.04 * np.abs(np.arange(33) - 16), atol=1e-5)


@pytest.mark.parametrize("share", [-0.5, 0.5])
def test_flow_carried_to_another_time_of_a_stretching_flow(share):
    """F = rate (x - share F), so F = rate x / (1 + share rate)."""
    found = measures.carried(stretching(0.2), share)[0, 0, 16, 8:-8]
    expected = 0.2 * (np.arange(33) - 16)[8:-8] / (1 + 0.2 * share)
    # Bicubic reading is not exact even for linear fields; carrying moves them by up to 0.16.
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_frames_tell_the_time_of_their_truth():
    seeding = Seeding(noise=(0, 0), leaving=(0, 0), diameter=(2.5, 3))
    data = particle_pairs(4, size=128, kinds=["turbulence"], seed=2, seeding=seeding)
    rows = measures.truth_time_rows("generated", data)
    found = {
        share: tables.mean(tables.chosen(rows, share=share), "likeness")
        for share in measures.SHARES
    }
    assert max(found, key=found.__getitem__) == 0.5
    assert found[0.5] > max(found[0.0], found[1.0]) + 0.002


def test_wrong_settings_are_refused():
    with pytest.raises(InputError, match="pairs"):
        Settings(pairs=0)
    with pytest.raises(InputError, match="size"):
        Settings(size=50)


class Knowing:
    """Answers the mean displacement of the frames' brightness, turned along: cheap, equivariant."""

    def __init__(self, bias):
        self.bias = bias

    def __call__(self, pairs):
        flow = torch.zeros(len(pairs), 2, *pairs.shape[-2:])
        flow[:, 0] = self.bias
        return flow


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The whole command with four cheap models: one answers nothing, the others move rightwards."""
    folder = tmp_path_factory.mktemp("study")
    models = {name: Knowing(bias) for name, bias in zip(MODELS, (0.0, 1, 2, 4), strict=True)}
    few = ["--pairs", "1", "--size", "32", "--angles", "4", "--turned", "1", "--no-real"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "estimators", lambda: models)
        main([*few, "--page", str(folder / "piv.md")])
    return folder


def test_a_constant_answer_has_the_gap_that_it_must(small):
    """Over D4 x time reversal the un-moved answers point along all axes: their mean is 0."""
    rows = read_csv(small / "piv" / "samples.csv")
    for model, bias in zip(MODELS, (0.0, 1, 2, 4), strict=True):
        for row in tables.chosen(rows, model=model):
            assert row["gap"] == pytest.approx(bias, abs=1e-5)
            assert row["gap_plane"] == pytest.approx(bias, abs=1e-5)
            assert row["time_difference"] == pytest.approx(2 * bias, abs=1e-5)
            assert row["consensus_error"] == pytest.approx(row["speed"], rel=1e-4)
        still = tables.chosen(rows, model="farneback")
        assert tables.mean(still, "error_spread") == pytest.approx(0, abs=1e-5)


def test_the_command_writes_the_page_with_its_files_and_figures(small):
    written = [small / "piv.md", *(small / "piv").iterdir()]
    assert {path.suffix for path in written} == {".md", ".csv", ".npz", ".png"}
    assert all(path.stat().st_size > 1000 for path in written)
    text = (small / "piv.md").read_text()
    for name in ("accuracy", "equivariance", "time", "consensus", "rotations"):
        assert f"<!-- table: {name} -->" in text
    assert "| generated | uniform | 1 | " in text


def test_rotations_are_seen_through_a_view_that_stays_inside(small):
    rows = read_csv(small / "piv" / "rotations.csv")
    assert {row["view"] for row in rows} == {32}
    assert {row["side"] for row in rows} == {46}
    assert {row["angle"] for row in rows} == {0, 90, 180, 270}
