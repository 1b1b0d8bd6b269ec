"""The molecule study: packed and scaled data, batches, trainings, measures and the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from orbical.errors import InputError
from orbical.losses import nig_nll
from orbical_studies.data.qm9_molecules import Molecules
from orbical_studies.pages import fill
from orbical_studies.qm9 import (
    collecting,
    commands,
    contests,
    packing,
    sentences,
    training,
)
from orbical_studies.qm9 import page as page_of
from orbical_studies.qm9.findings import FINDINGS
from orbical_studies.qm9.network import Model, answers
from orbical_studies.qm9.settings import NETWORKS, PRINTED, PROPERTIES, Trial, trials
from orbical_studies.qm9.tables import TABLES

COUNT = 120


def chains(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Zigzag chains of carbon, nitrogen and oxygen, 3 to 24 atoms, 1.45 Å apart."""
    draw = torch.Generator().manual_seed(seed)
    sizes = torch.randint(3, 25, (count,), generator=draw)
    sizes[:2] = 24
    steps = torch.randn(count, 24, 3, generator=draw) + torch.tensor([2.0, 0, 0])
    pos = (1.45 * steps / steps.norm(dim=-1, keepdim=True)).cumsum(1)
    mask = torch.arange(24) < sizes[:, None]
    numbers = torch.tensor([6, 7, 8])[torch.randint(3, (count, 24), generator=draw)]
    return pos * mask[..., None], numbers * mask


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Made-up molecules in the form of the packed data: a few properties of size and shape."""
    columns: dict[str, list[np.ndarray]] = {}
    for place in range(3):
        pos, numbers = chains(COUNT, place)
        mask = numbers > 0
        size = mask.sum(1).double()
        reach = pos.norm(dim=-1).amax(1).double()
        targets = torch.stack(
            [size * -378.0 if "u" in name[:1] else reach / size for name in PROPERTIES], 1
        )
        linear = torch.zeros(COUNT, dtype=torch.bool)
        linear[-1] = True
        parts = {
            "sizes": mask.sum(1).to(torch.uint8),
            "numbers": numbers[mask].to(torch.int8),
            "positions": pos[mask],
            "targets": targets,
            "split": torch.full((COUNT,), place, dtype=torch.uint8),
            "linear": linear,
            "bond_class": torch.arange(COUNT) + place * COUNT,
        }
        for name, values in parts.items():
            columns.setdefault(name, []).append(values.numpy())
    path = tmp_path_factory.mktemp("qm9") / "qm9.npz"
    np.savez(path, **{name: np.concatenate(parts) for name, parts in columns.items()})
    return path


@pytest.fixture(scope="module")
def data(packed):
    return packing.unpack(packed, torch.device("cpu"))


def test_every_training_has_a_name_of_its_own():
    named = [str(trial) for trial in trials()]
    assert len(named) == len({*named}) == 3 * 3 + 2 + 2 * 2


def test_lines_of_atoms_are_left_out(data):
    assert [len(data.rows(split)) for split in packing.SPLITS] == [COUNT - 1] * 3


def test_scales_are_deviations_and_for_heavy_tails_quartiles():
    draw = torch.Generator().manual_seed(0)
    targets = torch.randn(20_000, 11, generator=draw, dtype=torch.float64) * 3 - 1e4
    targets[:20, PROPERTIES.index("rotational_a")] = 1e6  # as water among large molecules
    centre, width = packing.scale_of(targets)
    assert torch.allclose(centre, torch.full_like(centre, -1e4), atol=0.1)
    assert torch.allclose(width, torch.full_like(width, 3.0), rtol=0.02)


def test_bond_graphs_are_told_apart_as_gin_does():
    pos, numbers = chains(40, 3)
    pos, numbers = pos[:, :12], numbers[:, :12]
    turned = pos.roll(1, -1)
    mirrored = numbers.clone()
    mirrored[:, 0] = torch.where(numbers[:, 0] == 6, 8, 6)
    ours = packing.bond_hashes({"pos": pos, "numbers": numbers}, chunk=7)
    assert (ours == packing.bond_hashes({"pos": turned, "numbers": numbers})).all()
    assert (ours != packing.bond_hashes({"pos": pos, "numbers": mirrored})).all()
    torch.manual_seed(0)
    backbone = Model("GIN", 1).double().backbone
    features = backbone({"pos": pos.double(), "numbers": numbers}).detach()
    same = (features[:, None] - features).abs().amax(-1) < 1e-10
    assert torch.equal(same, torch.from_numpy(ours[:, None] == ours))


@pytest.mark.parametrize("network", NETWORKS)
def test_answers_come_back_in_the_order_of_the_molecules(data, network):
    session = training.Session(data, Trial(network, batch=16))
    rows = data.rows("test")
    found = answers(session.model, session.shelf("test"))
    alone = session.model({"pos": data.pos[rows[5:6]], "numbers": data.numbers[rows[5:6]]})
    assert torch.allclose(found.gamma[5], alone.gamma[0], atol=1e-5)
    assert torch.allclose(found.variance[5], alone.variance[0], rtol=1e-4)


def test_an_epoch_sees_molecules_once_and_large_ones_only_where_they_fit(data):
    session = training.Session(data, Trial("GIN", batch=8))
    drawn = list(session.batches())
    assert len(drawn) == session.steps_an_epoch
    places = torch.cat([places for places, _ in drawn])
    assert len(places) == len(places.unique()) > 100
    for places, most in drawn:
        assert session.train.sizes[places].max() <= most
    assert {most for _, most in drawn} == {22, 24}


def test_weights_of_properties_change_no_head_but_what_the_backbone_hears(data):
    """The slope that a property sends back is its own times its predicted deviation."""
    session = training.Session(data, Trial("GIN", epochs=1, batch=8))
    session.done = session.steps_an_epoch  # past the start
    (places, most), *_ = session.batches()
    session.loss(places, most).backward()
    given = session.model.heads.bias.grad.clone().view(4, -1)
    session.model.zero_grad()
    graph, target = session.train.take(places, most)
    evidence = [part.double() for part in session.model.on_graph(graph)]
    nig_nll(*evidence, target).backward()
    plain = session.model.heads.bias.grad.view(4, -1)
    _, nu, alpha, beta = evidence
    weight = (beta * (1 + nu) / (alpha * nu)).sqrt().mean(0).float()
    assert torch.allclose(given, plain * weight, rtol=1e-4, atol=1e-7)


def test_networks_are_of_one_size():
    sizes = {sum(p.numel() for p in Model(name, 11).backbone.parameters()) for name in NETWORKS}
    assert max(sizes) < 1.03 * min(sizes)


def test_the_oriented_network_sees_directions_and_no_padding(data):
    torch.manual_seed(0)
    network = Model("oriented", 1).backbone
    batch = {"pos": data.pos[:4, :24], "numbers": data.numbers[:4, :24]}
    wide = {"pos": data.pos[:4].clone(), "numbers": data.numbers[:4]}
    wide["pos"][wide["numbers"] == 0] = 7.0
    with torch.no_grad():
        assert torch.allclose(network(wide), network(batch), atol=1e-5)
        shifted = batch | {"pos": batch["pos"] + 3.0}
        assert torch.allclose(network(shifted), network(batch), atol=1e-4)
        turned = batch | {"pos": batch["pos"] @ training.rotations(4).float()}
        assert (network(turned) - network(batch)).abs().amax() > 1e-3


def test_the_rate_ends_at_zero_and_the_start_ends_before(data):
    session = training.Session(data, Trial("GIN", epochs=10, batch=8))
    total = 10 * session.steps_an_epoch
    rates, starts = [], []
    for session.done in range(total + 1):
        rates.append(session.rate())
        starts.append(session.starting)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert max(rates) <= training.RATE
    assert sum(starts) == pytest.approx(training.START * total, abs=1)
    assert not training.Session(data, Trial("GIN", loss=PRINTED, batch=8)).starting


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_learn_and_stay_finite(data, network):
    found = training.run(data, Trial(network, epochs=8, batch=16))
    assert np.isfinite(found["test"]).all()
    assert np.isfinite(found["curve"]).all()
    assert found["test"].shape == (4, COUNT - 1, len(PROPERTIES))
    first, last = found["curve"][0, 1], found["curve"][-1, 1]
    assert last[PROPERTIES.index("u0")] < 0.85 * first[PROPERTIES.index("u0")]
    assert found["scores"]["steps"] == 8 * 7
    assert (max(found["scores"]["defect"]) < 1e-4) is (network != "oriented")


def test_the_command_trains_what_is_missing_and_no_more(packed, tmp_path, capsys):
    words = ["train", "--pack", str(packed), "--out", str(tmp_path), "--epochs", "1"]
    words += ["--batch", "16", "--seeds", "0", "--only", "/dipole/"]
    commands.main(words)
    rows = [json.loads(line) for line in (tmp_path / "trials.jsonl").open()]
    assert [row["name"] for row in rows] == [
        f"{network}/dipole/likelihood/seed 0" for network in ("invariant", "GIN")
    ]
    with np.load(tmp_path / "GIN-dipole-likelihood-seed0.npz") as file:
        assert file["test"].shape == (4, COUNT - 1, 1)
    commands.main(words)
    assert "0 networks to train" in capsys.readouterr().out.splitlines()[-1]


def test_minutes_choose_one_number_of_epochs_for_all(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "LASTING", 0.3)
    monkeypatch.setattr(commands, "ENDING", 0.0)
    words = ["train", "--pack", str(packed), "--out", str(tmp_path), "--minutes", "0.02"]
    commands.main([*words, "--batch", "16", "--seeds", "0", "--only", "/dipole/"])
    epochs = {json.loads(line)["epochs"] for line in (tmp_path / "trials.jsonl").open()}
    assert len(epochs) == 1
    assert min(epochs) >= 1


def test_what_is_missing_or_wrong_is_said(tmp_path, capsys):
    words = ["train", "--pack", str(tmp_path / "none.npz"), "--out", str(tmp_path)]
    with pytest.raises(InputError, match="there is no file"):
        packing.unpack(tmp_path / "none.npz", torch.device("cpu"))
    with pytest.raises(SystemExit):
        commands.main([*words, "--epochs", "0"])
    assert "epochs: got 0, expected at least 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        commands.main([*words, "--workers", "2", "--minutes", "1"])
    assert capsys.readouterr().err.startswith("error: pack: there is no file")


def results_of(folder, data, better: str = "invariant") -> None:
    """Write made-up results: calibrated networks, of which one has a third of the others' error."""
    truth = collecting.truth_of(data)
    draw = np.random.default_rng(0)
    lines = []
    for trial in trials(seeds=(0, 1), epochs=5):
        width = 0.1 if trial.network == better else 0.3
        count = len(truth.test)
        evidence = np.zeros((4, count, len(trial.properties)))
        for place, name in enumerate(trial.properties):
            nu, alpha = draw.uniform(1, 3, count), draw.uniform(3, 6, count)
            beta = width**2 * draw.uniform(0.5, 2, count)
            scale = np.sqrt(beta * (1 + nu) / (alpha * nu))
            gamma = truth.scaled(name) - scale * draw.standard_t(2 * alpha)
            evidence[:, :, place] = gamma, nu, alpha, beta
        curve = np.linspace(1, width, 5)[:, None, None] * np.ones((5, 3, len(trial.properties)))
        arrays = {"test": evidence, "curve": curve}
        row = {"name": str(trial), **vars(trial), "steps": 50, "parameters": 9, "backbone": 5}
        row |= {"seconds": 60.0, "seen_mae": [width] * len(trial.properties)}
        if trial.network == "oriented":
            arrays["turned"] = evidence + np.array([1.0, 0, 0, 0])[:, None, None]
            row["defect"] = [1.0] * len(trial.properties)
        stem = str(trial).replace("/", "-").replace(" ", "")
        np.savez(folder / f"{stem}.npz", **arrays)
        lines.append(json.dumps(row))
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")


