"""The worst element of a continuous group, against brute force on finer grids."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError

SAMPLES = 40


@pytest.fixture(scope="module")
def data():
    images, labels = ob.datasets.digits()
    return images[1000 : 1000 + SAMPLES], labels[1000 : 1000 + SAMPLES]


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    images, labels = ob.datasets.digits()
    layers = torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
    net = torch.nn.Sequential(torch.nn.Flatten(), *layers)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images[:1000]), labels[:1000]).backward()
        optimizer.step()
    return net


def on_numpy(net):
    return ob.predictors.numpy_function(lambda x: net(torch.from_numpy(x)).detach().numpy())


def at(found, place):
    return found["score"].sel(place=place).values


def lowest(net, data, group):
    scan = ob.scan(net, data, group=group, task="classification", progress=False)
    return scan.data["score"].min("element").values


@pytest.mark.parametrize(
    ("group", "finer"),
    [
        ("rotations:12", "rotations:240"),
        ("scales:0.5:2:5", "scales:0.5:2:81"),
        ("translations:1:1", "translations:1:0.05"),
        ("euclidean:4:1:1", "euclidean:16:1:0.25"),
    ],
)
@pytest.mark.parametrize("method", ["gradient", "golden section"])
def test_the_refined_worst_is_as_bad_as_that_of_a_much_finer_grid(net, data, group, finer, method):
    some = data[0][:20], data[1][:20]
    model = net if method == "gradient" else on_numpy(net)
    found = ob.worst_case(model, some, group=group, task="classification")
    assert found["method"].item() == method
    brute = lowest(net, some, finer)
    assert (at(found, "refined") <= brute + 2e-3).all()
    np.testing.assert_allclose(at(found, "grid"), lowest(net, some, group), atol=1e-6)
    np.testing.assert_allclose(
        found["missed"], at(found, "grid") - at(found, "refined"), atol=1e-12
    )
    assert (found["missed"] >= 0).all()


def test_the_coordinates_are_those_of_the_worst_element(net, data):
    found = ob.worst_case(net, data, group="rotations:12", task="classification")
    assert found["missed"].max() > 0.001
    assert ((found["angle"] >= 0) & (found["angle"] < 360)).all()
    nearest = (found["angle"] / 30).round().values % 12
    np.testing.assert_array_equal(found["nearest"], nearest)
    for sample in range(5):
        angle = float(found["angle"][0, sample])
        both = ob.groups.plane_turns(np.array([0.0, angle]))
        group = ob.groups.from_matrices(plane=both)
        one = data[0][sample : sample + 1], data[1][sample : sample + 1]
        scan = ob.scan(net, one, group=group, task="classification", progress=False)
        np.testing.assert_allclose(
            scan.data["score"].values[0, 0, 1], at(found, "refined")[0, sample], atol=1e-4
        )


def test_an_invariant_model_loses_nothing(data):
    points = torch.randn(8, 5, 3, generator=torch.Generator().manual_seed(0))

    def distances(pos):
        size = pos.norm(dim=-1)
        return torch.stack([size.mean(1), size.amax(1)], 1)

    task = ob.tasks.Classification(input=ob.actions.Points())
    labels = torch.zeros(8, dtype=torch.long)
    found = ob.worst_case(distances, (points, labels), group="rotations3d:24", task=task)
    assert found["method"].item() == "gradient"
    assert set(found.data_vars) >= {"rx", "ry", "rz"}
    np.testing.assert_allclose(found["missed"], 0, atol=1e-5)


def test_rotations_of_space_are_refined_in_the_tangent_space():
    # The score falls with the angle between z and the moved axis: the worst is straight down.
    axes = torch.randn(6, 1, 3, generator=torch.Generator().manual_seed(1))
    axes = axes / axes.norm(dim=-1, keepdim=True)

    def upward(pos):
        return torch.stack([3 * pos[:, 0, 2], torch.zeros(len(pos))], 1)

    task = ob.tasks.Classification(input=ob.actions.Points())
    labels = torch.zeros(6, dtype=torch.long)
    for model in (upward, on_numpy(upward)):
        found = ob.worst_case(model, (axes, labels), group="rotations3d:24", task=task)
        deepest = 1 / (1 + np.exp(3))
        np.testing.assert_allclose(at(found, "refined"), deepest, atol=1e-4)
        assert found["missed"].max() > 0.005


def test_an_error_is_made_as_large_as_possible():
    # The true vector turns with the points; the model always answers (1, 0, 0).
    points = torch.tensor([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]])

    def fixed(pos):
        return torch.tensor([[1.0, 0.0, 0.0]]).expand(len(pos), 3) + 0 * pos[:, 0]

    task = ob.tasks.Regression(input=ob.actions.Points(), representation="vector")
    data = points, points[:, 0]
    # The truth turns differentiably even where the model, on NumPy, does not.
    for model, method in ((fixed, "gradient"), (on_numpy(fixed), "golden section")):
        found = ob.worst_case(model, data, group="rotations3d:24", task=task)
        assert found["method"].item() == method
        assert found.attrs["higher_is_better"] is False
        np.testing.assert_allclose(at(found, "refined"), 2.0, atol=2e-3)
        assert (at(found, "grid") <= at(found, "refined")).all()
    assert found["missed"].max() > 0.01


def test_two_runs_are_equal(net, data):
    first, second = (
        ob.worst_case(net, data, group="rotations:12", task="classification") for _ in range(2)
    )
    assert first.identical(second)


def test_a_finite_group_gives_the_worst_of_its_elements_and_says_so(net, data):
    found = ob.worst_case(net, data, group="cyclic:8", task="classification")
    assert found["method"].item() == "grid"
    assert "no continuous coordinates" in found.attrs["searched"]
    np.testing.assert_allclose(found["missed"], 0)
    np.testing.assert_allclose(at(found, "refined"), lowest(net, data, "cyclic:8"), atol=1e-6)
    angles = ob.groups.parse("cyclic:8").coords["angle"]
    np.testing.assert_array_equal(found["angle"].values, angles[found["element"].values])


def test_without_labels_the_agreement_with_the_consensus_is_searched(net, data):
    found = ob.worst_case(net, data[0], group="rotations:12", task="classification")
    assert found.attrs["reference"] == "consensus"
    assert "correct" not in found
    scan = ob.scan(net, data[0], group="rotations:12", task="classification", progress=False)
    np.testing.assert_allclose(
        at(found, "grid"), scan.data["score_vs_consensus"].min("element"), atol=1e-6
    )
    assert found["missed"].max() > 0


def test_a_scan_is_used_again(net, data):
    options = {"group": "rotations:12", "task": "classification"}
    scan = ob.scan({"net": net}, data, keep="inputs", progress=False, **options)
    again, fresh = ob.worst_case(net, scan), ob.worst_case({"net": net}, data, **options)
    np.testing.assert_allclose(again["score"], fresh["score"], atol=1e-5)
    np.testing.assert_array_equal(again["element"], fresh["element"])
    np.testing.assert_array_equal(again["label"], fresh["label"])
    other = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(ModelError, match=r"model 'net': expected the outputs of the scan"):
        ob.worst_case(other, scan)
    with pytest.raises(InputError, match=r"models: expected names of the scan.*: model}"):
        ob.worst_case({"other": net}, scan)
    with pytest.raises(InputError, match="group: expected none, or that of the scan"):
        ob.worst_case(net, scan, group="rotations:8")
    bare = ob.scan(net, data, progress=False, **options)
    with pytest.raises(InputError, match="scan with keep='inputs'"):
        ob.worst_case(net, bare)


def test_another_model_is_refused_that_is_alike_only_where_the_scanned_one_is_worst():
    def constant(pos):
        return torch.tensor([[2.0, 0.0]]).expand(len(pos), 2)

    def upright(pos):
        return 2 * pos[:, 0] * torch.tensor([1.0, 0.0])

    data = torch.tensor([[[1.0, 0.0]]]), torch.tensor([0])
    task = ob.tasks.Classification(input=ob.actions.Points())
    scan = ob.scan({"a": constant}, data, group="rotations:4", task=task, keep="inputs")
    with pytest.raises(ModelError, match="expected the outputs of the scan for its first samples"):
        ob.worst_case({"a": upright}, scan)


def test_the_scores_of_an_exact_model_are_rounding_and_are_not_compared():
    spring = torch.tensor(3.0, dtype=torch.float64)

    def pull(pos):
        return spring * pos[:, 0]

    points = torch.randn(6, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(input=ob.actions.Points(), representation="vector")
    scan = ob.scan(
        {"a": pull}, points, group="rotations:12", task=task, keep=["inputs", "consensus"]
    )
    rounded = scan.data["score_vs_consensus"]
    assert 0 < rounded.max() < 1e-12
    rounded[:] = 30 * rounded  # as other batches round
    found = ob.worst_case({"a": pull}, scan)
    assert float(found["score"].max()) < 1e-5 * float(points.abs().max())
    with pytest.raises(ModelError, match="expected the outputs of the scan"):
        ob.worst_case({"a": lambda pos: 1.01 * pull(pos)}, scan)


def test_a_model_whose_outputs_do_not_repeat_is_refused():
    points = torch.ones(3, 1, 2)
    task = ob.tasks.Regression(input=ob.actions.Points(), representation="vector")
    with (
        pytest.warns(UserWarning, match="different outputs for the same batch"),
        pytest.raises(ModelError, match="expected outputs that repeat"),
    ):
        ob.worst_case(
            lambda pos: pos[:, 0] + torch.rand(len(pos), 2), points, group="rotations:4", task=task
        )


def test_means_have_intervals_and_correctness_falls(net, data):
    found = ob.worst_case({"a": net, "b": on_numpy(net)}, data, group="rotations:12",
                          task="classification")  # fmt: skip
    assert found["mean"].dims == ("model", "place")
    np.testing.assert_allclose(found["mean"], found["score"].mean("sample"))
    assert (found["mean_low"] < found["mean"]).all()
    assert (found["mean_high"] <= 1).all()
    assert (found["mean_missed"] < found["mean_missed_high"]).all()
    share = found["correct"].mean("sample")
    assert (share.sel(place="identity") > 0.8).all()
    assert (share.sel(place="refined") <= share.sel(place="grid")).all()
    frame = found[["score", "angle", "missed"]].to_dataframe()
    assert len(frame) == 2 * SAMPLES * 3


def test_a_factor_that_is_finite_is_held(net, data):
    found = ob.worst_case(net, data, group="rotations:8*flips", task="classification")
    assert set(found["flip"].values.ravel()) <= {"none", "horizontal", "vertical", "both"}
    assert found["missed"].max() > 0


def test_a_score_that_counts_pixels_is_searched_by_golden_section(data):
    images, _ = data
    truth = (images[:4, 0] > 0.5).long()

    def left_half(x):
        bright = (x[:, 0] - 0.5) * 20 * torch.linspace(1, -0.5, 8)
        return torch.stack([-bright, bright], 1)

    found = ob.worst_case(left_half, (images[:4], truth), group="rotations:8", task="segmentation")
    assert found["method"].item() == "golden section"
    assert (found["missed"] >= 0).all()


def test_detections_are_searched_by_golden_section():
    # A detector that always sees a box at the same place, where the object is not: the worst shift
    # carries the object farthest from it.
    images = torch.rand(2, 3, 144, 144, generator=torch.Generator().manual_seed(0))
    objects = torch.tensor([[[40.0, 40, 90, 90, 1]], [[50.0, 46, 88, 102, 1]]])

    def fixed(views):
        seen = {
            "boxes": torch.tensor([[32.0, 32, 82, 82]]),
            "labels": torch.tensor([1]),
            "scores": torch.tensor([0.9]),
        }
        return [seen for _ in views]

    found = ob.worst_case(fixed, (images, objects), group="translations:8:8", task="detection")
    assert found["method"].item() == "golden section"
    assert "correct" not in found
    assert (found["missed"] >= 0).all()


def test_directions_are_searched_over_the_sphere():
    # The model sees where z is carried; the worst direction is between those of the sample.
    points = torch.tensor([[[0.0, 0.0, 1.0]]])

    def upward(pos):
        return torch.stack([3 * pos[:, 0, 2], torch.sin(2 * pos[:, 0, 0])], 1)

    task = ob.tasks.Classification(input=ob.actions.Points())
    options = {"group": "sphere:4", "task": task}
    found = ob.worst_case(upward, (points, torch.zeros(1, dtype=torch.long)), **options)
    fine = ob.scan(upward, (points, torch.zeros(1, dtype=torch.long)), progress=False,
                   **options | {"group": "sphere:60"})  # fmt: skip
    assert at(found, "refined").item() < float(fine.data["score"].min()) + 1e-3
    assert 0 <= found["angle"].item() <= 180
    assert found["missed"].item() > 0.01


def test_molecules_are_turned_to_where_forces_are_worst():
    # The energy knows where x is: its error is largest where the axis of the molecule lies along x.
    pos = torch.tensor([[[0.0, 0.2, 0.6], [0.0, -0.2, -0.6]]])
    data = {"pos": pos, "numbers": torch.tensor([[7, 7]])}
    truth = {"energy": torch.zeros(1)}

    def along_x(batch):
        return {"energy": (batch["pos"][:, 0, 0] - batch["pos"][:, 1, 0]) ** 2}

    task = ob.tasks.Atoms("energy")
    scan = ob.scan(
        {"net": along_x}, (data, truth), group="rotations3d:12", task=task, keep="inputs",
        progress=False,
    )  # fmt: skip
    for given in ((data, truth), scan):
        options = {} if given is scan else {"group": "rotations3d:12", "task": task}
        found = ob.worst_case({"net": along_x}, given, **options)
        assert at(found, "refined").item() == pytest.approx(4 * float(pos[0, 0].square().sum()))
        assert found["missed"].item() > 0.005


def test_progress_is_shown_and_ctrl_c_says_what_is_lost(net, data, capsys):
    ob.worst_case(net, data, group="rotations:8", task="classification", progress=False)
    assert capsys.readouterr().err == ""
    ob.worst_case(net, data, group="rotations:8", task="classification")
    assert "worst case" in capsys.readouterr().err

    def stopped(images):
        if len(images) < 16:  # the last chunk of 40 samples
            raise KeyboardInterrupt
        return net(images)

    with pytest.raises(KeyboardInterrupt, match="the result was in memory and is lost"):
        ob.worst_case(stopped, data, group="rotations:2", task="classification", progress=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "classification"}, "group: expected one, because data is not a scan"),
        ({"group": "rotations:8"}, "task: expected one, because data is not a scan"),
        ({"group": "rotations:8", "task": "classification", "starts": 0}, "starts: expected"),
        ({"group": "rotations:8", "task": "classification", "rounds": 1.5}, "rounds: expected"),
        ({"group": "rotations3d:8", "task": "classification"}, "moves nothing of this data"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(net, data, arguments, message):
    with pytest.raises(InputError, match=message):
        ob.worst_case(net, data, **arguments)


def test_a_call_without_models_is_answered_with_those_that_work():
    words = r"'data'; call worst_case\(models, scan\), or \(models, data, group="
    with pytest.raises(InputError, match=words):
        ob.worst_case("scan")


def waves(x, dip=0.0):
    """Probabilities of degree 2 along the circle of a vector, between .1 and .9, less a dip."""
    angle = torch.atan2(x[:, 1], x[:, 0])
    apart = torch.rad2deg(torch.atan2((angle - 1.5).sin(), (angle - 1.5).cos()))
    p = 0.5 + 0.4 * (2 * angle).cos() - dip * torch.exp(-((apart / 3) ** 2))
    return torch.stack([p, 1 - p], 1)


VECTORS = ob.tasks.Classification(ob.actions.Vectors(), outputs="probabilities")


def circles(model, group, **options):
    angle = torch.linspace(0.1, 6, 25)
    x = torch.stack([angle.cos(), angle.sin()], 1)
    labels = torch.zeros(25, dtype=torch.long)
    return ob.worst_case(model, (x, labels), group=group, task=VECTORS, progress=False, **options)


@pytest.mark.parametrize("elements", [8, 12, 24])
def test_no_angle_is_beyond_the_bound_of_the_degree(elements):
    found = circles(waves, f"rotations:{elements}")
    assert (found["degree"] == 2).all()
    assert found["refuted"].item() == 0
    assert (found["bound"] <= 0.1 + 1e-6).all()
    factor = np.cos(2 * np.pi / elements)
    assert float(found["bound"].min()) >= max(0.0, 0.5 - 0.4 / factor) - 1e-6
    assert (found["bound"] <= at(found, "refined") + 1e-6).all()


def test_a_lipschitz_constant_bounds_what_lies_between():
    steepest = 0.8 * np.pi / 180
    found = circles(waves, "rotations:12", lipschitz=steepest)
    assert (found["bound"] <= 0.1 + 1e-6).all()
    assert (found["bound"] >= 0.1 - 15 * steepest).all()
    assert (found["degree"] == -1).all()
    assert (circles(waves, "rotations:12", lipschitz=0.0)["refuted"] > 0.5).all()
    with pytest.raises(InputError, match="lipschitz: expected a number >= 0"):
        circles(waves, "rotations:12", lipschitz=-1.0)


def test_a_search_that_goes_beyond_refutes_the_bound():
    """A dip narrower than the steps, beside the worst sampled angle: its spectrum is not seen."""
    found = circles(lambda x: waves(x, dip=0.09), "rotations:24")
    beyond = at(found, "refined") < 0.09
    assert beyond.any()
    refuted = np.isnan(found["bound"].values)
    assert found["refuted"].item() == pytest.approx(refuted.mean())
    assert refuted.any()
    assert (found["degree"].values[refuted] == -1).all()
    kept = ~refuted
    assert (found["bound"].values <= at(found, "refined") + 1e-6)[kept].all()


def test_groups_without_a_circle_have_no_bound(net, data):
    found = ob.worst_case(
        net, data, group="translations:1:1", task="classification", progress=False
    )
    assert "bound" not in found
    finite = ob.worst_case(net, data, group="cyclic:4", task="classification", progress=False)
    assert "bound" not in finite
