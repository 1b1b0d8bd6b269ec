"""Numbers of all samples at one element: arrays of a scan, transposed.

A scan is stored sample by sample. Calibration, quantiles and confusion at an element need all
samples at that element, many times a second while someone drags along the orbit. So they are
written once in that order, in memory if they are small, otherwise to a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...groups import Group
from .scan_view import ScanView

Array = np.ndarray

MOST_IN_MEMORY = 32 << 20


class ElementColumns:
    """`[M, K, N]` single precision numbers, read one column of N at a time.

    Args:
        view: The view of the scan.
        variable: The array whose blocks are walked through.
        read: Returns `[rows, K]` for a range of samples and a model.
    """

    def __init__(self, view: ScanView, variable: str, read: Callable[[slice, int], Array]) -> None:
        self._shape = (len(view.models), len(view.group), view.samples)
        self._file: Any = None
        self._held: Array | None = None
        if 4 * np.prod(self._shape) <= MOST_IN_MEMORY:
            self._held = np.empty(self._shape, np.float32)
        else:
            self._file = tempfile.TemporaryFile(prefix="orbical-")  # noqa: SIM115 - kept open
            self._file.truncate(4 * int(np.prod(self._shape)))
        for rows in view.reader.blocks(variable):
            for model in range(self._shape[0]):
                with view.passes.turn(patient=True):  # requests for what is visible come first
                    self._write(model, rows, read(rows, model).astype(np.float32, copy=False).T)

    def _write(self, model: int, rows: slice, values: Array) -> None:
        if self._held is not None:
            self._held[model, :, rows] = values
            return
        for element, column in enumerate(np.ascontiguousarray(values)):
            start = (model * self._shape[1] + element) * self._shape[2] + rows.start
            os.pwrite(self._file.fileno(), column.tobytes(), 4 * start)  # read without a buffer

    def column(self, model: int, element: int, rows: slice | Array = slice(None)) -> Array:
        """Read the numbers `[n]` of one model at one element, of all samples or of some."""
        if self._held is not None:
            return np.asarray(self._held[model, element][rows])
        size = 4 * self._shape[2]
        start = (model * self._shape[1] + element) * size
        return np.frombuffer(os.pread(self._file.fileno(), size, start), np.float32)[rows]


def response_columns(view: ScanView, variable: str) -> ElementColumns:
    """Return the columns of a variable with one number per position, computed once."""
    read = partial(view.reader.responses, variable, keep=False)
    return view.columns.get_or_compute(variable, lambda: ElementColumns(view, variable, read))


class ConfidenceColumns(ElementColumns):
    """`[M, K, N]` confidences, negative if incorrect and NaN if there is no output.

    There is no output for unfinished samples, where a detector finds nothing, and where an output
    counts as neither correct nor incorrect. Storing correctness in the sign halves the space.
    """

    def __init__(self, view: ScanView, reference: str) -> None:
        correct = view.variable(view.metrics["correct"], reference)

        def signed(rows: slice, model: int) -> Array:
            sure = view.reader.responses("confidence", rows, model, keep=False)
            read = partial(view.reader.read, rows=rows, model=model, keep=False)
            right = view.reader.outcomes(correct, read)
            unknown = right != right
            return np.where(unknown, np.nan, np.where(right > 0, sure, -sure))

        super().__init__(view, "confidence", signed)

    def pairs(
        self, model: int, elements: Iterable[int], rows: slice | Array
    ) -> tuple[Array, Array]:
        """Read `(confidence [k, n], correct [k, n])` of one model at some elements."""
        columns = [self.column(model, element, rows) for element in elements]
        return pairs_of_signed(np.stack(columns))


def pairs_of_signed(confidence: Array) -> tuple[Array, Array]:
    """Return confidences and whether they are correct, from confidences negative if incorrect."""
    return np.abs(confidence), ~np.signbit(confidence)


def columns_of_view(view: ScanView, reference: str) -> ConfidenceColumns:
    """Return the columns of a scan, computed once."""
    compute = partial(ConfidenceColumns, view, reference)
    return view.cache.get_or_compute(("columns", reference), compute)


def alike_element_columns(sure: Array, right: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Walk over the elements at which the same samples have an answer, all of them at once.

    Arguments:
        sure: `[K, N]`, confidences, NaN where there is no answer.
        right: `[K, N]`, whether they were justified.

    Yields:
        The places of k such elements, and their pairs `[k, n]` without gaps.

    >>> sure = np.array([[0.5, 0.7], [np.nan, 0.6], [0.5, 0.8]])
    >>> alike = alike_element_columns(sure, sure > 0.55)
    >>> [(places.tolist(), pair.tolist()) for places, pair, _ in alike]
    [([1], [[0.6]]), ([0, 2], [[0.5, 0.7], [0.5, 0.8]])]
    """
    seen = ~np.isnan(sure)
    if seen.all():
        yield np.arange(len(sure)), sure, right
        return
    if (seen == seen[:1]).all():
        run = np.zeros(len(sure), int)
    else:
        _, run = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
    for one in range(run.max() + 1):
        places = np.flatnonzero(run.reshape(-1) == one)
        kept = seen[places[0]]
        yield places, sure[places][:, kept], right[places][:, kept]


def near_to_far(group: Group) -> Array:
    """Return the elements from the identity outward; in their own order if they have no size."""
    reach = np.arange(len(group)) if group.reach is None else group.reach[0]
    return np.lexsort((np.arange(len(group)), reach, np.arange(len(group)) != group.identity))


def upright_column(view: ScanView, variable: str) -> Array:
    """Return a variable of the untransformed samples, `[M, N]`, NaN if unfinished; read once."""
    home = view.group.identity
    return _picked_element_column(
        view, ("upright", variable), variable, lambda found: found[:, home]
    )


def first_failed_element_column(view: ScanView) -> Array:
    """Return the place of the first failure among the elements from near to far, `[M, N]`.

    It is the number of elements if there is none, and NaN if a sample is unfinished.
    """
    order = near_to_far(view.group)
    reference = "truth" if view.scan.labeled else "consensus"
    correct = view.variable(view.metrics["correct"], reference)
    return _picked_element_column(
        view, "first failure", correct, lambda right: _first_zero(right[:, order])
    )


def _picked_element_column(
    view: ScanView, key: Hashable, variable: str, pick: Callable[[Array], Array]
) -> Array:
    """Return one number of each sample `[M, N]`, picked from its responses `[rows, K]`."""

    def compute() -> Array:
        numbers = np.full((len(view.models), view.samples), np.nan, np.float32)
        for rows in view.reader.blocks(variable):
            for model in range(len(numbers)):
                with view.passes.turn(patient=True):  # requests for what is visible come first
                    found = view.reader.responses(variable, rows, model, keep=False)
                    numbers[model, rows] = pick(found)
        return numbers

    return view.cache.get_or_compute(key, compute)


def _first_zero(right: Array) -> Array:
    """Return the first column of `right [rows, K]` that is 0; K if none is, NaN without any."""
    wrong = right == 0
    first = np.where(wrong.any(1), wrong.argmax(1), right.shape[1]).astype(np.float32)
    return np.where(np.isnan(right).all(1), np.float32(np.nan), first)
