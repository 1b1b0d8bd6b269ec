"""The particle-flow study: its measures against known flows, and the whole of it in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.datasets import particle_pairs
from orbical.datasets.particle_seeding import Seeding
from orbical.errors import InputError
from orbical_studies.pages import read_csv
from orbical_studies.piv import commands, findings, main, measures, tables
from orbical_studies.piv.settings import MODELS, Settings

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "piv.md"


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


LIKE_MEASURED = {
    "farneback": {"error": 0.2, "gap": 0.1, "gap_plane": 0.0, "error_worst": 0.2},
    "dis": {"error": 0.3, "gap": 0.2, "gap_plane": 0.2, "error_worst": 0.4},
    "directed": {"error": 0.1, "gap": 2.0, "gap_plane": 2.0, "error_worst": 3.0},
    "symmetric": {"error": 0.15, "gap": 0.12, "gap_plane": 0.1, "error_worst": 0.2},
}
FIRST_FRAME = {"farneback": 0.2, "dis": 0.3, "directed": 0.12, "symmetric": 0.12}


def made_up(model=None, kind=None, **changes):
    """Rows like the measured ones, two kinds of flow in two sets; some changed."""
    rows = []
    for name in ("generated", "other"):
        for flow in ("uniform", "turbulence"):
            for each, numbers in LIKE_MEASURED.items():
                directed = each == "directed"
                row = {
                    "set": name,
                    "kind": flow,
                    "model": each,
                    **numbers,
                    "error_forward_truth": FIRST_FRAME[each],
                    "rmse": 1.0 if directed else 0.3,
                    "time_difference": 0.1,
                    "self_advection": 0.1,
                    "consensus_error": 0.5 if directed else 0.1,
                    "consensus_likeness": 0.9 if directed else 0.3,
                    "hard_share": 0.5,
                }
                if directed and flow == "turbulence":
                    row["gap"] = 0.1
                if model in (None, each) and kind in (None, flow):
                    row |= changes
                rows.append(row)
    return rows


TURNED = [{"model": each, "angle": angle, "error": 1.0} for each in MODELS for angle in (0, 90)]


FINDINGS = [
    (
        {"model": "farneback", "gap_plane": 0.02},
        "Farneback is equivariant under",
        "Farneback is nearly equivariant under",
    ),
    (
        {"model": "farneback", "gap_plane": 0.2},
        "exact to rounding",
        "Farneback is not equivariant under",
    ),
    (
        {"model": "farneback", "time_difference": 0.2},
        "a convention more than a fault",
        "more than a convention",
    ),
    (
        {"model": "farneback", "time_difference": 0.05},
        "a convention more than a fault",
        "less than that of an estimator of forward flow",
    ),
    (
        {"model": "symmetric", "error_forward_truth": 0.2},
        "is learnt, or not",
        "Both networks have learnt",
    ),
    (
        {"model": "directed", "error_forward_truth": 0.08},
        "is learnt, or not",
        "Neither network has learnt",
    ),
    (
        {"model": "directed", "error_forward_truth": 0.101},
        "is learnt, or not",
        "is not settled here",
    ),
    (
        {"model": "dis", "error": 0.05},
        "is the most accurate on the pairs",
        "is not the most accurate on the pairs",
    ),
    (
        {"model": "dis", "error_worst": 4.0},
        "and the worst once they are moved",
        "and not the worst once they are moved",
    ),
    (
        {"model": "symmetric", "gap": 0.5},
        "It is the direction of the training flows",
        "moved training pairs do not mend",
    ),
    (
        {"model": "directed", "kind": "turbulence", "gap": 0.5},
        "It is the direction of the training flows",
        "flows without direction are not spared",
    ),
    (
        {"model": "directed", "gap": 0.1},
        "It is the direction of the training flows",
        "hardly breaks the symmetry",
    ),
    ({"model": "symmetric", "error": 0.05}, "cost accuracy", "add accuracy"),
    (
        {"model": "directed", "consensus_error": 0.05},
        "for all but directed no worse",
        "for all no worse",
    ),
    (
        {"model": "dis", "consensus_error": 0.5},
        "for all but directed no worse",
        "for all but dis and directed no worse",
    ),
    (
        {"model": "directed", "consensus_likeness": 0.5},
        "only where the gap is as large as the error: directed",
        "for no model",
    ),
    (
        {"model": "dis", "consensus_likeness": 0.9},
        "only where the gap is as large as the error: directed",
        "for dis and directed alone",
    ),
    (
        {"kind": "uniform", "hard_share": 0.2},
        "Errors gather in some places.",
        "Errors gather in some places, for some",
    ),
    ({"hard_share": 0.2}, "Errors gather in some places.", "Errors do not gather"),
]
JUDGED = [
    (
        {"model": "farneback", "gap_plane": 0.2},
        "confirmed, and sharper",
        "| Farneback is nearly equivariant | not confirmed here",
    ),
    (
        {"model": "farneback", "time_difference": 0.2},
        "by about as much as",
        "by more than an estimator",
    ),
    ({"model": "directed", "gap": 0.1}, "less | confirmed for", "less | not confirmed here"),
    (
        {"model": "symmetric", "gap": 0.5},
        "gap): the same network",
        "gap): the directed one on turbulence",
    ),
    (
        {"model": "dis", "error": 0.05},
        "hides it | confirmed",
        "hides it | not confirmed here",
    ),
    (
        {"kind": "turbulence", "hard_share": 0.2},
        "little | confirmed",
        "little | not confirmed here",
    ),
    ({"consensus_likeness": 0.9}, "error: directed |", "for every model |"),
]


@pytest.mark.parametrize(
    ("write", "changes", "usual", "changed"),
    [
        *((lambda rows: findings.findings(rows, TURNED), *case) for case in FINDINGS),
        *((findings.paper_table, *case) for case in JUDGED),
    ],
)
def test_sentences_and_verdicts_are_chosen_by_the_numbers(write, changes, usual, changed):
    before, after = write(made_up()), write(made_up(**changes))
    assert usual in before
    assert changed not in before
    assert changed in after
    assert usual not in after


def test_sets_that_disagree_settle_nothing():
    """A verdict holds in every set of pairs, or not at all."""
    rows = made_up()
    for row in rows:
        if row["set"] == "other" and row["model"] == "directed":
            row |= {"error": 0.4, "time_difference": 0.3}
        if row["set"] == "other" and row["model"] == "farneback":
            row["time_difference"] = 0.3
    text = findings.findings(rows, TURNED)
    assert "is not the most accurate" in text
    assert "the sets of pairs do not agree" in text
    assert "the sets disagree on what moved pairs do" in text


def test_the_time_of_the_truth_is_said_as_the_frames_have_it():
    def rows(*likeness):
        shares = (0.0, 0.5, 1.0)
        return [
            {"set": "made", "kind": "shear", "share": share, "likeness": value}
            for share, value in zip(shares, likeness, strict=True)
        ]

    assert "1 decide for the middle" in tables.truth_time_sentence(rows(0.9, 0.95, 0.9))
    early = tables.truth_time_sentence(rows(0.95, 0.94, 0.9))
    assert "0 decide for the middle" in early
    assert "shear of made" in early
    assert "In no kind" in tables.truth_time_sentence(rows(1.0, 1.0, 1.0))
    carried = made_up("farneback", "uniform", error_forward_truth=0.1)
    assert "no kind of flow" in tables.forward_truth_sentence(made_up())
    assert "uniform (generated)" in tables.forward_truth_sentence(carried)
