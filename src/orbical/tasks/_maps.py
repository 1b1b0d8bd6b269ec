"""Means over the valid pixels of maps, and maps reduced to be stored at every element.

Maps are `[..., H, W]`; those of volumes, `[..., D, H, W]`, are reduced to their middle slices, or
to those that `map_slices_at` chooses.

What the pixels of class maps amount to (confusion, confidence by bin, regions, votes) is a sum over
the pixels of a view, so that what a scan stores does not grow with the size of the images.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .._trees import Tree
from ..actions import Action, ClassMaps, ValueMaps, Window, action_view, central_window_of_images
from ..errors import InputError
from ..groups import Group
from .reading import wrong_output
from .task import Task, Variable, per_element

MAP = ("map_row", "map_column")
_LEAST = 1e-9  # of an area, so that nothing is not divided by nothing
MAP_SIDE = 32
"""Cells along the longer side of a reduced map: enough for a view, little to store."""
UNSEEN = -1
"""The class of cells that show nothing."""
Places = tuple[int, int, int]
_SLICES: ContextVar[Places | None] = ContextVar("slices", default=None)


@contextmanager
def map_slices_at(places: Places | None) -> Iterator[None]:
    """Reduce volumes to the slices at a depth, a row and a column; None for the middle ones."""
    token = _SLICES.set(places)
    try:
        yield
    finally:
        _SLICES.reset(token)


class MapTask(Task):
    """What tasks share that predict something for each pixel, voxel or other place of an input."""

    truth_kind: ClassVar[str] = "map"
    detail_view: ClassVar[str] = "maps"

    def keep_map_settings(
        self, interpolation: str, output: Action | None, *lead: str, window: int | None = None
    ) -> None:
        """Keep how maps are resampled and moved, and the names of their dimensions after `lead`."""
        self.interpolation, self._output = interpolation, output
        seen = self.input.size if isinstance(self.input, Window) else None
        self.window = seen if window is None else window
        volumes = action_view(self.input) == "volume"
        self._sides = ("depth", "row", "column") if volumes else ("row", "column")
        sides = self._sides if self.window is None else ("image_row", "image_column")
        self.truth_dims = (*lead, *sides)

    def check_group(self, group: Group, x: Tree) -> None:
        """Refuse a group that changes maps otherwise than by moving their places."""
        super().check_group(group, x)
        if isinstance(self.output, ClassMaps | ValueMaps):
            self.output.check_places(group, x)

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Check that the maps are as large as the inputs that the model saw."""
        sides = tuple(self.primary(outputs).shape[3:])
        if isinstance(moved, Tensor) and moved.shape[-len(sides) :] != sides:
            kind, inputs = ("voxels", "volumes") if len(sides) == 3 else ("pixels", "images")
            expected = f"maps of {tuple(moved.shape[-len(sides) :])} {kind}, as the {inputs} have"
            raise wrong_output(expected, sides, "resize them with read=")
        return outputs

    def check_size(self, true: tuple[int, ...], predicted: tuple[int, ...]) -> None:
        """Check that maps of the truth have the size of predicted ones, or surround the window."""
        of_each = "pixels" if len(predicted) == 2 else "voxels"
        fits, size = true == predicted, f"{predicted} {of_each}, as the model predicts"
        if self.window is not None:
            fits = min(true) >= self.window and not any((side - self.window) % 2 for side in true)
            size = f"the size of the images around the window of {self.window} pixels"
        if not fits:
            raise InputError("labels", f"maps of {size}", true)

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Average over the elements that see a pixel."""
        return seen_map_mean(outputs, weights, valid)

    def areas(self, maps: Tensor) -> Tensor | None:
        """Return how much each place of maps `[..., H, W]` counts; None if all count alike."""
        found = self.output.areas(tuple(maps.shape[-len(self._sides) :]))
        return None if found is None else found.to(maps.device)

    def in_view(self, reference: Tensor) -> Tensor:
        """Return the part of a reference that a window shows."""
        return (
            reference if self.window is None else central_window_of_images(reference, self.window)
        )


def vector_map_lengths(vectors: Tensor) -> Tensor:
    """Return the lengths of vectors `[K, B, C, ...]`.

    `norm` along another dimension than the last takes ten times as long on a CPU.
    """
    length: Tensor = vectors.movedim(2, -1).contiguous().norm(dim=-1)
    return length


def masked_map_mean(values: Tensor, valid: Tensor | None, areas: Tensor | None = None) -> Tensor:
    """Average maps `[K, B, ...]` over the places that are valid for each element.

    `valid` is `[K, ...]`, or `[K, B, ...]`; `areas` is how much each place counts.
    """
    if valid is None:
        return (values if areas is None else values * areas).flatten(2).mean(-1)
    shown, counted = _masked(values, valid), _as_mask(valid, values)
    if areas is not None:
        shown, counted = shown * areas, counted * areas
    least = 1 if areas is None else _LEAST
    return shown.flatten(2).sum(-1) / counted.flatten(2).sum(-1).clamp_min(least)


def seen_map_mean(fields: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
    """Average `[K, B, C, ...]` over the elements that see each pixel, to `[B, C, ...]`."""
    if valid is None:
        first = fields[0]
        return first + torch.einsum("k,k...->...", weights.to(fields.dtype), fields - first)
    each = weights.reshape(-1, *[1] * (valid.ndim - 1)).to(fields)
    share = (each * valid)[:, None, None]
    return (share * fields).sum(0) / share.sum(0).clamp_min(1e-12)


class RunningMapMean:
    """The mean of un-transformed maps `[K, B, C, ...]` that come block by block, and their spread.

    No map is kept: sums are relative to what the first element that sees a pixel says there, so
    that rounding does not accumulate when maps agree.
    """

    def __init__(self) -> None:
        self._first: Tensor | None = None

    def add(
        self, maps: Tensor, seen: Tensor | None, weights: Tensor, areas: Tensor | None = None
    ) -> None:
        """Add maps of K elements with their weights `[K]`, where each is `seen [K, ...]`.

        `areas` is how much each place counts in distances, 1 on average.
        """
        if self._first is None:
            self._areas = maps.new_ones(()) if areas is None else areas.to(maps)
            self._first = maps[0].clone()
            self._sums = maps.new_zeros(2, *maps.shape[1:])
            self._shares = maps.new_zeros(2, *maps.shape[3:])
            self._squares = maps.new_zeros(maps.shape[1])
        sides = [1] * (maps.ndim - 3)
        if seen is None:
            away = maps - self._first
            seen = maps.new_ones(len(maps), *sides)
            count = torch.full_like(weights, self._shares[0].numel())
        else:
            count = (seen * self._areas).flatten(1).sum(1).clamp_min(_LEAST)
            ranks = torch.arange(len(maps), 0, -1, device=maps.device).reshape(-1, *sides)
            earliest = len(maps) - (seen * ranks).amax(0).clamp_min(1)
            new = maps.gather(0, earliest.expand(1, *maps.shape[1:]))[0]
            self._first = self._first.where(self._shares[0] > 0, new)
            away = (maps - self._first).mul_(seen[:, None, None])
        # Every map counts by its weight where it is seen; its distance is a mean over its places.
        rates = torch.stack([weights, weights / count]).to(maps)
        # Sums rather than products of matrices, which may be computed in reduced precision.
        self._shares += torch.stack([(rate.reshape(-1, *sides) * seen).sum(0) for rate in rates])
        for sums, rate in zip(self._sums.flatten(1), rates, strict=True):
            sums.addmv_(away.flatten(1).T, rate)
        weighted = away if self._areas.ndim == 0 else away.mul_(self._areas.sqrt())
        squares = torch.linalg.vector_norm(weighted, dim=-1).square_()
        self._squares += (rates[1][:, None] * squares.flatten(2).sum(-1)).sum(0)

    def result(self) -> tuple[Tensor, Tensor]:
        """Return the mean `[B, C, ...]` and the root mean square distance from it `[B]`."""
        assert self._first is not None
        (sums, each), (share, per_place) = self._sums, self._shares
        step = sums / share.clamp_min(1e-12)
        apart = (self._areas * step * (per_place * step - 2 * each)).flatten(1).sum(-1)
        return self._first + step, (self._squares + apart).clamp_min(0).sqrt()


def map_block_means(values: Tensor, valid: Tensor | None, size: int | tuple[int, int]) -> Tensor:
    """Reduce `[K, B, H, W]` to means over the valid pixels of blocks, NaN where there are none."""
    if valid is None:
        return F.adaptive_avg_pool2d(values, size)
    share = F.adaptive_avg_pool2d(_as_mask(valid, values).to(values.dtype), size)
    return F.adaptive_avg_pool2d(_masked(values, valid), size) / share  # 0 / 0 is NaN


def reduced_mean_maps(values: Tensor, valid: Tensor | None) -> Tensor:
    """Reduce maps `[K, B, H, W]`, or the middle slices of `[K, B, D, H, W]`, to block means."""
    if values.ndim == 4:
        height, width = _reduced_sides(values.shape[-2:], MAP_SIDE)
        return map_block_means(values, valid, (height, width))
    masks = (None,) * 3 if valid is None else chosen_map_slices(_as_mask(valid, values))
    sizes = _slice_sizes(values, MAP_SIDE)
    parts = zip(chosen_map_slices(values), masks, sizes, strict=True)
    return _joined_map_slices(
        [map_block_means(part, mask, size) for part, mask, size in parts], torch.nan
    )


def _middle_pixels(labels: Tensor) -> Tensor:
    """Reduce labels `[..., H, W]` to those in the middle of blocks: no class is invented.

    >>> _middle_pixels(torch.zeros(180, 240)).shape, _middle_pixels(torch.zeros(16, 16)).shape
    (torch.Size([24, 32]), torch.Size([16, 16]))
    """
    return map_values_on_grid(labels, 2, MAP_SIDE)


def reduced_label_maps(labels: Tensor) -> Tensor:
    """Reduce label maps `[K, B, H, W]`, or the middle slices of `[K, B, D, H, W]`."""
    return _middle_pixels(labels) if labels.ndim == 4 else map_of_volume_slices(labels, UNSEEN)


def reduced_value_maps(values: Tensor) -> Tensor:
    """Reduce maps `[K, B, H, W]`, or the middle slices of `[K, B, D, H, W]`, to middle pixels."""
    return _middle_pixels(values) if values.ndim == 4 else map_of_volume_slices(values, torch.nan)


def map_values_on_grid(maps: Tensor, sides: int, cells: int) -> Tensor:
    """Return maps whose last `sides` dimensions are reduced to middles of at most `cells` blocks.

    >>> map_values_on_grid(torch.zeros(5, 8, 8, 4), 3, 6).shape
    torch.Size([5, 6, 6, 3])
    """
    return _chosen(maps, _reduced_sides(maps.shape[-sides:], cells))


def map_of_volume_slices(volumes: Tensor, empty: float, side: int = MAP_SIDE) -> Tensor:
    """Show volumes `[..., D, H, W]` by three slices, of at most `side` pixels, in one map.

    >>> map_of_volume_slices(torch.arange(8).reshape(2, 2, 2), -1)
    tensor([[ 4,  5, -1,  1,  5],
            [ 6,  7, -1,  3,  7],
            [-1, -1, -1, -1, -1],
            [ 2,  3, -1, -1, -1],
            [ 6,  7, -1, -1, -1]])
    """
    sizes = _slice_sizes(volumes, side)
    parts = zip(chosen_map_slices(volumes), sizes, strict=True)
    return _joined_map_slices([_chosen(part, size) for part, size in parts], empty)


def map_middle(sides: tuple[int, ...]) -> Places:
    """Return the depth, row and column of the middle slices."""
    depth, row, column = (side // 2 for side in sides)
    return depth, row, column


def chosen_map_slices(volumes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return three slices of `[..., D, H, W]`: row x column, row x depth, depth x column."""
    depth, row, column = _SLICES.get() or map_middle(volumes.shape[-3:])
    across = volumes[..., column].transpose(-2, -1)
    return volumes[..., depth, :, :], across, volumes[..., row, :]


