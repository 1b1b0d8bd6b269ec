"""Infrared spectra by tblite: what they are, that they repeat, do not turn, resume, what fails."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, Interrupted
from orbical_studies import data
from orbical_studies.data import infrared_spectra
from orbical_studies.data.infrared_spectra import broadened

pytest.importorskip("tblite", reason="tblite is not installed")
pytest.importorskip("ase", reason="ase is not installed")
from ase import Atoms
from ase.build import molecule

NAMES = ("H2O", "CO2", "H2CO")


def some(names=NAMES) -> dict[str, torch.Tensor]:
    inputs, _ = ob.datasets.molecules([molecule(name) for name in names])
    return {name: inputs[name] for name in ("pos", "numbers", "mask")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("spectra")


@pytest.fixture(scope="module")
def found(cache) -> infrared_spectra.Spectra:
    return data.spectra(some(), cache=cache, progress=False)


def test_lines_are_those_of_ase(found, tmp_path, monkeypatch):
    tblite = pytest.importorskip("tblite.ase")
    vibrations = pytest.importorskip("ase.vibrations")
    monkeypatch.chdir(tmp_path)
    for row, name in enumerate(NAMES):
        atoms = Atoms(molecule(name).numbers, found.relaxed[row][found.inputs["mask"][row]].numpy())
        atoms.calc = tblite.TBLite(method="GFN2-xTB", verbosity=0, accuracy=0.01)
        assert np.abs(atoms.get_forces()).max() < 3e-4  # eV/Å
        infrared = vibrations.Infrared(atoms, name=name, delta=0.003)
        infrared.run()
        frequencies, intensities = found.lines[row].numpy()
        every = infrared.get_frequencies()
        assert np.abs(every[: -len(frequencies)]).max() < 20  # shifts and turns
        np.testing.assert_allclose(frequencies, every[-len(frequencies) :].real, atol=1.0)
        expected = 42.2561 * infrared.intensities[-len(intensities) :]  # (D/Å)^2/u in km/mol
        np.testing.assert_allclose(intensities, expected, rtol=2e-3, atol=0.05)


def test_water_carbon_dioxide_and_formaldehyde_are_as_measured(found):
    """Harmonic GFN2-xTB beside measured fundamentals: within a tenth, as the method is known to."""
    measured = {
        "H2O": [1595, 3657, 3756],
        "CO2": [667, 667, 1333, 2349],
        "H2CO": [1167, 1249, 1500, 1746, 2782, 2843],
    }
    for row, name in enumerate(NAMES):
        np.testing.assert_allclose(found.lines[row][0], measured[name], rtol=0.12)
    carbon_dioxide = found.lines[1][1]
    assert carbon_dioxide[2] < 1e-3 * carbon_dioxide[3]  # the symmetric stretch has no dipole
    assert carbon_dioxide[0] == pytest.approx(float(carbon_dioxide[1]), rel=1e-3)


def test_a_spectrum_adds_up_to_its_intensities_and_peaks_at_its_lines(found):
    fine = np.arange(1.0, 60000.0)
    frequencies, intensities = found.lines[0].numpy()
    whole = broadened(frequencies, intensities, fine, 10.0)
    assert whole.sum() == pytest.approx(intensities.sum(), rel=1e-2)
    assert abs(fine[whole.argmax()] - frequencies[intensities.argmax()]) < 2
    assert found.spectra.shape == (3, 176)
    assert found.spectra.dtype == torch.float64
    expected = broadened(frequencies, intensities, found.wavenumbers.numpy(), 40.0)
    np.testing.assert_array_equal(found.spectra[0], expected)
    assert broadened(np.array([-10.0]), np.array([5.0])).max() == 0  # imaginary: no line


def test_other_grids_and_widths_need_no_new_calculation(cache, found, monkeypatch):
    monkeypatch.setattr(infrared_spectra, "spectrum_function", None)
    other = data.spectra(some(), None, [1000.0, 2000.0], 10.0, cache, progress=False)
    assert other.spectra.shape == (3, 2)
    assert torch.equal(other.lines[2], found.lines[2])
    assert torch.equal(other.relaxed, found.relaxed)


def test_two_calculations_agree_to_the_last_bit(found, tmp_path):
    turned_around = {name: values[[1, 0]] for name, values in some().items()}
    again = data.spectra(turned_around, cache=tmp_path, progress=False)
    assert torch.equal(again.spectra, found.spectra[[1, 0]])


def test_spectra_do_not_turn_with_their_molecules(tmp_path):
    inputs = some(("CH3CH2OH",))
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    turned = inputs | {"pos": inputs["pos"].double() @ torch.from_numpy(turn)}
    here = data.spectra(inputs, cache=tmp_path, progress=False)
    there = data.spectra(turned, cache=tmp_path, progress=False)
    height = float(here.spectra.max())
    assert float((here.spectra - there.spectra).abs().max()) < 1e-4 * height
    np.testing.assert_allclose(there.lines[0][0], here.lines[0][0], atol=0.05)


def test_a_stopped_calculation_goes_on_where_it_was(tmp_path, monkeypatch, found, stopping):
    stopped = stopping(infrared_spectra.spectrum_function, after=1)
    with monkeypatch.context() as patch:
        patch.setattr(infrared_spectra, "spectrum_function", stopped)
        with pytest.raises(Interrupted, match="spectra: stopped after 1 of 3 molecules"):
            data.spectra(some(), cache=tmp_path, progress=False)
    again = data.spectra(some(), cache=tmp_path, progress=False)
    assert torch.equal(again.spectra, found.spectra)


def test_what_fails_or_is_no_minimum_is_named_and_left_out(tmp_path, monkeypatch):
    inputs = some(("H2O", "CO2", "NH3"))
    inputs["pos"][1] = 0.0  # all atoms in one place
    flat = torch.tensor([[0.0, 0, 0], [1, 0, 0], [-0.5, 0.866, 0], [-0.5, -0.866, 0]])
    inputs["pos"][2, :4] = flat  # the saddle point at which ammonia turns over
    with pytest.warns(UserWarning, match=r"2 of 3 .*'O=C=O' \(Too close.*'N' \(no minimum: .*i cm"):
        found = data.spectra(inputs, ["O", "O=C=O", "N"], cache=tmp_path, progress=False)
    assert found.rows.tolist() == [0]
    assert [*found.failed] == [1, 2]
    assert len(found.spectra) == len(found.lines) == len(found.relaxed) == 1
    monkeypatch.setattr(infrared_spectra, "spectrum_function", None)  # nothing is tried again
    with pytest.warns(UserWarning, match=r"molecule 1 \(Too close.*molecule 2 \(no minimum"):
        again = data.spectra(inputs, cache=tmp_path, progress=False)
    assert again.failed == found.failed


def test_names_that_do_not_fit_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(infrared_spectra, "spectrum_function", None)
    with pytest.raises(InputError, match="names: expected 3, one a molecule, got 1"):
        data.spectra(some(), ["a"], cache=tmp_path)
