"""The pytest plugin, in sessions of its own."""

from __future__ import annotations

import dask.backends  # noqa: F401 - changes how packages are found, which such a session would undo
import pytest
import torch

import orbical as ob

# Imported before: a session inside this one forgets what it imported, and NumPy loads only once.
import orbical.calibration
import orbical.checks
import orbical.scanning
import orbical.store.scan_result
import orbical.testing

pytest_plugins = "pytester"
PLUGIN = ("-p", "no:orbical", "-p", "orbical.integrations.pytest_plugin", "-p", "no:cacheprovider")


def test_pytest_shows_the_test_and_not_how_it_was_tested(pytester: pytest.Pytester) -> None:
    test = pytester.makepyfile(
        """
        import torch
        from orbical.testing import assert_equivariant

        def test_it():
            flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
            x = torch.rand(4, 1, 4, 4)
            assert_equivariant(flat, x, group="cyclic:4", task="classification")
        """
    )
    shown = pytester.runpytest_inprocess(test, "-p", "no:cacheprovider").stdout.str()
    assert "AssertionError: not equivariant under cyclic:4" in shown
    assert "equivariance.py" not in shown


def test_equivariance_is_asserted_by_a_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import torch

        def pool(x):
            return x.mean((2, 3))

        def corner(x):
            return x[..., :2, :2].flatten(1)

        def test_pool(assert_equivariant):
            assert_equivariant(pool, torch.rand(2, 3, 8, 8), group="dihedral:4",
                               task="classification")

        def test_corner(assert_equivariant):
            assert_equivariant(corner, torch.rand(2, 3, 8, 8), group="dihedral:4",
                               task="classification")

        def test_springs(assert_conservative):
            atoms = {"pos": torch.rand(2, 3, 3).double(), "numbers": torch.ones(2, 3)}
            def springs(batch):
                pos = batch["pos"]
                return {"energy": pos.square().sum((1, 2)), "forces": -2 * pos}
            assert_conservative(springs, atoms)
        """
    )
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*not equivariant under dihedral:4*"])


def test_stored_scans_are_checked_against_the_thresholds_of_pyproject(
    pytester: pytest.Pytester,
) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    images, labels = torch.rand(8, 1, 8, 8), torch.arange(8) % 3
    ob.scan(
        {"net": net},
        (images, labels),
        group="rotations:4",
        task="classification",
        out=pytester.path / "run.zarr",
        progress=False,
    )
    pytester.makepyprojecttoml("[tool.orbical.check]\nmax_gap = 1.0\nmin_accuracy = 0.99\n")
    pytester.makepyfile(
        """
        import orbical

        def test_as_configured(orbical_check):
            orbical_check("run.zarr")

        def test_keywords_take_precedence(orbical_check):
            orbical_check(orbical.load("run.zarr"), min_accuracy=0.0, models=["net"])
        """
    )
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAIL net: accuracy*0.99*"])


def test_mistakes_are_named_in_the_words_of_the_fixture(pytester: pytest.Pytester) -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    data = (torch.rand(4, 1, 8, 8), torch.arange(4) % 3)
    ob.scan(
        {"net": net},
        data,
        group="rotations:4",
        task="classification",
        out=pytester.path / "run.zarr",
        progress=False,
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("words", [{}, {"max_eze": 1.0}, {"max_gap": 1, "models": ["a"]}])
        def test_mistake(orbical_check, words):
            with pytest.raises(ValueError) as error:
                orbical_check("run.zarr", **words)
            assert "--" not in str(error.value)
        """
    )
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=3)
