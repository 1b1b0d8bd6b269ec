"""The paper's six examples with their corrected values."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from orbical_studies.__main__ import main
from orbical_studies.examples import worlds


@pytest.mark.parametrize(("mean", "value"), [(0.5, 0.5798), (0.25, 0.7486), (0.75, 0.7486)])
def test_example_1_unconstrained_bound(mean: float, value: float) -> None:
    assert worlds.example_1(mean)["prop1"] == pytest.approx(value, abs=1e-4)


def test_example_1_gains_the_whole_dissent_not_that_of_one_row() -> None:
    found = worlds.example_1(0.5, corner=0.8)
    assert found["sum_of_dissent"] == pytest.approx(0.35, abs=1e-4)
    assert found["fiber_free"] == pytest.approx(found["prop1"] - 0.35, abs=1e-4)
    assert found["least_dissent_of_an_orbit"] < 1e-4
    assert found["sharp_lower"] <= found["sharp_upper"] <= found["prop1"]


def test_example_2_is_bounded_by_the_ceiling_whatever_the_fibers() -> None:
    two_fibers, one_fiber = worlds.example_2(1.0, 0.99), worlds.example_2(1.0, 1.0)
    assert two_fibers["cor2"] == pytest.approx(0.9)
    assert one_fiber["cor2"] == pytest.approx(0.7)
    for found in (two_fibers, one_fiber):
        assert found["one_minus_dissent"] == pytest.approx(0.7)
        assert found["sharp_upper"] <= 0.7 + 1e-12
        assert found["ceiling"] == pytest.approx(0.7)


def test_example_3_is_one_orbit() -> None:
    found = worlds.example_3(1.0)
    assert found["ceiling"] == found["cor2"] == pytest.approx(0.7)


def test_example_4_a_stopped_clock_errs_eleven_times_of_twelve() -> None:
    found = worlds.example_4()
    assert found["error"] == pytest.approx(11 / 12)
    assert found["accuracy_floor"] == found["accuracy_ceiling"] == pytest.approx(1 / 12)


def test_example_5_has_a_perfectly_calibrated_model() -> None:
    found = worlds.example_5()
    assert found["orbits"] == 1
    assert found["lipschitz"] == pytest.approx(10)
    assert found["printed_bound"] > found["ece_of_the_calibrated_model"]
    assert found["ece_of_the_calibrated_model"] == pytest.approx(0, abs=1e-12)
    assert found["sharp_lower"] == 0


@pytest.mark.parametrize("norm", [0.1, 1.0, 7.0])
def test_example_6_has_the_factor_pi_over_sixteen(norm: float) -> None:
    found = worlds.example_6(norm)
    assert found["error_on_the_first_fiber"] == pytest.approx(math.pi / 8)
    assert found["thm6_minimized"] == pytest.approx(1 + math.pi / 16 / norm)


def test_the_circle_is_safe_for_the_mirror_that_keeps_the_halves_apart() -> None:
    rows = {row["group"]: row for row in worlds.symmetries_of_the_circle().rows()}
    assert rows["mirror in x"]["accuracy_ceiling"] == pytest.approx(0.7)
    assert rows["turns by 18 degrees"]["orbits"] == 1
    assert rows["turns by 18 degrees"]["accuracy_ceiling"] == pytest.approx(0.7)
    for row in rows.values():
        assert row["extrinsic"] == pytest.approx(0)
        assert row["forced_at_full_confidence"] == pytest.approx(1 - row["accuracy_ceiling"])


def test_the_command_writes_the_page_and_its_figures(tmp_path: Path) -> None:
    main(["examples", "--page", str(tmp_path / "examples.md")])
    made = {path.name: path.stat().st_size for path in (tmp_path / "examples").glob("*.png")}
    assert set(made) == {"fibers.png", "interval.png", "groups.png"}
    assert min(made.values()) > 3_000
