"""The audit of option orders: models whose bias is planted, and a small real language model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import orbical as ob
from orbical_audits import Verdict, choices
from orbical_audits.models import gemma

LETTERS = "ABCDE"
PLANTED = 2.0


def questions(options, count=40):
    """Return questions whose options are numbers, of which the right one tends to be large."""
    generator = np.random.default_rng(options)
    rows = []
    for number in range(count):
        right = int(generator.integers(options))
        merit = generator.normal(size=options) + 1.5 * (np.arange(options) == right)
        rows.append((f"question {number}", [f"{value:.6f}" for value in merit], LETTERS[right]))
    return rows


def fair(question, options):
    return [[float(text) for text in row] for row in options]


def fond_of_d(question, options):
    rows = fair(question, options)
    return [[score + PLANTED * (p == 3) for p, score in enumerate(row)] for row in rows]


def always_d(question, options):
    return [[9.0 * (p == 3) for p in range(len(row))] for row in options]


MODELS = {
    gemma.GEMMA_LETTERS: fond_of_d,
    gemma.GEMMA_EXAMPLES: always_d,
    gemma.GEMMA_LIKELIHOOD: fair,
    gemma.MINILM: fair,
}


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    return {
        name: [gemma.scanned(MODELS, questions(n), choices.orders_of(n), folder / f"{n}.zarr")]
        for name, n in zip(gemma.DATA, (4, 5), strict=True)
    }


@pytest.fixture(scope="module")
def tables(scans):
    return {key: table.rows for key, table in gemma.measured(scans).items()}


def of(rows, name, model):
    return [row for row in rows if (row["questions"], row["model"]) == (name, model)]


def test_verdicts_on_planted_models(tables):
    verdicts = gemma.decide(tables)
    assert len(verdicts) == 8
    for name in gemma.DATA:
        assert verdicts[f"{gemma.GEMMA_LIKELIHOOD}, {name}"] is Verdict.INVARIANT
        assert verdicts[f"{gemma.MINILM}, {name}"] is Verdict.INVARIANT
        assert verdicts[f"{gemma.GEMMA_EXAMPLES}, {name}"] is Verdict.CONFIDENT


@pytest.mark.parametrize(("name", "count"), [*zip(gemma.DATA, (4, 5), strict=True)])
def test_a_model_that_always_says_d_is_at_chance_and_every_answer_changes(tables, name, count):
    row = of(tables["models"], name, gemma.GEMMA_EXAMPLES)[0]
    assert row["accuracy, all orders"]["value"] == pytest.approx(1 / count)
    assert row["answer changes"]["value"] == 1
    letters = {r["letter"]: r for r in of(tables["letters"], name, gemma.GEMMA_EXAMPLES)}
    assert [*letters] == [*LETTERS[:count]]
    for letter, found in letters.items():
        assert found["chosen"]["value"] == pytest.approx(float(letter == "D"))
        assert found["accuracy, right answer here"]["value"] == pytest.approx(float(letter == "D"))
        assert found["more than fair"]["value"] == pytest.approx((letter == "D") - 1 / count)
    order = of(tables["orders"], name, gemma.GEMMA_EXAMPLES)[0]
    assert order["right at every order"]["value"] == order["right at no order"]["value"] == 0
    assert "ABCDE"[:count] == "".join(sorted(order["worst order"].replace(" ", "")))


def test_a_preference_is_found_at_its_letter_and_averaging_removes_it(tables):
    for name in gemma.DATA:
        letters = of(tables["letters"], name, gemma.GEMMA_LETTERS)
        assert [r["letter"] for r in letters if r["more than fair"]["low"] > 0.05] == ["D"]
        rows = {r["orders"]: r for r in of(tables["averaging"], name, gemma.GEMMA_LETTERS)}
        assert rows["all"]["gain"]["low"] > 0
        assert rows["1"]["accuracy"]["value"] < rows["cyclic"]["accuracy"]["value"]
        assert rows["all"]["answer depends on the choice"] == 0
        assert rows["cyclic"]["passes"] < rows["all"]["passes"]


def test_sets_that_are_calibrated_at_all_orders_cover_there(tables):
    for name in gemma.DATA:
        rows = {r["calibrated"]: r for r in of(tables["sets"], name, gemma.GEMMA_LETTERS)}
        assert rows["at all orders"]["coverage"] == pytest.approx(0.9, abs=0.06)
        assert rows["averaged scores"]["lowest coverage of an order"] == pytest.approx(
            rows["averaged scores"]["coverage"]
        )


def test_confidence_is_averaged_over_the_orders_where_the_right_answer_has_a_letter(scans, tables):
    name = "ARC-Challenge"
    stored = scans[name][0].data.sel(model=gemma.GEMMA_LETTERS)["confidence"].values
    orders = [*itertools.permutations(range(4))]
    for place, row in enumerate(of(tables["letters"], name, gemma.GEMMA_LETTERS)):
        by_hand = [
            np.mean([stored[q, k] for k, o in enumerate(orders) if o[place] == right])
            for q, right in enumerate(scans[name][0].data["label"].values)
        ]
        assert row["confidence, right answer here"]["value"] == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("count", [4, 5])
def test_the_orders_by_hand_are_those_of_the_scan_and_balance_pairs(count):
    group = choices.orders_of(count)
    rows = [tuple(map(int, row)) for row in group.parts["rows"]]
    assert {*rows} == {*choices.orders_by_hand(count)}
    assert group.closed
    for places in itertools.permutations(range(count), 2):
        pairs = [tuple(row[place] for place in places) for row in rows]
        shares = {pair: pairs.count(pair) for pair in itertools.permutations(range(count), 2)}
        assert len({*shares.values()}) == 1


@pytest.fixture(scope="module")
def small():
    """A random language model of the family of Gemma, with a tokenizer of bytes."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    core = tokenizers.ByteLevelBPETokenizer()
    texts = [f"Question: question\n{letter}. Answer: {letter}" for letter in LETTERS]
    core.train_from_iterator(texts * 20, vocab_size=400)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core._tokenizer)
    torch.manual_seed(0)
    config = transformers.Gemma3TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=8,
        initializer_range=0.4,
        sliding_window=16,
    )
    network = transformers.Gemma3ForCausalLM(config)
    return ob.predictors.CausalLM(network, tokenizer, prompt=gemma.PROMPT, batch_size=24)


