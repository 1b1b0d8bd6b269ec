"""Every kind of scan can be looked at: other tasks, groups, no truth, unfinished, one sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from talking import ask, decode

import orbical as ob
from orbical.figures import cloud_picture
from orbical.interface import open_session
from orbical.interface.reports import report
from orbical.interface.session import KINDS, Session
from orbical.interface.session.input_pictures import (
    MOST_VOXELS,
    cloud_for_page,
    input_arrays,
    picture_on_black,
)
from orbical.interface.session.subset_curves import subset_changes

ANSWERED = [kind for kind in KINDS if kind not in ("hover", "export", "set")]


def asked(kind: str, state: dict[str, Any]) -> bool:
    """Whether the page asks for a kind of answer: not where the scan has nothing to say to it."""
    if kind == "classes":  # a small plot for each group
        kinds = [(column["kind"], column["by_model"]) for column in state["columns"]]
        return ("category", False) in kinds
    return kind not in ("consistency", "worst", "preview", "link") or bool(state.get(kind))


def ask_everything(session: Session, **selection: Any) -> None:
    """Ask every kind of question, with every metric, and expect an answer in a frame."""
    state = session.state()[0]
    for kind in ANSWERED:
        if not asked(kind, state):
            continue
        header, _ = decode(session.answer({"kind": kind, "selection": selection}))
        assert "error" not in header, header
    if state["consistency"]:
        view = session.scan_view()
        expected = ob.nero.consistency(view.scan)
        for name, each in subset_changes(view).items():
            np.testing.assert_allclose(each, expected[f"{name}_per_sample"], rtol=1e-6)
    for metric in session.state()[0]["metrics"]:
        for kind in ("aggregate", "sample", "list", "color"):
            given = {**selection, "metric": metric["name"]}
            header, arrays = decode(session.answer({"kind": kind, "selection": given}))
            assert "error" not in header, header
            assert arrays
    header, _ = decode(session.answer({"kind": "hover", "samples": [0], "selection": selection}))
    assert "error" not in header


@pytest.fixture(scope="module")
def vectors() -> tuple[ob.Scan, Any]:
    """Points in the plane, and a model that answers their mean, a little off, with a variance."""
    generator = torch.Generator().manual_seed(3)
    points = torch.randn(20, 5, 2, generator=generator)

    def model(batch: Any) -> dict[str, torch.Tensor]:
        size = batch["pos"].square().sum((1, 2))[:, None]
        mean = batch["pos"].mean(1) + size * torch.tensor([0.01, 0.0])
        return {"mean": mean, "variance": torch.full_like(mean[:, :1], 0.04)}

    task = ob.tasks.Regression(
        {"pos": ob.actions.Points()}, representation="vector", uncertainty="variance"
    )
    scan = ob.scan(
        model,
        ({"pos": points}, points.mean(1)),
        group="rotations:12",
        task=task,
        keep="inputs",
        progress=False,
    )
    return scan, model


def test_a_regression_of_vectors(vectors: tuple[ob.Scan, Any]) -> None:
    scan, model = vectors
    session = open_session(scan, model)
    ask_everything(session)
    header, arrays = ask(session, "state")
    metrics = {metric["name"]: metric for metric in header["metrics"]}
    assert metrics["score"]["higher_is_better"] is False
    assert metrics["score"]["low"] == 0
    assert "confidence" not in metrics
    assert "ence" not in metrics  # it is of one target
    _, arrays = ask(session, "aggregate", metric="gence")
    expected = ob.calibration.along_orbit(scan, "gence").values
    np.testing.assert_allclose(arrays["values"], expected)
    assert "label" not in ask(session, "state")[1]
    assert header["colors"] == ["mean", "variance", "gap"]
    assert header["calibration"] is False
    _, gap = ask(session, "color", color="gap")
    np.testing.assert_allclose(gap["values"], scan.data["invariance_gap"].values[0])
    worst = ask(session, "list")[1]["samples"][0]
    assert worst == scan.data["score"].values[0].mean(1).argmax()


def test_what_moves_is_shown_moved(vectors: tuple[ob.Scan, Any]) -> None:
    scan, model = vectors
    header, arrays = ask(open_session(scan, model), "place", sample=4, element=3)
    assert header["truth"] is None
    assert header["live"] is True
    turn = scan.group.parts["plane"][3, :2, :2]
    pos = scan.data["input_pos"].values[4]
    np.testing.assert_allclose(arrays["input/pos"], pos @ turn.T, atol=1e-5)
    np.testing.assert_allclose(arrays["truth/moved"][0], turn @ pos.mean(0), atol=1e-5)
    still = scan.data["consensus"].values[0, 4]
    np.testing.assert_allclose(arrays["consensus/moved"][0], turn @ still, atol=1e-5)
    expected = turn @ pos.mean(0) + [0.01 * np.square(pos).sum(), 0]
    np.testing.assert_allclose(arrays["detail/mean"][0], expected, atol=1e-5)


def test_a_flow_with_reversed_time() -> None:
    generator = torch.Generator().manual_seed(5)
    pairs = torch.rand(6, 2, 1, 80, 80, generator=generator)
    truth = torch.randn(6, 2, 80, 80, generator=generator)
    scan = ob.scan(
        lambda x: torch.cat([x[:, 1] - x[:, 0], x[:, 0]], 1),
        (pairs, truth),
        group="cyclic:4*time_reversal",
        task="flow",
        keep=("inputs", "flow"),
        progress=False,
    )
    session = open_session(scan)
    ask_everything(session)
    header, arrays = ask(session, "state")
    assert header["metrics"][0]["unit"] == "px"
    assert header["group"]["kind"] == "tiles"
    np.testing.assert_array_equal(arrays["time"], scan.group.parts["time"])
    header, arrays = ask(session, "place", sample=2, element=5)
    assert arrays["input/pair"].shape == (2, 1, 80, 80)
    assert arrays["detail/flow"].shape == (1, 2, 16, 16)  # as many arrows as are drawn
    assert header["detail"]["steps"] == {"flow": 5}
    np.testing.assert_array_equal(
        arrays["detail/flow"], scan.data["flow"].values[:, 2, 5, :, 2::5, 2::5]
    )
    assert session.handle({"kind": "hover", "samples": [1], "selection": {}})[1][
        "thumbnail"
    ].shape == (1, 56, 56, 1)


@pytest.fixture(scope="module")
def four_flows() -> ob.Scan:
    """Scan four estimators on pairs of the demo's size."""
    made = ob.datasets.particle_pairs(4, size=96, seed=1)

    def answering(share: float) -> Any:
        return lambda pairs: share * (pairs[:, 1] - pairs[:, 0]).repeat(1, 2, 1, 1)

    return ob.scan(
        {f"{share:g}": answering(share) for share in (0.25, 0.5, 0.75, 1.0)},
        (made["pair"], made["flow"]),
        group="dihedral:4*time_reversal",
        task="flow",
        keep="inputs",
        progress=False,
    )


