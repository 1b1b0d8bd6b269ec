"""The molecule study: packed and scaled data, batches, trainings, measures and the page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr

from orbical.errors import InputError
from orbical.losses import nig_nll
from orbical_studies.data.qm9_molecules import Molecules
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.qm9 import collecting, measures, packing, report, study, training
from orbical_studies.qm9.network import Model, answers
from orbical_studies.qm9.settings import NETWORKS, PRINTED, PROPERTIES, Settings, Trial, trials

COUNT = 120
TINY = Settings(count=30, epochs=1, batch=16, seeds=(0, 1), more_seeds=(2,))


def chains(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Make zigzag chains of carbon, nitrogen and oxygen, 3 to 24 atoms, 1.45 Å apart."""
    draw = torch.Generator().manual_seed(seed)
    sizes = torch.randint(3, 25, (count,), generator=draw)
    sizes[:2] = 24
    steps = torch.randn(count, 24, 3, generator=draw) + torch.tensor([2.0, 0, 0])
    pos = (1.45 * steps / steps.norm(dim=-1, keepdim=True)).cumsum(1)
    mask = torch.arange(24) < sizes[:, None]
    numbers = torch.tensor([6, 7, 8])[torch.randint(3, (count, 24), generator=draw)]
    return pos * mask[..., None], numbers * mask


def molecules(split: str, properties: tuple[str, ...], count: int) -> Molecules:
    """Make molecules in the form of the data set, the last one of a split linear."""
    pos, numbers = chains(count, packing.SPLITS.index(split))
    mask = numbers > 0
    size, reach = mask.sum(1).double(), pos.norm(dim=-1).amax(1).double()
    targets = {n: -378 * size if n[0] == "u" else reach / size for n in properties}
    targets["rotational_a"][-1] = 0.0
    inputs = {"pos": pos, "numbers": numbers, "mask": mask}
    return Molecules(inputs, targets, torch.arange(count), ("",) * count)


@pytest.fixture(scope="module", autouse=True)
def no_files() -> Iterator[None]:
    """Put made-up molecules in the place of the data set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "qm9", molecules)
        patch.setattr(collecting, "RESAMPLES", 20)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Run all steps of the study on a few molecules."""
    results = Results(tmp_path_factory.mktemp("qm9"))
    for step in study.steps.values():
        step(TINY, results)
    return results


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> packing.Pack:
    results = Results(tmp_path_factory.mktemp("pack"))
    packing.pack(Settings(count=COUNT), results)
    return packing.unpack(results.work, torch.device("cpu"))


def test_the_steps_go_from_molecules_to_the_page(results: Results, capsys) -> None:
    paths = Paths.in_checkout("qm9")
    page = render(study, results, paths.template)
    assert "| runs | 12 |" in page
    drawn = {name for name, _ in report.figures(results)}
    assert drawn == {path.name for path in paths.figures.glob("*.png")}
    training.train(TINY, results)
    assert "0 trainings to run, 14 finished before" in capsys.readouterr().out


def test_results_have_the_columns_of_the_committed_ones(results: Results) -> None:
    committed = Results(Paths.in_checkout("qm9").results)
    for path in committed.folder.glob("*.csv"):
        assert list(results[path.stem]) == list(committed[path.stem])


def test_molecules_are_drawn_again_with_every_paired_training(results: Results) -> None:
    assert results["resampled"]["trainings"].unique().tolist() == [2 * 3]  # TINY has three seeds


def test_every_training_has_a_name_of_its_own() -> None:
    named = [str(trial) for trial in trials(Settings())]
    assert len(named) == len({*named}) == 3 * 3 + 2 * 3 + 2 + 2 * 2


def test_lines_of_atoms_are_left_out(data: packing.Pack) -> None:
    assert [len(data.rows(split)) for split in packing.SPLITS] == [COUNT - 1] * 3


def test_scales_are_deviations_and_for_heavy_tails_quartiles() -> None:
    draw = torch.Generator().manual_seed(0)
    targets = torch.randn(20_000, 11, generator=draw, dtype=torch.float64) * 3 - 1e4
    targets[:20, PROPERTIES.index("rotational_a")] = 1e6  # as water among large molecules
    center, width = packing.training_scale(targets)
    assert torch.allclose(center, torch.full_like(center, -1e4), atol=0.1)
    assert torch.allclose(width, torch.full_like(width, 3.0), rtol=0.02)


def test_bond_graphs_are_told_apart_as_gin_does() -> None:
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
def test_answers_come_back_in_the_order_of_the_molecules(data: packing.Pack, network: str) -> None:
    session = training.Session(data, Trial(network, batch=16))
    rows = data.rows("test")
    found = answers(session.model, session.shelf("test"))
    alone = session.model({"pos": data.pos[rows[5:6]], "numbers": data.numbers[rows[5:6]]})
    assert torch.allclose(found.gamma[5], alone.gamma[0], atol=1e-5)
    assert torch.allclose(found.variance[5], alone.variance[0], rtol=1e-4)


