"""Audits of dense outputs: what they count, on estimators whose faults are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import ModelError
from orbical_audits import Verdict, particle_images
from orbical_audits.models import cosmic_rays, particle_flow


def drifting(pairs):
    """Say that everything moves to the right by one pixel, whatever is seen."""
    flow = torch.zeros(len(pairs), 2, *pairs.shape[-2:])
    flow[:, 0] = 1
    return flow


def outward(pairs):
    """Let flow leave the middle; it turns with the image, and changes its sign with time."""
    line = torch.linspace(-1, 1, pairs.shape[-1])
    down, right = torch.meshgrid(line, line, indexing="ij")
    sign = (pairs[:, 1] - pairs[:, 0]).mean((1, 2, 3)).sign()
    return torch.stack([right, down]) * sign[:, None, None, None]


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    return torch.rand(2, 2, 1, particle_flow.SIDE, particle_flow.SIDE, generator=generator)


def test_a_flow_that_turns_with_the_image_has_no_distance_and_a_drift_has_its_length(pairs):
    found = particle_flow.vectors(
        particle_flow.scanned({"drift": drifting, "out": outward}, pairs, None)
    )
    drift, out = (particle_flow.distances(one) for one in found)
    np.testing.assert_allclose(np.sqrt(drift["turns"]), 1, rtol=1e-6)
    np.testing.assert_allclose(out["turns"], 0, atol=1e-12)
    np.testing.assert_allclose(out["time"], 0, atol=1e-12)
    forward = particle_flow.vectors(particle_flow.scanned({"drift": drifting}, pairs, None))[0]
    assert forward[:, 0].mean() == pytest.approx(0, abs=1e-6)  # no direction is left


def test_by_hand_and_by_scan_are_the_same_distance(pairs):
    models = {"drift": drifting, "out": outward, "our own": ob.zoo.flownet.load("directed")}
    by_hand = particle_flow.by_hand(models, {"noise": pairs[None]}, 0)
    found = particle_flow.vectors(particle_flow.scanned(models, pairs, None))[:, :, :1]
    for row, one in zip(by_hand, found, strict=True):
        wanted = particle_flow.root(particle_flow.distances(one)["turns"])
        assert row["noise"]["value"] == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_the_flow_that_time_must_change_is_that_of_the_gradient():
    line = torch.arange(12.0) * particle_flow.CELL
    right = (0.1 * line).expand(12, 12)
    flow = torch.stack([right, torch.zeros(12, 12)])
    found = flow.expand(1, 2, 8, 2, 12, 12)
    wanted = np.square(right.numpy() * 0.1 / 2).mean()
    np.testing.assert_allclose(particle_flow.unavoidable(found), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("distance", "far", "verdict"),
    [
        (1e-4, 0.0, Verdict.INVARIANT),
        (0.05, 0.01, Verdict.TOLERATED),
        (0.05, 0.06, Verdict.NOT_INVARIANT),
        (0.2, 0.01, Verdict.NOT_INVARIANT),
    ],
)
def test_the_worst_experiment_decides_for_flow(distance, far, verdict):
    def row(high, share):
        return {
            "estimator": "net",
            "turns and mirrors": {"low": high, "high": high},
            "vectors far off": {"low": share, "high": share},
            "reversed time": {"low": 0.0, "high": 0.0},
            "far off in time": {"low": 0.0, "high": 0.0},
        }

    tables = {"experiments": [row(0.0, 0.0), row(distance, far)]}
    decided = particle_flow.decide(tables)
    assert decided == {"net, turns and mirrors": verdict, "net, reversed time": Verdict.INVARIANT}


def test_images_of_a_missing_package_are_named_with_the_command(monkeypatch):
    monkeypatch.setattr(particle_images, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"openpiv: expected .* NAME=particle_flow"):
        particle_flow.blocks(1)
    monkeypatch.setattr(cosmic_rays, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"skimage: expected .* NAME=cosmic_rays"):
        cosmic_rays.deep_field()


def test_rays_are_where_the_mask_says_and_prefer_no_direction():
    generator = np.random.default_rng(0)
    light, hit = cosmic_rays.exposed(np.zeros((40, 128, 128)), generator)
    assert light[hit].mean() > 5 * light[~hit].mean()
    assert np.median(light[~hit]) == pytest.approx(cosmic_rays.SKY, rel=0.05)
    along = (hit[:, :, 1:] & hit[:, :, :-1]).sum(), (hit[:, 1:] & hit[:, :-1]).sum()
    assert along[0] / along[1] == pytest.approx(1, abs=0.15)


def bright(images):
    return (images > 200).float()


def left_of_a_dark_pixel(images):
    return ((images > 200) & (images.roll(-1, 3) < 200)).float()


def test_a_threshold_changes_no_verdict_and_a_sideways_glance_many():
    light, hit = cosmic_rays.exposed(np.zeros((2, 128, 128)), np.random.default_rng(1))
    scan = cosmic_rays.scanned(
        {"bright": bright, "edge": left_of_a_dark_pixel}, cosmic_rays._data(light, hit), None
    )
    for model, found in zip((bright, left_of_a_dark_pixel), cosmic_rays.home(scan), strict=True):
        turned = cosmic_rays.by_hand(model, light)
        np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(turned, axis=1))
        share = cosmic_rays.changes(found, hit, 0)["verdict changes"]["value"]
        assert (share == 0) == (model is bright)
        assert (cosmic_rays.too_sure("net", found, hit, 0) is None) == (model is bright)


@pytest.mark.parametrize(
    ("change", "share", "surplus", "verdict"),
    [
        (1e-5, 0.0, None, Verdict.INVARIANT),
        (0.3, 0.005, (0.3, 0.4), Verdict.TOLERATED),
        (0.9, 0.1, (0.12, 0.2), Verdict.CONFIDENT),
        (0.9, 0.1, (0.0, 0.04), Verdict.UNCONFIDENT),
        (0.9, 0.1, (0.04, 0.2), Verdict.NOT_INVARIANT),
        (0.9, 0.1, None, Verdict.NOT_INVARIANT),
    ],
)
def test_single_pixels_decide_for_masks(change, share, surplus, verdict):
    row = {
        "method": "net",
        "largest change": {"high": change},
        "verdict changes": {"low": share, "high": share},
        "confidence minus accuracy where changed": surplus
        and dict(zip(("low", "high"), surplus, strict=True)),
    }
    assert cosmic_rays.decide({"methods": [row]}) == {"net": verdict}
