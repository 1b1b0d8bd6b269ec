"""`orbical check` measures what it says, and its exit status follows."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
import typer
from typer.testing import CliRunner, Result

import orbical as ob
from orbical.calibration import ece
from orbical.cli import calibration, report, view
from orbical.cli import check as command
from orbical.errors import InputError, StoreError

OF_REGRESSORS = ("max_mahalanobis", "max_worst_mahalanobis", "max_bleed")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}
    path: Path = tmp_path_factory.mktemp("check") / "run.zarr"
    ob.scan(
        nets,
        (images[:80], labels[:80]),
        group="rotations:8",
        task="classification",
        out=path,
        progress=False,
    )
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where no pyproject.toml sets limits."""
    monkeypatch.chdir(tmp_path)


def run(*words: object) -> Result:
    app = typer.Typer()
    app.command()(command.check)
    return CliRunner().invoke(app, [str(word) for word in words])


def test_kept_limits_exit_with_0_and_one_line_each(store: Path) -> None:
    done = run(store, "--max-gap", 1, "--min-accuracy", 0)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("pass") for line in lines)
    assert "(max_gap, 80 samples)" in lines[0]


def test_a_broken_limit_exits_with_1(store: Path) -> None:
    done = run(store, "--max-gap", 1, "--min-accuracy", 0.99, "--model", "a")
    assert done.exit_code == 1
    assert "FAIL a: accuracy, mean over the orbit" in done.output
    assert "1 of 2 checks failed" in done.output


def test_regressors_have_limits_of_their_own(tmp_path: Path, store: Path) -> None:
    x = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    path = tmp_path / "vectors.zarr"
    scan = ob.scan(
        lambda x: (0.5 * x, x[:, 0].square() + 0.1),
        (x, x),
        group="cyclic:4",
        task=task,
        out=path,
        progress=False,
    )
    judged = ob.check(scan, **dict.fromkeys(OF_REGRESSORS, 1.0))
    found = {one.name: one.value for one in judged}
    curve = ob.calibration.along_orbit(scan, "mahalanobis_calibration")
    assert found["max_mahalanobis"] == pytest.approx(float(curve.mean()))
    assert found["max_worst_mahalanobis"] == pytest.approx(float(curve.max()))
    assert found["max_bleed"] > 0
    assert run(path, "--max-worst-mahalanobis", 0.01).exit_code == 1
    with pytest.raises(InputError, match=r"^max_ece: expected .* got 'ece'"):
        ob.check(scan, max_ece=1.0)
    with pytest.raises(InputError, match=r"max_bleed: .* needs aleatoric variance"):
        ob.check(ob.load(store), max_bleed=1.0)
    with pytest.raises(InputError, match=r"known: .*max_nll, "):
        ob.check(ob.load(store), max_foo=1.0)
    with pytest.raises(InputError, match=r"max_nll: .* such as ece, got 'nll', .* outputs.npz"):
        ob.check(ob.load(store), max_nll=3.0)


def test_changing_answers_pass_fail_or_leave_doubt(store: Path, tmp_path: Path) -> None:
    scan = ob.load(store)
    found = ob.nero.consistency(scan)
    limits = {"pass": 1.0, "fail": 0.1, "inconclusive": float(found["changed"][0])}
    for outcome, limit in limits.items():
        assert ob.check(scan, max_changed=limit, models=["a"])[0].outcome == outcome
    assert "predictions that change on the orbit" in run(store, "--max-changed", 0.1).output
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector")
    x = torch.randn(10, 2)
    numbers = ob.scan(torch.nn.Linear(2, 2), x, group="cyclic:4", task=task, progress=False)
    with pytest.raises(InputError, match=r"max_changed: .* got a scan of regression; use max_gap"):
        ob.check(numbers, max_changed=0.1)


@pytest.mark.parametrize("labeled", [True, False])
def test_what_has_no_accuracy_says_which_limits_it_has(labeled: bool) -> None:
    images, masks = torch.rand(4, 1, 8, 8), torch.zeros(4, 8, 8, dtype=torch.int64)
    data = (images, masks) if labeled else images
    task = ob.tasks.Segmentation()
    scan = ob.scan(torch.nn.Conv2d(1, 3, 1), data, group="cyclic:4", task=task, progress=False)
    with pytest.raises(InputError) as raised:
        ob.check(scan, min_accuracy=0.9)
    has = "set a limit for its gap or score" if labeled else "set a limit for its gap"
    assert has in raised.value.remedy
    assert ("scan data with labels" in raised.value.remedy) is not labeled


