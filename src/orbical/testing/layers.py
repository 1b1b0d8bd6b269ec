"""Where inside a network the symmetry is lost: the equivariance error, layer by layer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from .._imports_and_paths import import_attribute
from .._text import in_column, percent
from .._trees import Tree, leaves, tree_map
from ..actions import Images, Periodic, Volumes, flat_actions
from ..data import checked_preprocessing
from ..errors import InputError, unknown_name, whole_number
from ..groups import Elements, Group, identity_of
from ..predictors import as_predictor
from ..scanning import Sweep, refuse_faults_of_pass
from ..tasks import Task
from .equivariance import checked_together

__all__ = ["LayerErrors", "layer_errors"]

MOST_LAYERS = 24
"""Layers that are chosen where none are named: modules are opened while there are fewer."""
WIDEST = 1024
"""Features of more channels have no fitted representation: too few samples for its matrix."""
_CANCEL = 2.0
"""A share beyond which layers are said to undo each other."""
_ROUNDING = 1e-4
"""Errors of predictions below that are rounding, and have no cause."""
_ROWS, _RIDGE, _SIMPLER, _HOLDS = 1 << 14, 1e-3, 0.9, 0.1
"""Rows that fit a matrix, its regularization, how much smaller an error must be for it, and
how much smaller for features to be moved by it: less is a likeness, not a representation."""


@dataclass(frozen=True)
class LayerErrors:
    """How far the features of each layer are from moving with the input.

    Attributes:
        layers: Names of the layers, in the order in which they run.
        kinds: The class of each layer's module, such as `Conv2d`; empty for names of your own.
        error: `[L]`, what is left of the features of a moved input after those of the input itself
            are moved: root mean square, relative to the deviation of the features.
        share: `[L]`, the share of the error of the predictions that each layer adds. Shares and
            `rest` sum to 1; one may be negative, where a layer undoes what others did. NaN if
            features also flow around a layer.
        added: `[L]`, how far predictions change by moving after a layer instead of before it,
            relative to their deviation.
        moves: how the features of each layer move best: `as a field`, `as a field with mixed
            channels`, `not at all` or `linearly`.
        rest: The share that what comes after the last layer adds.
        total: The error of the predictions, relative to their deviation; NaN if all are alike.
        group: The name of the group.
    """

    layers: tuple[str, ...]
    kinds: tuple[str, ...]
    error: np.ndarray
    share: np.ndarray
    added: np.ndarray
    moves: tuple[str, ...]
    rest: float
    total: float
    group: str

    @property
    def titles(self) -> list[str]:
        """The layers with their kinds."""
        named = zip(self.layers, self.kinds, strict=True)
        return [f"{name} {kind}".strip() for name, kind in named]

    @property
    def first(self) -> str:
        """The layer that adds the largest share; empty if predictions have no error."""
        if not np.nan_to_num(self.share).any():
            return ""
        return self.layers[int(np.nan_to_num(self.share, nan=-np.inf).argmax())]

    @property
    def caution(self) -> str:
        """Why shares may mislead; empty if nothing speaks for that."""
        if np.nanmax(np.abs(self.share), initial=0.0) <= _CANCEL:
            return ""
        where = "often at the edges of fields that move out of view"
        remedy = "try an exact group, such as cyclic:4 or flips, or name fewer layers"
        return f"layers undo what others did, {where}: {remedy}"

    def to_dict(self) -> dict[str, object]:
        """Return the fields in plain values."""
        fields = {**vars(self), "caution": self.caution}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields.items()}

    def __str__(self) -> str:
        width = max(map(len, self.titles))
        rows = zip(self.titles, self.share, self.error, self.moves, strict=True)
        lines = [
            f"{name:{width}}  {'-' if np.isnan(share) else percent(round(share, 2) + 0.0):>5}  "
            f"{in_column(error):>8}  moves {moves}"
            for name, share, error, moves in rows
        ]
        title = f"{'layer':{width}}  share     error"
        caution = [f"caution: {self.caution}"] if self.caution else []
        return "\n".join([title, *lines, f"error of the predictions: {self.total:.3g}", *caution])


def layer_errors(
    model: object,
    x: Tree,
    *,
    group: Group | str,
    task: Task | str,
    layers: Sequence[str] | Mapping[str, str] | None = None,
    elements: int = 6,
    samples: int = 64,
    seed: int = 0,
    preprocess: object = None,
) -> LayerErrors:
    r"""Measure where inside a network the symmetry is lost.

    With features `f(x)` of a layer and `r` how they should move, the error of the layer is that of
    `f(g x) - r(g) f(x)`. Features of images and volumes are fields: they move as the input does, at
    their own resolution; tokens on a grid too. Channels may be mixed, and vectors and points move,
    by the best linear map, fitted for each element on half of the samples and tested on the other
    half, if that explains more than leaving them as they are.

    What a layer adds to the error of the predictions is found by moving features instead of the
    input. Let `h_i` be the predictions for which the features of layer `i` of the moved input are
    replaced by the moved features of the input. Then

        h(g x) - g h(x) = (h(g x) - h_1) + (h_1 - h_2) + ... + (h_L - g h(x))

    and the share of layer `i` is the projection of `h_(i-1) - h_i` on the left-hand side. It is the
    finite form of the layer-wise Lie derivative of Gruver et al., which needs no derivatives.

    Shifts of a window (`translations`) cannot tell the padding of a layer from content that leaves
    the view: both change what is near the edges. Shifts around the image (`periodic`, with the
    action `orbical.actions.Periodic`) lose no content, so that what changes is due to the network.

    Args:
        model: a torch module.
        x: inputs with a leading sample dimension.
        group: the sampled group, or its text such as `"translations:2:1"`.
        task: the task, or its name.
        layers: names of modules, as in `model.named_modules()`, or a dictionary of your names and
            theirs; by default modules are opened, from the outside in, up to 24 layers. A layer is
            all that runs after the layer before, up to the output of its module.
        elements: how many elements to try, drawn at random.
        samples: how many samples to use, the first ones; half of them fit.
        seed: seed of the elements.
        preprocess: what is applied to each transformed batch, as for `orbical.scan`.

    Returns:
        The errors.

    Raises:
        InputError: If the model is not a torch module, or a layer is not found.

    See Also:
        equivariance_error: The error of the predictions at each element.

    References:
        Gruver, Finzi, Goldblum and Wilson, The Lie derivative for measuring learned equivariance,
        ICLR 2023.

    Example:
        >>> import orbical as ob
        >>> net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.ReLU(), nn.Flatten(),
        ...                     nn.Linear(4 * 16 * 16, 3))
        >>> x = torch.zeros(16, 1, 16, 16)
        >>> x[..., 5:11, 5:11] = torch.rand(16, 1, 6, 6)
        >>> found = ob.testing.layer_errors(net, x, group="translations:2:1", task="classification")
        >>> found.first  # Flatten
        '2'
    """
    predictor = as_predictor(model)
    module = getattr(predictor, "module", None)
    if not isinstance(module, nn.Module):
        kind = _class_of_model(model)
        raise InputError("model", "a torch module, whose layers can be seen", kind)
    group, task, x = checked_together(group, task, x)
    count = min(whole_number("samples", samples, 4), len(next(leaves(x))))
    x = tree_map(lambda leaf: leaf[:count], x)
    others = np.setdiff1d(np.arange(len(group)), [group.identity])
    if not len(others) or count < 4:
        raise InputError("group, x", "two elements and four samples at least", group.spec)
    some = whole_number("elements", elements, 1)
    chosen = np.random.default_rng(seed).permutation(others)[:some]
    device = next(leaves(x)).device
    with predictor.ready(device):
        prepare = checked_preprocessing(preprocess, x)
        sweep = Sweep({"model": predictor}, identity_of(group), task, device, count, prepare)

        def run(inputs: Tree) -> Tensor:
            outputs = sweep.answers(inputs, "model")
            refuse_faults_of_pass("model", task.faults(outputs), sweep.group, inputs)
            return task.primary(outputs)[0].double()

        network = _TestedLayers(module, run, _chosen_layers(module, layers))
        return _compare_layers(network, x, group, np.sort(chosen), task)


def _class_of_model(model: object) -> str:
    """Return the class of a model, or of what its import path names; of others the text."""
    if isinstance(model, str):
        try:
            model = import_attribute(model, "model")
        except InputError:  # a file or an address
            return repr(model)
    return (model if isinstance(model, type) else type(model)).__name__


class _TestedLayers:
    """A module whose layers can be read and replaced while it runs."""

    def __init__(
        self, module: nn.Module, run: Callable[[Tree], Tensor], layers: Mapping[str, nn.Module]
    ) -> None:
        self.module, self._run, self.layers = module, run, dict(layers)

    def kind(self, name: str) -> str:
        """Return the class of a layer that has its own name."""
        own = dict(self.module.named_modules()).get(name) is self.layers[name]
        return type(self.layers[name]).__name__ if own else ""

    def features(self, x: Tree) -> tuple[Tensor, dict[str, Tensor]]:
        """Return predictions, and the features of layers that run once, in their order."""
        seen: dict[str, list[object]] = {}

        def keep(name: str, _module: nn.Module, _inputs: object, output: object) -> None:
            kept = output.clone() if isinstance(output, Tensor) else output  # later ones may write
            seen.setdefault(name, []).append(kept)

        with ExitStack() as hooks:
            for name, part in self.layers.items():
                hooks.enter_context(part.register_forward_hook(partial(keep, name)))
            outputs = self._run(x)
        once = {name: found[0] for name, found in seen.items() if len(found) == 1}
        size = len(next(leaves(x)))
        return outputs, {
            name: one
            for name, one in once.items()
            if isinstance(one, Tensor) and one.is_floating_point()
            if one.ndim > 1 and len(one) == size
        }

    def replaced(self, x: Tree, name: str, features: Tensor) -> Tensor:
        """Return predictions where the features of a layer are others."""
        with self.layers[name].register_forward_hook(
            lambda _module, _inputs, output: features.to(output.dtype, copy=True)
        ):
            return self._run(x)


def _chosen_layers(
    module: nn.Module, wanted: Sequence[str] | Mapping[str, str] | None
) -> dict[str, nn.Module]:
    """Return modules by the names that are shown."""
    every = {name: part for name, part in module.named_modules() if name}
    if wanted is not None:
        named = wanted if isinstance(wanted, Mapping) else {name: name for name in wanted}
        for name in named.values():
            if name not in every:
                raise unknown_name("layers", name, every)
        return {title: every[name] for title, name in named.items()}
    found: list[tuple[str, nn.Module]] = [*module.named_children()] or [("", module)]
    while True:
        opened = [
            (f"{name}.{inner}" if inner else name, part)
            for name, outer in found
            for inner, part in ([*outer.named_children()] or [("", outer)])
        ]
        if len(opened) > MOST_LAYERS or opened == found:
            return dict(found)
        found = opened


def _compare_layers(
    network: _TestedLayers, x: Tree, group: Group, chosen: np.ndarray, task: Task
) -> LayerErrors:
    """Compare features and predictions at each of the chosen elements."""
    count = len(next(leaves(x)))
    fit, test = torch.arange(0, count, 2), torch.arange(1, count, 2)
    upright, still = network.features(x)
    names, cuts = [*still], {name for name in still if _is_cut(network, x, name, still, upright)}
    if not names:
        got = ", ".join(filter(None, network.layers)) or f"none in {type(network.module).__name__}"
        raise InputError("layers", "modules that run once and return one tensor", got)
    errors: dict[str, list[float]] = {name: [] for name in names}
    moves: dict[str, list[str]] = {name: [] for name in names}
    parts = {name: torch.zeros(2, dtype=torch.float64) for name in [*cuts, ""]}
    whole = final = 0.0
    for element in chosen:
        one = group[np.array([element])]
        moved = tree_map(lambda leaf: leaf[0], task.input.apply(one, x))
        outputs, features = network.features(moved)
        expected = task.output.apply(one, upright[test])[0]
        valid = task.output.valid(one, outputs[None, test])

        def apart(a: Tensor, b: Tensor, valid: Tensor | None = valid) -> Tensor:
            difference = (a - b).nan_to_num(0.0)
            return difference if valid is None else difference * valid[0]

        last, total = outputs[test], apart(outputs[test], expected)
        final += float(total.square().sum())
        whole += float((total - total.mean(0)).square().sum())
        there = tree_map(lambda leaf: leaf[test], moved)
        for name in names:
            guess, how, error = _best_move_of_layer(
                still[name], features[name], one, x, task, fit, test
            )
            errors[name].append(error)
            moves[name].append(how)
            if name in cuts:
                now = network.replaced(there, name, guess)
                parts[name] += _projection(apart(last, now), total)
                last = now
        parts[""] += _projection(apart(last, expected), total)
    deviation = float((upright[test] - upright[test].mean(0)).square().sum()) * len(chosen)
    scale = deviation or np.nan  # of predictions that are all alike nothing is relative
    none = torch.full((2,), torch.nan, dtype=torch.float64)
    table = torch.stack([parts.get(name, none) for name in names]).numpy()
    told = whole > 0 and final > _ROUNDING**2 * deviation
    shares = table[:, 0] / whole if told else 0.0 * table[:, 0]
    return LayerErrors(
        layers=tuple(names),
        kinds=tuple(network.kind(name) for name in names),
        error=np.array([np.sqrt(np.mean(np.square(errors[name]))) for name in names]),
        share=shares,
        added=np.sqrt(table[:, 1] / scale),
        moves=tuple(Counter(moves[name]).most_common(1)[0][0] for name in names),
        rest=1.0 - float(np.nansum(shares)) if shares.any() else 0.0,
        total=math.sqrt(final / scale),
        group=group.spec,
    )


def _projection(step: Tensor, total: Tensor) -> Tensor:
    """Return a step times the total, and the square of the step, both less their mean over samples.

    What enters at the edges of fields is the same for all samples, and is no layer's fault.
    """
    step, total = step - step.mean(0), total - total.mean(0)
    return torch.stack([(step * total).sum(), step.square().sum()]).cpu()


def _is_cut(
    network: _TestedLayers, x: Tree, name: str, still: Mapping[str, Tensor], outputs: Tensor
) -> bool:
    """Check whether predictions follow from the features of a layer alone: nothing flows around."""
    other = tree_map(lambda leaf: leaf.roll(1, 0), x)
    found = network.replaced(other, name, still[name])
    apart = (found - outputs).nan_to_num(0.0).abs().max()
    return bool(apart <= 1e-4 * outputs.nan_to_num(0.0).abs().max().clamp_min(1e-30))


def _best_move_of_layer(
    still: Tensor, there: Tensor, element: Elements, x: Tree, task: Task, fit: Tensor, test: Tensor
) -> tuple[Tensor, str, float]:
    """Return the features of test samples moved in the best way, that way, and what it leaves.

    Where a field has no value, because the place comes from outside, it keeps what it has there.
    """
    grid = _LayerGrid.of(still, x, task)
    a, b = grid.opened(still), grid.opened(there)
    ways: list[tuple[str, Tensor, Tensor | None]] = []
    if grid.sides:
        moved, valid = grid.move(element, a)
        ways.append(("as a field", moved, valid))
    ways.append(("not at all", a, None))
    start, where, known = ways[0]
    channels = a.shape[1]
    if channels <= WIDEST:
        rows = [_rows(part[fit], known) for part in (where, b)]
        matrix = _matrix(*rows)
        mixed = torch.einsum("bc...,cd->bd...", where.double(), matrix).to(b)
        ways.append((f"{start} with mixed channels" if grid.sides else "linearly", mixed, known))
    errors = [_relative_error(guess[test], b[test], known) for _, guess, _ in ways]
    best = min(range(len(ways)), key=lambda way: errors[way] * (1.0 if way == 0 else 1 / _SIMPLER))
    used = best if errors[best] < _HOLDS * errors[0] else 0  # to explain half is no representation
    _, guess, inside = ways[used]
    kept = guess if inside is None else torch.where(inside, guess, b)
    return grid.closed(kept[test], there[test]), ways[best][0], errors[best]


def _rows(values: Tensor, valid: Tensor | None) -> Tensor:
    """Return channels of all places as rows, those from outside left out."""
    rows = values.movedim(1, -1)
    rows = rows.reshape(-1, rows.shape[-1]) if valid is None else rows[:, valid].flatten(0, 1)
    return rows[:: max(1, len(rows) // _ROWS)].double()


def _matrix(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix that maps rows to others best, shrunk towards the identity."""
    square = a.T @ a
    ridge = _RIDGE * square.diagonal().mean().clamp_min(1e-30)
    eye = torch.eye(len(square), dtype=square.dtype, device=square.device)
    found: Tensor = eye + torch.linalg.solve(square + ridge * eye, a.T @ (b - a))
    return found


