"""Failures, advice and what if in the view: the numbers of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.interface.session import Session
from orbical.interface.session.subset_request import mask_of_subset


@pytest.fixture(scope="module")
def scan() -> ob.Scan:
    """A network that finds light above or below, and is wrong where it is turned."""
    images, _ = ob.datasets.digits()

    def upper_half(images: torch.Tensor) -> torch.Tensor:
        halves = [images[..., :4, :], images[..., 4:, :]]
        return 9 * torch.stack([half.sum((1, 2, 3)) for half in halves], 1)

    some = images[:160]
    return ob.scan(
        {"upper": upper_half},
        (some, upper_half(some).argmax(1)),
        group="rotations:12",
        task="classification",
        keep="probabilities",
        progress=False,
    )


@pytest.fixture(scope="module")
def session(scan: ob.Scan) -> Session:
    return Session({"run": scan})


def asked(session: Session, kind: str, **fields: Any) -> Any:
    return session.handle({"kind": kind, "sequence": 1, "selection": {}, **fields})


def test_failures_are_those_of_python_with_a_view_of_each(session: Session, scan: ob.Scan) -> None:
    about, _ = asked(session, "failures")
    found = ob.nero.failures(scan)
    assert about["searched"] == found.searched
    assert about["scope"] == found.scope
    sure = [one for one in about["failures"] if one["confirmed"]]
    assert [one["sentence"] for one in sure] == [one.sentence for one in found]
    for one, failure in zip(sure, found, strict=True):
        samples = np.flatnonzero(mask_of_subset(session.scan_view(), one["set"]))
        np.testing.assert_array_equal(samples, found.samples_of(failure))
        assert one["element"] in failure.elements
        assert one["sample"] in samples
        score = scan.data["score"].values[0, one["sample"], list(failure.elements)]
        assert score.mean() < scan.data["score"].values[0].mean()


def test_advice_is_that_of_python(session: Session, scan: ob.Scan) -> None:
    about, _ = asked(session, "advice")
    assert about["models"] == [one.to_dict() for one in ob.advise(scan)]


@pytest.mark.parametrize(
    "change", [{}, {"average": 4}, {"recalibrate": "pooled", "reject": "fitted"}, {"coverage": 0.9}]
)
def test_what_if_is_that_of_python(session: Session, scan: ob.Scan, change: Any) -> None:
    about, arrays = asked(session, "whatif", change=change)
    wanted = ob.advice.what_if(scan, **change)
    before = ob.advice.what_if(scan)
    for part, found in (("after", wanted), ("before", before)):
        np.testing.assert_allclose(arrays[f"{part}/accuracy"], found["accuracy"])
        for name in ("accuracy", "answered", "risk", "cost"):
            mean = found[name].weighted(found[name].notnull() * scan.group.weights)
            np.testing.assert_allclose(about[part][name], mean.mean("element"), rtol=1e-6)
    assert ("coverage" in about["after"]) == ("coverage" in change)
    assert about["code"] == wanted.attrs["code"]
    assert about["after"]["pooled_ece"] == wanted["pooled_ece"].values.tolist()


@pytest.mark.parametrize("change", [{"average": 5}, {"recalibrate": "upright"}, {"speed": 1}, []])
def test_other_changes_are_refused(session: Session, change: Any) -> None:
    with pytest.raises(InputError, match="change"):
        asked(session, "whatif", change=change)


def test_what_cannot_be_told_is_said(nets: Any) -> None:
    images, labels = ob.datasets.digits()
    made = {
        "few": ob.scan(
            nets, (images[:6], labels[:6]), group="flips", task="classification", progress=False
        ),
        "unlabeled": ob.scan(
            nets, images[:60], group="flips", task="classification", progress=False
        ),
    }
    few, unlabeled = (Session({name: one}) for name, one in made.items())
    assert "16 samples" in asked(few, "failures")[0]["reason"]
    assert asked(few, "advice")[0]["models"][0]["verdict"] == "not enough samples"
    assert "labels" in asked(unlabeled, "advice")[0]["reason"]
    assert asked(unlabeled, "whatif")[0]["available"] is False


def test_flips_are_those_of_python_refined_where_a_model_is_at_hand(
    digits: ob.Scan, nets: Any
) -> None:
    sample = 3
    for models in ({}, {"first": nets["first"]}):
        about, arrays = asked(
            Session({"run": digits}, models=models), "flips", selection={"sample": sample}
        )
        wanted = ob.flips(digits, sample, models=models or None)
        shown = [one for model in about["models"] for one in model["flips"]]
        here = {"element": 0, "position": [], "nearest": 0}
        assert [{**one, **here} for one in shown] == [{**one.to_dict(), **here} for one in wanted]
        refined = [one for one in zip(shown, wanted, strict=True) if one[1].model in models]
        assert all(one["nearest"] == flip.nearest for one, flip in refined)
        labels = digits.data["label"].values
        assert all(labels[one["nearest"]] == one["after"] for one in shown if one["nearest"])
        assert any(one["nearest"] for one in shown), "known from inputs alone, too"
        assert arrays["frames"].shape == (12, 8, 8, 1)
        for model, name in zip(about["models"], digits.models, strict=True):
            classes = digits.data["predicted"].sel(model=name).values[sample]
            ends = 360 * np.cumsum([one["share"] for one in model["bands"]])
            assert ends[-1] == pytest.approx(360)
            seen = [
                model["bands"][int(np.searchsorted(ends, angle + 1e-9))]["class"]
                for angle in digits.group.coords["angle"]
            ]
            assert seen == classes.tolist()


def test_flips_need_one_coordinate(nets: Any) -> None:
    images, labels = ob.datasets.digits()
    made = ob.scan(
        nets, (images[:6], labels[:6]), group="flips", task="classification", progress=False
    )
    assert "one continuous coordinate" in asked(Session({"run": made}), "flips")[0]["reason"]


def test_layers_are_those_of_python_and_the_model_stays_as_it_is(
    digits: ob.Scan, nets: Any
) -> None:
    session = Session({"run": digits}, models={"first": nets["first"]})
    (found,) = asked(session, "layers")[0]["models"]
    images, _ = ob.datasets.digits()
    wanted = ob.testing.layer_errors(
        nets["first"], images[:64], group="rotations:24", task="classification"
    )
    assert found["layers"] == wanted.layers
    np.testing.assert_allclose(found["share"], wanted.share, atol=1e-6)
    assert not any(part._forward_hooks for part in nets["first"].modules())
    assert asked(Session({"run": digits}), "layers")[0]["available"] is False
