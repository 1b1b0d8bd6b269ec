"""Groups that move neither plane nor space: none, permutations, time reversal."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ..errors import InputError, whole_number
from .catalog import register
from .group import Group, few_enough, make_group, tiles
from .parts import Array

_MOST_ROWS = 2**24  # in all permutations of a sample


@register()
def trivial() -> Group:
    """Return the trivial group, the baseline of every comparison."""
    return make_group("trivial", {})


@register("permutations:5")
def permutations(n: int, samples: int | None = None, seed: int = 0) -> Group:
    """Return S_n, all permutations of n rows, or a seeded sample of them with the identity.

    Args:
        n: number of rows.
        samples: number of permutations, the identity included; None for all, up to 7 rows.
        seed: seed of the sample.

    >>> len(permutations(4)), len(permutations(20, samples=10))
    (24, 10)
    """
    n = whole_number("n", n, 1)
    if samples is None:
        if n > 7:
            raise InputError("samples", f"a number, because S_{n} has {n}! elements", "None")
        rows = np.array(list(itertools.permutations(range(n))))
    else:
        samples, seed = whole_number("samples", samples, 1), whole_number("seed", seed, 0)
        few_enough(f"permutations:{n}:{samples}", samples)
        if n * samples > _MOST_ROWS:
            raise InputError(
                "n",
                f"at most {_MOST_ROWS // samples:,} rows for {samples:,} permutations",
                f"{n:,}",
            )
        total = math.factorial(min(n, 20))  # of more rows there are always enough orders
        if samples > total:
            raise InputError("samples", f"at most {total}, the elements of S_{n}", samples)
        rows = _distinct_permutations(n, samples, np.random.default_rng(seed))
    spec = f"permutations:{n}" if samples is None else f"permutations:{n}:{samples}:{seed}"
    width = math.ceil(math.sqrt(len(rows)))
    cells = np.minimum(np.arange(width * math.ceil(len(rows) / width)), len(rows) - 1)
    return make_group(
        spec,
        {"rows": rows},
        coords={"permutation": np.arange(len(rows))},
        layout=tiles(cells.reshape(-1, width)),
        measure="Haar" if samples is None else "uniform on a seeded sample of S_n",
        closed=samples is None,
    )


def _distinct_permutations(n: int, samples: int, generator: np.random.Generator) -> Array:
    seen = {tuple(range(n)): None}  # a dictionary keeps the order in which they were drawn
    while len(seen) < samples:
        for row in generator.permuted(np.tile(np.arange(n), (samples, 1)), axis=1):
            if len(seen) == samples:
                break
            seen.setdefault(tuple(row.tolist()), None)
    return np.array(list(seen))


@register()
def time_reversal() -> Group:
    """Return the group of forward and reversed time, for pairs of frames and signals."""
    time = {"time": np.array([1.0, -1.0])}
    return make_group("time_reversal", time, coords=time, layout=tiles(np.arange(2)[:, None]))