def test_measured_values_are_those_of_the_library(store: Path) -> None:
    scan = ob.load(store)
    rules = [name for name in command.SHORTCUTS if name not in OF_REGRESSORS]
    limits = dict.fromkeys(rules, 0.0)
    judged = ob.check(scan, bins=10, **limits)
    found = {(one.name, one.model): one.value for one in judged}
    assert len(found) == 2 * len(rules)
    for model in scan.models:
        data = scan.data.sel(model=model)
        hits, confidence = data["correct"].values, data["confidence"].values
        each = [float(ece(confidence[:, g], hits[:, g], bins=10)) for g in range(8)]
        accuracy = hits.mean(0)
        expected = {
            "max_gap": np.sqrt((data["invariance_gap"].values.astype(float) ** 2).mean()),
            "min_accuracy": accuracy.mean(),
            "min_worst_accuracy": accuracy.min(),
            "max_accuracy_drop": accuracy[scan.group.identity] - accuracy.min(),
            "max_ece": np.mean(each),
            "max_worst_ece": max(each),
            "max_pooled_ece": float(ece(confidence.ravel(), hits.ravel(), bins=10)),
            "min_score": data["score"].values.mean(),
            "max_changed": np.ptp(data["predicted"].values, axis=1).astype(bool).mean(),
        }
        for name, value in expected.items():
            assert found[name, model] == pytest.approx(float(value), abs=1e-6), name


def test_limits_come_from_the_project_file_and_options_come_first(
    store: Path, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.orbical.check]\nmax-gap = 1e-9\nmin_accuracy = 0.0\n"
    )
    assert run(store).exit_code == 1
    assert run(store, "--max-gap", 1).exit_code == 0
    other = tmp_path / "limits.toml"
    other.write_text("[tool.orbical.check]\nmin_accuracy = 0.0\n")
    assert run(store, "--config", other).exit_code == 0


