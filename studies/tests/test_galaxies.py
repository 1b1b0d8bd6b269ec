"""The trainings of the galaxy study: resumed, measured, invariant where they must be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical_studies.data import galaxies
from orbical_studies.galaxies import (
    collecting,
    commands,
    findings,
    packing,
    texts,
    training,
    verdicts,
)
from orbical_studies.galaxies.kinds import kinds
from orbical_studies.galaxies.numbers import Numbers, read
from orbical_studies.galaxies.page import TABLES
from orbical_studies.galaxies.settings import Trial, trials

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "galaxies.md"


@pytest.fixture
def packed(tmp_path):
    """Generated galaxies in the form of the packed catalogues."""
    arrays = {}
    for part, seed in (("train", 0), ("test", 1)):
        images, labels = galaxies(132, size=24, seed=seed)
        arrays[f"efigi-{part}-pixels"] = images.expand(-1, 3, -1, -1).mul(255).byte().numpy()
        arrays[f"efigi-{part}-labels"] = labels.numpy()
    np.savez(tmp_path / "galaxies.npz", **arrays)
    return tmp_path / "galaxies.npz"


def test_every_group_blur_data_and_seed_is_trained_once():
    named = [str(trial) for trial in trials()]
    assert len(named) == len({*named}) == ((2 * 7 + 1) * (3 + 3) + 4) * 3


def test_a_training_is_measured_along_the_circle_and_not_repeated(packed, tmp_path, capsys):
    words = ["train", "--pack", str(packed), "--out", str(tmp_path / "out"), "--epochs", "1"]
    words += ["--seeds", "0", "--only", "efigi/cyclic:4/blur 0/"]
    commands.main(words)
    rows = [json.loads(line) for line in (tmp_path / "out" / "trials.jsonl").open()]
    assert [row["name"] for row in rows] == ["efigi/cyclic:4/blur 0/seed 0"]
    assert rows[0]["defect_group"] < 1e-4
    assert 0 < rows[0]["action_defect"] < 0.2
    assert rows[0]["refitted_nll"] < rows[0]["nll"]  # it has seen the labels
    (file,) = (tmp_path / "out").glob("*.npz")
    with np.load(file) as kept:
        accuracy, confidence, _ = kept["curves"].astype(float)
        right = kept["logits"].argmax(1) == np.load(packed)["efigi-test-labels"]
    assert accuracy[0] == pytest.approx(right.mean(), abs=2e-3)
    assert np.allclose(accuracy[::9], accuracy[0], atol=0.03)  # quarter turns, up to resampling
    assert ((confidence > 0) & (confidence <= 1)).all()
    commands.main(words)
    assert "0 networks to train" in capsys.readouterr().out.splitlines()[-1]


def test_images_are_blurred_once_and_keep_their_disc():
    images = torch.rand(2, 3, 24, 24)
    kept = training.prepared(images, 0.0)
    assert float(kept[..., 0, 0].max()) == 0
    assert torch.equal(kept[..., 10:14, 10:14], images[..., 10:14, 10:14])
    assert training.prepared(images, 2.0)[..., 8:16, 8:16].std() < 0.3 * images.std()


def test_a_refitted_regression_solves_its_penalised_problem():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    features, labels = torch.randn(90, 5), torch.arange(90) % 3
    ours = training._refitted(features, labels).softmax(1)
    theirs = LogisticRegression(max_iter=1000, tol=1e-8).fit(features, labels)
    assert np.allclose(ours, theirs.predict_proba(features), atol=1e-3)


def test_the_gap_is_the_root_mean_square_distance_from_the_orbits_mean():
    probabilities = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    assert training._gap(probabilities) == pytest.approx(0.5)


def test_without_the_catalogues_generated_galaxies_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ORBICAL_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        commands.main(["pack", "--pack", str(tmp_path / "galaxies.npz")])
    assert end.value.code == 2
    assert "`--data generated` needs no files" in capsys.readouterr().err


def test_a_mirrored_test_galaxy_stands_beside_each_generated_one(monkeypatch):
    monkeypatch.setattr(packing, "GENERATED", (3, 6))
    images, labels = packing.SPLITS["generated"]()["test"]
    assert torch.equal(images[6:], images[:6].flip(-1))
    assert labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 2, 1, 0, 2, 1]


def test_a_trial_prints_as_its_name():
    assert str(Trial("efigi", "cyclic:1", 0.0, 0, width=5)) == "efigi/cyclic:1 x 5/blur 0/seed 0"
    assert str(Trial("efigi", "cyclic:8", 1.25, 2)) == "efigi/cyclic:8/blur 1.25/seed 2"


def write_answers(folder):
    """Made-up answers of all networks of orders 1 and 4, on sixty galaxies of each data set."""
    arrays = {}
    random = np.random.default_rng(0)
    for name, classes in (("efigi", 3), ("galaxyzoo2", 2)):
        for part in ("train", "test"):
            arrays[f"{name}-{part}-pixels"] = random.integers(0, 255, (60, 3, 32, 32), np.uint8)
            arrays[f"{name}-{part}-labels"] = np.arange(60) % classes
    images, labels = galaxies(30, size=32, seed=1)
    pixels = torch.cat([images, images.flip(-1)]).mul(255).byte().numpy()
    for part in ("train", "test"):
        arrays[f"generated-{part}-pixels"] = pixels
        arrays[f"generated-{part}-labels"] = np.concatenate([labels, np.array([0, 2, 1])[labels]])
    np.savez(folder / "galaxies.npz", **arrays)
    scores = dict.fromkeys(collecting.KEPT, 0.1) | {"parameters": 10}
    with (folder / "trials.jsonl").open("w") as file:
        for trial in trials(orders=(1, 4)):
            truth = arrays[f"{trial.data}-test-labels"]
            logits = random.normal(size=(len(truth), truth.max() + 1)).astype(np.float32)
            logits[np.arange(len(truth)), truth] += 1 + trial.group.endswith("4")
            if trial.group.startswith("dihedral"):
                logits[len(truth) // 2 :] = logits[: len(truth) // 2]
            np.savez(folder / trial.file, logits=logits, curves=random.random((3, 36)))
            file.write(json.dumps({"name": str(trial), **vars(trial), **scores}) + "\n")


@pytest.fixture
def answered(tmp_path):
    write_answers(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The folder of the CSV files of made-up answers; each test reads them anew."""
    folder = tmp_path_factory.mktemp("galaxies")
    write_answers(folder)
    commands.main(["collect", "--out", str(folder), "--page", str(folder / "page.md")])
    return folder / "page"