def test_an_epoch_sees_molecules_once_and_large_ones_only_where_they_fit(
    data: packing.Pack,
) -> None:
    session = training.Session(data, Trial("GIN", batch=8))
    drawn = list(session.batches())
    assert len(drawn) == session.steps_an_epoch
    places = torch.cat([places for places, _ in drawn])
    assert len(places) == len(places.unique()) > 100
    for places, most in drawn:
        assert session.train.sizes[places].max() <= most
    assert {most for _, most in drawn} == {22, 24}


def test_weights_of_properties_change_no_head_but_what_the_backbone_hears(
    data: packing.Pack,
) -> None:
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


def test_networks_are_of_one_size() -> None:
    sizes = {sum(p.numel() for p in Model(name, 11).backbone.parameters()) for name in NETWORKS}
    assert max(sizes) < 1.03 * min(sizes)


def test_the_oriented_network_sees_directions_and_no_padding(data: packing.Pack) -> None:
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


def test_the_rate_ends_at_zero_and_the_start_ends_before(data: packing.Pack) -> None:
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


def test_a_network_learns(data: packing.Pack) -> None:
    scores, found = training.run(data, Trial("GIN", epochs=8, batch=16))
    assert found["test"].shape == (4, COUNT - 1, len(PROPERTIES))
    first, last = found["curve"][0, 1], found["curve"][-1, 1]
    assert last[PROPERTIES.index("u0")] < 0.85 * first[PROPERTIES.index("u0")]
    assert scores["steps"] == 8 * 7


