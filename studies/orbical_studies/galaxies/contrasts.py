"""Differences between networks with intervals that know of both chances: test images and seeds.

Test images are drawn again, the same for all networks of a data set, and so are the seeds of each
network; their deviations are scaled up, since draws from few seeds vary too little. An interval is
the estimate plus the draws' deviations from their own mean, so that the bias of a resampled ECE,
which all networks share, does not move it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical import calibration

from ..pages import Row
from .training import BINS

DRAWS = 400
Pair = tuple[Tensor, Tensor]

MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": lambda confidence, correct: correct.double().mean(-1),
    "ece": lambda confidence, correct: calibration.ece(confidence, correct, bins=BINS),
    "esd": calibration.esd,
    "overconfidence": lambda confidence, correct: (confidence.double() - correct.double()).mean(-1),
}
"""The last is signed, confidence less accuracy: a plain mean, and so without the bias of ECE."""


@dataclass(frozen=True)
class Estimate:
    """A number and its resampled versions.

    >>> Estimate(1.0, np.array([2.0, 4.0])).interval(1.0)
    (1.0, 0.0, 2.0)
    """

    value: float
    draws: np.ndarray

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.draws - other.draws)

    @staticmethod
    def mean(several: Sequence[Estimate]) -> Estimate:
        """Average estimates draw by draw."""
        return Estimate(
            float(np.mean([each.value for each in several])),
            np.mean([each.draws for each in several], axis=0),
        )

    def interval(self, level: float = 0.95) -> tuple[float, float, float]:
        """Give the value, and the lower and upper end."""
        tail = (1 - level) / 2
        low, high = np.quantile(self.draws - self.draws.mean(), [tail, 1 - tail])
        return self.value, self.value + float(low), self.value + float(high)


def estimates(seeds: Sequence[Pair], images: Tensor, generator: np.random.Generator) -> Any:
    """Measure a network over its seeds, on the test images and on images drawn again.

    Args:
        seeds: confidences and correctness of each seed, `[N]`.
        images: `[draws, N]`, rows of the test set.
        generator: of the draws of seeds.

    Returns:
        an `Estimate` for each of `MEASURES`.
    """
    chosen = generator.integers(len(seeds), size=(len(images), len(seeds)))
    found = {}
    for name, measure in MEASURES.items():
        value = np.mean([float(measure(*pair)) for pair in seeds])
        each = np.stack([measure(*(part[images] for part in pair)).numpy() for pair in seeds])
        found[name] = Estimate(float(value), with_drawn_seeds(each.T, chosen))
    return found


def with_drawn_seeds(each: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Average over drawn seeds, with the variance that the mean over so many seeds has.

    The mean of `n` draws out of `n` values varies by `(n - 1) / n` of what the mean of `n` new
    values does; deviations from the mean over all seeds are scaled by the root of `n / (n - 1)`.

    Args:
        each: a measure for each draw of images and each seed, `[draws, n]`.
        chosen: the seeds drawn, `[draws, n]`.

    >>> with_drawn_seeds(np.array([[0.0, 1.0]]), np.array([[1, 1]])).round(4)
    array([1.2071])
    """
    middle, seeds = each.mean(1), each.shape[1]
    scale = (seeds / max(seeds - 1, 1)) ** 0.5
    return middle + scale * (np.take_along_axis(each, chosen, axis=1).mean(1) - middle)


def drawn_images(count: int, draws: int = DRAWS, seed: int = 0) -> Tensor:
    """Draw rows of a test set, `[draws, count]`."""
    return torch.from_numpy(np.random.default_rng(seed).integers(count, size=(draws, count)))


def slope(along: Mapping[int, Estimate]) -> Estimate:
    """Give the least-squares slope against the logarithm of the order: the change a doubling.

    >>> none = np.zeros(2)
    >>> slope({1: Estimate(0.25, none), 2: Estimate(0.5, none), 4: Estimate(0.75, none)}).value
    0.25
    """
    at = np.log2(sorted(along))
    weights = (at - at.mean()) / np.square(at - at.mean()).sum()
    chosen = [along[order] for order in sorted(along)]
    return Estimate(
        float(sum(w * each.value for w, each in zip(weights, chosen, strict=True))),
        sum(w * each.draws for w, each in zip(weights, chosen, strict=True)),
    )


