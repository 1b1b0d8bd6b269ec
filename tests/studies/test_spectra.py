"""The spectra study: molecules packed, networks trained and resumed, answers measured, page."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from orbical.datasets import infrared_spectra
from orbical.errors import InputError
from orbical.studies.spectra import commands, findings, measures, packing, signals, training
from orbical.studies.spectra import page as pages
from orbical.studies.spectra.settings import EXAMPLE, NETWORKS, Trial, trials
from orbical.training.heads import Evidence

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
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("spectra") / "spectra.npz"
    write_pack(path)
    return path


@pytest.fixture(scope="module")
def trained(packed):
    """Every training of the study with one seed, two epochs long."""
    pytest.importorskip("e3nn", reason="e3nn is not installed")
    commands.main(words_to_train(packed))
    return packed.parent / "out"


def words_to_train(packed) -> list[str]:
    out = str(packed.parent / "out")
    return ["train", "--pack", str(packed), "--out", out, "--epochs", "2", "--seeds", "0"]


@pytest.fixture(scope="module")
def data(packed):
    return packing.unpack(packed, torch.device("cpu"))


def test_every_network_is_trained_with_each_seed_and_once_without_the_penalty():
    named = [str(trial) for trial in trials()]
    assert len(named) == len({*named}) == len(NETWORKS) * 4
    assert sum(trial.penalty == 0 for trial in trials()) == len(NETWORKS)


def test_splits_share_no_molecule_and_leave_out_none(data):
    whole = torch.arange(len(data.pos))
    splits = [whole[data.rows(name)] for name in ("test", "validation", "train", "example")]
    assert torch.equal(torch.cat(splits), whole)
    assert [len(rows) for rows in splits] == [24, 12, 84, 1]
    assert data.smiles[-1] == EXAMPLE


def test_trainings_are_written_at_once_and_not_repeated(packed, trained, capsys):
    rows = [json.loads(line) for line in (trained / "trials.jsonl").open()]
    assert {row["name"] for row in rows} == {str(trial) for trial in trials((0,))}
    for row in rows:
        assert row["steps"] == 4
        assert row["defect"] < 1e-4  # every network is invariant
        assert 250_000 < row["backbone"] < 350_000  # and of like size
    (one,) = trained.glob("steerable-penalty0.1-seed0.npz")
    with np.load(one) as file:
        assert file["test"].shape == (4, 25, POINTS)
        assert file["curve"].shape == (2, 2)
    commands.main(words_to_train(packed))
    assert "0 networks to train" in capsys.readouterr().out


def test_training_lowers_the_likelihood_and_ends_in_time(data):
    found = training.run(data, Trial("distances", epochs=12))
    assert found["curve"][-1, 1] < found["curve"][0, 1] - 0.1
    assert found["scores"]["validation_nll"] == pytest.approx(found["curve"][:, 1].min(), rel=1e-5)
    short = training.run(data, Trial("bonds", epochs=10_000, seconds=0.3))
    assert 1 <= len(short["curve"]) < 1000


def test_packing_takes_what_time_allows_and_keeps_the_relaxed_geometry(tmp_path, monkeypatch):
    pytest.importorskip("tblite", reason="tblite is not installed")
    pytest.importorskip("ase", reason="ase is not installed")
    from ase.build import molecule

    import orbical as ob

    inputs, _ = ob.datasets.molecules([molecule(name) for name in ("H2O", "CO2", "NH3", "CH4")])
    inputs = {name: inputs[name] for name in ("pos", "numbers", "mask")}
    inputs["pos"][1] = 0.0  # carbon dioxide fails
    names = ("O", "O=C=O", "N", EXAMPLE)
    found = ob.datasets.qm9_molecules.Molecules(inputs, {}, torch.arange(4), names)
    monkeypatch.setattr(packing, "qm9", lambda *_, **__: found)
    monkeypatch.setattr(packing, "FEWEST", 2)
    path = packing.pack(tmp_path / "spectra.npz", tmp_path, minutes=0, count=3)
    data = packing.unpack(path, torch.device("cpu"))
    assert data.smiles == ("O", "N", EXAMPLE)
    assert data.failed == 1
    assert (data.numbers > 0).sum(1).tolist() == [3, 4, 5]
    water = ob.datasets.spectra(
        {name: values[:1] for name, values in inputs.items()}, cache=tmp_path, progress=False
    )
    assert torch.allclose(data.spectra[0].double(), water.spectra[0], rtol=1e-6)
    assert torch.allclose(data.pos[0, :3].double(), water.relaxed[0, :3], atol=1e-6)
    assert float(data.noise.max()) < 1e-4
    monkeypatch.setattr(packing, "FEWEST", 100)
    with pytest.raises(InputError, match="2 molecules were labelled, at least 100 expected"):
        packing.pack(tmp_path / "spectra.npz", tmp_path, minutes=0, count=3)


def perfect(truth: measures.Truth, variance: float) -> Evidence:
    """Answers without error that report one variance, half of it as noise."""
    part = torch.full_like(truth.values, variance)
    return Evidence(truth.values, torch.ones_like(part), 2 * torch.ones_like(part), part / 2)


def test_a_network_without_error_explains_all_and_bleeds_what_it_reports(data, trained):
    truth = measures.truth_of(data)
    row = measures.read_answers(trained)[0].row
    found = perfect(truth, 0.02)
    scores = measures.scores(truth, measures.Answers(row, found, found))
    assert scores["r2_median"] == scores["r2_above"] == scores["r2_absorption"] == pytest.approx(1)
    for name in ("bleed", "typical"):
        assert scores[name] == pytest.approx(POINTS * 0.01**2)
    assert scores["noise_share"] == pytest.approx(0.5)
    assert scores["height_top"] == pytest.approx(1)
    assert scores["optimal"] == scores["mse"] == 0
    assert scores["inside_50"] == 1


def test_the_optimal_bleed_is_that_of_the_error_where_variances_say_nothing(data):
    truth = measures.truth_of(data)
    shifted = perfect(truth, 1.0)._replace(gamma=truth.values + 0.3)
    expected = torch.full((POINTS,), 0.3**4, dtype=torch.float64)
    assert torch.allclose(measures.optimal_bleed(truth, shifted), expected)


def test_wavenumbers_add_up_to_the_whole(data, trained):
    truth = measures.truth_of(data)
    one = measures.read_answers(trained)[0]
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
    assert found["along"] == pytest.approx(along[14])  # the lower of the two in the middle
    across = sorted(stats.spearmanr(a, b)[0] for a, b in zip(one.T, other.T, strict=True))
    assert found["across"] == pytest.approx(across[5])


def test_slope_and_detail_find_a_line_on_a_slow_hill():
    x = torch.linspace(0, 1, 60, dtype=torch.float64)
    hill = torch.sin(3 * x)[None]
    line = torch.zeros(1, 60, dtype=torch.float64)
    line[0, 30] = 1.0
    assert signals.detail(hill + line).argmax() == 30
    assert signals.slope(hill + line).argmax() in (29, 31)
    assert signals.detail(hill)[:, 8:-8].max() < 0.02


def test_twins_by_name_bound_what_bonds_can_know(data):
    found = measures.structural(data)
    assert found["twins"] == found["molecules"] == 120
    assert found["bonds_mse"] > 0.01
    alone = measures.structural(data._replace(smiles=tuple(map(str, range(121)))))
    assert alone["twins"] == 0
    assert alone["bonds_bleed"] == 0


def test_answers_are_measured_into_files_and_the_page_is_written_from_them(
    packed, trained, tmp_path, capsys
):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    page = tmp_path / "spectra.md"
    commands.main(["all", *words_to_train(packed)[1:], "--page", str(page)])
    said = capsys.readouterr().out
    assert "0 networks to train" in said  # nothing that is there is made again
    assert all(f"{name}.csv" in said for name in pages.FILES)
    first = page.read_text()
    commands.main(["report", "--page", str(page)])
    assert page.read_text() == first
    text = page.read_text()
    assert "17.6" in text
    assert text.count("| steerable | 0.1 |") == 4
    files = {path.name for path in page.with_suffix("").iterdir()}
    assert {"samples.png", "wavenumbers.png", "explained.png", "signals.png"} < files
    assert all(path.stat().st_size < 200_000 for path in page.with_suffix("").glob("*.png"))


def results(**columns) -> dict:
    """Rows of all networks and penalties with these numbers."""
    base = {
        **dict.fromkeys(("detail_all", "height_all", "error_detail_all", "error_all"), 0.6),
        **dict.fromkeys(("epistemic_along", "epistemic_all", "epistemic_error_all"), 0.9),
        **dict.fromkeys(("noise_error_all", "noise_detail_all"), 0.0),
        **dict.fromkeys(("bleed", "typical", "typical_error", "mse", "mse_median", "nll"), 1.0),
        **dict.fromkeys(("r2_median", "r2_above", "height_top", "noise_share"), 0.5),
        **dict.fromkeys(("bleed_top", "near_pole"), 0.5),
    }
    limits = {"train": 5, "molecules": 9, "twins": 2, "mean_r2": 0.1}
    limits |= dict.fromkeys(("label_mse", "label_bleed", "bonds_bleed"), 0.0)
    rows = [
        base
        | {"network": network, "penalty": penalty, "seed": 0}
        | {name: value(network, penalty) for name, value in columns.items()}
        for network in NETWORKS
        for penalty in (0.1, 0.0)
    ]
    places = [row | {"wavenumber": 1000.0} for row in rows]
    return {"results": rows, "wavenumbers": places, "limits": [limits]}


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ({"detail_all": 0.1}, "| not confirmed | Aleatoric variance goes"),
        ({"noise_detail_all": -0.5}, "| confirmed in size, not in share"),
        ({"detail_all": 0.9}, "| confirmed | Aleatoric variance goes"),
        ({}, "| confirmed: it reports noise at lines"),
        ({"epistemic_along": 0.5}, "| not confirmed | Rank correlation"),
        ({"bleed_top": 0.99}, "a mean of squares tells less than that"),
        ({"r2_median": 0.95}, "| confirmed | Median R²"),
        ({"r2_above": 0.0}, "| not reached | Median R²"),
    ],
)
def test_verdicts_follow_from_the_numbers(columns, verdict):
    functions = {name: lambda *_, value=value: value for name, value in columns.items()}
    assert verdict in findings.sentences(results(**functions))


def test_the_verdicts_on_symmetry_and_the_penalty_follow_from_the_numbers():
    by_penalty = findings.sentences(results(noise_share=lambda _, p: 0.1 if p else 0.6))
    assert "the penalty sets the share called noise, not what a network sees" in by_penalty
    assert "it sets how much is called noise" in by_penalty
    sees = {"bonds": 3.0, "distances": 2.0, "steerable": 1.0}
    by_network = findings.sentences(results(nll=lambda n, _: sees[n], typical=lambda n, _: sees[n]))
    assert "the likelier network bleeds less" in by_network
    assert "| not confirmed | Share called noise" in by_network


def test_the_order_of_networks_is_said_by_likelihood_and_by_error():
    sees = {"bonds": 3.0, "distances": 2.0, "steerable": 1.0}
    agreed = findings.orders(results(nll=lambda n, _: sees[n], mse=lambda n, _: sees[n]))
    assert "by likelihood: steerable, distances, bonds;" in agreed
    assert agreed.endswith("The likelier network errs less.")
    apart = findings.orders(results(nll=lambda n, _: sees[n], mse=lambda n, _: -sees[n]))
    assert "by the mean squared error: bonds, distances, steerable." in apart
    assert "Likelihood and error do not agree. A loss" in apart
    both = {"nll": lambda n, _: sees[n], "mse": lambda n, _: -sees[n]}
    lines = findings.orders(results(**both, mse_median=both["nll"], height_top=both["nll"]))
    assert "Likelihood and error do not agree: steerable, the likeliest" in lines


def test_missing_files_are_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        commands.main(["train", "--pack", str(tmp_path / "none.npz"), "--out", str(tmp_path)])
    assert "there is no file" in capsys.readouterr().err
    with pytest.raises(InputError, match="run the step 'train' first"):
        measures.read_answers(tmp_path)
