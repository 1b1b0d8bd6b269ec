"""Sentence pairs as numbers: split by premise, tokens, and the token vectors that they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.sentence_pairs import SentencePair, sentence_pairs, token_vectors, tokens
from ..framework import Results
from ..framework.packs import write_pack
from .nli import PACK
from .settings import Settings

TRAINING = ("snli_dev", "sick_train", "cad_nli_train")
"""Descriptions of pictures, as those of SNLI, whose training pairs are not at hand."""

TESTS = ("snli_test", "lingnli_val")
PREMISE, HYPOTHESIS = 32, 20
"""Tokens kept of each sentence; of SNLI's test pairs 95 % are shorter."""

VALIDATION, CALIBRATION = 0.3, 0.1
"""Shares of the premises of SNLI's development pairs, and of the training pairs' premises."""


def pack_nli(settings: Settings, results: Results) -> None:
    """Write tokens and labels of all parts, and the vectors of the tokens that occur."""
    parts = {name: pairs[: settings.images] for name, pairs in split(TRAINING, TESTS).items()}
    arrays: dict[str, NDArray] = {}
    for name, pairs in parts.items():
        premises = tokens((pair.premise for pair in pairs), PREMISE)
        hypotheses = tokens((pair.hypothesis for pair in pairs), HYPOTHESIS)
        arrays[f"tokens_{name}"] = np.concatenate([premises, hypotheses], 1)
        arrays[f"labels_{name}"] = np.array([pair.label for pair in pairs], np.uint8)
    arrays["premise"] = np.array(PREMISE, np.uint8)
    arrays["votes"] = np.array([pair.votes for pair in parts["lingnli_val"]], np.uint8)
    arrays, used = with_fewer_tokens(arrays)
    vectors = token_vectors()[used[1:].astype(int) - 1]
    table = np.concatenate([np.zeros_like(vectors[:1]), vectors])
    write_pack(results.work / PACK, arrays | {"table": table})


def split(training: Iterable[str], tests: Iterable[str]) -> dict[str, list[SentencePair]]:
    """Read all pairs and cut them into parts that have no premise in common.

    The first training set is that of the task: its share of premises is for validation. Training
    pairs whose premise occurs in a test set or in the validation part are left out.

    Args:
        training: Names of the training sets.
        tests: Names of the test sets.

    Returns:
        The parts `fit`, `calibration` and `validation`, and the test sets by their names.
    """
    found = {name: sentence_pairs(name) for name in tests}
    seen = {pair.source for pairs in found.values() for pair in pairs}
    first, *others = ([p for p in sentence_pairs(n) if p.source not in seen] for n in training)
    held, kept = _by_premise(first, VALIDATION)
    seen = {pair.source for pair in held}
    rest = [pair for pairs in (kept, *others) for pair in pairs if pair.source not in seen]
    calibration, fit = _by_premise(rest, CALIBRATION)
    return {"fit": fit, "calibration": calibration, "validation": held, **found}


def _by_premise(
    pairs: Sequence[SentencePair], share: float
) -> tuple[list[SentencePair], list[SentencePair]]:
    """Take the pairs of a random share of the premises, the same each time, and the others."""
    premises = np.array(sorted({pair.source for pair in pairs}))
    chosen = np.random.default_rng(0).choice(premises, round(share * len(premises)), replace=False)
    taken = {*chosen.tolist()}
    parts: tuple[list[SentencePair], list[SentencePair]] = ([], [])
    for pair in pairs:
        parts[pair.source not in taken].append(pair)
    return parts


def with_fewer_tokens(arrays: dict[str, NDArray]) -> tuple[dict[str, NDArray], NDArray]:
    """Number the tokens that occur from 1, 0 is none; return also which tokens these are."""
    tokens = {name: values for name, values in arrays.items() if name.startswith("tokens_")}
    none = np.zeros(1, np.uint16)
    used = np.unique(np.concatenate([none, *(values.ravel() for values in tokens.values())]))
    fewer = {n: np.searchsorted(used, values).astype(np.uint16) for n, values in tokens.items()}
    return arrays | fewer, used
