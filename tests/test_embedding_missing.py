"""Maps of responses with gaps: every sample that says something has a place."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import orbical as ob


def scan_of(responses: np.ndarray) -> xr.Dataset:
    """Responses `[model, sample, element]` as the data of a scan under rotations."""
    group = ob.groups.rotations(responses.shape[-1])
    return xr.Dataset(
        {
            name: (("model", "sample", "element"), responses.astype(np.float32))
            for name in ("score", "score_vs_consensus")
        },
        coords={
            "model": [f"net {number}" for number in range(len(responses))],
            "weight": ("element", group.weights),
        },
        attrs={
            "group": group.spec,
            "task": "detection",
            "score": "overlap",
            "higher_is_better": True,
        },
    )


def bumps(samples: int) -> np.ndarray:
    """Responses that differ in where along the orbit they are low, and how much."""
    angle = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    random = np.random.default_rng(0)
    phase, depth = random.uniform(0, 2 * np.pi, samples), random.uniform(0.1, 0.5, samples)
    return 0.5 + depth[:, None] * np.cos(angle - phase[:, None])[None]


@pytest.mark.parametrize("method", ["pca", "ica", "isomap", "tsne"])
def test_samples_with_gaps_have_a_place(method: str) -> None:
    responses = bumps(40)
    responses[:, np.arange(40), np.arange(40) % 16] = np.nan  # each has a gap
    found = ob.embedding.embed(scan_of(responses), method)
    assert np.isfinite(found.values).all()
    assert found.attrs["missing"] == 0


def test_a_gap_has_the_mean_of_the_others_at_its_element() -> None:
    gapped, filled = bumps(30), bumps(30)
    gapped[0, :9, 3] = np.nan
    gapped[0, 20:, 5] = np.nan
    filled[0, :9, 3] = filled[0, 9:, 3].mean()
    filled[0, 20:, 5] = filled[0, :20, 5].mean()
    found, expected = (ob.embedding.embed(scan_of(one), "pca").values for one in (gapped, filled))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_element_that_nobody_has_is_as_if_it_were_not_there() -> None:
    responses, known = bumps(30), bumps(30)
    responses[..., 7] = np.nan
    known[..., 7] = 0.25
    found, expected = (ob.embedding.embed(scan_of(one), "pca").values for one in (responses, known))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_mean_and_variance_are_over_the_known_elements() -> None:
    responses = bumps(20)
    responses[0, 4, 2:9] = np.nan
    responses[0, 5] = np.nan
    found = ob.embedding.embed(scan_of(responses), "pca", model="net 0")
    known = responses[0, 4, [0, 1, *range(9, 16)]]
    assert float(found["mean"][4]) == pytest.approx(known.mean(), rel=1e-5)
    assert float(found["variance"][4]) == pytest.approx(known.var(), rel=1e-4)
    assert np.isnan(found["mean"][5])
    assert np.isnan(found["variance"][5])
    assert np.isnan(found.values[5]).all()
    assert found.attrs["missing"] == 1


def test_means_along_the_orbit_and_over_it_leave_gaps_out() -> None:
    responses = bumps(20)
    responses[0, :15, 2] = np.nan
    responses[0, :, 6] = np.nan
    curve = ob.nero.aggregate(scan_of(responses))
    assert float(curve[0, 2]) == pytest.approx(responses[0, 15:, 2].mean(), rel=1e-5)
    assert np.flatnonzero(np.isnan(curve[0])).tolist() == [6]
