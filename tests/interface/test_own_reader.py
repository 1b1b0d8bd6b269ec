"""A scan read by a function of one's own is shown whole without it; only models are not asked."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from talking import ask

import orbical as ob
from orbical.errors import ModelError
from orbical.interface.reports.report_parts import ReportBlocks
from orbical.interface.session import Session


def corners(views: torch.Tensor) -> torch.Tensor:
    """Answer two boxes that differ from view to view."""
    sure = views[:, 0, :2, 0].clamp(0.1, 0.9)
    edges = torch.tensor([[4.0, 4, 14, 14], [6, 5, 17, 18]]).expand(len(views), -1, -1)
    return torch.cat([edges + sure[..., None], sure[..., None], 0 * sure[..., None]], -1)


def packed(views: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same in a form of one's own: middles and sides, in quarters of pixels."""
    found = corners(views)
    left_top, right_bottom = found[..., :2], found[..., 2:4]
    places = torch.cat([(left_top + right_bottom) / 2, right_bottom - left_top], -1) * 4
    return {"where": places, "sure": found[..., 4]}


def unpack(raw: dict[str, torch.Tensor]) -> torch.Tensor:
    middle, side = (raw["where"] / 4).split(2, -1)
    edges = torch.cat([middle - side / 2, middle + side / 2], -1)
    return torch.cat([edges, raw["sure"][..., None], 0 * raw["sure"][..., None]], -1)


def scan_of(model: Any, read: Any) -> ob.Scan:
    images = torch.rand(6, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    objects = torch.tensor([[[5.0, 5, 15, 15, 0]]]).repeat(6, 1, 1)
    task = ob.tasks.Detection(ob.actions.Window(20), read=read)
    settings = {"group": "translations:4:2", "task": task, "keep": "inputs", "progress": False}
    return ob.scan({"mine": model}, (images, objects), **settings)


@pytest.fixture(scope="module")
def own() -> ob.Scan:
    return scan_of(packed, unpack)


@pytest.fixture(scope="module")
def plain() -> ob.Scan:
    return scan_of(corners, None)


def test_truth_and_consensus_move_along_without_the_reader(own: ob.Scan, plain: ob.Scan) -> None:
    found, expected = (
        ask(Session({"scan": one}), "place", sample=2, element=7) for one in (own, plain)
    )
    assert found[1].keys() == expected[1].keys()
    assert {"truth/moved", "consensus/moved"} < found[1].keys()
    for name, values in expected[1].items():
        np.testing.assert_allclose(found[1][name], values, atol=1e-4, err_msg=name)


def test_a_report_holds_them_too(own: ob.Scan, plain: ob.Scan) -> None:
    found, expected = (
        next(iter(ReportBlocks(Session({"scan": one}).scan_view(), np.arange(6))))[1]
        for one in (own, plain)
    )
    for name in ("truth/moved", "consensus/moved"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4, err_msg=name)
    assert np.shape(found["truth/moved"]) == (1, 6, 25, 1, 5)


def test_models_are_not_asked_and_the_reader_is_named(own: ob.Scan) -> None:
    session = Session({"scan": own}, models={"mine": packed})
    state, _ = ask(session, "state")
    assert state["live"] is False
    assert any("unpack; pass that function as read" in words for words in state["warnings"])
    header, _ = ask(session, "place", sample=1, element=3)
    assert (header["live"], header["errors"]) == (False, {})
    session.close()
    session = Session({"scan": own}, models={"mine": packed}, read=unpack)
    assert ask(session, "state")[0]["live"] is True
    session.close()


def test_a_raw_answer_is_refused_by_the_name_of_the_reader(own: ob.Scan) -> None:
    task = ob.tasks.Task.from_record(asdict(own.record.task))
    with pytest.raises(ModelError, match="unpack; pass that function as read"):
        task.read(packed(torch.rand(2, 1, 20, 20)))
