"""Page, report, command line and `check` decide by one function of an error and its interval."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from talking import decode_part

import orbical as ob
from orbical.calibration import error_verdict, judge
from orbical.cli import main
from orbical.interface.reports.writing import report_to_write
from orbical.interface.session import Session

CLASSES = 3
ENDS = ("value", "low", "high")
NUMBERS = r" (\S+) \[(\S+), (\S+)\]"


def random_scan(seed: int, path: Path) -> ob.Scan:
    """Scan a model whose confidence is off by a random amount, on a random number of samples."""
    random = np.random.default_rng(seed)
    count, shift = int(random.integers(12, 150)), float(random.uniform(-1.5, 1.5))
    images = torch.from_numpy(random.random((count, 1, 4, 4))).float()
    logits = 3 * images.flatten(1)[:, :CLASSES]
    shares = (logits * math.exp(-shift)).softmax(1).double().numpy()
    labels = torch.tensor([random.choice(CLASSES, p=row / row.sum()) for row in shares])
    models = {
        "corner": lambda batch: 3 * batch[:, 0].flatten(1)[:, :CLASSES],
        "other": lambda batch: 6 * batch[:, 0].flatten(1)[:, 1 : 1 + CLASSES],
    }
    return ob.scan(models, (images, labels), group="cyclic:4", task="classification",
                   out=path, progress=False)  # fmt: skip


def recorded(session: Session) -> tuple[list[Any], list[dict[str, Any]]]:
    """Read what a report carries: the subsets, and the answers of each."""
    view = session.scan_view()
    _, parts = report_to_write(view, samples=None, methods=("pca",))
    headers = {name: decode_part(part)[0] for name, part in parts.items()}
    subsets = headers["state"]["report"]["subsets"]
    return subsets, [headers[f"subset/{number}"]["answers"] for number in range(len(subsets))]


@pytest.mark.parametrize("seed", range(8))
def test_page_report_and_interval_say_the_same(tmp_path: Path, seed: int) -> None:
    scan = random_scan(seed, tmp_path / "run.zarr")
    session = Session({"run": scan})
    subset = session.handle({"kind": "set", "recipe": {"samples": [*range(0, 12, 2)]}})[0]["hash"]
    session.handle({"kind": "names", "do": "save", "name": "even", "set": subset})
    subsets, answers = recorded(session)
    assert [[], subset] in subsets
    for (filters, named), held in zip(subsets, answers, strict=True):
        for element in range(len(scan.group)):
            selection = {"filter": filters, "subset": named, "element": element}
            asked = {"kind": "calibration", "selection": selection}
            page = session.handle(asked)[0]["measures"]
            report = held["calibration/truth"][element]["measures"]
            for one, recorded_one in zip(page, report, strict=True):
                assert recorded_one == pytest.approx(one)  # and the same words
                gap = one["confidence"] - one["accuracy"]
                ends = one["value"], one["low"], one["high"]
                assert one["verdict"] == error_verdict(*ends, gap)
                beyond = judge(*ends, maximum=0.0).outcome == "fail"
                assert (one["verdict"] == "no error detected") == (not beyond)


@pytest.mark.parametrize("seed", [0, 105, 109])
def test_command_and_check_say_what_their_intervals_say(
    tmp_path: Path, seed: int, capsys: Any
) -> None:
    scan = random_scan(seed, tmp_path / "run.zarr")
    path, here = str(scan.path), {"element": scan.group.identity}
    asked = {"kind": "calibration", "selection": here}
    page = {one["model"]: one for one in Session({"run": scan}).handle(asked)[0]["measures"]}
    words = " ".join(printed(capsys, "calibration", path).split())
    rows = json.loads(printed(capsys, "calibration", path, "--json"))["rows"]
    errors = [row for row in rows if (row["measure"], row["place"]) == ("ece", "identity")]
    assert len(errors) == 2
    checked = ob.check(scan, max_identity_ece=0.0)
    for row, other in zip(errors, checked, strict=False):
        ends = [row[name] for name in ("value", "low", "high")]
        # A verdict near the limit would flip with other draws.
        assert [page[row["model"]][name] for name in ("value", "low", "high")] == pytest.approx(
            ends
        )
        assert [other.value, other.low, other.high] == pytest.approx(ends)
        said = words.partition(f"{row['model']}, at the identity")[2].partition("ECE: ")[2]
        assert said.startswith(error_verdict(row["value"], row["low"], row["high"]))
    lines = printed(capsys, "check", path, "--max", "identity_ece=0").splitlines()
    for line in lines[: len(errors)]:
        word = error_verdict(*map(float, re.search(NUMBERS, line).groups()))
        assert line.startswith("FAIL" if word == "error detected" else "inconclusive")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with mock.patch("sys.argv", ["orbical", *words]), pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out


@pytest.mark.parametrize("missing", range(3))
def test_without_an_interval_there_is_no_verdict(missing: int) -> None:
    ends = [0.3, 0.2, 0.4]
    ends[missing] = math.nan
    assert error_verdict(*ends, 0.2) == ""


def test_a_verdict_names_the_direction_beyond_chance() -> None:
    assert error_verdict(0.4, 0.3, 0.5, 0.4) == "overconfident"
    assert error_verdict(0.4, 0.3, 0.5, -0.4) == "underconfident"
    assert error_verdict(0.3, 0.2, 0.4, 0.01) == "miscalibrated"
    assert error_verdict(0.4, 0.0, 0.5, 0.4) == "no error detected"