def test_junit_xml_has_a_case_for_each_rule_and_model(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "reports" / "check.xml"
    run(store, "--max-gap", 1, "--min-accuracy", 0.99, "--junit", path)
    root = ElementTree.parse(path).getroot()
    assert root.attrib["tests"] == "4"
    assert root.attrib["failures"] == "2"
    failed = [case for case in root if case.find("failure") is not None]
    assert {case.attrib["name"] for case in failed} == {"min_accuracy"}
    assert "accuracy, mean over the orbit" in failed[0][0].attrib["message"]


def test_a_check_that_too_few_samples_decide_has_a_status_of_its_own(
    store: Path, tmp_path: Path
) -> None:
    value = float(ob.calibration.mean_over_orbit(ob.load(store), "ece").sel(model="a"))
    words = (store, "--max-ece", value, "--model", "a", "--junit", tmp_path / "check.xml")
    done = run(*words)
    assert done.exit_code == command.INCONCLUSIVE
    assert done.output.startswith("inconclusive a: ECE, mean over the orbit")
    assert "0 of 1 checks failed, 1 inconclusive: too few samples to tell" in done.output
    root = ElementTree.parse(tmp_path / "check.xml").getroot()
    assert (root.attrib["failures"], root.attrib["skipped"]) == ("0", "1")
    strict = run(*words, "--strict")
    assert strict.exit_code == 1
    assert "1 inconclusive: too few samples to tell, which --strict counts" in strict.output
    root = ElementTree.parse(tmp_path / "check.xml").getroot()
    assert (root.attrib["failures"], root.attrib["skipped"]) == ("1", "0")
    (tmp_path / "pyproject.toml").write_text("[tool.orbical.check]\nstrict = true\n")
    assert run(*words).exit_code == 1


def test_all_numbers_are_said(store: Path) -> None:
    done = run(store, "--max-worst-ece", 0.9, "--model", "a", "--level", 0.9)
    assert re.match(
        r"pass a: ECE, at the worst element 0\.\d+ \[0\.\d+, 0\.\d+\] at 90% of 8 positions, "
        r"limit <= 0\.9 \(max_worst_ece, 80 samples\); caution: \d wrong .* too short\n",
        done.output,
    )


def calibrated_world(samples: int, elements: int, seed: int, accuracy: float = 0.0) -> ob.Scan:
    """A scan of a model that is right as often as it says, or with a given accuracy."""
    draw = torch.Generator().manual_seed(seed)

    def answers(images: torch.Tensor) -> torch.Tensor:
        confidence = 0.5 + torch.rand(len(images), generator=draw) / 2
        right = torch.rand(len(images), generator=draw) < (accuracy or confidence)
        first = torch.where(right, confidence, 1 - confidence)
        return torch.stack([first, 1 - first], 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of answers that differ from call to call
        return ob.scan(
            {"net": answers},
            (torch.rand(samples, 1, 2, 2), torch.zeros(samples, dtype=torch.long)),
            group=ob.groups.rotations(elements),
            task=ob.tasks.Classification(outputs="probabilities"),
            progress=False,
        )


def outcomes_of_calibrated_worlds(worlds: int) -> list[str]:
    limits = {"max_ece": 0.05, "max_worst_ece": 0.05, "max_worst_ks": 0.05}
    return [
        finding.outcome
        for samples in (200, 500)
        for seed in range(worlds)
        for finding in ob.check(calibrated_world(samples, 36, seed), resamples=50, **limits)
    ]


def test_calibrated_models_do_not_fail_by_chance() -> None:
    """By the raw ECE they failed in all of these worlds."""
    assert "fail" not in outcomes_of_calibrated_worlds(1)


@pytest.mark.slow
def test_calibrated_models_fail_no_more_often_than_the_level_says() -> None:
    found = outcomes_of_calibrated_worlds(50)
    assert found.count("fail") <= 0.05 * len(found)


def test_a_scan_of_perfect_answers_leaves_doubt_where_samples_are_few() -> None:
    for samples, outcome in ((20, "inconclusive"), (2000, "pass")):
        world = calibrated_world(samples, 4, 0, accuracy=1.0)
        limits = {"min_accuracy": 0.97, "max_accuracy_drop": 0.03, "min_worst_accuracy": 0.97}
        assert {one.outcome for one in ob.check(world, **limits)} == {outcome}


def rare_failures(samples: int) -> tuple[ob.Scan, Callable[[int], dict[str, float]]]:
    """A scan, and a function that fills it with a world of which two samples in 100 fail.

    The function returns the truths: of the score over the orbit, of the gap and of the changes.
    """
    scan = calibrated_world(samples, 4, 0)
    wrong = np.float32(0.025)

    def fill(seed: int) -> dict[str, float]:
        failed = np.random.default_rng(seed).random(samples) < 0.02
        scan.arrays["score"][:] = np.where(failed, wrong, 1.0)[None, :, None] * np.ones((1, 1, 4))
        scan.arrays["invariance_gap"][:] = np.where(failed, 0.7, 0.0)[None]
        scan.arrays["predicted"][:] = failed[None, :, None] * np.array([0, 0, 0, 1])
        scan.arrays["correct"][:] = ~(failed[None, :, None] & np.array([False, False, False, True]))
        return {
            "min_score": 1 - 0.02 * (1 - float(wrong)),
            "max_gap": float(np.sqrt(0.02 * 0.49)),
            "max_changed": 0.02,
            "min_worst_accuracy": 0.98,
            "max_accuracy_drop": 0.02,
        }

    return scan, fill


@pytest.mark.parametrize("samples", [1, 2, 5, 10, 30, 100])
def test_thresholds_that_rare_failures_break_do_not_pass(samples: int) -> None:
    """At n = 30 about half of these worlds show no failure, and passed."""
    scan, fill = rare_failures(samples)
    worlds, passed = 60, dict.fromkeys(fill(0), 0)
    for seed in range(worlds):
        truth = fill(seed)
        # A limit just on the wrong side of the truth.
        limits = {
            name: value * (1.001 if "min" in name else 0.999) for name, value in truth.items()
        }
        for row in ob.check(scan, **limits):
            passed[row.name] += row.outcome == "pass"
            if row.outcome == "inconclusive":
                assert row.needed is None or row.needed > samples
    assert max(passed.values()) <= 0.025 * worlds + 3


def test_one_sample_decides_nothing_and_the_number_that_would_is_said(tmp_path: Path) -> None:
    scan, fill = rare_failures(1)
    fill(0)
    limits = {"max_changed": 0.05, "max_gap": 0.1, "min_score": 0.9, "min_worst_accuracy": 0.9}
    rows = {row.name: row for row in ob.check(scan, **limits)}
    assert {row.outcome for row in rows.values()} == {"inconclusive"}
    assert rows["max_changed"].needed == 72
    assert rows["max_gap"].needed == pytest.approx(np.log(0.025) / np.log(1 - 0.1**2), abs=1)
    assert str(rows["max_changed"]) == (
        "inconclusive net: predictions that change on the orbit 0 [0, 0.975] at 95%, "
        "limit <= 0.05 (max_changed, 1 sample; about 72 samples would decide)"
    )
    scan, fill = rare_failures(72)
    scan.arrays["predicted"][:] = 0
    assert ob.check(scan, max_changed=0.05)[0].outcome == "pass"


def test_an_unbounded_quantity_needs_samples_enough_to_see_a_failure() -> None:
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector")
    for samples, outcome, needed in ((10, "inconclusive", 36), (36, "pass", None)):
        x = torch.randn(samples, 2)
        scan = ob.scan(lambda x: 2 * x, x, group="cyclic:4", task=task, progress=False)
        row = ob.check(scan, max_gap=0.1)[0]
        assert (row.outcome, row.needed) == (outcome, needed)
        assert ("10 samples; fewer than 36 decide nothing" in str(row)) == (samples == 10)


def test_a_table_says_how_many_samples_would_decide(tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", probs=np.full((30, 2), 0.5), labels=np.arange(30) % 2)
    row = ob.check(tmp_path / "few.npz", min_accuracy=0.45)[0]
    assert row.needed
    for flag in ("--markdown", "--json"):
        done = run(tmp_path / "few.npz", "--min-accuracy", 0.45, flag)
        assert done.exit_code == command.INCONCLUSIVE
        said = row.outlook if flag == "--markdown" else f'"needed": {row.needed}'
        assert said in done.output


@pytest.mark.parametrize("form", ["names", "indices", "columns named by numbers"])
def test_a_table_of_probabilities_is_read_as_the_same_arrays_are(tmp_path: Path, form: str) -> None:
    draw = np.random.default_rng(0)
    probs, labels = draw.dirichlet([1, 1, 1], 200).round(4), draw.integers(0, 3, 200)
    probs[:, 2] = 1 - probs[:, :2].sum(1)
    names = ["7", "5", "6"] if form.startswith("columns") else ["cat", "dog", "eel"]
    table = pd.DataFrame(probs, columns=names)
    table.insert(1, "label", labels if form == "indices" else [names[label] for label in labels])
    table.to_csv(tmp_path / "out.csv", index=False)
    table.to_csv(tmp_path / "out.tsv", index=False, sep="\t")
    np.savez(tmp_path / "out.npz", probs=probs, labels=labels)
    rows = [ob.check(tmp_path / f"out.{kind}", max_ece=0.1)[0] for kind in ("npz", "csv", "tsv")]
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("{}", {}),  # with its index, which has no name
        ("{}", {"sep": ";", "decimal": ",", "index": False}),
        ("{}", {"sep": "|"}),
        ("prob_{}", {"index": False}),
        ("p({})", {}),
    ],
)
@pytest.mark.parametrize(
    "names", [["cat", "dog", "eel"], ["d1", "d2", "d3"], ["1st", "2st", "3st"]]
)
@pytest.mark.parametrize("order", [1, -1])
def test_tables_are_read_as_pandas_and_spreadsheets_write_them(
    tmp_path: Path, columns: str, options: dict[str, Any], order: int, names: list[str]
) -> None:
    draw = np.random.default_rng(0)
    probs, labels = draw.dirichlet([1, 1, 1], 60), draw.integers(0, 3, 60)
    table = pd.DataFrame(probs, columns=[columns.format(name) for name in names])
    table["label"] = [names[label] for label in labels]
    table[::order].to_csv(tmp_path / "out.csv", **options)
    read = ob.data.read_outputs(tmp_path / "out.csv")
    np.testing.assert_allclose(read["probs"], probs[::order])
    np.testing.assert_array_equal(read["labels"], labels[::order])


@pytest.mark.parametrize("index", [[0, 1, 0, 1], [0.0, 1.0, 2.0, 3.0], list("abcd")])
def test_an_index_without_a_name_is_no_class(tmp_path: Path, index: list[Any]) -> None:
    """One that repeats was a class, and one of floats was refused as logits."""
    table = pd.DataFrame({"cat": [0.2, 0.8, 0.5, 0.4], "dog": [0.8, 0.2, 0.5, 0.6]}, index)
    table.assign(label=["cat", "dog", "cat", "dog"]).to_csv(tmp_path / "out.csv")
    read = ob.data.read_outputs(tmp_path / "out.csv")
    np.testing.assert_array_equal(read["probs"], table)


@pytest.mark.parametrize("decimals", [2, 3, 6])
def test_rounded_probabilities_in_a_table_sum_to_1(tmp_path: Path, decimals: int) -> None:
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.dirichlet(np.ones(9), 80).round(decimals)).assign(label=3)
    table.to_csv(tmp_path / "out.csv")
    probs = ob.data.read_outputs(tmp_path / "out.csv")["probs"]
    np.testing.assert_allclose(probs.sum(1), 1, rtol=1e-12)
    np.testing.assert_allclose(probs, table.drop(columns="label"), atol=9 * 10.0**-decimals)
    run(tmp_path / "out.csv", "--max-ece", 0.1)


