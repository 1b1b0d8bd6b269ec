"""Page, `aggregate` and `check` show one interval for one mean, whatever the score is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.calibration import bounded_mean_interval, mean_interval
from orbical.interface.session import Session

COUNT = 60


def scan_of(task: str) -> ob.Scan:
    random = np.random.default_rng(3)
    images = torch.from_numpy(random.random((COUNT, 1, 4, 4)) ** 3).float()
    if task == "classification":
        truth = torch.from_numpy(random.integers(0, 3, COUNT))
        return ob.scan(lambda batch: 3 * batch[:, 0].flatten(1)[:, :3], (images, truth),
                       group="cyclic:4", task=task, progress=False)  # fmt: skip
    truth = torch.from_numpy(random.lognormal(0, 2, COUNT)).float()
    return ob.scan(lambda batch: batch.flatten(1)[:, :1], (images, truth[:, None]),
                   group="cyclic:4", task=task, progress=False)  # fmt: skip


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_mean_has_one_interval(task: str) -> None:
    scan = scan_of(task)
    curve = ob.nero.aggregate(scan, interval=True).isel(model=0)
    here = scan.group.identity
    python = [float(part[here]) for part in (curve, curve["low"], curve["high"])]
    terms = np.asarray(ob.nero.responses(scan)[0, :, here], float)
    if task == "classification":
        wanted = [float(part) for part in bounded_mean_interval(terms)]
    else:
        found = mean_interval(terms, terms, np.zeros(COUNT))
        wanted = [float(found.value), max(0.0, float(found.low)), float(found.high)]
    assert python == pytest.approx(wanted, rel=1e-6)
    (row,) = ob.check(scan, min_identity_score=0.0)
    assert [row.value, row.low, row.high] == pytest.approx(wanted, rel=1e-6)
    page = Session({"run": scan}).handle({"kind": "aggregate", "selection": {"metric": "score"}})[1]
    shown = [float(page[name][0, here]) for name in ("values", "low", "high")]
    assert shown == pytest.approx(wanted, rel=1e-5)
