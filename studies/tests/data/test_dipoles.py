"""Dipole vectors by tblite: what they are, that they repeat, turn, resume, and what fails."""

from __future__ import annotations

import builtins
import importlib.metadata

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, Interrupted, MissingExtra
from orbical_studies import data
from orbical_studies.data import dipole_vectors
from orbical_studies.data.label_store import LabelStore

pytest.importorskip("tblite", reason="tblite is not installed")
pytest.importorskip("ase", reason="ase is not installed")
from ase.build import molecule

NAMES = ("H2O", "CH4", "CH3CH2OH", "NH3", "HCN")


def some(names=NAMES) -> dict[str, torch.Tensor]:
    inputs, _ = ob.datasets.molecules([molecule(name) for name in names])
    return {name: inputs[name] for name in ("pos", "numbers", "mask")}


def counted(monkeypatch) -> list[int]:
    """Count the molecules that are calculated."""
    sizes: list[int] = []
    real = dipole_vectors.dipole_function

    def counting():
        calculate = real()
        return lambda numbers, pos: sizes.append(len(numbers)) or calculate(numbers, pos)

    monkeypatch.setattr(dipole_vectors, "dipole_function", counting)
    return sizes


def test_dipoles_are_those_of_the_ase_calculator(tmp_path):
    tblite = pytest.importorskip("tblite.ase")
    found = data.dipoles(some(), cache=tmp_path, progress=False)
    assert found.vectors.dtype == torch.float64
    for name, vector in zip(NAMES, found.vectors, strict=True):
        one = molecule(name)
        one.calc = tblite.TBLite(method="GFN2-xTB", verbosity=0)
        expected = one.get_dipole_moment() / 0.20819434  # e Å in a debye
        np.testing.assert_allclose(vector, expected, atol=1e-4)
    assert float(found.vectors[1].norm()) < 1e-3  # methane has none
    assert found.rows.tolist() == [0, 1, 2, 3, 4]
    assert found.failed == {}


def test_two_calculations_agree_to_the_last_bit(tmp_path):
    first = data.dipoles(some(), cache=tmp_path / "one", progress=False)
    turned_around = {name: values.flip(0) for name, values in some().items()}
    second = data.dipoles(turned_around, cache=tmp_path / "two", progress=False)
    assert torch.equal(first.vectors, second.vectors.flip(0))


def test_dipoles_turn_with_their_molecules(tmp_path):
    def labelled(batch):
        return data.dipoles(batch, cache=tmp_path, progress=False).vectors

    task = ob.tasks.Regression(
        {"pos": ob.actions.Points(), "numbers": ob.actions.Rows(), "mask": ob.actions.Rows()},
        "vector",
    )
    ob.testing.assert_equivariant(
        labelled, some(), group="rotations3d:6", task=task, tolerance=1e-5
    )


def test_padding_and_other_positions_in_it_do_not_count(tmp_path, monkeypatch):
    first = data.dipoles(some(), cache=tmp_path, progress=False)
    sizes = counted(monkeypatch)
    inputs = some()
    inputs["pos"][~inputs["mask"]] = 7.0
    again = data.dipoles(inputs, cache=tmp_path, progress=False)
    assert torch.equal(first.vectors, again.vectors)
    assert sizes == []


