"""Where along a circle or a line the prediction of a model flips, refined with the model itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from .._trees import Tree, concatenate, leaves, to_device
from ..data import preprocessing_of_scan, read_rows
from ..errors import InputError, whole_number
from ..groups import Array, Chart, chart_of
from ..scanning import Recipe, UnitRunner, ready_unit_runner
from ..store import FINISHED, Scan, arrays_of, row_runs
from .descent import Objective
from .worst_cases import check_searched_models, search_recipe, searched_scan

_ROWS = 1024


@dataclass(frozen=True)
class Flip:
    """A change of a predicted class along the orbit.

    Attributes:
        model: The name of the model.
        sample: The index of the sample.
        at: The coordinate at which the prediction changes, such as the angle in degrees.
        width: How precisely that is known: it changes within `width` around `at`.
        before: The class on the side of smaller coordinates.
        after: The class on the other side.
        nearest: The index of the sample of class `after` whose input is nearest to the moved one,
            by the root mean square difference; None without labels and inputs.
    """

    model: str
    sample: int
    at: float
    width: float
    before: int
    after: int
    nearest: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the fields in plain values."""
        return asdict(self)


def flips(
    scan: Scan,
    samples: Iterable[int] | int | None = None,
    *,
    models: object = None,
    data: object = None,
    rounds: int = 10,
    device: str = "auto",
    preprocess: object = None,
) -> list[Flip]:
    """Find where along a circle or a line predictions flip from one class to another.

    A scan knows them between two of its elements. With the models at hand, each is refined by
    bisection, which halves the width in each round; two flips between neighboring elements cannot
    be seen. The nearest sample of the class that it flips to often says why.

    Args:
        scan: a scan of predicted classes along one coordinate, such as `rotations:72`.
        samples: the index of a sample, or several; by default all.
        models: models by their names in the scan, or one model, to refine with; None for none.
        data: the data of the scan, if its inputs are not stored in it.
        rounds: steps of the bisection.
        device: a torch device, or `"auto"`.
        preprocess: as for the scan, which knows a name such as `"imagenet"` itself.

    Returns:
        The flips, by model, sample and coordinate.

    Raises:
        InputError: if the orbit is not a circle or a line, or predictions are not classes.
        ModelError: if a model does not repeat its outputs, or is not the one that was scanned.

    See Also:
        orbical.worst_case: The element that hurts a model most.

    Example:
        >>> import orbical as ob
        >>> def side(images):  # which half is brighter, left or right?
        ...     return torch.stack([part.sum((1, 2, 3)) for part in images.chunk(2, -1)], 1)
        >>> x = torch.zeros(1, 1, 8, 8)
        >>> x[..., 2:6, :3] = 1.0
        >>> scan = ob.scan(side, x, group="rotations:9", task="classification", keep="inputs",
        ...                progress=False)
        >>> [(flip.at, flip.width) for flip in ob.flips(scan)]
        [(100.0, 40.0), (260.0, 40.0)]
        >>> [round(flip.at) for flip in ob.flips(scan, models=side)]
        [90, 270]
    """
    arrays, group = arrays_of(scan), scan.group
    chart = chart_of(group)
    if chart is None or len(chart.names) != 1 or chart.held or "predicted" not in arrays:
        raise InputError(
            "scan", "predicted classes along one continuous coordinate", f"{group.spec}"
        )
    rounds = whole_number("rounds", rounds, 1)
    rows = np.atleast_1d(np.arange(arrays.samples) if samples is None else np.asarray(samples))
    if rows.size and rows.dtype.kind not in "iu":
        raise InputError("samples", "indices of samples", samples)
    rows = rows.astype(int)
    if len(rows) and not (rows.min() >= 0 and rows.max() < arrays.samples):
        raise InputError("samples", f"indices below {arrays.samples}", samples)
    closed = group.layout.kind == "circle"
    order = np.argsort(chart.start[:, 0], kind="stable")
    found: list[Flip] = []
    for model, name in enumerate(arrays.models):
        for block, (classes, done) in arrays.sample_blocks("predicted", FINISHED, model=model):
            for sample in rows[(rows >= block.start) & (rows < block.stop)]:
                if np.isfinite(done[sample - block.start]).all():
                    seen = classes[sample - block.start][order]
                    found += _flips_between_elements(name, int(sample), seen, chart, order, closed)
    if models is None or not found:
        return found
    return _refined_flips(scan, found, chart, models, data, rounds, device, preprocess)


def _flips_between_elements(
    model: str, sample: int, classes: Array, chart: Chart, order: Array, closed: bool
) -> list[Flip]:
    """Return the flips between sampled elements, at the middle of two of them."""
    after = np.roll(classes, -1)
    places = np.flatnonzero(classes != after)
    low, step = chart.start[order, 0], float(chart.step[0])
    if not closed:
        places = places[places < len(classes) - 1]
    return [
        Flip(model, sample, float(low[k] + step / 2), step, int(classes[k]), int(after[k]))
        for k in places
    ]


