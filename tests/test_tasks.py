"""Tasks: reading answers, scores and their invariance, the consensus as a group average."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import actions, groups, tasks
from orbical.errors import InputError, ModelError


def weights_of(group):
    return torch.as_tensor(group.weights)


def test_classification_reads_logits_and_probabilities_as_told():
    raw = torch.tensor([[0.2, 0.8], [0.5, 0.5]])
    as_logits = tasks.Classification().read(raw)
    np.testing.assert_allclose(as_logits, raw.softmax(-1))
    as_told = tasks.Classification(outputs="probabilities").read(raw)
    assert torch.equal(as_told, raw)
    by_predictor = tasks.Classification().read(raw, "probabilities")
    assert torch.equal(by_predictor, raw)


def test_read_takes_what_the_task_expects_from_a_raw_output():
    task = tasks.Classification(read=lambda raw: raw["scores"])
    assert task.read({"scores": torch.zeros(4, 3)}).shape == (4, 3)


def test_classification_summary_equals_its_definition():
    generator = torch.Generator().manual_seed(0)
    group = groups.scales(0.5, 2, 5)  # unequal weights
    probabilities = torch.rand(5, 7, 4, generator=generator).softmax(-1)
    labels = torch.arange(7) % 4
    summary = tasks.Classification().summarize(probabilities, labels, group, weights_of(group))
    w = torch.as_tensor(group.weights)
    for b in range(7):
        mean = sum(w[k] * probabilities[k, b].double() for k in range(5))
        winner = int(mean.argmax())
        np.testing.assert_allclose(summary["consensus"][b], mean, atol=1e-6)
        gap = sum(w[k] * ((probabilities[k, b] - mean) ** 2).sum() for k in range(5)).sqrt()
        np.testing.assert_allclose(summary["invariance_gap"][b], gap, atol=1e-6)
        np.testing.assert_allclose(summary["consensus_vs_truth"][b], mean[labels[b]], atol=1e-6)
        for k in range(5):
            p = probabilities[k, b]
            assert summary["score"][b, k] == p[labels[b]]
            assert summary["score_vs_consensus"][b, k] == p[winner]
            assert summary["confidence"][b, k] == p.max()
            assert summary["predicted"][b, k] == p.argmax()
            assert bool(summary["correct"][b, k]) == (int(p.argmax()) == int(labels[b]))


def test_without_labels_only_the_consensus_judges():
    group = groups.cyclic(4)
    summary = tasks.Classification().summarize(
        torch.rand(4, 3, 5).softmax(-1), None, group, weights_of(group)
    )
    assert "score" not in summary
    assert "score_vs_consensus" in summary


def random_outputs(task, group, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "flow": (3, 2, 8, 8),
        "regression": (3, 4, 3) if getattr(task, "per_point", 0) else (3, 3),
    }
    x = torch.randn(shapes[task.name], generator=generator, dtype=torch.float64)
    return x.expand(len(group), *x.shape)


@pytest.mark.parametrize(
    ("task", "spec"),
    [
        (tasks.Flow(), "dihedral:4*time_reversal"),
        (tasks.Regression(actions.Vectors(), "vector"), "rotations3d:12"),
        (
            tasks.Regression(actions.Points(), "vector", per_point=True),
            "rotations3d:6*permutations:4",
        ),
        (tasks.Regression(actions.Points(), "1x1o"), "rotations3d:12"),
        (tasks.Regression(actions.Points(), "trivial"), "rotations3d:12"),
    ],
)
def test_a_score_that_declares_invariance_has_it(task, spec):
    """Moving answer and truth together changes nothing."""
    group = groups.parse(spec)
    assert task.isometric(group)
    answer, truth = random_outputs(task, group, 1), random_outputs(task, group, 2)
    together = task.score(task.output.move(group, answer), task.output.move(group, truth), None)
    np.testing.assert_allclose(together, task.score(answer, truth, None), rtol=1e-5)


def test_a_score_that_scaling_changes_says_so():
    group = groups.scales(0.5, 2, 3)
    task = tasks.Flow()
    assert not task.isometric(group)
    answer, truth = torch.zeros(3, 1, 2, 8, 8), torch.ones(3, 1, 2, 8, 8)
    moved = task.score(answer, task.output.move(group, truth), None)
    assert float(moved[0, 0]) != pytest.approx(float(moved[1, 0]))


@pytest.mark.parametrize(
    ("task", "spec", "truth"),
    [
        (tasks.Flow(), "dihedral:4*time_reversal", torch.randn(2, 2, 8, 8)),
        (tasks.Regression(actions.Vectors(), "vector"), "rotations3d:9", torch.randn(2, 3)),
        (
            tasks.Regression(actions.Points(), "vector", per_point=True),
            "rotations3d:5*permutations:4",
            torch.randn(2, 4, 3),
        ),
        (
            tasks.Regression(actions.Points(), per_point=True),
            "rotations3d:5*permutations:4",
            torch.randn(2, 4, 3),
        ),
        (
            tasks.Regression(actions.Points(), "1o", per_point=True),
            "rotations3d:5*permutations:4",
            torch.randn(2, 4, 3),
        ),
    ],
)
def test_an_equivariant_answer_has_a_perfect_consensus_and_no_gap(task, spec, truth):
    """Even where it is wrong: only the consensus against the truth shows that."""
    group = groups.parse(spec)
    wrong = truth + 1.0
    outputs = task.output.apply(group, wrong)
    outputs = {"mean": outputs} if task.name == "regression" else outputs
    summary = task.summarize(outputs, truth, group, weights_of(group))
    np.testing.assert_allclose(summary["consensus"], wrong, atol=1e-5)
    assert float(summary["invariance_gap"].max()) < 1e-5
    assert float(summary["score_vs_consensus"].max()) < 1e-5
    assert float(summary["consensus_vs_truth"].min()) > 1
    spread = summary["score"].max(1).values - summary["score"].min(1).values
    assert float(spread.max()) < 1e-5, "flat along the orbit, because the score is invariant"


def test_the_gap_of_an_exact_model_is_rounding_alone_over_many_elements():
    group = groups.slices3d(36, 10)
    task = tasks.Regression(actions.Vectors(), "vector")
    truth = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    outputs = {"mean": task.output.apply(group, truth)}
    summary = task.summarize(outputs, truth, group, weights_of(group))
    assert float(summary["invariance_gap"].max()) < 2e-6
    assert float(summary["consensus_vs_truth"].max()) < 2e-6


def test_flow_scores_respect_the_valid_region():
    """A perfect flow that is wrong only where nothing real is seen has no error."""
    group = groups.rotations(8)
    task = tasks.Flow()
    truth = torch.zeros(1, 2, 17, 17)
    truth[:, 0] = 1
    valid = task.output.valid(group, truth)
    outputs = task.output.apply(group, truth)
    outputs = torch.where(valid[:, None, None], outputs, torch.tensor(99.0))
    summary = task.summarize(outputs, truth, group, weights_of(group))
    assert float(summary["score"].max()) < 1e-5


def test_flow_stores_a_reduced_error_map():
    group = groups.cyclic(4)
    outputs = torch.zeros(4, 1, 2, 32, 32)
    truth = torch.zeros(1, 2, 32, 32)
    truth[:, :, :16, :16] = 3
    summary = tasks.Flow().summarize(outputs, truth, group, weights_of(group))
    assert summary["error_map"].shape == (1, 4, 16, 16)
    assert float(summary["error_map"][0, 0, 0, 0]) == pytest.approx(3 * 2**0.5)
    assert float(summary["error_map"][0, 0, 15, 15]) == 0
    assert float(summary["error_map"][0, 1, 15, 0]) == pytest.approx(3 * 2**0.5), "turned along"


def test_the_error_map_leaves_out_what_nothing_real_is_seen_of():
    group = groups.rotations(8)
    task = tasks.Flow()
    truth = torch.ones(1, 2, 32, 32)
    valid = task.output.valid(group, truth)
    outputs = torch.where(valid[:, None, None], task.output.apply(group, truth), torch.tensor(99.0))
    found = task.summarize(outputs, truth, group, weights_of(group))["error_map"]
    assert float(found.nan_to_num().max()) < 1e-5
    assert bool(found[0, 1, 0, 0].isnan()), "a corner turned by 45 degrees comes from outside"


def test_answers_of_each_point_follow_the_order_of_the_points():
    """A model that answers each point alone is equivariant under their order."""
    points = torch.randn(3, 4, 3)
    for task, model in (
        (tasks.Regression(actions.Points(), per_point=True), lambda x: x.norm(dim=-1)[..., None]),
        (tasks.Regression(actions.Points(), "1o", per_point=True), lambda x: 2 * x),
    ):
        scan = ob.scan(model, points, group="permutations:4", task=task, progress=False)
        assert float(ob.nero.invariance_gap(scan)["total"].max()) < 1e-5


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: tasks.Classification().read(torch.zeros(4, 2, 2)), "[sample, class]"),
        (lambda: tasks.Classification().read(torch.zeros(4, 0)), "[sample] of class 1 of two"),
        (lambda: tasks.Classification().read({"a": 1}), "got a dictionary of 'a'"),
        (
            lambda: tasks.Classification(outputs="probabilities").read(torch.ones(2, 3)),
            "sum to 3",
        ),
        (lambda: tasks.Flow().read(torch.zeros(2, 8, 8, 2)), "[sample, 2, row, column]"),
        (lambda: tasks.Regression().read({"value": 1}), "(mean, variance)"),
        (lambda: tasks.Regression().read(torch.zeros(2, 3, 4)), "[sample, component]"),
        (
            lambda: tasks.Regression(None, "vector").read(torch.zeros(2, 4)),
            "expected vectors of 2 or 3 components, got 4",
        ),
    ],
)
def test_answers_that_cannot_be_read_are_explained(read, words):
    with pytest.raises(ModelError) as caught:
        read()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            lambda: tasks.Classification().check_target([0.5, 1.0], 2),
            "expected integers of shape (N,), got float32 of shape (2,); pass class indices, "
            "e.g. labels.astype(int)",
        ),
        (
            lambda: tasks.Classification().check_target(["cat", "dog"], 2),
            "got text; number them with numpy.unique",
        ),
        (
            lambda: tasks.Classification().check_target([0, 1, 2], 2),
            "expected one for each of 2 samples, got 3",
        ),
        (lambda: tasks.Classification().check_target([0, -1], 2), "class indices from 0"),
        (
            lambda: tasks.Classification().check_target([[0, 1], [1, 0]], 2),
            "expected integers of shape (N,), got int64 of shape (2, 2); pass class indices, "
            "e.g. labels.argmax(-1)",
        ),
        (
            lambda: tasks.Classification().check_range(torch.tensor([0, 7]), torch.zeros(2, 3)),
            "expected class indices below 3",
        ),
        (lambda: tasks.Flow().check_target(torch.zeros(2, 8, 8), 2), "[sample, 2, row, column]"),
        (
            lambda: tasks.Flow().check_target(torch.zeros(1, 2, 8, 8), 2),
            "expected one for each of 2 samples, got 1",
        ),
        (lambda: tasks.Regression().check_target(torch.zeros(2, 3, 3), 2), "[sample, component]"),
        (
            lambda: tasks.Regression().check_range(torch.zeros(2, 3), {"mean": torch.zeros(2, 1)}),
            "expected shape (1,)",
        ),
        (
            lambda: tasks.Classification().check_target(["a", "b"], 2),
            "an array of numbers, got text",
        ),
        (
            lambda: tasks.Classification().check_target(["10", "2"], 2),
            "got text; convert them, numpy.asarray(labels, int)",
        ),
        (
            lambda: tasks.Regression().check_target(["0.5", "2"], 2),
            "got text; convert them, numpy.asarray(labels, float)",
        ),
        (
            lambda: tasks.Classification().check_target(torch.zeros(2, 4, 4).long(), 2),
            "got int64 of shape (2, 4, 4); a class for each pixel is task='segmentation'",
        ),
        (lambda: tasks.Regression().check_target([0.0, np.nan], 2), "NaN or infinite"),
        (lambda: tasks.Flow().check_target(torch.full((1, 2, 8, 8), np.inf), 1), "NaN or infinite"),
        (lambda: tasks.Classification(outputs="logit"), "did you mean 'logits'"),
        (
            lambda: tasks.Classification(classes="cat"),
            "classes: expected a list of names, got 'cat'",
        ),
        (lambda: tasks.Classification(classes=3), "classes: expected a list of names, got 3"),
        (lambda: tasks.Atoms(None), "quantities: expected some of energy"),
        (
            lambda: tasks.Atoms().take(
                ({"pos": torch.zeros(1, 1, 3), "numbers": torch.ones(1, 1).long()}, {"force": 0})
            ),
            "truth: unknown name 'force'; did you mean 'forces'",
        ),
        (lambda: tasks.parse_input("image"), "did you mean 'images'"),
        (lambda: tasks.parse_input("window"), "expected settings that window takes"),
    ],
)
def test_truth_that_does_not_fit_is_refused(check, words):
    with pytest.raises(InputError) as caught:
        check()
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["u1", "u2", "u8", ">i4", "?"])
def test_labels_may_be_whole_numbers_of_any_kind(kind):
    labels = np.array([1, 0, 1])[::-1].astype(kind)
    labels.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tasks.Classification().check_target(labels[::-1], 3).tolist() == [1, 0, 1]
        assert tasks.Classification().check_target(labels[::-1, None], 3).tolist() == [1, 0, 1]


def test_many_classes_are_counted_too_where_no_array_has_one_number_for_each():
    def net(classes):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, classes))

    def scan(models, task="classification"):
        images = torch.rand(4, 1, 4, 4)
        return ob.scan(models, images, group="cyclic:4", task=task, progress=False)

    assert scan(net(300)).data["predicted"].attrs["classes"] == 300
    with pytest.raises(ModelError, match="model 'b': expected 300 classes as for 'a', got 301"):
        scan({"a": net(300), "b": net(301)})
    task = ob.tasks.Classification(classes=[f"c{i}" for i in range(299)])
    with pytest.raises(InputError, match="the names of the model's 300 classes, got 299"):
        scan(net(300), task)


def test_the_names_of_classes_are_kept_with_the_scan_and_counted():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    data = (torch.rand(4, 1, 4, 4), torch.tensor([0, 1, 2, 0]))
    names = ["cat", "dog", "owl"]
    task = ob.tasks.Classification(classes=names)
    scan = ob.scan(net, data, group="cyclic:4", task=task, progress=False)
    assert scan.record.task.settings["classes"] == names
    with pytest.raises(
        InputError,
        match="the names of the model's 3 classes, got 2, cat, dog; pass",
    ):
        ob.scan(
            net,
            data,
            group="cyclic:4",
            task=ob.tasks.Classification(classes=names[:2]),
            progress=False,
        )