def test_a_place_of_four_flows_travels_in_a_small_frame(four_flows: ob.Scan) -> None:
    request = {"kind": "place", "selection": {"sample": 1, "element": 3}}
    frame = open_session(four_flows).answer(request)
    assert len(frame) < 64_000
    names = {*decode(frame)[1]}
    assert {"detail/flow_map", "detail/truth_map", "detail/error_map"} <= names
    assert {name for name in names if name.startswith(("consensus/", "truth/"))} == {
        "consensus/moved",
        "truth/moved",
    }


def test_a_report_of_four_flows_is_one_small_file(four_flows: ob.Scan, tmp_path: Path) -> None:
    page = report(four_flows, tmp_path / "flows.html")
    assert page.name == "flows.html"
    assert page.stat().st_size < 2_000_000


def test_a_detection_in_a_moving_view() -> None:
    generator = torch.Generator().manual_seed(2)
    scenes = torch.rand(8, 3, 40, 40, generator=generator)
    objects = torch.tensor([[8.0, 8, 16, 16, 1], [0, 0, 6, 6, 2]]).expand(8, 2, 5).clone()
    objects[3, 1] = torch.nan

    def model(views: torch.Tensor) -> torch.Tensor:
        box = torch.tensor([[8.0, 8, 16, 17, 0.9, 1], [1, 1, 7, 6, 0.4, 2]])
        return box.expand(len(views), 2, 6).clone()

    scan = ob.scan(
        model,
        (scenes, objects),
        group="translations:4:2",
        task=ob.tasks.Detection(ob.actions.Window(24)),
        keep="inputs",
        progress=False,
    )
    session = open_session(scan, model)
    ask_everything(session)
    ask_everything(session, reference="consensus", filter=["label:1"])
    header, arrays = ask(session, "state")
    metrics = {metric["name"]: metric for metric in header["metrics"]}
    assert {"score", "iou", "precision", "recall", "confidence", "count"} <= {*metrics}
    assert (metrics["score"]["low"], metrics["score"]["high"]) == (0.0, 1.0)
    assert arrays["label"].tolist() == [1] * 8
    assert header["warnings"] == []
    assert header["noun"] == "images"
    header, arrays = ask(session, "place", sample=3, position=[1.0, 0.5])
    assert header["live"] is True
    assert arrays["input/whole"].shape == (3, 40, 40)
    request = {"kind": "place", "selection": {"sample": 3}, "scene": False}
    again, held = session.handle(request)  # a page that holds the scene is not sent it again
    assert again["input"]["fields"] == ["image"]
    assert {*arrays} - {*held} == {"input/whole"}
    assert arrays["input/image"].shape == (3, 24, 24)
    moved = arrays["truth/moved"][0]
    np.testing.assert_allclose(moved[0, :4], [9, 7.5, 17, 15.5], atol=1e-4)
    assert np.isnan(moved[1]).all()
    assert arrays["detail/box"].shape[0] == 1
    assert session.handle({"kind": "hover", "samples": [1], "selection": {}})[1][
        "thumbnail"
    ].shape == (1, 24, 24, 3)


