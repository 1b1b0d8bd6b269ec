"""The vector-field study: its limits against formulas, its trainings, its measures, its page."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.calibration import gence_floor
from orbical.errors import InputError
from orbical_studies import STUDIES
from orbical_studies.data.planar_fields import DOMAINS, vector_fields, whole_field
from orbical_studies.networks.vector_fields import VectorFieldNet, VectorPerceptron
from orbical_studies.vector_field import findings, main, measures, tables
from orbical_studies.vector_field import limits as theory
from orbical_studies.vector_field.findings import FREE, SCALAR, SINUSOID, SPIRAL
from orbical_studies.vector_field.settings import WORLDS, Settings
from orbical_studies.vector_field.training import (
    EQUIVARIANT,
    KINDS,
    PLAIN,
    AsGaussian,
    loss_of,
    train_together,
)

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "vector-field.md"
TINY = Settings(seeds=1, train=100, epochs=(1, 2), side=6, angles=4, arrows=4)


@pytest.fixture(scope="module")
def measured() -> measures.Tables:
    return measures.run(TINY, say=lambda line: None)


@pytest.mark.parametrize("domain", DOMAINS)
def test_limits_of_the_spiral_are_moments_of_the_distance(domain: str) -> None:
    x, value = (part.numpy() for part in whole_field("spiral", domain, side=20))
    r = np.linalg.norm(x, axis=1)
    found = theory.limits(x, value)
    assert found["error"] == pytest.approx((r**2).mean())
    assert found["linear_error"] == pytest.approx((r**2).mean())
    assert found["scalar_bleed"] == pytest.approx((r**4).mean() / 3)
    assert found["full_bleed"] == pytest.approx((r**4).mean() / 2)
    assert found["full_bleed_outward"] == pytest.approx(0, abs=1e-20)
    assert found["full_bleed_along"] == pytest.approx((r**4).mean() / 4)
    assert found["full_bleed_up"] == pytest.approx((r**4).mean() / 4)
    assert found["scalar_mahalanobis"] == pytest.approx(3)
    assert found["bleed_floor"] == 0
    assert 0.5 * found["full_bleed"] < found["full_head_bleed"] < found["full_bleed"]


def test_gence_at_the_optimum_of_the_disc_is_its_integral() -> None:
    # e = r (|sin|, |cos|, 0) around the ring and a = r sqrt(2 / (3 pi)) in every coordinate.
    x, value = (part.numpy() for part in whole_field("spiral", "disc", side=60))
    ratio = math.sqrt(3 * math.pi / 2)
    expected = 1 - 2 * (4 / math.pi) * ratio / 3 + ratio**2 / 3
    assert theory.limits(x, value)["scalar_gence"] == pytest.approx(expected, abs=2e-3)


def test_the_sinusoid_has_no_limit_but_for_a_linear_network() -> None:
    x, value = (part.numpy() for part in whole_field("sinusoid", "square", side=100))
    found = theory.limits(x, value)
    assert found["error"] == pytest.approx(0, abs=1e-20)
    assert found["scalar_bleed"] == pytest.approx(0, abs=1e-20)
    assert found["linear_error"] / 2 == pytest.approx(1.073, abs=2e-3)


def test_only_mirrors_tilts_and_shifts_break_the_spiral() -> None:
    x, _ = whole_field("spiral", "square", side=10)
    spiral, sinusoid = (theory.symmetry_defects(name, x) for name in ("spiral", "sinusoid"))
    assert spiral["turn"] == pytest.approx(0, abs=1e-20)
    assert spiral["mirror"] == pytest.approx(4 * float(x.square().sum(1).mean()))
    assert spiral["half_turn"] == pytest.approx(spiral["mirror"])
    assert spiral["tilt"] > 1
    assert spiral["tilt_outside"] == 1
    assert all(sinusoid[name] < 1e-20 for name in ("turn", "mirror", "half_turn", "tilt"))
    assert sinusoid["shift"] > 1


def test_scores_equal_a_direct_computation() -> None:
    generator = np.random.default_rng(0)
    x = np.concatenate([generator.normal(size=(30, 2)), np.zeros((30, 1))], axis=1)
    value, mean = generator.normal(size=(2, 30, 3))
    root = generator.normal(size=(30, 3, 3))
    covariance = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(3)
    found = theory.scores(x, value, mean, covariance)
    off = value - mean
    assert found["error"] == pytest.approx(np.mean([e @ e for e in off]))
    assert found["bleed"] == pytest.approx(np.mean([(s * s).sum() for s in covariance]))
    assert found["trace"] == pytest.approx(np.mean([np.trace(s) for s in covariance]))
    distance = [e @ np.linalg.inv(s) @ e for e, s in zip(off, covariance, strict=True)]
    assert found["mahalanobis"] == pytest.approx(np.mean(distance))
    outward = [(p / np.linalg.norm(p)) for p in x]
    part = np.mean([(u @ s @ u) ** 2 for u, s in zip(outward, covariance, strict=True)])
    assert found["bleed_outward"] == pytest.approx(part)
    own = covariance[:, [0, 1], [0, 1]]
    expected = np.mean((own * np.log(own) + off[:, :2] ** 2) / 2)
    assert found["xy_beta_nll"] == pytest.approx(expected)


def test_networks_trained_together_are_those_trained_alone() -> None:
    torch.manual_seed(0)
    networks = [VectorFieldNet(hidden=4, channels=2) for _ in range(2)]
    data = [vector_fields(field, samples=16, seed=1) for field in ("spiral", "sinusoid")]
    x, y = (torch.stack(parts) for parts in zip(*data, strict=True))
    ((_, together),) = train_together(networks, x, y, epochs=[5], batch=16, rate=0.01, seed=0)
    for place, start in enumerate(networks):
        alone = copy.deepcopy(start)
        optimizer = torch.optim.Adam(alone.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        for _ in range(5):
            loss = loss_of(*alone(x[place]), y[place])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        for a, b in zip(together[place].parameters(), alone.parameters(), strict=True):
            assert torch.allclose(a, b.double(), atol=1e-4)


def test_an_equivariant_network_settles_at_the_predicted_bleed() -> None:
    x, y = vector_fields("spiral", "disc", samples=1000)
    torch.manual_seed(0)
    network = VectorFieldNet()
    network.head.fit_scale(y)
    ((_, trained),) = train_together(
        [network], x[None], y[None], epochs=[40], batch=50, rate=0.01, seed=0
    )
    points, value = whole_field("spiral", "disc", side=20)
    found = theory.scores(points.numpy(), value.numpy(), *measures.answers(trained[0], points))
    limits = theory.limits(points.numpy(), value.numpy())
    assert found["error"] == pytest.approx(limits["error"], rel=1e-3)
    assert found["bleed"] == pytest.approx(limits["scalar_bleed"], rel=0.05)
    assert found["trace"] == pytest.approx(found["error"], rel=0.03)


def test_every_form_of_variance_is_a_covariance_to_the_measures() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    for network in (VectorFieldNet("full"), VectorFieldNet(), VectorPerceptron("diagonal")):
        mean, covariance = AsGaussian(network)(x)
        assert mean.shape == (5, 3)
        assert bool((torch.linalg.eigvalsh(covariance) > 0).all())
        assert torch.equal(covariance, covariance.mT) or torch.allclose(covariance, covariance.mT)


def test_every_network_is_measured_in_every_world(measured: measures.Tables) -> None:
    names = ("field", "domain", "network", "variance", "epoch")
    found = {tuple(row[name] for name in names) for row in measured["results"]}
    assert found == {(*w, *k, epoch) for w in WORLDS for k in KINDS for epoch in TINY.epochs}
    assert len(measured["angles"]) == len(WORLDS) * len(KINDS) * TINY.angles


def test_no_equivariant_network_is_better_than_its_limits(measured: measures.Tables) -> None:
    for row in measured["results"]:
        if row["network"] == EQUIVARIANT:
            assert row["error"] >= row["error_floor"] - 1e-9
            assert row["defect"] < 1e-9
            if row["variance"] == "scalar":
                assert row["gence_lower"] - 1e-9 <= row["gence"] <= row["gence_upper"] + 1e-9
        else:
            assert row["defect"] > 1e-3


def test_errors_of_equivariant_networks_are_flat_along_the_angle(measured: measures.Tables) -> None:
    curves: dict[str, list[float]] = {EQUIVARIANT: [], PLAIN: []}
    for network, variance in KINDS:
        for world in WORLDS:
            rows = tables.chosen(measured["angles"], world, (network, variance))
            found = [row["xy_mse"] for row in rows]
            curves[network].append((max(found) - min(found)) / max(found))
    assert max(curves[EQUIVARIANT]) < 1e-4
    assert max(curves[PLAIN]) > 1e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "seeds: got 0"),
        ({"side": 5}, "side: got 5, expected an even number"),
        ({"epochs": ()}, "epochs"),
        ({"rate": 0.0}, "rate: got 0.0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(TINY, **changes)


def test_the_command_writes_csv_page_and_figures_and_report_repeats_them(tmp_path: Path) -> None:
    target = tmp_path / "fields.md"
    options = ["--page", str(target), "--seeds", "1", "--train", "64", "--side", "4"]
    main([*options, "--angles", "4", "--epochs", "2", "1"])
    made = {path.name for path in (tmp_path / "fields").iterdir()}
    figures = {"fields.png", "angles.png", "profile.png"}
    assert made == figures | {f"{name}.csv" for name in tables.FILES}
    text = target.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in (*tables.TABLES, "sentences"))
    target.write_text("<!-- table: bleed -->\n<!-- end -->\n")
    main(["report", "--page", str(target)])
    assert "structural bound" in target.read_text(encoding="utf-8")


def test_the_study_has_its_command() -> None:
    assert STUDIES["vector-field"].module == "vector_field"


@pytest.fixture(scope="module")
def committed() -> tables.Data:
    return tables.read(DOCS.with_suffix(""))


def test_committed_results_stay_inside_their_bounds(committed: tables.Data) -> None:
    data = committed
    assert len({row["seed"] for row in data["results"]}) >= 3
    last = max(row["epoch"] for row in data["results"])
    for world in WORLDS:
        bound = tables.limit(data, world)
        for row in tables.chosen(data["results"], world, (EQUIVARIANT, "scalar")):
            assert row["error"] >= bound["error"] - 1e-4
            assert row["gence_lower"] - 1e-4 <= row["gence"] <= row["gence_upper"] + 1e-4
            if world[0] == "spiral" and row["epoch"] == last:
                assert row["bleed"] == pytest.approx(bound["scalar_bleed"], rel=0.02)
                assert row["gence"] == pytest.approx(bound["scalar_gence"], abs=0.02)
                assert row["gence"] > gence_floor


@pytest.mark.parametrize(
    ("world", "kind", "column", "factor", "usual", "changed"),
    [
        (SPIRAL, SCALAR, "xy_mse", 1.2, "confirmed, exactly", "(Fig. 6). | confirmed |"),
        (SPIRAL, SCALAR, "xy_mse", 1e-9, "confirmed, exactly", "(Fig. 6). | not confirmed here |"),
        (SPIRAL, SCALAR, "trace", 3, "The variance is the squared", "not settled here"),
        (SPIRAL, SCALAR, "xy_beta_nll", 0, "7). | not confirmed |", "Fig. 7). | confirmed |"),
        (SINUSOID, SCALAR, "bleed", 1e6, "MSE and bleed: confirmed", "MSE: confirmed; bleed and β"),
        (
            SINUSOID,
            SCALAR,
            "xy_beta_nll",
            99,
            "prefers the perceptron",
            "MSE and bleed and β-NLL:",
        ),
        (SPIRAL, SCALAR, "bleed", 2, "confirmed, and predicted", "bleed (9). | confirmed |"),
        (SPIRAL, SCALAR, "gence_fiber", 2, "0.438: no worse", "0.438: worse"),
        (SPIRAL, FREE, "mahalanobis", 9, "perceptron's too large", "perceptron's too small"),
        (SINUSOID, FREE, "mahalanobis", 9, "it (9). | confirmed", "it (9). | not confirmed here"),
        (SINUSOID, SCALAR, "bleed", 1e6, "the second holds here", "the first holds here"),
    ],
)
def test_verdicts_on_the_papers_sentences_follow_the_numbers(
    committed, world, kind, column, factor, usual, changed
) -> None:
    data = committed | {
        name: [dict(row) for row in committed[name]] for name in ("results", "angles")
    }
    for row in (row for name in ("results", "angles") for row in data[name]):
        if column in row and tables.chosen([row], world, kind):
            row[column] *= factor
    before, after = findings.sentences(committed), findings.sentences(data)
    assert usual in before
    assert changed not in before
    assert changed in after
    assert usual not in after
