"""One registry of measures: a new entry appears everywhere, and every entry is complete."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

import orbical as ob
from orbical import calibration
from orbical.calibration.registry import LISTS, measure_title
from orbical.cli import check as command
from orbical.errors import InputError

DOCS = Path(__file__).resolve().parents[2] / "docs"


def mean_gap(confidence: torch.Tensor, correct: torch.Tensor, power: float = 1.0) -> torch.Tensor:
    return (confidence.double().mean(-1) - correct.double().mean(-1)).abs() ** power


@pytest.fixture
def entry() -> Iterator[calibration.Measure]:
    made = calibration.register(
        calibration.Measure(
            "mean_gap", mean_gap, title="mean gap", meaning="mean gap: of confidence and accuracy"
        )
    )
    yield made
    del calibration.MEASURES[made.name]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    path: Path = tmp_path_factory.mktemp("registry") / "run.zarr"
    settings = dict(group="cyclic:4", task="classification", progress=False)
    ob.scan(net, (images[:60], labels[:60]), out=path, **settings)
    return path


def test_a_registered_measure_appears_in_tables_with_an_interval(entry) -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.rand(200, 3, generator=generator, dtype=torch.float64).softmax(-1)
    labels = torch.randint(0, 3, (200,), generator=generator)
    found = calibration.classification_table(probs=probs, labels=labels, resamples=50)["mean_gap"]
    confidence, correct = calibration.top_label(probs=probs, labels=labels)
    assert float(found.value) == pytest.approx(
        abs(float(confidence.mean() - correct.double().mean()))
    )
    assert found.low <= found.value <= found.high


def test_a_registered_measure_is_a_threshold_of_check(
    entry, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(command.check)
    scan = ob.load(store)
    expected = float(calibration.mean_over_orbit(scan, "mean_gap")[0])
    done = CliRunner().invoke(app, [str(store), "--max", f"mean_gap={expected - 1e-6}"])
    assert done.exit_code == command.INCONCLUSIVE  # so near the value, 60 samples do not decide
    assert "mean gap, mean over the orbit" in done.output
    settings = tmp_path / "pyproject.toml"
    settings.write_text(f"[tool.orbical.check]\nmax_worst_mean_gap = {expected + 1}\n")
    done = CliRunner().invoke(app, [str(store)])
    assert done.exit_code == 0
    assert "mean gap, at the worst element" in done.output


def test_a_registered_measure_is_offered_for_the_view_of_a_scan(entry, store: Path) -> None:
    listed = calibration.scan_measures(ob.load(store), listed="view")
    assert entry in listed
    assert [one.name for one in listed][:2] == ["ece", "smooth_ece"]


def test_a_registered_measure_has_a_metric_and_options(entry) -> None:
    preds, target = torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1])
    metric = entry.metric(power=2.0)
    metric.update(preds, target)
    assert float(metric.compute()) == pytest.approx(0.25**2)
    pair = torch.tensor([0.9, 0.6]), torch.tensor([True, False])
    assert float(entry(*pair, power=2.0)) == pytest.approx(0.25**2)
    with pytest.raises(InputError, match="mean_gap does not take bins"):
        entry.bind(bins=3)


def test_registering_refuses_taken_and_unknown_names(entry) -> None:
    for changed, message in (
        ({}, "expected a new name, got 'mean_gap'"),
        ({"name": "mean gap"}, "expected an identifier"),
        ({"name": "other", "kind": "pears"}, "did you mean 'pair'"),
        ({"name": "other", "listed": ("tables",)}, "did you mean 'table'"),
    ):
        fields = {"name": "mean_gap", "title": "", "meaning": "", **changed}
        with pytest.raises(InputError, match=message):
            calibration.register(calibration.Measure(function=mean_gap, **fields))


def test_registering_a_bare_function_is_explained() -> None:
    with pytest.raises(InputError, match="measure: expected a name such as 'ece', got Tensor"):
        calibration.interval(torch.ones(3), torch.ones(3), "ece")  # the measure comes first
    with pytest.raises(InputError, match="measure: expected a Measure, got function; pass Measure"):
        calibration.register(mean_gap)


@pytest.mark.parametrize("name", list(calibration.MEASURES))
def test_every_entry_is_complete(name: str) -> None:
    entry = calibration.MEASURES[name]
    assert entry.name == name
    assert entry.title
    assert entry.meaning
    assert not entry.meaning.endswith(".")
    assert entry.interval in ("consistency", "bootstrap", "none")
    assert {*entry.listed} <= {*LISTS}
    if entry.loss:
        assert hasattr(ob.losses, entry.loss)
    if entry.metric_class:
        metric = entry.metric()
        assert type(metric).__name__ == entry.metric_class
        assert metric.higher_is_better == entry.higher_is_better


@pytest.mark.parametrize("kind", ["pair", "regression"])
def test_the_kind_of_interval_is_that_of_the_bound_measure(kind: str) -> None:
    for entry in calibration.list_measures(kind):
        assert (entry.bind().distance is None) == (entry.interval == "bootstrap"), entry.name


def test_entries_with_fixed_options_are_the_function_with_them() -> None:
    generator = torch.Generator().manual_seed(1)
    z = torch.rand(100, generator=generator)
    y = torch.rand(100, generator=generator) < z
    assert calibration.MEASURES["ece_l2"](z, y, bins=7) == calibration.ece(z, y, bins=7, norm="l2")
    mass = torch.rand(100, generator=generator)
    weighted = calibration.MEASURES["ece_mass"](z, y, weights=mass)
    assert weighted == calibration.ece(z, y, binning="mass", weights=mass)


def test_titles_and_the_target_of_a_calibrated_model() -> None:
    assert measure_title("smooth_ece") == "smooth ECE"
    assert measure_title("unheard_of") == "unheard_of"
    assert calibration.MEASURES["gence"].target == pytest.approx(math.pi / 2 - 1)


@pytest.fixture(scope="module")
def reference() -> Any:
    """The script that writes the metric reference."""
    place = DOCS / "figures" / "metrics_page.py"
    found = importlib.util.spec_from_file_location("metrics_page", place)
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    return script


def test_the_metric_reference_is_up_to_date(reference) -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == reference.page()


def test_every_measure_has_a_formula_and_a_picture_in_the_reference(reference) -> None:
    for entry in calibration.list_measures():
        text = reference.text_of(entry)
        assert text.question, entry.name
        assert text.formula, entry.name
        assert (DOCS / "guide" / "img" / "metrics" / f"{entry.name}.png").is_file(), entry.name