def test_without_truth_the_consensus_is_the_reference(nets: dict[str, Any]) -> None:
    images, _ = ob.datasets.digits()
    scan = ob.scan(
        nets["first"], images[:30], group="dihedral:4", task="classification", progress=False
    )
    session = open_session(scan)
    ask_everything(session)
    header, arrays = ask(session, "state")
    assert header["task"]["labeled"] is False
    assert header["classes"] == [*range(10)]  # of the predictions
    assert "label" not in arrays
    header, arrays = ask(session, "aggregate", reference="truth")
    assert header["reference"] == "consensus"
    expected = scan.data["score_vs_consensus"].values.mean(1)
    np.testing.assert_allclose(arrays["values"], expected, rtol=1e-5)
    answer = decode(session.answer({"kind": "subset", "selection": {"filter": ["label:1"]}}))
    assert "label" in answer[0]["error"]


def test_an_unfinished_scan_shows_what_is_done(folder: Path, tmp_path: Path) -> None:
    import shutil

    from orbical.store.zarr_store import open_store

    shutil.copytree(folder / "digits.zarr", tmp_path / "half.zarr")
    open_store(tmp_path / "half.zarr").forget((1, 1))
    session = open_session(tmp_path / "half.zarr")
    assert ask(session, "state")[0]["complete"] is False
    ask_everything(session)
    whole = ob.load(folder / "digits.zarr").data
    done = np.r_[0:32, 64:120]
    for metric in ("score", "correct", "confidence"):
        _, arrays = ask(session, "aggregate", metric=metric)
        expected = whole[metric].values[1, done].mean(0)
        np.testing.assert_allclose(arrays["values"][1], expected, rtol=1e-5)
        np.testing.assert_allclose(arrays["values"][0], whole[metric].values[0].mean(0), rtol=1e-5)
    xy = ask(session, "embedding")[1]["xy"]
    assert np.isnan(xy[32:64]).all()
    assert np.isfinite(xy[done]).all()
    assert ask(session, "calibration")[1]["count"].sum(1).tolist() == [120, 88]
    _, arrays = ask(session, "aggregate", metric="ks")
    expected = ob.calibration.along_orbit(ob.load(tmp_path / "half.zarr"), "ks").values
    np.testing.assert_allclose(arrays["values"], expected, atol=1e-6)
    assert np.isnan(ask(session, "sample", sample=40, metric="correct")[1]["values"][1]).all()
    assert not {*range(32, 64)} & {*ask(session, "list", of="second")[1]["samples"].tolist()}


