"""How tables are written: commas in cells, and columns without a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orbical.data import tables


def opened(folder: Path, name: str, text: str):
    (folder / name).write_text(text)
    return tables._read_table(folder / name)[0]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_are_found_in_any_row(tmp_path, separator):
    text = "x;y;label\n1;2;0\n1,5;2,5;1\n".replace(";", separator)
    frame = opened(tmp_path, "data.csv", text)
    assert frame["x"].tolist() == [1.0, 1.5]
    assert frame["y"].tolist() == [2.0, 2.5]


def test_commas_in_a_table_with_decimal_points_separate_no_decimals(tmp_path):
    frame = opened(tmp_path, "data.csv", "name;ids;x\na;1,2;1\nb;3,4;0.5\n")
    assert frame["ids"].tolist() == ["1,2", "3,4"]
    assert frame["x"].tolist() == [1.0, 0.5]


def test_only_nameless_columns_at_the_beginning_are_an_index(tmp_path):
    assert [*opened(tmp_path, "index.csv", ",a,label\n0,0.1,0\n1,0.2,1\n")] == ["a", "label"]
    assert [*opened(tmp_path, "names.csv", ",a,label\ns1,0.1,0\ns2,0.2,1\n")] == ["a", "label"]
    inside = opened(tmp_path, "inside.csv", "a,,label\n0.1,3,0\n0.2,4,1\n")
    assert len(inside.columns) == 3


def test_many_classes_do_not_excuse_a_sum_far_from_1():
    probs = np.full((2, 100), 0.01).round(2)
    probs[0, :40] = 0
    np.testing.assert_array_equal(tables._normalized_table_if_rounded(probs), probs)