def test_only_what_is_new_is_calculated(tmp_path, monkeypatch):
    sizes = counted(monkeypatch)
    whole = some()
    data.dipoles(
        {name: values[:3] for name, values in whole.items()}, cache=tmp_path, progress=False
    )
    assert sizes == [3, 5, 9]
    found = data.dipoles(whole, cache=tmp_path, progress=False)
    assert sizes == [3, 5, 9, 4, 3]
    moved = whole | {"pos": whole["pos"] * 1.01}
    other = data.dipoles(moved, cache=tmp_path, progress=False)
    assert len(sizes) == 10
    assert not torch.allclose(other.vectors, found.vectors, atol=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == ["dipoles-gfn2-xtb.npz"]


def test_a_stopped_calculation_goes_on_where_it_was(tmp_path, monkeypatch, stopping):
    stopped = stopping(dipole_vectors.dipole_function, after=2)
    with monkeypatch.context() as patch:
        patch.setattr(dipole_vectors, "dipole_function", stopped)
        with pytest.raises(Interrupted, match="stopped after 2 of 5 molecules, which are kept"):
            data.dipoles(some(), cache=tmp_path, progress=False)
    sizes = counted(monkeypatch)
    found = data.dipoles(some(), cache=tmp_path, progress=False)
    assert sizes == [9, 4, 3]
    fresh = data.dipoles(some(), cache=tmp_path / "fresh", progress=False)
    assert torch.equal(found.vectors, fresh.vectors)


def test_two_that_write_at_once_keep_both_works(tmp_path):
    path = tmp_path / "dipoles-gfn2-xtb.npz"
    one, two = LabelStore(path, "tblite"), LabelStore(path, "tblite")
    one.known[b"a" * 16] = np.ones(3)
    two.known[b"b" * 16] = np.zeros(3)
    one.save()
    two.save()
    assert {*LabelStore(path, "tblite").known} == {b"a" * 16, b"b" * 16}


def test_a_molecule_that_does_not_converge_is_named_and_left_out(tmp_path):
    inputs = some(("H2O", "CO2", "NH3"))
    inputs["pos"][1] = 0.0  # all atoms in one place
    with pytest.warns(UserWarning, match=r"1 of 3 molecules left out: 'O=C=O' \(Too close"):
        found = data.dipoles(inputs, ["O", "O=C=O", "N"], cache=tmp_path, progress=False)
    assert found.rows.tolist() == [0, 2]
    assert [*found.failed] == [1]
    assert found.vectors.shape == (2, 3)
    assert torch.equal(found.inputs["numbers"], inputs["numbers"][[0, 2]])
    with pytest.warns(UserWarning, match=r"left out: molecule 1 \("):
        data.dipoles(inputs, cache=tmp_path, progress=False)


def test_many_failures_are_counted_and_the_first_named(tmp_path):
    inputs = some(("H2O",) * 8)
    inputs["pos"][1:] = 0.0
    with pytest.warns(UserWarning, match=r"7 of 8 .*molecule 5 \(.*\) and 2 more"):
        found = data.dipoles(inputs, cache=tmp_path, progress=False)
    assert found.vectors.shape == (1, 3)


def without_tblite(monkeypatch) -> None:
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.startswith("tblite"):
            raise ImportError(name)
        return real(name, *rest, **more)

    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr(importlib.metadata, "version", unknown)


def test_without_tblite_what_is_stored_is_enough_and_the_extra_is_named(tmp_path, monkeypatch):
    found = data.dipoles(some(), cache=tmp_path, progress=False)
    without_tblite(monkeypatch)
    again = data.dipoles(some(), cache=tmp_path, progress=False)
    assert torch.equal(found.vectors, again.vectors)
    with pytest.raises(MissingExtra, match=r"'tblite'.*orbical\[chemistry\]"):
        data.dipoles(some(), cache=tmp_path / "empty", progress=False)


def test_labels_of_another_release_are_not_mixed_in(tmp_path, monkeypatch):
    data.dipoles(some(), cache=tmp_path, progress=False)
    sizes = counted(monkeypatch)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0")
    data.dipoles(some(), cache=tmp_path, progress=False)
    assert len(sizes) == 5


def test_progress_is_shown_on_the_error_stream(tmp_path, capsys):
    data.dipoles(some(), cache=tmp_path)
    shown = capsys.readouterr()
    assert "5/5" in shown.err
    assert shown.out == ""


def test_what_is_no_free_molecule_is_refused(tmp_path):
    with pytest.raises(InputError, match="names: 2 given for 5 molecules"):
        data.dipoles(some(), ["a", "b"], cache=tmp_path)
    with pytest.raises(InputError, match="molecule 0 is periodic"):
        data.dipoles(some() | {"pbc": torch.ones(5, 3)}, cache=tmp_path)
    empty = some()["numbers"]
    empty[2] = 0
    with pytest.raises(InputError, match="molecule 2 has no atoms"):
        data.dipoles({"pos": some()["pos"], "numbers": empty}, cache=tmp_path)
    with pytest.raises(InputError, match="a dictionary with pos"):
        data.dipoles({"numbers": some()["numbers"]}, cache=tmp_path)
