"""Python, page, report, `check` and the command line show one interval for one mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from talking import decode_part

import orbical as ob
from orbical.calibration import (
    bounded_mean_interval,
    first_interval_caution,
    unbounded_mean_interval,
)
from orbical.cli import main
from orbical.interface.reports.writing import report_to_write
from orbical.interface.session import Session

ENDS = ("values", "low", "high")


def random_scan(task: str, seed: int, path: Path) -> ob.Scan:
    """Scan two models of a task with scores of its kind, on a random number of samples."""
    random = np.random.default_rng([seed, *task.encode()])
    count, scale = int(random.integers(2, 90)), float(10 ** random.uniform(-6, 6))
    images = torch.from_numpy(random.random((count, 1, 4, 4)) ** 3).float()
    noise = torch.from_numpy(random.lognormal(0, 2, (count, 1))).float()
    models: dict[str, Any]
    if task == "classification":
        truth = torch.from_numpy(random.integers(0, 3, count))
        models = {
            "a": lambda batch: 3 * batch[:, 0].flatten(1)[:, :3],
            "b": lambda batch: 40 * batch[:, 0].flatten(1)[:, 1:4],
        }
    elif task == "regression":
        truth = scale * noise
        models = {
            "a": lambda batch: scale * batch.flatten(1)[:, :1],
            "b": lambda batch: scale * batch.flatten(1)[:, 1:2],
        }
    else:
        truth = (images[:, 0] > 0.2).long()
        models = {
            "a": lambda batch: torch.cat([0.1 - batch, batch - 0.1], 1),
            "b": lambda batch: torch.cat([0.3 - batch, batch.roll(1, -1) - 0.3], 1),
        }
    return ob.scan(models, (images, truth), group="cyclic:4", task=task, out=path, progress=False)


def recorded(session: Session, name: str) -> list[np.ndarray]:
    """Read means and ends `[M, K]` as a report holds them, of all samples."""
    view = session.scan_view()
    _, parts = report_to_write(view, samples=None, methods=("pca",))
    _, arrays = decode_part(parts["subset/0"])
    return [arrays[f"aggregate/{name}:{end}"][0] for end in ENDS]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    with mock.patch("sys.argv", ["orbical", *words, "--json"]), pytest.raises(SystemExit):
        main()
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("task", ["classification", "regression", "segmentation"])
def test_one_mean_has_one_interval(tmp_path: Path, task: str, seed: int, capsys: Any) -> None:
    scan = random_scan(task, seed, tmp_path / "run.zarr")
    here, elements = scan.group.identity, len(scan.group)
    curve = ob.nero.aggregate(scan, interval=True)
    python = np.stack([curve, curve["low"], curve["high"]])  # [3, M, K]
    share = curve.attrs.get("limits") == [0.0, 1.0]
    interval = bounded_mean_interval if share else unbounded_mean_interval
    terms = np.moveaxis(np.asarray(ob.nero.responses(scan), float), 1, -1)
    wanted = np.array(interval(terms) if share else interval(terms, low=0.0))
    np.testing.assert_allclose(python, wanted, rtol=1e-6)

    session = Session({"run": scan})
    about, page = session.handle({"kind": "aggregate", "selection": {"metric": "score"}})
    texts = [*map(first_interval_caution, curve["caution"].values)]
    said = {name: text for name, text in zip("ab", texts, strict=True) if text}
    assert about.get("cautions", {}) == said
    assert bool(said) == (not share)
    np.testing.assert_allclose([page[name] for name in ENDS], python, rtol=1e-6)
    np.testing.assert_allclose(recorded(session, "truth/score"), python, rtol=1e-6)

    summary = ob.nero.summary(scan)["score"]
    np.testing.assert_allclose(summary.sel(place="identity"), python[0, :, here], rtol=1e-6)
    limit = float(python[0, 0, here])
    rows = ob.check(scan, min_identity_score=limit, min_worst_score=limit)
    corrected = ob.nero.aggregate(scan, interval=True, level=1 - 0.05 / elements)
    for model in range(2):
        upright, worst = rows[model], rows[2 + model]
        ends = upright.value, upright.low, upright.high
        np.testing.assert_allclose(ends, python[:, model, here], rtol=1e-6)
        each = np.stack([corrected, corrected["low"], corrected["high"]])[:, model]
        np.testing.assert_allclose((worst.value, worst.low, worst.high), each.min(1), rtol=1e-6)
        assert upright.caution == str(curve["caution"].values[model, here])
    names = [f"--min={name}={limit!r}" for name in ("identity_score", "worst_score")]
    for row, told in zip(rows, printed(capsys, "check", str(scan.path), *names), strict=True):
        for name in ("outcome", "value", "low", "high", "caution", "needed"):
            value = getattr(row, name)
            assert told[name] == (None if value != value else value), name


@pytest.mark.parametrize("seed", range(4))
def test_one_accuracy_has_one_interval(tmp_path: Path, seed: int, capsys: Any) -> None:
    scan = random_scan("classification", seed, tmp_path / "run.zarr")
    here = scan.group.identity
    curve = ob.nero.aggregate(scan, metric="correct", interval=True).isel(element=here)
    python = np.stack([curve, curve["low"], curve["high"]], -1)
    checked = ob.check(scan, min_identity_accuracy=0.5)
    page = Session({"run": scan}).handle({"kind": "aggregate", "selection": {"metric": "correct"}})
    rows = [
        row
        for row in printed(capsys, "calibration", str(scan.path), "--resamples", "20")["rows"]
        if (row["measure"], row["place"]) == ("accuracy", "identity")
    ]
    for model in range(2):
        assert [page[1][name][model, here] for name in ENDS] == pytest.approx(python[model])
        for name, value in zip(("value", "low", "high"), python[model], strict=True):
            assert getattr(checked[model], name) == pytest.approx(value)
            assert rows[model][name] == pytest.approx(value)


def test_many_scores_that_happen_to_be_0_or_1_have_one_interval() -> None:
    count = 4200
    images = torch.zeros(count, 1, 2, 2)
    images[:, 0, 0, 0] = (torch.arange(count) % 3 == 0).float()
    truth = torch.zeros(count, dtype=torch.long)

    def certain(batch: torch.Tensor) -> torch.Tensor:
        first = batch[:, 0, 0, 0]
        return torch.stack([1e6 * (0.5 - first), 1e6 * (first - 0.5)], 1)

    scan = ob.scan(certain, (images, truth), group="cyclic:4", task="classification",
                   progress=False)  # fmt: skip
    curve = ob.nero.aggregate(scan, interval=True).isel(model=0, element=0)
    (row,) = ob.check(scan, min_identity_score=0.5)
    shown = [float(part) for part in (curve, curve["low"], curve["high"])]
    assert shown == pytest.approx([row.value, row.low, row.high])
