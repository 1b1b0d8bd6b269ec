from __future__ import annotations

import numpy as np
import pytest
import torch
from calibration_references import loop_ece
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_calibration_error

from orbical.calibration import ece, ece_loss, error_of, reliability, top_label
from orbical.calibration.measures.binned import bin_index
from orbical.errors import InputError

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@given(
    values=st.lists(st.floats(0, 1, width=16), min_size=1, max_size=40),
    bins=st.integers(1, 30),
    norm=st.sampled_from(["l1", "l2", "max"]),
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_ece_equals_a_walk_over_samples_and_bins(values, bins, norm, seed, weighted):
    z = torch.tensor(values, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    correct = torch.rand(len(z), generator=generator) < 0.6
    weights = torch.rand(len(z), generator=generator).double() + 0.1
    edges = (torch.arange(bins + 1, dtype=torch.float64) / bins).tolist()
    used = weights if weighted else None
    expected = loop_ece(z, correct, edges, weights if weighted else torch.ones(len(z)))
    value = ece(z, correct, bins=bins, norm=norm, weights=used)
    assert value.item() == pytest.approx(expected[norm], abs=1e-14)


@given(
    levels=st.integers(1, 60),
    bins=st.integers(1, 12),
    size=st.integers(1, 60),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=80, deadline=None)
def test_equal_mass_bins_end_at_ranks_and_never_split_a_tie(levels, bins, size, seed):
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(size, generator=generator, dtype=torch.float64)
    z = (z * levels).round() / levels
    correct = torch.rand(size, generator=generator) < 0.6
    ranked = sorted(z.tolist())
    ranks = [-(-j * size // bins) - 1 for j in range(1, bins)]
    edges = [0.0, *(ranked[max(r, 0)] for r in ranks), 1.0]
    diagram = reliability(z, correct, bins=bins, binning="mass")
    assert diagram.edges.tolist() == edges
    assert diagram.count.sum() == size
    expected = loop_ece(z, correct, edges, torch.ones(size))
    for norm, value in expected.items():
        assert error_of(diagram, norm).item() == pytest.approx(value, abs=1e-14)


def test_equal_mass_bins_hold_equal_counts_without_ties():
    z = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    assert reliability(z, z > 0.5, bins=10, binning="mass").count.tolist() == [100] * 10


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_an_integer_weight_is_a_repeated_sample(binning):
    generator = torch.Generator().manual_seed(3)
    z = torch.rand(50, generator=generator, dtype=torch.float64)
    correct = torch.rand(50, generator=generator) < z
    weights = torch.randint(0, 4, (50,), generator=generator)
    repeated = ece(
        z.repeat_interleave(weights), correct.repeat_interleave(weights), binning=binning
    )
    assert ece(z, correct, weights=weights, binning=binning).item() == pytest.approx(
        repeated.item(), abs=1e-14
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bins", [1, 2, 3, 5, 7, 10, 15, 20, 49, 100])
def test_a_value_on_an_edge_belongs_to_the_bin_below_in_every_dtype(dtype, bins):
    edges = (torch.arange(bins + 1, dtype=torch.float64) / bins).to(dtype)
    expected = torch.arange(bins + 1).sub(1).clamp(min=0)
    assert torch.equal(bin_index(edges, bins), expected)
    above = torch.nextafter(edges[:-1].float(), torch.tensor(2.0)).to(dtype)
    moved = above > edges[:-1]  # the next float32 may round back in half precision
    assert torch.equal(bin_index(above, bins)[moved], torch.arange(bins)[moved])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bins", [1, 3, 15, 100])
def test_arithmetic_binning_equals_bucketize(dtype, bins):
    z = torch.rand(20_000, generator=torch.Generator().manual_seed(1)).to(dtype)
    inner = (torch.arange(1, bins, dtype=torch.float64) / bins).to(dtype)
    assert torch.equal(bin_index(z, bins), torch.bucketize(z, inner))


def test_exactly_zero_and_exactly_one_are_in_the_first_and_the_last_bin():
    diagram = reliability([0.0, 1.0, 1.0], [False, True, False], bins=4)
    assert diagram.count.tolist() == [1, 0, 0, 2]
    assert diagram.gap[3].item() == -0.5
    assert torch.isnan(diagram.gap[1])


def test_a_softmax_that_rounds_above_one_is_in_the_last_bin():
    assert reliability(torch.tensor([1.0 + 1e-6]), [True], bins=4).count.tolist() == [0, 0, 0, 1]


def test_counts_and_sums_are_exact_for_forty_million_samples_in_one_bin():
    size = 40_000_000
    z = torch.tensor([0.7]).expand(size)
    correct = torch.ones(1, dtype=torch.bool).expand(size)
    diagram = reliability(z, correct)
    assert diagram.count.max().item() == size
    assert error_of(diagram).item() == pytest.approx(1 - z[0].item(), rel=1e-9)


def test_half_precision_input_is_summed_in_float64():
    z = torch.full((200_000,), 0.7, dtype=torch.float16)
    correct = torch.ones(200_000, dtype=torch.bool)
    assert ece(z, correct).item() == pytest.approx(1 - z[0].item(), rel=1e-9)


def test_leading_axes_broadcast_and_agree_with_single_rows():
    generator = torch.Generator().manual_seed(5)
    z = torch.rand(4, 3, 700, generator=generator)
    correct = torch.rand(4, 3, 700, generator=generator) < z
    weights = torch.rand(5, 1, 1, 700, generator=generator)
    for binning in ("width", "mass"):
        together = ece(z, correct, binning=binning, weights=weights)
        assert together.shape == (5, 4, 3)
        for i, j, k in [(0, 0, 0), (4, 3, 2), (2, 1, 0)]:
            alone = ece(z[j, k], correct[j, k], binning=binning, weights=weights[i, 0, 0])
            assert together[i, j, k].item() == pytest.approx(alone.item(), abs=1e-14)


def test_rows_longer_than_a_block_agree_with_numpy():
    generator = torch.Generator().manual_seed(5)
    z = torch.rand(2, 150_000, generator=generator, dtype=torch.float64)
    correct = torch.rand(2, 150_000, generator=generator) < z**2
    for row in range(2):
        index = np.minimum(np.ceil(z[row].numpy() * 15).astype(int) - 1, 14)
        d = (correct[row].double() - z[row]).numpy()
        expected = np.abs(np.bincount(index, d, minlength=15)).sum() / 150_000
        assert ece(z, correct)[row].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_torchmetrics_agrees_where_it_is_right(norm):
    generator = torch.Generator().manual_seed(2)
    z = torch.rand(5000, generator=generator, dtype=torch.float64) * 0.998 + 0.001
    correct = torch.rand(5000, generator=generator) < z**2
    theirs = binary_calibration_error(z, correct.long(), n_bins=15, norm=norm)
    assert ece(z, correct, norm=norm).item() == pytest.approx(theirs.item(), abs=1e-6)


def test_torchmetrics_puts_confidence_one_in_a_bin_of_its_own():
    z = torch.tensor([0.95, 0.95, 1.0, 1.0])
    correct = torch.tensor([1, 1, 0, 1])
    # One bin (0.9, 1]: confidence .975, accuracy .75. Split in two the error is .25 + .025.
    assert ece(z, correct, bins=10).item() == pytest.approx(0.225, abs=1e-6)
    theirs = binary_calibration_error(z, correct, n_bins=10, norm="l1")
    assert theirs.item() == pytest.approx(0.275, abs=1e-6)


def test_real_outputs_agree_with_numpy(shared_data):
    for name in ("lenet-5-cifar-10", "wideresnet-16-4-cifar-10", "lenet-5-cifar-100"):
        archive = np.load(shared_data / "logits" / f"{name}.npz")
        probs, labels = archive["probs"], archive["labels"]
        confidence, correct = top_label(probs=probs, labels=labels)
        assert np.array_equal(confidence.numpy(), probs.max(1))
        assert np.array_equal(correct.numpy(), probs.argmax(1) == labels)
        edges = (np.arange(1, 15) / 15).astype(np.float32)
        index = np.searchsorted(edges, probs.max(1))
        d = correct.numpy() - probs.max(1).astype(np.float64)
        expected = np.abs(np.bincount(index, d, minlength=15)).sum() / len(d)
        assert ece(confidence, correct).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_loss_equals_the_measure_and_passes_gradcheck(norm):
    generator = torch.Generator().manual_seed(7)
    z = torch.rand(3, 20, generator=generator, dtype=torch.float64)
    correct = torch.rand(3, 20, generator=generator) < z
    torch.testing.assert_close(ece_loss(z, correct, norm=norm), ece(z, correct, norm=norm))
    assert torch.autograd.gradcheck(lambda x: ece_loss(x, correct, norm=norm), z.requires_grad_())


def test_numpy_integers_are_numbers_of_bins() -> None:
    confidence, correct = [0.9, 0.2, 0.7], [True, False, False]
    for bins in (np.int64(7), np.int32(7), 7):
        assert ece(confidence, correct, bins=bins) == ece(confidence, correct, bins=7)


def test_bad_options_are_named():
    with pytest.raises(InputError, match="bins: expected an integer >= 1, got 0"):
        ece([0.5], [True], bins=0)
    with pytest.raises(InputError, match="bins"):
        ece([0.5], [True], bins=2.5)
    with pytest.raises(InputError, match="norm: unknown name 'l3'"):
        ece([0.5], [True], norm="l3")
    with pytest.raises(InputError, match="binning: unknown name 'widht'; did you mean 'width'"):
        ece([0.5], [True], binning="widht")
    with pytest.raises(InputError, match="norm"):
        ece_loss([0.5], [True], norm="max")