Measured = Mapping[tuple[str, float], Estimate]
"""One measure, by network and blur."""
Contrast = tuple[str, float | str, str, Estimate]
"""Family, blur, name and value of a contrast."""


def contrast_rows(
    data: str, answers: Mapping[tuple[str, float], Sequence[Pair]], wide: str
) -> list[Row]:
    """Compare the networks of one data set.

    Args:
        data: its name.
        answers: confidences and correctness of each seed, by network and blur.
        wide: name of the wide plain network.

    Returns:
        rows with `family`, `blur`, `measure`, `contrast` and the value with its interval:
        `slope` a doubling of the order; `gain` of the largest order over the plain network, `early`
        of order 4 over it, `late` of the largest over order 4; `over wide`, the largest order over
        the wide plain network; `wide`, that over the plain one; `blur`, most blur less none; and
        `gain lost`, the gain without blur less that with most. The family `both` at the blur `all`
        is the mean over families and blurs, draw by draw.
    """
    size = len(next(iter(answers.values()))[0][0])
    images = drawn_images(size)
    generator = np.random.default_rng(0)
    found = {key: estimates(seeds, images, generator) for key, seeds in answers.items()}
    rows: list[tuple[str, str, float | str, str, Estimate]] = []
    for measure in MEASURES:
        measured = {key: each[measure] for key, each in found.items()}
        rows += [(measure, *one) for one in _contrasts(measured, wide)]
        rows += [(measure, *one) for one in _over_blurs(measured)]
    alike: dict[tuple[str, str], list[Estimate]] = {}
    for measure, _, _, contrast, estimate in rows:
        alike.setdefault((measure, contrast), []).append(estimate)
    for (measure, contrast), several in alike.items():
        rows.append((measure, "both", "all", contrast, Estimate.mean(several)))
    names = ("value", "low", "high")
    return [
        {"data": data, "family": family, "blur": blur, "measure": measure, "contrast": contrast}
        | dict(zip(names, estimate.interval(), strict=True))
        for measure, family, blur, contrast, estimate in rows
    ]


def _by_order(measured: Measured, family: str, blur: float) -> dict[int, Estimate]:
    return {
        int(network.split(":")[1]): estimate
        for (network, width), estimate in measured.items()
        if _family(network) == family and width == blur
    }


def _contrasts(measured: Measured, wide: str) -> Iterator[Contrast]:
    """Compare the networks of each family at each blur, where a plain one is beside them."""
    blurs = sorted({blur for _, blur in measured})
    for family, blur in product(("cyclic", "dihedral"), blurs):
        along = _by_order(measured, family, blur)
        plain, beside = (measured.get((network, blur)) for network in ("cyclic:1", wide))
        if not along or plain is None:
            continue
        last = along[max(along)]
        if len(along) > 1:
            yield family, blur, "slope", slope(along)
        yield family, blur, "gain", last - plain
        if 4 in along:
            yield family, blur, "early", along[4] - plain
            yield family, blur, "late", last - along[4]
        if beside is not None:
            yield family, blur, "over wide", last - beside
            if family == "cyclic":
                yield family, blur, "wide", beside - plain


def _over_blurs(measured: Measured) -> Iterator[Contrast]:
    """Compare the largest order of each family without blur and with the most."""
    blurs = sorted({blur for _, blur in measured})
    ends = blurs[0], blurs[-1]
    for family in ("cyclic", "dihedral"):
        along = [_by_order(measured, family, blur) for blur in ends]
        plain = [measured.get(("cyclic:1", blur)) for blur in ends]
        if len(blurs) < 2 or not all(along) or plain[0] is None or plain[1] is None:
            continue
        sharp, dim = (each[max(each)] for each in along)
        yield family, ends[1], "gain lost", (sharp - plain[0]) - (dim - plain[1])
        yield family, ends[1], "blur", dim - sharp


def _family(network: str) -> str:
    return "" if " x " in network else network.split(":")[0]
