"""What all calibrators have in common: probabilities, files, refusals, light imports."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from held_out import outputs

import orbical as ob
from orbical.errors import InputError, StoreError
from orbical.recalibrate import (
    Calibrator,
    HistogramBinning,
    Isotonic,
    MatrixScaling,
    Temperature,
    VectorScaling,
    load,
)
from orbical.recalibrate.base import NotFitted

ALL: list[Calibrator] = [
    Temperature(),
    VectorScaling(),
    VectorScaling(penalty=0.0),
    MatrixScaling(),
    Isotonic(),
    Isotonic(reduce="classes"),
    HistogramBinning(),
    HistogramBinning(bins=5, reduce="classes"),
]


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_every_calibrator_returns_probabilities_and_survives_its_file(
    calibrator: Calibrator, tmp_path: Path
) -> None:
    logits, labels = outputs(600)
    calibrator.fit(logits=logits, labels=labels)
    probs = calibrator.transform(logits=logits)
    assert probs.shape == logits.shape
    assert (probs >= 0).all()
    torch.testing.assert_close(probs.sum(1), torch.ones(600, dtype=probs.dtype))
    folded = calibrator.transform(logits=logits.view(3, 200, 4))
    torch.testing.assert_close(folded.view(600, 4), probs)
    torch.testing.assert_close(calibrator.transform(logits=logits[0]), probs[0])
    calibrator.save(tmp_path / "file.safetensors")
    again = load(tmp_path / "file.safetensors")
    assert repr(again) == repr(calibrator)
    assert torch.equal(again.transform(logits=logits), probs)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_every_calibrator_refuses_bad_input_by_name(calibrator: Calibrator) -> None:
    logits, labels = outputs(60)
    probs = torch.softmax(logits, 1)
    bad = logits.clone()
    bad[3, 1] = math.nan
    cases = [
        ({"logits": bad, "labels": labels}, "logits: contains NaN"),
        ({"logits": bad.nan_to_num(math.inf), "labels": labels}, "logits: contains NaN or inf"),
        ({"probs": logits, "labels": labels}, "probs: "),
        ({"probs": probs * 0.5, "labels": labels}, "probs: expected rows that sum to 1"),
        ({"labels": labels}, "exactly one of the two, got neither"),
        ({"logits": logits, "probs": probs, "labels": labels}, "exactly one of the two, got both"),
        ({"logits": logits, "labels": labels[:-1]}, "labels: expected shape"),
        ({"logits": logits, "labels": labels + 1}, "labels: expected class indices"),
        ({"logits": logits, "labels": labels.double()}, "labels: expected integer"),
        ({"logits": logits[:, :1], "labels": labels * 0}, "logits: expected .* C >= 2"),
        ({"logits": logits[0], "labels": labels[:1]}, "logits, probs: expected shape"),
        ({"logits": logits.long(), "labels": labels}, "logits: expected floating-point"),
    ]
    for arguments, message in cases:
        with pytest.raises(InputError, match=message):
            type(calibrator)(**calibrator.parameters()).fit(**arguments)
    with pytest.raises(NotFitted, match=r"call fit\("):
        type(calibrator)(**calibrator.parameters()).transform(logits=logits)


@pytest.mark.parametrize("calibrator", ALL[1:], ids=repr)
def test_another_number_of_classes_is_refused(calibrator: Calibrator) -> None:
    logits, labels = outputs(60)
    calibrator.fit(logits=logits, labels=labels)
    with pytest.raises(InputError, match="expected 4 classes, as fitted, got 3"):
        calibrator.transform(logits=logits[:, :3])


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="reduce: unknown name 'class'; did you mean 'classes'"):
        Isotonic(reduce="class")
    with pytest.raises(InputError, match="bins: expected a whole number"):
        HistogramBinning(bins=0)


def test_files_that_no_calibrator_wrote_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(InputError, match="path: there is no file"):
        load(tmp_path / "absent.safetensors")
    (tmp_path / "text").write_text("not a safetensors file, whatever its name")
    with pytest.raises(StoreError, match="not a safetensors file"):
        load(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, str(tmp_path / "other"))
    with pytest.raises(StoreError, match="not one that a calibrator wrote"):
        load(tmp_path / "other")
    save_file({"a": torch.zeros(1)}, str(tmp_path / "new"), metadata={"calibrator": "Temprature"})
    with pytest.raises(InputError, match="did you mean 'Temperature'"):
        load(tmp_path / "new")
    meta = {"calibrator": "Temperature", "parameters": "{}"}
    save_file({"a": torch.zeros(1)}, str(tmp_path / "part"), metadata=meta)
    with pytest.raises(StoreError, match=r"needs .*temperature_"):
        load(tmp_path / "part")


def test_recalibration_is_reached_from_the_package() -> None:
    assert ob.recalibrate.Temperature is Temperature


def test_a_training_machine_needs_neither_scipy_nor_xarray() -> None:
    code = (
        "import sys, orbical.recalibrate, orbical.calibration.regression;"
        "print(sorted({'scipy', 'sklearn', 'xarray', 'zarr', 'matplotlib'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
