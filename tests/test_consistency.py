"""How often answers change along the orbit, counted by hand, and its intervals by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.nero.changes import changed_share
from orbical.tasks.answers import answer_code_changes


def test_pairs_of_codes_are_those_counted_one_by_one():
    rng = np.random.default_rng(0)
    codes = torch.from_numpy(rng.integers(0, 3, (20, 6)))
    weights = torch.from_numpy(rng.dirichlet(np.ones(6)))
    changed, pairs = answer_code_changes(codes, weights)
    for row, differs, share in zip(codes, changed, pairs, strict=True):
        among = [
            (weights[i] * weights[j], row[i] != row[j])
            for i, j in itertools.permutations(range(6), 2)
        ]
        expected = sum(w for w, apart in among if apart) / sum(w for w, _ in among)
        assert float(share) == pytest.approx(float(expected))
        assert bool(differs) == (len(set(row.tolist())) > 1)


@pytest.mark.parametrize("size", range(1, 40))
def test_no_pair_disagrees_if_no_answer_changes(size):
    changed, pairs = answer_code_changes(torch.full((3, size), 7), torch.full((size,), 1 / size))
    assert not changed.any()
    assert pairs.tolist() == [0.0] * 3  # exactly, whatever the weights sum to in floats


def test_a_mean_curve_that_is_flat_hides_answers_that_change():
    def net(images):  # right at two of four positions, which depend on the sample
        first = images[:, 0, 0, 0] > 0.5
        return torch.stack([first, ~first], 1).float() * 9

    images = torch.zeros(40, 1, 4, 4)
    images[:20, :, 0, 0] = images[20:, :, 0, -1] = 1
    images[:, :, -1, -1] = 1
    scan = ob.scan(
        net,
        (images, torch.zeros(40, dtype=torch.long)),
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    found = ob.nero.consistency(scan)
    assert float(found["changed"][0]) == 1
    assert 0.9 < float(found["changed_low"][0]) < 1
    assert float(found["pairs"][0]) == pytest.approx(2 / 3)  # 8 of 12 pairs
    summary = ob.nero.summary(scan)
    assert float(summary["changed"][0]) == 1
    assert float(summary["changed_pairs"][0]) == pytest.approx(2 / 3)


def test_an_invariant_model_never_changes_and_the_interval_says_how_sure_that_is():
    def net(images):
        return torch.stack([images.mean((1, 2, 3)), -images.mean((1, 2, 3))], 1)

    scan = ob.scan(
        net, torch.rand(30, 1, 4, 4), group="dihedral:4", task="classification", progress=False
    )
    found = ob.nero.consistency(scan)
    assert float(found["changed"][0]) == float(found["pairs"][0]) == 0
    assert 0.05 < float(found["changed_high"][0]) < 0.15
    assert float(found["pairs_high"][0]) > 0


def test_numbers_change_beyond_a_tolerance():
    def net(x):
        return x * torch.tensor([1.0, 1.5])

    task = ob.tasks.Regression(ob.actions.Vectors(), "vector")
    scan = ob.scan(
        net, torch.tensor([[1.0, 0.0], [0.1, 0.0]]), group="cyclic:4", task=task, progress=False
    )
    with pytest.raises(InputError, match=r"tolerance: expected one, .* in the unit of the score"):
        ob.nero.consistency(scan)
    found = ob.nero.consistency(scan, tolerance=0.1)  # off the consensus by 0.25, and 0.025
    assert found["changed_per_sample"].values.tolist() == [[1, 0]]
    assert found["pairs_per_sample"].values.tolist() == [[1, 0]]
    assert "changed" not in ob.nero.summary(scan)


def test_boxes_agree_if_class_and_place_do():
    def net(windows):  # finds the bright pixel, and calls it another class on the right
        found = []
        for window in windows:
            row, column = divmod(int(window[0].argmax()), window.shape[-1])
            box = torch.tensor([[column - 2.0, row - 2.0, column + 3.0, row + 3.0]])
            kind = torch.tensor([int(column > 12) if float(window[0, 0, 0]) == 0 else 0])
            found.append({"boxes": box, "scores": torch.tensor([0.9]), "labels": kind})
        return found

    images = torch.zeros(4, 1, 28, 28)
    images[:, :, 14, 14] = 1
    images[2:] += 0.1
    task = ob.tasks.Detection(input=ob.actions.Window(16), classes=["a", "b"])
    objects = torch.tensor([[5.0, 5.0, 11.0, 11.0, 0.0]]).expand(4, 1, 5)
    scan = ob.scan(
        net, (images, objects.clone()), group="translations:5:5", task=task, progress=False
    )
    found = ob.nero.consistency(scan)
    assert found["changed_per_sample"].values.tolist() == [[1, 1, 0, 0]]
    assert 0.3 < float(found["pairs_per_sample"][0, 0]) < 0.6  # 3 of 9 elements: 36 of 72 pairs


def test_intervals_cover():
    rng = np.random.default_rng(1)
    hits = {"changed": 0, "pairs": 0}
    for _ in range(400):
        changed = rng.random((1, 80)) < 0.2
        pairs = np.where(changed, rng.random((1, 80)), 0.0)
        for name, values, truth in (("changed", changed.astype(float), 0.2), ("pairs", pairs, 0.1)):
            _, low, high = changed_share(values, 0.95)
            hits[name] += bool(low[0] <= truth <= high[0])
    assert hits["changed"] / 400 > 0.92
    assert hits["pairs"] / 400 > 0.92
