"""Dense regression: errors against plain references, vectors that turn, unknown pixels."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError


def random_maps(seed, components=1, size=12, samples=2):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(samples, components, size, size, generator=random)


def summarized(task, outputs, target, group):
    target = task.check_target(target, len(target))
    return task.summarize(outputs, target, group, torch.as_tensor(group.weights))


def scanned(model, data, group="dihedral:4", **settings):
    return ob.scan(model, data, group=group, task=ob.tasks.DenseRegression(**settings),
                   progress=False)  # fmt: skip


def sphere(size=16):
    """The normals of a half sphere, unknown outside of it: y is down."""
    y, x = torch.meshgrid(*(torch.linspace(-1, 1, size),) * 2, indexing="ij")
    z = (1 - x**2 - y**2).clamp_min(0).sqrt()
    return torch.stack([x, y, z]).where(x**2 + y**2 < 0.8, torch.nan)[None]


def test_errors_equal_their_definitions():
    answer, truth = random_maps(1, 2), random_maps(2, 2)
    group = ob.groups.cyclic(1)
    found = summarized(ob.tasks.DenseRegression(), {"mean": answer[None]}, truth, group)
    error = (answer - truth).abs().mean(1).numpy()
    np.testing.assert_allclose(found["score"][:, 0], error.mean((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(found["rmse"][:, 0], (error**2).mean((1, 2)) ** 0.5, rtol=1e-5)
    task = ob.tasks.DenseRegression(representation="vector")
    found = summarized(task, {"mean": answer[None]}, truth, group)
    length = np.linalg.norm((answer - truth).numpy(), axis=1)
    np.testing.assert_allclose(found["score"][:, 0], length.mean((1, 2)), rtol=1e-5)
    answer, truth = random_maps(1, 3), random_maps(2, 3)
    task = ob.tasks.DenseRegression(representation="normal")
    found = summarized(task, {"mean": answer[None]}, truth, group)
    cosine = torch.nn.functional.cosine_similarity(answer.double(), truth.double(), dim=1)
    expected = torch.rad2deg(cosine.acos()).mean((1, 2))
    np.testing.assert_allclose(found["score"][:, 0], expected, rtol=1e-4)


@pytest.mark.parametrize(("representation", "components"), [("vector", 2), ("normal", 3)])
def test_vectors_turn_with_the_image(representation, components):
    """A field that points away from the center stays the same; its copy scores 0 everywhere."""
    truth = sphere()[:, :components]
    for group in ("dihedral:4", "rotations:8"):
        action = ob.actions.ValueMaps(representation)
        moved = action.apply(ob.groups.parse(group), truth)
        apart = (moved - truth[None]).abs()
        assert float(apart.nan_to_num(0).max()) < 0.05, group
    task = ob.tasks.DenseRegression(representation=representation)
    group = ob.groups.dihedral(4)
    field = random_maps(3, components)
    found = summarized(task, {"mean": task.output.apply(group, field)}, field, group)
    assert float(found["score"].max()) < 1e-3
    assert float(found["invariance_gap"].max()) < 1e-3


def test_scaling_lengthens_displacements_and_leaves_normals():
    group = ob.groups.scales(0.5, 2.0, 3)
    up = torch.tensor([0.0, -1.0, 0.0]).reshape(1, 3, 1, 1).expand(1, 3, 5, 5)
    normals = ob.actions.ValueMaps("normal").apply(group, up)[:, 0, 1, 2, 2]
    vectors = ob.actions.ValueMaps("vector").apply(group, up[:, :2])[:, 0, 1, 2, 2]
    np.testing.assert_allclose(normals, -1.0, rtol=1e-5)
    np.testing.assert_allclose(vectors, -np.asarray(group.coords["scale"]), rtol=1e-5)


def test_unknown_pixels_are_not_judged_and_do_not_spread_over_the_whole_pixels_beside():
    truth = random_maps(4)
    answer = truth.clone()
    truth[:, :, 2, 5] = torch.nan
    answer[:, :, 2, 5] = 1000.0
    task = ob.tasks.DenseRegression()
    for group in (ob.groups.dihedral(4), ob.groups.translations(1)):
        moved = task.output.apply(group, truth)
        assert int(moved.isnan()[:, 0].sum((1, 2, 3)).max()) == 1
        found = summarized(task, {"mean": task.output.apply(group, answer)}, truth, group)
        assert float(found["score"].max()) < 1e-3
        assert float(found["consensus_vs_truth"].max()) < 1e-3


def test_a_window_judges_real_pixels_only_and_takes_a_larger_truth():
    depth = random_maps(5, 1, 20)
    scan = scanned(lambda x: x, (depth, depth), "translations:2:1", input=ob.actions.Window(12))
    assert float(scan.data["score"].max()) < 1e-4
    assert float(scan.data["invariance_gap"].max()) < 1e-4
    np.testing.assert_allclose(scan.data["consensus"].values[0], depth[:, :, 4:16, 4:16], atol=1e-4)


def test_variances_are_calibrated_along_the_orbit():
    """Errors of standard deviation 2 with that variance; where it says 1, they are too large."""
    truth = torch.zeros(12, 1, 8, 8)
    images = 2 * random_maps(6, 1, 8, 12)

    def honest(x):
        return x, torch.full_like(x, 4.0)

    def sure(x):
        return {"mean": x, "variance": torch.ones_like(x)}

    scan = scanned({"honest": honest, "sure": sure}, (images, truth), uncertainty="variance")
    assert scan.data["error"].shape == (2, 12, 8, 64, 1)
    found = ob.calibration.along_orbit(scan, "mahalanobis_calibration")
    likely = ob.calibration.along_orbit(scan, "gaussian_nll")
    assert found.shape == likely.shape == (2, 8)
    assert float(likely.sel(model="honest").max()) < float(likely.sel(model="sure").min())
    np.testing.assert_allclose(scan.data["mean_std"].sel(model="honest"), 2.0, rtol=1e-5)
    np.testing.assert_allclose(found.std("element"), 0.0, atol=1e-4)


def test_one_component_needs_no_axis_and_labels_are_optional():
    depth = random_maps(7)
    flat = scanned(lambda x: x[:, 0], (depth, depth[:, 0]))
    assert float(flat.data["score"].max()) == 0.0
    assert "score" not in scanned(lambda x: x, depth).data


def test_a_scan_is_stored_and_its_task_restored(tmp_path):
    task = ob.tasks.DenseRegression(representation="normal", interpolation="bicubic")
    normals = random_maps(8, 3)
    ob.scan(lambda x: x, (normals, normals), group="flips", task=task, progress=False,
            out=tmp_path / "run.zarr")  # fmt: skip
    record = ob.load(tmp_path / "run.zarr").record.task
    assert repr(ob.tasks.Task.from_record(asdict(record))) == repr(task)


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (lambda y: y[:1], "one for each of 2 samples"),
        (lambda y: y[..., :6], r"expected maps of \(12, 12\) pixels, as the model predicts"),
        (lambda y: y.flatten(1), r"maps \[sample, component, row, column\]"),
        (lambda y: y / 0, "NaN is unknown"),
        (lambda y: y * torch.nan, "some known pixel of each sample, got only NaN for sample 0"),
    ],
)
def test_wrong_truths_are_named_before_any_work(truth, words):
    depth = random_maps(1)
    with pytest.raises(InputError, match=words):
        scanned(lambda x: x, (depth, truth(depth)))


@pytest.mark.parametrize(
    ("model", "words", "settings"),
    [
        (lambda x: x[..., ::2, ::2], r"maps of \(12, 12\) pixels, as the images have", {}),
        (lambda x: x, "2 or 3 components of each normal, got 1", {"representation": "normal"}),
        (lambda x: (x, -x.abs()), "variance that is not positive", {"uncertainty": "variance"}),
        (lambda x: (x, x[:, :, 0]), "expected a variance", {"uncertainty": "variance"}),
        (lambda x: x * torch.nan, "NaN or infinite output", {}),
        (lambda x: x.flatten(1), r"maps \[sample, component, row, column\]", {}),
    ],
)
def test_wrong_outputs_are_named(model, words, settings):
    with pytest.raises(ModelError, match=words):
        scanned(model, random_maps(1), **settings)


def test_wrong_settings_and_groups_are_named():
    with pytest.raises(InputError, match="representation"):
        ob.tasks.DenseRegression(representation="tensor")
    with pytest.raises(InputError, match="uncertainty"):
        ob.tasks.DenseRegression(uncertainty="covariance")
    shear = ob.groups.from_matrices(plane=[np.eye(3), [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]])
    with pytest.raises(ModelError, match="shears or stretches"):
        scanned(lambda x: x, random_maps(1, 3), shear, representation="normal")


def test_the_unit_test_of_networks_knows_how_maps_turn():
    def uphill(x):
        """The gradient of an image, by differences on both sides: (x to the right, y down)."""
        wide = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
        return torch.cat([wide[..., 1:-1, 2:] - wide[..., 1:-1, :-2],
                          wide[..., 2:, 1:-1] - wide[..., :-2, 1:-1]], 1)  # fmt: skip

    turned = ob.tasks.DenseRegression(representation="vector")
    ob.testing.assert_equivariant(uphill, random_maps(1), group="dihedral:4", task=turned)
    with pytest.raises(AssertionError):
        ob.testing.assert_equivariant(
            uphill, random_maps(1), group="dihedral:4", task="dense_regression"
        )