def test_a_run_with_a_small_model_agrees_with_plain_python(small, tmp_path, monkeypatch):
    rows = {"arc": questions(4, 26), "csqa": questions(5, 26)}
    monkeypatch.setattr(gemma, "loaded", lambda folder: small)
    monkeypatch.setattr(gemma, "loaded_minilm", lambda: fair)
    for module in (choices, gemma):
        monkeypatch.setattr(
            module,
            "questions_of",
            lambda file: rows[file.partition("_")[0]][: 2 if file.endswith("dev") else None],
        )
    outcome = gemma.run({"questions": 22, "after examples": 5, "again": 3, "same": 2}, 0, tmp_path)
    for row in outcome.tables["again"].rows:
        assert row["difference"] < 1e-5
        assert row["answer changes"]["n"] == 3
    tables = {key: table.rows for key, table in outcome.tables.items()}
    verdicts = gemma.decide(tables)
    assert verdicts[f"{gemma.GEMMA_LIKELIHOOD}, ARC-Challenge"] is Verdict.INVARIANT
    assert verdicts[f"{gemma.GEMMA_LETTERS}, ARC-Challenge"] is not Verdict.INVARIANT
    assert len(outcome.pictures["letters"].figure.axes) == 3


def test_the_examples_are_written_as_the_prompt_is(small):
    text, options, _ = questions(4, 1)[0]
    filled = gemma.PROMPT.replace("{question}", text)
    lines = "\n".join(f"{letter}. {o}" for letter, o in zip("ABCD", options, strict=True))
    assert choices.listed(text, options) == filled.replace("{options}", lines)


def test_questions_with_an_option_twice_are_left_out(tmp_path, monkeypatch):
    import csv
    import gzip

    folder = tmp_path / "choices"
    folder.mkdir()
    rows = [["one?", "a", "b", "b", "c", "A"], ["two?", "a", "b", "c", "d", "B"]]
    with gzip.open(folder / "x.csv.gz", "wt", newline="") as file:
        csv.writer(file).writerows(rows)
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path))
    assert choices.questions_of("x") == [("two?", ["a", "b", "c", "d"], "B")]


def test_the_rule_reaches_its_verdicts_and_decides_by_limits():
    def verdict(change, low, high, surplus):
        row = {
            "model": "m",
            "questions": "q",
            "largest change of a probability": change,
            "answer changes": {"low": low, "high": high},
            "confidence minus accuracy": {"low": surplus[0], "high": surplus[1]},
        }
        return gemma.decide({"models": [row]})["m, q"]

    assert verdict(1e-6, 0, 0.04, (0, 0)) is Verdict.INVARIANT
    assert verdict(0.2, 0, 0.04, (0.3, 0.4)) is Verdict.TOLERATED
    assert verdict(0.2, 0.04, 0.1, (0.3, 0.4)) is Verdict.OPEN
    assert verdict(0.2, 0.9, 1, (0.11, 0.4)) is Verdict.CONFIDENT
    assert verdict(0.2, 0.9, 1, (-0.04, 0.04)) is Verdict.UNCONFIDENT
    assert verdict(0.2, 0.9, 1, (0.01, 0.2)) is Verdict.NOT_INVARIANT
    assert verdict(0.2, 0.9, 1, (-0.2, 0.01)) is Verdict.NOT_INVARIANT