@pytest.mark.parametrize("group", ["flips", "scales:0.5:2:5", "translations:2:1", "rotations:6"])
def test_every_layout_of_the_plane(nets: dict[str, Any], group: str) -> None:
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        nets,
        (images[:12], labels[:12]),
        group=group,
        task="classification",
        keep="inputs",
        progress=False,
    )
    ask_everything(open_session(scan, nets))
    ask_everything(open_session(scan, nets), scope="orbit", reference="consensus")


def test_rotations_of_space() -> None:
    generator = torch.Generator().manual_seed(1)
    clouds = torch.randn(10, 16, 3, generator=generator)
    scan = ob.scan(
        lambda x: torch.stack([x[..., 0].amax(1), x[..., 1].amax(1)], 1),
        (clouds, torch.arange(10) % 2),
        group="slices3d:4:5",
        task=ob.tasks.Classification(input=ob.actions.Points()),
        keep="inputs",
        progress=False,
    )
    session = open_session(scan)
    ask_everything(session)
    header, arrays = ask(session, "state")
    assert header["group"]["kind"] == "slices"
    assert header["views"]["input"] == "points"
    assert arrays["space"].shape == (len(scan.group), 4, 4)
    assert arrays["index"].shape == scan.group.layout.index.shape
    _, arrays = ask(session, "place", sample=3, element=2)
    turn = scan.group.parts["space"][2, :3, :3]
    np.testing.assert_allclose(arrays["input/pos"], clouds[3].numpy() @ turn.T, atol=1e-5)
    hovered = session.handle({"kind": "hover", "samples": [3, 4], "selection": {}})[1]["thumbnail"]
    assert hovered.shape == (2, 56, 56, 1)
    assert (hovered > 0).any((1, 2, 3)).all()


def test_few_samples_say_why_there_is_no_map(nets: dict[str, Any]) -> None:
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        nets["first"],
        (images[:2], labels[:2]),
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    session = open_session(scan)
    header, _ = decode(session.answer({"kind": "embedding", "selection": {}}))
    assert "4 or more" in header["error"]
    for kind in ("aggregate", "calibration", "list", "sample", "place"):
        assert "error" not in decode(session.answer({"kind": kind, "selection": {}}))[0]


def test_a_model_that_answers_the_same_everywhere_lies_in_one_point() -> None:
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        lambda x: torch.zeros(len(x), 10),
        (images[:10], labels[:10]),
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    session = open_session(scan)
    for method in ("pca", "ica", "isomap", "tsne"):
        _, arrays = ask(session, "embedding", method=method)
        np.testing.assert_array_equal(arrays["xy"], 0)


def test_names_of_classes_are_shown(folder: Path) -> None:
    names = ["zero", *"abcdefghi"]
    header, _ = open_session(folder / "digits.zarr", classes=names).state()
    assert header["classes"] == names


def test_a_small_picture_of_a_cloud_shows_what_counts_and_what_is_near() -> None:
    right, near, far = [1.0, 0.0, -0.6], [0.0, -1.0, 0.9], [0.0, 1.0, -0.9]
    pos = torch.tensor([[right, near, far, [-9.0, -9.0, -9.0]]])
    cloud = cloud_for_page({"pos": pos, "mask": torch.tensor([[1, 1, 1, 0]])})
    assert cloud is not None
    picture = picture_on_black(cloud_picture(cloud, size=57))[..., 0]
    assert picture[:, 40:].any()
    assert not picture[:, :12].any()  # nothing is drawn of the point that does not count
    assert picture[40:].max() > picture[:16].max() > 0  # the near one below, the far one above
    assert cloud_for_page(torch.zeros(1, 3, 8, 8)) is None
    assert cloud_for_page({"values": torch.zeros(1, 4)}) is None


