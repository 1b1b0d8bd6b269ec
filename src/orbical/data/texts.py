"""Texts as data: strings, lists of strings, chats, records of these, and questions with options."""

from __future__ import annotations

import ast
import contextlib
import csv
import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._imports_and_paths import existing_file, import_extra, reading
from .._lazy import pd
from .._text import counted
from .._trees import leaves
from .._warnings import warn
from ..actions import ActionTree, Texts, encode_texts
from ..errors import InputError
from .source import Batch, Source
from .tables import table_column

Record = Mapping[str, Any]
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".eval")


class TextRecords(Source):
    """Samples that are strings, lists of strings, chats, or records with several of these.

    Models receive a list with one entry for each sample, or one list for each field.

    Args:
        texts: N strings, N lists of as many strings each, or N chats (lists of messages with
            `role` and `content`); or a dictionary of such fields.
        labels: the targets.
        names: the names of the samples.
        columns: further facts about the samples, one array each, by name.

    Raises:
        InputError: if there is no sample, or a field is none of these.

    Example:
        >>> import orbical as ob
        >>> data = TextRecords({"review": ["good", "bad"], "words": [["a", "b"], ["c", "d"]]})
        >>> def model(review, words):
        ...     return [[float(text == "good"), float(row[0] == "c")]
        ...             for text, row in zip(review, words)]
        >>> task = ob.tasks.Classification(outputs="probabilities")
        >>> ob.scan(model, data, group="permutations:2", task=task, progress=False)
        ... # doctest: +SKIP
    """

    def __init__(
        self,
        texts: Any,
        labels: object = None,
        names: Sequence[str] | None = None,
        columns: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        fields = texts if isinstance(texts, dict) else {"": list(texts)}
        counts = {len(values) for values in fields.values()}
        if len(counts) != 1 or not min(counts):
            raise InputError("data", "as many samples in each field, and at least one", counts)
        self._count = counts.pop()
        actions = {name: Texts(parsed=not _is_text(values[0])) for name, values in fields.items()}
        self._texts = {
            name: [json.dumps(value) for value in values] if actions[name].parsed else [*values]
            for name, values in fields.items()
        }
        self._lengths = {name: _longest(values) for name, values in self._texts.items()}
        single = not isinstance(texts, dict)
        self.action: ActionTree = actions[""] if single else actions
        self.labels, self.names, self.columns = labels, names, dict(columns or {})

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Batch:
        """Return some texts as bytes, as long as the longest of all."""
        fields = {
            name: encode_texts(values[start:stop], self._lengths[name])
            for name, values in self._texts.items()
        }
        inputs = fields.get("", fields)
        return inputs, None if self.labels is None else np.asarray(self.labels)[start:stop]


def _is_text(value: object) -> bool:
    """Check for a string or a list of strings; anything else is kept as JSON."""
    each = value if isinstance(value, list | tuple) else [value]
    return bool(each) and all(isinstance(text, str) for text in each)


def _longest(values: list[Any]) -> int:
    return max(len(text.encode("utf-8", "surrogatepass")) for text in leaves(values))


def source_from_texts(data: Any) -> Source | None:
    """Return the source of texts, lists of texts, chats, or questions; None for other data."""
    table = isinstance(getattr(data, "column_names", None), list)  # a data set of Hugging Face
    listed = isinstance(data, list) or (table and hasattr(data, "__len__"))
    first = data[0] if listed and len(data) else None
    if _is_frame(data) and len(data):
        first = _text_records(data[:1])[0]
    if isinstance(first, Mapping | tuple) and _is_question(first):
        return Questions(data)
    chat = isinstance(first, list) and bool(first) and isinstance(first[0], dict)
    if chat or (isinstance(first, str | list) and _is_text(first)):
        return TextRecords(data)
    if isinstance(data, dict) and data and all(isinstance(v, list) and v for v in data.values()):
        textual = [isinstance(v[0], str | list) and _is_text(v[0]) for v in data.values()]
        return TextRecords(data) if all(textual) else None
    return None


_QUESTION = ("question", "query", "input", "prompt", "stem")
_OPTIONS = ("options", "choices", "endings")
_TIE = "tie"
_ANSWER = ("answer", "answerKey", "answer_key", "target", "gold", "correct", "label")


class Questions(TextRecords):
    """Questions with options, of which one is right.

    A table has a column `question`, the options in columns `A`, `B`, ... or in one column of lists,
    and the `answer`: its letter, its index from 0, or its text. A table without a header has the
    question first, then the options, then the answer. Samples that lm-evaluation-harness or
    inspect_ai logged are read as they are; a question that was logged for several filters or epochs
    is taken once, with a warning. The answer `tie`, where it is none of the options, is a class of
    its own after these, for a judge whose model has a column for it.

    Args:
        data: a file `.csv`, `.tsv`, `.jsonl`, `.json` or `.parquet` (`.gz` too), a log `.eval` of
            inspect_ai, a data frame, a data set of Hugging Face, or a list of records or of
            `(question, options, answer)`.
        options: the number of options; by default the most frequent. Questions with another number
            are left out, with a warning.
        columns: further columns to store with the scan; by default all single numbers and texts.

    Raises:
        InputError: if there is no question with options, or an answer is none of them.

    Example:
        >>> data = Questions([("Which is a fruit?", ["stone", "apple"], "B")])
        >>> data.labels.tolist(), data.classes, data.names
        ([1], ['A', 'B'], ['Which is a fruit?'])
    """

    usual_task = "choice"

    def __init__(
        self, data: object, options: int | None = None, columns: Sequence[str] | None = None
    ) -> None:
        rows = _text_records(data)
        numbered = enumerate(rows, _first_place(data, rows))
        records = _text_questions_without_repeats(
            [_question_of_row(row, place) for place, row in numbered]
        )
        counts = Counter(len(record["options"]) for record in records)
        if not counts:
            raise InputError("data", "at least one question", "none")
        chosen = counts.most_common(1)[0][0] if options is None else options
        kept = [record for record in records if len(record["options"]) == chosen]
        if not kept:
            raise InputError("options", f"one of {sorted(counts)}", chosen)
        if len(kept) < len(records):
            warn(
                f"{counted(len(records) - len(kept), 'question')} of {len(records)} left out, "
                f"because they do not have {chosen} options; scan them by themselves with "
                "orbical.data.Questions(data, options=...)",
            )
        answers = _text_question_answers(kept)
        labels = None if None in answers else np.array(answers)
        if labels is None and any(answer is not None for answer in answers):
            place = kept[answers.index(None)]["place"]
            raise InputError(
                "data", "an answer to every question or to none", f"none in row {place}"
            )
        questions = [record["question"] for record in kept]
        fields = {"question": questions, "options": [record["options"] for record in kept]}
        facts = _shared_columns_of_texts([record["facts"] for record in kept], columns)
        names = [_shortened(text) for text in questions]
        super().__init__(fields, labels, names, facts)
        tied = labels is not None and int(labels.max()) == chosen
        self.classes = [chr(65 + place) for place in range(chosen)] + [_TIE] * tied


def is_questions(path: Path) -> bool:
    """Check whether a file holds questions with options."""
    name = path.name.removesuffix(".gz")
    if not path.is_file() or not name.lower().endswith(SUFFIXES):
        return False
    rows = _text_rows_of_file(path)
    # Without rows it has at least a header of questions.
    return _is_question(rows[0]) if rows else path.stat().st_size > 0


def _is_question(row: Any) -> bool:
    """Check whether a row is a question with options.

    Cells without names could be anything, so that their answer must be an option, too.
    """
    try:
        if isinstance(row, Mapping):
            return bool(_question_fields(_record(row), 0))
        if _is_nested(row):
            return isinstance(row[0], str) and _is_text(row[1])
        return isinstance(row[0], str) and bool(_question_of_row(row, 0))
    except (InputError, IndexError):
        return False


def _record(row: Record) -> Record:
    return {**row, **row["doc"]} if isinstance(row.get("doc"), Mapping) else dict(row)


def _is_nested(row: Sequence[object]) -> bool:
    """Check whether a row is a question, a list of its options, and the answer."""
    return len(row) == 3 and isinstance(row[1], list | tuple)


def _text_records(data: Any) -> list[Any]:
    """Return the rows of a table, as records by column or as plain sequences."""
    if isinstance(data, str | Path):
        return _text_rows_of_file(existing_file("data", Path(data).expanduser()))
    if _is_frame(data):
        known = data.astype(object).where(data.notna(), None).rename(columns=str)
        rows: list[Any] = known.to_dict("records")
        return rows
    if isinstance(data, Iterable) and not isinstance(data, Mapping):
        return list(data)  # a list, or a data set of Hugging Face
    raise InputError("data", "questions with options", type(data))


def _first_place(data: object, rows: list[Any]) -> int:
    """Return the number of the first row: an index in Python, and as an editor counts in a file."""
    if not isinstance(data, str | Path):
        return 0
    table = Path(data).name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    return 2 if table and rows and isinstance(rows[0], Mapping) else 1  # below a header


def _is_frame(data: object) -> bool:
    return hasattr(data, "to_dict") and hasattr(data, "columns") and hasattr(data, "notna")


def _text_rows_of_file(path: Path) -> list[Any]:
    packed = path.suffix == ".gz"
    suffix = Path(path.stem if packed else path.name).suffix.lower()
    with reading("data", path, "questions or texts"):
        if suffix == ".parquet":
            import_extra("pyarrow", "parquet", "a Parquet table")
            return _text_records(pd.read_parquet(path))
        if suffix == ".eval":  # a log of inspect_ai: an archive with a file for each sample
            with zipfile.ZipFile(path) as log:
                names = [name for name in log.namelist() if name.startswith("samples/")]
                return [json.loads(log.read(name)) for name in names]
        content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        text = content.decode("utf-8-sig")
        if suffix in (".jsonl", ".ndjson"):
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        if suffix == ".json":
            whole = json.loads(text)
            logged = isinstance(whole, dict) and "samples" in whole  # a log of inspect_ai
            return [*(whole["samples"] if logged else whole)]
    if suffix not in (".csv", ".tsv"):
        raise InputError("data", f"a file {', '.join(SUFFIXES)}, or one of them .gz", str(path))
    delimiters = "\t" if suffix == ".tsv" else ",;\t|"  # spreadsheets write `;` in some countries
    for delimiter in delimiters:
        header, *rows = _csv_rows(text, delimiter) or [[]]
        if {name.strip().lower() for name in header} & {*_QUESTION}:
            names = [name.strip() for name in header]
            return [dict(zip(names, row, strict=False)) for row in rows]
    return _csv_rows(text, delimiters[0])


def _csv_rows(text: str, delimiter: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]


def _question_of_row(row: Any, place: int) -> dict[str, Any]:
    """Return question, options, the index of the answer (or None) and further facts of a row."""
    if isinstance(row, Mapping):
        record = _record(row)
        question, options, answer, used = _question_fields(record, place)
        facts = {name: value for name, value in record.items() if name not in used}
    else:
        cells = [*row]
        flat = not _is_nested(cells)
        question, options, answer = (cells[0], cells[1:-1], cells[-1]) if flat else cells
        facts = {}
    names: list[Any] = []
    if isinstance(options, Mapping):  # the form of ARC: texts, and a label for each
        names, options = [*options.get("label", ())], options.get("text", ())
    choices = [str(option) for option in _listed_options(options, place)]
    if len(choices) < 2:
        raise InputError("data", f"at least two options in row {place}", choices)
    return {
        "question": _as_text(question),
        "options": choices,
        "answer": _answer_index(answer, choices, [str(name) for name in names], place),
        "stated": None if names else answer,  # names of options leave nothing to decide
        "place": place,
        "facts": facts,
    }


def _listed_options(options: object, place: int) -> list[Any]:
    """Return options as a list; a cell of a table is text that reads as one in JSON or Python."""
    found: Any = options
    readers: tuple[Callable[[Any], Any], ...] = (json.loads, ast.literal_eval)
    for read in readers:
        if isinstance(found, str):
            with contextlib.suppress(
                ValueError, SyntaxError, TypeError, RecursionError, MemoryError
            ):
                found = read(options)
    if isinstance(options, str):
        # Python joins texts without commas between them, as numpy prints a list, to a single one.
        listed = isinstance(found, list | tuple) and len(found) > 1
    else:
        listed = isinstance(found, Iterable)
    if not listed:
        raise InputError(
            "data",
            f'options in row {place} as a list, such as ["red", "blue"], or in columns A, B, ...',
            repr(_shortened(str(options))),
        )
    return [*found]


def _question_fields(record: Record, place: int) -> tuple[Any, Any, Any, set[str]]:
    by_lower = {name.lower(): name for name in record}
    asked, offered, stated = (
        next((by_lower[name.lower()] for name in names if name.lower() in by_lower), None)
        for names in (_QUESTION, _OPTIONS, _ANSWER)
    )
    letters = [name for name in record if len(name) == 1 and name.isupper()]
    used = {name for name in (asked, offered, stated, "doc") if name is not None}
    if asked is None or (offered is None and len(letters) < 2 and "A" not in letters):
        raise InputError(
            "data",
            f"a question ({', '.join(_QUESTION)}) and options ({', '.join(_OPTIONS)}, or columns "
            f"A, B, ...) in row {place}",
            ", ".join(record),
        )
    if offered is not None:
        options = record[offered]
    else:  # a row with fewer options leaves the last columns empty
        options = [record[name] for name in sorted(letters) if str(record[name] or "").strip()]
        used |= {*letters}
    return record[asked], options, None if stated is None else record[stated], used


def _as_text(question: object) -> str:
    """Return a question as text; of a chat, what the user says."""
    if isinstance(question, list | tuple):
        said = [message for message in question if message.get("role") == "user"]
        return "\n".join(str(message["content"]) for message in said)
    return str(question)


def _answer_index(answer: object, options: list[str], names: list[str], place: int) -> int | None:
    """Return the index of the right option, from its index, name, letter or text; a tie is last."""
    if isinstance(answer, list | tuple) and len(answer) == 1:
        answer = answer[0]
    if answer is None or answer == "":
        return None
    if isinstance(answer, int | np.integer) and 0 <= int(answer) < len(options):
        return int(answer)
    text = str(answer).strip()
    letters = [chr(65 + letter) for letter in range(len(options))]
    for known in (names, letters, options, [str(number) for number in range(len(options))]):
        if text in known:
            return known.index(text)
    if text.lower() == _TIE:
        return len(options)
    raise InputError(
        "data", f"an answer that is one of {', '.join(letters)} in row {place}", repr(answer)
    )


def _text_question_answers(records: list[dict[str, Any]]) -> list[int | None]:
    """Return the answers, where texts such as "2" are both an option and the index of another.

    They are indices if all answers can be, and options otherwise; no guess is made if all can be
    options, too.
    """
    indices = [_as_index(record) for record in records]
    answers = [record["answer"] for record in records]
    pairs = zip(indices, answers, strict=True)
    unclear = [row for row, (index, answer) in enumerate(pairs) if index not in (None, answer)]
    if not unclear or None in indices:
        return answers
    if all(str(record["stated"]).strip() in record["options"] for record in records):
        first = records[unclear[0]]
        raise InputError(
            "data",
            f"an answer in row {first['place']} that is either an option or an index",
            f"{first['stated']!r}, which is both",
            remedy="state answers by letters, A, B, ...",
        )
    return indices


def _as_index(record: dict[str, Any]) -> int | None:
    text = str(record["stated"]).strip()
    return int(text) if text.isdecimal() and int(text) < len(record["options"]) else None


_LOGGED = {"epoch": "id", "filter": "doc_id"}
"""What a question is logged for several times, and the column that identifies the question."""


def _text_questions_without_repeats(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each question of a log once, and say so: the first of its epochs or filters.

    Logs of several tasks in one file number their questions alike, so that the text counts, too.
    """
    for repeat, name in _LOGGED.items():
        first: dict[str, dict[str, Any]] = {}
        if not all({repeat, name} <= {*record["facts"]} for record in records):
            continue
        for record in records:
            told = record["facts"][name], record["question"], sorted(record["options"])
            first.setdefault(repr(told), record)
        if len(first) < len(records):
            kept = {repr(record["facts"][repeat]): None for record in first.values()}
            warn(
                f"{len(records)} logged samples ask {counted(len(first), 'question')}; each is "
                f"taken once, as first logged ({repeat} {', '.join(kept)})",
            )
            return [*first.values()]
    return records


def _shared_columns_of_texts(
    records: list[Record], columns: Sequence[str] | None
) -> dict[str, np.ndarray]:
    """Return the columns of single numbers and texts that every record has."""
    shared = [name for name in records[0] if all(name in record for record in records)]
    if columns is not None:
        missing = next((name for name in columns if name not in shared), None)
        if missing is not None:
            raise InputError("columns", f"some of {', '.join(shared) or 'none'}", missing)
        shared = [*columns]
    plain = str | int | float | bool | None
    return {
        name: table_column([record[name] for record in records])
        for name in shared
        if all(isinstance(record[name], plain) for record in records)
    }


def _shortened(text: str, most: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
