"""Work that is spread over the processors: the same numbers, whatever their number."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from orbical._threads import in_threads
from orbical.interface import open_session
from orbical.interface.selection import Selection
from orbical.interface.session import element_columns, subset_curves
from orbical.interface.session.calibration_plots import calibration_along
from orbical.interface.session.subset_curves import prepare_subset_measures, subset_spread
from orbical.interface.session.subset_request import SubsetRequest


@pytest.fixture
def use_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 3])
def test_results_come_in_the_order_of_the_items(use_threads, count):
    use_threads(count)
    assert in_threads(lambda item: 2 * item, range(50)) == [2 * item for item in range(50)]


def test_several_threads_work_at_once_and_each_uses_one_of_torch(use_threads):
    use_threads(2)
    together = threading.Barrier(2, timeout=20)

    def work(item):
        together.wait()  # one thread alone would wait here for ever
        return torch.get_num_threads(), in_threads(lambda _: threading.get_ident(), range(2))

    for threads, inner in in_threads(work, range(2)):
        assert threads == 1
        assert len({*inner}) == 1  # what is spread already is not spread again
    assert torch.get_num_threads() == 2


def test_an_error_of_the_work_is_raised(use_threads):
    use_threads(2)
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 / item, [1, 0, 1])


@pytest.mark.parametrize("clauses", [(), ("label:3,5",)])
def test_curves_are_the_same_bits_for_any_number_of_threads(
    folder, use_threads, monkeypatch, clauses
):
    monkeypatch.setattr(subset_curves, "MOST_AT_ONCE", 200)  # a run of few elements
    monkeypatch.setattr(element_columns, "MOST_IN_MEMORY", 0)  # columns are read from a file
    seen = set()
    measure = subset_curves.subset_measure_rows
    monkeypatch.setattr(
        subset_curves,
        "subset_measure_rows",
        lambda *given: (seen.add(threading.current_thread().name), measure(*given))[1],
    )

    def curves():
        view = open_session(folder / "digits.zarr").scan_view()
        request = SubsetRequest(view, Selection(filter=clauses, reference="truth"))
        names = [one.name for one in view.metrics.values() if not one.per_sample]
        prepare_subset_measures(request.subset, names)
        found = [subset_curves.subset_measures(request.subset, name) for name in names]
        answers = [subset_spread(request), *calibration_along(request)]
        return [*found, *(arrays for _, arrays in answers)], [about for about, _ in answers]

    use_threads(1)
    alone, said = curves()
    assert len(seen) == 1
    use_threads(3)
    together, said_together = curves()
    assert len(seen) > 2
    assert said == said_together
    for expected, given in zip(alone, together, strict=True):
        assert expected.keys() == given.keys()
        for part, values in expected.items():
            np.testing.assert_array_equal(values, given[part])
