"""Single values and refusals of bounds, each of which a random change of the code once survived."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import beta

from orbical import bounds, groups
from orbical.bounds import Density, OrbitTable, neighbors, taxonomy
from orbical.bounds.any_model import own_model_outputs
from orbical.bounds.price_and_ceiling import _ceiling_of_split
from orbical.bounds.table_checks import checked_table_integers, level
from orbical.errors import InputError

TABLE = [[0.25, 0.25], [0.5, 0.0]]


def test_an_invariant_model_gives_the_mass_of_an_orbit_to_its_label() -> None:
    table = OrbitTable(TABLE, predicted=[1, 0], confidence=[0.6, 0.9])
    outputs = own_model_outputs(table)
    assert outputs is not None
    np.testing.assert_allclose(outputs.mass, [[0.0, 0.5], [0.5, 0.0]])
    assert outputs.accuracy == pytest.approx(0.75)
    assert outputs.confidence == pytest.approx(0.75)
    assert own_model_outputs(OrbitTable(TABLE)) is None


def test_forced_overconfidence_takes_a_list_of_confidences() -> None:
    for wrong in ([[0.5]], [], [1.1], [-0.1]):
        with pytest.raises(InputError, match="confidence: expected a list of values in"):
            bounds.forced_overconfidence(OrbitTable(TABLE), np.array(wrong))


def test_no_points_are_refused() -> None:
    with pytest.raises(InputError, match=r"x: expected points of shape \[sample, ...\]"):
        bounds.match_orbits(np.zeros((0, 2)), "cyclic:4")


def test_labels_that_orbits_decide_are_known_from_half_of_the_samples() -> None:
    assert _ceiling_of_split(np.array([[50, 0], [0, 50]])) == 1.0
    assert _ceiling_of_split(np.array([[0, 60], [40, 0]])) == 1.0


def test_the_ends_of_the_neighbor_estimate_are_clopper_and_pearsons() -> None:
    """Ten pairs of twins, of which three have two labels: 6 of 20 nearest neighbors
    disagree, which are worth 3 of 10 independent ones."""
    points = np.repeat(np.arange(10.0), 2)[:, None] * [1.0, 100.0]
    label = np.repeat(np.arange(10) % 2, 2)
    label[1:6:2] = 1 - label[1:6:2]
    found = neighbors.neighbor_ceiling(points, label, "cyclic:1", level=0.9)
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(1 - beta.ppf(0.95, 3 + 1, 10 - 3))
    least = beta.ppf(0.05, 3, 10 - 3 + 1)
    assert found.high == pytest.approx(1 - 0.5 * (1 - np.sqrt(1 - least / 0.5)))


def test_blocks_of_neighbors_are_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    whole = neighbors.neighbor_ceiling(points, labels, "cyclic:4")
    monkeypatch.setattr(neighbors, "_BLOCK_VALUES", 1)  # less than one sample needs
    again = neighbors.neighbor_ceiling(points, labels, "cyclic:4")
    assert (again.value, again.low) == (whole.value, whole.low)
    assert again.high == pytest.approx(whole.high)


def test_a_table_says_that_it_has_predictions_with_one_of_the_two() -> None:
    assert "with predictions" in repr(OrbitTable(TABLE, confidence=[0.6, 0.9]))
    assert "with predictions" not in repr(OrbitTable(TABLE))


def test_samples_of_orbits_are_counted_from_zero() -> None:
    with pytest.raises(InputError, match=r"orbits: expected sample indices in \[0, 2\)"):
        OrbitTable.from_orbits([[0, -1], [1]], label=[0, 1])


def test_the_support_of_a_density_is_where_the_ball_holds_enough_samples() -> None:
    """Of four points on a circle and one outside: a ball around an image holds one or none."""
    points = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [3.0, 0.0]])
    group = groups.cyclic(4)
    share = 1 / (5 * np.pi * 0.5**2)  # the density that one sample in a ball has
    kinds = {
        name: taxonomy(points, [0] * 5, group, support=Density(share * factor, bandwidth=0.5))
        for name, factor in (("below", 0.99), ("above", 1.01))
    }
    inside = {name: 1 - found.by_element()[:, 2] for name, found in kinds.items()}
    np.testing.assert_allclose(inside["below"], [1, 0.8, 0.8, 0.8])  # images of the last: outside
    np.testing.assert_allclose(inside["above"], [0, 0, 0, 0])


def test_only_rows_of_as_many_samples_are_taken_for_one_hot() -> None:
    with pytest.raises(InputError, match="argmax"):
        checked_table_integers("label", np.eye(3), 3)
    for shape in ((4, 2), (3, 1, 1)):
        with pytest.raises(InputError) as refused:
            checked_table_integers("label", np.zeros(shape), 3)
        assert "argmax" not in str(refused.value)


@pytest.mark.parametrize("value", [0.0, 1.0, 2.0, -0.5])
def test_a_level_is_a_probability(value: float) -> None:
    with pytest.raises(InputError, match=re.escape("level: expected a probability in (0, 1)")):
        level(value)
