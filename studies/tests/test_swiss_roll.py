"""The Swiss roll study: its worlds, its networks, its measurements and its claims."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import t

from orbical.bounds import OrbitTable, match_orbits
from orbical.errors import InputError
from orbical_studies.__main__ import main
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.networks import parameters_of
from orbical_studies.swiss_roll import report, study, training
from orbical_studies.swiss_roll.networks import HeightInvariant, SymmetricSets, perceptron
from orbical_studies.swiss_roll.report import shift_facts
from orbical_studies.swiss_roll.spirals import swap_of_heights, swiss_roll
from orbical_studies.swiss_roll.training import INVARIANT, PLAIN, Settings

TINY = Settings(
    seeds=2, points=1600, epochs=(2, 4), width=8, plain_width=8, draws=5, small=20, train=40
)


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(training.measurements(TINY, worlds=((0.0, 1.0), (0.5, 0.5), (0.0, 0.0))))


@pytest.mark.parametrize("correct", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_matching_finds_the_orbits_and_the_ceiling(correct: float, share: float) -> None:
    incorrect = share * (1 - correct)
    roll = swiss_roll(correct, incorrect, points=320)
    found = match_orbits(roll.x, swap_of_heights()).orbit
    pairs = np.unique(np.stack([found, roll.orbit]), axis=1)
    assert pairs.shape[1] == len(np.unique(found)) == len(np.unique(roll.orbit))
    ceiling = OrbitTable.from_labels(roll.orbit, roll.label).accuracy_ceiling
    assert ceiling == pytest.approx(1 - incorrect / 2, abs=1e-12)


def test_the_spirals_wind_as_the_paper_says() -> None:
    first, second = np.split(swiss_roll(0.0, 0.0, points=1600).x[:, :2], 2)
    radius = np.linalg.norm(first, axis=1)
    assert radius[-1] == pytest.approx(0.5)
    assert np.allclose(np.diff(radius), 0.5 / 1600)
    angle = np.unwrap(np.arctan2(first[:, 1], first[:, 0]))
    assert (angle[-1] - angle[0]) / (2 * np.pi) == pytest.approx(2.25 * (1 - 1 / 1600))
    assert np.allclose(np.angle((second @ [1, 1j]) / (first @ [1, 1j])), 3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.3, 0.0, 160), "correct: expected a multiple of 1/8"),
        ((0.5, 0.6, 160), r"incorrect: .*\[0, 0.5\], got 0.6"),
        ((0.5, 0.001, 160), "incorrect"),
        ((0.5, 0.5, 100), "points: expected a multiple of 16, got 100"),
    ],
)
def test_shares_that_do_not_fit_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        swiss_roll(*arguments)


@pytest.mark.parametrize(
    "changes", [{"seeds": 0}, {"points": 100}, {"thinning": 1}, {"epochs": (0, 3)}]
)
def test_settings_that_do_not_fit_are_refused(changes: dict) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        replace(TINY, **changes)


def test_only_the_perceptron_sees_the_height() -> None:
    torch.manual_seed(0)
    x = torch.cat([torch.rand(64, 2) - 0.5, torch.randint(2, (64, 1)).float()], 1)
    swapped = torch.cat([x[:, :2], 1 - x[:, 2:]], 1)
    invariant, plain = HeightInvariant(), perceptron()
    assert torch.allclose(invariant(x), invariant(swapped), atol=1e-6)
    assert invariant(x).std(0).min() > 1e-4
    assert (plain(x) - plain(swapped)).abs().max() > 1e-2
    assert parameters_of(invariant) == pytest.approx(parameters_of(plain), rel=1e-3)
    with pytest.raises(InputError, match="z = 0 or 1"):
        invariant(torch.tensor([[0.1, 0.2, 0.5]]))


def test_a_layer_on_sets_is_its_formula() -> None:
    layer, x = SymmetricSets(3, 4), torch.randn(5, 6, 3)
    expected = torch.stack([layer.own(x[:, i]) + layer.shared(x.sum(1)) for i in range(6)], 1)
    assert torch.allclose(layer(x), expected, atol=1e-6)


def test_training_and_test_points_never_meet_and_the_test_world_keeps_whole_orbits() -> None:
    roll = swiss_roll(0.25, 0.5, TINY.points)
    train, test = training.split(roll, TINY, seed=3)
    seen = {tuple(point) for point in train.x}
    assert len(seen) == TINY.train
    assert not seen & {tuple(point) for point in test.x}
    assert len(test) == 2 * TINY.points // TINY.thinning
    assert training.accuracy_ceiling(test) == pytest.approx(0.75, abs=1e-12)


def test_every_measurement_lies_within_what_the_symmetry_allows(rows: list[dict]) -> None:
    invariant = [row for row in rows if row["network"] == INVARIANT]
    assert len(invariant) == 3 * TINY.seeds * len(TINY.epochs)
    for row in invariant:
        assert row["ceiling"] == pytest.approx(1 - row["incorrect"] / 2, abs=1e-12)
        assert row["accuracy"] <= row["ceiling"] + 1e-12
        assert row["sharp_lower"] - 1e-9 <= row["table_ece"] <= row["sharp_upper"] + 1e-9
        assert row["ece"] == pytest.approx(row["table_ece"], abs=1e-3)
        assert row["gap"] < 1e-6
        if row["incorrect"] == 1:  # every prediction is right half of the time
            assert row["ece"] == pytest.approx(row["confidence"] - 0.5, abs=1e-6)
    assert all("sharp_lower" not in row for row in rows if row["network"] == PLAIN)


def test_measurements_equal_a_direct_computation() -> None:
    _, test = training.split(swiss_roll(0.5, 0.5, TINY.points), TINY, seed=0)
    torch.manual_seed(0)
    network = perceptron(8)
    with torch.no_grad():
        found = training.measure(network, test, replace(TINY, bins=7), seed=0)
        probs = network(torch.from_numpy(test.x).float()).double().softmax(1).numpy()
    confidence, right = probs.max(1), probs.argmax(1) == test.label
    bins = np.ceil(confidence * 7) - 1
    gaps = [abs((right[bins == b] - confidence[bins == b]).sum()) for b in range(7)]
    assert found["ece"] == pytest.approx(sum(gaps) / len(right), abs=1e-9)
    assert found["accuracy"] == pytest.approx(right.mean())


def test_small_test_sets_of_a_calibrated_model_show_a_large_ece() -> None:
    _, test = training.split(swiss_roll(1.0, 0.0, 16_000), Settings(), seed=0)

    def network(x: torch.Tensor) -> torch.Tensor:
        share = 0.5 + 0.5 * torch.rand(len(x), generator=torch.Generator().manual_seed(0))
        return torch.stack([share, 1 - share], 1).log()

    found = training.measure(network, test, Settings(), seed=0)  # type: ignore[arg-type]
    assert 0.12 < found["small_calibrated"] < 0.2


def test_the_command_writes_results_page_and_figures(tmp_path: Path) -> None:
    options = ["--results", str(tmp_path), "--page", str(tmp_path / "roll.md")]
    tiny = [
        "--seeds",
        "1",
        "--extrinsic-seeds",
        "2",
        "--points",
        "320",
        "--train",
        "40",
        "--width",
        "4",
    ]
    main(["swiss-roll", *options, *tiny, "--plain-width", "4", "--epochs", "1", "2"])
    assert len(Results(tmp_path)["results"]) == 10 * 2 * 2
    made = {path.name for path in (tmp_path / "swiss-roll").glob("*.png")}
    assert made == {"worlds.png", "accuracy-and-ece.png", "bias.png", "shift.png"}
    assert "ECE, 2 |" in (tmp_path / "swiss-roll" / "protocol.md").read_text()


@pytest.mark.parametrize(
    ("column", "change", "claim"),
    [
        ("ceiling", lambda rows: rows["ceiling"] - 0.05, "| No invariant network exceeds"),
        ("ceiling", lambda rows: rows["ceiling"] + 0.05, "| The ceiling is nearly reached"),
        ("sharp_upper", lambda rows: 0.01, "| ECE lies inside"),
        ("accuracy", lambda rows: 1 - rows["correct"], "| Accuracy rises"),
        ("ece", lambda rows: rows["ece"] + (rows["correct"] == 0.5), "| ECE falls"),
        ("sharp_lower", lambda rows: 0.1, "| The lower end"),
    ],
)
def test_claims_are_decided_by_the_numbers(column: str, change, claim: str, tmp_path: Path) -> None:
    paths = Paths.in_checkout("swiss-roll")
    committed, changed = Results(paths.results), Results(tmp_path)
    frame = committed["results"]
    changed.write("results", frame.assign(**{column: change(frame)}))
    for other in ("extrinsic", "kinds", "width"):
        changed.write(other, committed[other])
    before, after = (
        next(line for line in page.splitlines() if claim in line)
        for page in (
            parted(render(study, Results(paths.results), paths.template), study.name)[1],
            parted(render(study, changed, paths.template), study.name)[1],
        )
    )
    assert before.endswith("| confirmed |")
    assert after.endswith("| not confirmed here |")


def test_the_third_share_is_judged_seed_by_seed_on_the_data_and_on_the_shift(
    tmp_path: Path,
) -> None:
    rows, kinds = [], []
    for correct, incorrect in ((1.0, 0.0), (0.5, 0.0), (0.25, 0.25)):
        world = {"correct": correct, "incorrect": incorrect, "ceiling": 1 - incorrect / 2}
        for seed, on in product(range(4), ("data", "shift") if correct < 1 else ("data",)):
            luck = (0.03, 0.06, 0.02, 0.05)[seed]  # differs between seeds, not between networks
            worse = 0.1 + 0.001 * seed
            for network in (INVARIANT, PLAIN):
                lost = luck + worse * (network == (INVARIANT if on == "data" else PLAIN))
                row = {"seed": seed, "on": on, "network": network}
                rows.append({**world, **row, "accuracy": 0.875 - lost, "ece": 0.2 + lost})
        for seed in (None, 0, 1):
            found = [correct, incorrect, 1 - correct - incorrect]
            found = [
                share + sign * 0.2 * (seed == 1)
                for share, sign in zip(found, (1, -1, 0), strict=True)
            ]
            names = ("measured_correct", "measured_incorrect", "measured_extrinsic")
            kinds.append({**world, "seed": seed, **dict(zip(names, found, strict=True))})
    results = Results(tmp_path)
    results.write("extrinsic", rows)
    results.write("kinds", kinds)
    found = shift_facts(results)
    cost, protection = found["cost"], found["protection"]
    assert cost["correct"].tolist() == [
        0.5,
        0.5,
    ]  # neither the correct world nor an incorrect share
    assert set(cost["effect"]) == {"costs"}
    assert set(protection["effect"]) == {"helps"}
    assert len(protection) == 4
    reach = (protection["high"] - protection["low"]) / 2
    assert reach.to_numpy() == pytest.approx(t.ppf(1 - 0.05 / 32, 3) * 0.129 / 2, rel=0.01)
    assert found["off"].tolist() == pytest.approx([0.1, 0.1, 0.1])
    assert found["off_all"].tolist() == pytest.approx([0, 0, 0])
    assert found["above_ceiling"] == 0
    assert report.draw_shift(results).axes[0].get_yticklabels()[1].get_text() == (
        "½ correct, ½ extrinsic"
    )
