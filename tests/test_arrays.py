"""Every function that takes arrays takes them from every library, in every layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from orbical import bounds, calibration, losses
from orbical._arrays import as_array, as_numpy, checked_label_array
from orbical.errors import InputError


class OnlyArray:
    """An object that NumPy can read, and nothing else."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


class OnlyDLPack:
    """An object that hands its memory over, as JAX and CuPy arrays do."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.ascontiguousarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def frame(values: np.ndarray) -> Any:
    index = np.arange(len(values))[::-1]  # an index that does not count from 0
    make = pd.Series if values.ndim == 1 else pd.DataFrame
    return make(values, index=index)


def nullable(values: np.ndarray) -> Any:
    kind = {"f": "Float64", "i": "Int64", "b": "boolean"}[values.dtype.kind]
    return frame(values).astype(kind)


def read_only(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "torch": lambda x: torch.from_numpy(x.copy()),
    "torch with gradient": lambda x: torch.from_numpy(x.copy()).requires_grad_(x.dtype.kind == "f"),
    "reversed": lambda x: x[::-1].copy()[::-1],
    "every other": lambda x: np.repeat(x, 2, 0)[::2],
    "columns first": np.asfortranarray,
    "big endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "read-only": read_only,
    "pandas": frame,
    "nullable pandas": nullable,
    "xarray": xr.DataArray,
    "rows": list,
    "__array__": OnlyArray,
    "__dlpack__": OnlyDLPack,
}

rng = np.random.default_rng(0)
Z = rng.random(30)
HIT = rng.random(30) < Z
WEIGHTS = rng.random(30) + 0.1
LOGITS = 2 * rng.standard_normal((30, 3))
LABELS = rng.integers(0, 3, 30)
MEAN, TARGET = rng.standard_normal((2, 30))
VARIANCE = rng.random(30) + 0.1
ORBIT = np.repeat(np.arange(10), 3)

Read = Callable[[np.ndarray], Any]
PAIR = (
    *("ece", "ece_loss", "ks", "esd", "esd_softened", "mmce", "mmce_squared", "mmce_weighted"),
    *("skce", "smooth_ece", "sb_ece"),
)
OUTPUTS = ("accuracy", "nll", "brier", "s_avuc", "classwise_ece", "classwise_esd")
LOSSES = ("esd", "esd_softened", "mmce", "sb_ece", "s_avuc", "ece")
GAUSSIAN = (
    *("ence", "uce", "regression_esd", "regression_esd_normalized", "gence", "gence_sq"),
    *("gence_fiber", "gence_sq_fiber", "gaussian_nll", "gaussian_crps"),
)


def _pair(name: str, as_: Read) -> Any:
    return getattr(calibration, name)(as_(Z), as_(HIT))


def _outputs(name: str, as_: Read) -> Any:
    return getattr(calibration, name)(logits=as_(LOGITS), labels=as_(LABELS))


def _loss(name: str, as_: Read) -> Any:
    return getattr(losses, name)(as_(LOGITS), as_(LABELS), weights=as_(WEIGHTS))


def _gaussian(name: str, as_: Read) -> Any:
    return getattr(calibration, name)(as_(MEAN), as_(VARIANCE), as_(TARGET))


FUNCTIONS: dict[str, Callable[[Read], Any]] = {
    **{name: partial(_pair, name) for name in PAIR},
    **{name: partial(_outputs, name) for name in OUTPUTS},
    **{name: partial(_gaussian, name) for name in GAUSSIAN},
    **{f"losses.{name}": partial(_loss, name) for name in LOSSES},
    "losses.gaussian_nll": lambda as_: losses.gaussian_nll(
        as_(MEAN), as_(VARIANCE), as_(TARGET), weights=as_(WEIGHTS)
    ),
    "weighted ece": lambda as_: calibration.ece(as_(Z), as_(HIT), weights=as_(WEIGHTS)),
    "bleed": lambda as_: calibration.aleatoric_bleed(as_(VARIANCE)).total,
    "nll_optimal_bleed": lambda as_: bounds.nll_optimal_bleed(
        bounds.ValueTable(as_(ORBIT), as_(MEAN))
    ).sum(),
    "OrbitTable": lambda as_: bounds.OrbitTable.from_labels(
        orbit=as_(ORBIT), label=as_(LABELS)
    ).mass[0, 0],
    "normalize": lambda as_: bounds.normalize(as_(WEIGHTS)).max(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_value_does_not_depend_on_how_the_numbers_are_passed(name: str, form: str) -> None:
    expected = float(FUNCTIONS[name](lambda values: values))
    found = FUNCTIONS[name](FORMS[form])
    assert found.item() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.int32, np.uint64, ">i2"])
def test_labels_may_be_integers_of_any_size(dtype: Any) -> None:
    expected = calibration.nll(logits=LOGITS, labels=LABELS)
    assert calibration.nll(logits=LOGITS, labels=LABELS.astype(dtype)) == expected


@pytest.mark.parametrize("kind", ["d", "f", "e", "g"])
def test_floats_of_any_size_are_read(kind: str) -> None:
    tensor = as_array("x", Z.astype(kind))
    assert tensor.dtype == {"f": torch.float32, "e": torch.float16}.get(kind, torch.float64)
    np.testing.assert_allclose(tensor.double().numpy(), Z, atol=1e-3)


def test_a_tensor_is_passed_through_and_a_list_of_tensors_keeps_its_gradient() -> None:
    given = torch.rand(4, requires_grad=True)
    assert as_array("x", given) is given
    stacked = as_array("x", [part * 2 for part in given])
    stacked.sum().backward()
    assert given.grad is not None
    assert given.grad.tolist() == [2.0] * 4


def test_numpy_memory_is_shared_not_copied() -> None:
    given = np.zeros(4)
    tensor = as_array("x", given)
    given[0] = 1.0
    assert tensor[0] == 1


def test_scalars_of_numpy_are_numbers() -> None:
    truth = np.float64(0.25)
    assert float(calibration.aleatoric_bleed([1.0, 1.0], truth).total) == 0.75**2
    assert as_array("x", np.bool_(True)).dtype == torch.bool


def test_labels_may_be_a_column_or_booleans_of_two_classes() -> None:
    expected = calibration.accuracy(logits=LOGITS, labels=LABELS)
    assert calibration.accuracy(logits=LOGITS, labels=LABELS[:, None]) == expected
    assert torch.equal(
        checked_label_array(LABELS[:, None], torch.zeros(2, 30, 3))[1], as_array("", LABELS)
    )
    two, truth = LOGITS[:, :2], LABELS > 0
    assert calibration.nll(logits=two, labels=truth) == calibration.nll(
        logits=two, labels=truth.astype(int)
    )
    with pytest.raises(InputError, match=r"labels: expected integer class indices, got bool"):
        calibration.nll(logits=LOGITS, labels=truth)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (LABELS.astype(float), r"got float64 of shape \(30,\); pass class indices, e.g. labels.as"),
        (np.eye(3)[LABELS], r"got float64 of shape \(30, 3\); .* e.g. labels.argmax\(-1\)"),
        (np.eye(3, dtype=int)[LABELS], r"got shape \(30, 3\); .* e.g. labels.argmax\(-1\)"),
        (pd.Series(["a", "b", "c"] * 10), "got text; number them with numpy.unique"),
        (LABELS + 0j, "expected integer class indices, got complex128"),
    ],
)
def test_labels_that_are_no_class_indices_are_refused_with_the_remedy(
    given: Any, message: str
) -> None:
    with pytest.raises(InputError, match=f"^labels: .*{message}"):
        calibration.nll(logits=LOGITS, labels=given)


@pytest.mark.parametrize(
    "given",
    [
        *(None, object(), "0.5", [[0.5], [0.5, 0.6]], {"a": 1.0}),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.ma.array([0.5, 0.6], mask=[False, True]),
    ],
)
def test_what_holds_no_numbers_is_refused_by_name(given: Any) -> None:
    with pytest.raises(InputError, match=r"^confidence: expected an array of numbers, got "):
        calibration.ece(given, [True, False])


def test_numpy_functions_read_tensors_with_gradients() -> None:
    given = torch.tensor([0.5, 1.5], requires_grad=True)
    np.testing.assert_array_equal(as_numpy("mass", given, np.float64), [0.5, 1.5])
    with pytest.raises(InputError, match=r"^mass: expected an array of numbers"):
        as_numpy("mass", ["much"], float)
