"""Inputs and outputs of the samples in a report, in blocks that a page opens one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from ..session.input_pictures import THUMBNAIL, as_drawn, fields_of, thinned
from ..session.sample_views import STILL, reference_action, references_of
from ..session.scan_view import ScanView
from .encoding import Array, Quantized, quantize

BLOCK_BYTES = 4 << 20
MOST_BYTES = 256 << 20
"""Outputs larger than this, over all samples of a report, are left out."""
MOST_MOVED_BYTES = 64 << 20
"""The same for truth and consensus transformed along the orbit."""


@dataclass(frozen=True)
class Block:
    """The arrays of some samples: `input/NAME [n, ...]`, `detail/NAME [M, n, K, ...]`, ..."""

    arrays: dict[str, Array | Quantized]
    steps: dict[str, int]


@dataclass(frozen=True)
class Blocks:
    """The blocks of a report, made one at a time.

    Attributes:
        view: The scan.
        samples: The samples of the report.
        size: The number of samples in a block.
        picture: The name of the input that is an image of at most thumbnail size, or "".
        spans: The range of each input that is stored in 256 steps.
        details: Names of the outputs with several numbers per position.
        references: The arrays of `consensus` and `truth`, if there are any.
        moved: Those of them that are stored transformed along the orbit.
        left_out: Names of outputs that are too large.
    """

    view: ScanView
    samples: Array
    size: int
    picture: str
    spans: dict[str, tuple[float, float]]
    details: list[str]
    references: dict[str, str]
    moved: tuple[str, ...]
    left_out: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, max(1, len(self.samples)), self.size):
            yield self._block(self.samples[start : start + self.size])

    def _block(self, samples: Array) -> Block:
        arrays: dict[str, Array | Quantized] = {}
        for name, values in _inputs(self.view, samples).items():
            span = self.spans.get(name)
            arrays[f"input/{name}"] = values if span is None else quantize(values, 8, *span)
        steps: dict[str, int] = {}
        for name in self.details:
            values, step = _thinned(self._shown(name, samples), 3)
            if step > 1:
                steps[name] = step
            share = name == "probabilities"
            kept = _once(values)
            arrays[f"detail/{name}"] = (
                quantize(kept, 8, 0.0, 1.0) if share else self._drawn(name, kept)
            )
        for kind, name in self.references.items():
            if kind in self.moved:
                moved = _moved(self.view, name, samples)
                arrays[f"{kind}/moved"] = self._drawn(name, moved)
            else:
                still = _thinned(self._shown(name, samples), 2)[0]
                arrays[f"{kind}/{STILL[kind]}"] = self._drawn(name, still)
        return Block(arrays, steps)

    def _shown(self, name: str, samples: Array) -> Array:
        return as_drawn(_rows(self.view, name, samples), self.view.reader.dims[name])

    def _drawn(self, name: str, values: Array) -> Array | Quantized:
        """Quantize maps and fields to 65,536 steps, finer than drawn; keep the rest exact."""
        row, column = self.view.reader.dims[name][-2:]
        is_map = row.endswith("row") and column.endswith("column")
        return quantize(values, 16) if is_map else values


def blocks_of(view: ScanView, samples: Array) -> Blocks:
    """Plan the blocks of a report."""
    reader = view.reader
    place = ("model", "sample", "element")
    details, left_out, row = [], [], 0
    for name, dims in reader.dims.items():
        if dims[:3] != place or dims == place or name == "outputs":
            continue
        shape = reader.shape(name)
        size = shape[0] * int(np.prod(shape[2:])) * (1 if name == "probabilities" else 4)
        if size * len(samples) > MOST_BYTES:
            left_out.append(name)
        else:
            details.append(name)
            row += size
    spans = {}
    picture = ""
    first = _inputs(view, samples[:1])
    for name, values in first.items():
        row += values[0].size
        if values.ndim >= 4:  # [n, C, H, W], or a pair of them
            spans[name] = _span(view, name, samples)
            small = values.ndim == 4 and max(values.shape[-2:]) <= THUMBNAIL
            if small and values.shape[1] in (1, 3) and spans[name] == (0.0, 1.0):
                picture = name
    references = references_of(view)
    moved = []
    for kind, name in references.items():
        bytes_moved = _bytes_moved(view, kind, name, samples)
        if 0 < bytes_moved * len(samples) <= MOST_MOVED_BYTES:
            moved.append(kind)
            row += bytes_moved
    size = max(1, BLOCK_BYTES // max(1, row))
    return Blocks(view, samples, size, picture, spans, details, references, tuple(moved), left_out)


def _bytes_moved(view: ScanView, kind: str, name: str, samples: Array) -> int:
    """Return the bytes of one sample's transformed reference; 0 if it is not transformed."""
    if reference_action(view, kind) is None:
        return 0
    shape = view.reader.shape(name)
    row = int(np.prod(shape[2:] if view.reader.by_model(name) else shape[1:])) * 4
    if row * len(view.group) > MOST_MOVED_BYTES:  # before anything is transformed
        return 0
    return int(_moved(view, name, samples[:1]).nbytes)


def _moved(view: ScanView, name: str, samples: Array) -> Array:
    """Return references transformed by every element, `[M, n, K, ...]`, as they are drawn."""
    assert view.live.task is not None
    action, dims = view.live.task.output, view.reader.dims[name]
    still = _rows(view, name, samples)
    flat = torch.from_numpy(np.ascontiguousarray(still.reshape(-1, *still.shape[2:])))
    each = [
        _thinned(as_drawn(action.apply(view.group, one[None])[:, 0].numpy(), dims)[None], 2)[0][0]
        for one in flat
    ]
    return np.stack(each).reshape(*still.shape[:2], *np.shape(each[0]))


def _once(values: Array) -> Array:
    """Keep one copy, `[1, n, K, ...]`, of what is the same for all models, such as the truth."""
    alike = all(np.array_equal(values[0], other, equal_nan=True) for other in values[1:])
    return values[:1] if alike else values


def _thinned(values: Array, lead: int) -> tuple[Array, int]:
    """Thin large fields as the session does, keeping the first `lead` dimensions."""
    each, step = thinned(values.reshape(-1, *values.shape[lead:]))
    return each.reshape(*values.shape[:lead], *each.shape[1:]), step


def _span(view: ScanView, name: str, samples: Array) -> tuple[float, float]:
    """Return the range of the images, at least 0 to 1."""
    low, high = 0.0, 1.0
    for start in range(0, len(samples), 256):
        values = _inputs(view, samples[start : start + 256])[name]
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high


def _inputs(view: ScanView, samples: Array) -> dict[str, Array]:
    """Return inputs by name, `[n, ...]`; empty if they are not available."""
    if not view.live.has_inputs or not len(samples):
        return {}
    rows = [fields_of(view.live.input(int(one)), 1, view.input_view) for one in samples]
    return {name: np.stack([row[name].numpy() for row in rows]) for name in rows[0]}


def _rows(view: ScanView, name: str, samples: Array) -> Array:
    """Read rows of every model, `[M, n, ...]`; M is 1 for arrays without a model dimension."""
    reader = view.reader
    models = range(len(view.models)) if reader.by_model(name) else [None]
    return np.stack(
        [np.stack([reader.row(name, int(one), model) for one in samples]) for model in models]
    )
