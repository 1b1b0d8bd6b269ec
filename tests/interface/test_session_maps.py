"""The map of samples as a session answers it: places, lassos, order and colors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from talking import ask, decode, lassoed

import orbical as ob
from orbical.interface import open_session
from orbical.interface.session import Session


def test_the_map_of_one_model_is_that_of_reduce(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "embedding", of="second")
    expected = ob.embedding.embed(digits, "pca", model="second").values
    centered = expected - (expected.max(0) + expected.min(0)) / 2
    centered /= np.abs(centered).max()
    np.testing.assert_allclose(arrays["xy"], centered, atol=1e-4)
    assert np.abs(arrays["xy"]).max() == pytest.approx(1)
    variance = expected.var(0)
    assert header["explained"][0] / header["explained"][1] == pytest.approx(
        variance[0] / variance[1], rel=1e-3
    )


def test_the_joint_map_has_one_point_a_sample(session: Session, digits: ob.Scan) -> None:
    _, arrays = ask(session, "embedding")
    points = np.concatenate([*digits.data["score"].values], axis=1).astype(float)
    points -= points.mean(0)
    left, size, _ = np.linalg.svd(points, full_matrices=False)
    found = arrays["xy"] - arrays["xy"].mean(0)
    for axis in range(2):
        one = left[:, axis] * size[axis]
        cosine = abs(one @ found[:, axis]) / np.linalg.norm(one) / np.linalg.norm(found[:, axis])
        assert cosine == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("method", ["ica", "isomap", "tsne"])
def test_other_maps_lie_in_the_same_frame(session: Session, method: str) -> None:
    header, arrays = ask(session, "embedding", method=method)
    assert header["method"] == method
    assert arrays["xy"].shape == (120, 2)
    assert np.abs(arrays["xy"]).max() == pytest.approx(1, abs=1e-6)


def test_a_slow_map_is_announced_once(folder: Path) -> None:
    session = open_session(folder / "digits.zarr")
    message = {"kind": "embedding", "sequence": 8, "selection": {"method": "isomap"}}
    announced, *_, answer = (decode(frame)[0] for frame in session.frames(message))
    assert (announced["kind"], announced["sequence"], announced["progress"]) == ("embedding", 8, 0)
    assert "progress" not in answer
    assert len([*session.frames(message)]) == 1
    assert len([*session.frames({"kind": "embedding", "selection": {}})]) == 1
    assert len([*session.frames({"kind": "embedding", "selection": {"method": "no"}})]) == 1


def test_a_lasso_makes_a_subset_that_everything_follows(session: Session, digits: ob.Scan) -> None:
    xy = ask(session, "embedding")[1]["xy"]
    lasso = [[-0.4, -1], [0.6, -1], [0.6, 0.5], [-0.4, 0.5]]
    inside = (xy[:, 0] > -0.4) & (xy[:, 0] < 0.6) & (xy[:, 1] < 0.5)
    assert 0 < inside.sum() < 120
    chosen = lassoed(session, lasso)
    header, arrays = ask(session, "subset", subset=chosen)
    np.testing.assert_array_equal(arrays["mask"], inside)
    assert header["count"] == inside.sum()
    both = inside & (digits.data["label"].values == 3)
    assert ask(session, "subset", subset=chosen, filter=["label:3"])[0]["count"] == both.sum()
    _, mean = ask(session, "aggregate", subset=chosen)
    expected = digits.data["score"].values[:, inside].mean(1)
    np.testing.assert_allclose(mean["values"], expected, rtol=1e-5)
    header, _ = ask(session, "calibration", subset=chosen)
    assert header["count"] == inside.sum()
    listed = ask(session, "list", subset=chosen)[1]["samples"]
    assert {*listed.tolist()} == {*np.flatnonzero(inside).tolist()}


def test_a_subset_keeps_its_samples_when_map_and_metric_change(session: Session) -> None:
    chosen = lassoed(session, [[-0.4, -1], [0.6, -1], [0.6, 0.5]])
    masks = [
        ask(session, "subset", subset=chosen, **other)[1]["mask"]
        for other in ({}, {"metric": "ece"}, {"method": "ica", "of": "second"})
    ]
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


def test_the_even_odd_rule_of_a_lasso_that_crosses_itself() -> None:
    from orbical.interface.session.set_recipes import inside_lasso

    bow = np.array([[-1, -1], [1, 1], [1, -1], [-1, 1]])
    points = np.array([[-0.8, 0.0], [0.8, 0.0], [0.0, 0.8], [0.0, -0.8], [np.nan, 0]])
    assert inside_lasso(bow, points).tolist() == [True, True, False, False, False]


def test_the_list_is_sorted_by_the_orbit_mean(session: Session, digits: ob.Scan) -> None:
    mean = digits.data["score"].values.mean(2)
    header, worst = ask(session, "list")
    assert header["metric"] == "score"
    np.testing.assert_array_equal(worst["samples"], np.argsort(mean.mean(0), kind="stable"))
    np.testing.assert_allclose(worst["values"], np.sort(mean.mean(0)), rtol=1e-5)
    _, best = ask(session, "list", order="best", of="second")
    assert best["samples"][0] == mean[1].argmax()
    _, variable = ask(session, "list", order="variable", metric="confidence", of="first")
    assert variable["samples"][0] == digits.data["confidence"].values[0].var(1).argmax()
    _, few = ask(session, "list", filter=["label:7"])
    assert (digits.data["label"].values[few["samples"]] == 7).all()


def test_worst_means_largest_where_lower_is_better(session: Session, digits: ob.Scan) -> None:
    _, arrays = ask(session, "list", metric="action_defect")
    assert arrays["samples"][0] == digits.data["action_defect"].values.mean(1).argmax()


@pytest.mark.parametrize(
    ("color", "kind"),
    [("mean", "sequential"), ("variance", "sequential"), ("share_correct", "sequential")],
)
def test_colors_are_of_the_orbit(session: Session, digits: ob.Scan, color: str, kind: str) -> None:
    header, arrays = ask(session, "color", color=color, of="first")
    score, correct = digits.data["score"].values[0], digits.data["correct"].values[0]
    expected = {"mean": score.mean(1), "variance": score.var(1), "share_correct": correct.mean(1)}
    np.testing.assert_allclose(arrays["values"], expected[color], rtol=1e-4, atol=1e-6)
    assert header["scale"] == kind


def test_classes_and_gaps_color_too(session: Session, digits: ob.Scan) -> None:
    header, arrays = ask(session, "color", color="label")
    assert (header["scale"], header["range"]) == ("classes", [0, 9])
    np.testing.assert_array_equal(arrays["values"], digits.data["label"])
    header, arrays = ask(session, "color", color="gap", of="second")
    data = digits.data.isel(model=1)
    expected = (data["confidence"] - data["correct"]).mean("element").values
    np.testing.assert_allclose(arrays["values"], expected, atol=1e-5)
    assert header["scale"] == "diverging"
