"""The guide's task of one's own: everything works with it as with the built-in ones."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def scan(own_task, own_models):
    return ob.scan(
        own_models,
        own_task.scenes(12, seed=1),
        group="flips",
        task=own_task.Segmentation(2),
        keep="inputs",
        progress=False,
    )


def test_the_score_is_the_mean_overlap_counted_by_hand(own_task, own_models, scan):
    images, maps = own_task.scenes(12, seed=1)
    for element, flip in enumerate(([], [-1], [-2], [-2, -1])):
        with torch.inference_mode():
            answer = own_models["places"](torch.flip(images, flip)).argmax(1)
        truth = torch.flip(maps, flip)
        for sample in range(len(images)):
            overlaps = []
            for label in (0, 1):
                a, b = answer[sample] == label, truth[sample] == label
                overlaps.append(int((a & b).sum()) / int((a | b).sum()))
            found = scan.data["score"].sel(model="places").values[sample, element]
            assert found == pytest.approx(np.mean(overlaps), abs=1e-6)


def test_the_plot_tells_which_symmetry_is_broken(scan):
    score = ob.nero.aggregate(scan)
    places, contrast = score.sel(model="places").values, score.sel(model="contrast").values
    none, horizontal, vertical, both = range(4)
    assert places[vertical] > 0.9
    assert max(places[horizontal], places[both]) < 0.6
    assert np.ptp(contrast) < 1e-6
    assert contrast[none] > 0.9


def test_an_equivariant_model_agrees_with_its_consensus(scan):
    gap = ob.nero.invariance_gap(scan)["total"]
    assert float(gap.sel(model="contrast")) < 1e-4 < 0.1 < float(gap.sel(model="places"))
    agreed = scan.data["score_vs_consensus"].sel(model="contrast").values
    np.testing.assert_allclose(agreed, 1.0)


def test_a_model_that_copies_the_truth_scores_one_everywhere(own_task):
    maps = own_task.scenes(6, seed=2)[1]

    def copy(moved):
        return torch.cat([-moved, moved], 1) * 20 - 10

    truth = maps[:, None].float()
    scan = ob.scan(copy, (truth, maps), group="dihedral:4", task=own_task.Segmentation(2),
                   progress=False)  # fmt: skip
    np.testing.assert_allclose(scan.data["score"].values, 1.0)
    np.testing.assert_allclose(scan.data["consensus_vs_truth"].values, 1.0)


def test_places_from_outside_the_image_do_not_count(own_task):
    """Under a turn by 45 degrees the corners are invented; a model wrong there alone scores 1."""
    task = own_task.Segmentation(2)
    truth = torch.zeros(1, 16, 16, dtype=torch.int64)
    target = task.check_target(truth, 1)
    group = ob.groups.rotations(8)
    outputs = torch.zeros(8, 1, 2, 16, 16)
    valid = task.output.valid(group, outputs)
    outputs[:, :, 0] = valid[:, None].float()
    outputs[:, :, 1] = 1 - valid[:, None].float()
    moved = task.output.move(group, target[None])
    np.testing.assert_allclose(task.score(outputs, moved, valid), 1.0)
    assert float(task.score(outputs, moved, None)[1, 0]) < 1


def test_figures_draw_it(scan):
    fig = ob.figures.aggregate(ob.nero.aggregate(scan))
    assert len(fig.axes) >= 2
    images = scan.data["input"].values
    ob.figures.individual(ob.nero.individual(scan, 3), image=images[3, 0])


def test_the_interface_shows_it_with_live_answers(own_task, own_models, scan):
    from orbical.interface.session import Session

    session = Session({"own": scan}, models=own_models, task=own_task.Segmentation(2))
    state, _ = session.handle({"kind": "state"})
    assert state["views"] == {"input": "image", "detail": "png"}
    chosen = {"sample": 3, "element": 1}
    about, arrays = session.handle({"kind": "place", "selection": chosen})
    assert about["live"]
    assert about["detail"]["view"] == "png"
    assert arrays["detail/png"].startswith(b"\x89PNG")
    stored = scan.data["overlap"].sel(sample=3, element=1).values
    np.testing.assert_allclose(arrays["detail/overlap"], stored, atol=1e-6)
    images, _ = own_task.scenes(12, seed=1)
    np.testing.assert_allclose(arrays["input/image"], torch.flip(images[3], [-1]), atol=1e-6)


def test_wrong_outputs_and_truths_are_named(own_task):
    images, maps = own_task.scenes(3, seed=0)
    task = own_task.Segmentation(2)
    scan = {"group": "flips", "task": task, "progress": False}
    with pytest.raises(ModelError, match=r"logits \[sample, 2, row, column\]"):
        ob.scan(lambda moved: moved, (images, maps), **scan)
    with pytest.raises(InputError, match=r"maps of \(16, 16\) pixels"):
        ob.scan(lambda moved: moved.repeat(1, 2, 1, 1), (images, maps[:, ::2, ::2]), **scan)
    for labels, words in ((maps.float(), "float32"), (maps[:2], "shape"), (maps + 1, "0 .. 1")):
        with pytest.raises(InputError, match=words):
            ob.scan(lambda moved: moved.repeat(1, 2, 1, 1), (images, labels), **scan)


@pytest.mark.usefixtures("sketched_figures")
def test_the_guide_shows_the_example_as_it_is_and_it_runs(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "guide" / "own-task.md").read_text(encoding="utf-8")
    source = (ROOT / "examples" / "own_task.py").read_text(encoding="utf-8")
    shown = page.split("```python\n")[1].split("```")[0].rstrip()
    assert shown.startswith("class Segmentation(Task):")
    assert shown in source
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "own_task.py"), run_name="__main__")
    said = [line.partition(":")[0].strip() for line in capsys.readouterr().out.splitlines()]
    printed = page.split("```text\n")[1].split("```")[0].splitlines()
    assert [line.partition(":")[0].strip() for line in printed] == said


def test_settings_of_a_task_of_ones_own_are_recorded_where_a_record_can_hold_them():
    class Own(ob.tasks.Regression):
        """A regression with a weight and a network."""

        def __init__(self, input=None, weight=2.0, network=None, lost=1, read=None):
            super().__init__(input, read=read)
            self.weight, self.network = weight, network

    task = Own(weight=3.0, network=torch.nn.Identity())
    assert task.settings() == {"weight": 3.0}
    assert "weight=3.0" in repr(task)
