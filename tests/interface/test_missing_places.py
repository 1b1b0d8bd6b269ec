"""Scores that are missing at some places: a key object that leaves the view hides no sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from talking import ask

import orbical as ob
from orbical.interface.reports.contents import chosen_samples
from orbical.interface.selection import Selection
from orbical.interface.session import Session
from orbical.interface.session.calibration_plots import calibration_along, subset_calibration_plots
from orbical.interface.session.scan_view import ScanView
from orbical.interface.session.subset_curves import ENDS, aggregate
from orbical.interface.session.subset_request import SubsetRequest
from orbical.nero import mean_over_models

SAMPLES = 12


def brightest(views: torch.Tensor) -> torch.Tensor:
    """Answer a box of 8 pixels around the brightest pixel, or none where all is dim."""
    flat = views[:, 0].flatten(1)
    row, column = flat.argmax(1) // 32, flat.argmax(1) % 32
    sure = torch.where(flat.amax(1) < 0.93, 0.0, 0.2 + 0.8 * flat[:, 0])
    edges = [column - 4, row - 4, column + 4, row + 4]
    columns = [*(edge.float() for edge in edges), sure, torch.zeros_like(sure)]
    return torch.stack(columns, -1)[:, None]


def near_it(views: torch.Tensor) -> torch.Tensor:
    """The same box, a pixel farther right."""
    return brightest(views) + torch.tensor([1.0, 0, 1, 0, 0, 0])


@pytest.fixture(scope="module")
def shifted() -> ob.Scan:
    """Objects in several places of the view, of which most shifts far out lose some."""
    random = torch.Generator().manual_seed(0)
    images = 0.92 * torch.rand(SAMPLES, 1, 72, 72, generator=random)
    objects = torch.zeros(SAMPLES, 1, 5)
    for number in range(SAMPLES):
        x, y = 16 + 2 * (number % 4), 16 - 3 * (number % 3)
        images[number, 0, 20 + y, 20 + x] = 1
        objects[number, 0, :4] = torch.tensor([x - 4, y - 4, x + 4, y + 4])
    return ob.scan(
        {"first": brightest, "second": near_it},
        (images, objects),
        group="translations:20:5",
        task=ob.tasks.Detection(ob.actions.Window(32)),
        keep="inputs",
        progress=False,
    )


@pytest.fixture(scope="module")
def view(shifted: ob.Scan) -> ScanView:
    return Session({"shifts": shifted}).scan_view()


def test_the_scan_has_gaps_in_every_sample(shifted: ob.Scan) -> None:
    missing = np.isnan(shifted.data["score"].values)
    assert missing.any(2).all()
    assert not missing.all(2).any()
    assert len(np.unique(missing[0], axis=0)) > 3


@pytest.mark.parametrize("variable", ["score", "score_vs_consensus", "confidence"])
def test_means_and_variances_are_over_what_is_seen(view: ScanView, variable: str) -> None:
    values = np.ma.masked_invalid(view.scan.data[variable].values.astype(float))
    weights = np.broadcast_to(view.group.weights, values.shape)
    mean = np.ma.average(values, 2, weights)
    variance = np.ma.average((values - mean[..., None]) ** 2, 2, weights)
    found = view.moments(variable)
    np.testing.assert_allclose(found.orbit_mean, mean.filled(np.nan), atol=1e-6)
    np.testing.assert_allclose(found.orbit_variance, variance.filled(np.nan), atol=1e-6)


def test_every_sample_is_in_the_list_on_the_map_and_colored(shifted: ob.Scan) -> None:
    session = Session({"shifts": shifted})
    for order in ("worst", "best", "variable"):
        _, arrays = ask(session, "list", order=order)
        assert sorted(arrays["samples"].tolist()) == [*range(SAMPLES)]
    for of in ("", "first"):
        assert np.isfinite(ask(session, "embedding", of=of)[1]["xy"]).all()
    for color in ("mean", "variance", "share_correct", "gap"):
        assert np.isfinite(ask(session, "color", color=color)[1]["values"]).all()


def test_the_map_of_one_model_is_that_of_reduce(shifted: ob.Scan) -> None:
    _, arrays = ask(Session({"shifts": shifted}), "embedding", of="second")
    expected = ob.embedding.embed(shifted, "pca", model="second").values
    centered = expected - (expected.max(0) + expected.min(0)) / 2
    np.testing.assert_allclose(arrays["xy"], centered / np.abs(centered).max(), atol=1e-4)


def test_a_report_chooses_among_all_of_them(view: ScanView) -> None:
    chosen = chosen_samples(view, 6)
    assert (len(chosen.samples), chosen.of) == (6, SAMPLES)
    assert "vary most" in chosen.how


def answers(view: ScanView, model: int, element: int) -> tuple[np.ndarray, np.ndarray]:
    """What was answered and judged at an element."""
    data = view.scan.data
    sure, right = (data[name].values[model, :, element] for name in ("confidence", "correct"))
    known = ~np.isnan(sure) & ~np.isnan(right)
    return sure[known], right[known] > 0


def test_calibration_at_an_element_is_of_the_answers_given_there(view: ScanView) -> None:
    session = Session({"shifts": view.scan})
    _, along = ask(session, "aggregate", metric="ece")
    counts = set()
    for element in range(0, len(view.group), 8):
        sure, right = answers(view, 1, element)
        counts.add(len(sure))
        header, _ = ask(session, "calibration", element=element, models=["second"])
        assert header["count"] == len(sure)
        if len(sure) < 3:
            assert np.isnan(along["values"][1, element])
            assert header["measures"] == []
        else:
            expected = float(ob.calibration.ece(sure, right))
            assert along["values"][1, element] == pytest.approx(expected, abs=1e-6)
            assert header["measures"][0]["value"] == pytest.approx(expected, abs=1e-6)
    assert len(counts) > 3


@pytest.mark.parametrize("models", [(), ("second",)])
def test_all_places_at_once_are_answered_as_each_alone(
    view: ScanView, models: tuple[str, ...]
) -> None:
    selection = Selection(models=models)
    along = calibration_along(SubsetRequest(view, selection))
    _, curve = aggregate(SubsetRequest(view, replace(selection, metric="ece")))
    places = [replace(selection, element=element) for element in range(len(view.group))]
    for place, together in zip([*places, replace(selection, scope="orbit")], along, strict=True):
        about, arrays = subset_calibration_plots(
            SubsetRequest(Session({"shifts": view.scan}).scan_view(), place)
        )
        measures, others = together[0].pop("measures"), about.pop("measures")
        assert together[0] == about
        for one, other in zip(measures, others, strict=True):
            assert one == pytest.approx(other)
            if place.scope == "element":  # the curve over the orbit has the same interval there
                model = about["models"].index(one["model"])
                ends = [float(curve[end][model, place.element]) for end in ENDS[:3]]
                assert ends == pytest.approx([one["value"], one["low"], one["high"]], rel=1e-12)
        for name, values in arrays.items():
            np.testing.assert_allclose(together[1][name], values, rtol=1e-12, err_msg=name)


def test_calibration_over_orbits_is_of_all_answers_given(view: ScanView) -> None:
    session = Session({"shifts": view.scan})
    header, _ = ask(session, "calibration", scope="orbit", models=["first"])
    pairs = [answers(view, 0, element) for element in range(len(view.group))]
    sure, right = (np.concatenate([pair[part] for pair in pairs]) for part in (0, 1))
    expected = float(ob.calibration.ece(sure, right))  # the weights of all shifts are equal
    assert header["count"] == len(sure)
    assert header["measures"][0]["value"] == pytest.approx(expected, abs=1e-6)


def test_each_element_is_drawn_by_its_own_answers(view: ScanView) -> None:
    session = Session({"shifts": view.scan})
    places = range(len(view.group))
    each = [ask(session, "calibration", element=k, models=["first"]) for k in places]
    counts = [len(answers(view, 0, element)[0]) for element in places]
    assert [about["count"] for about, _ in each] == counts
    assert min(counts) == 0
    assert [int(held["count"].sum()) for _, held in each] == [n if n >= 3 else 0 for n in counts]


def test_a_model_without_any_value_takes_no_part_in_the_mean_of_models() -> None:
    values = np.array([[0.5, np.nan, np.nan], [0.7, 0.2, np.nan]], np.float32)
    np.testing.assert_allclose(mean_over_models(values), [0.6, 0.2, np.nan], rtol=1e-6)
