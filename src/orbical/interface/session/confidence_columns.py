"""Confidence and correctness of all samples at one element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .sample_columns import SampleColumns
from .scan_view import ScanView

Array = np.ndarray


class ConfidenceColumns(SampleColumns):
    """`[M, K, N]` confidences, negative if incorrect and NaN if there is no output.

    There is no output for unfinished samples, where a detector finds nothing, and where an output
    counts as neither correct nor incorrect. Storing correctness in the sign halves the space.
    """

    def __init__(self, view: ScanView, reference: str) -> None:
        correct = view.variable(view.metrics["correct"], reference)

        def signed(rows: slice, model: int) -> Array:
            sure = view.responses("confidence", rows, model, keep=False)
            right = view.reader.outcomes(
                correct, lambda name: view.reader.read(name, rows, model, keep=False)
            )
            unknown = right != right
            return np.where(unknown, np.nan, np.where(right > 0, sure, -sure))

        super().__init__(view, "confidence", signed)

    def pair(self, model: int, element: int) -> tuple[Array, Array]:
        """Read `(confidence [N], correct [N])` of one model at one element."""
        column = self.column(model, element)
        return np.abs(column), ~np.signbit(column)


def columns_of(view: ScanView, reference: str) -> ConfidenceColumns:
    """Return the columns of a scan, computed once."""
    return view.cache.get_or_compute(
        ("columns", reference), lambda: ConfidenceColumns(view, reference)
    )


def alike(sure: Array, right: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Walk over the elements at which the same samples have an answer, all of them at once.

    Arguments:
        sure: `[K, N]`, confidences, NaN where there is no answer.
        right: `[K, N]`, whether they were justified.

    Yields:
        The places of k such elements, and their pairs `[k, n]` without gaps.

    >>> sure = np.array([[0.5, 0.7], [np.nan, 0.6], [0.5, 0.8]])
    >>> [(places.tolist(), pair.tolist()) for places, pair, _ in alike(sure, sure > 0.55)]
    [([1], [[0.6]]), ([0, 2], [[0.5, 0.7], [0.5, 0.8]])]
    """
    seen = ~np.isnan(sure)
    if (seen == seen[:1]).all():
        run = np.zeros(len(sure), int)
    else:
        _, run = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
    for one in range(run.max() + 1):
        places = np.flatnonzero(run.reshape(-1) == one)
        kept = seen[places[0]]
        yield places, sure[places][:, kept], right[places][:, kept]