def test_verdicts_follow_the_numbers(packed, data, tmp_path):
    texts = {}
    for better in ("invariant", "GIN"):
        folder = tmp_path / better
        folder.mkdir()
        results_of(folder, data, better)
        read = collecting.collect(packed, folder)
        texts[better] = sentences.sentences(read)
        written = "".join(table(read) for table in (TABLES | FINDINGS).values()).lower()
        assert "bleed follows the error" in written
        assert " nan" not in written
        free = contests.contest(read, "mae", "invariant", "oriented")
        assert (free.first == len(PROPERTIES)) is (better == "invariant")
        assert contests.contest(
            read, "mae", "oriented", "oriented", ("turned", "given")
        ).second == len(PROPERTIES)
    assert "it lowers bleed" in texts["invariant"]
    assert "it lowers bleed" not in texts["GIN"]


@pytest.mark.parametrize(
    ("least", "ratio", "most", "unequal", "verdict"),
    [
        (0.9, 1.0, 1.2, True, "confirmed"),
        (0.5, 0.82, 1.03, True, "confirmed that it does not prevent bleed; open whether"),
        (0.5, 0.82, 1.03, False, "confirmed that it does not prevent bleed; open whether"),
        (0.4, 0.5, 0.6, True, "confirmed that it does not prevent bleed; open whether"),
        (0.4, 0.5, 0.6, False, "it lowers bleed, and does not prevent it"),
        (1.5, 2.0, 3.0, True, "confirmed: it does not lower bleed"),
    ],
)
def test_a_symmetry_changes_nothing_only_where_no_pair_of_seeds_differs(
    least, ratio, most, unequal, verdict
):
    found = contests.Contest(0, 0, ratio, least, most)
    said = sentences._of_bleed(found, unequal)
    assert said == verdict or (verdict != "confirmed" and said.startswith(verdict))