def _relative_error(guess: Tensor, truth: Tensor, valid: Tensor | None) -> float:
    """Return the root mean square difference, relative to the deviation of the channels."""
    a, b = (_rows(part, valid) for part in (guess, truth))
    spread = (b - b.mean(0)).square().sum()
    if not len(b) or spread == 0:
        return 0.0
    return float(((a - b).square().sum() / spread).sqrt())


_SMOOTH = Images("bilinear", "border"), Volumes("trilinear", "border"), Periodic("bilinear")
"""How fields of features move, where the input is one."""


@dataclass(frozen=True)
class _LayerGrid:
    """How features lie on the grid of the input: `[B, C, ...]`, channels last, or tokens."""

    kind: str
    sides: tuple[int, ...]
    size: tuple[int, ...] = ()
    action: Images | Volumes | Periodic | None = None

    @classmethod
    def of(cls, features: Tensor, x: Tree, task: Task) -> _LayerGrid:
        """Find the grid of features; none if they are vectors, or points."""
        fields = zip(flat_actions(task.input), leaves(x), strict=True)
        known = [(a, leaf) for a, leaf in fields if isinstance(a, Images | Volumes | Periodic)]
        if known:
            action, leaf = known[0]
            size = tuple(leaf.shape[2:])
            smooth = next(one for one in _SMOOTH if isinstance(action, type(one)))
            shape = tuple(features.shape[1:])
            if len(shape) == len(size) + 1:
                for kind, sides in (("first", shape[1:]), ("last", shape[:-1])):
                    if _same_proportions(sides, size):
                        return cls(kind, sides if max(sides) > 1 else (), size, smooth)
            if len(shape) == len(size) == 2:
                for extra in (0, 1):
                    rows = math.sqrt((shape[0] - extra) * size[0] / size[1])
                    sides = (round(rows), round(rows * size[1] / size[0]))
                    if rows > 1 and math.prod(sides) == shape[0] - extra:
                        return cls(f"tokens {extra}", sides, size, smooth)
        points = {leaf.shape[1] for leaf in leaves(x) if leaf.ndim > 2}
        last = features.ndim > 2 and features.shape[1] in points  # [B, point, channel]
        return cls("points" if last else "vectors", ())

    def opened(self, features: Tensor) -> Tensor:
        """Return features as `[B, C, ...]`."""
        if self.kind.startswith("tokens"):
            tokens = features[:, int(self.kind[-1]) :].movedim(1, -1)
            grid: Tensor = tokens.unflatten(-1, self.sides)
            return grid
        return features.movedim(-1, 1) if self.kind in ("last", "points") else features

    def closed(self, opened: Tensor, there: Tensor) -> Tensor:
        """Return features in their own shape; tokens beside the grid are those that are there."""
        if self.kind.startswith("tokens"):
            tokens = opened.flatten(2).movedim(-1, 1)
            return torch.cat([there[:, : int(self.kind[-1])], tokens], 1)
        return opened.movedim(1, -1) if self.kind in ("last", "points") else opened

    def move(self, element: Elements, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """Move fields by one element at their own resolution; return what comes from inside too."""
        assert self.action is not None
        part = self.action.parts[0]
        matrices = np.array(element.parts.get(part, np.eye(len(self.sides) + 1)[None]))
        if not isinstance(self.action, Periodic):  # whose shifts are shares of the sides
            matrices[:, :-1, -1] *= self.sides[-1] / self.size[-1]
        own = Elements({part: matrices}, 1, element.exact_on_grid)
        valid = self.action.valid(own, features)
        return self.action.apply(own, features)[0], None if valid is None else valid[0]


def _same_proportions(sides: Sequence[int], size: Sequence[int]) -> bool:
    """Check whether sides have the proportions of the input, up to a row of places."""
    ratio = sides[0] / size[0]
    return all(abs(side - ratio * whole) <= 1 for side, whole in zip(sides, size, strict=True))
