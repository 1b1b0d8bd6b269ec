"""The guide's group of one's own: part, group, action, task, scan, view and report in one file."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.groups.group_parts import PARTS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def own():
    path = ROOT / "examples" / "own_group.py"
    spec = importlib.util.spec_from_file_location("own_group", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scan(own, tmp_path_factory):
    torch.manual_seed(0)
    models = {"plain": own.Plain(), "covariant": own.Covariant()}
    return ob.scan(
        models,
        own.decays(20, seed=1),
        group="boosts:2:9",
        task=own.FourMomentum(),
        out=tmp_path_factory.mktemp("own") / "boosts.zarr",
        keep="inputs",
        progress=False,
    )


def test_boosts_keep_the_metric_and_add_their_rapidities(own):
    group = ob.groups.parse("boosts:2:9")
    matrices, metric = group.parts["spacetime"], np.diag(own.METRIC.numpy())
    np.testing.assert_allclose(matrices.transpose(0, 2, 1) @ metric @ matrices, [metric] * 9,
                               atol=1e-12)  # fmt: skip
    assert group.contains_inverses
    assert not group.closed
    twice = group[[5]].compose(group[[5]])
    assert group.index_of(twice)[0] == 6
    turned = ob.groups.product(group, ob.groups.time_reversal())
    assert (len(turned), sorted(turned.parts)) == (18, ["spacetime", "time"])


def test_the_decay_conserves_the_four_momentum(own):
    seen, particle = own.decays(50, seed=0)
    missing = particle - seen.sum(1)
    torch.testing.assert_close(own.product(particle, particle), torch.ones(50))
    torch.testing.assert_close(own.product(missing, missing), torch.zeros(50), atol=1e-4, rtol=0)
    torch.testing.assert_close(own.product(seen, seen), torch.zeros(50, 2), atol=1e-4, rtol=0)


def test_the_action_is_exact_and_the_score_invariant(own):
    group, seen = ob.groups.parse("boosts:2:9"), own.decays(5, seed=0)[0].double()
    action, task = own.FourVectors(), own.FourMomentum()
    assert float(action.defect(group, seen).max()) < 1e-6
    a, b = own.decays(5, seed=1)[1].double(), own.decays(5, seed=2)[1].double()
    score = task.score(action.apply(group, a), action.apply(group, b), None)
    torch.testing.assert_close(score, score[4].expand_as(score))


def test_the_covariant_model_has_no_gap(scan):
    gap = ob.nero.invariance_gap(scan)["total"]
    assert float(gap.sel(model="covariant")) < 1e-4 < 0.1 < float(gap.sel(model="plain"))


def test_the_view_moves_inputs_and_answers_live(own, scan):
    from orbical.interface.session import Session

    models = {"plain": own.Plain(), "covariant": own.Covariant()}
    session = Session({"own": scan}, models=models, task=own.FourMomentum())
    state, _ = session.handle({"kind": "state"})
    assert state["group"]["kind"] == "line"
    about, arrays = session.handle({"kind": "place", "selection": {"sample": 3, "element": 1}})
    assert about["live"]
    assert arrays["detail/mass"].shape == (2,)


def test_a_store_is_read_and_drawn_where_the_part_is_unknown(scan, monkeypatch, tmp_path):
    monkeypatch.delitem(PARTS, "spacetime")
    again = ob.load(scan.path)
    assert again.group.fingerprint() == scan.group.fingerprint()
    assert again.group.coords["rapidity"][again.group.identity] == 0
    assert "worst_name" in ob.nero.summary(again)
    assert ob.figures.aggregate(ob.nero.aggregate(again)).axes
    assert ob.report(again, tmp_path / "boosts.html").is_file()
    with pytest.raises(InputError, match="register_part"):
        again.group.inverse()


def test_a_registered_action_is_restored_from_a_record_and_read_from_text(own):
    described = own.FourVectors().describe()
    assert type(ob.actions.Action.from_record(described)) is own.FourVectors
    assert type(ob.tasks.parse_input("FourVectors")) is own.FourVectors
    with pytest.raises(InputError, match="or a registered one, got 'SixVectors'"):
        ob.actions.Action.from_record({"action": "SixVectors"})


def test_wrong_data_and_outputs_are_named(own):
    task, (seen, particle) = own.FourMomentum(), own.decays(3, seed=0)
    settings = {"task": task, "progress": False}
    with pytest.raises(InputError, match=r"the plane part of flips moves nothing of this data"):
        ob.scan(own.Plain(), seen, group="flips", **settings)
    with pytest.raises(InputError, match=r"four-vectors \[sample, ..., 4\]"):
        ob.scan(own.Plain(), seen[..., :3], group="boosts", **settings)
    with pytest.raises(InputError, match=r"four-momenta of shape \(3, 4\)"):
        ob.scan(own.Plain(), (seen, particle[:, :3]), group="boosts", **settings)
    with pytest.raises(ModelError, match=r"four-momenta \[sample, 4\]"):
        ob.scan(lambda x: x, seen, group="boosts", **settings)
    with pytest.raises(InputError, match="N: expected an odd number"):
        ob.groups.parse("boosts:1:4")


def test_an_action_that_fails_is_named_before_any_work(own):
    class Wrong(own.FourVectors):
        def check(self, group, x):
            pass

    class Forgetful(Wrong):
        def move(self, elements, x):
            return x  # without the axis of the elements

    seen, _ = own.decays(3, seed=0)

    def scan(action, data):
        task = ob.tasks.Classification(input=action)
        ob.scan(lambda x: x.flatten(1), data, group="boosts", task=task, progress=False)

    with pytest.raises(InputError, match=r"action: Wrong raised RuntimeError .* 2, 3\).*; refuse"):
        scan(Wrong(), seen[..., :3])
    with pytest.raises(InputError, match=r"Forgetful.move to return .* here \[4, \d, ...\], got"):
        scan(Forgetful(), seen)


def test_the_guide_shows_the_example_as_it_is():
    page = (ROOT / "docs" / "guide" / "own-group.md").read_text(encoding="utf-8")
    source = (ROOT / "examples" / "own_group.py").read_text(encoding="utf-8")
    shown = [piece.split("```")[0].rstrip() for piece in page.split("```python\n")[1:]]
    assert len(shown) >= 3
    assert all(piece in source for piece in shown)


@pytest.fixture(scope="module")
def fast(own):
    """Momenta, and whether the energy of their sum is large, as classes."""
    momenta = own.decays(40, seed=1)[0]
    return momenta, (momenta[:, :, 0].sum(1) > 1.0).long()


def test_a_test_of_a_model_runs_as_the_guide_says(own, fast):
    options = {"group": "boosts:2:17", "task": own.FourMomentum()}
    ob.testing.assert_equivariant(own.Covariant().double(), fast[0].double(), **options)
    with pytest.raises(AssertionError, match="rapidity"):
        ob.testing.assert_equivariant(own.Plain(), fast[0], **options)


def test_layers_causes_and_bounds_take_an_action_of_ones_own(own, fast):
    group, action = "boosts:2:5", own.FourVectors()
    errors = ob.testing.layer_errors(own.Plain(), fast[0], group=group, task=own.FourMomentum())
    assert errors.total > 0

    def threshold(momenta):
        energy = momenta[:, :, 0].sum(1)
        return torch.stack([1.0 - energy, energy - 1.0], 1)

    task = ob.tasks.Classification(action)
    assert ob.advice.cause(threshold, fast, fast, group=group, task=task).sentence
    found = ob.bounds.compare_groups(fast, [group], action=action)
    assert [row["group"] for row in found.rows()] == ["trivial", group]
