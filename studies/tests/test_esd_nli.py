"""The ESD study on sentence pairs: stacked trainings, the choice of lambda, a tiny run."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from orbical import losses
from orbical.errors import InputError
from orbical.training import Selection
from orbical_studies.__main__ import main
from orbical_studies.data import sentence_pairs as texts
from orbical_studies.data.sentence_pairs import SentencePair
from orbical_studies.esd import nli, stacks, transformer
from orbical_studies.esd.claims import SentencePairs
from orbical_studies.esd.stacks import Objective, Recipe, Samples, Trial, train_together
from orbical_studies.framework import Results
from orbical_studies.framework.packs import write_pack
from orbical_studies.networks.sentence_pairs import PARTS, PairEncoder, from_bert

SIZES = {"fit": 200, "calibration": 60, "validation": 80, "snli_test": 90, "lingnli_val": 70}


def made_up_pairs() -> dict[str, np.ndarray]:
    """Make pairs whose relation is how many tokens of the hypothesis the premise has."""
    draw = np.random.default_rng(0)
    arrays = {"premise": np.array(4, np.uint8), "table": draw.normal(size=(30, 8))}
    for name, size in SIZES.items():
        labels = draw.integers(0, 3, size)
        tokens = draw.integers(1, 30, (size, 7))
        for row, label in zip(tokens, labels, strict=True):
            row[4 : 4 + label] = row[:label]
        arrays |= {f"tokens_{name}": tokens.astype(np.uint16), f"labels_{name}": labels}
    arrays["votes"] = draw.multinomial(5, [0.5, 0.3, 0.2], SIZES["lingnli_val"])
    return arrays


def stack_of(trials: list[Trial]) -> stacks.Classifiers:
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(90, 5, generator=draw)
    samples = Samples(inputs, (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long())
    fit, held = (
        Samples(samples.inputs[at], samples.labels[at]) for at in (slice(60), slice(60, 90))
    )
    recipe = Recipe(lambda: torch.nn.Linear(5, 3), rate=0.05, decay=0.01)
    return train_together(recipe, trials, fit, held)


def test_a_network_trains_in_a_stack_as_it_does_alone() -> None:
    trials = [Trial("NLL", 0.0, 0.0, 1, 16, 3), Trial("ESD", 5.0, 0.0, 0, 16, 3)]
    trials += [Trial("MMCE", 5.0, 0.4, 2, 16, 3), Trial("SB-ECE", 1.0, 0.01, 0, 16, 3)]
    together = stack_of(trials)
    weights = together.parameters["weight"]
    for place, trial in enumerate(trials):
        # The likelihood alone takes as many steps as the others of its stack.
        alone = stack_of([trial, *trials[1:2]]).parameters["weight"][0]
        assert torch.allclose(weights[place], alone, atol=1e-6), trial
    assert not torch.allclose(weights[1], weights[3], atol=1e-3)  # one seed, two losses


def test_the_objective_is_the_sum_of_the_losses_of_every_network() -> None:
    trials = [Trial("ESD", 3.0, 0.0, 0, 9, 1), Trial("NLL", 0.0, 0.0, 0, 9, 1)]
    trials += [Trial("MMCE", 2.0, 0.2, 0, 9, 1), Trial("SB-ECE", 0.5, 0.1, 0, 9, 1)]
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 18, 3, generator=draw, requires_grad=True)
    labels = torch.randint(3, (4, 18), generator=draw)
    own = [
        lambda *held: 3 * losses.esd(*held),
        lambda *held: torch.zeros(()),
        lambda *held: 2 * losses.mmce(*held, phi=0.2),
        lambda *held: 0.5 * losses.sb_ece(*held, temperature=0.1),
    ]
    expected = sum(
        functional.cross_entropy(z[:9], y[:9]) + loss(z[9:], y[9:])
        for z, y, loss in zip(logits, labels, own, strict=True)
    )
    found = Objective(trials, torch.device("cpu"))(logits, labels)
    assert torch.allclose(found.float(), expected.float())
    slopes = [torch.autograd.grad(value, logits)[0] for value in (found, expected)]
    assert torch.allclose(*slopes, atol=1e-6)


def test_the_likelihood_alone_learns_from_all_and_a_loss_from_what_is_held_out() -> None:
    every = torch.arange(50)
    for loss, own in (("NLL", range(50)), ("ESD", range(40))):
        rows = stacks._batches(Trial(loss, 1.0, 0.0, 3, 8, 1), every, 40, (30, 8))
        assert rows.shape == (30, 16)
        assert {*rows[:, :8].flatten().tolist()} == {*own}
        assert {*rows[:, 8:].flatten().tolist()} == {*range(40, 50)}
        assert len(rows[:5, :8].unique()) == 40  # one pass comes before the next
    first, second = (
        stacks._batches(Trial("ESD", weight, 0.0, 3, 8, 1), every, 40, (30, 8)) for weight in (1, 2)
    )
    assert torch.equal(first, second)  # all weights of a seed see the same batches


def rows_of(scores: dict[float, tuple[float, float]]) -> list[dict[str, object]]:
    usual = {"batch": 512, "epochs": nli.EPOCHS, "seed": 0}
    rows = [
        usual
        | {"loss": loss, "inner": inner[0], "weight": weight}
        | {"validation.accuracy": accuracy, "validation.ece": ece}
        for loss, inner in nli.INNER.items()
        for weight, (accuracy, ece) in scores.items()
    ]
    plain = {"loss": "NLL", "inner": 0.0, "weight": 0.0}
    return [*rows, usual | plain | {"validation.accuracy": 0.7, "validation.ece": 0.2}]


def test_lambda_is_chosen_by_the_papers_rule_and_the_chosen_one_is_trained_again() -> None:
    rows = rows_of({0.2: (0.7, 0.1), 2.0: (0.69, 0.05), 10.0: (0.68, 0.01)})
    rows.append(rows[0] | {"seed": 1, "weight": 5.0, "validation.ece": 0.0})  # decides nothing
    chosen = nli.choices(rows)
    assert {loss: one.choice for loss, one in chosen.items()} == dict.fromkeys(nli.INNER, 2.0)
    trials = nli.chosen_weights(chosen)
    assert len({*map(str, trials)}) == len(trials) == 3 * 2 * 5 + 3 * 5 + 2 * 3
    assert {trial.weight for trial in trials if trial.loss != "NLL"} == {2.0}
    assert [trial.batch for trial in trials][::10] == [64, 128, 256, 512, 512, 512]
    with pytest.raises(
        InputError, match=r"^work: expected finished trainings of NLL and MMCE, got 0"
    ):
        nli.choices(rows, epochs=3)


def test_stacks_have_one_batch_size_and_are_not_too_large() -> None:
    chosen = nli.choices(rows_of({1.0: (0.7, 0.1)}))
    for stack in nli.stacked(nli.chosen_weights(chosen)):
        assert len({trial.batch for trial in stack}) == 1
        assert len(stack) <= nli.STACK


def test_the_study_of_pairs_runs_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nli, "PAPERS", (2.0,))
    monkeypatch.setattr(nli, "INNER", {"SB-ECE": (0.01, 0.1), "ESD": (0.0,)})
    monkeypatch.setattr(nli, "FRESH", (1,))
    monkeypatch.setattr(nli, "SMALLER_BATCHES", (32,))
    monkeypatch.setattr(nli, "network", lambda premise: nli.CrossAttention(premise, 8, 8))
    write_pack(tmp_path / "work" / nli.PACK, made_up_pairs())
    options = ["--epochs", "2", "--results", str(tmp_path), "--work", str(tmp_path / "work")]
    for step in ("nli", "collect-nli", "nli"):
        main(["esd", step, *options])
    trained = 2 + 2 + 2 + 2 + 1  # likelihood, weights, smaller batches, chosen, inner parameter
    assert capsys.readouterr().out.count(f"0 trainings to run, {trained} finished before") == 2
    rows = Results(tmp_path)["nli"]
    assert len(rows) == trained
    assert rows["test.accuracy"].between(0, 1).all()
    assert (rows["test.low"] <= rows["test.ece"] + 1e-6).all()
    assert rows["lingnli.agreement"].between(0.2, 0.6).all()
    with np.load(tmp_path / "work/nli/NLL-lambda=0-inner=0-batch=512-epochs=2-seed=0.npz") as kept:
        right = kept["snli_test"].argmax(1) == made_up_pairs()["labels_snli_test"]
    assert rows["test.accuracy"][0] == pytest.approx(right.mean(), abs=1e-6)


def test_parts_have_no_premise_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up(name: str) -> list[SentencePair]:
        start = {"snli_dev": 0, "mnli_dev": 300, "snli_test": 295}[name]
        return [SentencePair(f"Premise {start + i // 3}", f"h {i}", i % 3) for i in range(900)]

    monkeypatch.setattr(nli, "sentence_pairs", made_up)
    parts = nli.split(("snli_dev", "mnli_dev"), ("snli_test",))
    premises = {name: {pair.source for pair in pairs} for name, pairs in parts.items()}
    assert len(premises["snli_test"]) == 300
    for one in premises:
        for other in premises:
            assert one == other or not premises[one] & premises[other]
    assert len(premises["validation"]) == round(nli.VALIDATION * 295)
    assert all(pair.source.startswith("premise") for pair in parts["fit"])


def test_tokens_are_numbered_anew_and_keep_their_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["a", "dog", "runs", "cat", "sleeps"]

    def tokens(texts: object, most: int) -> np.ndarray:
        rows = [[10 * words.index(word) + 1 for word in text.split()] for text in texts]  # type: ignore[attr-defined]
        return np.array([(row + [0] * most)[:most] for row in rows], np.uint16)

    pairs = {"fit": [SentencePair("a dog runs", "cat", 0)]}
    pairs["lingnli_val"] = [SentencePair("a cat", "runs", 0, (4, 1, 0))]
    pairs["snli_test"] = [SentencePair("a", "sleeps", 2)]
    table = np.arange(50 * 2, dtype=np.float16).reshape(50, 2)
    monkeypatch.setattr(nli, "tokens", tokens)
    monkeypatch.setattr(nli, "token_vectors", lambda: table)
    monkeypatch.setattr(nli, "split", lambda *_: pairs)
    main(["esd", "pack-nli", "--results", str(tmp_path), "--work", str(tmp_path)])
    with np.load(tmp_path / nli.PACK) as packed:
        assert packed["tokens_fit"][0, :4].tolist() == [1, 2, 3, 0]
        assert packed["tokens_snli_test"][0, nli.PREMISE] == 5
        assert packed["table"][5].tolist() == table[40].tolist()
        assert packed["table"][0].tolist() == [0, 0]


@pytest.mark.parametrize("module", ["nli", "tiny"])
def test_training_imports_little_more_than_torch_and_numpy(module: str) -> None:
    absent = ("scipy", "sklearn", "xarray", "zarr", "jinja2", "matplotlib", "tokenizers", "cv2")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}))\n"
        f"import orbical_studies.framework.command, orbical_studies.esd.{module}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pairs_are_read_with_their_annotators(tmp_path: Path) -> None:
    lines = ["premise\thypothesis\tlabel\tannotator_labels"]
    lines += ['A "dog" runs \tit sleeps\tcontradiction\tneutral|contradiction|contradiction']
    path = tmp_path / "lingnli_val.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    (pair,) = texts.sentence_pairs("lingnli_val", tmp_path)
    assert pair == SentencePair('A "dog" runs', "it sleeps", 2, (0, 1, 2))
    assert pair.source == 'a "dog" runs'
    path.write_bytes(gzip.compress(lines[0].encode() + b"\na\tb\tmaybe\t"))
    with pytest.raises(InputError, match=r"^folder: expected labels .* got maybe"):
        texts.sentence_pairs("lingnli_val", tmp_path)
    path.write_bytes(gzip.compress(b"text\nsome"))
    with pytest.raises(InputError, match=r"^folder: expected the columns premise, hypothesis"):
        texts.sentence_pairs("lingnli_val", tmp_path)


def test_without_the_package_token_vectors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "PACKAGE", "no_such_package==1.0")
    with pytest.raises(
        InputError, match=r"^wordllama: .* got none; pip install tokenizers no_such_package"
    ):
        texts.token_vectors()


def test_claims_about_pairs_follow_from_their_trainings_and_stay_open_without_them() -> None:
    trials = nli.every_weight() + nli.chosen_weights(
        {loss: Selection(1.0, 0.7, 0.1, (1.0,)) for loss in nli.INNER}
    )
    eces = {"NLL": 0.05, "MMCE": 0.04, "SB-ECE": 0.03, "ESD": 0.02}
    rows = pd.DataFrame({str(trial): {**vars(trial)} for trial in trials}).T.infer_objects()
    shift = rows["seed"] / 1000 + (rows["inner"] - 0.4).abs() * (rows["loss"] == "MMCE") / 10
    rows["test.ece"] = rows["loss"].map(eces) + shift * (1 + rows["weight"] / 10)
    rows["test_ts.ece"] = rows["test.ece"] - 0.001
    rows["validation.accuracy"], rows["validation.ece"] = 0.7, (rows["weight"] - 1).abs() / 10
    found = SentencePairs(rows)
    assert found.claims["lower"].outcome == found.claims["best"].outcome == "confirmed"
    assert found.claims["scaled"].outcome == found.claims["batch"].outcome == "confirmed"
    assert (
        found.claims["temperature"].outcome == "contradicted"
    )  # ESD is lower than one temperature
    assert found.spans["MMCE"][1] > 3 > found.spans["SB-ECE"][1]
    assert not found.sensitive
    unfinished = (rows["loss"] == "ESD") & (rows["batch"] == 512) & (rows["seed"] > 3)
    without = SentencePairs(rows[~unfinished])
    assert without.claims["lower"].missing == ("ESD",)
    assert without.claims["lower"].outcome == without.claims["best"].outcome == "open"
    assert without.claims["temperature"].outcome == "contradicted"  # two losses are enough for that


def test_the_transformer_reads_published_weights_and_ignores_what_is_absent() -> None:
    draw = np.random.default_rng(0)
    shapes = {"word": 9, "position": 8, "token_type": 2}
    published = {
        f"embeddings.{name}_embeddings.weight": draw.normal(size=(count, 8))
        for name, count in shapes.items()
    }
    published |= {
        f"embeddings.LayerNorm.{kind}": draw.normal(size=8) for kind in ("weight", "bias")
    }
    for name in PARTS:
        sizes = {"intermediate.dense": (32, 8), "output.dense": (8, 32)}
        shape = (8,) if "Norm" in name else sizes.get(name, (8, 8))
        published[f"encoder.layer.0.{name}.weight"] = draw.normal(size=shape)
        published[f"encoder.layer.0.{name}.bias"] = draw.normal(size=shape[0])
    network = PairEncoder(9, separator=2, width=8, layers=1, heads=2, longest=8).eval()
    state = {name: each.float() for name, each in from_bert(published, layers=1).items()}
    missing = network.load_state_dict(state, strict=False)
    assert {*missing.missing_keys} == {"classify.weight", "classify.bias"}
    assert not missing.unexpected_keys
    whole, cut = ([1, 5, 2, 7, 3, 2, 0, 0], [1, 5, 2, 7, 3, 2])
    both = [network(torch.tensor([each])) for each in (whole, cut)]
    assert torch.allclose(*both, atol=1e-6)
    moved = network(torch.tensor([[1, 7, 2, 5, 3, 2]]))  # premise and hypothesis are told apart
    assert not torch.allclose(both[1], moved, atol=1e-3)


def test_the_rate_with_the_best_validation_accuracy_trains_the_losses() -> None:
    first = transformer.planned("snli", [])
    assert [trial.rate for trial in first] == [*transformer.RATES]
    scores = zip(first, (0.7, 0.8, 0.75), strict=True)
    rows = [
        {"name": str(trial), **vars(trial), "validation.accuracy": accuracy, "validation.ece": 0.05}
        for trial, accuracy in scores
    ]
    second = transformer.planned("snli", rows)
    assert {trial.rate for trial in second} == {transformer.RATES[1]}
    assert {(trial.loss, trial.seed) for trial in second} > {("ESD", 0), ("NLL", 1)}
    for place, trial in enumerate(second):
        scored = {"validation.accuracy": 0.8, "validation.ece": 0.01 * place}
        rows.append({"name": str(trial), **vars(trial), **scored})
    last = transformer.planned("snli", rows)
    chosen = {trial.loss: trial.weight for trial in last}
    assert chosen == {"NLL": 0, "MMCE": 10, "SB-ECE": 0.4, "ESD": 10}  # first of each: least ECE
    assert {trial.seed for trial in last} == {1, 2, 3, 4, 5}