@pytest.mark.parametrize("first", [0, 1])
def test_whole_labels_in_a_table_may_have_decimals(tmp_path: Path, first: int) -> None:
    """As pandas writes them once a value was missing; they are names of columns first."""
    table = pd.DataFrame([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], columns=range(first, first + 3))
    table.assign(label=[first + 0.0, first + 1.0]).to_csv(tmp_path / "out.csv", index=False)
    assert ob.data.read_outputs(tmp_path / "out.csv")["labels"].tolist() == [0, 1]


def test_a_nameless_index_is_no_input_of_a_model(tmp_path: Path) -> None:
    pd.DataFrame({"width": [3, 1], "label": ["a", "b"]}).to_csv(tmp_path / "rows.csv")
    assert ob.data.Frame(tmp_path / "rows.csv").action.names == ["width"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,a,b,label\n7,0.5,0.5,a\n", "others in 'id'; leave out columns that are no class"),
        (
            "index,a,b,label\n7,0.5,0.5,a\n",
            "others in 'index'; leave out columns that are no class, such as an index",
        ),
        ("a,b,label\n-3.5,4.5,a\n", "others in 'a', 'b'; save logits as an .npz file"),
        ("a,b,label\n0.5,0.6,a\n", "rows that sum to 1"),
        ("0.5,0.5,1\n", "expected a header row that names a column for each class"),
        (
            "prob_a1,prob_a2,label\n0.5,0.5,fish\n",
            "got none for fish; columns are named prob_a1, prob_a2; labels are fish",
        ),
        ("a,b,label\n0.5,x,a\n", "expected numbers in every column but 'label', got others in 'b'"),
        ("a,b,label\n0.5,0.5,\n", "expected a value in each row"),
        ("a,b,label\n", "expected a row for each sample, got a header alone"),
        (
            "a,b,confidence,label\n0.5,0.5,0.5,a\n",
            "over the columns a, b, confidence, got 1.5 in row 0; leave out columns that are no",
        ),
    ],
)
def test_a_table_that_does_not_hold_probabilities_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "out.csv").write_text(text)
    app = typer.Typer()
    app.command()(calibration.calibration)
    for done in (
        run(tmp_path / "out.csv", "--max-ece", 0.1),
        CliRunner().invoke(app, [str(tmp_path / "out.csv")]),
    ):
        assert isinstance(done.exception, InputError)
        assert said in str(done.exception)


