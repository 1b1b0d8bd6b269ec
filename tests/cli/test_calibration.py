"""`orbical calibration`, run as a user runs it, on saved outputs and on a scan."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

import orbical as ob
from orbical.calibration import brier, ece, nll, top_label
from orbical.cli import calibration as command
from orbical.errors import InputError

FEW = ["--resamples", "40"]


def outputs(folder: Path, name: str, sharpness: float = 1.0, seed: int = 0) -> Path:
    """Save logits of a model that is calibrated at sharpness 1; all have the same labels."""
    truth = np.random.default_rng(7).normal(0, 1.5, (400, 4))
    labels = (truth + np.random.default_rng(8).gumbel(size=truth.shape)).argmax(1)
    noise = np.random.default_rng(seed).normal(0, 0.05, truth.shape)
    path = folder / f"{name}.npz"
    np.savez(path, logits=(truth * sharpness + noise).astype(np.float32), labels=labels)
    return path


def run(*words: object) -> str:
    app = typer.Typer()
    command.register(app)
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: object) -> str:
    app = typer.Typer()
    command.register(app)
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(done.exception, InputError)
    return str(done.exception)


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
    other = tmp_path / "other.npz"
    np.savez(other, probs=np.full((10, 2), 0.5), labels=np.zeros(10, int))
    assert json.loads(run(one, other, "--json", *FEW))["comparisons"] == []
    app = typer.Typer()
    command.register(app)
    done = CliRunner().invoke(app, [str(one), str(other), "--json", *FEW])
    assert "one and other are not compared: their labels differ" in done.stderr


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


def test_groups_give_mean_and_standard_deviation_over_seeds(tmp_path: Path) -> None:
    paths = [outputs(tmp_path, f"esd-{seed}", seed=seed) for seed in range(3)]
    outputs(tmp_path, "nll-0", sharpness=3.0)
    groups = ["--group", f"esd={tmp_path}/esd-*.npz", "--group", f"nll={tmp_path}/nll-*.npz"]
    rows = json.loads(run(*groups, "--json"))
    (row,) = [row for row in rows if row["group"] == "esd" and row["measure"] == "ece"]
    values = []
    for path in paths:
        with np.load(path) as file:
            values.append(float(ece(*top_label(logits=file["logits"], labels=file["labels"]))))
    assert row["seeds"] == 3
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["sd"] == pytest.approx(np.std(values, ddof=1))
    table = run(*groups, "--latex")
    assert table.startswith(r"\begin{tabular}")
    assert r"\pm" in table
    assert "nll & $" in table
    assert "±" in run(*groups)


def test_a_reliability_figure_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "plots" / "net.png"
    run(outputs(tmp_path, "net"), "--figure", picture, *FEW)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_regression_outputs_are_taken(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.5, 2, 200)
    path = tmp_path / "reg.npz"
    np.savez(path, mean=np.zeros(200), variance=variance, target=rng.normal(0, variance**0.5))
    answer = json.loads(run(path, "--json", *FEW))["outputs"]["reg"]
    assert {"ence", "gence", "gaussian_nll", "gaussian_crps"} <= set(answer)
    assert answer["gence"]["calibrated"] == pytest.approx(np.pi / 2 - 1, abs=0.1)
    vectors = tmp_path / "vectors.npz"
    wide = rng.uniform(0.5, 2, (100, 2))
    np.savez(vectors, mean=np.zeros((100, 2)), variance=wide, target=rng.normal(0, wide**0.5))
    answer = json.loads(run(vectors, "--json", *FEW))["outputs"]["vectors"]
    assert "mahalanobis_calibration" in answer
    assert "ence" not in answer


def regressor(folder: Path, name: str, scale: float = 1.0, width: int | None = None) -> Path:
    """Save Gaussian predictions of one noise; the variance is right at scale 1."""
    rng = np.random.default_rng(3)
    shape = (300,) if width is None else (300, width)
    variance = rng.uniform(0.5, 2, shape)
    target = rng.normal(0, variance**0.5)
    path = folder / f"{name}.npz"
    np.savez(path, mean=np.zeros(shape), variance=variance * scale, target=target)
    return path


def test_regressors_are_compared_in_pairs(tmp_path: Path) -> None:
    good, timid = regressor(tmp_path, "good"), regressor(tmp_path, "timid", scale=3.0)
    rows = json.loads(run(good, timid, "--json", "--resamples", "200"))["comparisons"]
    by_measure = {row["measure"]: row for row in rows}
    assert by_measure["squared_error"]["difference"] == 0  # their means are the same
    for name in ("gaussian_nll", "gaussian_crps", "ence", "uce", "mahalanobis_calibration"):
        assert by_measure[name]["high"] < 0, name
        assert by_measure[name]["p_value"] < 0.05
    vectors = regressor(tmp_path, "a", width=2), regressor(tmp_path, "b", scale=2.0, width=2)
    rows = json.loads(run(*vectors, "--json", *FEW))["comparisons"]
    assert "gaussian_crps" not in {row["measure"] for row in rows}
    assert "Differences on the same samples" in run(good, timid, *FEW)


def test_a_classifier_and_a_regressor_are_not_compared(tmp_path: Path) -> None:
    app = typer.Typer()
    command.register(app)
    paths = [str(outputs(tmp_path, "net")), str(regressor(tmp_path, "reg"))]
    done = CliRunner().invoke(app, [*paths, "--json", *FEW])
    assert "one is a classifier and one a regressor" in done.stderr
    other = tmp_path / "other.npz"
    np.savez(other, mean=np.zeros(9), variance=np.ones(9), target=np.zeros(9))
    done = CliRunner().invoke(app, [paths[1], str(other), "--json", *FEW])
    assert "their targets differ" in done.stderr


def test_csv_and_latex_of_several_files_hold_their_differences(tmp_path: Path) -> None:
    good, bad = outputs(tmp_path, "good"), outputs(tmp_path, "bad", sharpness=4.0)
    rows = list(csv.DictReader(io.StringIO(run(good, bad, "--csv", *FEW))))
    answer = json.loads(run(good, bad, "--json", *FEW))
    values = sum(len(table) for table in answer["outputs"].values())
    assert len(rows) == values + len(answer["comparisons"])
    (row,) = [row for row in rows if row["less"] == "bad" and row["measure"] == "nll"]
    (expected,) = [part for part in answer["comparisons"] if part["measure"] == "nll"]
    assert row["outputs"] == "good"
    assert float(row["value"]) == expected["difference"]
    assert float(row["p_value"]) == expected["p_value"]
    latex = run(good, bad, "--latex", *FEW)
    assert latex.count(r"\begin{tabular}") == 2
    assert "good & bad & NLL" in latex


def test_evidential_outputs_and_parts_of_a_variance_are_taken(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target, one = rng.normal(size=200), np.ones(200)
    evidential = tmp_path / "evidential.npz"
    np.savez(evidential, gamma=0 * one, nu=4 * one, alpha=3 * one, beta=1.6 * one, target=target)
    parts = tmp_path / "parts.npz"
    np.savez(parts, mean=0 * one, aleatoric=0.8 * one, epistemic=0.2 * one, target=target)
    answers = [json.loads(run(path, "--json", *FEW))["outputs"] for path in (evidential, parts)]
    first, second = answers[0]["evidential"], answers[1]["parts"]
    assert first["gaussian_nll"]["value"] == pytest.approx(second["gaussian_nll"]["value"])
    for table in (first, second):
        assert table["aleatoric_bleed"]["value"] == pytest.approx(0.64)
    full = tmp_path / "full.npz"
    np.savez(
        full,
        mean=np.zeros((50, 2)),
        covariance=np.tile(np.eye(2), (50, 1, 1)),
        target=rng.normal(size=(50, 2)),
    )
    assert "mahalanobis_calibration" in json.loads(run(full, "--json", *FEW))["outputs"]["full"]
    np.savez(evidential, gamma=one, nu=one, alpha=one, beta=one, target=target)
    assert "alpha <= 1 given" in refused(evidential)


def scan_of_digits(store: Path) -> ob.Scan:
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}
    return ob.scan(
        nets,
        (images[:60], labels[:60]),
        group="rotations:8",
        task="classification",
        out=store,
        progress=False,
    )


def test_a_scan_is_summarised_along_its_orbit(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    scan = scan_of_digits(store)
    picture = tmp_path / "orbit.png"
    answer = json.loads(run(store, "--json", "--figure", picture, *FEW))
    assert picture.is_file()
    row = answer["orbit"][0]
    data = scan.data.sel(model="a")
    each = [
        float(ece(data["confidence"][:, g].values, data["correct"][:, g].values)) for g in range(8)
    ]
    assert row["identity"] == pytest.approx(each[0])
    assert row["orbit"] == pytest.approx(np.mean(each))
    assert row["worst"] == pytest.approx(max(each))
    assert row["worst_element"] == scan.group.name(int(np.argmax(each)))
    assert "ks" in answer["identity"]["b"]
    assert row["identity_low"] <= row["identity"] <= row["identity_high"]
    assert row["worst_low"] <= row["worst"] <= row["worst_high"]
    assert row["orbit_low"] <= row["orbit"] <= row["orbit_high"]
    text = run(store, *FEW)
    assert "a, along the orbit" in text
    assert max(map(len, text.splitlines())) <= 80


def test_csv_and_latex_of_a_scan_hold_what_the_screen_shows(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    scan_of_digits(store)
    answer = json.loads(run(store, "--json", *FEW))
    rows = list(csv.DictReader(io.StringIO(run(store, "--csv", *FEW))))
    identity = sum(len(table) for table in answer["identity"].values())
    assert len(rows) == identity + 2 * len(answer["orbit"])  # the identity is said once
    for row in answer["orbit"]:
        said = answer["identity"][row["model"]][row["measure"]]
        assert [row["identity"], row["identity_low"]] == [said["value"], said["low"]]
    (worst,) = [
        row for row in rows if (row["model"], row["place"], row["measure"]) == ("b", "worst", "ks")
    ]
    (expected,) = [r for r in answer["orbit"] if (r["model"], r["measure"]) == ("b", "ks")]
    assert float(worst["value"]) == expected["worst"]
    assert float(worst["high"]) == expected["worst_high"]
    assert worst["element"] == expected["worst_element"]
    latex = run(store, "--latex", *FEW)
    assert latex.count(r"\begin{tabular}") == 2
    assert "b & smooth ECE & $" in latex
    assert "b & KS & $" in latex.split(r"\end{tabular}")[1]


def test_a_scan_of_a_regressor_has_the_measures_of_regression(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 2, generator=generator)
    store, wide = tmp_path / "run.zarr", tmp_path / "wide.zarr"

    def evidence(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        one = torch.ones(len(x), 1)
        return x[:, :1] + x[:, 1:], one, 2 * one, 1 + x[:, :1].square()

    settings = dict(group="cyclic:4", progress=False)
    task = ob.tasks.Regression(ob.actions.Vectors(), uncertainty="evidential")
    models = {"unsure": evidence, "bare": lambda x: x.sum(-1)}
    ob.scan(models, (x, x.square().sum(-1)), task=task, out=store, **settings)
    picture = tmp_path / "orbit.png"
    answer = json.loads(run(store, "--json", "--figure", picture, *FEW))
    assert picture.is_file()
    assert set(answer["identity"]) == {"unsure"}  # a model without a variance is not judged
    measured = {row["measure"] for row in answer["orbit"] if row["model"] == "unsure"}
    assert {"gence", "ence", "quantile_calibration", "aleatoric_bleed", "gaussian_nll"} <= measured
    assert "unsure, along the orbit" in run(store, *FEW)
    task = ob.tasks.Regression(ob.actions.Vectors(), uncertainty="variance")
    ob.scan(lambda x: (0 * x, x.abs() + 1), (x, x), task=task, out=wide, **settings)
    rows = json.loads(run(wide, "--json", *FEW))["orbit"]
    apart = {row["measure"]: row["orbit"] for row in rows if "bleed" in row["measure"]}
    total = apart.pop("aleatoric_bleed")
    assert list(apart) == ["aleatoric_bleed, component 0", "aleatoric_bleed, component 1"]
    assert sum(apart.values()) == pytest.approx(total)
    assert "component 1" in run(wide, *FEW)
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    alike = tmp_path / "alike.zarr"
    ob.scan(lambda x: (0 * x, x.norm(dim=-1) + 1), (x, x), task=task, out=alike, **settings)
    assert "component" not in run(alike, *FEW)  # one variance for all


def test_bad_input_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, scores=np.zeros(3))
    text = tmp_path / "text.npz"
    text.write_text("no archive")
    objects = tmp_path / "objects.npz"
    np.savez(objects, probs=np.array([{}], dtype=object), labels=np.zeros(1, int))
    good = outputs(tmp_path, "good")
    assert "no such file" in refused(tmp_path / "absent.npz")
    assert "holds scores; expected logits or probs" in refused(wrong)
    assert "cannot be read as .npz" in refused(text)
    assert "cannot be read as .npz" in refused(objects)
    assert "files: none given" in refused()
    assert "one of them at most" in refused(good, "--json", "--csv")
    assert "--group: 'esd' given, expected name=pattern" in refused("--group", "esd")
    assert "no file matches" in refused("--group", f"a={tmp_path}/none-*.npz")
    assert "level" in refused(good, "--level", "2")
    assert "bins" in refused(good, "--bins", "0")


def test_logits_come_before_the_probs_made_of_them(tmp_path: Path) -> None:
    path = tmp_path / "both.npz"
    logits = np.random.default_rng(0).normal(size=(50, 3))
    np.savez(path, logits=logits, probs=np.full((50, 3), 1 / 3), labels=np.zeros(50, int))
    assert set(command.read_outputs(path)) == {"logits", "labels"}


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
    start = lines.index(next(line for line in lines if line.startswith("Differences on the same")))
    assert "a-rather-long-name-of-a-model less another-long-name" in lines[start + 2]
    (row,) = [line for line in lines[start:] if line.startswith("regression ESD  ")]
    assert row.count("[") == row.count("]") == 1
    assert "< 0.001" in next(line for line in lines[start:] if line.startswith("NLL"))


def test_latex_writes_powers_of_ten_as_such(tmp_path: Path) -> None:
    text = run(outputs(tmp_path, "a^b"), "--latex", *FEW)
    assert r"\times 10^{-" in text
    assert "e-0" not in text
    assert r"a\textasciicircum{}b" in text


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nu", 0.0, "nu is 0 at the least; expected nu > 0"),
        ("beta", -2.0, "beta is -2 at the least; expected beta > 0"),
        ("alpha", 1.0, "alpha <= 1 given"),
        ("alpha", np.nan, "alpha <= 1 given"),
        ("target", np.nan, "target: contains NaN or infinity"),
    ],
)
def test_evidence_that_is_none_is_named_with_its_file(
    tmp_path: Path, name: str, value: float, words: str
) -> None:
    arrays = {key: np.full(9, 2.0) for key in ("gamma", "nu", "alpha", "beta", "target")}
    arrays[name][4] = value
    np.savez(tmp_path / "net.npz", **arrays)
    message = refused(tmp_path / "net.npz", *FEW)
    assert "net" in message.split(":")[0]
    assert words in message


def test_words_among_the_numbers_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "net.npz", mean=["a", "b"], variance=[1.0, 1.0], target=[1.0, 2.0])
    assert "mean of dtype <U1 given" in refused(tmp_path / "net.npz", *FEW)
