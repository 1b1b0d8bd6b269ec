"""Groups that move neither plane nor space: permutations, time reversal, colors, signals.

Colors are red, green and blue as numbers, and are not clipped: a clipped color has lost what its
inverse would need.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from .._numpy import ArrayLike, as_numpy
from ..errors import InputError, whole_number
from .group import Group, Layout
from .group_names import register
from .group_parts import Array, group_part
from .making import check_group_size, circle_group, factor_group, is_closed, make_group, step_group

__all__ = [
    "brightness", "columns", "cyclic_orders", "decibels", "gains", "hue", "longitudes",
    "periodic", "permutations", "reversal", "semitones", "shifts", "sign", "speeds",
    "time_reversal", "trivial", "variations",
]  # fmt: skip

_MOST_ROWS = 2**24  # in all permutations of a sample
_MOST_LETTERS = 12  # longer orders are numbered
_BELOW = Layout("tiles", np.arange(2)[:, None])  # one of two elements below the other


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
    >>> permutations(3).name(2)
    'order B A C'
    """
    n = whole_number("n", n, 1)
    if samples is None:
        if n > 7:
            raise InputError("samples", f"a number, because S_{n} has {n}! elements", "None")
        rows = np.array(list(itertools.permutations(range(n))))
    else:
        samples, seed = whole_number("samples", samples, 1), whole_number("seed", seed, 0)
        check_group_size(f"permutations:{n}:{samples}", samples)
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
    measure = "Haar" if samples is None else "uniform on a seeded sample of S_n"
    return _value_group_of_orders(spec, rows, measure, closed=samples is None)


def _value_group_of_orders(
    spec: str, rows: Array, measure: str = "Haar", closed: bool = True
) -> Group:
    """Return a group of orders `[K, n]`, named by letters: `B A C` has the second row first."""
    width = math.ceil(math.sqrt(len(rows)))
    cells = np.minimum(np.arange(width * math.ceil(len(rows) / width)), len(rows) - 1)
    coords = {"permutation": np.arange(len(rows))}
    if rows.shape[1] <= _MOST_LETTERS:
        coords = {"order": np.array([" ".join(chr(65 + row) for row in order) for order in rows])}
    return make_group(
        spec,
        {"rows": rows},
        coords=coords,
        layout=Layout("tiles", cells.reshape(-1, width)),
        measure=measure,
        closed=closed,
    )


@register("cyclic_orders:4")
def cyclic_orders(n: int) -> Group:
    """Return the n cyclic orders of n rows: each row comes once to each position.

    >>> cyclic_orders(3).coords["order"].tolist()
    ['A B C', 'B C A', 'C A B']
    """
    n = whole_number("n", n, 1)
    check_group_size(f"cyclic_orders:{n}", n * n)
    return _value_group_of_orders(f"cyclic_orders:{n}", (np.arange(n)[:, None] + np.arange(n)) % n)


@register("reversal:4")
def reversal(n: int) -> Group:
    """Return the order of n rows and its reverse; of two rows it is their exchange.

    >>> reversal(4).coords["order"].tolist()
    ['A B C D', 'D C B A']
    """
    n = whole_number("n", n, 2)
    check_group_size(f"reversal:{n}", 2 * n)
    return _value_group_of_orders(f"reversal:{n}", np.stack([np.arange(n), np.arange(n)[::-1]]))


def variations(*names: str, products: ArrayLike | None = None) -> Group:
    """Return the prepared versions of samples, by name; the first is the sample as it is.

    Without `products` it is a set of variations and no group: that one of them can be undone, or
    that two make a third, is not claimed. Fixed classes are compared and averaged all the same.

    Args:
        names: what a person calls each version, such as `"as written", "capitals"`.
        products: `[K, K]`, where row i and column j is the version that version j of version i is;
            the versions are then a finite group.

    Returns:
        The group, which `orbical.actions.Versions` moves samples by.

    Raises:
        InputError: if there are no two different names, or `products` is no table of a group.

    Example:
        >>> variations("as written", "capitals", "polite").closed
        False
        >>> variations("Anna and Ben", "Ben and Anna", products=[[0, 1], [1, 0]]).closed
        True
    """
    words = [str(name) for name in names]
    if len({*words}) < max(2, len(words)):
        raise InputError("names", "at least two different names", words)
    count = len(words)
    facts: dict[str, Any] = {
        "coords": {"variation": np.array(words)},
        "measure": "uniform on the given elements",
    }
    if products is None:
        spec = "variations:" + ":".join(words)
        return make_group(spec, {"variation": np.arange(count)}, closed=False, **facts)
    # Row i of the table is what element i does to all of them, a permutation; products and
    # inverses of these are those of the elements.
    table = as_numpy("products", products, int)
    places = np.arange(count)
    square = table.shape == (count, count) and (np.sort(table, axis=1) == places).all()
    if not square or not ((table[0] == places) & (table[:, 0] == places)).all():
        raise InputError(
            "products", f"a table [{count}, {count}] whose first row and column are 0, 1, ..."
        )
    group = make_group(
        "substitutions:" + ":".join(words), {"substitution": table}, closed=False, **facts
    )
    if not is_closed(group):
        raise InputError("products", "the table of a group", "one that is not associative")
    return replace(group, closed=True)


