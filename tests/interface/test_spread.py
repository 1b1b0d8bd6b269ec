"""The spread of a metric over the subset, and the samples behind each band of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from orbical.errors import InputError
from orbical.interface import open_session
from orbical.interface.selection import Selection
from orbical.interface.session import Session, element_columns
from orbical.interface.session.subset_curves import BANDS, LEVELS, in_fan_band
from orbical.interface.session.subset_request import SubsetRequest


def asked(session, **selection):
    return session.handle({"kind": "spread", "sequence": 1, "selection": selection})


def test_quantiles_are_those_of_the_samples(session, digits):
    about, arrays = asked(session)
    expected = np.quantile(digits.data["score"].values, LEVELS, axis=1)  # [5, M, K]
    np.testing.assert_allclose(arrays["quantiles"], np.moveaxis(expected, 0, 1), atol=1e-6)
    assert about["count"] == 120
    assert about["levels"] == list(LEVELS)
    assert about["metric"] == "score"


def test_quantiles_follow_the_subset_and_the_models(session, digits):
    about, arrays = asked(session, filter=["label:3,5"], models=["second"])
    chosen = np.isin(digits.data["label"].values, [3, 5])
    expected = np.quantile(digits.data["score"].values[1][chosen], LEVELS, axis=0)
    np.testing.assert_allclose(arrays["quantiles"][0], expected, atol=1e-6)
    assert about["count"] == chosen.sum()


def test_samples_that_are_not_scanned_yet_are_not_counted(session, monkeypatch):
    monkeypatch.setattr(session.scan_view(), "finished_rows", [slice(0, 3), slice(5, 6)])
    assert asked(session)[0]["count"] == 4


@pytest.mark.parametrize("metric", ["correct", "ece"])
def test_what_has_no_spread_shows_that_of_the_score(session, metric):
    about, _ = asked(session, metric=metric)
    assert about["metric"] == "score"


def test_large_scans_are_read_from_a_file_with_the_same_result(folder, session, monkeypatch):
    monkeypatch.setattr(element_columns, "MOST_IN_MEMORY", 0)
    on_disk = open_session(folder / "digits.zarr")
    expected = asked(session)[1]["quantiles"]
    np.testing.assert_array_equal(asked(on_disk)[1]["quantiles"], expected)


def test_the_bands_hold_every_sample_once(session: Session, digits):
    view, here = session.scan_view(), Selection(element=7, filter=("label:1,2,3,4",))
    masks = [
        in_fan_band(SubsetRequest(view, here), {"model": "first", "band": band})
        for band in range(len(BANDS))
    ]
    subset = np.isin(digits.data["label"].values, [1, 2, 3, 4])
    np.testing.assert_array_equal(np.sum(masks, 0), subset.astype(int))
    score = digits.data["score"].values[0, :, 7]
    assert score[masks[0]].max() < score[masks[1]].min() < score[masks[4]].min()
    assert 0.04 < masks[0].sum() / subset.sum() < 0.09


def test_equal_values_are_never_told_apart(session: Session):
    view, here = session.scan_view(), Selection(element=3, metric="action_defect")
    masks = [
        in_fan_band(SubsetRequest(view, here), {"model": "first", "band": band})
        for band in range(len(BANDS))
    ]
    column = element_columns.response_columns(view, "action_defect").column(0, 3)
    for one, other in itertools.pairwise(masks):
        assert not {*column[one]} & {*column[other]} or not (one & ~other).any()


@pytest.mark.parametrize(
    "given", [None, {}, {"model": "first", "band": 5}, {"model": "third", "band": 0}]
)
def test_a_band_that_does_not_exist_is_named(session, given):
    with pytest.raises(InputError, match="band"):
        in_fan_band(SubsetRequest(session.scan_view()), given)
