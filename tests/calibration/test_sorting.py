"""Ties: all ways of finding runs, of short and long arrays, agree with a loop."""

from __future__ import annotations

import warnings

import pytest
import torch

from orbical.calibration.numerics import sorting


@pytest.mark.parametrize("ways", [sorting._SortedTiedPlaces, sorting._SortedAllPlaces])
@pytest.mark.parametrize("shape", [(1,), (2, 1), (60,), (3, 40)])
@pytest.mark.parametrize("levels", [1, 7, 10_000])
def test_each_place_gets_the_value_at_the_end_or_start_of_its_run(ways, shape, levels):
    generator = torch.Generator().manual_seed(0)
    ordered = torch.randint(0, levels, shape, generator=generator).float().sort(-1).values
    values = torch.rand(shape, dtype=torch.float64, generator=generator)
    last, first = values.clone(), values.clone()
    rows = zip(
        ordered.view(-1, shape[-1]),
        values.view(-1, shape[-1]),
        last.view(-1, shape[-1]),
        first.view(-1, shape[-1]),
        strict=True,
    )
    for z, v, at_last, at_first in rows:
        for i in range(shape[-1]):
            run = (z == z[i]).nonzero()[:, 0]
            at_last[i], at_first[i] = v[run[-1]], v[run[0]]
    runs = ways(ordered)
    assert torch.equal(runs.at_last(values.clone()), last)
    assert torch.equal(runs.at_first(values.clone()), first)
    index = torch.arange(shape[-1], dtype=torch.float64).expand(shape)
    starts = torch.where(values == first, index, torch.nan).nan_to_num(-1).cummax(-1).values
    assert torch.equal(runs.starts(values).double(), starts)
    before, total = runs.sums_before(values)
    through = runs.sums_through(values)
    sums = zip(ordered.view(-1, shape[-1]), values.view(-1, shape[-1]), strict=True)
    for row, (z, v) in enumerate(sums):
        lower, upto = z[:, None] > z, z[:, None] >= z
        assert torch.allclose(before.view(-1, shape[-1])[row], (lower * v).sum(1))
        assert torch.allclose(through.view(-1, shape[-1])[row], (upto * v).sum(1))
        assert torch.allclose(total.view(-1)[row], v.sum())


def test_ties_of_a_strided_array_are_found_without_a_warning() -> None:
    """A report of a short scan printed torch's advice on memory to its user."""
    torch.set_warn_always(True)  # torch warns once a process, perhaps in an earlier test
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sorting._SortedAllPlaces(torch.zeros(4, 6).T)
    finally:
        torch.set_warn_always(False)
