"""The Swiss roll study: its worlds, its measurements against direct computations, its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.errors import InputError
from orbical_studies import STUDIES
from orbical_studies import study as study_by_name
from orbical_studies.data.spirals import swiss_roll
from orbical_studies.networks.swiss_roll import HeightInvariant, perceptron
from orbical_studies.pages import read_csv, write_csv
from orbical_studies.swiss_roll import findings, main, page, training
from orbical_studies.swiss_roll.settings import INVARIANT, PLAIN, WORLDS, Settings

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "swiss-roll.md"
TINY = Settings(
    seeds=2, points=1600, epochs=(2, 4), width=8, plain_width=8, draws=5, small=20, train=40
)


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(training.run(TINY, worlds=((0.0, 1.0), (0.5, 0.5), (0.0, 0.0))))


def test_the_worlds_are_the_line_of_the_paper_and_the_extrinsic_one() -> None:
    assert [world[0] for world in WORLDS[:9]] == [eighths / 8 for eighths in range(9)]
    assert all(sum(world) == 1 for world in WORLDS[:9])
    assert WORLDS[9:] == ((0.0, 0.0),)


def test_training_and_test_points_never_meet_and_the_test_world_keeps_whole_orbits() -> None:
    roll = swiss_roll(0.25, 0.5, TINY.points)
    train, test = training.split(roll, TINY, seed=3)
    seen = {tuple(point) for point in train.x}
    assert len(seen) == TINY.train
    assert not seen & {tuple(point) for point in test.x}
    assert len(test) == 2 * TINY.points // TINY.thinning
    assert training.ceiling_of(test) == pytest.approx(0.75, abs=1e-12)
    again, _ = training.split(roll, TINY, seed=3)
    assert np.array_equal(train.x, again.x)


def test_every_ece_lies_inside_its_sharp_interval_and_accuracy_under_its_ceiling(
    rows: list[dict],
) -> None:
    invariant = [row for row in rows if row["network"] == INVARIANT]
    assert len(invariant) == 3 * TINY.seeds * len(TINY.epochs)
    for row in invariant:
        assert row["ceiling"] == pytest.approx(1 - row["incorrect"] / 2, abs=1e-12)
        assert row["accuracy"] <= row["ceiling"] + 1e-12
        assert row["sharp_lower"] - 1e-9 <= row["table_ece"] <= row["sharp_upper"] + 1e-9
        assert row["ece"] == pytest.approx(row["table_ece"], abs=1e-3)
        assert row["gap"] < 1e-6
    assert all("sharp_lower" not in row for row in rows if row["network"] == PLAIN)


def test_where_all_is_incorrect_the_confidence_alone_decides_the_ece(rows: list[dict]) -> None:
    for row in rows:
        if row["network"] == INVARIANT and row["incorrect"] == 1:
            assert row["accuracy"] == pytest.approx(0.5, abs=1e-9)
            assert row["sharp_lower"] == pytest.approx(row["sharp_upper"], abs=1e-9)
            assert row["ece"] == pytest.approx(row["confidence"] - 0.5, abs=1e-6)


def test_measurements_equal_a_direct_computation() -> None:
    _, test = training.split(swiss_roll(0.5, 0.5, TINY.points), TINY, seed=0)
    torch.manual_seed(0)
    network = perceptron(8)
    with torch.no_grad():
        found = training.measure(network, test, replace(TINY, bins=7), seed=0)
        probs = network(torch.from_numpy(test.x).float()).double().softmax(1).numpy()
    confidence, right = probs.max(1), probs.argmax(1) == test.label
    place = np.ceil(confidence * 7) - 1
    expected = sum(abs((right[place == b] - confidence[place == b]).sum()) for b in range(7)) / len(
        right
    )
    assert found["ece"] == pytest.approx(expected, abs=1e-9)
    assert found["accuracy"] == pytest.approx(right.mean())


def test_small_test_sets_of_a_calibrated_model_show_a_large_ece() -> None:
    # Confidences spread over [1/2, 1] with 200 points in 100 bins: the bias the page warns of.
    settings = Settings()
    roll = swiss_roll(1.0, 0.0, 16_000)
    _, test = training.split(roll, settings, seed=0)

    class Spread(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            share = 0.5 + 0.5 * torch.rand(len(x), generator=torch.Generator().manual_seed(0))
            return torch.stack([share, 1 - share], 1).log()

    found = training.measure(Spread(), test, settings, seed=0)
    assert 0.12 < found["small_calibrated"] < 0.2


def test_the_same_seed_gives_the_same_network() -> None:
    first, second = (training.networks(TINY, seed=5)[INVARIANT] for _ in range(2))
    assert isinstance(first, HeightInvariant)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "seeds: got 0"),
        ({"points": 100}, "points, thinning"),
        ({"thinning": 1}, "points, thinning"),
        ({"epochs": ()}, "epochs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(TINY, **changes)


def test_the_command_writes_csv_page_and_figures_and_report_repeats_them(tmp_path: Path) -> None:
    target = tmp_path / "roll.md"
    options = ["--page", str(target), "--seeds", "1", "--points", "320"]
    main([*options, "--width", "4", "--plain-width", "4", "--epochs", "2", "1"])
    made = {path.name for path in (tmp_path / "roll").iterdir()}
    assert made == {"results.csv", "worlds.png", "accuracy-and-ece.png", "bias.png"}
    text = target.read_text()
    assert all(f"<!-- table: {name} -->" in text for name in page.TABLES)
    target.write_text("<!-- table: ece -->\n<!-- end -->\n")
    main(["report", "--page", str(target)])
    assert "lower end" in target.read_text()


def test_csv_files_come_back_as_they_went(tmp_path: Path, rows: list[dict]) -> None:
    back = read_csv(write_csv(tmp_path / "rows.csv", rows))
    for before, after in zip(rows, back, strict=True):
        assert before.keys() == after.keys()
        for name, value in before.items():
            assert after[name] == (pytest.approx(value, rel=1e-5) if name != "network" else value)


def test_committed_results_cover_all_worlds_and_stay_inside_their_bounds() -> None:
    results = read_csv(DOCS.with_suffix("") / "results.csv")
    assert len({row["seed"] for row in results}) >= 5
    assert {(row["correct"], row["incorrect"]) for row in results} == set(WORLDS)
    for row in results:
        if row["network"] == INVARIANT:
            assert row["accuracy"] <= row["ceiling"] + 1e-6
            assert row["sharp_lower"] - 1e-4 <= row["ece"] <= row["sharp_upper"] + 1e-4


def test_every_study_of_the_register_has_a_command() -> None:
    assert {"swiss-roll", "digits", "examples"} <= set(STUDIES)
    for name in STUDIES:
        assert callable(study_by_name(name).main)


def made_up(**changes: object) -> list[dict]:
    """Rows of two seeds on the line of the paper, as the theory has them; some columns changed.

    A change is a function of a row.
    """
    made = []
    for eighths in range(9):
        share = eighths / 8
        for seed in range(2):
            common = {"correct": share, "incorrect": 1 - share, "epoch": 9, "seed": seed}
            common |= {"small": 200, "train": 200, "small_ece": 0.2, "small_calibrated": 0.1}
            ceiling = (1 + share) / 2
            made += [
                {
                    **common,
                    "network": INVARIANT,
                    "accuracy": ceiling - 0.01,
                    "ceiling": ceiling,
                    "ece": 0.2 - 0.1 * share,
                    "sharp_lower": 0.15 - 0.15 * share,
                    "sharp_upper": 0.9,
                },
                {**common, "network": PLAIN, "accuracy": 1 - 0.1 * share, "ece": 0.01},
            ]
    for row in made:
        row |= {key: change(row) for key, change in changes.items() if key in row}
    return made


@pytest.mark.parametrize(
    ("changes", "usual", "changed"),
    [
        (
            {"ceiling": lambda row: row["ceiling"] - 0.05},
            "The ceiling holds",
            "The ceiling is broken",
        ),
        (
            {"ceiling": lambda row: row["ceiling"] + 0.05},
            "and is nearly reached",
            "and is not reached everywhere",
        ),
        (
            {"sharp_upper": lambda row: 0.05},
            "The interval holds",
            "The interval is broken",
        ),
        (
            {"accuracy": lambda row: 0.99 if row["network"] == PLAIN else row["accuracy"]},
            "is not flat",
            "is flat",
        ),
    ],
)
def test_findings_are_chosen_by_the_numbers(changes: dict, usual: str, changed: str) -> None:
    before, after = findings.findings(made_up()), findings.findings(made_up(**changes))
    assert usual in before
    assert changed not in before
    assert changed in after
    assert usual not in after


def test_the_trend_is_said_as_the_numbers_have_it() -> None:
    usual = findings.trend(made_up())
    assert "is reproduced: " in usual
    assert "accuracy rises, the ECE falls, and" in usual
    level = findings.trend(made_up(ece=lambda row: 0.1 + 0.1 * row["correct"]))
    assert "not reproduced in full" in level
    assert "the ECE does not fall, " in level
    bump = findings.trend(made_up(ece=lambda row: row["ece"] + (row["correct"] == 0.5)))
    assert "the ECE falls but not at every step, " in bump
    noisy = made_up(ece=lambda row: row["ece"] + row["seed"] * 0.5 * (row["correct"] == 0.5))
    assert "the ECE falls, and" in findings.trend(noisy)