def test_saved_outputs_are_checked_too(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    logits = 2 * draw.normal(size=(1500, 3))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probs.cumsum(1) < draw.uniform(size=(1500, 1))).sum(1)
    np.savez(tmp_path / "net.npz", logits=logits, labels=labels)
    done = run(tmp_path / "net.npz", "--max-ece", 0.2, "--max", "nll=2", "--min-accuracy", 0.3)
    assert done.exit_code == 0
    assert "pass net: ECE, mean over the orbit" not in done.output
    assert "pass net: ECE 0.0" in done.output
    assert "(max_ece, 1,500 samples)" in done.output
    assert run(tmp_path / "net.npz", "--max-ece", 0.0001).exit_code == command.INCONCLUSIVE
    np.savez(tmp_path / "sure.npz", logits=9 * logits, labels=labels)
    assert run(tmp_path / "sure.npz", "--max-ece", 0.05).exit_code == 1
    assert run(tmp_path / "net.npz", "--max-ece", 0.2, "--model", "net").exit_code == 0
    misspelled = run(tmp_path / "net.npz", "--max-ece", 0.2, "--model", "ned").exception
    assert "model: unknown name 'ned'; did you mean 'net'?" in str(misspelled)
    for name in ("max_worst_ece", "max_gap", "min_score"):
        refused = run(tmp_path / "net.npz", f"--{name.replace('_', '-')}", 1).exception
        assert f"{name}: expected a scan for it" in str(refused)
    mean, sure = draw.normal(size=900), np.ones(900)
    np.savez(tmp_path / "values.npz", mean=mean, variance=sure, target=mean + draw.normal(size=900))
    done = run(tmp_path / "values.npz", "--max", "gaussian_nll=2", "--max-mahalanobis", 0.3)
    assert done.exit_code == 0


