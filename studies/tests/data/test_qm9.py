"""QM9: the package's tables as arrays, its splits and its cache; and the package without import."""

from __future__ import annotations

import ast
import csv
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.errors import InputError, MissingExtra
from orbical_studies import data
from orbical_studies.data import qm9_molecules
from orbical_studies.data.qm9_molecules import ATOM_ENERGIES, HARTREE, PROPERTIES, SPLITS

HEADER = (
    "XYZ_file,Index,SMILES,InChi,N_atoms,Stoichiometry,Elements,XYZ_Ang,Mulliken_pop,"
    "Harmonic_Freq_cmi,RotA_GHz,RotB_GHz,RotC_GHz,Dipole_debye,Polarizability_bohr3,HOMO_au,"
    "LUMO_au,HOMO_LUMO_gap_au,R2_bohr2,ZPVE_au,InternalEnergy_0K_au,InternalEnergy_298K_au,"
    "Enthalphy_298K_au,GibbsFreeEnergy_298K_au,Heatcapacity_Cv_cal_mol_K"
)


def row(index: int) -> str:
    """A made-up molecule with `2 + index % 4` atoms, whose numbers all tell its index."""
    size = 2 + index % 4
    elements = ["'O'", *["'H'"] * (size - 1)]
    positions = [f"[{index}.,{atom}.5,-0.25]" for atom in range(size)]
    scalars = [f"{index + column / 100}" for column in range(15)]
    return (
        f'"made_{index:06}.xyz",{index},"C,{index}","InChI=1S/C,{index}",{size},"[1,0,0,1,0]",'
        f'"[{",".join(elements)}]","[{",".join(positions)}]","[0.]","[1.]",{",".join(scalars)}'
    )


