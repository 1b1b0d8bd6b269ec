"""Calibration along orbits is the measure at each element, however the scan is stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import calibration
from orbical.calibration import MEASURES, ece, esd, ks, reliability
from orbical.calibration.orbit import positions, whole_orbit
from orbical.calibration.orbit.positions import (
    along_orbit,
    pair_at,
    pairs_along,
    reliability_at,
)
from orbical.errors import InputError
from orbical.store import arrays_of, scan_arrays


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> ob.Scan:
    images, labels = ob.datasets.digits()
    models = {"one": network(0), "other": network(1)}
    out: Path = tmp_path_factory.mktemp("orbit") / "run.zarr"
    # A small batch makes several chunks of samples.
    return ob.scan(
        models,
        (images[:150], labels[:150]),
        group="rotations:6",
        task="classification",
        out=out,
        batch_size=40,
        progress=False,
    )


def answers(scan: ob.Scan, model: str, element: int) -> tuple[np.ndarray, np.ndarray]:
    data = scan.data.sel(model=model).isel(element=element)
    return data["confidence"].values, data["correct"].values


@pytest.mark.parametrize(
    "options", [{}, {"bins": 7}, {"norm": "max"}, {"norm": "l2"}, {"binning": "mass"}]
)
def test_ece_along_the_orbit_is_ece_at_each_element(scan: ob.Scan, options: dict) -> None:
    found = along_orbit(scan, "ece", **options)
    assert found.dims == ("model", "element")
    for model in scan.models:
        for element in range(6):
            expected = float(ece(*answers(scan, model, element), **options))
            value = float(found.sel(model=model)[element])
            assert value == pytest.approx(expected, abs=1e-12)


def test_a_finished_measure_keeps_its_own_bins_and_norm(scan: ob.Scan) -> None:
    options = {"bins": 3, "norm": "max"}
    finished = along_orbit(scan, MEASURES["ece"].bind(**options))
    np.testing.assert_allclose(finished, along_orbit(scan, "ece", **options), atol=1e-12)


@pytest.mark.parametrize(("name", "function"), [("ks", ks), ("esd", esd)])
def test_other_measures_by_name_and_as_functions(scan: ob.Scan, name: str, function) -> None:
    by_name, by_function = along_orbit(scan, name), along_orbit(scan, function)
    np.testing.assert_array_equal(by_name.values, by_function.values)
    expected = float(function(*answers(scan, "other", 4)))
    assert float(by_name.sel(model="other")[4]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["ece", "ks"])
def test_classes_are_told_apart(scan: ob.Scan, measure: str) -> None:
    found = along_orbit(scan, measure, by="label")
    assert found.dims == ("model", "label", "element")
    confidence, correct = answers(scan, "one", 2)
    chosen = scan.data["label"].values == 3
    function = {"ece": ece, "ks": ks}[measure]
    expected = float(function(confidence[chosen], correct[chosen]))
    assert float(found.sel(model="one", label=3)[2]) == pytest.approx(expected, abs=1e-12)


def test_intervals_come_as_coordinates(scan: ob.Scan) -> None:
    found = along_orbit(scan, "ece", interval=True, resamples=200)
    np.testing.assert_allclose(found.values, along_orbit(scan, "ece").values)
    assert found["low"].dims == found["high"].dims == found["calibrated"].dims == found.dims
    assert bool((found["low"] <= found).all())
    assert bool((found["high"] >= found).all())


def test_the_array_says_how_it_is_drawn(scan: ob.Scan) -> None:
    found = along_orbit(scan, "ece")
    attributes = ob.nero.aggregate(scan).attrs
    for name in ("layout", "layout_index", "layout_axes", "identity", "models", "group"):
        assert found.attrs[name] == attributes[name]
    assert found.attrs["metric"] == "ece"
    assert found.attrs["higher_is_better"] is False
    assert "limits" not in found.attrs
    assert {"angle", "weight"} <= set(found.coords)
    ob.figures.aggregate(found)


def test_unfinished_samples_are_left_out(scan: ob.Scan) -> None:
    part = scan.data.copy()
    hidden = np.arange(150) >= 90
    for name in ("score", "score_vs_consensus", "confidence"):
        part[name] = part[name].where(~part[name].isnull() & ~np.asarray(hidden)[None, :, None])
    for measure in ("ece", "ks"):
        whole, cut = along_orbit(scan, measure), along_orbit(part, measure)
        assert not np.allclose(whole, cut)
        first = scan.data.isel(sample=slice(90))
        np.testing.assert_allclose(cut.values, along_orbit(first, measure).values)


def test_the_diagram_at_one_element(scan: ob.Scan) -> None:
    found = reliability_at(scan, 3, "other", bins=8)
    expected = reliability(*answers(scan, "other", 3), bins=8)
    torch.testing.assert_close(found.count, expected.count)
    torch.testing.assert_close(found.accuracy, expected.accuracy, equal_nan=True)


def test_pairs_of_all_elements(scan: ob.Scan) -> None:
    (name, confidence, correct), _ = pairs_along(scan)
    assert name == "one"
    z, y = pair_at(scan, 5, "one")
    torch.testing.assert_close(confidence[5], z)
    assert torch.equal(correct[5], y)


def test_bad_input_is_named(scan: ob.Scan) -> None:
    with pytest.raises(InputError, match=r"^measure: .* did you mean 'ece'"):
        along_orbit(scan, "eec")
    for of_outputs in ("nll", ob.calibration.MEASURES["nll"]):
        with pytest.raises(InputError, match=r"such as ece, got 'nll', which needs the outputs"):
            along_orbit(scan, of_outputs)
    with pytest.raises(InputError, match=r"^by: .* did you mean 'label'"):
        along_orbit(scan, "ece", by="lable")
    with pytest.raises(InputError, match=r"^element: expected 0 to 5, got 6"):
        reliability_at(scan, 6, "one")
    with pytest.raises(InputError, match=r"^element: expected a whole number"):
        reliability_at(scan, "first", "one")
    with pytest.raises(InputError, match=r"^model: expected one of"):
        reliability_at(scan, 0)
    with pytest.raises(InputError, match=r"^model: unknown"):
        reliability_at(scan, 0, "third")
    with pytest.raises(InputError, match=r"^bins"):
        along_orbit(scan, "ece", bins=0)
    images, _ = ob.datasets.digits()
    unlabeled = ob.scan(
        network(0), images[:10], group="cyclic:4", task="classification", progress=False
    )
    with pytest.raises(InputError, match=r"^scan: expected a labeled scan .* without labels"):
        along_orbit(unlabeled, "ece")


@pytest.mark.parametrize("measure", ["ece", "ks", "esd"])
def test_blocks_of_elements_and_samples_change_nothing(
    scan: ob.Scan, measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = along_orbit(scan, measure, by="label"), calibration.pooled_over_orbit(scan, measure)
    monkeypatch.setattr(scan_arrays, "BLOCK_BYTES", 1200)
    monkeypatch.setattr(scan_arrays, "HELD_VALUES", 500)
    monkeypatch.setattr(positions, "MEASURED_VALUES", 300)
    monkeypatch.setattr(whole_orbit, "MEASURED_VALUES", 300)
    for data in (scan.data.chunk(sample=40), scan.data.compute()):
        arrays = arrays_of(data)
        assert len(list(arrays.element_blocks("confidence", model=0))) == 2
        assert len(list(arrays.sample_blocks("confidence", model=0))) >= 3
        found = along_orbit(data, measure, by="label"), calibration.pooled_over_orbit(data, measure)
        for one, other in zip(found, whole, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