def test_answers_become_tables_verdicts_and_figures(collected):
    page = collected.with_suffix(".md")
    commands.main(["report", "--page", str(page)])
    written = page.read_text()
    assert all(f"<!-- table: {name} -->" in written for name in TABLES)
    assert "nan" not in written
    pictures = {path.stem for path in collected.glob("*.png")}
    assert pictures == {"efigi", "galaxyzoo2", "nero", "invariance", "mirrors"}
    numbers = read(collected)
    assert all(row["lower"] <= row["ece"] <= row["upper"] for row in numbers.bounds)
    assert all(row["ceiling"] == pytest.approx(2 / 3, abs=1e-5) for row in numbers.bounds)
    for row in numbers.results:
        assert row["ece_low"] <= row["ece"] <= row["ece_high"]


def test_generated_galaxies_alone_make_a_page(answered):
    lines = (answered / "trials.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["data"] == "generated"]
    (answered / "trials.jsonl").write_text("\n".join(kept) + "\n")
    options = ["--out", str(answered), "--page", str(answered / "page.md")]
    commands.main(["collect", *options])
    commands.main(["report", *options])
    assert "The photographs were not trained on" in (answered / "page.md").read_text()


def test_a_verdict_follows_the_intervals(collected):
    numbers = read(collected)
    assert "more accurate" in texts.summary(numbers)
    for row in numbers.contrasts:
        if row["contrast"] == "gain" and row["measure"] == "accuracy":
            row.update(value=-0.1, low=-0.2, high=-0.05)
    assert "less accurate" in texts.summary(numbers)


def test_the_summary_says_what_the_signed_contrast_shows(collected):
    numbers = read(collected)
    for row in numbers.results:
        row["overconfidence"] = 0.05
    for row in numbers.contrasts:
        row.update(value=0.0, low=-0.01, high=0.03)
    assert "less overconfident" not in texts.summary(numbers)
    assert "3.0 points of confidence less accuracy" in texts.summary(numbers)
    for row in numbers.contrasts:
        if (row["contrast"], row["measure"]) == ("over wide", "overconfidence"):
            row.update(value=-0.02, low=-0.03, high=-0.01)
    assert "less overconfident on 2 of 2 catalogues" in texts.summary(numbers)
    assert "not so here: confidence less accuracy is better on 2 of 2" in findings.sentences(
        numbers
    )
    for row in numbers.results:
        row["overconfidence"] = -0.01  # a network that is too unsure does not gain by being more so
    assert "less overconfident" not in texts.summary(numbers)


def test_a_presence_and_an_absence_are_judged_with_the_same_word():
    null = [{"measure": "accuracy", "low": -0.012, "high": 0.004}]
    assert verdicts.verdict(null) == verdicts.no_improvement(null)
    assert verdicts.verdict(null) == "open: no change is seen, at most 1.2 points of accuracy"


def some_numbers(results):
    return Numbers(results, angles=[], contrasts=[], neighbours=[], bounds=[], coverage=[])


def test_kinds_of_networks_are_counted_apart():
    def row(network, width, ece, over):
        return {
            **{"data": "efigi", "network": network, "width": width, "ece": ece, "nll": 0.4},
            **{"ece_calibrated": 0.02, "ece_calibrated_high": 0.03, "train_nll": 0.3},
            **{"esd_low": 0.0, "overconfidence": over},
        }

    rows = [row("cyclic:1", 1, 0.02, 0.01), row("cyclic:4", 1, 0.025, 0.0)]
    rows += [row("cyclic:1 x 5", 5, 0.05, 0.03), row("cyclic:1 x 5", 5, 0.02, 0.01)]
    found = kinds(some_numbers(rows))
    assert {name: (kind.above, kind.count) for name, kind in found.items()} == {
        "plain": (0, 1),
        "group": (0, 1),
        "wide": (1, 2),
    }
    assert found["wide"].excess == pytest.approx(0.015)
    assert found["wide"].overconfidence == pytest.approx(0.02)


def test_exact_and_nearly_invariant_networks_are_told_apart():
    where = {"data": "efigi", "width": 1}
    rows = [
        where | {"network": "cyclic:1", "defect_group": 0.0},
        where | {"network": "cyclic:4", "defect_group": 5e-7},
        where | {"network": "dihedral:12", "defect_group": 0.3},
        where | {"network": "dihedral:12", "defect_group": 0.1},
    ]
    words = findings.exactly(some_numbers(rows))
    assert words.startswith("to rounding for C_4, and for D_12 as far as turning pixels allows")
    assert "0.30" in words


def test_networks_with_fewer_seeds_are_named(collected):
    numbers = read(collected)
    lost = {"data": "efigi", "network": "dihedral:4", "blur": 2.5, "seed": 1}
    numbers.results.remove(*numbers.of(**lost))
    words = texts.exactness_text(numbers)
    assert "3 seeds but for EFIGI, D_4, blur 2.5: 2 seeds (a largest n)." in words


def test_an_interval_is_drawn_from_end_to_end_even_below_its_estimate(collected):
    from orbical_studies.galaxies import figures

    numbers = read(collected)
    for row in numbers.results:
        row.update(esd=-1e-3, esd_low=0.0, esd_high=2e-3)
    panel = figures.orders_figure(numbers, "efigi").axes[4]
    bars = [bar.get_segments()[0][:, 1] for bar in panel.collections]
    assert len(bars) == 3 * (2 + 1)  # blurs; two orders and the wide plain network
    assert np.allclose(bars, [0.0, 2.0])


def test_the_page_quotes_no_sentence_of_the_paper():
    assert not {"“", "”"} & {*DOCS.read_text(encoding="utf-8")}


def test_packed_images_that_do_not_fit_the_answers_are_named(answered, capsys):
    kept = dict(np.load(answered / "galaxies.npz"))
    kept["efigi-test-labels"] = kept["efigi-test-labels"][:50]
    np.savez(answered / "galaxies.npz", **kept)
    with pytest.raises(SystemExit) as end:
        commands.main(["collect", "--out", str(answered), "--page", str(answered / "page.md")])
    assert end.value.code == 2
    assert "pack: 50 test images given" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--pack", "none.npz"], "pack: there is no file 'none.npz'"),
        (["collect", "--out", "nowhere"], "out: there is no file"),
        (["train", "--orders", "0"], "orders: 0 given, expected at least 1"),
        (["report", "--page", "none.md"], "results: there is no file"),
    ],
)
def test_what_is_missing_or_wrong_is_said_in_one_line(words, message, capsys):
    with pytest.raises(SystemExit) as end:
        commands.main(words)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_a_verdict_near_0_is_called_marginal():
    numbers = read(DOCS.with_suffix(""))
    assert "is marginal: one end of its interval" in texts.marginal_text(numbers)
    for row in numbers.contrast("gain", "ece", data="generated", family="dihedral"):
        row |= {"low": 0.02, "high": 0.06}
    assert "is clear: 0 is far from both ends" in texts.marginal_text(numbers)
