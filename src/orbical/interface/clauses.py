"""Clauses of a filter: a column of the samples, and the range or the values that are kept.

A clause is written `column:low..high` or `column:value,value`, with `column@model` if the column
has numbers of each model. Names and values are percent-encoded, so that a clause can be part of an
address.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ..errors import InputError

UNESCAPED = "!~*'()"
MOST_CLAUSE = 1 << 16
_RANGE = ".."


@dataclass(frozen=True)
class Clause:
    """A column and what is kept of it: a range of numbers, or some values.

    Attributes:
        column: The name of the column.
        model: The model whose numbers are meant; empty if the column is of the samples alone, for
            the mean over models, or for the first of them.
        low: The least number; minus infinity for none.
        high: The largest number; infinity for none.
        values: The values kept; None for a range.

    Example:
        >>> Clause.parse("label:6,9").values
        ('6', '9')
        >>> str(Clause("confidence", "plain", low=0.5))
        'confidence@plain:0.5..'
    """

    column: str
    model: str = ""
    low: float = -math.inf
    high: float = math.inf
    values: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> Clause:
        """Read a clause; raise an `InputError` if it is malformed."""
        owner, colon, kept = text.partition(":")
        column, at, model = owner.partition("@")
        if not column or not colon or (at and not model) or len(text) > MOST_CLAUSE:
            raise _malformed(text)
        about = unquote(column), unquote(model)
        if _RANGE not in kept:
            return cls(*about, values=tuple(map(unquote, kept.split(","))))
        low, _, high = kept.partition(_RANGE)
        try:
            ends = _number(low, -math.inf), _number(high, math.inf)
        except ValueError:
            raise _malformed(text) from None
        return cls(*about, *ends)

    def __str__(self) -> str:
        owner = _escaped(self.column) + (f"@{_escaped(self.model)}" if self.model else "")
        if self.values is not None:
            return f"{owner}:{','.join(map(_escaped, self.values))}"
        return f"{owner}:{_written(self.low, -math.inf)}{_RANGE}{_written(self.high, math.inf)}"


def labels_alone(filters: Iterable[str]) -> tuple[int, ...] | None:
    """Return the classes of a filter that names nothing else, None for other filters.

    >>> labels_alone(["label:6,9"]), labels_alone(["label:6", "gap:0.."]), labels_alone([])
    ((6, 9), None, None)
    """
    clauses = [Clause.parse(text) for text in filters]
    if len(clauses) != 1 or clauses[0].column != "label" or clauses[0].values is None:
        return None
    return tuple(int(value) for value in clauses[0].values if value.isdigit())


def _malformed(text: str) -> InputError:
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return InputError("selection filter", "column:low..high or column:value,value", repr(short))


def _escaped(text: str) -> str:
    return quote(text, safe=UNESCAPED).replace(_RANGE, "%2E%2E")


def _number(text: str, missing: float) -> float:
    number = float(text) if text else missing
    if "_" in text or math.isnan(number):
        raise ValueError(text)
    return number


def _written(end: float, open_end: float) -> str:
    """Write an end of a range: nothing if it is open; endless numbers as JavaScript does."""
    return "" if end == open_end else f"{end:.6g}".replace("inf", "Infinity")
