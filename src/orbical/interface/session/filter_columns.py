"""Columns of the samples: what they can be filtered, colored and sorted by.

A column has one number, one of a few categories, or a text for each sample, of the sample itself
(its label, its metadata) or of each model (its confidence, its gap). Columns do not depend on the
position on the orbit nor on the map, so that a filter means the same wherever one looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...errors import InputError, check_name
from ...groups import spoken_name
from ...nero import mean_over_models
from ...store import Json
from ..selection import SelectionClause
from .element_columns import first_failed_element_column, near_to_far, upright_column
from .scan_view import ScanView

Array = np.ndarray

Read = Callable[[], Any]
_WORDS = {
    "predicted": ("Prediction", "Prediction at the identity"),
    "correct": ("Correct", "Correct at the identity"),
    "confidence": ("Confidence", "Confidence at the identity"),
    "share_correct": ("Share correct", "Fraction of the orbit predicted correctly"),
    "first_failure": ("First failure", "How far along the orbit the prediction first fails"),
    "gap": ("Gap", "Confidence minus accuracy over the orbit"),
}
"""The title and the meaning of columns of models."""
TAIL = 1.5
"""Numbers farther out than this many widths of the middle 98 % are drawn as its ends."""


@dataclass(frozen=True)
class Column:
    """A column of the samples.

    Attributes:
        name: Its name in filters.
        title: Its title on the page.
        meaning: What it is, in a few words.
        kind: "number", "category" or "text".
        read: Returns its values: numbers, codes of categories (-1 if missing) or texts, `[N]`, or
            `[M, N]` if `by_model`.
        by_model: Whether it is of each model.
        unit: The unit of its numbers.
        keys: The categories as filters name them; None for classes, which are numbered.
        ends: The range of its numbers, if it is fixed.
        given: Whether it came with the data, as metadata.
    """

    name: str
    title: str
    meaning: str
    kind: str
    read: Read = field(repr=False)
    by_model: bool = False
    unit: str = ""
    keys: list[str] | None = None
    ends: list[float] | None = None
    given: bool = False


def sample_columns(view: ScanView) -> dict[str, Column]:
    """Return the columns of a scan by name."""
    return view.cache.get_or_compute(
        "columns by name", lambda: {column.name: column for column in _declared(view)}
    )


def filter_column_values(view: ScanView, column: Column, model: str = "") -> Any:
    """Return the values of a column: of a model, else the mean over models, or of the first.

    Texts are returned joined, to be searched.
    """
    if model and column.by_model:
        check_name("selection filter", model, view.models)

    def compute() -> Any:
        values = column.read()
        if column.kind == "text":
            return FilterTexts.of(values)
        if not column.by_model:
            return values
        if model or column.kind != "number":
            return np.asarray(values[view.models.index(model) if model else 0])
        never = np.isposinf(values).all(0)  # for all models
        return np.where(never, np.inf, mean_over_models(values))

    key = ("column", column.name, model if column.by_model else "")
    return view.cache.get_or_compute(key, compute)


def kept_by_filter(view: ScanView, text: str) -> Array:
    """Return which samples a clause keeps, `[N]`."""
    clause = SelectionClause.parse(text)
    columns = sample_columns(view)
    check_name("selection filter", clause.column, columns)
    column = columns[clause.column]
    values = filter_column_values(view, column, clause.model)
    if column.kind == "text":
        return texts_matching_filter(values, _chosen(clause, "words to search for"))
    if column.kind == "category":
        return _in_categories(view, column, values, _chosen(clause, "values"))
    if clause.values is None:
        return np.asarray((values >= clause.low) & (values <= clause.high))
    try:
        return np.isin(values, [float(value) for value in clause.values])
    except ValueError:
        given = repr(clause.values[0])
        raise InputError(f"selection filter {column.name}", "numbers", given) from None


def filter_keys(view: ScanView, column: Column) -> list[str]:
    """Return the categories of a column as filters name them."""
    return [str(one) for one in range(len(view.classes))] if column.keys is None else column.keys


def filters_for_page(view: ScanView) -> list[Json]:
    """Describe the columns for the page."""
    return [
        {name: value for name, value in vars(column).items() if name != "read"}
        for column in sample_columns(view).values()
    ]


def filter_title(view: ScanView, column: Column, model: str) -> str:
    """Return the title of a column, with the model whose numbers are shown."""
    if not column.by_model or len(view.models) == 1:
        return column.meaning
    whose = model or ("mean over models" if column.kind == "number" else view.models[0])
    return f"{column.meaning}, {whose}"


def filter_column_ends(values: Array) -> tuple[float, float]:
    """Return the ends of a scale: the range of the values, without tails that are far away.

    >>> filter_column_ends(np.append(np.linspace(0, 1, 1000), 500.0))[1] < 1.1
    True
    """
    seen = values[np.isfinite(values)]
    if not len(seen):
        return 0.0, 1.0
    low, high = (float(one) for one in np.quantile(seen, [0.01, 0.99]))
    least, most, reach = float(seen.min()), float(seen.max()), TAIL * (high - low)
    return least if least >= low - reach else low, most if most <= high + reach else high


def _chosen(clause: SelectionClause, what: str) -> tuple[str, ...]:
    if clause.values is None:
        raise InputError(f"selection filter {clause.column}", what, "a range")
    return clause.values


def _in_categories(view: ScanView, column: Column, codes: Array, wanted: tuple[str, ...]) -> Array:
    keys, chosen = filter_keys(view, column), {*wanted}
    kept = np.array([*(key in chosen for key in keys), False])  # the last is for missing values, -1
    return np.asarray(kept[np.minimum(codes, len(keys))])


def _declared(view: ScanView) -> list[Column]:
    found = [*_filter_columns_of_samples(view), *_filter_columns_of_models(view)]
    taken = {column.name for column in found}
    for name, values in view.scan.metadata.items():
        title = str(view.scan.stored[name].get("long_name", name))
        found.append(_given_filter_column(name if name not in taken else f"{name}_", title, values))
    return found


def metadata_by_title(view: ScanView, sample: int) -> Json:
    """Return the metadata of a sample by title."""
    given = [column for column in sample_columns(view).values() if column.given]
    return {column.title: _fact(column, column.read()[sample]) for column in given}


def _fact(column: Column, value: Any) -> Any:
    if column.keys is not None:
        return column.keys[value] if value >= 0 else None
    return float(value) if column.kind == "number" else str(value)


def _search_texts(view: ScanView) -> list[str]:
    """Return what a search looks through: name, class and number of each sample."""
    names = view.shown_names or [""] * view.samples
    if view.label is None or not view.classes:
        return [f"{name} #{number}" for number, name in enumerate(names)]
    kinds = [*map(str, view.classes), ""]
    return [
        f"{name} {kinds[kind]} #{number}"
        for number, (name, kind) in enumerate(zip(names, view.label.tolist(), strict=True))
    ]


def _filter_columns_of_samples(view: ScanView) -> list[Column]:
    words = ("Search", "Name, class or number")
    found = [Column("search", *words, "text", lambda: _search_texts(view))]
    if view.label is not None and view.classes:
        label = view.label.astype(np.int32)
        found.append(Column("label", "Label", "Class of the sample", "category", lambda: label))
    if view.names is not None:
        found.append(Column("name", "Name", "Name of the sample", "text", lambda: view.names))
    return found


def _filter_columns_of_models(view: ScanView) -> list[Column]:
    """Return the columns of each model that the scan has numbers for."""
    reference = "truth" if view.scan.labeled else "consensus"
    right, sure = "correct" in view.metrics, "confidence" in view.metrics

    def mean(name: str) -> Array:
        return view.moments(view.variable(view.metrics[name], reference)).orbit_mean

    def category(name: str, read: Callable[[], Array], keys: list[str] | None = None) -> Column:
        return Column(name, *_WORDS[name], "category", lambda: _codes(read()), True, keys=keys)

    def share(name: str, read: Read, low: float = 0.0) -> Column:
        return Column(name, *_WORDS[name], "number", read, True, "share", ends=[low, 1.0])

    columns = []
    if view.classes and view.predicts_classes:
        columns.append(category("predicted", lambda: upright_column(view, "predicted")))
    if right:
        correct = view.variable(view.metrics["correct"], reference)
        outcomes = ["incorrect", "correct"]
        columns.append(category("correct", lambda: upright_column(view, correct), outcomes))
    if sure:
        columns.append(share("confidence", lambda: upright_column(view, "confidence")))
    if right:
        columns += [
            share("share_correct", lambda: mean("correct")),
            _filter_column_of_failure(view),
        ]
    if right and sure:
        columns.append(share("gap", lambda: mean("confidence") - mean("correct"), -1.0))
    elif "invariance_gap" in view.reader:
        words = ("Gap", "Distance of the predictions from their mean")
        read: Read = partial(view.reader.whole, "invariance_gap")
        columns.append(Column("gap", *words, "number", read, True))
    return columns


def _filter_column_of_failure(view: ScanView) -> Column:
    """Return the position of the first failure: how far from the identity, or which element."""
    reach, order = view.group.reach, near_to_far(view.group)
    words = _WORDS["first_failure"]
    if reach is None:
        names = [*(spoken_name(view.group, int(place)) for place in order), "never"]
        read: Read = lambda: _codes(first_failed_element_column(view))  # noqa: E731
        return Column("first_failure", *words, "category", read, True, keys=names)
    sizes = np.append(reach[0][order], np.inf).astype(np.float32)

    def far() -> Array:
        place = first_failed_element_column(view)
        return np.where(np.isnan(place), np.nan, sizes[np.nan_to_num(place).astype(int)])

    return Column("first_failure", *words, "number", far, True, reach[1])


def _codes(values: Array) -> Array:
    """Return codes of categories from numbers; -1 if missing."""
    return np.where(np.isnan(values), -1, values).astype(np.int32)


def _given_filter_column(name: str, title: str, values: Array) -> Column:
    """Return a metadata column: numbers as they are, texts as categories if many are alike.

    Categories are in alphabetical order.
    """
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float32)
        return Column(name, title, title, "number", lambda: numbers, given=True)
    import pandas as pd

    texts = values.astype(str)
    codes, keys = pd.factorize(texts, sort=True)
    if len(keys) > MOST_CATEGORIES or (2 * len(keys) > len(texts) and len(keys) > FEW_CATEGORIES):
        return Column(name, title, title, "text", lambda: texts, given=True)
    kinds, names = codes.astype(np.int32), [*map(str, keys)]
    return Column(name, title, title, "category", lambda: kinds, keys=names, given=True)


MOST_CATEGORIES, FEW_CATEGORIES = 1_000, 12
_END = b"\n"
_AT_ONCE = 16_384  # texts whose letters stay in the cache of a processor
_SOME = 65_536  # letters that tell which ones are rare


@dataclass(frozen=True)
class FilterTexts:
    """Texts in one run of lower-case bytes, which is searched faster than one after the other.

    Attributes:
        joined: The texts in UTF-8, each with a line break after it.
        starts: Where each begins, `[N]`.
    """

    joined: Array
    starts: Array

    @classmethod
    def of(cls, texts: Iterable[str]) -> FilterTexts:
        """Join texts; line breaks in them become blanks."""
        lines = [_plain(str(text)) for text in texts]
        lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
        starts = np.cumsum(lengths) - lengths
        return cls(np.frombuffer(_END.join([*lines, b""]), np.uint8), starts)


def texts_matching_filter(texts: FilterTexts, words: Sequence[str]) -> Array:
    """Return which texts contain one of the words, `[N]`, whatever their case.

    >>> texts_matching_filter(FilterTexts.of(["A cat", "Dogs", "catfish"]), ["CAT"]).tolist()
    [True, False, True]
    """
    kept = np.zeros(len(texts.starts), bool)
    sought = [_plain(word) for word in words]
    if not all(sought):
        return ~kept
    ends = np.append(texts.starts, len(texts.joined))
    frequency = np.bincount(texts.joined[:_SOME], minlength=256)
    for first in range(0, len(kept), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        starts = texts.starts[rows]
        letters = texts.joined[starts[0] : ends[min(rows.stop, len(kept))]]
        for word in sought:
            places = _places(letters, word, frequency)
            kept[first + np.searchsorted(starts, starts[0] + places, side="right") - 1] = True
    return kept


def _places(letters: Array, word: bytes, frequency: Array) -> Array:
    """Return where a word begins: its rarest letter is looked for first, the others only there."""
    rarest, *others = sorted(range(len(word)), key=lambda offset: frequency[word[offset]])
    count = max(0, len(letters) - len(word))
    places = np.flatnonzero(letters[rarest : rarest + count] == word[rarest])
    for offset in others:
        places = places[letters[places + offset] == word[offset]]
    return places


def _plain(text: str) -> bytes:
    return text.lower().encode().replace(_END, b" ")