def _slice_sizes(volumes: Tensor, side: int) -> list[tuple[int, int]]:
    depth, row, column = _reduced_sides(volumes.shape[-3:], side)
    return [(row, column), (row, depth), (depth, column)]


def _joined_map_slices(slices: list[Tensor], empty: float) -> Tensor:
    """Join three slices so that their axes line up: the second to the right, the third below."""
    first, right, below = slices
    height, width = first.shape[-2:]
    whole = (height + 1 + below.shape[-2], width + 1 + right.shape[-1])
    picture = first.new_full((*first.shape[:-2], *whole), empty)
    picture[..., :height, :width] = first
    picture[..., :height, width + 1 :] = right
    picture[..., height + 1 :, :width] = below
    return picture


def _reduced_sides(sides: tuple[int, ...], side: int) -> tuple[int, ...]:
    """Return the sides of a reduced map, in the proportions of the whole one."""
    factor = min(1.0, side / max(sides))
    return tuple(max(1, round(length * factor)) for length in sides)


def _chosen(maps: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return the pixels in the middle of blocks, as many as `size` along the last dimensions."""
    for dim, cells in enumerate(size, maps.ndim - len(size)):
        middle = (torch.arange(cells, device=maps.device) + 0.5) * maps.shape[dim] / cells
        maps = maps.index_select(dim, middle.long())
    return maps


def _as_mask(valid: Tensor, values: Tensor) -> Tensor:
    """Return a mask `[K, ...]` or `[K, B, ...]` in as many dimensions as the values have."""
    return valid if valid.ndim == values.ndim else valid[:, None]


def _masked(values: Tensor, valid: Tensor) -> Tensor:
    """Return values that are 0 where they are not valid; on a CPU `where` takes six times as long.

    A mask of samples leaves out what is not a number; one of places lets it be found.
    """
    numbers = values.nan_to_num(0.0, 0.0, 0.0) if valid.ndim == values.ndim else values
    return numbers * _as_mask(valid, values)


BINS = 15
"""Bins of confidence: those of the calibration error by default, of which 5, 3 and 1 are sums."""
_STEPS = 2**24
_COPIES = 32  # the threads of an accelerator that work in step


class MapTally(NamedTuple):
    """Sums over the judged pixels of each view: by class `[K, B, C]`, by bin `[K, B, 15]`.

    Attributes:
        both: pixels of each class in prediction and truth.
        either: pixels of each class in prediction or truth.
        region: mean confidence of the pixels predicted as each class; NaN if there are none.
        bins: count, and sums of confidence and of correctness, by bin of confidence; and the
            expected calibration error of each view, NaN where nothing is judged.
    """

    both: Tensor
    either: Tensor
    region: Tensor
    bins: dict[str, Tensor]


def map_tally(
    sure: Tensor, predicted: Tensor, truth: Tensor, judged: Tensor, classes: int
) -> MapTally:
    """Sum what judged pixels `[K, B, ...]` amount to, each pixel in one cell for all of it.

    Bins are `(lo, hi]`, the first closed at 0, as in `orbical.calibration`: no number in single
    precision is rounded across an edge by the product. Confidences are summed in steps of 2^-24,
    those of single precision below 1: whole numbers add up to the same sum in any order, so that
    an accelerator repeats its results.

    >>> maps = torch.tensor([[[0, 1, 1, 1]]])
    >>> found = map_tally(maps / 2, maps, torch.tensor([[[0, 0, 1, 1]]]), maps >= 0, 2)
    >>> found.both.tolist(), found.either.tolist(), found.region.tolist()
    ([[[1, 2]]], [[[2, 3]]], [[[0.0, 0.5]]])
    >>> map_tally(0.9 + 0.0 * maps, maps, 0 * maps, maps < 2, 2).bins["sample_ece"]
    tensor([[0.6500]])
    """
    sure = sure.nan_to_num(0.0)
    cell = (sure * BINS).ceil_().clamp_(1, BINS).int()
    cell.add_(predicted, alpha=2 * BINS).add_(predicted == truth, alpha=BINS)
    steps = (sure * _STEPS).round_().long()
    cells = (classes, 2, BINS)
    found = _counts_and_sums(cell, judged, math.prod(cells), steps)
    count, total = (each.unflatten(-1, cells) for each in found)
    (true,) = _map_sums_by_cell(truth.clamp(0, classes - 1).int() + 1, judged, classes, None)
    said, both = count.sum((-2, -1)), count[..., 1, :].sum(-1)
    bins = {
        "pixel_count": count.sum((-3, -2)).float(),
        "pixel_confidence": total.sum((-3, -2)).float() / _STEPS,
        "pixel_correct": count[..., 1, :].sum(-2).float(),
    }
    apart = (bins["pixel_correct"] - bins["pixel_confidence"]).abs().sum(-1)
    bins["sample_ece"] = apart / bins["pixel_count"].sum(-1)
    region = total.sum((-2, -1)).float() / _STEPS / said
    return MapTally(both, said + true - both, region, bins)


def map_tally_variables(places: str, view: str) -> dict[str, Variable]:
    """Declare the bins of a `MapTally` of pixels or points, and the calibration error of a view."""
    summed = f"of the {places} in bins of confidence"
    error = f"expected calibration error of the {places} of one {view}"
    return {
        "pixel_count": per_element(f"number {summed}", "bin"),
        "pixel_confidence": per_element(f"summed confidence {summed}", "bin"),
        "pixel_correct": per_element(f"number of correct ones {summed}", "bin"),
        "sample_ece": per_element(error, unit="share", higher_is_better=False),
    }


def map_class_votes(winners: Tensor, valid: Tensor | None, classes: int) -> Tensor:
    """Count how often each class wins at each place, `[B, C, places]`, from `[K, B, ...]`.

    `valid` is `[K, ...]`, or `[K, B, ...]`.
    """
    (count, samples), places = winners.shape[:2], winners[0, 0].numel()
    device = winners.device
    first = torch.arange(samples, device=device)[:, None] * (classes * places)
    index = torch.add(first + torch.arange(places, device=device), winners.flatten(2), alpha=places)
    seen = torch.ones(1, 1, 1, dtype=torch.int32, device=device)
    if valid is not None:
        seen = valid.reshape(count, -1, places).int()
    found = torch.zeros(samples * classes * places, dtype=torch.int32, device=device)
    found.scatter_add_(0, index.flatten(), seen.expand_as(index).flatten())
    return found.reshape(samples, classes, places)


def map_vote_disagreement(votes: Tensor) -> dict[str, Tensor]:
    """Return how often un-transformed classes differ along the orbit, `[B]`, from their votes.

    Of the pixels that at least two elements see: the share whose class is not the same at all of
    them, and the share of pairs of elements that disagree.

    >>> winners = torch.tensor([[[[0, 1]]], [[[0, 0]]], [[[0, 0]]]])
    >>> shares = map_vote_disagreement(map_class_votes(winners, None, 2))
    >>> {name: round(float(share), 3) for name, share in shares.items()}
    {'changed_pixels': 0.5, 'changed_pairs': 0.333}
    """
    count = votes.sum(1)
    judged = count > 1
    changed = (votes.amax(1) < count) & judged
    alike = (votes * (votes - 1)).sum(1) / (count * (count - 1)).clamp_min(1)
    total = judged.sum(-1)  # 0 / 0 is NaN: nothing to compare
    return {
        "changed_pixels": changed.sum(-1) / total,
        "changed_pairs": ((1 - alike) * judged).sum(-1) / total,
    }


def _counts_and_sums(cell: Tensor, judged: Tensor, cells: int, steps: Tensor) -> list[Tensor]:
    """Return the number of judged pixels in each cell, and the sum of their steps.

    Both fit into one number for views of fewer than half a million pixels, which halves the work.
    """
    bits = cell[0, 0].numel().bit_length()
    shift = _STEPS.bit_length() + bits
    if shift + bits > 63:
        return _map_sums_by_cell(cell, judged, cells, None, steps)
    (both,) = _map_sums_by_cell(cell, judged, cells, steps.add_(2**shift))
    return [both >> shift, both & (2**shift - 1)]


def _map_sums_by_cell(
    cell: Tensor, judged: Tensor, cells: int, *values: Tensor | None
) -> list[Tensor]:
    """Sum each of the values `[K, B, ...]`, None for ones, in the cells of judged pixels.

    Returns `[K, B, cells]` each, of the cells 1, 2, ...
    """
    lead, shape = cell.shape[:2], cell.shape[2:]
    copies = _copies(cell, cells + 1)
    # The first cell of each view is for pixels that are not judged; `where` would be slower.
    place = cell * judged
    if copies > 1:
        lane = torch.arange(shape.numel(), device=cell.device, dtype=cell.dtype) % copies
        place = torch.add(lane.reshape(shape), place, alpha=copies)
    views = torch.arange(lead.numel(), device=cell.device) * ((cells + 1) * copies)
    flat = (place + views.reshape(*lead, *[1] * len(shape))).flatten()
    found = flat.new_zeros(len(values), lead.numel() * (cells + 1) * copies)
    for sums, given in zip(found, values, strict=True):
        added = flat.new_ones(1).expand_as(flat) if given is None else given.flatten()
        sums.scatter_add_(0, flat, added)
    return [*found.reshape(-1, *lead, cells + 1, copies).sum(-1)[..., 1:]]


def _copies(cell: Tensor, cells: int) -> int:
    """Return how many copies of the cells of a view neighbors count into.

    Most pixels of a view fall into a few cells, for which the threads of an accelerator would wait.
    The copies need no more memory than the pixels.
    """
    return max(1, min(_COPIES, cell[0, 0].numel() // cells)) if cell.is_cuda else 1
