"""Sentence pairs for natural-language inference, and token vectors for them."""

from __future__ import annotations

import csv
import gzip
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orbical.datasets import data_file
from orbical.errors import InputError, check_name

RELATIONS = ("entailment", "neutral", "contradiction")
FOLDERS = {
    **dict.fromkeys(("snli_dev", "snli_test", "mnli_dev", "sick_train"), "nli"),
    **dict.fromkeys(("lingnli_train", "lingnli_val", "cad_nli_train"), "nli_more"),
}
"""The sets that `sentence_pairs` reads, and their folders in the data folder."""

PACKAGE = "wordllama==0.4.0.post1"
VECTORS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class SentencePair(NamedTuple):
    """A premise, a hypothesis, and how the second relates to the first.

    `votes` counts the annotators who chose each of `RELATIONS`; all 0 where they are not known.
    """

    premise: str
    hypothesis: str
    label: int
    votes: tuple[int, ...] = (0, 0, 0)

    @property
    def source(self) -> str:
        """The premise without case: pairs of one premise belong on one side of a split."""
        return self.premise.lower()


def sentence_pairs(name: str, folder: str | Path | None = None) -> list[SentencePair]:
    """Read one set of sentence pairs from a gzipped table of tab-separated values.

    Args:
        name: One of `FOLDERS`; the file is `NAME.tsv.gz`.
        folder: Contains the file; default `nli` or `nli_more` in the data folder.

    Returns:
        The pairs, in the order of the file.

    Example:
        >>> sentence_pairs("snli_train")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'snli_train'; did you mean ...
    """
    check_name("name", name, FOLDERS)
    path = data_file(f"{name}.tsv.gz", folder, FOLDERS[name])
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not rows or not {"premise", "hypothesis", "label"} <= {*rows[0]}:
        raise InputError(
            "folder",
            f"the columns premise, hypothesis and label in {path.name!r}",
            ", ".join(rows[0]) if rows else "no row",
        )
    other = {row["label"] for row in rows} - {*RELATIONS}
    if other:
        raise InputError(
            "folder",
            f"labels {', '.join(RELATIONS)} in {path.name!r}",
            ", ".join(sorted(map(str, other))),
        )
    return [_pair(row) for row in rows]


def _pair(row: dict[str, str]) -> SentencePair:
    chosen = (row.get("annotator_labels") or "").split("|")
    votes = tuple(chosen.count(name) for name in RELATIONS)
    texts = row["premise"].strip(), row["hypothesis"].strip()
    return SentencePair(*texts, RELATIONS.index(row["label"]), votes)


def token_vectors() -> NDArray[np.float16]:
    """Read the token vectors of WordLlama, `[32000, 256]`, without importing the package."""
    from safetensors.numpy import load_file

    (table,) = load_file(_package_file(VECTORS)).values()
    return np.asarray(table)


def tokens(texts: Iterable[str], most: int) -> NDArray[np.uint16]:
    """Cut texts into WordLlama's tokens, rows of its vectors.

    Args:
        texts: Sentences.
        most: Tokens kept of each.

    Returns:
        Tokens `[n, most]`, counted from 1; 0 stands after the last one of a shorter text.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_package_file(TOKENIZER)))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    found = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    rows = np.zeros((len(found), most), np.uint16)
    for row, one in zip(rows, found, strict=True):
        kept: Sequence[int] = one.ids[:most]
        row[: len(kept)] = np.add(kept, 1)
    return rows


def _package_file(name: str) -> Path:
    found = importlib.util.find_spec(PACKAGE.partition("=")[0])
    places = [] if found is None else list(found.submodule_search_locations or [])
    paths = [path for place in places if (path := Path(place) / name).is_file()]
    if not paths:
        raise InputError(
            "wordllama",
            f"the package with the file {name!r}",
            "none",
            remedy=f"pip install tokenizers {PACKAGE}",
        )
    return paths[0]
