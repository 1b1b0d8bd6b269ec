"""What all calibrators have in common: probabilities, files, refusals, light imports."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from held_out import outputs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

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
    calibrator.fit(logits, labels)
    probs = calibrator.predict_proba(logits)
    assert probs.shape == logits.shape
    assert (probs >= 0).all()
    torch.testing.assert_close(probs.sum(1), torch.ones(600, dtype=probs.dtype))
    folded = calibrator.predict_proba(logits.view(3, 200, 4))
    torch.testing.assert_close(folded.view(600, 4), probs)
    torch.testing.assert_close(calibrator.predict_proba(logits[:1])[0], probs[0])
    calibrator.save(tmp_path / "file.safetensors")
    again = load(tmp_path / "file.safetensors")
    assert repr(again) == repr(calibrator)
    assert again.classes_.tolist() == [0, 1, 2, 3]
    assert torch.equal(again.predict_proba(logits), probs)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_every_calibrator_refuses_bad_input_by_name(calibrator: Calibrator) -> None:
    logits, labels = outputs(60)
    probs = torch.softmax(logits, 1)
    bad = logits.clone()
    bad[3, 1] = math.nan
    cases = [
        ("logits", bad, labels, "X: expected finite scores, got NaN"),
        ("logits", bad.nan_to_num(math.inf), labels, "X: expected finite scores"),
        ("logits", bad.numpy(), labels, "X contains NaN"),
        ("probabilities", logits, labels, "X: expected probabilities"),
        ("probabilities", probs * 0.5, labels, "X: expected probabilities, .* the sum 0.5"),
        ("logits", logits, labels[:-1], r"y: expected shape \(60,\)"),
        ("logits", logits, None, "y: expected labels"),
        ("logits", logits, probs, r"y: expected shape .* pass y.argmax\(-1\)"),
        ("logits", logits, labels + 0.5, "[Uu]nknown label type"),
        ("logits", logits[0], labels[:1], r"y: expected shape \(4,\), one label for each row"),
        ("logits", logits.view(20, 3, 4), labels, r"X: expected shape \[N, C\]"),
        ("logits", logits.long(), labels, "X: expected floating-point"),
        ("scores", logits, labels, "outputs: unknown name 'scores'"),
    ]
    for kind, X, y, message in cases:
        with pytest.raises(ValueError, match=message):
            clone(calibrator).set_params(outputs=kind).fit(X, y)
    for weight, message in [
        (torch.ones(3), r"sample_weight: expected shape \(60,\), got shape \(3,\)"),
        (-torch.ones(60), r"sample_weight: expected finite weights >= 0"),
    ]:
        with pytest.raises(InputError, match=message):
            clone(calibrator).fit(logits, labels, sample_weight=weight)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(calibrator).predict_proba(logits)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_another_number_of_classes_is_refused(calibrator: Calibrator) -> None:
    logits, labels = outputs(60)
    calibrator.fit(logits, labels)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        calibrator.predict_proba(logits[:, :3])
    with pytest.raises(ValueError, match=r"X: expected scores .* pass X\[None\]"):
        calibrator.predict_proba(logits[0])


def test_wrong_parameters_are_refused() -> None:
    given = outputs(60)
    with pytest.raises(InputError, match="reduce: unknown name 'class'; did you mean 'classes'"):
        Isotonic(reduce="class").fit(*given)
    with pytest.raises(InputError, match="bins: expected an integer"):
        HistogramBinning(bins=0).fit(*given)


def test_probabilities_called_logits_are_warned_of() -> None:
    logits, labels = outputs(60)
    with pytest.warns(UserWarning, match="pass outputs='probabilities' to the constructor"):
        Temperature().fit(torch.softmax(logits, 1), labels)


def test_files_that_no_calibrator_wrote_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(InputError, match="path: expected a file"):
        load(tmp_path / "absent.safetensors")
    (tmp_path / "text").write_text("not a safetensors file, whatever its name")
    with pytest.raises(StoreError, match="expected a safetensors file"):
        load(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, str(tmp_path / "other"))
    with pytest.raises(StoreError, match=r"expected a file of Calibrator.save"):
        load(tmp_path / "other")
    save_file({"a": torch.zeros(1)}, str(tmp_path / "new"), metadata={"calibrator": "Temprature"})
    with pytest.raises(InputError, match="did you mean 'Temperature'"):
        load(tmp_path / "new")
    meta = {"calibrator": "Temperature", "parameters": "{}"}
    save_file({"a": torch.zeros(1)}, str(tmp_path / "part"), metadata=meta)
    with pytest.raises(StoreError, match=r"expected .*temperature_"):
        load(tmp_path / "part")


def test_recalibration_is_reached_from_the_package() -> None:
    assert ob.recalibrate.Temperature is Temperature
