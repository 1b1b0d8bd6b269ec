"""scikit-learn's own checks, and calibrators inside its tools."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from held_out import outputs
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from orbical.errors import InputError
from orbical.recalibrate import (
    Beta,
    Calibrator,
    Dirichlet,
    HistogramBinning,
    Isotonic,
    MatrixScaling,
    OrbitTemperature,
    Temperature,
    VectorScaling,
    load,
)

ALL: list[Calibrator] = [
    Temperature(),
    VectorScaling(),
    MatrixScaling(),
    Isotonic(),
    Isotonic(reduce="classes"),
    HistogramBinning(),
    HistogramBinning(reduce="classes"),
    Dirichlet(),
    Beta(),
    Beta(reduce="classes"),
]

THREE_CLASSES = dict.fromkeys(
    [
        "check_classifiers_classes",
        "check_classifiers_train",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_readonly_memmap_input",
    ],
    "it has 3 classes and 2 columns; X needs one column for each class",
)
ONE_LABEL = {
    "check_classifiers_one_label": "labels of one class do not make it predict that class always: "
    "it maps confidences of whichever class has the largest score"
}


def exceptions(calibrator: Calibrator) -> dict[str, str]:
    """The checks that cannot hold, each with the reason."""
    moves_classes = (
        isinstance(calibrator, VectorScaling | Dirichlet)
        or calibrator.get_params().get("reduce") == "classes"
    )
    return THREE_CLASSES if moves_classes else THREE_CLASSES | ONE_LABEL


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_every_calibrator_passes_the_checks_of_scikit_learn(calibrator: Calibrator) -> None:
    excepted = exceptions(calibrator)
    results = check_estimator(
        calibrator, expected_failed_checks=excepted, on_skip=None, on_fail=None
    )
    status: dict[str, set[str]] = {}
    for result in results:
        status.setdefault(result["status"], set()).add(result["check_name"])
    assert status.get("failed", set()) == set()
    assert status["xfail"] == set(excepted)
    assert not status["xfail"] & status["passed"]  # an exception that is no longer needed
    assert len(status["passed"]) > 40


class _TwoClasses:
    """Makes scikit-learn's checks give two classes to their two columns."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_the_excepted_checks_pass_with_as_many_columns_as_classes(calibrator: Calibrator) -> None:
    kind = type(calibrator)
    binary = type(f"TwoClass{kind.__name__}", (_TwoClasses, kind), {"__init__": kind.__init__})
    seen = set()
    for estimator, check in estimator_checks_generator(binary(**calibrator.get_params())):
        if check.func.__name__ in THREE_CLASSES:
            check(estimator)
            seen.add(check.func.__name__)
    assert seen == set(THREE_CLASSES)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_columns_of_a_data_frame_are_named_by_calibrator_and_class(calibrator: Calibrator) -> None:
    pandas = pytest.importorskip("pandas")
    logits, labels = outputs(200)
    names = np.array(["ant", "bee", "cat", "dog"])
    fitted = clone(calibrator).fit(logits.numpy(), names[labels.numpy()])
    expected = fitted.transform(logits.numpy())
    frame = fitted.set_output(transform="pandas").transform(logits.numpy())
    assert isinstance(frame, pandas.DataFrame)
    lead = type(calibrator).__name__.lower()
    assert [*frame] == [*fitted.get_feature_names_out()] == [f"{lead}_{name}" for name in names]
    np.testing.assert_array_equal(frame, expected)