def test_one_answer_for_a_bond_graph_leaves_its_variance(packed, data):
    paired = data._replace(bond_class=torch.arange(len(data.linear)) // 2)
    rows = collecting.limits(collecting.truth_of(paired))
    kept = ~paired.linear
    for row in rows:
        place = PROPERTIES.index(row["property"])
        z = ((paired.targets[kept, place] - row["mean"]) / row["deviation"]).numpy()
        classes = paired.bond_class[kept].numpy()
        spread = {c: z[classes == c].var() for c in classes}
        assert row["bond_bleed"] == pytest.approx(np.mean([spread[c] ** 2 for c in classes]))
        assert row["bond_rmse"] == pytest.approx(np.mean([spread[c] for c in classes]) ** 0.5)
    assert all(row["bond_bleed"] < 1e-30 for row in collecting.limits(collecting.truth_of(data)))


def test_the_least_absolute_error_by_bonds_is_that_of_each_class_median(data):
    tripled = data._replace(bond_class=torch.arange(len(data.linear)) // 3)
    kept = ~tripled.linear
    classes = tripled.bond_class[kept].numpy()
    for row in collecting.limits(collecting.truth_of(tripled)):
        place = PROPERTIES.index(row["property"])
        z = ((tripled.targets[kept, place] - row["mean"]) / row["deviation"]).numpy()
        least = sum(
            min(np.abs(z[classes == c] - answer).sum() for answer in z[classes == c])
            for c in np.unique(classes)
        )
        assert row["bond_mae"] == pytest.approx(least / len(z))


def test_agreement_is_over_all_pairs_of_seeds(packed, data, tmp_path):
    results_of(tmp_path, data)
    read = collecting.collect(packed, tmp_path)
    place = PROPERTIES.index("dipole")

    def epistemic(network, seed):
        _, nu, alpha, beta = np.load(tmp_path / f"{network}-all-likelihood-seed{seed}.npz")["test"]
        return (beta / (nu * (alpha - 1)))[:, place]

    expected = [
        spearmanr(epistemic("GIN", a), epistemic("invariant", b)).statistic
        for a in (0, 1)
        for b in (0, 1)
    ]
    found = contests.agreements(read, "epistemic", "GIN", "invariant")
    assert sorted(found) == pytest.approx(sorted(expected))
    assert contests.agreement(read, "epistemic") == pytest.approx(np.mean(expected))
    alone = contests.agreements(read, "epistemic", "GIN", "GIN")
    assert alone == pytest.approx([spearmanr(epistemic("GIN", 0), epistemic("GIN", 1)).statistic])


def molecules(split: str, properties: tuple[str, ...], count: int, cache: object) -> Molecules:
    """Made-up molecules in the form of the data set, so that no package need be there."""
    pos, numbers = chains(count, packing.SPLITS.index(split))
    mask = numbers > 0
    reach = pos.norm(dim=-1).amax(1).double()
    targets = {name: reach * (1 + place) for place, name in enumerate(properties)}
    inputs = {"pos": pos, "numbers": numbers, "mask": mask}
    return Molecules(inputs, targets, torch.arange(count), ("",) * count)


def test_one_command_goes_from_molecules_to_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(packing, "qm9", molecules)
    page, out = tmp_path / "docs" / "qm9.md", tmp_path / "results"
    options = ["--out", str(out), "--page", str(page), "--seeds", "0"]
    options += ["--count", "30", "--epochs", "1", "--batch", "16"]
    commands.main(options)
    assert (out / packing.FILE).is_file()
    written = page.read_text()
    assert "| trainings | 9 |" in written
    figures = sorted(path.name for path in page.with_suffix("").glob("*.png"))
    assert figures == ["bleed.png", "calibration.png", "curves.png", "dipole.png", "errors.png"]
    assert fill(written, page_of.tables_of(page.with_suffix(""))) == written
    capsys.readouterr()
    commands.main(["train", *options])
    assert "0 networks to train" in capsys.readouterr().out


def test_the_page_is_refused_without_what_it_compares(packed, data, tmp_path, capsys):
    page = tmp_path / "docs" / "qm9.md"
    words = ["collect", "--pack", str(packed), "--out", str(tmp_path), "--page", str(page)]
    results_of(tmp_path, data)
    lines = (tmp_path / "trials.jsonl").read_text().splitlines()
    kept = [line for line in lines if "printed" not in line]
    (tmp_path / "trials.jsonl").write_text("\n".join(kept) + "\n")
    with pytest.raises(SystemExit):
        commands.main(words)
    assert "no training like 'invariant/all/printed/seed 0'" in capsys.readouterr().err
    trained = collecting.read_trials(tmp_path)
    with pytest.raises(InputError, match=f"answers {COUNT - 1} molecules, the pack tests 10"):
        collecting.checked(trained, 10)
