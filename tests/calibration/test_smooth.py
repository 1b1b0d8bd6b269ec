from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical.calibration import ece, ks, smooth_ece, top_label
from orbical.errors import InputError


def world(size: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(size, generator=generator, dtype=torch.float64)
    return z, torch.rand(size, generator=generator, dtype=torch.float64) < z**2


def direct_error(z: np.ndarray, correct: np.ndarray, bandwidth: float) -> float:
    """The integral by quadrature, with the Gaussian reflected sample by sample."""
    t = np.linspace(0, 1, 4001)
    kernel = np.zeros((len(t), len(z)))
    for shift in range(-4, 5):
        for image in (z, -z):
            kernel += np.exp(-((t[:, None] - image[None, :] - 2 * shift) ** 2) / 2 / bandwidth**2)
    kernel /= np.sqrt(2 * np.pi) * bandwidth
    density = kernel @ (correct - z) / len(z)
    return float(np.trapezoid(np.abs(density), t))


@pytest.mark.parametrize("bandwidth", [0.01, 0.05, 0.3, 1.0])
def test_a_fixed_bandwidth_equals_quadrature_of_the_definition(bandwidth):
    z, correct = world(60)
    expected = direct_error(z.numpy(), correct.numpy().astype(float), bandwidth)
    value = smooth_ece(z, correct, bandwidth=bandwidth)
    assert value.item() == pytest.approx(expected, abs=2e-5)


@given(size=st.integers(1, 300), seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_automatic_bandwidth_is_the_fixed_point(size, seed):
    z, correct = world(size, seed)
    value = smooth_ece(z, correct).item()
    if value > 1e-6:
        assert smooth_ece(z, correct, bandwidth=value).item() == pytest.approx(value, abs=1e-9)


def test_a_bandwidth_never_raises_the_error():
    z, correct = world(400)
    values = [smooth_ece(z, correct, bandwidth=s).item() for s in (0.01, 0.03, 0.1, 0.3)]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(values))


def test_saturated_confidences_keep_all_their_mass():
    z = torch.tensor([0.0, 0.0, 1.0, 1.0])
    assert smooth_ece(z, [False, True, True, False], bandwidth=0.02).item() == pytest.approx(0.5)
    assert smooth_ece(z, [False, False, True, True]).item() == pytest.approx(0, abs=1e-12)


def test_leading_axes_are_answered_row_by_row():
    rows = [world(80, seed) for seed in range(4)]
    z, correct = (torch.stack(part).view(2, 2, 80) for part in zip(*rows, strict=True))
    expected = torch.stack([smooth_ece(*row) for row in rows]).view(2, 2)
    torch.testing.assert_close(smooth_ece(z, correct), expected)


@pytest.fixture
def relplot():
    package = pytest.importorskip("relplot", reason="relplot is not installed")
    package.config.use_logit_scaling = False
    package.config.smECE_mesh_pts = 5000
    return package


def real_pair(folder, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    archive = np.load(folder / "logits" / f"{name}.npz")
    return top_label(probs=archive["probs"], labels=archive["labels"])


@pytest.mark.peers
def test_relplot_agrees_on_outputs_that_do_not_saturate(relplot, shared_data):
    confidence, correct = real_pair(shared_data, "lenet-5-cifar-10")
    inside = confidence < 0.99
    confidence, correct = confidence[inside], correct[inside]
    f, y = confidence.double().numpy(), correct.numpy().astype(float)
    for sigma in (0.02, 0.1):
        ours = smooth_ece(confidence, correct, bandwidth=sigma).item()
        assert ours == pytest.approx(relplot.smECE_sigma(f, y, sigma=sigma), abs=2e-4)
    assert smooth_ece(confidence, correct).item() == pytest.approx(relplot.smECE(f, y), abs=2e-3)


@pytest.mark.peers
def test_relplot_loses_half_of_the_samples_that_have_confidence_one(relplot, shared_data):
    # Its reflection counts the end points of the grid once instead of twice, so that saturated
    # samples weigh half. This network is overconfident nearly everywhere, and any calibration
    # error is then the mean difference, whatever the bandwidth.
    confidence, correct = real_pair(shared_data, "wideresnet-16-4-cifar-10")
    f, y = confidence.double().numpy(), correct.numpy().astype(float)
    mean_difference = abs(np.mean(y - f))
    assert smooth_ece(confidence, correct).item() == pytest.approx(mean_difference, abs=1e-3)
    assert relplot.smECE(f, y) > 1.3 * mean_difference


def test_smooth_ece_lies_near_the_other_measures_on_an_overconfident_model():
    z = torch.full((20_000,), 0.9) + torch.linspace(-0.05, 0.05, 20_000)
    correct = torch.arange(20_000) % 10 < 6
    assert smooth_ece(z, correct).item() == pytest.approx(ece(z, correct).item(), abs=0.01)
    assert smooth_ece(z, correct).item() == pytest.approx(ks(z, correct).item(), abs=0.01)


def test_a_bad_bandwidth_is_named():
    with pytest.raises(InputError, match="bandwidth"):
        smooth_ece([0.5], [True], bandwidth=0)
