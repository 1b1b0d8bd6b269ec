"""Labels by a function: what is computed, kept, resumed, left out and refused."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.errors import InputError, Interrupted
from orbical_studies.data.quantum_labels import Labelled, LabelStore, labelled

SIZES = (3, 5, 4)


def some() -> dict[str, torch.Tensor]:
    """Make three molecules of hydrogen, padded to five atoms."""
    mask = torch.arange(5) < torch.tensor(SIZES)[:, None]
    pos = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(0))
    return {"pos": pos, "numbers": mask.long(), "mask": mask}


class Sums:
    """Labels that are the sum of the positions; keeps the sizes of the molecules it computed."""

    def __init__(self, stop_after: int = 99) -> None:
        self.sizes: list[int] = []
        self.stop_after = stop_after

    def __call__(self, numbers: np.ndarray, positions: np.ndarray) -> np.ndarray:
        if len(self.sizes) == self.stop_after:
            raise KeyboardInterrupt
        if not positions.any():
            raise RuntimeError("all atoms in one place")
        self.sizes.append(len(numbers))
        return positions.sum(0)


def label(function: Sums, inputs: dict, cache: Path, names: list[str] | None = None) -> Labelled:
    return labelled("sums", lambda: function, inputs, names, cache, progress=False)


def test_labels_are_those_of_the_atoms_without_the_padding(tmp_path: Path) -> None:
    inputs = some()
    found = label(Sums(), inputs, tmp_path)
    for row, size in enumerate(SIZES):
        assert np.allclose(found.labels[row], inputs["pos"][row, :size].double().sum(0))
    inputs["pos"][~inputs["mask"]] = 7.0
    again = Sums()
    assert np.array_equal(label(again, inputs, tmp_path).labels, found.labels)
    assert again.sizes == []


def test_only_what_is_new_is_computed(tmp_path: Path) -> None:
    function, inputs = Sums(), some()
    label(function, {name: values[:2] for name, values in inputs.items()}, tmp_path)
    label(function, inputs, tmp_path)
    assert function.sizes == [3, 5, 4]
    label(function, inputs | {"pos": inputs["pos"] * 1.01}, tmp_path)
    assert len(function.sizes) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["sums-gfn2-xtb.npz"]


def test_a_stopped_calculation_continues_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="stopped after 2 of 3 molecules, which are kept"):
        label(Sums(stop_after=2), some(), tmp_path)
    function = Sums()
    found = label(function, some(), tmp_path)
    assert function.sizes == [4]
    assert np.array_equal(found.labels, label(Sums(), some(), tmp_path / "fresh").labels)


def test_two_that_write_at_once_keep_both_works(tmp_path: Path) -> None:
    path = tmp_path / "sums.npz"
    one, two = LabelStore(path, "tblite"), LabelStore(path, "tblite")
    one.known[b"a" * 16] = np.ones(3)
    two.known[b"b" * 16] = np.zeros(3)
    one.save()
    two.save()
    assert {*LabelStore(path, "tblite").known} == {b"a" * 16, b"b" * 16}


def test_a_molecule_that_fails_is_named_and_left_out(tmp_path: Path) -> None:
    inputs = some()
    inputs["pos"][1] = 0.0
    inputs["pos"][2, 0] = torch.inf
    with pytest.warns(UserWarning, match=r"2 of 3 .* 'B' \(all atoms .*\), 'C' \(the label is NaN"):
        found = label(Sums(), inputs, tmp_path, ["A", "B", "C"])
    assert found.rows.tolist() == [0]
    assert [*found.failed] == [1, 2]
    assert torch.equal(found.inputs["numbers"], inputs["numbers"][:1])
    with pytest.warns(UserWarning, match=r"left out: molecule 1 \("):
        label(Sums(), inputs, tmp_path)


def test_labels_of_another_release_are_not_mixed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label(Sums(), some(), tmp_path)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0")
    function = Sums()
    label(function, some(), tmp_path)
    assert len(function.sizes) == 3


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names: expected 3, one a molecule, got 2"):
        label(Sums(), some(), tmp_path, ["a", "b"])
    inputs = some()
    inputs["mask"][2] = False
    with pytest.raises(InputError, match="got none in molecule 2"):
        label(Sums(), inputs, tmp_path)