@pytest.mark.parametrize("name", ["max_ece", "min_accuracy", "max_worst_ks", "max_gap"])
def test_no_threshold_is_outside_the_range_of_what_it_limits(store: Path, name: str) -> None:
    message = rf"{name}: expected a number in \[0, 1\], got 5; did you mean 0.05\?"
    with pytest.raises(InputError, match=message):
        ob.check(store, **{name: 5})
    with pytest.raises(InputError, match=r"got -0.1$"):
        ob.check(store, **{name: -0.1})
    with pytest.raises(InputError, match=r"maximum: expected a number in \[0, 1\], got 5"):
        ob.calibration.verdict(ob.load(store), "ece", maximum=5)


def test_a_gate_and_a_table_show_the_same_interval(tmp_path: Path, store: Path) -> None:
    draw = np.random.default_rng(0)
    path = tmp_path / "net.npz"
    np.savez(path, logits=draw.normal(size=(300, 3)), labels=draw.integers(3, size=300))
    app = typer.Typer()
    app.command()(calibration.calibration)
    table = json.loads(CliRunner().invoke(app, [str(path), "--json"]).output)["outputs"]["net"]
    shown = ob.calibration.measure_table(dict(np.load(path)))
    for name in ("ece", "smooth_ece", "nll"):
        row = ob.check(path, **{f"max_{name}": 0.5})[0]
        gate = json.loads(run(path, "--max", f"{name}=0.5", "--json").output)[0]
        for end in ("low", "high"):
            ends = getattr(row, end), gate[end], table[name][end], float(getattr(shown[name], end))
            assert len(set(ends)) == 1, (name, ends)
    along = ob.calibration.at_places(ob.load(store), "ece", interval=True).sel(place="identity")
    for found in ob.check(store, max_identity_ece=0.5):
        assert found.high == float(along["high"].sel(model=found.model))


def test_a_value_that_is_not_a_number_breaks_its_limit() -> None:
    world = calibrated_world(20, 4, 0)
    world.arrays["score"][:] = np.nan
    for limits in ({"max_score": 0.5}, {"min_score": 0.5}):
        assert [one.outcome for one in ob.check(world, **limits)] == ["fail"]


def test_bad_input_is_named(store: Path, tmp_path: Path) -> None:
    settings = tmp_path / "limits.toml"
    for words, error, message in (
        ([store], InputError, "thresholds: expected at least one, got none"),
        ([store, "--max-gap", 1, "--model", "c"], InputError, "model: unknown name 'c'"),
        ([store, "--max-gap", 1, "--config", tmp_path / "no.toml"], InputError, "--config:"),
        ([store, "--max-gap", 1, "--config", os.devnull], InputError, "is not a regular file"),
        ([tmp_path / "no.zarr", "--max-gap", 1], StoreError, "does not exist"),
        ([store, "--max-ece", 1, "--bins", 0], InputError, "bins"),
        ([store, "--max", "ece"], InputError, "--max: expected NAME=VALUE, got 'ece'"),
        ([store, "--max", "eze=1"], InputError, "did you mean 'max_ece'"),
        ([store, "--max", "own=1"], InputError, "once its module is imported"),
    ):
        done = run(*words)
        assert isinstance(done.exception, error)
        assert message in str(done.exception)
    for text, message in (
        ("[tool.orbical.check]\nmax_gab = 1\n", "did you mean 'max_gap'"),
        ("[tool.orbical.check]\nmax_gap = 'small'\n", "max_gap: expected a number, got 'small'"),
        ("[tool.orbical", "cannot be read as TOML"),
        ("[tool.orbical]\ncheck = 3\n", "expected the table [tool.orbical.check], got check = 3"),
    ):
        settings.write_text(text)
        done = run(store, "--config", settings)
        assert isinstance(done.exception, InputError)
        assert message in str(done.exception)