def test_only_the_oriented_network_notices_a_rotation(results: Results) -> None:
    for line in (results.work / "trials.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert (max(row["defect"]) < 1e-4) is (row["network"] != "oriented")
    assert np.isfinite(results["results"].drop(columns="defect").select_dtypes(float)).all(
        axis=None
    )


def test_one_answer_for_a_bond_graph_leaves_its_variance(data: packing.Pack) -> None:
    paired = data._replace(bond_class=torch.arange(len(data.linear)) // 2)
    rows = collecting.limits(collecting.Truth(paired))
    kept = ~paired.linear
    for row in rows:
        place = PROPERTIES.index(row["property"])
        z = ((paired.targets[kept, place] - row["mean"]) / row["deviation"]).numpy()
        classes = paired.bond_class[kept].numpy()
        spread = {c: z[classes == c].var() for c in classes}
        assert row["bond_bleed"] == pytest.approx(np.mean([spread[c] ** 2 for c in classes]))
        assert row["bond_rmse"] == pytest.approx(np.mean([spread[c] for c in classes]) ** 0.5)
    apart = data._replace(bond_class=torch.arange(len(data.linear)))
    assert all(row["bond_bleed"] < 1e-30 for row in collecting.limits(collecting.Truth(apart)))


def test_the_least_absolute_error_by_bonds_is_that_of_each_class_median(data: packing.Pack) -> None:
    tripled = data._replace(bond_class=torch.arange(len(data.linear)) // 3)
    kept = ~tripled.linear
    classes = tripled.bond_class[kept].numpy()
    for row in collecting.limits(collecting.Truth(tripled)):
        place = PROPERTIES.index(row["property"])
        z = ((tripled.targets[kept, place] - row["mean"]) / row["deviation"]).numpy()
        least = sum(
            min(np.abs(z[classes == c] - answer).sum() for answer in z[classes == c])
            for c in np.unique(classes)
        )
        assert row["bond_mae"] == pytest.approx(least / len(z))


def test_agreement_is_over_all_pairs_of_seeds(results: Results) -> None:
    place = PROPERTIES.index("dipole")

    def epistemic(network: str, seed: int) -> np.ndarray:
        file = np.load(results.work / f"{network}-all-likelihood-seed{seed}.npz")
        _, nu, alpha, beta = file["test"].astype(float)
        return (beta / (nu * (alpha - 1)))[:, place]

    pairs = dict(iter(results["agreement"].groupby(["first", "second"])))
    expected = [
        spearmanr(epistemic("GIN", a), epistemic("invariant", b)).statistic
        for a in (0, 1)
        for b in (0, 1)
    ]
    assert pairs["GIN", "invariant"]["epistemic"].tolist() == pytest.approx(expected, abs=1e-5)
    again = spearmanr(epistemic("GIN", 0), epistemic("GIN", 1)).statistic
    assert pairs["GIN", "GIN"]["epistemic"].tolist() == pytest.approx([again], abs=1e-5)


def test_a_contest_counts_properties_and_pairs_of_seeds() -> None:
    first = pd.DataFrame([[1.0, 2.0], [4.0, 4.0]])
    second = pd.DataFrame([[4.0, 8.0], [3.0, 6.0]])
    found = report.contest(first, second)
    assert (found.lower, found.higher) == (1, 0)
    assert found.ratio == pytest.approx(math.sqrt(1.5 / 6 * 4 / 4.5))
    pairs = [math.sqrt(a * 4 / (b * c)) for a in (1, 2) for b, c in ((4, 3), (8, 6))]
    assert (found.least, found.most) == pytest.approx((min(pairs), max(pairs)))


def test_errors_of_the_paper_are_held_against_the_mean() -> None:
    skill = report.paper_skill(
        Results(Paths.in_checkout("qm9").results)["limits"].set_index("property")
    )
    assert skill.loc["r2"].tolist() == ["no better than the mean"] * 2
    assert skill.loc["lumo"].tolist() == ["learned", "hardly better than the mean"]
    assert "dipole" not in skill.index


def test_a_missing_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .* run the step 'pack' first"):
        packing.unpack(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize(
    ("column", "network", "factor", "claim", "before"),
    [
        ("mae", "GIN", 0.35, "| On the dipole both networks have about the same error", False),
        ("bleed_99", "GIN", 1e-9, "| Which network bleeds less", False),
        ("aleatoric_50", "GIN", 10.0, "Fig. 8): GIN", False),
        ("coverage", "invariant", 1e-3, "| A correct symmetry need not calibrate better", True),
    ],
)
def test_claims_are_decided_by_the_numbers(
    column: str, network: str, factor: float, claim: str, before: bool, tmp_path: Path
) -> None:
    paths = Paths.in_checkout("qm9")
    committed, changed = Results(paths.results), Results(tmp_path)
    for name in ("limits", "consistency", "agreement", "contrast", "resampled", "penalty"):
        changed.write(name, committed[name])
    frame = committed["results"]
    values = frame[column].where(frame["network"] != network, frame[column] * factor)
    changed.write("results", frame.assign(**{column: values}))
    lines = [
        next(line for line in page.splitlines() if claim in line)
        for page in (
            parted(render(study, Results(paths.results), paths.template), study.name)[1],
            parted(render(study, changed, paths.template), study.name)[1],
        )
    ]
    assert [line.endswith("| confirmed |") for line in lines] == [before, not before]


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Evidence, and targets drawn from its own Student t distributions."""
    draw = np.random.default_rng(seed)
    nu, alpha = draw.uniform(0.5, 3, count), draw.uniform(2, 6, count)
    beta = draw.uniform(0.1, 2, count)
    scale = np.sqrt(beta * (1 + nu) / (alpha * nu))
    target = scale * draw.standard_t(2 * alpha)
    return np.stack([0 * nu, nu, alpha, beta]), target


def test_a_calibrated_network_is_at_its_floors() -> None:
    evidence, target = drawn(20_000, 0)
    found = measures.scores(evidence, target, 1.0)
    assert found["gence"] == pytest.approx(found["gence_own"], rel=0.05)
    assert found["gence_own"] > math.pi / 2 - 1
    assert found["ence"] < 2 * found["ence_floor"] < 0.06
    assert found["coverage"] < 4 * found["coverage_floor"] < 0.02
    assert found["square"] == pytest.approx(1, abs=0.1)
    sure = measures.scores(evidence, 2 * target, 1.0)
    assert sure["ence"] > 10 * found["ence"]
    assert sure["coverage"] > 10 * found["coverage"]
    assert sure["gence"] > 2 * found["gence"]


def test_measures_are_in_the_units_of_the_report() -> None:
    evidence, target = drawn(5_000, 1)
    one, ten = (measures.scores(evidence, target, unit) for unit in (1.0, 10.0))
    for name, power in (("mae", 1), ("bleed", 4), ("bleed_error", 4), ("aleatoric_50", 2)):
        assert ten[name] == pytest.approx(one[name] * 10**power)
    for name in ("gence", "ence", "coverage", "share"):
        assert ten[name] == pytest.approx(one[name])
    assert ten["nll"] == pytest.approx(one["nll"] + math.log(10))


def test_likelihood_of_the_report_is_that_of_the_loss() -> None:
    evidence, target = drawn(500, 2)
    loss = nig_nll(*torch.from_numpy(evidence), torch.from_numpy(target))
    assert measures.student_nll(target, *evidence[1:]).mean() == pytest.approx(float(loss))


def test_a_mean_of_squares_without_its_worst_hundredth() -> None:
    draw = np.random.default_rng(0)
    calm = draw.uniform(0, 1, 9_900)
    assert measures.most_bleed(np.concatenate([calm, np.full(100, 1e6)])) == pytest.approx(
        np.square(calm).mean()
    )
