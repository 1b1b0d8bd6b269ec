"""AUROC, sensitivity and specificity of two classes, against scikit-learn and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, norm
from sklearn.metrics import recall_score, roc_auc_score

import orbical as ob
from orbical.errors import InputError
from orbical.nero.classification_scores import areas_under_roc


@pytest.fixture(scope="module")
def scan() -> ob.Scan:
    random = torch.Generator().manual_seed(0)
    images = torch.rand(90, 1, 6, 6, generator=random)
    labels = (images[:, 0, :3].mean((1, 2)) > 0.5).long()

    def rounded(images):  # has ties
        return (20 * images[:, 0, :3].mean((1, 2)) - 10.5).round() / 2

    def corner(images):
        return 4 * images[:, 0, 0, 0] - 2

    return ob.scan({"rounded": rounded, "corner": corner}, (images, labels), group="dihedral:4",
                   task="classification", keep="probabilities", progress=False)  # fmt: skip


def test_rates_are_those_of_scikit_learn_at_every_element(scan):
    found = ob.nero.binary_rates(scan)
    labels = scan.data["label"].values
    for model, element in np.ndindex(found["auroc"].shape):
        likely = scan.data["probabilities"].values[model, :, element, 1]
        predicted = scan.data["predicted"].values[model, :, element]
        assert found["auroc"].values[model, element] == pytest.approx(roc_auc_score(labels, likely))
        for name, positive in (("sensitivity", 1), ("specificity", 0)):
            expected = recall_score(labels, predicted, pos_label=positive)
            assert found[name].values[model, element] == pytest.approx(expected)
    hits = int(((scan.data["predicted"].values[1, :, 0] == 1) & (labels == 1)).sum())
    exact = binomtest(hits, int(labels.sum())).proportion_ci(0.95, "exact")
    ends = [float(found[f"sensitivity_{end}"][1, 0]) for end in ("low", "high")]
    assert ends == pytest.approx([*exact])
    for name in ("auroc", "sensitivity", "specificity"):
        low, high = found[f"{name}_low"], found[f"{name}_high"]
        assert bool(((low < found[name]) & (found[name] < high)).where(found[name] < 1, True).all())
        assert float((high - low).max()) < 0.45


def test_the_other_class_is_positive_where_it_is_said_to_be(scan):
    one, other = (ob.nero.binary_rates(scan, positive=which) for which in (1, 0))
    np.testing.assert_allclose(one["auroc"], other["auroc"])
    np.testing.assert_array_equal(one["sensitivity"], other["specificity"])


@pytest.mark.parametrize("area", [0.5, 0.8, 0.97, 0.995])
def test_the_interval_of_an_area_holds_also_near_one(area):
    random = np.random.default_rng(3)
    for positives, negatives in ((10, 10), (15, 80)):
        scores = random.normal(size=(600, positives + negatives))
        scores[:, :positives] += np.sqrt(2) * norm.ppf(area)
        labels = np.tile(np.arange(positives + negatives) < positives, (600, 1)).astype(int)
        _, low, high = areas_under_roc(scores, labels, 0.95)
        assert np.mean((low <= area) & (area <= high)) > 0.925


def test_a_summary_has_the_rates_of_two_classes_only(scan):
    table, rates = ob.nero.summary(scan), ob.nero.binary_rates(scan)
    for name in ("auroc", "sensitivity", "specificity"):
        identity, mean, worst = table[name].values[1]
        assert identity == rates[name].values[1, scan.group.identity]
        assert mean == pytest.approx(float(rates[name][1].mean()))
        assert worst == rates[name].values[1, int(table["worst_element"][1])]
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    ten = ob.scan(net, (images[:9], labels[:9]), group="cyclic:2", task="classification",
                  progress=False)  # fmt: skip
    assert "auroc" not in ob.nero.summary(ten)
    with pytest.raises(InputError, match="two classes"):
        ob.nero.binary_rates(ten)
    with pytest.raises(InputError, match="0 or 1"):
        ob.nero.binary_rates(scan, positive=2)


def test_one_class_alone_has_no_area():
    images = torch.rand(5, 1, 4, 4)
    alone = ob.scan(lambda x: x.mean((1, 2, 3)), (images, [1] * 5), group="flips",
                    task="classification", progress=False)  # fmt: skip
    found = ob.nero.binary_rates(alone)
    assert bool(found["auroc"].isnull().all())
    assert bool(found["specificity"].isnull().all())
    assert float(found["sensitivity"].min()) == 1.0