def _distinct_permutations(n: int, samples: int, generator: np.random.Generator) -> Array:
    seen = {tuple(range(n)): None}  # a dictionary keeps the order in which they were drawn
    while len(seen) < samples:
        for row in generator.permuted(np.tile(np.arange(n), (samples, 1)), axis=1):
            if len(seen) == samples:
                break
            seen.setdefault(tuple(row.tolist()), None)
    return np.array(list(seen))


@register("columns:-x:x=y")
def columns(*moves: str) -> Group:
    """Return the group that signs and exchanges of columns of a table generate, by their names.

    Args:
        moves: what may be done at once: `-a` changes the sign of column a, `-a,-b` that of both,
            `a=b` exchanges two columns, `a1=a2,b1=b2` two pairs of them, and `a=b=c` shows b in
            the place of a, c in that of b and a in that of c. Signs go along: `x=-y`, which shows
            -y in the place of x and x in that of y, is a quarter turn.

    Returns:
        The group, which `orbical.actions.Columns` moves tables by.

    Raises:
        InputError: if a move cannot be read, or names a column twice.

    Example:
        >>> columns("-dx", "-dy").coords["change"].tolist()
        ['none', '-dx', '-dy', '-dx, -dy']
        >>> len(columns("-dx", "dx=dy")), len(columns("a=b=c", "x1=x2,y1=y2"))
        (8, 6)
    """
    if len(moves) == 1 and not isinstance(moves[0], str):
        moves = (*moves[0],)  # a list of them
    if not moves:
        raise InputError("moves", "a sign or an exchange of columns, such as '-x' or 'x=y'", "none")
    changes = {str(move): _column_changes(str(move)) for move in moves}
    names = sorted({name for change in changes.values() for name in change})
    compose = group_part("columns").compose
    found = {tuple(names): "none"}
    fresh = [*found]
    while fresh:  # all products of moves, the shortest first
        before, fresh = fresh, []
        for move, change in changes.items():
            one = np.array([[change.get(name, name) for name in names]] * len(before))
            for old, row in zip(before, compose(one, np.array(before)).tolist(), strict=True):
                new = tuple(row)
                if new not in found:
                    made = f"{found[old]}, then {move}".removeprefix("none, then ")
                    found[new] = min(made, _column_words(names, new), key=len)
                    fresh.append(new)
        check_group_size("columns", len(found) * len(names))
    return make_group(
        ":".join(["columns", *changes]),
        {"columns": np.array([*found])},
        coords={"change": np.array([*found.values()])},
    )


def _column_words(names: list[str], shown: tuple[str, ...]) -> str:
    """Return what an element does to columns, such as `-x` or `x=y, y=-x`."""
    pairs = [(name, other) for name, other in zip(names, shown, strict=True) if name != other]
    return ", ".join(word if word == f"-{name}" else f"{name}={word}" for name, word in pairs)


def _column_changes(move: str) -> dict[str, str]:
    """Return what each column that a move names shows after it."""
    found: dict[str, str] = {}
    for change in move.split(","):
        cycle = [word.strip() for word in change.split("=")]
        bare = [word.removeprefix("-") for word in cycle]
        changes = len(cycle) > 1 or cycle != bare
        if not changes or not all(bare) or len({*bare} - {*found}) < len(bare):
            raise InputError(
                "moves", "signs and exchanges of different columns, such as '-x' or 'x=y'", move
            )
        found |= zip(bare, [*cycle[1:], cycle[0]], strict=True)
    return found


@register()
def time_reversal() -> Group:
    """Return the group of forward and reversed time, for pairs of frames and signals."""
    time = {"time": np.array([1.0, -1.0])}
    return make_group("time_reversal", time, coords=time, layout=_BELOW)


@register()
def hue(n: int = 12) -> Group:
    """Return n equally spaced rotations of the hue, about the axis of grays, drawn as a circle.

    A third of a turn takes red to green, green to blue and blue to red.

    >>> (hue(3).parts["color"][1] @ [1, 0, 0, 1]).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    return circle_group("hue", "hue", n)


@register()
def brightness(low: float = 0.5, high: float = 2.0, n: int = 9) -> Group:
    """Return n factors of brightness between `low` and `high`, log-uniform, drawn as a line.

    >>> brightness(0.5, 2, 3).coords["brightness"].tolist()
    [0.5, 1.0, 2.0]
    """
    return factor_group("brightness", "brightness", low, high, n)


@register("shifts:8:1")
def shifts(radius: float, step: float = 1) -> Group:
    """Return shifts of a signal along its axis, in samples, within `radius`, drawn as a line.

    Neighboring shifts are `step` apart; a step that is not whole needs interpolation.

    >>> shifts(2).coords["shift"].tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    return step_group("shifts", "shift", radius, step)


