"""The selection: what the page shows, part of its address and of every request."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from ..errors import InputError, check_name, unknown_name
from ..store import Json

__all__ = ["Selection"]

MOST_VERTICES = 1024
MOST_SAMPLES = 64
MOST_PINS = 8
_MOST_TEXT = 400
UNESCAPED = "!~*'()"


def _written_in_selection(value: str | float | Iterable[str | float]) -> str:
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
        return quote(value, safe=UNESCAPED)
    return ",".join(_written_in_selection(part) for part in value)


@dataclass(frozen=True)
class _Kind:
    """How a field is read from JSON (its name, the value), and is parsed from and written to an
    address.
    """

    read: Callable[[str, Any], Any]
    parse: Callable[[str], Any]
    write: Callable[[Any], str] = _written_in_selection


def _kept(kind: _Kind, usual: object) -> Any:
    """Return a field of the selection of a kind, with its default."""
    return dataclasses.field(default=usual, metadata={"kind": kind})


def _expected(name: str, what: str, value: object) -> InputError:
    return InputError(f"selection {name}", what, _short(value))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise _expected(name, "a string", value)
    return value


def set_name(name: str, value: object) -> str:
    """Read the hash of a set of samples; empty for all of them."""
    if not isinstance(value, str) or not re.fullmatch(r"([0-9a-f]{16})?", value):
        raise _expected(name, "16 hexadecimal digits", value)
    return value


def _selection_choice(*known: str) -> Any:
    """Return a field with one of these values, by default the first."""

    def read(name: str, value: object) -> str:
        if value not in known:
            raise unknown_name(f"selection {name}", _short(value), known)
        return str(value)

    return _kept(_Kind(read, unquote), known[0])


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _expected(name, "true or false", value)
    return value


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**31 - 1:
        raise _expected(name, "an integer", value)
    return value


def _number(name: str, value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good:
        raise _expected(name, "a number", value)
    return float(value)


def _selection_list(kind: _Kind, most: int, separator: str = ",") -> _Kind:
    def read(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) > most:
            raise _expected(name, f"a list of at most {most}", value)
        return tuple(kind.read(name, part) for part in value)

    def parse(text: str) -> tuple[Any, ...]:
        return tuple(kind.parse(word) for word in text.split(separator)) if text else ()

    return _Kind(read, parse)


def _corner(name: str, value: object) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise _expected(name, "corners (x, y)", value)
    return _number(name, value[0]), _number(name, value[1])


def _clause(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _expected(name, "clauses", value)
    SelectionClause.parse(value)
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _int(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]+", text):  # Python would also take "1_000" and blanks
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


_TEXT, _WHOLE, _NUMBER = _Kind(_text, unquote), _Kind(_whole, _int), _Kind(_number, _float)
_CLAUSE, _SET = _Kind(_clause, str), _Kind(set_name, unquote)
_FLAG = _Kind(_flag, lambda text: text == "1")


@dataclass(frozen=True)
class Selection:
    """What the page shows.

    Attributes:
        scan: Name of a scan among those served; empty for the first.
        models: Models shown; empty for all.
        metric: A metric of the state; empty for the score.
        reference: What a score is measured against: "truth", "consensus", or "both" for one sample
            against each, and the truth elsewhere.
        filter: Clauses over columns of the samples, such as `label:6,9` or `gap@plain:0.1..`; a
            sample is shown if all of them keep it.
        subset: The hash of a set of samples; empty for all.
        method: The embedding method of the map.
        of: The model whose responses are embedded; empty for all together.
        color: What colors the map: "mean" or "variance" of the metric, or a column.
        order: How the list is sorted: "worst", "best" or "variable" first, or by a column, from the
            largest with a minus sign.
        listing: Whether samples are shown as a "list" or as a "grid" of pictures.
        sample: The selected sample.
        element: The orbit position as an element of the scan; -1 is the identity.
        position: A continuous orbit position; empty for that of `element`.
        scope: Calibration at the element or over the orbit; sets are calibrated at
            the identity or there.
        slices: The depth, row and column of the slices of a volume; empty for the middle ones.
        dense: Whether the individual plot has finer steps.
        pins: Samples shown side by side, at most 8.
        stage: The section that fills the window; empty for none.
        show: What the aggregate section shows: "mean", "spread", "classes" or "runs".
        by: The column whose values are the groups of "classes"; empty for the first.
        quantile: The quantile of a map of the spread, in percent; empty for all, side by side.
        runs: Whether runs are drawn as "curves" or as their "difference" from one of them.
        against: The scan that differences are taken from; empty for the first.
        answers: What the calibration section shows: "reliability", "confusion" or "sets"; of class
            maps "reliability" of pixels, or "regions".
        marks: What the map draws, "points" or "glyphs" of orbits.
        scale: Whether the axis of a metric ends at the largest value, if that is far below the
            largest possible one ("fit"), or there ("full").
        shape: Whether a circle is drawn as a "circle" or as a straight "line".

    Example:
        >>> Selection(sample=12, filter=("label:6,9", "gap:0.1..")).to_fragment()
        'sample=12&filter=label:6,9;gap:0.1..'
        >>> Selection.from_fragment("#sample=12&filter=label:6,9").filter
        ('label:6,9',)
    """

    scan: str = _kept(_TEXT, "")
    models: tuple[str, ...] = _kept(_selection_list(_TEXT, 256), ())
    metric: str = _kept(_TEXT, "")
    reference: str = _selection_choice("truth", "consensus", "both")
    filter: tuple[str, ...] = _kept(replace(_selection_list(_CLAUSE, 64, ";"), write=";".join), ())
    subset: str = _kept(_SET, "")
    method: str = _kept(_TEXT, "pca")
    of: str = _kept(_TEXT, "")
    color: str = _kept(_TEXT, "mean")
    order: str = _kept(_TEXT, "worst")
    listing: str = _selection_choice("list", "grid")
    sample: int = _kept(_WHOLE, 0)
    element: int = _kept(_WHOLE, -1)
    position: tuple[float, ...] = _kept(_selection_list(_NUMBER, 3), ())
    slices: tuple[int, ...] = _kept(_selection_list(_WHOLE, 3), ())
    scope: str = _selection_choice("element", "orbit")
    dense: bool = _kept(_FLAG, False)
    pins: tuple[int, ...] = _kept(_selection_list(_WHOLE, MOST_PINS), ())
    stage: str = _kept(_TEXT, "")
    show: str = _selection_choice("mean", "spread", "classes", "runs")
    by: str = _kept(_TEXT, "")
    quantile: str = _selection_choice("", "5", "25", "50", "75", "95")
    runs: str = _selection_choice("curves", "difference")
    against: str = _kept(_TEXT, "")
    answers: str = _selection_choice("reliability", "confusion", "sets", "regions")
    marks: str = _selection_choice("points", "glyphs")
    scale: str = _selection_choice("fit", "full")
    shape: str = _selection_choice("circle", "line")

    @classmethod
    def from_json(cls, given: object) -> Selection:
        """Read a selection from a request; unknown fields and wrong types raise an `InputError`."""
        if not isinstance(given, Mapping):
            raise InputError("selection", "an object", type(given))
        for key in given:
            check_name("selection", key, _FIELDS)
        return cls(**{str(key): _FIELDS[key].read(key, given[key]) for key in given})

    @classmethod
    def from_fragment(cls, text: str) -> Selection:
        """Read the fragment of an address; unknown or malformed fields keep their defaults.

        An address may come from another version or be typed by hand, so errors are ignored.
        """
        fields: Json = {}
        for piece in text.removeprefix("#").split("&"):
            key, equals, value = piece.partition("=")
            if not equals:
                continue
            with contextlib.suppress(KeyError, ValueError):  # an InputError is a ValueError
                fields[key] = _FIELDS[key].read(key, _FIELDS[key].parse(value))
        return cls(**fields)

    def to_fragment(self) -> str:
        """Return the fields that differ from their defaults, as the fragment of an address."""
        usual = Selection()
        return "&".join(
            f"{field.name}={_FIELDS[field.name].write(getattr(self, field.name))}"
            for field in sorted(dataclasses.fields(self), key=_fragment_order)
            if getattr(self, field.name) != getattr(usual, field.name)
        )


def _fragment_order(field: dataclasses.Field[object]) -> int:
    first = ("scan", "sample", "element")  # what a reader of an address looks for
    return first.index(field.name) if field.name in first else len(first)


_FIELDS: dict[str, _Kind] = {
    field.name: field.metadata["kind"] for field in dataclasses.fields(Selection)
}


def selected_mask(given: object, samples: int) -> np.ndarray:
    """Read samples given by their indices, or as a mask of all of them, as a mask `[N]`."""
    chosen = np.asarray(given)
    if chosen.dtype == bool and chosen.shape == (samples,):
        return chosen
    whole = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not chosen.size)
    if not whole or (chosen.size and not -samples <= chosen.min() <= chosen.max() < samples):
        expected = f"indices below {samples}, or a mask of {samples}"
        raise InputError("samples", expected, _short(given))
    mask = np.zeros(samples, bool)
    mask[chosen.astype(int)] = True
    return mask


def selected_polygon(value: object) -> tuple[tuple[float, float], ...]:
    """Read the corners of a polygon, at least three."""
    corners: tuple[tuple[float, float], ...]
    corners = _selection_list(_Kind(_corner, str), MOST_VERTICES).read("polygon", value)
    if len(corners) < 3:
        raise _expected("polygon", f"3 to {MOST_VERTICES} corners", value)
    return corners


def sample_numbers_of_request(value: object) -> tuple[int, ...]:
    """Read the samples of a request, at least one."""
    numbers: tuple[int, ...] = _selection_list(_WHOLE, MOST_SAMPLES).read("samples", value)
    if not numbers:
        raise _expected("samples", f"1 to {MOST_SAMPLES}", value)
    return numbers


MOST_CLAUSE = 1 << 16
_RANGE = ".."


@dataclass(frozen=True)
class SelectionClause:
    """A column and what is kept of it: a range of numbers, or some values.

    Attributes:
        column: The name of the column.
        model: The model whose numbers are meant; empty if the column is of the samples alone, for
            the mean over models, or for the first of them.
        low: The least number; minus infinity for none.
        high: The largest number; infinity for none.
        values: The values kept; None for a range.

    Example:
        >>> SelectionClause.parse("label:6,9").values
        ('6', '9')
        >>> str(SelectionClause("confidence", "plain", low=0.5))
        'confidence@plain:0.5..'
    """

    column: str
    model: str = ""
    low: float = -math.inf
    high: float = math.inf
    values: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> SelectionClause:
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
            ends = _range_end(low, -math.inf), _range_end(high, math.inf)
        except ValueError:
            raise _malformed(text) from None
        return cls(*about, *ends)

    def __str__(self) -> str:
        owner = _escaped(self.column) + (f"@{_escaped(self.model)}" if self.model else "")
        if self.values is not None:
            return f"{owner}:{','.join(map(_escaped, self.values))}"
        low, high = _range_text(self.low, -math.inf), _range_text(self.high, math.inf)
        return f"{owner}:{low}{_RANGE}{high}"


def labels_alone(filters: Iterable[str]) -> tuple[int, ...] | None:
    """Return the classes of a filter that names nothing else, None for other filters.

    >>> labels_alone(["label:6,9"]), labels_alone(["label:6", "gap:0.."]), labels_alone([])
    ((6, 9), None, None)
    """
    clauses = [SelectionClause.parse(text) for text in filters]
    if len(clauses) != 1 or clauses[0].column != "label" or clauses[0].values is None:
        return None
    # As the filter itself reads them: a class counts once, and "06" is none.
    given = [value for value in clauses[0].values if value.isdecimal()]
    return tuple(dict.fromkeys(int(value) for value in given if str(int(value)) == value))


def _malformed(text: str) -> InputError:
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return InputError("selection filter", "column:low..high or column:value,value", repr(short))


def _escaped(text: str) -> str:
    return quote(text, safe=UNESCAPED).replace(_RANGE, "%2E%2E")


def _range_end(text: str, missing: float) -> float:
    number = float(text) if text else missing
    if "_" in text or math.isnan(number):
        raise ValueError(text)
    return number


def _range_text(end: float, open_end: float) -> str:
    """Write an end of a range: nothing if it is open; endless numbers as JavaScript does."""
    return "" if end == open_end else f"{end:.6g}".replace("inf", "Infinity")
