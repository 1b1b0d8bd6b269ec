"""Answers for each point of clouds of different sizes: classes and numbers, with masks."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch

import orbical as ob

InputError, ModelError = ob.errors.InputError, ob.errors.ModelError
SIZES = (5, 3, 8)
GROUP = "rotations3d:4*permutations:8:3"


def clouds():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, 3, generator=generator) for size in SIZES]


def labels(axis=2):
    """Below or above, and in one cloud a point that nobody labeled."""
    found = [(cloud[:, axis] > 0).long() for cloud in clouds()]
    found[2][3] = -1
    return found


def by_height(batch):
    """Right where z is up; what it says on padding is nonsense."""
    height = batch["pos"][..., 2] + 7.0 * ~batch["mask"]
    return torch.stack([-height, height], -1)


def by_distance(batch):
    near = 1.5 - batch["pos"].norm(dim=-1)
    return torch.stack([near, -near], -1)


def scanned(model, data=None, group=GROUP, task="point_classification", **options):
    data = (clouds(), labels()) if data is None else data
    return ob.scan(model, data, group=group, task=task, progress=False, **options)


def test_scores_and_confidences_are_those_of_each_cloud_alone():
    scan = scanned(by_height)
    names = ("score", "point_class", "point_confidence", "mean_confidence", "pixel_count")
    found = {name: scan.data[name].values[0] for name in names}
    for row, (cloud, truth) in enumerate(zip(clouds(), labels(), strict=True)):
        for element, (turn, rows) in enumerate(
            zip(scan.group.linear("space"), scan.group.parts["rows"], strict=True)
        ):
            kept = rows[rows < len(cloud)]  # the order of the real points
            height = (cloud.double().numpy() @ turn.T)[kept, 2]
            true = truth.numpy()[kept]
            right = ((height > 0) == true)[true >= 0]
            one = {name: values[row, element] for name, values in found.items()}
            assert float(one["score"]) == pytest.approx(right.mean())
            sure = 1 / (1 + np.exp(-2 * np.abs(height)))
            padding = np.isnan(one["point_confidence"])
            assert padding.sum() == 8 - len(cloud)
            assert (one["point_class"][padding] == -1).all()
            np.testing.assert_allclose(one["point_confidence"][~padding], sure, rtol=1e-5)
            assert float(one["mean_confidence"]) == pytest.approx(sure.mean(), rel=1e-5)
            assert int(one["pixel_count"].sum()) == (true >= 0).sum()


def test_a_model_of_distances_agrees_with_its_consensus_everywhere():
    scan = scanned({"near": by_distance, "high": by_height})
    near, high = (scan.data.sel(model=name) for name in scan.models)
    assert float(near["score_vs_consensus"].min()) == 1.0
    assert float(near["invariance_gap"].max()) < 1e-6
    assert float(near["changed_pixels"].max()) == 0.0
    assert float(high["changed_pixels"].min()) > 0.0
    changed = ob.nero.consistency(scan)["changed"]
    assert changed.sel(model="near") == 0.0 < changed.sel(model="high")
    assert near["consensus"].dtype == np.int16
    assert (near["consensus"].values[1, 3:] == -1).all()
    ob.testing.assert_equivariant(by_distance, clouds(), group=GROUP, task="point_classification")
    with pytest.raises(AssertionError, match="not equivariant"):
        ob.testing.assert_equivariant(by_height, clouds(), group=GROUP, task="point_classification")


def test_calibration_is_by_point():
    scan = scanned(by_height, keep="probabilities")
    whole = ob.calibration.along_orbit(scan, "ece")
    pairs = ob.calibration.pairs_within(scan)
    assert dict(pairs["confidence"].sizes) == {"model": 1, "sample": 24, "element": 12}
    np.testing.assert_allclose(whole, ob.calibration.along_orbit(pairs, "ece"), atol=1e-6)
    sure, right = (pairs[name][0, :, 5].values for name in ("confidence", "correct"))
    judged = ~np.isnan(right)
    assert judged.sum() == sum(SIZES) - 1
    alone = ob.calibration.ece(sure[judged], right[judged])
    assert float(whole[0, 5]) == pytest.approx(float(alone), abs=1e-6)


def test_measures_that_bins_do_not_have_are_those_of_points():
    scan = scanned(by_height, group="rotations3d:2")
    with pytest.raises(InputError, match=r"pairs_within\(scan\)"):
        ob.calibration.along_orbit(scan, "smooth_ece")
    with pytest.raises(InputError, match=r"pairs_within\(scan\)"):
        ob.calibration.pair_at(scan, 0)


def test_clouds_of_one_size_ragged_batches_and_graphs_are_the_same_data():
    plain = scanned(by_height)
    rows = torch.cat(clouds())
    ragged = {"pos": rows, "ptr": [0, 5, 8, 16]}
    same = scanned(by_height, (ragged, torch.cat(labels())))
    inside = scanned(by_height, {**ragged, "y": torch.cat(labels())})
    for other in (same, inside):
        np.testing.assert_array_equal(plain.data["score"], other.data["score"])
    equal = torch.stack([cloud[:3] for cloud in clouds()])
    truth = torch.stack([label[:3] for label in labels()])
    scan = scanned(by_height, (equal, truth), "rotations3d:2")
    assert float(scan.data["score"][0, :, 0].min()) == 1.0
    bare = ob.tasks.PointClassification(input=ob.actions.Points())
    alone = scanned(lambda x: torch.stack([-x[..., 2], x[..., 2]], -1), (equal, truth),
                    "rotations3d:2", bare)  # fmt: skip
    np.testing.assert_array_equal(scan.data["score"], alone.data["score"])


def test_graphs_of_pyg_with_a_target_for_each_node():
    data = pytest.importorskip("torch_geometric.data")
    each = [data.Data(pos=pos, y=y) for pos, y in zip(clouds(), labels(), strict=True)]
    scan = scanned(by_height, each)
    np.testing.assert_array_equal(scan.data["score"], scanned(by_height).data["score"])


def test_a_ragged_model_answers_for_its_points():
    def net(batch):
        return torch.stack([-batch["pos"][:, 2], batch["pos"][:, 2]], -1)

    scan = scanned(ob.predictors.RaggedPredictor(net))
    np.testing.assert_array_equal(scan.data["score"], scanned(by_height).data["score"])


def twice(batch):
    return 2 * batch["pos"] + 100.0 * ~batch["mask"][..., None]


def test_regression_by_point_does_not_judge_padding():
    task = ob.tasks.Regression(
        input={"pos": ob.actions.Points(), "mask": ob.actions.Rows()},
        representation="vector",
        per_point=True,
    )
    truth = [2.0 * cloud for cloud in clouds()]
    truth[0][1] = torch.nan
    off = scanned(lambda b: twice(b) + 0.3, (clouds(), truth), task=task)
    np.testing.assert_allclose(off.data["score"], 0.3 * np.sqrt(3), rtol=1e-4)
    scan = scanned(twice, (clouds(), truth), task=task)
    assert float(scan.data["invariance_gap"].max()) < 1e-5
    assert float(scan.data["score"].max()) < 1e-5
    assert np.isnan(scan.data["mean"][0, 1, :].values).sum() == 12 * 5 * 3
    ob.testing.assert_equivariant(twice, clouds(), group=GROUP, task=task)


def test_uncertainty_by_point_keeps_to_real_points():
    task = ob.tasks.Regression(
        input={"pos": ob.actions.Points(), "mask": ob.actions.Rows()},
        representation="vector",
        per_point=True,
        uncertainty="variance",
    )

    def model(batch):
        return twice(batch), 0.25 * batch["mask"][..., None]  # none on padding

    scan = scanned(model, (clouds(), [2.0 * cloud for cloud in clouds()]), task=task)
    assert float(scan.data["score"].max()) < 1e-5
    assert np.isnan(scan.data["error"][0, 1]).sum() == 12 * 5 * 3
    assert float(scan.data["variance_gap"].max()) < 1e-6
    ob.testing.assert_equivariant(model, clouds(), group=GROUP, task=task)
    with pytest.raises(ModelError, match="a variance that is not positive"):
        scanned(lambda b: (twice(b), 0.0 * b["pos"][..., :1]), clouds(), task=task)


def test_a_scan_can_be_loaded_and_its_task_restored(tmp_path):
    task = ob.tasks.PointClassification(classes=["below", "above"])
    scanned(by_height, task=task, out=tmp_path / "run.zarr")
    scan = ob.load(tmp_path / "run.zarr")
    again = ob.tasks.Task.from_record(asdict(scan.record.task))
    assert repr(again) == "PointClassification(classes=['below', 'above'])"


def nan_on_padding(batch):
    return by_height(batch).masked_fill(~batch["mask"][..., None], torch.nan)


def test_bad_answers_and_labels_are_refused():
    scanned(lambda b: nan_on_padding(b).softmax(-1).nan_to_num(0.5),
            task=ob.tasks.PointClassification(outputs="probabilities"))  # fmt: skip
    scanned(nan_on_padding)  # only answers on points count
    with pytest.raises(ModelError, match="NaN or infinite output"):
        scanned(lambda b: by_height(b) * torch.nan)
    with pytest.raises(ModelError, match=r"class scores \[sample, point, class\]"):
        scanned(lambda b: b["pos"].sum(1))
    with pytest.raises(
        ModelError, match="a prediction for each of 8 points, including padding, got 2"
    ):
        scanned(lambda b: b["pos"][:, :2])
    with pytest.raises(InputError, match="for each of the 3 points of sample 1, got shape"):
        scanned(by_height, (clouds(), [labels()[0], labels()[0], labels()[2]]))
    with pytest.raises(InputError, match=r"integers \[sample, point\], -1 .* got float32"):
        scanned(by_height, (clouds(), [label.float() for label in labels()]))
    with pytest.raises(InputError, match="from 0, or -1, got -2"):
        scanned(by_height, (clouds(), [label - 1 for label in labels()]))
    with pytest.raises(InputError, match="class indices below 2, as the model has, got 2"):
        scanned(by_height, (clouds(), [label.abs() * 2 for label in labels()]))
    with pytest.raises(InputError, match="names of the model's 2 classes, got 3"):
        scanned(by_height, task=ob.tasks.PointClassification(classes=list("abc")))
    wrong = clouds()
    wrong[1][0, 0] = torch.nan
    with pytest.raises(InputError, match="finite numbers, got NaN"):
        scanned(by_height, (wrong, labels()))
    with pytest.raises(InputError, match=r"expected a labeled scan of .* points with confidences"):
        ob.calibration.pairs_within(scanned(by_height, clouds()))


def distances(batch):
    return batch["pos"].norm(dim=-1)


def test_numbers_by_point_need_no_action_and_no_last_dimension():
    """A list of clouds was read as images, and `[N, n]` was refused."""
    truth = [cloud.norm(dim=-1) for cloud in clouds()]
    for model in (distances, ob.predictors.RaggedPredictor(distances)):
        scan = scanned(model, (clouds(), truth), task=ob.tasks.Regression(per_point=True))
        assert float(scan.data["score"].max()) < 1e-5
    alike = torch.rand(3, 8, 3, generator=torch.Generator().manual_seed(0))
    for data in (alike, [*alike]):
        answered = (data, alike.norm(dim=-1))
        scan = scanned(distances, answered, task=ob.tasks.Regression(per_point=True))
        assert float(scan.data["score"].max()) < 1e-5
    counts = [torch.arange(len(cloud)) for cloud in clouds()]  # whole numbers, which have no NaN
    scan = scanned(distances, (clouds(), counts), task=ob.tasks.Regression(per_point=True))
    off = truth[1] - counts[1]
    assert float(scan.data["score"][0, 1, 0]) == pytest.approx(float(off.square().mean().sqrt()))


def test_clouds_of_different_sizes_are_classified_without_an_action():
    scan = scanned(lambda batch: batch["pos"].mean(1), (clouds(), [0, 1, 2]), task="classification")
    assert scan.data.sizes["sample"] == 3


def test_a_wrong_number_of_lists_of_labels_is_named():
    """torch said "expected sequence of length 3 at dim 1"."""
    with pytest.raises(InputError, match="labels: expected a list for each of 3 samples, got 2"):
        scanned(by_height, (clouds(), labels()[1:]))


def test_probabilities_that_are_zero_on_padding_are_probabilities():
    """`RaggedPredictor` pads with zeros, which do not sum to 1: no estimator could be scanned."""
    linear = pytest.importorskip("sklearn.linear_model")
    truth = [(cloud[:, 2] > 0).long() for cloud in clouds()]
    estimator = linear.LogisticRegression().fit(torch.cat(clouds()), torch.cat(truth))
    model = ob.predictors.RaggedPredictor(estimator, pack=lambda batch: batch["pos"])
    scan = scanned(model, (clouds(), truth))
    right = [estimator.score(cloud, one) for cloud, one in zip(clouds(), truth, strict=True)]
    np.testing.assert_allclose(scan.data["score"][0, :, 0], right, rtol=1e-6)

    def zero(batch):  # at a real point, where it is no distribution
        return torch.zeros(*batch["mask"].shape, 2).int()

    task = ob.tasks.PointClassification(outputs="probabilities")
    with pytest.raises(ModelError, match="NaN or infinite output"):
        scanned(zero, task=task)


def test_the_score_of_values_by_point_is_named_for_what_it_is():
    signals, truth = torch.zeros(2, 1, 4), torch.tensor([[1.0, 1.0, 1.0, 5.0]] * 2)
    task = ob.tasks.Regression(ob.actions.Signals(), per_point=True)
    scan = ob.scan(
        lambda x: x[:, 0, :, None], (signals, truth[..., None]), group="sign", task=task,
        progress=False,
    )  # fmt: skip
    assert scan.data["score"].values == pytest.approx(7**0.5)  # root of (1 + 1 + 1 + 25) / 4
    assert "root mean square distance of points" in ob.nero.headline(scan)


def test_labels_that_do_not_fit_two_bytes_are_refused():
    with pytest.raises(InputError, match="labels: expected class indices up to 32000, got 65539"):
        ob.tasks.PointClassification().check_target(torch.tensor([[0, 65_539]]), 1)