def _refined_flips(
    scan: Scan,
    found: Sequence[Flip],
    chart: Chart,
    models: object,
    data: object,
    rounds: int,
    device: str,
    preprocess: object,
) -> list[Flip]:
    """Refine flips of the given models by bisection, and find the nearest samples."""
    named, stored, group, task = searched_scan(scan, models, None, None, needed=data is None)
    given = stored if data is None else data
    prepare = preprocessing_of_scan(preprocess, scan.record.preprocess)
    recipe = search_recipe(
        named, given, group, task, batch_size="auto", device=device, preprocess=prepare
    )
    own = [flip for flip in found if flip.model in named]
    with ready_unit_runner(recipe) as runner:
        check_searched_models(runner, scan)
        samples = sorted({flip.sample for flip in own})
        batch = concatenate([read_rows(recipe.samples, slice(n, n + 1)).inputs for n in samples])
        batch = to_device(batch, runner.sweep.device)
        row = {sample: place for place, sample in enumerate(samples)}
        result = [flip for flip in found if flip.model not in named]
        for name in named:
            mine = [flip for flip in own if flip.model == name]
            if mine:
                result += _bisected_flips(runner, name, chart, batch, row, mine, rounds)
    return sorted(result, key=lambda one: (scan.models.index(one.model), one.sample, one.at))


def _bisected_flips(
    runner: UnitRunner,
    model: str,
    chart: Chart,
    batch: Tree,
    row: Mapping[int, int],
    flips: Sequence[Flip],
    rounds: int,
) -> list[Flip]:
    """Halve the intervals of one model's flips, all at once."""
    sweep = runner.sweep
    reference = torch.zeros(len(row), dtype=torch.long, device=sweep.device)
    objective = Objective(sweep, model, chart, batch, reference, False, 1.0)
    sample = np.array([row[flip.sample] for flip in flips])
    before, after = (
        np.array([getattr(flip, end) for flip in flips]) for end in ("before", "after")
    )
    low = np.array([[flip.at - flip.width / 2] for flip in flips])
    width, base = float(chart.step[0]), np.zeros(len(flips), int)
    for _ in range(rounds):
        width /= 2
        middle = chart.add(low, np.full_like(low, width))
        seen = np.concatenate(
            [
                objective.predicted(sample[part], middle[part], base[part])
                for part in row_runs(len(flips), sweep.batch_size)
            ]
        )
        same = seen == before
        low, after = np.where(same[:, None], middle, low), np.where(same, after, seen)
    end = chart.add(low, np.full_like(low, width))
    inputs, _ = objective._moved(chart.elements(end, base), sample)
    own = np.array([flip.sample for flip in flips])
    near = nearest_samples_to_flips(inputs, after, own, _labeled_blocks_for_flips(runner.recipe))
    places = chart.add(low, np.full_like(low, width / 2))[:, 0]
    return [
        Flip(model, flip.sample, float(at), width, flip.before, int(to), nearest)
        for flip, at, to, nearest in zip(flips, places, after, near, strict=True)
    ]


def nearest_samples_to_flips(
    moved: Tree, classes: Array, own: Array, blocks: Iterable[tuple[Array, Tree, Array]]
) -> list[int | None]:
    """Return for each moved input the sample of a class with the nearest input, None without one.

    Args:
        moved: `[F, ...]` inputs.
        classes: `[F]` the class whose samples are compared with each.
        own: `[F]` the sample that each is of, which is never its own neighbor.
        blocks: samples by their indices `[B]`, with their inputs and labels.
    """
    rows = _flat(moved)
    best, nearest = np.full(len(classes), np.inf), np.full(len(classes), -1)
    for numbers, inputs, labels in blocks:
        apart = torch.cdist(rows, _flat(inputs)).numpy()
        apart[(classes[:, None] != labels[None]) | (own[:, None] == numbers[None])] = np.inf
        nearest = np.where(apart.min(1) < best, numbers[apart.argmin(1)], nearest)
        best = np.minimum(best, apart.min(1))
    return [int(place) if place >= 0 else None for place in nearest]


def _labeled_blocks_for_flips(recipe: Recipe) -> Iterator[tuple[Array, Tree, Array]]:
    """Yield all samples with their labels; nothing if they have none."""
    if recipe.first_target is None or recipe.first_target.ndim != 1:
        return
    for rows in row_runs(len(recipe.samples), _ROWS):
        read = read_rows(recipe.samples, rows)
        labels = recipe.target_of(rows, read.targets)
        assert labels is not None
        yield np.arange(rows.start, rows.stop), read.inputs, labels.cpu().numpy()


def _flat(inputs: Tree) -> torch.Tensor:
    """Return inputs as rows of numbers."""
    parts = [leaf.flatten(1).double().cpu().nan_to_num(0.0) for leaf in leaves(inputs)]
    return torch.cat([part.reshape(len(parts[0]), -1) for part in parts], 1)