@pytest.mark.parametrize("calibrator", [*ALL, OrbitTemperature()], ids=repr)
def test_clones_parameters_and_pickles_are_faithful(calibrator: Calibrator) -> None:
    other = clone(calibrator).set_params(outputs="probabilities")
    assert other.get_params() == calibrator.get_params() | {"outputs": "probabilities"}
    assert not hasattr(other, "classes_")
    logits, labels = outputs(200)
    X = torch.softmax(logits, 1).numpy()
    X = X.reshape(50, 4, 4) if isinstance(calibrator, OrbitTemperature) else X
    other.fit(X, labels[: len(X)])
    again = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(again.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_the_result_is_of_the_kind_of_the_input_and_the_same_for_all(
    calibrator: Calibrator,
) -> None:
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    logits, labels = outputs(300)
    array = logits.numpy()
    reference = clone(calibrator).fit(logits, labels)
    expected = reference.predict_proba(logits)
    assert isinstance(expected, torch.Tensor)
    assert expected.dtype == torch.float64
    kinds = [
        (array, labels.numpy()),
        (np.asfortranarray(array)[::-1][::-1], labels.numpy().astype(">i4")),
        (array.astype(">f8"), labels.tolist()),
        (array.tolist(), labels.numpy().astype(float)),
        (pandas.DataFrame(array, columns=list("abcd")), pandas.Series(labels.numpy())),
        (xarray.DataArray(array, dims=("sample", "class")), xarray.DataArray(labels.numpy())),
    ]
    for X, y in kinds:
        fitted = clone(calibrator).fit(X, y)
        found = fitted.predict_proba(X)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-12)
        np.testing.assert_array_equal(fitted.predict(X), reference.predict(logits).numpy())
        np.testing.assert_array_equal(fitted.transform(X), found)
    assert reference.predict_proba(array.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("calibrator", ALL[:3], ids=repr)
def test_scalings_pass_gradients_on(calibrator: Calibrator) -> None:
    logits, labels = outputs(200)
    fitted = clone(calibrator).fit(logits, labels)
    leaf = logits.clone().requires_grad_()
    fitted.predict_proba(leaf)[:, 0].sum().backward()
    assert leaf.grad is not None
    assert bool((leaf.grad.abs() > 0).any())


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_whole_weights_are_repetitions_and_zero_weights_are_absent(
    calibrator: Calibrator,
) -> None:
    logits, labels = outputs(300)
    weight = torch.arange(300) % 4
    weighted = clone(calibrator).fit(logits, labels, sample_weight=weight)
    repeated = clone(calibrator).fit(
        logits.repeat_interleave(weight, 0), labels.repeat_interleave(weight)
    )
    torch.testing.assert_close(
        weighted.predict_proba(logits), repeated.predict_proba(logits), atol=1e-6, rtol=0
    )
    plain = clone(calibrator).fit(logits, labels)
    assert not torch.allclose(weighted.predict_proba(logits), plain.predict_proba(logits))


def test_one_column_is_the_score_of_the_second_of_two_classes() -> None:
    logits, labels = outputs(200, 2)
    both = logits - logits[:, :1]
    one = VectorScaling().fit(both[:, 1:], labels)
    two = VectorScaling().fit(both, labels)
    torch.testing.assert_close(one.predict_proba(both[:, 1:]), two.predict_proba(both))
    probs = torch.softmax(both, 1)
    third = VectorScaling(outputs="probabilities").fit(probs[:, 1:], labels)
    torch.testing.assert_close(third.predict_proba(probs[:, 1:]), two.predict_proba(both))


def test_labels_name_the_columns_in_sorted_order() -> None:
    logits, labels = outputs(200, 3)
    names = np.array(["bird", "cat", "dog"])
    fitted = Temperature().fit(logits.numpy(), names[labels])
    assert fitted.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(fitted.predict(logits), names[logits.argmax(1)])
    assert Temperature().fit(logits, labels + 1).predict(logits)[0] == logits[0].argmax() + 1
    with pytest.raises(InputError, match="y: expected column indices 0 to 2 or 3 distinct labels"):
        Temperature().fit(logits, np.where(labels == 2, "cat", names[labels]))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", ">i4", "int64", "uint8", "float32", "float64"]
)
def test_classes_keep_the_dtype_of_the_labels(dtype: str, tmp_path: Path) -> None:
    logits, labels = outputs(200, 2)
    y = labels.numpy().astype(dtype)
    fitted = Temperature().fit(logits.numpy(), y)
    model = GaussianNB().fit(logits.numpy(), y)
    assert fitted.classes_.dtype == model.classes_.dtype
    assert fitted.classes_.tolist() == model.classes_.tolist()
    assert fitted.predict(logits.numpy()).dtype == model.predict(logits.numpy()).dtype
    assert fitted.predict(logits).shape == (200,)
    fitted.save(tmp_path / "temperature.safetensors")
    assert load(tmp_path / "temperature.safetensors").classes_.dtype == fitted.classes_.dtype


def test_bool_tensors_are_predicted_as_bools() -> None:
    logits, labels = outputs(200, 2)
    predicted = Temperature().fit(logits, labels.bool()).predict(logits)
    torch.testing.assert_close(predicted, logits.argmax(1).bool())


