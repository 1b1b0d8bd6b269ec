"""The page, a report, Python and the commands show the same map, mean, interval and share.

The scans are random: several models, weights that differ, samples without a label, units that are
not finished, and subsets of the samples.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from talking import ask, decode_part

import orbical as ob
from orbical.cli import main
from orbical.interface.reports.contents import (
    encoded_report_answers,
    encoded_report_maps,
    report_subsets,
)
from orbical.interface.session import Session
from orbical.store.zarr_store import open_store

SAMPLES, CHUNK = 60, 10
GROUPS = {"finished": "cyclic:6*scales:0.7:1.4:3", "unfinished": "rotations:7"}


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


@pytest.fixture(scope="module", params=["finished", "unfinished"])
def scan(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ob.Scan:
    images, labels = ob.datasets.digits()
    chosen = np.random.default_rng(len(request.param)).permutation(len(images))[:SAMPLES]
    out = tmp_path_factory.mktemp("kitchen") / "scan.zarr"
    ob.scan(
        {f"net {seed}": network(seed) for seed in range(3)},
        (images[chosen], labels[chosen]),
        group=GROUPS[request.param],
        task="classification",
        out=out,
        chunk=CHUNK,
        progress=False,
    )
    if request.param == "unfinished":  # a model lacks a chunk, and all of them another
        store = open_store(out)
        for key in ((1, 2), (0, 4), (1, 4), (2, 4)):
            store.forget(key)
    return ob.load(out)


@pytest.fixture(scope="module")
def session(scan: ob.Scan) -> Session:
    return Session({"scan": scan})


def rows_of(scan: ob.Scan, wanted: tuple[int, ...]) -> np.ndarray:
    label = scan.data["label"].values
    return np.flatnonzero(np.isin(label, wanted)) if wanted else np.arange(len(label))


@pytest.mark.parametrize("labels", [(), (3,), (1, 4, 7)])
@pytest.mark.parametrize("metric", ["score", "confidence", "correct", "action_defect"])
def test_means_and_intervals_agree(
    scan: ob.Scan, session: Session, metric: str, labels: tuple[int, ...]
) -> None:
    rows = rows_of(scan, labels)
    subset = {"filter": [f"label:{','.join(map(str, labels))}"]} if labels else {}
    data = scan.data.isel(sample=rows)
    python = ob.nero.aggregate(data, metric=metric, interval=True)
    _, page = ask(session, "aggregate", metric=metric, **subset)
    shape = (3, len(scan.group))
    for name, values in (("values", python), ("low", python["low"]), ("high", python["high"])):
        expected = np.broadcast_to(values.values, shape)
        np.testing.assert_allclose(page[name], expected, rtol=1e-12, atol=1e-14)
    reference = np.ma.masked_invalid(
        ob.nero.responses(data, metric).values.astype(float).reshape(-1, len(rows), shape[1])
    ).mean(1)
    np.testing.assert_allclose(python.values.reshape(reference.shape), reference.filled(np.nan))


@pytest.mark.parametrize("method", ["pca", "ica", "isomap"])
@pytest.mark.parametrize("model", [None, "net 1"])
def test_maps_agree(scan: ob.Scan, session: Session, method: str, model: str | None) -> None:
    python = ob.embedding.embed(scan, method, model=model).values
    low, high = np.nanmin(python, 0), np.nanmax(python, 0)
    framed = (python - (low + high) / 2) / (np.max(high - low) / 2)
    _, page = ask(session, "embedding", method=method, of=model or "")
    np.testing.assert_allclose(page["xy"], framed, atol=1e-6)
    part = encoded_report_maps(
        session.scan_view(), np.arange(SAMPLES), [(method, model or "", "truth")]
    )
    (report,) = decode_part(part)[1].values()
    np.testing.assert_allclose(report, framed, atol=1e-4)


def test_shares_of_changed_predictions_agree(scan: ob.Scan, session: Session) -> None:
    python = ob.nero.consistency(scan)
    _, page = ask(session, "consistency")
    summary = ob.nero.summary(scan)
    for name, row in (("changed", "changed"), ("pairs", "changed_pairs")):
        expected = np.stack([python[name + end].values for end in ("", "_low", "_high")], -1)
        np.testing.assert_array_equal(page[name], expected)
        np.testing.assert_array_equal(summary[row].values, expected[:, 0])
    predicted = scan.data["predicted"].values
    done = np.isfinite(scan.data["score_vs_consensus"].values).all(2)
    for model in range(3):
        moved = (predicted[model] != predicted[model, :, :1]).any(1)[done[model]]
        assert python["changed"].values[model] == pytest.approx(moved.mean())


def test_a_report_carries_what_the_page_shows(session: Session) -> None:
    view = session.scan_view()
    subsets = report_subsets(view, [])
    kinds = ("aggregate", "consistency")
    for subset, part in zip(
        subsets, encoded_report_answers(view, subsets, ["truth"], kinds), strict=True
    ):
        _, report = decode_part(part)
        chosen = {"filter": [*subset.selection.filter]}
        _, page = ask(session, "aggregate", metric="correct", **chosen)
        for name in ("values", "low", "high"):
            found = report[f"aggregate/truth/correct:{name}"][0]
            np.testing.assert_allclose(found, page[name].astype(np.float32))
        _, page = ask(session, "consistency", **chosen)
        np.testing.assert_allclose(
            report["consistency:changed"][0], page["changed"].astype(np.float32)
        )


def test_checks_judge_the_same_numbers(
    scan: ob.Scan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not scan.complete:
        pytest.skip("only finished scans are checked")
    limits = {"min_accuracy": 0.5, "min_worst_accuracy": 0.5, "max_changed": 0.5, "max_gap": 0.5}
    rows = ob.check(scan, **limits)
    summary, changes = ob.nero.summary(scan), ob.nero.consistency(scan)
    for model, name in enumerate(scan.models):
        mine = {row.name: row for row in rows if row.model == name}
        accuracy = summary["accuracy"].sel(model=name)
        assert mine["min_accuracy"].value == pytest.approx(float(accuracy.sel(place="mean")))
        assert mine["min_worst_accuracy"].value == pytest.approx(float(accuracy.sel(place="worst")))
        assert mine["max_gap"].value == pytest.approx(float(summary["invariance_gap"][model]))
        for end, part in (("value", ""), ("low", "_low"), ("high", "_high")):
            expected = float(changes[f"changed{part}"][model])
            assert getattr(mine["max_changed"], end) == pytest.approx(expected)
    arguments = [f"--{name.replace('_', '-')}={limit}" for name, limit in limits.items()]
    words = ["orbical", "check", str(scan.path), *arguments, "--json"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):  # some are broken
        main()
    printed = json.loads(capsys.readouterr().out)
    values = {(row["name"], row["model"]): row["value"] for row in printed}
    assert values == pytest.approx({(row.name, row.model): row.value for row in rows})


def test_an_accuracy_has_one_interval(scan: ob.Scan, session: Session) -> None:
    identity = scan.group.identity
    along = ob.calibration.along_orbit(scan, "accuracy", interval=True)
    band = ob.nero.aggregate(scan, metric="correct", interval=True)
    _, page = ask(session, "aggregate", metric="correct")
    table = ob.calibration.scan_table(scan, resamples=20).set_index(["model", "measure", "place"])
    for model, name in enumerate(scan.models):
        confidence, correct = ob.calibration.pair_at(scan, identity, name)
        exact = binomtest(int(correct.sum()), len(correct)).proportion_ci(method="exact")
        share = ob.calibration.share_interval(correct, confidence)
        row = table.loc[name, "accuracy", "identity"]
        bounded = ob.calibration.bounded_mean_interval(correct)
        found = [
            (share.low, share.high),
            bounded[1:],
            (row["low"], row["high"]),
            *((one["low"][model, identity], one["high"][model, identity]) for one in (along, band)),
            (page["low"][model, identity], page["high"][model, identity]),
        ]
        if scan.complete:
            judged = ob.check(scan, min_identity_accuracy=0.5, models=[name])[0]
            found.append((judged.low, judged.high))
        for low, high in found:
            assert (float(low), float(high)) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_blocks_of_any_size_give_the_same_numbers(
    scan: ob.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ob.nero.aggregate(scan, by="label"), ob.embedding.embed(scan)
    monkeypatch.setattr(ob.store.scan_arrays, "BLOCK_BYTES", 1)
    monkeypatch.setattr(ob.nero.sums_and_means, "ROWS", 3)
    monkeypatch.setattr(ob.embedding, "ROWS", 3)
    parts = ob.nero.aggregate(scan, by="label"), ob.embedding.embed(scan)
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=1e-9)
