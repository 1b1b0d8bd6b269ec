from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical.calibration import (
    brier,
    classwise,
    ece,
    nll,
    normalized_entropy,
    probabilities,
    top_label,
)
from orbical.errors import InputError


@given(
    size=st.integers(1, 50),
    classes=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    levels=st.sampled_from([None, 2, 4]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
)
@settings(max_examples=100, deadline=None)
def test_the_first_of_equal_maxima_is_the_prediction(size, classes, seed, levels, dtype):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(size, classes, generator=generator)
    if levels:  # rows with many equal entries
        logits = (logits * levels).round() / levels
    logits = logits.to(dtype)
    labels = torch.randint(0, classes, (size,), generator=generator)
    confidence, correct = top_label(logits=logits, labels=labels)
    probs = torch.softmax(logits.float() if logits.element_size() == 2 else logits, -1)
    predicted = torch.from_numpy(logits.double().numpy().argmax(-1))
    assert torch.equal(correct, predicted == labels)
    torch.testing.assert_close(confidence, probs.amax(-1), rtol=1e-6, atol=1e-7)
    again, correct_again = top_label(probs=probs, labels=labels)
    assert torch.equal(again, probs.amax(-1))
    assert torch.equal(correct_again, torch.from_numpy(probs.numpy().argmax(-1)) == labels)


def test_a_constant_model_is_right_on_class_zero_only():
    _, correct = top_label(logits=torch.zeros(6, 3), labels=[0, 1, 2, 0, 1, 2])
    assert correct.tolist() == [True, False, False, True, False, False]


def test_the_differentiable_path_gives_the_same_pair():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 5, (200,), generator=generator)
    plain = top_label(logits=logits, labels=labels)
    tracked = top_label(logits=logits.clone().requires_grad_(), labels=labels)
    assert tracked[0].requires_grad
    torch.testing.assert_close(tracked[0].detach(), plain[0])
    assert torch.equal(tracked[1], plain[1])


def test_the_differentiable_path_decides_ties_alike():
    logits = torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], requires_grad=True)
    confidence, correct = top_label(logits=logits, labels=[1, 1])
    assert correct.tolist() == [True, False]
    assert top_label(logits=logits.detach(), labels=[1, 1])[1].tolist() == [True, False]
    confidence.sum().backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_first_of_equal_maxima_is_the_prediction_in_large_arrays(classes, dtype):
    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(2000, classes, generator=generator) < 0.3
    probs = kept.to(dtype) * torch.randint(1, 3, kept.shape, generator=generator)
    probs[:, 3] += 1
    probs /= probs.sum(-1, keepdim=True)
    labels = torch.randint(0, classes, (2000,), generator=generator)
    predicted = torch.from_numpy(probs.numpy().argmax(-1))
    for arguments in (
        {"probs": probs},
        {"probs": torch.where(probs == 0, -0.0, probs)},
        {"logits": probs.log()},
    ):
        confidence, correct = top_label(**arguments, labels=labels)
        assert torch.equal(correct, predicted == labels)
        torch.testing.assert_close(confidence, probs.amax(-1))
    probs[1500, kept[1500].int().argmin()] = -1e-5  # of a class that has none
    with pytest.raises(InputError, match="values in "):
        top_label(probs=probs, labels=labels)


