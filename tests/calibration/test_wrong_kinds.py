"""What is no number, no name or no array is refused by the name of its argument."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import calibration
from orbical.errors import InputError


@pytest.fixture(scope="module")
def scan() -> ob.Scan:
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    data = (images[:5], labels[:5])
    return ob.scan(net, data, group="cyclic:4", task="classification", progress=False)


REFUSED: dict[str, tuple[str, Callable[[ob.Scan], object]]] = {
    "titled": ("name", calibration.measure_title),
    "quantity_title": ("name", calibration.quantity_title),
    "ordered_esd": ("difference", lambda scan: calibration.ordered_esd(scan, scan)),
    "interval_of_sums": ("count", lambda scan: calibration.interval_of_sums(*[scan] * 5)),
    "share_interval_of_sums": (
        "total",
        lambda scan: calibration.share_interval_of_sums(np.array(4), scan, scan),
    ),
    "pooled_reliability": ("columns", lambda scan: calibration.pooled_reliability(scan, [1.0])),
    "pooled_reliability, column": (
        "columns",
        lambda scan: calibration.pooled_reliability([scan], [1.0]),
    ),
    "samples_to_decide_by_width": (
        "end",
        lambda scan: calibration.samples_to_decide_by_width(0.1, scan, 0.0, 10),
    ),
    "compare": ("a", lambda scan: calibration.compare("ece", (scan, scan), (scan, scan))),
    "Bounds": ("bounds", lambda scan: ob.bounds.Bounds(scan)),
    "molecule_name": ("scan", lambda scan: ob.nero.molecule_name(scan, 0, np.array([8]))),
    "measure_table": ("outputs", calibration.measure_table),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_scan_in_place_of_another_argument_is_refused_by_its_name(name: str, scan) -> None:
    argument, call = REFUSED[name]
    with pytest.raises(InputError, match=f"^{argument}: expected "):
        call(scan)


@pytest.mark.parametrize("name", ["epistemic", "variances"])
def test_outputs_with_an_array_that_no_table_takes_are_refused(name: str) -> None:
    given = {"mean": np.zeros(9), "variance": np.ones(9), "target": np.ones(9), name: np.ones(9)}
    with pytest.raises(InputError, match=f"outputs: expected some of mean.*got .*{name}"):
        calibration.measure_table(given)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_stands_for_the_outputs_in_its_file(kind: type, tmp_path: Path) -> None:
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], (2, 40)).astype("f4")
    outputs = {
        name: {"probs": probs[k], "labels": np.arange(40) % 3} for k, name in enumerate("ab")
    }
    paths = {name: kind(tmp_path / f"{name}.npz") for name in "ab"}
    for name, path in paths.items():
        np.savez(path, **outputs[name])
    settings = {"only": ["ece", "nll"], "resamples": 20}
    found = calibration.measure_table(paths["a"], **settings)
    assert str(found) == str(calibration.measure_table(outputs["a"], **settings))
    expected = calibration.compare_outputs(outputs, resamples=20)
    assert calibration.compare_outputs(paths, resamples=20).equals(expected)
    with pytest.raises(InputError, match=r"outputs: expected arrays by name.* got (str|Posix)"):
        calibration.measure_table(kind("run.zarr"))


def test_standard_deviations_in_a_file_are_to_be_squared(tmp_path: Path) -> None:
    np.savez(tmp_path / "out.npz", mean=np.zeros(9), std=np.ones(9), target=np.ones(9))
    with pytest.raises(InputError, match=r"got mean, std, target; save std\*\*2 as variance"):
        calibration.measure_table(tmp_path / "out.npz")


def test_outputs_without_labels_are_refused() -> None:
    with pytest.raises(InputError, match=r"outputs: expected .*labels.*missing"):
        calibration.measure_table({"probs": np.full((4, 2), 0.5)})


def test_arrays_that_cannot_be_written_give_no_warning() -> None:
    """In a process of its own: torch gives this warning once."""
    program = """
import numpy as np
from orbical import calibration
z = np.broadcast_to(0.9, 40)
y = np.broadcast_to(True, 40)
calibration.compare("ece", (z, y), (z, y), resamples=20)
calibration.share_interval_of_sums(*(np.broadcast_to(n, 3) for n in (4, 3.0, 3.0)))
calibration.pooled_reliability([(z, y)], np.broadcast_to(1.0, 1))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", ["ece", "ence", "sb_ece", "classwise_ece", "metrics.ECE", "metrics.ENCE"]
)
def test_the_number_of_bins_by_its_name_in_other_packages_is_answered_with_ours(name: str) -> None:
    own = name.rpartition(".")[2]
    with pytest.raises(InputError, match=f"^{own}: unknown name 'n_bins'; did you mean 'bins'"):
        operator.attrgetter(name)(calibration)(n_bins=15)


def test_a_class_for_torchmetrics_beside_the_functions_is_answered_with_its_module() -> None:
    with pytest.raises(AttributeError, match="in its module metrics"):
        calibration.ECE  # noqa: B018
