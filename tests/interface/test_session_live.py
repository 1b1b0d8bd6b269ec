"""Models at work: what they answer at and between the scanned elements, and when they fail."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from talking import ask, decode

import orbical as ob
from orbical.actions import Action
from orbical.errors import InputError, ModelError
from orbical.groups import Elements, homogeneous
from orbical.interface import open_session
from orbical.interface.orbit_positions import OrbitLocator
from orbical.interface.session import Session
from orbical.predictors import PartialOutputs, Predictor


@pytest.fixture
def live(folder: Path, nets: dict[str, torch.nn.Module]) -> Session:
    return open_session(folder / "digits.zarr", nets)


def turned(image: torch.Tensor, degrees: float) -> torch.Tensor:
    angle = np.deg2rad(degrees)
    turn = np.array([[[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]])
    return ob.actions.Images().apply(Elements({"plane": homogeneous(turn)}, 1), image)[0]


def test_live_answers_at_scanned_elements_are_those_of_the_scan(
    live: Session, digits: ob.Scan
) -> None:
    for element in range(24):
        header, arrays = ask(live, "place", sample=33, element=element)
        assert header["live"] is True
        assert header["scanned"] is True
        assert header["name"] == digits.group.name(element)
        here = digits.data.isel(sample=33, element=element)
        for name in ("probabilities", "confidence", "score", "score_vs_consensus"):
            np.testing.assert_allclose(arrays[f"detail/{name}"], here[name], atol=1e-5)
        for name in ("predicted", "correct"):
            np.testing.assert_array_equal(arrays[f"detail/{name}"], here[name])
    assert {*header["milliseconds"]} == {"first", "second"}


def test_between_elements_the_models_are_asked(
    live: Session, digits: ob.Scan, nets: dict[str, torch.nn.Module]
) -> None:
    header, arrays = ask(live, "place", sample=7, position=[33.3])
    assert (header["element"], header["scanned"]) == (2, False)
    assert header["position"] == [pytest.approx(33.3)]
    image = torch.from_numpy(digits.data["input"].values[7:8])
    moved = turned(image, 33.3)
    np.testing.assert_allclose(arrays["input/image"], moved[0], atol=1e-6)
    for place, net in enumerate(nets.values()):
        expected = net(moved).softmax(-1)[0].detach()
        np.testing.assert_allclose(arrays["detail/probabilities"][place], expected, atol=1e-6)
        label = int(digits.data["label"][7])
        assert arrays["detail/score"][place] == pytest.approx(float(expected[label]), abs=1e-6)
    assert header["truth"] == label


def test_models_that_run_at_the_same_time_share_the_threads(
    folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    seen = []

    def counting(net: torch.nn.Module) -> Any:
        return lambda images: (seen.append(torch.get_num_threads()), net(images))[1]

    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        models = {name: counting(net) for name, net in nets.items()}
        ask(open_session(folder / "digits.zarr", models), "place", sample=7, position=[33.3])
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)
    assert {*seen} == {2}


def test_pinned_samples_are_at_one_position_side_by_side(live: Session) -> None:
    header, arrays = ask(live, "pinned", pins=[7, 60], position=[33.3])
    for place, number in enumerate((7, 60)):
        about, alone = ask(live, "place", sample=number, position=[33.3])
        for name in ("sample", "element", "position", "truth", "consensus", "live"):
            assert header["pins"][place][name] == about[name]
        for name in ("input/image", "detail/predicted", "detail/confidence", "detail/score"):
            np.testing.assert_allclose(arrays[f"{place}/{name}"], alone[name], atol=1e-6)
    assert not any("probabilities" in name for name in arrays)  # cards show one number
    assert ask(live, "pinned")[0]["pins"] == []
    with pytest.raises(InputError, match="selection sample: expected 0 to 119, got 120"):
        ask(live, "pinned", pins=[0, 120])


def test_while_someone_drags_pinned_samples_take_the_stored_results(
    live: Session, digits: ob.Scan
) -> None:
    header, arrays = ask(live, "pinned", {"live": False}, pins=[7], position=[33.3])
    assert (header["pins"][0]["live"], header["pins"][0]["scanned"]) == (False, True)
    stored = digits.data["score"].isel(sample=7, element=2)
    np.testing.assert_array_equal(arrays["0/detail/score"], stored)


def test_a_circle_has_no_ends(live: Session) -> None:
    for degrees, same in ((-15.0, 345.0), (375.0, 15.0), (720.0, 0.0)):
        header, _ = ask(live, "place", position=[degrees])
        assert header["position"] == [pytest.approx(same)]
        assert header["scanned"] is True


def test_without_models_the_place_snaps_to_the_scan(folder: Path, digits: ob.Scan) -> None:
    session = open_session(folder / "digits.zarr")
    header, arrays = ask(session, "place", sample=60, position=[33.3])
    assert (header["element"], header["scanned"], header["live"]) == (2, True, False)
    assert header["position"] == [pytest.approx(30)]
    here = digits.data.isel(sample=60, element=2)
    np.testing.assert_array_equal(arrays["detail/probabilities"], here["probabilities"])
    np.testing.assert_array_equal(arrays["consensus/answer"], here["consensus"])
    assert header["consensus"] == here["consensus"].values.argmax(-1).tolist()
    image = torch.from_numpy(digits.data["input"].values[60:61])
    expected = ob.actions.Images().apply(digits.group, image)[2, 0]
    np.testing.assert_allclose(arrays["input/image"], expected, atol=1e-6)


def test_finer_steps_pass_through_the_scanned_ones(live: Session, digits: ob.Scan) -> None:
    header, arrays = ask(live, "sample", sample=11, dense=True)
    assert header["group"]["spec"] == "rotations:96"
    assert arrays["values"].shape == arrays["correct"].shape == (2, 96)
    assert arrays["index"].shape == (96,)
    scanned = digits.data["score"].values[:, 11]
    np.testing.assert_allclose(arrays["values"][:, ::4], scanned, atol=1e-5)
    for metric in ("score", "correct"):
        _, fine = ask(live, "sample", sample=11, dense=True, reference="consensus", metric=metric)
        _, coarse = ask(live, "sample", sample=11, reference="consensus", metric=metric)
        np.testing.assert_allclose(fine["values"][:, ::4], coarse["values"], atol=1e-5)
    assert ask(live, "sample", sample=11, dense=True, metric="action_defect")[1][
        "values"
    ].shape == (2, 24)  # no model answers that


def test_a_model_that_raises_is_shown_and_the_other_answers(
    folder: Path, nets: dict[str, torch.nn.Module], digits: ob.Scan
) -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("out of patience")

    session = open_session(folder / "digits.zarr", {"first": Broken(), "second": nets["second"]})
    header, arrays = ask(session, "place", sample=3, element=4)
    assert "out of patience" in header["errors"]["first"]
    assert [*header["milliseconds"]] == ["second"]
    here = digits.data.isel(sample=3, element=4)
    np.testing.assert_allclose(arrays["detail/probabilities"], here["probabilities"], atol=1e-5)
    header, _ = ask(session, "place", sample=3, position=[31.0])
    assert header["scanned"] is False  # the second model answers there


def test_an_error_for_one_input_is_shown_for_that_frame_only(
    folder: Path, nets: dict[str, torch.nn.Module], digits: ob.Scan
) -> None:
    class FailsOnSome(Predictor):
        """Fails on dark inputs, as a calculator fails on some molecules, and answers the rest."""

        source = "test"

        def __call__(self, batch: torch.Tensor) -> Any:
            outputs = nets["first"](batch).detach()
            dark = (batch.sum((1, 2, 3)) < threshold).nonzero().flatten().tolist()
            return (
                PartialOutputs(outputs, dict.fromkeys(dark, "no convergence")) if dark else outputs
            )

    light = digits.data["input"].values.sum((1, 2, 3))
    failing, (before, after) = int(light.argmin()), np.argsort(light)[-2:]
    threshold = float(light.min() + np.sort(light)[1]) / 2  # between the two darkest samples
    session = open_session(folder / "digits.zarr", {"first": FailsOnSome()})
    identity = digits.group.identity
    for sample, error in ((before, None), (failing, "no convergence"), (after, None)):
        header, arrays = ask(session, "place", sample=int(sample), element=identity)
        if error:
            assert header["errors"] == {"first": "model 'first': no convergence"}
            assert (header["live"], header["milliseconds"]) == (False, {})
        else:
            assert (header["live"], header["errors"]) == (True, {})
        stored = digits.data["probabilities"].values[0, sample, identity]
        np.testing.assert_allclose(arrays["detail/probabilities"][0], stored, atol=1e-5)


def test_a_model_that_raises_for_one_input_answers_the_next(
    folder: Path, nets: dict[str, torch.nn.Module], digits: ob.Scan
) -> None:
    forbidden = torch.from_numpy(digits.data["input"].values[5])

    def picky(batch: torch.Tensor) -> torch.Tensor:
        if any(torch.allclose(one, forbidden, atol=1e-6) for one in batch):
            raise ValueError("not this one")
        return nets["first"](batch)

    session = open_session(folder / "digits.zarr", {"first": picky})
    seen = []
    for sample in (4, 5, 6, 5, 4):
        header, _ = ask(session, "place", sample=sample, element=digits.group.identity)
        seen.append("not this one" in header["errors"].get("first", ""))
        assert header["live"] is not seen[-1]
    assert seen == [False, True, False, True, False]


def test_one_sweep_of_a_model_serves_every_frame(
    folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    class Counting(Predictor):
        """Counts how often it is prepared for a task."""

        source = "test"
        prepared = 0

        def request(self, quantities: tuple[str, ...]) -> None:
            self.prepared += 1

        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            return nets["first"](batch).detach()

    model = Counting()
    session = open_session(folder / "digits.zarr", {"first": model})
    for angle in range(5):
        assert ask(session, "place", position=[angle + 0.5])[0]["live"]
    assert model.prepared == 1


def test_a_model_that_refuses_the_task_leaves_the_others_alone(
    folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    class Refusing(Predictor):
        """Offers nothing that the task needs."""

        source = "test"

        def request(self, quantities: tuple[str, ...]) -> None:
            raise ModelError("energies only")

        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            raise AssertionError

    session = open_session(folder / "digits.zarr", {"first": Refusing(), "second": nets["second"]})
    header, _ = ask(session, "place", position=[31.0])
    assert "energies only" in header["errors"]["first"]
    assert [*header["milliseconds"]] == ["second"]


def test_inputs_are_drawn_as_their_own_action_says(nets: dict[str, torch.nn.Module]) -> None:
    class Scans(ob.actions.Images):
        """Images of a kind of their own."""

    images, labels = ob.datasets.digits()
    for action, data in (
        (Scans(), images[:4]),
        ({"scan": ob.actions.Images(), "site": ob.actions.Trivial()}, None),
    ):
        model = nets["first"] if data is not None else lambda given: nets["first"](given["scan"])
        inputs = {"scan": images[:4], "site": torch.zeros(4, 2)} if data is None else data
        task = ob.tasks.Classification(input=action)
        scan = ob.scan(model, (inputs, labels[:4]), group="cyclic:4", task=task, progress=False)
        header, _ = ask(open_session(scan, task=task), "state")
        assert header["views"]["input"] == "image"
        assert header["noun"] == "images"


def test_a_model_that_answers_nonsense_is_shown(folder: Path) -> None:
    for wrong in (
        lambda x: torch.full((len(x), 10), float("nan")),
        lambda x: torch.zeros(len(x) + 1, 10),
        lambda x: "seven",
        lambda x: exec("raise SystemExit(3)"),
    ):
        session = open_session(folder / "digits.zarr", {"first": wrong})
        header, _ = ask(session, "place", models=["first"])
        assert header["errors"]["first"]
        assert header["live"] is False


def test_a_model_that_does_not_answer_holds_nothing_up(folder: Path) -> None:
    awake = threading.Event()
    awake.set()

    def slow(x: torch.Tensor) -> torch.Tensor:
        awake.wait(60)
        return torch.zeros(len(x), 10)

    session = open_session(folder / "digits.zarr", {"first": slow})
    live = session.scan_view().live
    live.patience_s = 0.2
    awake.clear()
    assert "no answer" in ask(session, "place")[0]["errors"]["first"]
    live.patience_s = 0.1  # for less than it has been busy
    assert "still busy" in ask(session, "place")[0]["errors"]["first"]  # nobody waits again
    live.patience_s = 60
    awake.set()
    header = ask(session, "place")[0]
    assert header["errors"] == {}
    assert header["live"] is True


def test_models_keep_their_training_mode(folder: Path, nets: dict[str, torch.nn.Module]) -> None:
    net = nets["first"].train()
    try:
        ask(open_session(folder / "digits.zarr", {"first": net}), "place")
        assert net.training
    finally:
        net.eval()


def test_another_model_under_the_name_is_said_to_be(
    folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    def same(x: torch.Tensor) -> torch.Tensor:
        return nets["first"](x)

    assert ask(open_session(folder / "digits.zarr", nets), "state")[0]["warnings"] == []
    for other in (nets["second"], lambda x: torch.zeros(len(x), 10)):
        header, _ = ask(open_session(folder / "digits.zarr", {"first": other}), "state")
        assert header["warnings"] == ["model 'first' is not the one that was scanned"]
    header, _ = ask(open_session(folder / "digits.zarr", {"first": same}), "state")
    assert header["warnings"] == []  # it has no weights to compare, and answers alike
    assert [model["live"] for model in header["models"]] == [True, False]


def test_models_and_data_of_another_scan_are_refused(
    folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    with pytest.raises(InputError, match=r"models.*third"):
        open_session(folder / "digits.zarr", {"third": nets["first"]})
    with pytest.raises(InputError, match=r"models: expected a dictionary"):
        open_session(folder / "digits.zarr", nets["first"])
    with pytest.raises(InputError, match=r"data: expected the 120 samples of the scan, got 5"):
        open_session(folder / "digits.zarr", data=np.zeros((5, 1, 8, 8)))


def test_data_are_used_for_the_scans_that_they_fit(
    bare: ob.Scan, nets: dict[str, torch.nn.Module]
) -> None:
    images, labels = ob.datasets.digits()
    models, about = {"other": nets["second"]}, {"task": "classification", "progress": False}
    other = ob.scan(models, (images[20:40], labels[20:40]), group="rotations:4", **about)
    few = ob.scan(models, (images[:5], labels[:5]), group="rotations:4", **about)
    scans = {"few": few, "first": bare, "other": other}
    with pytest.warns(UserWarning, match="data: used for first; they do not fit few, other"):
        session = open_session(scans, data=(images[:20], labels[:20]))
    assert [session.state(name)[0]["inputs"] for name in scans] == [False, True, False]
    wrong = r"data: fit none of the scans; few: expected the 5 .*; first: expected .*; other: "
    with pytest.raises(InputError, match=wrong):
        open_session(scans, data=(images[50:70], labels[50:70]))


@pytest.fixture(scope="module")
def bare(nets: dict[str, torch.nn.Module]) -> ob.Scan:
    """A scan that kept neither inputs nor probabilities, of shifts."""
    images, labels = ob.datasets.digits()
    return ob.scan(
        nets["first"],
        (images[:20], labels[:20]),
        group="translations:2:1",
        task="classification",
        progress=False,
    )


def test_data_may_be_given_where_the_scan_kept_none(
    bare: ob.Scan, nets: dict[str, torch.nn.Module]
) -> None:
    images, labels = ob.datasets.digits()
    session = open_session(bare, nets["first"], (images[:20], labels[:20]))
    header, arrays = ask(session, "place", sample=4, position=[0.5, -1.25])
    shift = homogeneous(np.eye(2)[None], np.array([[0.5, -1.25]]))
    moved = ob.actions.Images().apply(Elements({"plane": shift}, 1), images[4:5])[0]
    np.testing.assert_allclose(arrays["input/image"], moved[0], atol=1e-6)
    expected = nets["first"](moved).softmax(-1).detach()
    np.testing.assert_allclose(arrays["detail/probabilities"], expected, atol=1e-6)
    header, _ = ask(session, "place", position=[9.0, -9.0])  # beyond the window: its corner
    assert header["position"] == [2.0, -2.0]
    assert header["scanned"] is True
    header, arrays = ask(session, "sample", dense=True)
    assert header["group"]["spec"] == "translations:2:0.5"
    assert arrays["values"].shape == (1, 81)


def test_without_inputs_the_stored_answers_remain(
    bare: ob.Scan, nets: dict[str, torch.nn.Module]
) -> None:
    session = open_session(bare, nets["first"])
    header, _ = ask(session, "state")
    assert "no inputs" in header["warnings"][0]
    assert (header["live"], header["inputs"]) == (False, False)
    header, arrays = ask(session, "place", sample=4, position=[0.4, 0.0])
    assert header["input"]["fields"] == []
    assert header["scanned"] is True
    np.testing.assert_array_equal(
        arrays["detail/confidence"], bare.data["confidence"].values[:, 4, header["element"]]
    )
    _, arrays = session.handle({"kind": "hover", "samples": [0], "selection": {}})
    assert "thumbnail" not in arrays


def test_a_reader_of_ones_own_must_be_given(
    nets: dict[str, torch.nn.Module],
) -> None:
    images, labels = ob.datasets.digits()
    task = ob.tasks.Classification(read=lambda raw: raw["logits"])
    model = lambda x: {"logits": nets["first"](x)}  # noqa: E731
    scan = ob.scan(
        model,
        (images[:8], labels[:8]),
        group="cyclic:4",
        task=task,
        keep="inputs",
        progress=False,
    )
    header, _ = ask(open_session(scan, model), "state")
    assert "models cannot run" in header["warnings"][0]
    assert header["live"] is False
    assert ask(open_session(scan, model), "place", element=1)[1]["input/image"].shape == (1, 8, 8)
    for given in ({"task": task}, {"read": lambda raw: raw["logits"]}):
        header, arrays = ask(open_session(scan, model, **given), "place", element=1)
        assert header["live"] is True
        expected = scan.data["confidence"].values[:, 0, 1]
        np.testing.assert_allclose(arrays["detail/confidence"], expected, atol=1e-5)


def test_a_task_may_draw_its_own_views(nets: dict[str, torch.nn.Module]) -> None:
    class Drawn(ob.tasks.Classification):
        input_view = detail_view = "png"

        def draw_input(self, moved: torch.Tensor) -> bytes:
            return b"PNG" + bytes(moved.shape)

        def draw_detail(self, details: dict[str, np.ndarray], models: list[str]) -> bytes:
            return f"PNG {models} {details['confidence'].shape}".encode()

    images, labels = ob.datasets.digits()
    scan = ob.scan(
        nets,
        (images[:8], labels[:8]),
        group="cyclic:4",
        task=Drawn(),
        keep="inputs",
        progress=False,
    )
    session = open_session(scan, task=Drawn())
    header, arrays = decode(session.answer({"kind": "place", "selection": {"element": 1}}))
    assert header["input"]["view"] == header["detail"]["view"] == "png"
    assert arrays["input/png"] == b"PNG" + bytes([1, 1, 1, 8, 8])
    assert arrays["detail/png"] == b"PNG ['first', 'second'] (2,)"


def test_a_large_picture_travels_in_bytes() -> None:
    from orbical.interface.session.input_pictures import input_arrays

    picture = torch.linspace(-2, 3, 3 * 100 * 100).reshape(1, 1, 3, 100, 100)
    arrays, spans = input_arrays(picture)
    assert arrays["image"].dtype == np.uint8
    low, high = spans["image"]
    back = arrays["image"] / 255 * (high - low) + low
    np.testing.assert_allclose(back, picture[0, 0], atol=0.011)


@pytest.mark.parametrize(
    "action",
    [
        ob.actions.Images("bicubic", "reflect"),
        ob.actions.Window(16),
        ob.actions.ImagePair(),
        ob.actions.VectorField(),
        ob.actions.Points(),
        ob.actions.Rows(),
        ob.actions.Vectors(per_point=True),
        ob.actions.Boxes(10, 20, view=8),
        ob.actions.Trivial(),
        ob.actions.as_action({"pos": ob.actions.Points(), "numbers": ob.actions.Trivial()}),
        ob.actions.as_action((ob.actions.Images(), ob.actions.Trivial())),
    ],
    ids=lambda action: type(action).__name__,
)
def test_actions_are_made_again_from_their_record(action: Any) -> None:
    again = Action.from_record(action.describe())
    assert type(again) is type(action)
    assert again.describe() == action.describe()


@pytest.mark.parametrize(
    "task",
    [
        ob.tasks.Classification(outputs="probabilities"),
        ob.tasks.Regression(),
        ob.tasks.Regression(representation="vector"),
        ob.tasks.Regression(
            input={"pos": ob.actions.Points()}, representation="vector", per_point=True
        ),
        ob.tasks.Flow(),
    ],
    ids=lambda task: repr(task),
)
def test_tasks_are_made_again_from_their_record(task: Any) -> None:
    assert ob.tasks.Task.from_record(task.describe()).describe() == task.describe()


@pytest.mark.parametrize("name", ["os:system", "Action", "check_group", "Nothing", None])
def test_a_record_never_makes_anything_else(name: Any) -> None:
    with pytest.raises(InputError, match="action"):
        Action.from_record({"action": name})


@pytest.mark.parametrize("spec", ["dihedral:4", "cyclic:4", "rotations:8*time_reversal", "flips"])
def test_groups_without_anything_between_snap(spec: str) -> None:
    group = ob.groups.parse(spec)
    locator = OrbitLocator(group)
    assert locator.continuous is False
    assert locator.at(1, (20.0,)).element == 1
    assert locator.finer() is None


def test_scales_are_a_line() -> None:
    locator = OrbitLocator(ob.groups.scales(0.5, 2, 9))
    place = locator.at(0, (1.1,))
    assert place.scanned is False
    np.testing.assert_allclose(place.elements.parts["plane"][0], np.diag([1.1, 1.1, 1]))
    assert locator.at(0, (7.0,)).position == (2.0,)