@pytest.mark.parametrize("measured", [top_label, classwise, nll, brier])
def test_every_row_of_a_large_array_is_checked(measured):
    rows = (1 << 22) // 100 + 500
    labels = torch.zeros(rows, dtype=torch.long)
    probs = torch.full((rows, 100), 0.01)
    for place, values in ((rows - 7, (-0.01, 0.03)), (4321, (0.01, 0.5)), (1, (0.01, torch.nan))):
        kept = probs[place, :2].clone()
        probs[place, :2] = torch.tensor(values)
        with pytest.raises(InputError, match="probs: "):
            measured(probs=probs, labels=labels)
        probs[place, :2] = kept
    probs[rows // 2 + 1, 3] = torch.nan
    with pytest.raises(InputError, match="logits: "):
        measured(logits=100 * probs, labels=labels)


def test_rows_that_do_not_lie_together_in_memory_are_read_right():
    probs = torch.softmax(torch.randn(5, 2000), 0).T
    labels = torch.randint(0, 5, (2000,))
    confidence, correct = top_label(probs=probs, labels=labels)
    assert torch.equal(confidence, probs.amax(-1))
    assert torch.equal(correct, probs.argmax(-1) == labels)


def test_blocks_of_rows_change_nothing():
    generator = torch.Generator().manual_seed(0)
    probs = torch.softmax(torch.randn(3, 40_000, 7, generator=generator), -1)
    labels = torch.randint(0, 7, (40_000,), generator=generator)
    confidence, correct = top_label(probs=probs, labels=labels)
    assert torch.equal(confidence, probs.amax(-1))
    assert torch.equal(correct, probs.argmax(-1) == labels)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_probabilities_count_as_normalized(dtype):
    probs = torch.softmax(torch.randn(500, 100, generator=torch.Generator().manual_seed(0)), -1)
    labels = torch.arange(500) % 100
    confidence, correct = top_label(probs=probs.to(dtype), labels=labels)
    assert confidence.dtype == dtype
    assert torch.equal(correct, probs.to(dtype).float().argmax(-1) == labels)


def test_classwise_gives_one_row_a_class():
    probs = torch.softmax(torch.randn(2, 9, 4), -1)
    labels = torch.randint(0, 4, (9,))
    confidence, correct = classwise(probs=probs, labels=labels)
    assert confidence.shape == correct.shape == (2, 4, 9)
    assert torch.equal(confidence, probs.transpose(1, 2))
    assert torch.equal(correct[0].long().argmax(0), labels)
    assert ece(confidence, correct).shape == (2, 4)


def test_entropy_is_between_zero_and_one_with_a_finite_gradient():
    logits = torch.tensor([[200.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    h = normalized_entropy(logits=logits)
    h.sum().backward()
    assert h.tolist() == pytest.approx([0, 1], abs=1e-6)
    assert torch.isfinite(logits.grad).all()


def test_numpy_and_lists_are_taken():
    assert ece(np.array([0.5, 0.7]), np.array([1, 0])).shape == ()
    assert ece([0.5, 0.7], [1.0, 0.0]).shape == ()


PROBS = [[0.7, 0.3], [0.4, 0.6]]


@pytest.mark.parametrize("measured", [top_label, classwise, nll])
def test_a_batch_without_counted_labels_and_unknown_labels_are_explained(measured):
    with pytest.raises(InputError, match=r"labels: expected .* other than ignore_index=-100"):
        measured(probs=PROBS, labels=[-100, -100], ignore_index=-100)
    with pytest.raises(InputError, match=r"labels: .*; to leave samples out pass ignore_index=-1"):
        measured(probs=PROBS, labels=[0, -1])


def test_logits_in_place_of_confidences_are_sent_to_top_label():
    with pytest.raises(InputError, match=r"confidence: .*with top_label\(logits=..., labels=...\)"):
        ece([3.0, 0.5], [True, False])


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("probs, logits: expected exactly one of the two, got neither", {}),
        ("probs, logits: .* got both", {"probs": PROBS, "logits": PROBS}),
        ("probs: .*got NaN", {"probs": [[float("nan"), 0.5], [0.5, 0.5]]}),
        (
            "logits: expected a finite maximum in every row, got NaN",
            {"logits": [[float("nan"), 0.5], [0.5, 0.5]]},
        ),
        (
            r"probs: expected values in \[0, 1\], got .*-0.5.*; pass outputs before the softmax as",
            {"probs": [[1.5, -0.5], [0.5, 0.5]]},
        ),
        (
            "probs: expected rows that sum to 1 within .*, got 1.2; pass outputs before",
            {"probs": [[0.7, 0.5], [0.5, 0.5]]},
        ),
        (
            "probs: .*got 0.999; normalize rounded values: divide each row by its sum",
            {"probs": [[0.3, 0.699], [0.5, 0.5]]},
        ),
        ("probs: .*got 100; divide percentages by 100", {"probs": [[30.0, 70.0], [50.0, 50.0]]}),
        ("probs: expected floating-point", {"probs": [[1, 0], [0, 1]]}),
        (r"probs: expected shape \[..., N, C\], got a single number", {"probs": 0.7}),
        (r"probs: expected values in \[0, 1\], got values in \[-2, 3\]", {"probs": [0.7, 3.0]}),
        (r"labels: expected class indices 0 to 1, got values in \[0, 2\]", {"labels": [0, 2]}),
        ("labels: expected class indices 0 to 1, got values in", {"labels": [-1, 0]}),
        (r"labels: expected integer .* got float32 .* labels.long\(\)", {"labels": [0.0, 1.0]}),
        (r"labels: .* got text; number them with numpy.unique", {"labels": ["cat", "dog"]}),
        (r"labels: .* e.g. labels.argmax\(-1\)", {"labels": [[1.0, 0.0], [0.0, 1.0]]}),
        ("probs: expected at least one sample", {"probs": torch.zeros(0, 2)}),
        ("labels: expected an array of numbers, got NoneType", {"labels": None}),
        ("labels: expected 2 labels along the last axis", {"labels": [0, 1, 1]}),
        ("labels: expected a shape that fits outputs", {"labels": [[0, 1], [0, 1]]}),
    ],
)
@pytest.mark.parametrize("function", [top_label, classwise])
def test_bad_outputs_are_named(function, message, arguments):
    given_ = {"labels": [0, 1], **arguments}
    if "labels" in arguments:
        given_["probs"] = PROBS
    with pytest.raises(InputError, match=message):
        function(**given_)


@pytest.mark.parametrize(
    ("message", "confidence", "correct", "weights"),
    [
        ("confidence: .*got NaN", [0.5, float("nan")], [True, False], None),
        ("confidence: .*got values in .*1.2", [0.5, 1.2], [True, False], None),
        ("confidence: .*got values in .*-0.1", [-0.1, 0.2], [True, False], None),
        ("confidence: expected at least 1 sample, got 0", torch.zeros(0), torch.zeros(0), None),
        ("confidence, correct: expected no empty", torch.zeros(0, 3), torch.zeros(3), None),
        ("confidence: expected floating-point", [1, 0], [True, False], None),
        ("confidence: expected an array", torch.tensor(0.5), True, None),
        ("confidence: expected an array of numbers", ["high"], [True], None),
        ("correct: expected 2 values", [0.5, 0.5], [True], None),
        ("correct: .* make the pair from .*top_label", [[0.5, 0.5]] * 3, [0, 1, 1], None),
        (
            r"correct: expected values in \[0, 1\], got values in \[0, 3\]$",
            [0.5, 0.5],
            [0, 3],
            None,
        ),
        ("correct: expected an array of numbers", [0.5], None, None),
        ("correct: expected an array of numbers", [0.5], ["yes"], None),
        ("weights: expected an array of numbers", [0.5], [True], ["much"]),
        ("correct: expected a shape that broadcasts", torch.ones(2, 2), torch.ones(3, 2), None),
        ("weights: expected 2 values", [0.5, 0.5], [1, 0], [1.0]),
        ("weights: expected finite values >= 0", [0.5, 0.5], [1, 0], [1.0, -1.0]),
        ("weights: expected at least 1 positive weight, got 0", [0.5, 0.5], [1, 0], [0.0, 0.0]),
    ],
)
def test_bad_pairs_are_named(message, confidence, correct, weights):
    with pytest.raises(InputError, match=message):
        ece(confidence, correct, weights=weights)


def test_infinite_logits_of_excluded_classes_are_allowed():
    confidence, correct = top_label(logits=[[0.0, -float("inf")]], labels=[0])
    assert confidence.item() == 1
    assert correct.item()


def test_logits_without_any_finite_maximum_are_refused():
    with pytest.raises(InputError, match="logits"):
        top_label(logits=[[float("inf"), 0.0]], labels=[0])
    with pytest.raises(InputError, match="logits"):
        probabilities(logits=[[-float("inf"), -float("inf")]])


@pytest.mark.parametrize("rows", [PROBS * 2, [[0.0, 1.0]] * 3])
def test_probabilities_called_logits_are_pointed_out(rows):
    with pytest.warns(UserWarning, match="pass them as probs=") as told:
        top_label(logits=rows, labels=[0] * len(rows))
    assert told[0].filename == __file__


def test_logits_are_not_taken_for_probabilities(recwarn):
    top_label(logits=torch.randn(50, 3), labels=[0] * 50)
    top_label(logits=torch.randn(50, 3).abs(), labels=[0] * 50)
    top_label(logits=[[1.0, 0.0]], labels=[0])
    assert not recwarn.list
