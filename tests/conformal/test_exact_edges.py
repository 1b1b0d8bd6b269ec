"""Coverage of saved outputs by hand, which random changes of the code once survived."""

from __future__ import annotations

import numpy as np
import pytest

from orbical.conformal import Absolute, Normalized, coverage_table
from orbical.conformal.quantiles import checked_coverage
from orbical.errors import InputError


@pytest.mark.parametrize("coverage", ["0.9", True, None, 0, 1, 1.5])
def test_a_coverage_is_a_number_between_0_and_1(coverage: object) -> None:
    with pytest.raises(InputError, match="coverage: expected a number in"):
        checked_coverage(coverage)  # type: ignore[arg-type]


def test_intervals_of_saved_numbers_are_as_wide_as_their_errors() -> None:
    """All errors are 0.5: every interval has that radius and covers."""
    mean = np.arange(20.0)
    outputs = {"mean": mean, "target": mean + np.resize([0.5, -0.5], 20), "variance": mean * 0 + 4}
    for method, width in ((Absolute(0.8), 1.0), (Normalized(0.8), 1.0)):
        table = coverage_table(outputs, method, seed=0)
        assert table["coverage"].tolist() == [1.0] * len(table)
        np.testing.assert_allclose(table["size"], width)
    doubled = outputs | {"variance": np.resize([4.0, 16.0], 20)}
    sizes = coverage_table(doubled, Normalized(0.8), seed=0)["size"]
    assert ((sizes > 1.0) & (sizes < 2.0)).all()  # a radius of a quarter of the deviation
