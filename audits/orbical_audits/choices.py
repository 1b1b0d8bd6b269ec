"""Multiple-choice questions, and the orders in which their options are shown."""

from __future__ import annotations

import csv
import gzip
import itertools

import numpy as np

import orbical as ob

Question = tuple[str, list[str], str]
"""A question, its options, and the letter of the right one."""


def orders_of(options: int) -> ob.groups.Group:
    """Return all orders of four options, or 20 of five in which pairs are balanced."""
    if options == 4:
        return ob.groups.permutations(4)
    steps, shifts = np.arange(1, options), np.arange(options)
    orders = (steps[:, None, None] * np.arange(options) + shifts[:, None]) % options
    rows = orders.reshape(-1, options)
    names = [" ".join("ABCDE"[option] for option in row) for row in rows]
    return ob.groups.from_parts("affine_orders:5", {"rows": rows}, coords={"order": names})


def questions_of(file: str) -> list[Question]:
    """Read questions, without those that list an option twice, in an order drawn once."""
    path = ob.datasets.data_file(f"{file}.csv.gz", None, "choices")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = [(row[0], row[1:-1], row[-1]) for row in csv.reader(lines)]
    different = [row for row in rows if len({*row[1]}) == len(row[1])]
    return [different[row] for row in np.random.default_rng(0).permutation(len(different))]


def examples_of(file: str) -> str:
    """Return the development questions with their letters, as they stand before a prompt."""
    return "".join(
        f"{listed(text, options)} {letter}\n\n"
        for text, options, letter in sorted(questions_of(file))
    )


def listed(question: str, options: list[str]) -> str:
    """Return a prompt, written out.

    >>> print(listed("Which is a fruit?", ["stone", "apple"]))
    Question: Which is a fruit?
    A. stone
    B. apple
    Answer:
    """
    lines = [f"{letter}. {option}" for letter, option in zip("ABCDE", options, strict=False)]
    return "\n".join([f"Question: {question}", *lines, "Answer:"])


def orders_by_hand(options: int) -> list[tuple[int, ...]]:
    """Return all orders of four options, and of five those with equal steps around a circle."""
    orders = [*itertools.permutations(range(options))]
    if options == 4:
        return orders
    return [order for order in orders if len({*_steps(order)}) == 1]


def _steps(order: tuple[int, ...]) -> list[int]:
    return [(order[k] - order[k - 1]) % len(order) for k in range(len(order))]