@register("longitudes:36")
def longitudes(n: int, mirrors: str = "") -> Group:
    """Return n equal rotations of the globe to the east; with `full` also its mirror images.

    Args:
        n: number of rotations; a divisor of the number of columns needs no interpolation.
        mirrors: `"full"` adds the exchanges of east and west, of north and south, and of both.

    >>> longitudes(4).coords["longitude"].tolist(), len(longitudes(36, "full"))
    ([0.0, 90.0, 180.0, 270.0], 144)
    """
    return _value_group_of_cells("longitudes", whole_number("n", n, 1), 1, mirrors)


@register("periodic:8:8")
def periodic(columns: int, rows: int = 1, mirrors: str = "") -> Group:
    """Return shifts around a grid whose ends meet, by equal shares of its sides.

    Args:
        columns: number of shifts to the right; a divisor of the columns needs no interpolation.
        rows: number of shifts upwards.
        mirrors: `"full"` adds the mirrors along both axes.

    >>> periodic(4, 2).closed, periodic(4, 2).name(3)
    (True, 'share_x 0.25, share_y 0.5')
    """
    sizes = whole_number("columns", columns, 1), whole_number("rows", rows, 1)
    return _value_group_of_cells("periodic", *sizes, mirrors)


_MIRRORS = {"none": (1, 1), "east-west": (-1, 1), "north-south": (1, -1), "both": (-1, -1)}


def _value_group_of_cells(name: str, columns: int, rows: int, mirrors: str) -> Group:
    """Return shifts around a cell, with or without its mirrors."""
    if mirrors not in ("", "full"):
        raise InputError("mirrors", "'full' or nothing", repr(mirrors))
    kinds = [*_MIRRORS] if mirrors else ["none"]
    check_group_size(name, len(kinds) * columns * rows)
    kind, column, row = (
        part.ravel()
        for part in np.meshgrid(range(len(kinds)), range(columns), range(rows), indexing="ij")
    )
    cell = np.zeros((len(kind), 3, 3))
    cell[:, [0, 1], [0, 1]] = np.array([_MIRRORS[one] for one in kinds], float)[kind]
    cell[:, 0, 2], cell[:, 1, 2], cell[:, 2, 2] = column / columns, row / rows, 1
    globe = name == "longitudes"
    coords = {"longitude": 360 * column / columns} if globe else {"share_x": column / columns}
    coords |= {"share_y": row / rows} if rows > 1 else {}
    coords |= {"mirror": np.array(kinds)[kind]} if mirrors else {}
    index = np.arange(len(kind))
    layout = Layout("tiles", index.reshape(len(kinds) * columns, rows).T)
    if len(kinds) == rows == 1:
        layout = Layout("circle", index, {"angle": 360 * column / columns})
    elif rows == 1:
        layout = Layout("tiles", index.reshape(len(kinds), columns))
    sizes = [str(columns), *([] if globe or (rows == 1 and not mirrors) else [str(rows)])]
    return make_group(
        ":".join([name, *sizes, *filter(None, [mirrors])]),
        {"cell": cell},
        coords=coords,
        layout=layout,
    )


@register()
def sign() -> Group:
    """Return the group of a signal and its negative, of which the polarity is reversed.

    >>> sign().parts["gain"].tolist()
    [1.0, -1.0]
    """
    factor = np.array([1.0, -1.0])
    return make_group("sign", {"gain": factor}, coords={"sign": factor}, layout=_BELOW)


@register()
def gains(low: float = 0.25, high: float = 4.0, n: int = 9) -> Group:
    """Return n factors of the amplitude between `low` and `high`, log-uniform, drawn as a line.

    >>> gains(0.5, 2, 3).coords["gain"].tolist()
    [0.5, 1.0, 2.0]
    """
    return factor_group("gains", "gain", low, high, n)


@register("decibels:12:3")
def decibels(radius: float, step: float = 1) -> Group:
    """Return gains of a signal in decibels within `radius`, `step` apart, drawn as a line.

    20 dB are a factor of 10 of the amplitude.

    >>> decibels(20, 20).parts["gain"].tolist()
    [0.1, 1.0, 10.0]
    """
    return step_group("decibels", "decibels", radius, step)


@register()
def speeds(low: float = 0.8, high: float = 1.25, n: int = 9) -> Group:
    """Return n factors of the speed of a signal, log-uniform, drawn as a line.

    A faster signal is shorter and its frequencies are higher by the same factor.

    >>> speeds(0.5, 2, 3).parts["speed"].tolist()
    [0.5, 1.0, 2.0]
    """
    return factor_group("speeds", "speed", low, high, n)


@register("semitones:6:1")
def semitones(radius: float, step: float = 1) -> Group:
    """Return speeds of a waveform that change its pitch by semitones within `radius`, as a line.

    As when a record is played faster: 12 semitones up are twice the speed and half the length.

    >>> semitones(12, 12).parts["speed"].tolist()
    [0.5, 1.0, 2.0]
    """
    return step_group("semitones", "semitones", radius, step)