def test_labels_of_too_small_a_dtype_for_the_columns_number_them() -> None:
    logits = torch.randn(400, 300, dtype=torch.float64)
    labels = torch.randint(0, 200, (400,), dtype=torch.uint8)
    assert VectorScaling(penalty=1.0).fit(logits, labels).classes_.tolist() == list(range(300))


@pytest.mark.parametrize("calibrator", [Temperature(), VectorScaling(), Isotonic()], ids=repr)
def test_a_class_may_be_missing_from_the_calibration_set(calibrator: Calibrator) -> None:
    logits, labels = outputs(200, 3)
    names = np.array(["bird", "cat", "dog"])
    some = (labels != 1).numpy()
    y, X = names[labels][some], logits.numpy()[some]
    fitted = clone(calibrator).fit(X, y, classes=names)
    numbered = clone(calibrator).fit(X, labels.numpy()[some])
    np.testing.assert_array_equal(fitted.predict_proba(X), numbered.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X), names[numbered.predict(X)])
    turned = clone(calibrator).fit(X[:, ::-1], y, classes=names[::-1])
    np.testing.assert_allclose(turned.predict_proba(X[:, ::-1])[:, ::-1], fitted.predict_proba(X))
    with pytest.raises(InputError, match=r"y: .*; pass .* the labels of all columns as classes="):
        clone(calibrator).fit(X, y)
    with pytest.raises(InputError, match=r"y: expected labels among classes=.* got .*dog"):
        clone(calibrator).fit(X, y, classes=["bird", "cat", "cow"])
    with pytest.raises(InputError, match="classes: expected 3 distinct labels"):
        clone(calibrator).fit(X, y, classes=["bird", "dog", "dog"])


def test_logarithms_of_probabilities_are_of_the_kind_of_the_input() -> None:
    logits, labels = outputs(200, 3)
    for X in (logits, logits.numpy()):
        fitted = HistogramBinning().fit(X, labels)
        found = fitted.predict_log_proba(X)
        assert type(found) is type(X)
        np.testing.assert_allclose(np.exp(np.asarray(found)), fitted.predict_proba(X))
    certain = np.array([[1.0, 0.0]] * 3)
    fitted = Isotonic(outputs="probabilities").fit(certain, [0, 0, 0])
    assert fitted.predict_log_proba(certain)[0].tolist() == [0.0, -np.inf]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_pipeline_ends_in_a_calibrator(classes: int) -> None:
    X, y = make_classification(800, n_informative=6, n_classes=classes, random_state=0)
    names = np.array(["ape", "bee", "cow"])[y]
    model = LogisticRegression(C=100.0).fit(X[:400], names[:400])
    pipeline = make_pipeline(FunctionTransformer(model.decision_function), Temperature())
    pipeline.fit(X[400:600], names[400:600])
    direct = Temperature().fit(model.decision_function(X[400:600]), y[400:600])
    probs = pipeline.predict_proba(X[600:])
    assert probs.shape == (200, classes)
    np.testing.assert_allclose(probs, direct.predict_proba(model.decision_function(X[600:])))
    np.testing.assert_array_equal(pipeline.predict(X[600:]), model.predict(X[600:]))


@pytest.mark.parametrize("classes", [2, 3])
def test_stacking_calibrates_an_estimator_by_cross_validation(classes: int) -> None:
    X, y = make_classification(600, n_informative=8, n_classes=classes, random_state=0)
    names = np.array(["ape", "bee", "cow"])[y]
    stack = StackingClassifier(
        [("bayes", GaussianNB())],
        final_estimator=VectorScaling(outputs="probabilities"),
        stack_method="predict_proba",
    ).fit(X, names)
    held_out = cross_val_predict(GaussianNB(), X, names, method="predict_proba")
    direct = VectorScaling(outputs="probabilities").fit(held_out, names)
    expected = direct.predict_proba(GaussianNB().fit(X, names).predict_proba(X))
    np.testing.assert_allclose(stack.predict_proba(X), expected, atol=1e-6)
    assert set(stack.predict(X)) <= set(names)


def test_a_grid_search_chooses_a_penalty_by_likelihood() -> None:
    logits, labels = outputs(300)
    search = GridSearchCV(VectorScaling(), {"penalty": [1e-3, 1e4]}, scoring="neg_log_loss")
    assert search.fit(logits.numpy(), labels.numpy()).best_params_ == {"penalty": 1e-3}
