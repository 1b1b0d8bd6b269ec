"""Differences between networks, with intervals that cover both sources of chance: images and seeds.

Test images are resampled, the same ones for all networks of a data set, and so are the seeds of
each network. An interval is the estimate plus the deviations of the draws from their own mean, so
that the bias of a resampled ECE, which all networks share, does not move it.

An estimate is an array `[measures, 1 + draws]`: the value on the test set, then the draws. What is
compared is a function of the estimates of all networks of a data set: `orders` or `sizes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from orbical import calibration

from ..resampling import interval, over_seeds, resampled_rows
from .settings import EQUALS, FAMILIES, PLAIN
from .training import BINS

if TYPE_CHECKING:
    from pandas import DataFrame

Pair = tuple[Tensor, Tensor]
Found = Mapping[tuple[str, float], np.ndarray]  # estimates by network and blur
Contrast = tuple[str, float | str, str, np.ndarray]  # family, blur, name and estimate
# The last is signed, confidence minus accuracy. It was added after ECE and ESD had been seen, and
# decides nothing.
MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": lambda confidence, correct: correct.double().mean(-1),
    "ece": lambda confidence, correct: calibration.ece(confidence, correct, bins=BINS),
    "esd": calibration.esd,
    "overconfidence": lambda confidence, correct: (confidence.double() - correct.double()).mean(-1),
}


def estimated(seeds: Sequence[Pair], images: Tensor, generator: np.random.Generator) -> np.ndarray:
    """Measure a network over its seeds, on the test images and on resampled images.

    Args:
        seeds: Confidences and correctness of each seed, `[N]`.
        images: Rows of the test set, `[draws, N]`.
        generator: Of the draws of seeds.

    Returns:
        An estimate of all `MEASURES`.
    """
    every = torch.cat([torch.arange(images.shape[1])[None], images])
    drawn = [(confidence[every], correct[every]) for confidence, correct in seeds]
    each = [np.stack([of(*pair).numpy() for pair in drawn], -1) for of in MEASURES.values()]
    return over_seeds(np.stack(each), generator)


def slope(along: Mapping[int, np.ndarray]) -> np.ndarray:
    """Fit the least-squares slope against the logarithm of the order: the change per doubling.

    >>> slope({1: np.array([0.25]), 2: np.array([0.5]), 4: np.array([0.75])})
    array([0.25])
    """
    orders = sorted(along)
    at = np.log2(orders) - np.log2(orders).mean()
    return np.tensordot(at / np.square(at).sum(), np.stack([along[n] for n in orders]), axes=1)


def contrast_rows(
    data: str,
    outputs: Mapping[tuple[str, float], Sequence[Pair]],
    compare: Callable[[Found], Iterator[Contrast]],
) -> list[dict[str, Any]]:
    """Compare the networks of one data set.

    Args:
        data: Its name.
        outputs: Confidences and correctness of each seed, by network and blur.
        compare: What to compare, `orders` or `sizes`.

    Returns:
        Rows with `family`, `blur`, `measure`, `contrast` and the value with its interval. The
        family `both` at the blur `all` is the mean over families and blurs, draw by draw.
    """
    images = resampled_rows(len(next(iter(outputs.values()))[0][0]))
    generator = np.random.default_rng(0)
    found = {key: estimated(seeds, images, generator) for key, seeds in outputs.items()}
    return [
        {"data": data, "family": family, "blur": blur, "measure": measure, "contrast": name}
        | interval(estimate[place])._asdict()
        for contrasts in with_means([*compare(found)])
        for place, measure in enumerate(MEASURES)
        for family, blur, name, estimate in contrasts
    ]


def with_means(apart: list[Contrast]) -> tuple[list[Contrast], list[Contrast]]:
    """Return contrasts, and for each name the mean over families and blurs."""
    means: list[Contrast] = []
    for name in dict.fromkeys(name for _, _, name, _ in apart):
        alike = [estimate for _, _, other, estimate in apart if other == name]
        means.append(("both", "all", name, np.mean(alike, axis=0)))
    return apart, means


def orders(found: Found) -> Iterator[Contrast]:
    """Compare groups of several orders with each other and with the plain network.

    `slope` per doubling of the order; `gain` of the largest order over the plain network, `early`
    of order 4 over it, `late` of the largest over order 4; `blur`, most blur minus none of the
    largest; and `gain lost`, the gain without blur minus that with most.
    """
    yield from _along(found)
    yield from _over_blurs(found)


def sizes(found: Found) -> Iterator[Contrast]:
    """Compare a large group with the plain network that has as many parameters.

    `symmetry`, the group's network minus that plain one; `size`, that plain one minus the plain
    network that has as many fields as the group's.
    """
    for group, fields in EQUALS.items():
        family, equal = group.split(":")[0], f"plain:{fields}"
        for blur in sorted({blur for network, blur in found if network == group}):
            if (equal, blur) in found:
                yield family, blur, "symmetry", found[group, blur] - found[equal, blur]
                if (PLAIN, blur) in found:
                    yield family, blur, "size", found[equal, blur] - found[PLAIN, blur]


def _by_order(found: Found, family: str, blur: float) -> dict[int, np.ndarray]:
    return {
        int(network.split(":")[1]): estimate
        for (network, width), estimate in found.items()
        if network.startswith(family) and width == blur
    }


def _along(found: Found) -> Iterator[Contrast]:
    """Compare the networks of each family at each blur with the plain one."""
    for family, blur in product(FAMILIES, sorted({blur for _, blur in found})):
        along = _by_order(found, family, blur)
        plain = found.get((PLAIN, blur))
        if not along or plain is None:
            continue
        last = along[max(along)]
        if len(along) > 1:
            yield family, blur, "slope", slope(along)
        yield family, blur, "gain", last - plain
        if 4 in along:
            yield family, blur, "early", along[4] - plain
            yield family, blur, "late", last - along[4]


def _over_blurs(found: Found) -> Iterator[Contrast]:
    """Compare the largest order of each family without blur and with the most."""
    blurs = sorted({blur for _, blur in found})
    ends = blurs[0], blurs[-1]
    for family in FAMILIES:
        along = [_by_order(found, family, blur) for blur in ends]
        if len(blurs) > 1 and all(along) and all((PLAIN, blur) in found for blur in ends):
            sharp, dim = (each[max(each)] for each in along)
            lost = (sharp - found[PLAIN, ends[0]]) - (dim - found[PLAIN, ends[1]])
            yield family, ends[1], "gain lost", lost
            yield family, ends[1], "blur", dim - sharp


def centered(contrasts: DataFrame, results: DataFrame) -> DataFrame:
    """Shift contrasts of orders to the networks of a table of results, which may have more seeds.

    The widths of their intervals stay: they are those of the seeds that were compared.

    Args:
        contrasts: Rows of `contrast_rows`.
        results: Measures of each network and seed.
    """
    import pandas as pd

    key = ["data", "family", "blur", "measure", "contrast"]
    rows = []
    for data, some in results.groupby("data", sort=False):
        means = some.groupby(["network", "blur"], sort=False)[[*MEASURES]].mean()
        found = {where: each.to_numpy()[:, None] for where, each in means.iterrows()}
        for part in with_means([*orders(found)]):
            rows += [
                (data, family, str(blur), measure, name, float(value))
                for family, blur, name, estimate in part
                for measure, (value,) in zip(MEASURES, estimate, strict=True)
            ]
    new = pd.DataFrame(rows, columns=[*key, "new"])
    text = contrasts.assign(blur=contrasts["blur"].map(lambda blur: str(_number(blur))))
    shift = text.merge(new, how="left", on=key)["new"].to_numpy() - contrasts["value"].to_numpy()
    moved = {end: contrasts[end] + shift for end in ("value", "low", "high")}
    return contrasts.assign(**moved)


def _number(blur: float | str) -> float | str:
    """Read a blur from a table, where one of all blurs makes the column one of texts."""
    return blur if blur == "all" else float(blur)
