"""`orbical calibration`, run as a user runs it, on saved outputs."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from calibration_command import FEW, outputs, refused, run

import orbical as ob
from orbical.calibration import brier, ece, nll, top_label


def test_json_holds_every_measure_as_the_functions_give_it(tmp_path: Path) -> None:
    path = outputs(tmp_path, "net")
    answer = json.loads(run(path, "--json", *FEW))["outputs"]["net"]
    with np.load(path) as file:
        given = {name: torch.from_numpy(file[name]) for name in ("logits", "labels")}
    confidence, correct = top_label(**given)
    expected = {
        "accuracy": correct.double().mean(),
        "nll": nll(**given),
        "brier": brier(**given),
        "ece": ece(confidence, correct),
    }
    for name, value in expected.items():
        assert answer[name]["value"] == pytest.approx(float(value), abs=1e-6)
        assert answer[name]["low"] <= answer[name]["value"] <= answer[name]["high"]
    assert {"ks", "esd", "smooth_ece", "mmce", "skce", "classwise_ece"} <= set(answer)
    # Labels were drawn from these probabilities: the scores are what calibration predicts.
    for name in ("nll", "brier", "accuracy", "ece"):
        row = answer[name]
        assert row["calibrated_low"] - 0.02 <= row["value"] <= row["calibrated_high"] + 0.02


def test_two_files_are_compared_in_pairs(tmp_path: Path) -> None:
    good, bad = outputs(tmp_path, "good"), outputs(tmp_path, "bad", sharpness=4.0)
    rows = json.loads(run(good, bad, "--json", "--resamples", "200"))["comparisons"]
    by_measure = {row["measure"]: row for row in rows}
    assert list(by_measure) == ["accuracy", "nll", "brier", "ece", "ks", "esd", "mmce"]
    for name in ("nll", "brier", "ece"):
        assert by_measure[name]["a"] == "good"
        assert by_measure[name]["high"] < 0
        assert by_measure[name]["p_value"] < 0.05
    assert abs(by_measure["accuracy"]["difference"]) < 0.02  # a scale leaves the order as it is
    text = run(good, bad, *FEW)
    assert "Differences on the same samples" in text


def test_files_of_other_samples_are_not_compared(tmp_path: Path) -> None:
    one = outputs(tmp_path, "one")
    count = len(np.load(one)["labels"])
    other = tmp_path / "other.npz"
    for samples, reason in (
        (10, f"they have {count} and 10 samples"),
        (count, "their labels differ"),
    ):
        np.savez(other, probs=np.full((samples, 2), 0.5), labels=np.zeros(samples, int))
        with pytest.warns(UserWarning, match=f"one and other are not compared: {reason}"):
            assert json.loads(run(one, other, "--json", *FEW))["comparisons"] == []


def test_the_table_shows_value_interval_and_calibrated_value(tmp_path: Path) -> None:
    text = run(outputs(tmp_path, "net"), *FEW)
    for word in ("smooth ECE", "95% interval", "if calibrated", "class-wise ECE"):
        assert word in text


def test_80_columns_hold_every_interval_on_one_line(tmp_path: Path) -> None:
    lines = run(outputs(tmp_path, "net"), outputs(tmp_path, "net[b]"), *FEW).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("net[b]" in line for line in lines)  # no markup of the console
    for name in ("accuracy", "ECE", "ESD", "SKCE"):
        (line, *_) = [line for line in lines if line.split()[:1] == [name]]
        assert line.count("[") == line.count("]") == 2


def test_an_infinite_likelihood_has_no_interval_and_is_null_in_json(tmp_path: Path) -> None:
    path = tmp_path / "sure.npz"
    np.savez(path, probs=[[1.0, 0.0], [0.5, 0.5], [0.3, 0.7]], labels=[1, 0, 1])
    (line,) = [line for line in run(path, *FEW).splitlines() if line.strip().startswith("NLL")]
    assert line.split()[1:3] == ["inf", "-"]

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    answer = json.loads(run(path, "--json", *FEW), parse_constant=refuse)
    assert answer["outputs"]["sure"]["nll"]["value"] is None


def test_csv_has_a_row_for_each_measure(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(outputs(tmp_path, "net"), "--csv", *FEW))))
    assert {row["measure"] for row in rows} >= {"ece", "nll"}
    assert float(rows[0]["low"]) <= float(rows[0]["value"])


def test_runs_of_a_method_give_mean_and_standard_deviation(tmp_path: Path) -> None:
    paths = [outputs(tmp_path, f"esd-{seed}", seed=seed) for seed in range(3)]
    outputs(tmp_path, "nll-0", sharpness=3.0)
    runs = ["--runs", f"esd={tmp_path}/esd-*.npz", "--runs", f"nll={tmp_path}/nll-*.npz"]
    rows = json.loads(run(*runs, "--json"))
    (row,) = [row for row in rows if row["method"] == "esd" and row["measure"] == "ece"]
    values = []
    for path in paths:
        with np.load(path) as file:
            values.append(float(ece(*top_label(logits=file["logits"], labels=file["labels"]))))
    assert row["runs"] == 3
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["sd"] == pytest.approx(np.std(values, ddof=1))
    table = run(*runs, "--latex")
    assert table.startswith(r"\begin{tabular}")
    assert r"\pm" in table
    assert "nll & $" in table
    assert "±" in run(*runs)


def test_the_table_says_how_large_an_error_could_have_been_missed(tmp_path: Path) -> None:
    few = outputs(tmp_path, "few")
    with np.load(few) as file:
        np.savez(few, logits=file["logits"][:16], labels=file["labels"][:16])
    words = " ".join(run(few, *FEW).split())
    assert re.search(r"ECE: no error detected; one of up to 0\.\d+ could have been missed", words)
    words = " ".join(run(outputs(tmp_path, "sure", sharpness=9.0), *FEW).split())
    assert re.search(r"ECE: error detected \(at least 0\.\d+", words)


def test_a_reliability_figure_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "plots" / "net.png"  # in a folder that is made
    run(outputs(tmp_path, "net"), "--figure", picture, *FEW)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_csv_and_latex_of_several_files_hold_their_differences(tmp_path: Path) -> None:
    good, bad = outputs(tmp_path, "good"), outputs(tmp_path, "bad", sharpness=4.0)
    rows = list(csv.DictReader(io.StringIO(run(good, bad, "--csv", *FEW))))
    answer = json.loads(run(good, bad, "--json", *FEW))
    values = sum(len(table) for table in answer["outputs"].values())
    assert len(rows) == values + len(answer["comparisons"])
    (row,) = [row for row in rows if row["minus"] == "bad" and row["measure"] == "nll"]
    (expected,) = [part for part in answer["comparisons"] if part["measure"] == "nll"]
    assert row["outputs"] == "good"
    assert float(row["value"]) == expected["difference"]
    assert float(row["p_value"]) == expected["p_value"]
    latex = run(good, bad, "--latex", *FEW)
    assert latex.count(r"\begin{tabular}") == 2
    assert "good minus bad & NLL" in latex


def test_bad_input_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, scores=np.zeros(3))
    text = tmp_path / "text.npz"
    text.write_text("no archive")
    objects = tmp_path / "objects.npz"
    np.savez(objects, probs=np.array([{}], dtype=object), labels=np.zeros(1, int))
    good = outputs(tmp_path, "good")
    assert "expected a file, got" in refused(tmp_path / "absent.npz")
    assert "got scores" in refused(wrong)
    assert "cannot be read as numbers" in refused(text)
    assert "probs of" in refused(objects)
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert "expected an .npz file with named arrays" in refused(tmp_path / "one.npy")
    assert "FILES: expected outputs.npz" in refused()
    assert "at most one of them" in refused(good, "--json", "--csv")
    assert "--runs: expected NAME=PATTERN, got 'esd'" in refused("--runs", "esd")
    assert "expected files that match" in refused("--runs", f"a={tmp_path}/none-*.npz")
    assert "level" in refused(good, "--level", "2")
    assert "bins" in refused(good, "--bins", "0")


def test_logits_come_before_the_probs_made_of_them(tmp_path: Path) -> None:
    path = tmp_path / "both.npz"
    logits = np.random.default_rng(0).normal(size=(50, 3))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for kind in ("f8", "f4", "f2"):
        np.savez(path, logits=logits, probs=probs.astype(kind), labels=np.zeros(50, int))
        assert set(ob.data.read_outputs(path)) == {"logits", "labels"}


@pytest.mark.parametrize(
    ("probs", "given"),
    [
        (np.full((50, 3), 1 / 3), "probabilities that differ by up to 0\\.5"),
        (np.full((49, 3), 1 / 3), r"probs of shape \(49, 3\) beside logits of shape \(50, 3\)"),
    ],
)
def test_probs_that_are_not_of_the_logits_beside_them_are_refused(
    probs: np.ndarray, given: str, tmp_path: Path
) -> None:
    path = tmp_path / "both.npz"
    logits = np.random.default_rng(0).normal(size=(50, 3))
    np.savez(path, logits=logits, probs=probs, labels=np.zeros(50, int))
    expected = f"both.npz: expected probs to be the softmax of logits within 1e-04, got {given}"
    with pytest.raises(ob.errors.InputError, match=expected):
        ob.data.read_outputs(path)


def test_real_outputs_of_an_over_confident_network(shared_data: Path) -> None:
    path = shared_data / "logits" / "lenet-5-cifar-10.npz"
    if not path.is_file():
        pytest.skip("real data absent: logits/lenet-5-cifar-10.npz")
    answer = json.loads(run(path, "--json", "--resamples", "100"))["outputs"][path.stem]
    with np.load(path) as file:
        probs, labels = file["probs"].astype(np.float64), file["labels"].astype(int)
    gaps = np.zeros(15)
    confidence, hit = probs.max(1), probs.argmax(1) == labels
    place = np.clip(np.ceil(confidence * 15).astype(int) - 1, 0, 14)
    np.add.at(gaps, place, hit - confidence)
    assert answer["ece"]["value"] == pytest.approx(np.abs(gaps).sum() / len(labels), abs=1e-5)
    assert answer["accuracy"]["value"] == pytest.approx(hit.mean())
    assert answer["accuracy"]["calibrated"] == pytest.approx(confidence.mean(), abs=1e-6)
    for name in ("ece", "smooth_ece", "ks", "esd", "mmce", "skce", "classwise_ece"):
        assert answer[name]["low"] > answer[name]["calibrated_high"], name


def test_large_numbers_and_long_names_leave_the_comparison_readable(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    mean, spread = draw.normal(0, 300, 60), draw.uniform(50, 90, 60)
    target = mean + spread * draw.normal(size=60)
    paths = []
    for name, factor in (("a-rather-long-name-of-a-model", 1.0), ("another-long-name", 9.0)):
        paths.append(tmp_path / f"{name}.npz")
        np.savez(paths[-1], mean=mean, variance=factor * spread**2, target=target)
    lines = run(*paths, *FEW).splitlines()
    assert max(map(len, lines)) <= 80
    title = "a-rather-long-name-of-a-model minus another-long-name"
    start = next(i for i, line in enumerate(lines) if line.strip() == title)
    (row,) = [line for line in lines[start:] if line.startswith("regression ESD  ")]
    assert row.count("[") == row.count("]") == 1
    assert "Differences on the same samples" in lines[-1]


def test_latex_writes_powers_of_ten_as_such(tmp_path: Path) -> None:
    text = run(outputs(tmp_path, "a^b"), "--latex", *FEW)
    assert r"\times 10^{-" in text
    assert "e-0" not in text
    assert r"a\textasciicircum{}b" in text


def test_words_among_the_numbers_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "net.npz", mean=["a", "b"], variance=[1.0, 1.0], target=[1.0, 2.0])
    assert "expected real numbers for mean, got <U1" in refused(tmp_path / "net.npz", *FEW)


def test_cautions_are_printed_as_text_and_as_json(tmp_path: Path) -> None:
    labels = (np.arange(100) < 3).astype(int)
    files = [tmp_path / f"{name}.npz" for name in "ab"]
    for file, sure in zip(files, (0.97, 0.9), strict=True):
        np.savez(file, probs=np.tile([sure, 1 - sure], (100, 1)), labels=labels)
    text = " ".join(run(*files, *FEW).split())
    assert "3 wrong (or correct) predictions, fewer than 6: the interval may be too short" in text
    content = json.loads(run(*files, "--json", *FEW))
    assert "fewer than 6" in content["outputs"]["a"]["ece"]["caution"]
    assert content["outputs"]["a"]["accuracy"]["caution"] == ""
    by_measure = {row["measure"]: row["caution"] for row in content["comparisons"]}
    assert "fewer than 6" in by_measure["ece"]
    assert by_measure["ks"] == ""
