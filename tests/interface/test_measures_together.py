"""The measures of a subset that a report computes in one pass."""

from __future__ import annotations

import numpy as np
import pytest

from orbical.interface import open_session
from orbical.interface.selection import Selection
from orbical.interface.session import subset_curves
from orbical.interface.session.subset_curves import prepare_subset_measures, subset_measures
from orbical.interface.session.subset_request import SubsetRequest


@pytest.mark.parametrize("clauses", [(), ("label:3,5",)])
def test_measures_together_are_those_of_each_alone(folder, monkeypatch, clauses):
    selection = Selection(filter=clauses, reference="truth")
    alone, together = (
        SubsetRequest(open_session(folder / "digits.zarr").scan_view(), selection).subset
        for _ in range(2)
    )
    names = [one.name for one in alone.view.metrics.values() if not one.per_sample]
    assert len(names) > 3
    expected = {name: subset_measures(alone, name) for name in names}
    prepare_subset_measures(together, names)
    monkeypatch.delattr(subset_curves, "_curves_of_pairs")  # nothing is computed again
    for name in names:
        for part, values in subset_measures(together, name).items():
            if values.dtype == object:  # what is said of an interval
                assert values.tolist() == expected[name][part].tolist()
            else:
                np.testing.assert_allclose(values, expected[name][part], rtol=1e-9, atol=1e-12)
