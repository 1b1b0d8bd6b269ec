"""Tables: signs and exchanges of columns by name, against the same done by hand in pandas."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import orbical as ob
from orbical.errors import InputError
from orbical.groups import columns, parse, product


def table() -> tuple[pd.DataFrame, pd.Series]:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "dx": random.normal(size=120),
            "dy": random.normal(size=120),
            "count": random.integers(0, 9, 120),
            "home": random.choice(["north", "south"], 120),
            "away": pd.Series(random.choice(["south", "west"], 120)),
            "fair": random.random(120) > 0.5,
        }
    )
    return frame, (frame["dx"] + frame["dy"] ** 2 + (frame["home"] == "north") > 1).astype(int)


def pipeline() -> object:
    words = (OneHotEncoder(handle_unknown="ignore"), ["home", "away"])
    numbers = (StandardScaler(), ["dx", "dy", "count", "fair"])
    return make_pipeline(make_column_transformer(words, numbers), LogisticRegression())


def by_hand(frame: pd.DataFrame, change: str) -> pd.DataFrame:
    new = frame.copy()
    for step in change.split(","):
        if step.startswith("-"):
            new[step[1:]] = -frame[step[1:]]
        else:
            one, other = step.split("=")
            new[one], new[other] = frame[other], frame[one]
    return new


@pytest.mark.parametrize(
    "change", ["-dx", "-dx,-dy", "dx=dy", "home=away", "dx=dy,home=away", "-count"]
)
def test_a_pipeline_sees_what_it_would_see_by_hand(change):
    frame, labels = table()
    model = pipeline().fit(frame, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of feature names that are missing
        scan = ob.scan(model, (frame, labels), group=f"columns:{change}", task="classification",
                       progress=False)  # fmt: skip
    for place, seen in enumerate((frame, by_hand(frame, change))):
        expected = model.predict_proba(seen)[np.arange(len(seen)), labels]
        np.testing.assert_array_equal(scan.data["score"].values[0, :, place], expected)


def test_models_receive_the_types_that_were_given():
    frame, labels = table()
    frame["home"] = frame["home"].astype("category")
    frame.loc[3, "away"] = None
    seen = []

    def model(given):
        seen.append(given)
        return np.zeros((len(given), 2))

    ob.scan(model, (frame, labels), group="columns:-dx", task="classification", progress=False)
    assert [*seen[0].dtypes] == [*frame.dtypes]
    pd.testing.assert_frame_equal(seen[0][:2], frame[:2])
    assert not frame["away"][:120].notna().all()


def test_a_network_of_arrays_and_an_estimator_without_names_take_the_numbers():
    frame, labels = table()
    numbers = frame[["dx", "dy", "count"]]
    plain = LogisticRegression().fit(numbers.to_numpy(), labels)
    net = torch.nn.Linear(3, 2)
    scan = ob.scan({"plain": plain, "net": net}, (numbers, labels), group="columns:-dx",
                   task="classification", progress=False)  # fmt: skip
    flipped = numbers.to_numpy() * [-1, 1, 1]
    np.testing.assert_allclose(
        scan.data["score"].values[0, :, 1],
        plain.predict_proba(flipped)[np.arange(120), labels], rtol=1e-6,
    )  # fmt: skip
    expected = net(torch.tensor(flipped, dtype=torch.float32)).softmax(1).detach()
    expected = expected[torch.arange(120), torch.tensor(labels.to_numpy())]
    np.testing.assert_allclose(scan.data["score"].values[1, :, 1], expected, rtol=1e-4)


def test_moves_generate_a_group_whose_products_are_those_of_matrices():
    group = columns("x=-y", "-z", "a=b=c")
    names = sorted("xyzabc")

    def matrix(row):
        found = np.zeros((6, 6))
        for place, word in enumerate(row):
            found[place, names.index(word.lstrip("-"))] = -1 if word[0] == "-" else 1
        return found

    each = [matrix(row) for row in group.parts["columns"]]
    assert len(group) == 4 * 2 * 3
    assert group.closed
    for first, second in itertools.product(range(len(group)), repeat=2):
        made = group[[second]].compose(group[[first]]).parts["columns"][0]
        np.testing.assert_array_equal(matrix(made), each[second] @ each[first])
    for place, back in enumerate(group.inverse().parts["columns"]):
        np.testing.assert_array_equal(matrix(back) @ each[place], np.eye(6))


def test_texts_and_products_of_columns():
    assert str(parse("columns:-dx,-dy:a=b")) == "columns:-dx,-dy:a=b"
    assert [parse("columns:-x:x=y").name(k) for k in (0, 1, 3)] == [
        "change none", "change -x", "change x=-y, y=x",
    ]  # fmt: skip
    assert str(columns(["-x", "x=y"])) == str(columns("-x", "x=y"))
    both = columns("-x").compose(columns("a=b"))
    assert both.parts["columns"].tolist() == [["a", "b", "x"], ["b", "a", "-x"]]
    assert len(product(columns("-x"), parse("sign"))) == 4


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("columns:-dz", "unknown name 'dz'; did you mean 'dy'"),
        ("columns:-home", "'home', a column of others"),
        ("columns:-fair", "'fair', a column of others"),
        ("columns:home=dx", "exchanges of columns of the same kind"),
        ("columns:dx", "such as '-x' or 'x=y'"),
        ("columns:dx=dx", "different columns"),
        ("columns:-dx,dx=dy", "different columns"),
        ("columns", "a sign or an exchange"),
        ("rotations:4", r"moves nothing of this data \(Columns"),
    ],
)
def test_what_cannot_be_done_is_refused(group, words):
    with pytest.raises(InputError, match=words):
        ob.scan(pipeline().fit(*table()), table(), group=group, task="classification")


def test_a_table_is_tested_for_equivariance_as_it_is():
    frame, labels = table()
    even = LogisticRegression().fit(frame[["dy", "count"]], labels)
    ob.testing.assert_equivariant(
        lambda given: even.predict_proba(given[["dy", "count"]]), frame, group="columns:-dx",
        task=ob.tasks.Classification(outputs="probabilities"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        ob.testing.assert_equivariant(
            pipeline().fit(frame, labels), frame, group="columns:-dx", task="classification"
        )


def test_names_of_columns_and_rows_may_be_numbers_and_counts_get_a_sign():
    frame = pd.DataFrame({0: [1.0, 2.0], 1: np.array([3, 4], np.uint8)}, index=["a", "b"])
    seen = []

    def model(given):
        seen.append(given)
        return np.zeros((len(given), 2))

    scan = ob.scan(model, (frame, [0, 1]), group="columns:-0,-1", task="classification",
                   progress=False)  # fmt: skip
    assert scan.names == ["a", "b"]
    assert seen[0].iloc[-1].tolist() == [-2.0, -4.0]
