"""The spectra study: molecules packed, networks trained and resumed, predictions measured, page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from orbical.errors import InputError
from orbical.training import Evidence
from orbical_studies.__main__ import main
from orbical_studies.data import infrared_spectra, qm9_molecules, spectra
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.networks.molecules import bond_hashes
from orbical_studies.spectra import (
    calibration,
    contrasts,
    measures,
    packing,
    report,
    signals,
    study,
    training,
)
from orbical_studies.spectra.collecting import read_answers
from orbical_studies.spectra.measures import Answers, Truth, truth_of
from orbical_studies.spectra.network import SpectrumNet
from orbical_studies.spectra.packing import EXAMPLE, FILE
from orbical_studies.spectra.settings import (
    NETWORKS,
    PAPER,
    PARTED,
    PARTS,
    PENALTY,
    REMEDY,
    TRAININGS,
    Settings,
    Trial,
    trials,
)

POINTS = 24


def write_pack(path, count: int = 120) -> None:
    """Chains of 3 to 6 atoms whose spectrum is a line that moves with their length."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(3, 7, count + 1).astype(np.uint8)
    positions, numbers, spectra = [], [], []
    grid = np.linspace(500, 4000, POINTS)
    for size in sizes:
        bond = draw.uniform(1.2, 1.6)
        steps = np.tile([bond, 0, 0], (size, 1)) + draw.normal(0, 0.1, (size, 3))
        positions.append(np.cumsum(steps, 0))
        numbers.append(draw.choice([6, 8], size))
        line = 1000 + 4000 * (bond - 1.2)
        spectra.append(size * infrared_spectra.broadened(np.array([line]), np.ones(1), grid, 400.0))
    names = [f"C{place // 2}" for place in range(count)] + [EXAMPLE]
    np.savez(
        path,
        sizes=sizes,
        numbers=np.concatenate(numbers).astype(np.int8),
        positions=np.concatenate(positions).astype(np.float32),
        spectra=np.array(spectra, np.float32),
        wavenumbers=grid,
        smiles=np.frombuffer("\n".join(names).encode(), np.uint8),
        noise=np.full(POINTS, 1e-12),
        failed=np.array(3),
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("spectra")
    write_pack(folder / FILE)
    return folder


def command(step: str, work: Path, folder: Path) -> None:
    places = ["--work", str(work), "--results", str(folder), "--page", str(folder / "spectra.md")]
    main(["spectra", step, *places, "--epochs", "1", "--seeds", "0"])


@pytest.fixture(scope="module")
def trained(packed: Path) -> Results:
    """Run every training of the study with one seed, one epoch long."""
    pytest.importorskip("e3nn", reason="e3nn is not installed")
    command("train", packed, packed)
    return Results(packed, packed)


@pytest.fixture(scope="module")
def data(packed):
    return packing.unpack(packed / FILE)


def test_every_network_is_trained_both_ways_with_each_seed_and_once_for_each_comparison():
    every = trials(Settings())
    assert len({str(trial) for trial in every}) == len(every)
    assert len(every) == len(NETWORKS) * 8 + 3 * len(PARTS) * len(PARTED)
    assert sum(trial.penalty == 0 for trial in every) == len(NETWORKS)
    assert sum(trial.parts > 1 for trial in every) == len(NETWORKS)


def test_splits_share_no_molecule_and_leave_out_none(data):
    whole = torch.arange(len(data.pos))
    splits = [whole[data.rows(name)] for name in ("test", "validation", "train", "example")]
    assert torch.equal(torch.cat(splits), whole)
    assert [len(rows) for rows in splits] == [24, 12, 84, 1]
    assert data.smiles[-1] == EXAMPLE


def test_trainings_are_written_at_once_and_not_repeated(packed, trained, capsys):
    rows = [json.loads(line) for line in (packed / "trials.jsonl").open()]
    assert {row["name"] for row in rows} == {str(trial) for trial in trials(Settings(seeds=(0,)))}
    for row in rows:
        assert row["steps"] == (2 if row["training"] == "longer" else 1)
        assert row["defect"] < 1e-4  # every network is invariant
        assert 250_000 < row["backbone"] < 350_000  # and of similar size
    with np.load(packed / "steerable-paper-penalty0.1-seed0.npz") as file:
        assert file["answers"].shape == (4, 25, POINTS)
        assert file["curve"].shape == (1, 3)
    assert [row["train"] for row in rows if row["network"] == "distances"] == [84, 84, 84, 21]
    assert len(read_answers(trained)) == len(rows)
    command("train", packed, packed)
    assert "0 trainings to run" in capsys.readouterr().out


def test_training_lowers_the_likelihood_and_ends_in_time(data):
    scores, arrays = training.run(data, Trial("bonds", epochs=12))
    curve = arrays["curve"][:, 1]
    assert curve[-1] < curve[0] - 0.1
    assert scores["validation_nll"] == pytest.approx(curve.min(), rel=1e-5)
    assert scores["validation_last"] == curve[-1]
    _, short = training.run(data, Trial("bonds", epochs=10_000, seconds=0.3))
    assert 1 <= len(short["curve"]) < 1000


def gradients(training_name: str, data, part: str) -> float:
    """Return how large a gradient is that the likelihood gives to a part of a network."""
    session = training.Session(data, Trial("bonds", training_name))
    rows, how = torch.arange(8), TRAININGS[training_name]
    _, found = session.model.parted(session.batch(rows), how.squares, how.apart)
    session.evidential(found, session.targets[rows]).backward()
    parts = {"mean": session.model.decoders[0], "backbone": session.model.backbone}
    every = (p.grad for p in parts[part].parameters() if p.grad is not None)
    return sum(float(gradient.abs().sum()) for gradient in every)


@pytest.mark.parametrize(
    ("name", "mean", "backbone"),
    [
        (PAPER, True, True),
        ("longer", True, True),
        ("squares", False, True),
        ("apart", True, True),
        (REMEDY, False, False),
    ],
)
def test_the_likelihood_moves_what_a_training_lets_it_move(data, name, mean, backbone):
    assert (gradients(name, data, "mean") > 0) is mean
    assert (gradients(name, data, "backbone") > 0) is backbone


def test_apart_the_backbone_learns_by_the_mean_alone(data):
    """With gamma held, the likelihood would move the backbone through the variances only."""
    session = training.Session(data, Trial("bonds", "apart"))
    rows = torch.arange(8)
    _, found = session.model.parted(session.batch(rows), squares=False, apart=True)
    held = found._replace(gamma=found.gamma.detach())
    session.evidential(held, session.targets[rows]).backward()
    assert all(p.grad is None for p in session.model.backbone.parameters())
    assert all(p.grad is not None for p in session.model.decoders[1:].parameters())


def test_a_longer_training_takes_twice_the_epochs_and_the_time(data):
    usual, longer = (
        training.Session(data, Trial("bonds", name, epochs=3, seconds=2.0))
        for name in (PAPER, "longer")
    )
    assert (longer.epochs, longer.steps, longer.seconds) == (6, 2 * usual.steps, 4.0)


def test_means_by_squares_do_not_feel_what_variances_learn(data):
    plain, held = (
        training.run(data, Trial("bonds", REMEDY, penalty, epochs=4))[1]["curve"]
        for penalty in (0.0, 10.0)
    )
    assert np.array_equal(plain[:, 2], held[:, 2])  # squared errors on validation molecules
    assert np.abs(plain[:, 1] - held[:, 1]).max() > 1e-3


def test_weights_are_taken_where_likelihood_is_best(data, monkeypatch):
    _, first = training.run(data, Trial("bonds", REMEDY, epochs=1))
    judged = iter([(0.1, 0.9), (0.2, 0.8), (0.3, 0.7), (0.4, 0.6)])
    monkeypatch.setattr(training.Session, "judged", lambda *_: next(judged))
    scores, found = training.run(data, Trial("bonds", REMEDY, epochs=3))
    assert scores["best_epoch"] == 1
    assert (scores["validation_nll"], scores["validation_last"]) == (0.1, 0.3)
    assert (scores["train_nll"], scores["train_mse"]) == (0.4, 0.6)
    assert found["answers"].shape == first["answers"].shape


def test_predictions_are_stored_to_a_thousandth():
    draw = np.random.default_rng(0)
    given = np.stack(
        [draw.normal(0, 3, (5, 7)), *(np.exp(draw.normal(0, 4, (5, 7))) for _ in range(3))]
    )
    given[2] += 1
    again = training.restored(training.stored(given))
    assert np.abs(again[0] - given[0]).max() <= training.STEP / 2
    assert np.allclose(again[[1, 3]], given[[1, 3]], rtol=training.STEP)
    assert np.allclose(again[2] - 1, given[2] - 1, rtol=2 * training.STEP)


def test_packing_takes_what_time_allows_and_keeps_the_relaxed_geometry(tmp_path, monkeypatch):
    pytest.importorskip("tblite", reason="tblite is not installed")
    pytest.importorskip("ase", reason="ase is not installed")
    from ase.build import molecule

    import orbical as ob

    inputs, _ = ob.datasets.molecules([molecule(name) for name in ("H2O", "CO2", "NH3", "CH4")])
    inputs = {name: inputs[name] for name in ("pos", "numbers", "mask")}
    inputs["pos"][1] = 0.0  # carbon dioxide fails
    names = ("O", "O=C=O", "N", EXAMPLE)
    found = qm9_molecules.Molecules(inputs, {}, torch.arange(4), names)
    monkeypatch.setattr(packing, "qm9", lambda *_, **__: found)
    settings = Settings(cache=str(tmp_path), label_minutes=0, count=3, fewest=2)
    packing.pack(settings, Results(tmp_path, tmp_path))
    data = packing.unpack(tmp_path / FILE)
    assert data.smiles == ("O", "N", EXAMPLE)
    assert data.failed == 1
    assert (data.numbers > 0).sum(1).tolist() == [3, 4, 5]
    water = spectra(
        {name: values[:1] for name, values in inputs.items()}, cache=tmp_path, progress=False
    )
    assert torch.allclose(data.spectra[0].double(), water.spectra[0], rtol=1e-6)
    assert torch.allclose(data.pos[0, :3].double(), water.relaxed[0, :3], atol=1e-6)
    assert float(data.noise.max()) < 1e-4
    with pytest.raises(InputError, match="at least 100 labeled molecules, got 2"):
        packing.pack(Settings(cache=str(tmp_path), count=3), Results(tmp_path, tmp_path))


def perfect(truth: Truth, variance: float) -> Evidence:
    """Answers without error that report one variance, half of it as noise."""
    part = torch.full_like(truth.values, variance)
    return Evidence(truth.values, torch.ones_like(part), 2 * torch.ones_like(part), part / 2)


def test_a_network_without_error_explains_all_and_bleeds_what_it_reports(data, trained):
    truth = truth_of(data)
    row = read_answers(trained)[0].row
    found = perfect(truth, 0.02)
    scores = measures.scores(truth, Answers(row, found, found))
    assert scores["r2_median"] == scores["r2_above"] == scores["r2_absorption"] == pytest.approx(1)
    for name in ("bleed", "typical"):
        assert scores[name] == pytest.approx(POINTS * 0.01**2)
    assert scores["noise_share"] == pytest.approx(0.5)
    assert scores["height_top"] == pytest.approx(1)
    assert scores["optimal"] == scores["mse"] == 0
    assert scores["inside_50"] == 1


def test_the_optimal_bleed_is_that_of_the_error_where_variances_say_nothing(data):
    truth = truth_of(data)
    shifted = perfect(truth, 1.0)._replace(gamma=truth.values + 0.3)
    expected = torch.full((POINTS,), 0.3**4, dtype=torch.float64)
    likeliest = calibration.likeliest_variance(truth.values, shifted)
    assert torch.allclose(likeliest.square().mean(0), expected)


def test_the_likeliest_variance_is_the_mean_squared_error_of_each_tenth_by_variance():
    draw = torch.Generator().manual_seed(0)
    variance = torch.rand(200, 3, generator=draw, dtype=torch.float64)
    error = torch.randn(200, 3, generator=draw, dtype=torch.float64)
    zero, one = torch.zeros_like(error), torch.ones_like(error)
    found = Evidence(error, one, 2 * one, variance / 2)
    best = calibration.likeliest_variance(zero, found)
    for point in range(3):
        order = np.argsort(variance[:, point].numpy())
        for tenth in np.array_split(order, 10):
            expected = error[:, point].square().numpy()[tenth].mean()
            assert best[tenth, point].numpy() == pytest.approx(expected)


def test_a_calibrated_network_lies_at_its_floors_and_a_sure_one_above():
    draw = torch.Generator().manual_seed(0)
    shape = (400, 8)
    alpha = 1.2 + 3 * torch.rand(shape, generator=draw, dtype=torch.float64)
    beta = torch.rand(shape, generator=draw, dtype=torch.float64) + 0.1
    found = Evidence(torch.zeros_like(beta), 0.5 * torch.ones_like(beta), alpha, beta)
    scale = np.sqrt((beta * 3 / alpha).numpy())
    drawn = np.random.default_rng(1).standard_t(2 * alpha.numpy()) * scale
    for factor, calm in ((1.0, True), (3.0, False)):
        values = torch.from_numpy(factor * drawn)
        row = calibration.calibration_scores(values, found)
        for name in ("gence", "gence_point", "ence"):
            assert (row[name] < 1.25 * row[f"{name}_floor"]) is calm
            assert row[name] > 0.8 * row[f"{name}_floor"]
        assert (abs(row["inside_50"] - 0.5) < 0.03) is calm
        assert (abs(row["inside_90"] - 0.9) < 0.03) is calm
    assert row["gence_floor"] > 0.6  # a Gaussian has .571
    assert row["ence_floor"] > 0.05  # though nothing is wrong


def test_wavenumbers_add_up_to_the_whole(data, trained):
    truth = truth_of(data)
    one = read_answers(trained)[0]
    rows = measures.by_wavenumber(truth, one, data.wavenumbers)
    scores = measures.scores(truth, one)
    assert sum(row["bleed"] for row in rows) == pytest.approx(scores["bleed"])
    assert sum(row["optimal"] for row in rows) == pytest.approx(scores["optimal"])
    assert np.mean([row["ence"] for row in rows]) == pytest.approx(scores["ence"])


def test_correlations_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    one, other = np.random.default_rng(0).normal(size=(2, 30, 12))
    other += one
    found = signals.correlations(torch.from_numpy(one), torch.from_numpy(other))
    assert found["all"] == pytest.approx(stats.spearmanr(one.ravel(), other.ravel())[0])
    along = sorted(stats.spearmanr(a, b)[0] for a, b in zip(one, other, strict=True))
    assert found["along"] == pytest.approx(np.median(along))
    across = sorted(stats.spearmanr(a, b)[0] for a, b in zip(one.T, other.T, strict=True))
    assert found["across"] == pytest.approx(np.median(across))


def test_slope_and_detail_find_a_line_on_a_slow_hill():
    x = torch.linspace(0, 1, 60, dtype=torch.float64)
    hill = torch.sin(3 * x)[None]
    line = torch.zeros(1, 60, dtype=torch.float64)
    line[0, 30] = 1.0
    assert signals.detail(hill + line).argmax() == 30
    assert signals.slope(hill + line).argmax() in (29, 31)
    assert signals.detail(hill)[:, 8:-8].max() < 0.02


def test_twins_are_the_molecules_to_which_a_network_on_bonds_answers_alike(data):
    torch.manual_seed(0)
    network = SpectrumNet("bonds", POINTS).double()
    inputs = {"pos": data.pos[:-1], "numbers": data.numbers[:-1]}
    with torch.no_grad():
        answers = network(inputs).gamma
    alike = (answers[:, None] - answers).abs().amax(-1) < 1e-10
    hashes = bond_hashes(inputs)
    assert torch.equal(alike, torch.from_numpy(hashes[:, None] == hashes))
    found = measures.limits(data)
    assert found["twins"] == int((alike.sum(1) > 1).sum()) > 0
    tested, learnt = data.rows("test"), data.rows("train")
    assert found["twins_seen"] == int(alike[tested, learnt].any(1).sum())


def test_what_bonds_cannot_know_is_the_spread_over_twins(data):
    center, width = data.scale()
    values = ((data.targets[:-1].double() - center) / width).numpy()
    hashes = bond_hashes({"pos": data.pos[:-1], "numbers": data.numbers[:-1]})
    variance = np.zeros_like(values)
    for one in {*hashes.tolist()}:
        variance[hashes == one] = values[hashes == one].var(0)
    found = measures.limits(data)
    assert found["bonds_mse"] == pytest.approx(variance.mean())
    assert found["bonds_bleed"] == pytest.approx((variance**2).sum(1).mean())
    assert found["twins_alike"] < found["twins"]
    nearly_one = data.spectra[:1].repeat(121, 1)
    nearly_one[-2] *= 2
    assert measures.limits(data._replace(spectra=nearly_one))["twins_alike"] > 0


def test_predictions_are_measured_into_tables_and_the_page_is_written_from_them(
    packed, trained, tmp_path, monkeypatch
):
    monkeypatch.setattr(calibration, "DRAWS", 2)
    command("collect", packed, tmp_path)
    command("compare", packed, tmp_path)
    command("compare-more", packed, tmp_path)
    command("page", packed, tmp_path)
    text = (tmp_path / "spectra" / "protocol.md").read_text()
    assert text.count("| steerable | the paper's |") == 2
    drawn = {"samples", "wavenumbers", "explained", "signals", "remedy", "learning", "trainings"}
    assert {path.stem for path in (tmp_path / "spectra").glob("*.png")} == drawn
    tables = {*drawn - {"remedy", "learning"}, "results", "limits", "contrasts", "training_limits"}
    tables |= {"more_trainings", "more_limits", "more_contrasts"}
    assert {path.stem for path in tmp_path.glob("*.csv")} == tables


def test_a_better_training_differs_and_an_equal_one_does_not(data):
    truth = truth_of(data)
    draw = torch.Generator().manual_seed(0)

    def answers(name: str, error: float, seed: int) -> Answers:
        noise = torch.randn(truth.values.shape, generator=draw, dtype=torch.float64)
        found = perfect(truth, 1.0)._replace(gamma=truth.values + error * noise)
        row = {"network": "bonds", "training": name, "penalty": PENALTY, "parts": 1, "seed": seed}
        return Answers(row, found, found)

    errors = {PAPER: 0.5, "squares": 0.5, REMEDY: 0.1}
    every = [answers(name, error, s) for name, error in errors.items() for s in range(3)]
    rows = pd.DataFrame(contrasts.contrast_rows(truth, every))
    change = rows[rows["of"] == "change"].set_index(["training", "measure"])
    assert change["low"][REMEDY, "r2"] > 0
    assert change["high"][REMEDY, "nll"] < 0
    assert change["low"]["squares", "r2"] < 0 < change["high"]["squares", "r2"]
    level = rows[rows["of"] == "level"].set_index(["training", "measure"])
    # Half of a variance of 1 at each of the wavenumbers is called noise.
    assert level["value"][PAPER, "typical"] == pytest.approx(np.log10(POINTS / 4))
    whole = [float(truth.explained(one.test.gamma).quantile(0.5)) for one in every[:3]]
    assert level["value"][PAPER, "r2"] == pytest.approx(np.mean(whole))


def test_a_median_is_known_as_well_as_its_order_statistics():
    rows = pd.DataFrame({"share": [0.0, 0.5, 1.0], "r2": [0.0, 0.5, 1.0]})
    # 16 molecules: order statistics at the shares 1/2 ± 1.96 / 8
    assert report.median_interval(rows, 16) == pytest.approx([0.255, 0.745])


def test_the_learning_curve_is_extended_by_its_last_power_law():
    kind = {"network": "bonds", "training": REMEDY, "seed": 0}
    halved = [{"train": 64, "r2_median": 0.8}, {"train": 16, "r2_median": 0.2}]
    halved.append({"train": 32, "r2_median": 0.6})
    found = report.learning_curve(pd.DataFrame([kind | row for row in halved]), "bonds")
    assert found["train"].tolist() == [16, 32, 64]
    assert found["exponent"].tolist()[1:] == pytest.approx([1, 1])
    assert found["needed"].iloc[-1] == pytest.approx(128)
    assert found["extended"].iloc[-1] == pytest.approx(1 - 0.2 * 64 / 130_000)


def test_verdicts_about_trainings_follow_their_rules():
    def row(training_name, measure, of, value, reach):
        ends = {"value": value, "low": value - reach, "high": value + reach}
        return {"network": "bonds", "training": training_name, "measure": measure, "of": of} | ends

    table = pd.DataFrame(
        [
            row(REMEDY, "r2", "change", 0.4, 0.1),
            row(REMEDY, "nll", "change", 0.4, 0.1),
            row(REMEDY, "typical", "change", -0.1, 0.2),
            row("squares", "r2", "change", 0.3, 0.1),
            row("apart", "r2", "change", 0.05, 0.05),
            row("longer", "r2", "change", 0.15, 0.1),
            row(PAPER, "r2", "level", 0.8, 0.02),
            row(REMEDY, "r2", "level", 0.95, 0.02),
        ]
    )
    asked = contrasts.questions(table)
    found = {name: rows["verdict"].tolist() for name, rows in asked.items()}
    assert found == {
        "remedy": ["helps", "harms", "open"],
        "parts": ["carries", "does not", "open"],
        "levels": ["contradicted", "confirmed"],
    }
    other = table.assign(value=table["value"].mask(table["training"] == "squares", 0.1))
    find, changed = (contrasts.finder(contrasts.questions(one)) for one in (table, other))
    assert contrasts.repeated(find, find, "bonds", "bonds")
    assert not contrasts.repeated(find, changed, "bonds", "bonds")
    # Two intervals hold at once if they are wider than one alone.
    assert (asked["levels"]["low"] < [0.78, 0.93]).all()


CHANGES = {  # training, table, column, value, and the claim that it decides
    (PAPER, "results", "detail_all", 0.1): "| Fine structure of a spectrum is taken",
    (PAPER, "results", "noise_detail_all", 0.1): "| … not only in size",
    (PAPER, "results", "epistemic_along", 0.5): "| Aleatoric and epistemic uncertainty",
    (PAPER, "wavenumbers", "noise_share", 0.5): "| … so the network cannot separate",
    (PAPER, "results", "bleed_top", 0.5): "| All that bleed can show",
    (PAPER, "limits", "twins", 0): "| … and for networks on bonds",
    (PAPER, "results", "r2_median", 0.95): "| R² on test molecules",
    (PAPER, "results", "bleed", 0.0): "| … nor does it prevent bleed",
    (PAPER, "results", "noise_share", 0.5): "| Here: the penalty sets",
    (REMEDY, "results", "mse", 2.0): "| The mean squared error falls",
    (REMEDY, "results", "nll", -9.0): "| NLL over all entries rises",
    (REMEDY, "results", "typical", 1.0): "| Typical bleed falls",
}


def test_claims_are_decided_by_the_numbers(tmp_path: Path) -> None:
    paths = Paths.in_checkout("spectra")
    given, changed = Results(paths.results), Results(tmp_path)
    compared = ("contrasts", "trainings", "training_limits")
    untouched = (*compared, "more_contrasts", "more_trainings", "more_limits")
    for name in ("results", "wavenumbers", "explained", "limits", *untouched):
        frame = given[name].copy()
        for training_name, table, column, value in CHANGES:
            if table == name:
                rows = slice(None) if table == "limits" else frame["training"] == training_name
                frame.loc[rows, column] = value
        changed.write(name, frame)
    before, after = (
        parted(render(study, Results(paths.results), paths.template), study.name)[1],
        parted(render(study, changed, paths.template), study.name)[1],
    )
    for claim in CHANGES.values():
        was, now = (
            next(line for line in page.splitlines() if line.startswith(claim)).rsplit("|", 2)[1]
            for page in (before, after)
        )
        assert was.count("not confirmed") != now.count("not confirmed"), claim


def test_missing_files_are_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command("train", tmp_path, tmp_path)
    assert "there is no file" in capsys.readouterr().err
    with pytest.raises(InputError, match="run the step 'train' first"):
        read_answers(Results(tmp_path, tmp_path / "none"))
