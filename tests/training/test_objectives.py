"""Interleaved batches and the objective that uses them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from orbical import losses, training
from orbical.errors import InputError


def test_the_shorter_calibration_loader_is_cycled_and_starts_anew_each_epoch() -> None:
    pairs = training.interleave([1, 2, 3, 4, 5], ["a", "b"])
    expected = [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "a")]
    assert list(pairs) == expected
    assert list(pairs) == expected
    assert len(pairs) == 5


def test_a_longer_calibration_loader_is_cut_to_the_training_one() -> None:
    assert list(training.interleave([1], ["a", "b"])) == [(1, "a")]


def test_any_two_loaders_pair_without_losing_or_doubling_a_training_sample() -> None:
    train = DataLoader(TensorDataset(torch.arange(10)), batch_size=3, shuffle=True)
    held = DataLoader(TensorDataset(torch.arange(100, 104)), batch_size=2, shuffle=True)
    seen, other = [], []
    for (x,), (y,) in training.interleave(train, held):
        seen += x.tolist()
        other += y.tolist()
    assert sorted(seen) == list(range(10))
    assert set(other) == {100, 101, 102, 103}


class OnceOnly:
    """Looks like a loader, but is empty the second time."""

    def __init__(self) -> None:
        self.left = [1]

    def __iter__(self) -> Iterator[int]:
        while self.left:
            yield self.left.pop()


def test_what_cannot_be_read_again_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"^calibration.*iterator"):
        training.interleave([1], iter([1]))
    with pytest.raises(InputError, match=r"^train.*iterator"):
        training.interleave((i for i in range(3)), [1])
    with pytest.raises(InputError, match=r"^calibration.*empty"):
        training.interleave([1], [])
    with pytest.raises(InputError, match=r"^train.*int"):
        training.interleave(3, [1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^calibration.*more than once"):
        list(training.interleave([1, 2], OnceOnly()))


def test_the_objective_is_the_papers_equation_11() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 4)
    own = torch.randn(8, 3), torch.randint(4, (8,))
    held = torch.randn(6, 3), torch.randint(4, (6,))
    value = training.interleaved(losses.esd, weight=2.5)(model, (own, held))
    expected = functional.cross_entropy(model(own[0]), own[1])
    expected = expected + 2.5 * losses.esd(model(held[0]), held[1])
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    with pytest.raises(InputError, match=r"^weight"):
        training.interleaved(losses.esd, weight=-1.0)


def test_the_likelihood_of_bfloat16_logits_is_taken_in_float32() -> None:
    logits, labels = torch.randn(5, 3).bfloat16(), torch.tensor([0, 1, 2, 0, 1])
    value = training.likelihood(nn.Identity(), (logits, labels))
    assert value.dtype == torch.float32
    assert value == functional.cross_entropy(logits.float(), labels)


def test_batches_of_another_form_are_refused_by_name() -> None:
    batch = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])
    model = nn.Identity()
    paired = training.interleaved(losses.esd, weight=1.0)
    with pytest.raises(InputError, match=r"interleave\(train_loader, calibration_loader\)"):
        paired(model, batch)
    with pytest.raises(InputError, match=r"got a pair of batches; .*objective=interleaved"):
        training.likelihood(model, (batch, batch))
    with pytest.raises(InputError, match="got tuple of Tensor, Tensor, Tensor"):
        training.likelihood(model, (*batch, batch[0]))
    with pytest.raises(
        InputError, match="calibration_loss: expected a function of logits and labels, got 'esd'"
    ):
        training.interleaved("esd", weight=1.0)


def test_labels_of_any_whole_type_train_alike() -> None:
    logits, labels = torch.randn(4, 2), torch.tensor([0, 1, 0, 1])
    for kind in (torch.int32, torch.uint8):
        short = (logits, labels.to(kind))
        objective = training.interleaved(losses.esd, weight=1.0)
        assert training.likelihood(nn.Identity(), short) == functional.cross_entropy(logits, labels)
        assert objective(nn.Identity(), (short, short)).isfinite()
