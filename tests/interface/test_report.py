"""The report as a file: its size, its policy, the samples it chooses, and when it is a folder."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from urllib.parse import unquote

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.interface.bundling import icon
from orbical.interface.reports import contents, report
from orbical.interface.reports import writing as pages
from orbical.interface.reports.contents import informative_report_samples, planned_report_maps
from orbical.interface.session import Session
from orbical.interface.wire import quantize, quantize_log_odds


def test_a_report_is_one_page_that_may_load_nothing(scan, tmp_path):
    written = report(scan, tmp_path / "digits.html", title="Digits & <co>")
    text = written.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert "unsafe" not in policy
    assert "<title>Digits &amp; &lt;co&gt;</title>" in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert unquote(re.search(r'rel="icon".*?href="data:image/svg\+xml,([^"]+)', text)[1]) == icon()
    assert [*tmp_path.iterdir()] == [written]


def test_the_footer_says_what_was_scanned_and_when(scan, tmp_path):
    text = report(scan, tmp_path / "digits.html").read_text("utf-8")
    footer = re.search(r"<footer.*?</footer>", text, re.DOTALL)[0]
    for words in ("rotations:8, 8 elements", "90 samples", "linear = ", ob.__version__, "UTC"):
        assert words in footer


def test_the_samples_of_a_smaller_report_are_said(scan, tmp_path):
    text = report(scan, tmp_path / "some.html", samples=30).read_text("utf-8")
    assert "30 of 90 samples: 10 that vary most along the orbit" in text


def test_a_large_report_is_a_folder_that_opens_without_a_server(scan, tmp_path, monkeypatch):
    monkeypatch.setattr("orbical.interface.reports.writing.MOST_BYTES", 1000)
    written = report(scan, tmp_path / "large.html")
    assert written == tmp_path / "large" / "index.html"
    assert not (tmp_path / "large.html").exists()
    script = (tmp_path / "large" / "parts" / "state.js").read_text()
    assert script.startswith('(globalThis.orbicalParts ??= {})["state"] = "')
    assert "part:" not in written.read_text("utf-8").split("</style>")[1].split("<script")[0]


def test_a_smaller_report_replaces_the_folder_of_a_larger_one(scan, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("orbical.interface.reports.writing.MOST_BYTES", 1000)
        report(scan, tmp_path / "digits.html", samples=20)
    report(scan, tmp_path / "digits.html", samples=20)
    assert [path.name for path in tmp_path.iterdir()] == ["digits.html"]


def test_a_large_report_replaces_an_earlier_one_and_keeps_what_else_lies_there(
    scan, tmp_path, monkeypatch
):
    monkeypatch.setattr("orbical.interface.reports.writing.MOST_BYTES", 1000)
    page = report(scan, tmp_path / "large.html", samples=20)
    (page.parent / "parts" / "outdated.js").write_text("")
    (page.parent / "notes.txt").write_text("mine")
    assert report(scan, tmp_path / "large.html", samples=20) == page
    assert not (page.parent / "parts" / "outdated.js").exists()
    assert (page.parent / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("mine", ["notes.txt", "index.html"])
def test_a_folder_that_is_no_report_is_refused_before_any_work(scan, tmp_path, mine):
    (tmp_path / "large" / "parts").mkdir(parents=True)
    (tmp_path / "large" / mine).write_text("mine")
    worked = []
    with pytest.raises(InputError, match=r"becomes a folder.*large.* is not a report"):
        report(scan, tmp_path / "large.html", advance=worked.append)
    assert worked == []
    assert (tmp_path / "large" / mine).read_text() == "mine"


def test_a_report_of_an_unfinished_scan_warns_and_says_so_itself(folder, tmp_path):
    """Its means were those of fewer samples, without a word."""
    shutil.copytree(folder / "digits.zarr", tmp_path / "digits.zarr")
    next((tmp_path / "digits.zarr/units").glob("0.1.*")).unlink()
    with pytest.warns(UserWarning, match="no valid mark"):
        scan = ob.load(tmp_path / "digits.zarr")
    with pytest.warns(UserWarning, match="the scan is 88% done") as warned:
        page = report(scan, tmp_path / "page.html")

    def part(name):
        text = re.search(rf'id="part:{name}">([^<]+)', page.read_text("utf-8"))[1]
        return gzip.decompress(base64.b64decode(text))

    assert str(warned[0].message).encode() in part("state")
    count = json.loads(re.search(rb'"count": ?(\d+)', part("subset/0"))[1])
    finished = np.isfinite(scan.data["score"].values).all((0, 2))
    assert count == finished.sum() < len(finished)


def test_a_scan_without_truth_makes_a_report(tmp_path):
    images, _ = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        net, images[:20], group="flips", task="classification", keep="inputs", progress=False
    )
    assert report(scan, tmp_path / "digits.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "report.pdf"}, "expected a name that ends in .html"),
        ({"samples": 2}, "samples: expected None or an integer >= 3, got 2"),
        ({"samples": True}, "samples: expected .* got True"),
        ({"methods": ("pac",)}, "did you mean 'pca'"),
        ({"methods": ()}, "methods: expected at least one"),
    ],
)
def test_what_cannot_be_written_is_refused(scan, tmp_path, options, message):
    options = {"path": tmp_path / "a.html", **options}
    with pytest.raises(InputError, match=message):
        report(scan, **options)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("place", ["file/a.html", "/proc/no-such/a.html", "/dev/null/a.html"])
def test_a_place_that_cannot_be_written_is_an_error(scan, tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"path: .* cannot be written: "):
        report(scan, tmp_path / place)


def test_a_folder_is_no_place_for_a_page(scan, tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(InputError, match="got the folder"):
        report(scan, tmp_path / "a.html")


def test_chosen_samples_are_variable_bad_and_spread_and_of_every_class():
    rng = np.random.default_rng(0)
    label = np.arange(300) % 10
    mean = rng.random((2, 300))
    variance = rng.random((2, 300)) * np.where(label == 4, 100, 1)  # one class varies most
    xy = rng.normal(size=(300, 2))
    chosen = informative_report_samples(mean, variance, xy, label, 60, True)
    assert len(chosen.samples) == len(np.unique(chosen.samples)) == 60
    assert not chosen.complete
    assert np.bincount(label[chosen.samples], minlength=10).min() >= 4
    for one in range(10):  # the worst and the most variable of each class are there
        members = np.flatnonzero(label == one)
        assert members[mean[:, members].min(0).argmin()] in chosen.samples
        assert members[variance[:, members].max(0).argmax()] in chosen.samples
    corners = [xy[:, 0].argmin(), xy[:, 0].argmax(), xy[:, 1].argmin(), xy[:, 1].argmax()]
    assert np.isin(corners, chosen.samples).sum() >= 3


def test_answers_are_kept_whole_on_long_orbits():
    from orbical.interface.reports.report_parts import ReportBlocks
    from orbical.interface.session import Session

    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        net,
        (images[:5], labels[:5]),
        group="rotations:72",
        task="classification",
        keep=("inputs", "probabilities"),
        progress=False,
    )
    ((_, block),) = ReportBlocks(Session({"digits": scan}).scan_view(), np.array([1, 4]))
    kept = decoded(block["detail/probabilities"])
    np.testing.assert_allclose(kept, scan.data["probabilities"][:, [1, 4]], atol=0.5 / 255 + 1e-6)
    inputs = decoded(block["input/image"])
    np.testing.assert_allclose(inputs, scan.data["input"][[1, 4]], atol=0.5 / 255 + 1e-6)


def test_where_low_is_good_the_highest_are_the_worst():
    mean = np.linspace(0, 1, 100)[None]
    xy = np.random.default_rng(0).normal(size=(100, 2))
    flat = np.zeros((1, 100))
    assert 99 in informative_report_samples(mean, flat, xy, None, 9, upward=False).samples
    assert {97, 98, 99} <= {
        *informative_report_samples(mean, flat, xy, None, 9, upward=False).samples.tolist()
    }


def test_unfinished_samples_are_left_out():
    xy = np.full((50, 2), np.nan)
    xy[:8] = np.arange(16).reshape(8, 2)
    chosen = informative_report_samples(np.ones((1, 50)), np.ones((1, 50)), xy, None, 20, True)
    assert chosen.samples.tolist() == [*range(8)]


def decoded(found):
    """Return numbers as the page decodes them."""
    values = found.low + found.step * found.codes.astype(np.float64)
    if found.odds:
        values = 1 / (1 + np.exp(-values))
        values[found.codes == 0] = 0.0
        values[found.codes == 65_534] = 1.0
    if found.missing is not None:
        values[found.codes == found.missing] = np.nan
    return values.astype(np.float32)


@pytest.mark.parametrize("missing", [False, True])
def test_shares_are_kept_within_the_precision_stated(missing):
    shares = np.concatenate([np.linspace(0, 1, 5001), 1 - np.logspace(-7, -1, 50)])
    if missing:
        shares[7] = np.nan
    again = decoded(quantize_log_odds(shares))
    np.testing.assert_allclose(again, shares, atol=1e-4)
    near = shares > 0.999
    np.testing.assert_allclose(1 - again[near], 1 - shares[near], rtol=1e-3, atol=1e-7)
    assert again[0] == 0
    assert again[5000] == 1


def test_pixels_in_steps_of_a_255th_are_exact():
    pixels = np.arange(256) / 255
    np.testing.assert_allclose(decoded(quantize(pixels, 8, 0.0, 1.0)), pixels, atol=1e-7)


def test_files_of_parts_have_names_that_every_system_takes():
    assert pages.report_file_name("values/score_vs_consensus") == "values_score_vs_consensus.js"


def test_maps_are_those_that_are_quick_or_asked_for_and_the_rest_is_named(scan, monkeypatch):
    view = Session({"digits": scan}).scan_view()
    usual = planned_report_maps(view, None, 100)
    assert [one for one in usual.maps if one[0] == "isomap"] == [("isomap", "", "truth")]
    assert len([one for one in usual.maps if one[0] == "ica"]) == 2 * (1 + len(view.models))
    assert usual.note().startswith("maps left out: tsne")
    assert usual.note().endswith("isomap of some models or references")
    assert planned_report_maps(view, ["all"], 100).note() == ""
    monkeypatch.setattr(contents, "MOST_BYTES", 900)
    few = planned_report_maps(view, ["all"], 100)
    assert few.maps == [("pca", "", "truth"), ("pca", "", "consensus")]
