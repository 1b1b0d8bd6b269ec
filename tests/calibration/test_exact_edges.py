"""Single values and refusals, each of which a random change of the code once survived."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr

from orbical import calibration
from orbical.calibration import MEASURES, along_orbit, pooled_over_orbit, verdict
from orbical.calibration.intervals.brier_intervals import _BrierDrawing, fine_cell_index
from orbical.calibration.measures.binned import _arithmetic_is_exact
from orbical.calibration.numerics.sorting import _mirrored, ascending
from orbical.calibration.orbit.pixel_bins import _of_images
from orbical.errors import InputError


def pairs(elements: int = 4, size: int = 60) -> xr.Dataset:
    """A classifier at the elements of a cyclic group."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, (1, size, elements))
    dims = ("model", "sample", "element")
    arrays = {"confidence": confidence, "correct": (rng.random(confidence.shape) < 0.8) * 1.0}
    arrays["score_vs_consensus"] = confidence
    coords = {"model": ["net"], "weight": ("element", np.full(elements, 1 / elements))}
    data = xr.Dataset({name: (dims, part) for name, part in arrays.items()}, coords)
    return data.assign_attrs(group=f"cyclic:{elements}", task="classification")


PROBS = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.2, 0.5, 0.3]]).double()


def test_the_interval_of_brier_calibration_holds_its_own_value() -> None:
    labels = torch.tensor([2, 0, 1, 1])
    found = calibration.brier_part_intervals(probs=PROBS, labels=labels, resamples=40)
    parts = calibration.brier_parts(probs=PROBS, labels=labels)
    assert float(found["brier_calibration"].value) == pytest.approx(float(parts.calibration))
    assert float(found["brier_refinement"].value) == pytest.approx(float(parts.refinement))
    assert float(parts.calibration) != pytest.approx(float(parts.refinement))


def test_labels_of_a_calibrated_model_are_drawn_from_its_probabilities() -> None:
    index, cells = fine_cell_index(PROBS.T.contiguous())
    drawing = _BrierDrawing(PROBS, index, cells)
    uniform = torch.tensor([[0.1, 0.7, 0.95, 0.6]]).double()
    labels = torch.tensor([0, 1, 2, 1])  # of which the cumulative probability holds the number
    (drawn,) = drawing.calibrated(uniform)
    (expected,) = drawing.resampled(labels, torch.ones(1, 4))
    assert drawn == pytest.approx(expected, abs=1e-6)


def test_a_power_of_two_bins_needs_no_search_for_edges() -> None:
    assert _arithmetic_is_exact(16, torch.float32)
    assert _arithmetic_is_exact(16, torch.float64)
    assert not _arithmetic_is_exact(16, torch.float16)


@pytest.mark.parametrize(
    "function",
    [
        function
        for name, function in inspect.getmembers(calibration, inspect.isfunction)
        if "weights" in inspect.signature(function).parameters
        and {"confidence", "mean", "probs"} & {*inspect.signature(function).parameters}
    ],
    ids=lambda function: function.__name__,
)
def test_predictions_go_by_position_or_name_and_weights_by_name(function: Callable) -> None:
    parameters = inspect.signature(function).parameters
    first = next(iter(parameters.values()))
    assert first.kind in (first.POSITIONAL_OR_KEYWORD, first.KEYWORD_ONLY)
    assert parameters["weights"].kind is first.KEYWORD_ONLY


def test_neighboring_negative_floats_are_in_order_as_integers() -> None:
    start = torch.tensor([-1.0])
    up = [start := torch.nextafter(start, torch.zeros(1)) for _ in range(4)]
    places = _mirrored(torch.cat(up).view(torch.int32))
    assert torch.equal(places.diff(), torch.ones(3, dtype=torch.int32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(7,), (5000,), (3, 900), (2, 3, 400), (40, 0)])
def test_values_are_sorted_with_their_order(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    values[values.abs() < 0.2] = -0.0
    ordered, order = ascending(values)
    assert torch.equal(ordered, values.to(ordered.dtype).sort(-1).values)
    assert torch.equal(values.to(ordered.dtype).gather(-1, order), ordered)


def test_three_samples_are_enough_for_regression_esd() -> None:
    assert MEASURES["regression_esd"].minimum == 3
    zeros, ones = np.zeros(3), np.ones(3)
    table = calibration.measure_table({"mean": zeros, "variance": ones, "target": ones})
    assert "regression_esd" in table


def test_the_interval_of_bleed_sums_the_components_of_a_sample() -> None:
    noise = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    outputs = {"mean": noise * 0, "target": noise * 0, "aleatoric": noise, "variance": noise + 1}
    found = calibration.measure_table(outputs, resamples=20)["aleatoric_bleed"]
    assert float(found.value) == pytest.approx((noise**2).sum(1).mean())


def test_images_without_judged_pixels_have_no_error() -> None:
    with np.errstate(all="raise"):
        (found,) = _of_images(np.zeros((3, 5, 1, 4)), {"level": 0.95, "seed": 0})
    assert not float(found.value) > 0


def test_a_verdict_at_the_identity_takes_its_own_interval() -> None:
    data = pairs()
    found = verdict(data, "accuracy", minimum=0.5, place="identity", resamples=50)["net"]
    alone = along_orbit(data, "accuracy", interval=True, level=0.95, resamples=50)
    assert found.low == pytest.approx(float(alone["low"].isel(model=0, element=0)))


def test_only_the_pooled_ece_has_an_interval() -> None:
    for measure, options in (("ks", {}), ("ece", {"norm": "l2"})):
        with pytest.raises(InputError, match="interval: expected False unless"):
            pooled_over_orbit(pairs(), measure, interval=True, **options)


def test_a_table_of_places_has_values_and_nothing_else() -> None:
    found = calibration.at_places(pairs(), "ece", interval=True, resamples=20)
    assert {*found.data_vars} == {"value", "low", "high", "calibrated", "caution", "element"}
    assert {*found.coords} == {"model", "place"}
