"""What can be taken away from the interface: tables, the subset, rows of samples, a report."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import torch
from talking import lassoed

import orbical as ob
from orbical.errors import InputError, MissingExtra
from orbical.interface import export
from orbical.interface.selection import Selection
from orbical.interface.session import Session
from orbical.interface.session.subset_request import SubsetRequest

LASSO = ((-1.1, -1.1), (0.1, -1.1), (0.4, 1.1), (-1.1, 0.9))


@pytest.fixture(scope="module")
def session():
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}
    scan = ob.scan(
        nets,
        (images[:60], labels[:60]),
        group="rotations:8",
        task="classification",
        keep=("inputs", "probabilities"),
        progress=False,
    )
    return Session({"digits": scan})


def rows_of(content):
    return [*csv.DictReader(io.StringIO(content.decode()))]


def test_a_table_holds_the_metric_of_the_subset_and_of_the_sample(session):
    view = session.scan_view()
    name, kind, content = export.csv(SubsetRequest(view, Selection(filter=("label:3",), sample=7)))
    assert (name, kind) == ("digits.csv", "text/csv")
    rows = rows_of(content)
    scan = view.scan
    chosen = scan.data["score"][:, scan.data["label"].values == 3]
    np.testing.assert_allclose(
        [float(row["score_b"]) for row in rows], chosen.mean("sample")[1], atol=1e-6
    )
    np.testing.assert_allclose(
        [float(row["sample_7_a"]) for row in rows], scan.data["score"][0, 7], atol=1e-6
    )
    assert [float(row["angle"]) for row in rows] == (np.arange(8) * 45).tolist()
    assert all(
        float(row["score_low_a"]) < float(row["score_a"]) < float(row["score_high_a"])
        for row in rows
    )


def test_a_table_shows_only_the_models_chosen(session):
    _, _, content = export.csv(
        SubsetRequest(session.scan_view(), Selection(models=("b",), metric="confidence"))
    )
    assert not any(column.endswith("_a") for column in rows_of(content)[0])


def test_indices_are_those_of_the_subset(session):
    view = session.scan_view()
    chosen = lassoed(session, LASSO)
    _, _, content = export.indices(
        SubsetRequest(view, Selection(filter=("label:3,5",), subset=chosen))
    )
    expected, arrays = session.handle(
        {"kind": "subset", "selection": {"filter": ["label:3,5"], "subset": chosen}}
    )
    assert [int(line) for line in content.split()] == np.flatnonzero(arrays["mask"]).tolist()
    assert 0 < expected["count"] < 60


def test_parquet_has_a_row_for_each_sample_of_the_subset(session):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    view = session.scan_view()
    name, _, content = export.parquet(SubsetRequest(view, Selection(filter=("label:2",))))
    assert name == "digits.parquet"
    table = parquet.read_table(io.BytesIO(content))
    chosen = np.flatnonzero(view.label == 2)
    assert table["sample"].to_pylist() == chosen.tolist()
    assert set(table["label"].to_pylist()) == {2}
    scan = view.scan
    np.testing.assert_allclose(
        table["mean_b"].to_numpy(), scan.data["score"][1, chosen].mean("element"), atol=1e-6
    )
    np.testing.assert_allclose(
        table["invariance_gap_a"].to_numpy(), scan.data["invariance_gap"][0, chosen]
    )
    assert np.abs(table["x"].to_numpy()).max() <= 1
    from PIL import Image

    picture = Image.open(io.BytesIO(table["image"][0].as_py()["bytes"]))
    expected = scan.data["input"][int(chosen[0]), 0].values
    np.testing.assert_allclose(np.asarray(picture) / 255, expected, atol=0.003)


def test_without_pyarrow_the_extra_is_named(session, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"orbical\[parquet\]"):
        export.parquet(SubsetRequest(session.scan_view(), Selection()))


@pytest.mark.parametrize("what", ["csv", "indices", "report"])
def test_a_request_is_answered_with_a_file(session, what):
    header, arrays = session.handle({"kind": "export", "what": what, "selection": {}})
    assert header["filename"].startswith("digits")
    assert arrays["file"].dtype == np.uint8
    assert len(arrays["file"]) > 50
    if what == "report":
        assert bytes(arrays["file"][:15]) == b"<!doctype html>"


def test_an_unknown_file_is_refused(session):
    with pytest.raises(InputError, match="what: unknown name 'exe'"):
        session.handle({"kind": "export", "what": "exe", "selection": {}})


def test_a_table_with_finer_steps_has_the_scanned_elements(session):
    scan = session.scan_view().scan
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with_models = Session({"digits": scan}, models={"a": net, "b": net})
    rows = rows_of(
        export.csv(SubsetRequest(with_models.scan_view(), Selection(sample=7, dense=True)))[2]
    )
    assert len(rows) == 8
    np.testing.assert_allclose(
        [float(row["sample_7_a"]) for row in rows], scan.data["score"][0, 7], atol=1e-6
    )
    with_models.close()


def test_an_empty_subset_is_exported_as_a_table_without_rows(session):
    parquet = pytest.importorskip("pyarrow.parquet")
    nowhere = Selection(subset=lassoed(session, [(5.0, 5.0), (6.0, 5.0), (5.0, 6.0)]))
    table = parquet.read_table(
        io.BytesIO(export.parquet(SubsetRequest(session.scan_view(), nowhere))[2])
    )
    assert table.num_rows == 0
    assert {"sample", "label", "mean_a", "x", "y"} <= {*table.column_names}
    assert export.indices(SubsetRequest(session.scan_view(), nowhere))[2] == b""
    assert len(rows_of(export.csv(SubsetRequest(session.scan_view(), nowhere))[2])) == 8


def test_a_name_from_a_store_is_no_formula_and_moves_no_cursor():
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        {"\x1b[31m=1": net},
        (images[:12], labels[:12]),
        group="rotations:4",
        task="classification",
        progress=False,
    )
    text = export.csv(SubsetRequest(Session({"digits": scan}).scan_view(), Selection()))[2].decode()
    assert "score_?[31m=1" in text.splitlines()[0]
    assert "\x1b" not in text
