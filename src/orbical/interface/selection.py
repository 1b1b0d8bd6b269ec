"""The selection: what the page shows, part of its address and of every request."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import quote, unquote

from ..errors import InputError, unknown_name

__all__ = ["Selection"]

COLORS = ("mean", "variance", "correct", "class", "gap")
ORDERS = ("worst", "best", "variable")
REFERENCES = ("truth", "consensus")
SCOPES = ("element", "orbit")
MOST_VERTICES = 1024
_MOST_TEXT = 400
_UNESCAPED = "!~*'()"


@dataclass(frozen=True)
class Selection:
    """What the page shows.

    Attributes:
        scan: Name of a scan among those served; empty for the first.
        models: Models shown; empty for all.
        metric: A metric of the state; empty for the score.
        reference: What a score is measured against, "truth" or "consensus".
        labels: Classes of the subset; empty for all.
        lasso: Corners of a polygon on the map, in [-1, 1]^2; empty for none.
        method: The embedding method of the map.
        of: The model whose responses are embedded; empty for all together.
        color: What colors the map.
        order: How the list is sorted.
        sample: The selected sample.
        element: The orbit position as an element of the scan; -1 is the identity.
        position: A continuous orbit position; empty for that of `element`.
        scope: Calibration at the element or over the orbit.
        dense: Whether the individual plot has finer steps.

    Example:
        >>> Selection(sample=12, labels=(6, 9)).to_fragment()
        'sample=12&labels=6,9'
        >>> Selection.from_fragment("#sample=12&labels=6,9").labels
        (6, 9)
    """

    scan: str = ""
    models: tuple[str, ...] = ()
    metric: str = ""
    reference: str = "truth"
    labels: tuple[int, ...] = ()
    lasso: tuple[tuple[float, float], ...] = ()
    method: str = "pca"
    of: str = ""
    color: str = "mean"
    order: str = "worst"
    sample: int = 0
    element: int = -1
    position: tuple[float, ...] = ()
    scope: str = "element"
    dense: bool = False

    @classmethod
    def from_json(cls, given: Any) -> Selection:
        """Read a selection from a request; unknown fields and wrong types raise an `InputError`."""
        if not isinstance(given, Mapping):
            raise InputError(f"selection: expected an object, got {type(given).__name__}")
        for key in given:
            if key not in _READERS:
                raise unknown_name("selection", key, _READERS)
        return cls(**{str(key): _READERS[key](key, given[key]) for key in given})

    @classmethod
    def from_fragment(cls, text: str) -> Selection:
        """Read the fragment of an address; unknown or malformed fields keep their defaults.

        An address may come from another version or be typed by hand, so errors are ignored.
        """
        fields: dict[str, Any] = {}
        for piece in text.removeprefix("#").split("&"):
            key, _, value = piece.partition("=")
            with contextlib.suppress(KeyError, ValueError):  # an InputError is a ValueError
                fields[key] = _READERS[key](key, _WORDS[key](value))
        return cls(**fields)

    def to_fragment(self) -> str:
        """Return the fields that differ from their defaults, as the fragment of an address."""
        usual = Selection()
        return "&".join(
            f"{field.name}={_written(getattr(self, field.name))}"
            for field in sorted(dataclasses.fields(self), key=_fragment_order)
            if getattr(self, field.name) != getattr(usual, field.name)
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return dataclasses.asdict(self)


def _fragment_order(field: Any) -> int:
    first = ("scan", "sample", "element")  # what a reader of an address looks for
    return first.index(field.name) if field.name in first else len(first)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise InputError(f"selection {name}: expected a string, got {_short(value)}")
    return value


def _one_of(known: tuple[str, ...]) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in known:
            raise unknown_name(f"selection {name}", _short(value), known)
        return str(value)

    return read


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**31 - 1:
        raise InputError(f"selection {name}: expected an integer, got {_short(value)}")
    return value


def _number(name: str, value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good:
        raise InputError(f"selection {name}: expected a number, got {_short(value)}")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"selection {name}: expected true or false, got {_short(value)}")
    return value


def _several(read: Callable[[str, Any], Any], most: int) -> Callable[[str, Any], tuple[Any, ...]]:
    def read_all(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) > most:
            raise InputError(
                f"selection {name}: expected a list of at most {most}, got {_short(value)}"
            )
        return tuple(read(name, part) for part in value)

    return read_all


def _corner(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InputError(f"selection {name}: expected corners (x, y), got {_short(value)}")
    return _number(name, value[0]), _number(name, value[1])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "scan": _text,
    "models": _several(_text, 256),
    "metric": _text,
    "reference": _one_of(REFERENCES),
    "labels": _several(_whole, 100_000),
    "lasso": _several(_corner, MOST_VERTICES),
    "method": _text,
    "of": _text,
    "color": _one_of(COLORS),
    "order": _one_of(ORDERS),
    "sample": _whole,
    "element": _whole,
    "position": _several(_number, 3),
    "scope": _one_of(SCOPES),
    "dense": _flag,
}


def _int(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]+", text):  # Python would also take "1_000" and blanks
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _list_of(read: Callable[[str], Any], separator: str = ",") -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(read(word) for word in text.split(separator)) if text else ()


_WORDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(
        ("scan", "metric", "reference", "method", "of", "color", "order", "scope"), unquote
    ),
    "models": _list_of(unquote),
    "labels": _list_of(_int),
    "lasso": _list_of(_list_of(_float), ";"),
    "position": _list_of(_float),
    "sample": _int,
    "element": _int,
    "dense": lambda text: text == "1",
}


def _written(value: Any) -> str:
    """Format a field as the page does: numbers with at most four decimals."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        rounded = Decimal(value).quantize(Decimal("0.0001"), ROUND_HALF_UP)
        text = f"{rounded:f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    if isinstance(value, str):
        return quote(value, safe=_UNESCAPED)
    separator = ";" if value and isinstance(value[0], tuple) else ","
    return separator.join(_written(part) for part in value)