def test_of_large_volumes_slices_are_sent() -> None:
    volume = torch.rand(1, 1, 1, 2, 3, MOST_VOXELS // 6 + 1)
    arrays, spans = input_arrays(volume, "volume")
    assert arrays["volume"].shape == (1, 3 + 1 + 2, MOST_VOXELS // 6 + 1 + 1 + 2)
    assert spans["volume"] == [0.0, 1.0]


def test_kept_probabilities_show_the_class_of_every_pixel() -> None:
    images = torch.rand(4, 1, 40, 40, generator=torch.Generator().manual_seed(4))
    scan = ob.scan(lambda x: torch.cat([0.5 - x, x - 0.5], 1), images, group="rotations:4",
                   task="segmentation", keep="probabilities", progress=False)  # fmt: skip
    _, arrays = ask(open_session(scan), "place", sample=2, element=1)
    assert arrays["detail/class_map"].shape[-2:] == (32, 32)
    expected = scan.data["probabilities"].values[:, 2, 1].argmax(1)
    np.testing.assert_array_equal(arrays["detail/segments"], expected)


def test_volumes_are_shown_as_slices(tmp_path: Path) -> None:
    volumes = torch.rand(5, 1, 4, 5, 6, generator=torch.Generator().manual_seed(4))

    def bright(batch: torch.Tensor) -> torch.Tensor:
        scores = 8 * (batch - 0.5)
        return torch.cat([-scores, scores + batch[:, :, :1]], 1)

    scan = ob.scan(bright, (volumes, (volumes[:, 0] > 0.5).long()), group="reflections3d",
                   task="segmentation", keep="inputs", progress=False)  # fmt: skip
    session = open_session(scan, {"model": bright})
    ask_everything(session, sample=2, element=4)
    assert session.state()[0]["noun"] == "volumes"
    header, arrays = ask(session, "place", sample=2, element=4)  # mirrored along x, the columns
    assert (header["input"]["view"], header["detail"]["view"]) == ("volume", "maps")
    np.testing.assert_allclose(arrays["input/volume"], volumes[2].flip(-1))  # the page cuts it
    for name in ("detail/class_map", "detail/truth_map", "truth/moved", "consensus/moved"):
        assert arrays[name].shape[-2:] == (5 + 1 + 4, 6 + 1 + 4), name
    np.testing.assert_array_equal(arrays["detail/class_map"], scan.data["class_map"][:, 2, 4])
    _, hovered = decode(session.answer({"kind": "hover", "samples": [2], "selection": {}}))
    expected = (255 * volumes[2, 0, 2].numpy()).round()
    np.testing.assert_array_equal(hovered["thumbnail"][0, :, :, 0], expected)
    assert report(scan, tmp_path / "volumes.html").stat().st_size > 10_000


def test_metrics_have_their_own_names_and_a_sensible_order() -> None:
    """Scores come before confidence, measures of sets and what is neither good nor bad."""
    scenes = ob.datasets.scenes(2, seed=1)

    def nothing(images: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        empty = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0), "scores": torch.zeros(0)}
        return [empty for _ in images]

    scan = ob.scan(
        nothing,
        (scenes["images"], scenes["objects"]),
        group="translations:8:8",
        task=ob.tasks.Detection(classes=scenes["classes"]),
        progress=False,
    )
    titles = {one["name"]: one["title"] for one in Session(scan).state()[0]["metrics"]}
    assert (titles["iou"], titles["ap"], titles["correct"]) == ("IoU", "AP", "Accuracy")
    assert [*titles][:2] == ["score", "correct"]
    known = [name for name in titles if name in ("iou", "confidence", "ece", "count")]
    assert known == ["iou", "confidence", "ece", "count"]


def test_no_interval_of_a_mean_distance_reaches_below_zero() -> None:
    target = torch.tensor([[0.0, 0.0], [0.0, 0.0], [10.0, 0.0]])
    scan = ob.scan(
        lambda batch: torch.zeros(len(batch["pos"]), 2),
        ({"pos": torch.randn(3, 5, 2)}, target),
        group="rotations:4",
        task=ob.tasks.Regression({"pos": ob.actions.Points()}, representation="vector"),
        progress=False,
    )
    _, arrays = ask(Session(scan), "aggregate")
    assert arrays["values"] == pytest.approx(10 / 3)
    assert (arrays["low"] == 0).all()


@pytest.mark.parametrize(("pbc", "noun"), [(True, "crystals"), (False, "molecules")])
def test_atoms_in_a_cell_are_crystals(pbc: bool, noun: str) -> None:
    build = pytest.importorskip("ase.build", reason="ase is not installed")
    from ase.calculators.emt import EMT

    atoms = build.bulk("Cu", cubic=True) if pbc else build.molecule("H2O")
    scan = ob.scan(
        EMT(), [atoms], group="rotations3d:4", task="atoms", keep="inputs", progress=False
    )
    assert Session(scan).state()[0]["noun"] == noun
