"""Calibration of pixels and regions in the view: the numbers of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.session import Session

CLASSES, SAMPLES = 3, 12


def of_color(images: torch.Tensor) -> torch.Tensor:
    """Answer the class of the nearest gray, less surely in the upper half."""
    grays = torch.linspace(0, 1, CLASSES)[None, :, None, None]
    scores = -12 * (images - grays).abs()
    scores[..., : images.shape[-2] // 2, :] /= 4
    return scores


@pytest.fixture(scope="module")
def scan() -> ob.Scan:
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(0, CLASSES, (SAMPLES, 12, 12), generator=random)
    noise = 0.3 * torch.randn(SAMPLES, 1, 12, 12, generator=random)
    images = (labels[:, None] / (CLASSES - 1) + noise).clamp(0, 1)
    labels[:, :2] = 255
    return ob.scan(
        {"net": of_color},
        (images, labels),
        group="rotations:8",
        task="segmentation",
        keep="inputs",
        progress=False,
    )


@pytest.fixture(scope="module")
def session(scan: ob.Scan) -> Session:
    return Session({"maps": scan})


def asked(session: Session, **selection: Any) -> Any:
    return session.handle({"kind": "calibration", "sequence": 1, "selection": selection})


def test_the_page_offers_pixels_and_regions(session: Session, nets: Any) -> None:
    state, _ = session.state()
    assert (state["answers"], state["calibration"]) == (["reliability", "regions"], True)


def test_pixels_at_a_position_are_those_of_python(session: Session, scan: ob.Scan) -> None:
    about, arrays = asked(session, element=3)
    found = ob.calibration.pixel_reliability(scan)
    assert (about["parts"], about["count"]) == ("pixels", int(found.count[0, 3].sum()))
    np.testing.assert_array_equal(arrays["count"][0], found.count[0, 3])
    np.testing.assert_allclose(arrays["accuracy"][0], found.accuracy[0, 3])
    along = ob.calibration.along_orbit(scan, "ece", interval=True).isel(model=0, element=3)
    (measure,) = about["measures"]
    assert measure["value"] == pytest.approx(float(along))
    assert measure["low"] == pytest.approx(float(along["low"]))
    assert measure["high"] == pytest.approx(float(along["high"]))


def test_pixels_over_the_orbit_are_those_of_python(session: Session, scan: ob.Scan) -> None:
    about, _ = asked(session, scope="orbit")
    error = ob.calibration.pooled_over_orbit(scan, "ece", interval=True)
    assert about["measures"][0]["value"] == pytest.approx(float(error[0]))
    assert about["measures"][0]["high"] == pytest.approx(float(error["high"][0]))


def test_regions_are_those_of_python(session: Session, scan: ob.Scan) -> None:
    about, arrays = asked(session, answers="regions", element=3)
    pairs = ob.calibration.pairs_within(scan).isel(model=0, element=3)
    known = np.isfinite(pairs["confidence"].values)
    sure, right = (pairs[name].values[known] for name in ("confidence", "correct"))
    assert (about["parts"], about["count"]) == ("regions", known.sum())
    wanted = ob.calibration.reliability(torch.tensor(sure), torch.tensor(right))
    np.testing.assert_array_equal(arrays["count"][0], wanted.count)
    np.testing.assert_allclose(arrays["confidence"][0], wanted.confidence, rtol=1e-6)
    assert about["measures"][0]["value"] == pytest.approx(
        float(ob.calibration.ece(torch.tensor(sure), torch.tensor(right))), rel=1e-6
    )


def test_a_subset_has_its_own_pixels(session: Session, scan: ob.Scan) -> None:
    made, _ = session.handle(
        {"kind": "set", "sequence": 1, "selection": {}, "recipe": {"samples": [1, 4]}}
    )
    about, arrays = asked(session, subset=made["hash"], element=3)
    counts = scan.data["pixel_count"].values[0, [1, 4], 3].sum(0)
    np.testing.assert_array_equal(arrays["count"][0], counts)
    assert about["count"] == counts.sum()


def test_ignored_pixels_have_no_class(session: Session) -> None:
    _, arrays = Session({"maps": session.scan_view().scan}, {"net": of_color}).handle(
        {"kind": "place", "sequence": 1, "selection": {"sample": 2, "element": 0}}
    )
    truth = arrays["truth/moved"]
    assert (truth[..., :2, :] < 0).all()
    assert truth.max() < CLASSES