def test_the_store_is_missed_before_thresholds(tmp_path: Path) -> None:
    assert "does not exist" in str(run(tmp_path / "nothing.zarr").exception)


OWN = """
from orbical import calibration

def top(confidence, correct):
    return (confidence - correct.double()).mean(-1).abs()

calibration.register(calibration.Measure("own", top, title="own", meaning="own measure"))
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "ownmeasures.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    ob.calibration.MEASURES.pop("own", None)
    sys.modules.pop("ownmeasures", None)


@pytest.mark.usefixtures("own_module")
def test_a_measure_of_an_imported_module_is_a_threshold(store: Path) -> None:
    assert run(store, "--max", "own=0.0", "--import", "ownmeasures").exit_code == 1
    refused = run(store, "--max", "own=0.0", "--import", "nowhere").exception
    assert "--import: 'nowhere' cannot be imported" in str(refused)


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize("opened", [view.view, report.report])
def test_views_and_reports_import_modules_too(opened: Callable[..., None], tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(opened)
    done = CliRunner().invoke(app, [str(tmp_path / "no.zarr"), "--import", "ownmeasures"])
    assert "expected a saved scan" in str(done.exception)
    assert "own" in ob.calibration.MEASURES


@pytest.mark.usefixtures("own_module")
def test_a_measure_of_an_imported_module_is_in_the_calibration_table(
    store: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "out.npz", probs=np.full((9, 2), 0.5), labels=np.arange(9) % 2)
    app = typer.Typer()
    app.command()(calibration.calibration)
    for path in (store, tmp_path / "out.npz"):
        words = [str(path), "--import", "ownmeasures", "--resamples", "20", "--csv"]
        assert ",own," in CliRunner().invoke(app, words).output


def test_the_data_of_a_scan_are_checked_as_the_scan_is(store: Path) -> None:
    scan = ob.load(store)
    limits = {"max_gap": 0.1, "min_worst_accuracy": 0.5, "max_changed": 0.2, "max_ece": 0.1}
    assert ob.check(scan.data, **limits) == ob.check(scan, **limits)
    assert {row.samples for row in ob.check(scan.data.isel(sample=slice(30)), max_gap=0.1)} == {30}
    lacking = scan.data.where(scan.data["sample"] != scan.data["sample"][3])
    with pytest.raises(InputError, match="1 missing; pass the scan"):
        ob.check(lacking, max_gap=0.1)
    with pytest.raises(InputError, match="scan: expected"):
        ob.check(scan.data["score"], max_gap=0.1)


def test_an_unfinished_scan_is_refused(tmp_path: Path) -> None:
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    options = {"group": "cyclic:2", "task": "classification", "chunk": 6, "progress": False}
    ob.scan(net, (images[:30], labels[:30]), out=tmp_path / "run.zarr", part="2/5", **options)
    with pytest.raises(StoreError, match=r"20% done; finish it first"):
        ob.check(tmp_path / "run.zarr", max_gap=1.0)


@pytest.mark.parametrize("flag", ["--json", "--csv", "--markdown"])
def test_other_formats_have_the_same_rows_and_status(store: Path, flag: str) -> None:
    done = run(store, "--max-gap", 1, "--min-accuracy", 0.99, flag)
    assert done.exit_code == 1
    rows = ob.check(store, max_gap=1, min_accuracy=0.99)
    if flag == "--json":
        assert json.loads(done.output) == [asdict(row) for row in rows]
    elif flag == "--csv":
        found = list(csv.DictReader(io.StringIO(done.output)))
        assert [(row["model"], float(row["value"])) for row in found] == [
            (row.model, row.value) for row in rows
        ]
    else:
        lines = done.output.strip().splitlines()
        assert len(lines) == 2 + len(rows)
        assert lines[2].startswith("| a | max_gap | invariance gap |")
        assert lines[-1].endswith("| fail |")


def test_a_labeled_scan_without_right_and_wrong_is_not_called_unlabeled() -> None:
    x = torch.rand(4, 1, 8, 8)
    scan = ob.scan(lambda b: b, (x, x), group="flips", task="dense_regression", progress=False)
    assert scan.record.data.labeled
    with pytest.raises(InputError, match=r"right or wrong, got another one, of dense_regression"):
        ob.check(scan, min_accuracy=0.5)