@pytest.fixture
def made_up(tmp_path, monkeypatch) -> Path:
    """A package of 60 molecules in place of the real one, which must not be imported."""
    data = tmp_path / "packages" / "qm9pack" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise ImportError('this package was imported')")
    numbers = [index for index in range(1, 66) if index % 13]  # some are missing, as in QM9
    for part in range(3):
        rows = [HEADER, *(row(index) for index in numbers[20 * part : 20 * part + 20])]
        (data / f"qm9_part{part + 1}.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    return data


def test_every_number_is_that_of_its_molecule(made_up, tmp_path):
    found = data.qm9("all", cache=tmp_path / "cache")
    index = found.identifiers.double()
    assert sorted(found.identifiers.tolist()) == [i for i in range(1, 66) if i % 13]
    assert found.inputs["mask"].sum(1).tolist() == (2 + found.identifiers % 4).tolist()
    assert found.inputs["pos"].shape == (60, 5, 3)
    for one in range(60):
        atoms = int(found.inputs["mask"][one].sum())
        expected = [[float(index[one]), atom + 0.5, -0.25] for atom in range(atoms)]
        assert found.inputs["pos"][one, :atoms].tolist() == expected
        assert found.inputs["numbers"][one].tolist() == [8, *[1] * (atoms - 1), *[0] * (5 - atoms)]
    assert not found.inputs["pos"][~found.inputs["mask"]].any()
    assert found.smiles == tuple(f"C,{i}" for i in found.identifiers.tolist())
    assert torch.allclose(found.properties["dipole"], index + 0.03)
    assert torch.allclose(found.properties["cv"], index + 0.14)
    assert torch.allclose(found.properties["gap"], HARTREE * (index + 0.07))


def test_atomisation_energies_are_those_less_the_free_atoms(made_up, tmp_path):
    found = data.qm9("all", ["g", "g_atom"], cache=tmp_path / "cache")
    assert [*found.properties] == ["g", "g_atom"]
    hydrogens = found.inputs["mask"].sum(1) - 1
    atoms = -75.079532 + hydrogens * -0.510927
    expected = found.properties["g"] - HARTREE * atoms.double()
    assert torch.allclose(found.properties["g_atom"], expected)


def test_splits_are_seeded_disjoint_and_complete(made_up, tmp_path):
    cache = tmp_path / "cache"
    parts = {name: data.qm9(name, ["gap"], cache=cache).identifiers for name in SPLITS}
    whole = data.qm9("all", ["gap"], cache=cache).identifiers
    assert torch.equal(torch.cat([*parts.values()]), whole)
    assert [len(part) for part in parts.values()] == [50, 5, 5]
    assert len(whole.unique()) == 60
    other = data.qm9("all", ["gap"], seed=1, cache=cache).identifiers
    assert not torch.equal(other, whole)
    assert torch.equal(other.sort().values, whole.sort().values)
    with np.load(cache / "qm9-splits-1.npz") as stored:
        assert stored["test"].tolist() == other[55:].tolist()


def test_a_count_gives_the_first_of_the_split_and_reads_no_more(made_up, tmp_path, monkeypatch):
    parsed = []
    whole = qm9_molecules._parsed
    monkeypatch.setattr(
        qm9_molecules,
        "_parsed",
        lambda lines, shown: parsed.append(len(lines)) or whole(lines, shown),
    )
    few = data.qm9("train", count=7, cache=tmp_path / "cache")
    assert parsed == [7]
    assert not (tmp_path / "cache" / "qm9.npz").exists()
    all_of_it = data.qm9("train", cache=tmp_path / "cache")
    assert parsed == [7, 60]
    again = data.qm9("train", count=7, cache=tmp_path / "cache")
    assert parsed == [7, 60]
    for one in (few, again):
        assert one.identifiers.tolist() == all_of_it.identifiers[:7].tolist()
        assert one.smiles == all_of_it.smiles[:7]
        assert torch.equal(one.properties["u0"], all_of_it.properties["u0"][:7])
        size = one.inputs["pos"].shape[1]
        assert torch.equal(one.inputs["pos"], all_of_it.inputs["pos"][:7, :size])


def absent(monkeypatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "qm9pack" else real(name)
    )


def test_the_cache_is_enough_without_the_package(made_up, tmp_path, monkeypatch):
    before = data.qm9("test", cache=tmp_path / "cache")
    absent(monkeypatch)
    after = data.qm9("test", cache=tmp_path / "cache")
    assert torch.equal(before.inputs["pos"], after.inputs["pos"])
    assert before.smiles == after.smiles


def test_without_package_and_cache_the_extra_is_named(tmp_path, monkeypatch):
    absent(monkeypatch)
    with pytest.raises(MissingExtra, match=r"'qm9' needs .*'qm9pack'.*orbical\[chemistry\]"):
        data.qm9(cache=tmp_path)


def test_a_broken_cache_or_one_of_other_files_is_made_anew(made_up, tmp_path):
    cache = tmp_path / "cache"
    before = data.qm9("all", ["gap"], cache=cache)
    (cache / "qm9.npz").write_bytes((cache / "qm9.npz").read_bytes()[:500])
    (cache / "qm9-splits-0.npz").write_text("no arrays")
    assert torch.equal(data.qm9("all", ["gap"], cache=cache).identifiers, before.identifiers)
    with (made_up / "qm9_part3.csv").open("a") as file:
        file.write(row(66) + "\n")
    assert len(data.qm9("all", ["gap"], cache=cache).identifiers) == 61
    assert [path.name for path in sorted(cache.iterdir())] == ["qm9-splits-0.npz", "qm9.npz"]


def test_reading_the_whole_set_shows_its_progress_on_the_error_stream(made_up, tmp_path, capsys):
    data.qm9("test", count=2, cache=tmp_path / "cache")
    assert capsys.readouterr() == ("", "")
    data.qm9("test", cache=tmp_path / "cache")
    shown = capsys.readouterr()
    assert "100%" in shown.err
    assert shown.out == ""


def test_the_cache_follows_the_environment(made_up, tmp_path, monkeypatch):
    monkeypatch.setenv("ORBICAL_CACHE", str(tmp_path / "here"))
    data.qm9("test", ["gap"], count=1)
    assert (tmp_path / "here" / "qm9-splits-0.npz").is_file()
    monkeypatch.delenv("ORBICAL_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    data.qm9("test", ["gap"], count=1)
    assert (tmp_path / "there" / "orbical" / "qm9-splits-0.npz").is_file()


def test_arguments_that_cannot_be_used_are_named(made_up, tmp_path):
    with pytest.raises(InputError, match="split: unknown name 'tests'; did you mean 'test'"):
        data.qm9("tests")
    with pytest.raises(InputError, match="properties: unknown name 'lump'; did you mean 'lumo'"):
        data.qm9(properties=["gap", "lump"])
    with pytest.raises(InputError, match="count: expected at most 5, the split's size, got 6"):
        data.qm9(count=6, cache=tmp_path / "cache")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cache: expected a folder, got the file"):
        data.qm9(cache=tmp_path / "file")
    with pytest.raises(InputError, match="cache: expected a folder that can be written to"):
        data.qm9(cache=tmp_path / "file" / "below")


def test_tables_that_are_broken_are_named(made_up, tmp_path):
    table = made_up / "qm9_part1.csv"
    good = table.read_text()
    table.write_text(good.replace("Dipole_debye", "Dipole"))
    with pytest.raises(
        InputError, match=r"expected the columns of version 1.0.3 in 'qm9_part1.csv'"
    ):
        data.qm9(cache=tmp_path / "cache")
    table.unlink()
    with pytest.raises(InputError, match=r"there is no file 'qm9_part1.csv'"):
        data.qm9(cache=tmp_path / "cache")
    assert not (tmp_path / "cache" / "qm9.npz").exists()


def test_free_atoms_follow_from_their_ground_energies_by_the_ideal_gas():
    """Sackur and Tetrode, with the spin's degeneracy, give H and G of an atom from U at 0 K."""
    boltzmann, temperature, pressure, planck = 1.380649e-23, 298.15, 101325.0, 6.62607015e-34
    hartree, dalton = 4.3597447222071e-18, 1.66053906660e-27
    thermal = boltzmann * temperature
    kinds = {1: (1.00783, 2), 6: (12.0, 3), 7: (14.00307, 4), 8: (15.99491, 3), 9: (18.9984, 2)}
    for number, (mass, spins) in kinds.items():
        waves = (2 * math.pi * mass * dalton * thermal / planck**2) ** 1.5
        entropy = math.log(waves * thermal / pressure) + 2.5 + math.log(spins)
        ground = ATOM_ENERGIES["InternalEnergy_0K_au"][number]
        rises = {
            "InternalEnergy_298K_au": 1.5,
            "Enthalphy_298K_au": 2.5,
            "GibbsFreeEnergy_298K_au": 2.5 - entropy,
        }
        for column, factor in rises.items():
            expected = ground + factor * thermal / hartree
            assert ATOM_ENERGIES[column][number] == pytest.approx(expected, abs=3e-6)


needs_package = pytest.mark.skipif(
    importlib.util.find_spec("qm9pack") is None, reason="qm9pack is not installed"
)


@needs_package
def test_real_molecules_are_those_of_the_tables(tmp_path):
    found = data.qm9("test", count=40, cache=tmp_path)
    wanted = {int(index): place for place, index in enumerate(found.identifiers)}
    spec = importlib.util.find_spec("qm9pack")
    seen = 0
    for part in (1, 2, 3):
        path = Path(spec.submodule_search_locations[0]) / "data" / f"qm9_part{part}.csv"
        with path.open(newline="") as file:
            lines = (line for line in file if line[0] != '"' or _number(line) in wanted)
            for entry in csv.DictReader(lines):
                place = wanted[int(entry["Index"])]
                atoms = int(entry["N_atoms"])
                pos = torch.tensor(ast.literal_eval(entry["XYZ_Ang"]))
                assert torch.equal(found.inputs["pos"][place, :atoms], pos)
                assert int(found.inputs["mask"][place].sum()) == atoms
                assert found.smiles[place] == entry["SMILES"]
                for name, one in PROPERTIES.items():
                    if not name.endswith("_atom"):
                        expected = float(entry[one.column]) * one.factor
                        assert float(found.properties[name][place]) == pytest.approx(expected)
                seen += 1
    assert seen == 40
    # What holds for every bound molecule, whatever its table says.
    assert bool((found.properties["u0_atom"] < -10).all())
    difference = found.properties["lumo"] - found.properties["homo"] - found.properties["gap"]
    assert float(difference.abs().max()) < 0.004  # four decimals in hartree
    assert [len(range(*SPLITS[name])) for name in SPLITS] == [110_000, 10_000, 10_831]


def _number(line: str) -> int:
    return int(line.split(",", 2)[1])


@needs_package
def test_rotational_constants_follow_from_the_geometry(tmp_path):
    """An independent check that positions, elements and properties belong together."""
    found = data.qm9("test", ["rotational_a", "rotational_c"], count=30, cache=tmp_path)
    masses = torch.zeros(10, dtype=torch.float64)
    masses[[1, 6, 7, 8, 9]] = torch.tensor(
        [1.00783, 12.0, 14.00307, 15.99491, 18.9984], dtype=torch.float64
    )
    mass, pos = masses[found.inputs["numbers"]], found.inputs["pos"].double()
    centred = pos - (mass[..., None] * pos).sum(1, keepdim=True) / mass.sum(1)[:, None, None]
    second = torch.einsum("na,nai,naj->nij", mass, centred, centred)
    trace = second.diagonal(dim1=1, dim2=2).sum(1)
    inertia = trace[:, None, None] * torch.eye(3) - second
    constants = 505.379008 / torch.linalg.eigvalsh(inertia)  # GHz, of dalton Å^2
    assert torch.allclose(constants[:, 0], found.properties["rotational_a"], rtol=1e-3)
    assert torch.allclose(constants[:, 2], found.properties["rotational_c"], rtol=1e-3)


@needs_package
@pytest.mark.slow
def test_the_whole_set_is_read_and_kept(tmp_path):
    found = data.qm9("all", ["rotational_a"], cache=tmp_path)
    assert len(found.identifiers) == 130_831
    assert found.inputs["mask"].sum(1).max() == 29
    assert found.properties["rotational_a"].sort().values[-3] < 800
    assert int((found.properties["rotational_a"] == 0).sum()) == 9
    assert (tmp_path / "qm9.npz").stat().st_size < 50e6
