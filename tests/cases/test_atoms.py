"""Interatomic potentials along rotations: ASE calculators, an e3nn network and broken ones."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface import open_session
from orbical.nero import violations

ase = pytest.importorskip("ase", reason="ase is not installed")
from ase.build import bulk, molecule  # noqa: E402
from ase.calculators.calculator import Calculator, all_changes  # noqa: E402
from ase.calculators.emt import EMT  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402


def few():
    return [molecule(name) for name in ("H2O", "CH4", "CH3CH2OH")]


class PullsAlongX(EMT):
    """A deliberately broken potential: forces and energy know where x is."""

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"] = self.results["forces"] + [0.01, 0.0, 0.0]
        self.results["forces"][-1, 0] += 0.1
        self.results["energy"] += 0.002 * atoms.positions[:, 0].max()


def audit(models, molecules, group="rotations3d:16", **options):
    task = options.pop("task", "atoms")
    return ob.scan(models, molecules, group=group, task=task, progress=False, **options)


def test_tight_binding_is_equivariant_to_a_millionth_in_every_quantity():
    tblite = pytest.importorskip("tblite.ase", reason="tblite is not installed")
    task = ob.tasks.Atoms(["energy", "forces", "dipole"])
    model = tblite.TBLite(method="GFN2-xTB", verbosity=0)
    scan = audit({"tb": model}, few(), "rotations3d:8", task=task)
    for quantity in ("energy", "forces", "dipole"):
        assert float(scan.data[f"{quantity}_vs_consensus"].max()) < 1e-6
    water = molecule("H2O")
    water.calc = tblite.TBLite(method="GFN2-xTB", verbosity=0)
    assert float(scan.data["consensus_energy"][0, 0]) == pytest.approx(
        water.get_potential_energy(), abs=1e-6
    )
    np.testing.assert_allclose(
        scan.data["consensus_dipole"][0, 0], water.get_dipole_moment(), atol=1e-6
    )


def test_a_broken_potential_is_found_with_its_molecule_atom_and_rotation():
    scan = audit({"emt": EMT(), "broken": PullsAlongX()}, few())
    by_hand = []
    for one in few():
        forces = []
        for turn in scan.group.linear("space"):
            turned = one.copy()
            turned.positions = one.positions @ turn.T
            turned.calc = PullsAlongX()
            forces.append(turned.get_forces() @ turn)  # turned back
        apart = np.array(forces) - np.mean(forces, 0)
        by_hand.append(np.linalg.norm(apart, axis=-1))
    largest = [values.max() for values in by_hand]
    worst = int(np.argmax(largest))
    element, atom = np.unravel_index(by_hand[worst].argmax(), by_hand[worst].shape)
    found = {(one.model, one.quantity): one for one in violations(scan)}
    assert found["emt", "forces"].largest < 1e-12
    broken = found["broken", "forces"]
    assert broken.largest == pytest.approx(largest[worst], rel=1e-5)
    assert broken.unit == "eV/Å"
    np.testing.assert_allclose(
        by_hand[broken.sample][broken.element].max(), largest[worst], rtol=1e-5
    )
    assert int(by_hand[broken.sample][broken.element].argmax()) == int(broken.atom.split()[-1])
    assert broken.molecule == ["0: H2O", "1: CH4", "2: C2H6O"][broken.sample]
    stored = scan.data["atom_vs_consensus"].sel(model="broken").values
    np.testing.assert_allclose(stored[worst, element, atom], largest[worst], rtol=1e-5)
    assert np.isnan(stored[0, :, 3:]).all()  # padding is no atom
    assert found["broken", "energy"].largest > 1e-4


def test_scores_are_the_usual_errors_where_the_truth_is_known():
    truth = few()
    for one in truth:
        one.calc = EMT()
        one.get_forces()
    scan = audit({"broken": PullsAlongX()}, truth)
    turn = scan.group.linear("space")[5]
    turned = truth[2].copy()
    turned.positions = truth[2].positions @ turn.T
    turned.calc = PullsAlongX()
    rmse = np.sqrt(np.mean((turned.get_forces() - truth[2].get_forces() @ turn.T) ** 2))
    assert float(scan.data["score"][0, 2, 5]) == pytest.approx(rmse, rel=1e-5)
    off = abs(turned.get_potential_energy() - truth[2].get_potential_energy())
    assert float(scan.data["energy_vs_truth"][0, 2, 5]) == pytest.approx(off, rel=1e-4)
    each = float(scan.data["energy_per_atom_vs_truth"][0, 2, 5])
    assert each == pytest.approx(off / 9, rel=1e-4)
    metric = open_session(scan).scan_view().metrics["energy_per_atom_vs_truth"]
    assert metric.title == "Energy per atom vs. truth in eV/atom"
    assert (metric.higher_is_better, metric.low) == (False, 0)


def test_what_atoms_held_before_they_moved_is_no_truth():
    water = molecule("H2O")
    water.calc = EMT()
    water.get_forces()
    water.positions[0] += 0.1
    assert ob.datasets.molecules([water])[1] is None


class FailsWhenTilted(EMT):
    """Raises on one molecule always, and on another at some rotations."""

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        if len(atoms) == 5:
            raise RuntimeError("did not converge")
        if len(atoms) == 3 and atoms.positions[1, 0] > 0.3:
            raise RuntimeError("too far to the right")
        super().calculate(atoms, properties, system_changes)


def test_a_calculator_that_raises_is_recorded_and_the_scan_goes_on(tmp_path):
    with pytest.warns(UserWarning, match="failed on 2 of 3 samples"):
        scan = audit({"fails": FailsWhenTilted(), "emt": EMT()}, few(), out=tmp_path / "run.zarr")
    assert scan.complete
    places = {one["sample"]: one["places"] for one in scan.failures["fails"]}
    assert [*places] == [0, 1]
    assert places[1] == 16
    assert 0 < places[0] < 16
    assert scan.failures["emt"] == []
    water, methane, ethanol = scan.data["forces_vs_consensus"].sel(model="fails").values
    assert int(np.isnan(water).sum()) == places[0]
    assert np.nanmax(water) < 1e-12  # the consensus is that of the answers there are
    assert np.isnan(methane).all()
    assert not np.isnan(ethanol).any()
    again = ob.load(tmp_path / "run.zarr")
    assert again.failures == scan.failures
    assert "did not converge" in again.failures["fails"][1]["error"]
    assert float(ob.nero.summary(again)["samples"].sel(model="fails")) == 2


def test_a_resumed_scan_keeps_the_failures_of_before(tmp_path):
    data = [molecule(name) for name in ("CH4", "H2O", "CH3CH2OH")]
    with pytest.warns(UserWarning, match="did not converge"):
        first = audit({"fails": FailsWhenTilted()}, data, out=tmp_path / "run.zarr")
    with pytest.warns(UserWarning, match="did not converge"):
        second = audit({"fails": FailsWhenTilted()}, data, out=tmp_path / "run.zarr")
    assert second.failures == first.failures


class Empties(Calculator):
    """Gives what it should not: NaN, nothing, or a wrong shape."""

    implemented_properties = ["energy", "forces"]  # noqa: RUF012

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        count = len(atoms)
        self.results["energy"] = float("nan") if count == 3 else 1.0
        if count != 5:
            self.results["forces"] = np.zeros((count - (count == 9), 3))


def test_answers_that_are_none_are_failures_too():
    with pytest.warns(UserWarning, match="failed on 3 of 4 samples"):
        scan = audit({"empties": Empties()}, [*few(), molecule("NH3")])
    said = [one["error"] for one in scan.failures["empties"]]
    assert said[0].endswith("energy that are NaN or infinite")
    assert said[1].endswith("returned no forces")
    assert "shape (8, 3)" in said[2]
    assert len(said) == 3


def test_stress_of_a_crystal_turns_as_a_tensor():
    copper = bulk("Cu", cubic=True) * (2, 1, 1)
    copper.rattle(0.05, seed=1)
    copper.set_cell(copper.cell @ np.array([[1, 0.02, 0], [0, 1, 0], [0, 0, 1.01]]), True)
    task = ob.tasks.Atoms(["energy", "forces", "stress"], score="stress")
    scan = audit({"emt": EMT()}, [copper], "rotations3d:8", task=task)
    assert float(scan.data["stress_vs_consensus"].max()) < 1e-10
    copper.calc = EMT()
    np.testing.assert_allclose(
        scan.data["consensus_stress"][0, 0], copper.get_stress(voigt=False), atol=1e-9
    )
    turn = scan.group.linear("space")[3]
    np.testing.assert_allclose(
        scan.data["stress"][0, 0, 3],
        turn @ copper.get_stress(voigt=False) @ turn.T,
        atol=1e-6,
    )


def test_reordered_atoms_are_the_same_molecule():
    group = ob.groups.product(ob.groups.rotations3d(3), ob.groups.permutations(9, 6))
    scan = audit({"emt": EMT(), "broken": PullsAlongX()}, few(), group)
    assert float(scan.data["forces_vs_consensus"].sel(model="emt").max()) < 1e-12
    assert float(scan.data["forces_vs_consensus"].sel(model="broken").min()) > 1e-4
    np.testing.assert_array_equal(scan.data["numbers"][0, 0], [8, 1, 1, 0, 0, 0, 0, 0, 0])


class Pairwise(torch.nn.Module):
    """Energy of pairs by distance, forces by differentiation: right by construction."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(10, 16), torch.nn.SiLU(), torch.nn.Linear(16, 1)
        )

    def energy(self, pos, batch):
        numbers, mask = batch["numbers"], batch["mask"]
        apart = pos[:, :, None] - pos[:, None]
        distance = (apart.square().sum(-1) + 1e-6).sqrt()[..., None]
        pair = torch.stack(torch.broadcast_tensors(numbers[:, :, None], numbers[:, None]), -1)
        near = torch.exp(-distance * torch.linspace(0.3, 2, 8, dtype=pos.dtype))
        there = (mask[:, :, None] & mask[:, None])[..., None]
        return (self.net(torch.cat([near, pair.sort(-1)[0] / 10], -1)) * there).sum((1, 2, 3))

    def forward(self, batch):
        pos = batch["pos"].requires_grad_()
        energy = self.energy(pos, batch)
        (slope,) = torch.autograd.grad(energy.sum(), pos)
        return {"energy": energy, "forces": -slope}


class Tilted(Pairwise):
    def energy(self, pos, batch):
        return super().energy(pos, batch) + 0.1 * (pos[..., 2] * batch["mask"]).square().sum(1)


def test_a_network_and_a_calculator_are_audited_together():
    """The network computes in single precision, the calculator in double."""
    scan = audit({"net": Pairwise(), "tilted": Tilted(), "emt": EMT()}, few())
    size = float(np.abs(scan.data["forces"].sel(model="net")).max())
    worst = scan.data["forces_vs_consensus"].max(("sample", "element")).values
    assert worst[0] < 1e-4 * size
    assert worst[1] > 1e-2
    assert worst[2] < 1e-12


def test_an_equivariant_network_of_e3nn_passes_and_a_plain_one_fails():
    o3 = pytest.importorskip("e3nn.o3", reason="e3nn is not installed")

    class Steerable(torch.nn.Module):
        """Forces from pairs: spherical harmonics of directions, weighted by distance."""

        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.mix = o3.FullyConnectedTensorProduct("1x0e + 1x1o + 1x2e", "2x0e", "4x0e + 4x1o")
            self.out = o3.FullyConnectedTensorProduct("4x0e + 4x1o", "4x0e + 4x1o", "1x0e + 1x1o")

        def forward(self, batch):
            pos, numbers, mask = batch["pos"], batch["numbers"].to(batch["pos"]), batch["mask"]
            apart = pos[:, :, None] - pos[:, None]
            distance = apart.square().sum(-1, keepdim=True).add(1e-6).sqrt()
            shape = o3.spherical_harmonics("0e + 1o + 2e", apart, normalize=True)
            weight = torch.exp(-distance) * (mask[:, :, None] & mask[:, None])[..., None]
            charge = numbers[:, None, :, None].expand_as(distance) / 10
            pair = self.mix(shape * weight, torch.cat([charge, torch.ones_like(charge)], -1))
            answer = self.out(pair.sum(2), pair.sum(2))
            return (answer[..., 0] * mask).sum(1), answer[..., 1:]

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.net = torch.nn.Linear(3, 3)

        def forward(self, batch):
            return batch["pos"].sum((1, 2)), self.net(batch["pos"])

    ob.testing.assert_equivariant(
        Steerable().double(), few(), group="rotations3d:8", task=ob.tasks.Atoms("forces", read=last)
    )
    scan = audit({"e3nn": Steerable(), "plain": Plain()}, few())
    size = np.abs(scan.data["forces"]).max(("sample", "element", "atom", "axis")).values
    worst = scan.data["forces_vs_consensus"].max(("sample", "element")).values / size
    assert worst[0] < 1e-5
    assert worst[1] > 1e-2


@pytest.mark.parametrize("single", [False, True])
def test_forces_that_a_perfect_crystal_makes_zero_are_equivariant(single):
    """Their rounding is as large as they are."""

    class Rounded(EMT):
        def calculate(self, *given, **named):
            super().calculate(*given, **named)
            noise = 1e-6 * np.sin(1e4 * self.atoms.positions) if single else 0.0
            self.results["forces"] = self.results["forces"] + noise

    crystal = [bulk("Cu", cubic=True)]
    task = ob.tasks.Atoms("energy,forces")
    scan = ob.scan(Rounded(), crystal, group="translations3d:1:1", task=task, progress=False)
    energy, forces = ob.nero.violations(scan)
    assert energy.equivariant
    assert forces.equivariant
    assert forces.relative > 0.1
    assert str(forces).endswith(" eV/Å")
    if not single:
        ob.testing.assert_equivariant(EMT(), crystal, group="o3:4", task="atoms")


def test_small_forces_hide_no_violation():
    def model(batch):
        off = torch.tensor([2e-5, 0.0, 0.0], dtype=batch["pos"].dtype)
        return {"forces": 1e-4 * batch["pos"] + off}

    task = ob.tasks.Atoms("forces")
    scan = ob.scan(model, few(), group="rotations3d:8", task=task, progress=False)
    assert not ob.nero.violations(scan)[0].equivariant
    with pytest.raises(AssertionError, match="not equivariant"):
        ob.testing.assert_equivariant(model, few(), group="rotations3d:8", task=task)


def test_a_large_energy_hides_no_broken_forces():
    """The energy is right and a million times the forces, which are wrong by a tenth."""

    def model(batch):
        off = torch.tensor([0.1, 0.0, 0.0], dtype=batch["pos"].dtype)
        return batch["numbers"].sum(1) * 1e6, batch["pos"] + off

    with pytest.raises(AssertionError, match=r" of the forces at .* of molecule "):
        ob.testing.assert_equivariant(model, few(), group="rotations3d:8", task="atoms")


class KnowsWhereXIs(Calculator):
    """Sound forces, and an energy that depends on the orientation of one molecule."""

    implemented_properties = ("energy", "forces")

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        ethanol = len(atoms) == 9
        self.results = {
            "energy": 1.0 + (0.1 * atoms.positions[:, 0].max() if ethanol else 0.0),
            "forces": atoms.positions - atoms.positions.mean(0),
        }


@pytest.mark.parametrize(("name", "said"), [("", "C2H6O"), ("ethanol", "ethanol, C2H6O")])
def test_a_failed_test_names_the_quantity_and_the_molecule(name, said):
    molecules = few()
    molecules[2].info["name"] = name
    words = f"relative error [0-9.e-]+ of the energy at .* of molecule 2: {said}, "
    with pytest.raises(AssertionError, match=words):
        ob.testing.assert_equivariant(
            KnowsWhereXIs(), molecules, group="rotations3d:8", task="atoms"
        )


def last(raw):
    return raw[-1]


@pytest.mark.slow  # each process loads torch first
def test_worker_processes_give_the_same_answers():
    model = ob.predictors.CalculatorPredictor("ase.calculators.emt:EMT", workers=2)
    several = audit({"emt": model}, few(), "rotations3d:3")
    one = audit({"emt": EMT()}, few(), "rotations3d:3")
    np.testing.assert_array_equal(several.data["forces"], one.data["forces"])


def test_bad_molecules_are_refused_before_any_work():
    from ase import Atoms

    InputError = ob.errors.InputError
    with pytest.raises(InputError, match="expected at least one atom, got none in molecule 1"):
        audit(EMT(), [molecule("H2O"), Atoms()])
    with pytest.raises(InputError, match="got an unknown element in molecule 0"):
        audit(EMT(), [Atoms("XH", [[0, 0, 0], [0, 0, 1]])])
    with pytest.raises(InputError, match="expected finite positions, got NaN"):
        audit(EMT(), [Atoms("H", [[0, 0, np.nan]])])
    with pytest.raises(InputError, match="a cell that spans the 2 periodic directions"):
        audit(EMT(), [Atoms("H", [[0, 0, 0]], pbc=[True, True, False], cell=[1, 0, 0])])
    with pytest.raises(InputError, match=r"expected ase.Atoms, got str at 1"):
        audit(EMT(), [molecule("H2O"), "CH4", molecule("H2O")])
    pos = np.zeros((2, 2, 3))
    with pytest.raises(InputError, match=r"at least one atom, got none .* molecule 1"):
        audit(EMT(), {"pos": pos, "numbers": [[1, 1], [0, 0]]})
    with pytest.raises(InputError, match="an unknown element in molecule 0, atom 1"):
        audit(EMT(), {"pos": pos, "numbers": [[1, 300], [1, 1]]})
    with pytest.raises(InputError, match="a dictionary with pos"):
        audit(EMT(), pos)
    with pytest.raises(InputError, match="unknown name 'force'; did you mean 'forces'"):
        ob.tasks.Atoms(["force"])
    with pytest.raises(InputError, match="one of the quantities energy, forces"):
        ob.tasks.Atoms(score="dipole")
    with pytest.raises(InputError, match="truth: expected forces of shape"):
        audit(EMT(), (few(), {"forces": np.zeros((3, 2, 3))}))


def test_models_that_do_not_offer_what_is_asked_are_refused():
    ModelError = ob.errors.ModelError
    with pytest.raises(ModelError, match="model 'emt': expected quantities that EMT offers"):
        audit({"emt": EMT()}, few(), task=ob.tasks.Atoms(["energy", "dipole"]))
    with pytest.raises(ModelError, match=r"expected forces \[molecule, atom, axis\], got"):
        audit(lambda b: {"energy": b["pos"].sum((1, 2)), "forces": b["pos"].sum((1, 2))}, few())
    with pytest.raises(ModelError, match="expected a dictionary of energy, forces, got"):
        audit(lambda b: b["pos"].sum((1, 2)), few())
    with pytest.raises(
        ModelError, match="expected forces on the 9 atoms of the batch, including padding, got 2"
    ):
        audit(lambda b: (b["pos"].sum((1, 2)), b["pos"][:, :2]), few())
    with pytest.raises(ModelError, match="NaN"):  # of a network this is a defect, not a failure
        audit(lambda b: (b["pos"].sum((1, 2)) * np.nan, b["pos"]), few())
    with pytest.raises(ob.errors.InputError, match="workers: expected 1 for a calculator instance"):
        ob.predictors.CalculatorPredictor(EMT(), workers=2)


def test_truth_without_the_quantity_of_the_score_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="has energy but not the score forces"):
        scan = audit(EMT(), (few(), {"energy": [1.0, 2.0, 3.0]}), "rotations3d:2")
    assert not scan.labeled
    task = ob.tasks.Atoms(score="energy")
    assert audit(EMT(), (few(), {"energy": [1.0, 2.0, 3.0]}), "rotations3d:2", task=task).labeled


@pytest.mark.parametrize("score", [None, "energy"])
def test_truth_of_another_number_of_molecules_is_refused(score):
    """Also where it has not the quantity of the score, and is not used."""
    task = ob.tasks.Atoms(score=score)
    with pytest.raises(ob.errors.InputError, match=r"energy of shape \(3,\), got \(1,\)"):
        audit(EMT(), (few(), {"energy": [1.0]}), task=task)


def test_forces_of_each_molecule_have_a_row_for_each_of_its_atoms():
    """Those in another order have as many rows altogether."""
    forces = [np.zeros((len(one), 3)) for one in few()]
    expected = "a row of forces for each of the 3 atoms of molecule 0, got 9 rows"
    with pytest.raises(ob.errors.InputError, match=expected):
        audit(EMT(), (few(), {"forces": forces[::-1]}))
    with pytest.raises(ob.errors.InputError, match="forces of 3 molecules, got 2"):
        audit(EMT(), (few(), {"forces": [np.zeros((8, 3)), forces[2]]}))


def test_the_view_asks_a_calculator_live(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        scan = audit({"broken": PullsAlongX()}, few(), out=tmp_path / "run.zarr", keep="inputs")
    session = open_session(scan, {"broken": PullsAlongX()})
    message = {"kind": "place", "sequence": 1, "selection": {"sample": 2, "element": 3}}
    header, arrays = session.handle(message)
    assert header["live"]
    assert not header["errors"]
    np.testing.assert_allclose(arrays["detail/forces"][0], scan.data["forces"][0, 2, 3], atol=1e-5)
    assert "detail/forces_vs_consensus" not in arrays or np.allclose(
        arrays["detail/forces_vs_consensus"][0], scan.data["forces_vs_consensus"][0, 2, 3]
    )


def test_the_score_changes_not_when_both_sides_turn():
    task = ob.tasks.Atoms(["energy", "forces", "dipole", "stress"])
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 1, 4, 1 + 15 + 3 + 9, generator=generator, dtype=torch.float64)
    group = ob.groups.from_matrices(
        space=[np.eye(3), Rotation.random(random_state=0).as_matrix(), -np.eye(3)]
    )
    still = task.output.distances(first, second)
    moved = task.output.distances(task.output.move(group, first), task.output.move(group, second))
    for name, values in still.items():
        np.testing.assert_allclose(moved[name], values.expand(3, 4), rtol=1e-12)


def test_the_guide_runs_as_printed(capsys):
    guide = Path(__file__).resolve().parents[2] / "docs" / "guide" / "molecules.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text("utf-8"), re.S)
    exec(compile("\n".join(blocks[1:]), "guide", "exec"), {})  # the first needs another package
    said = capsys.readouterr().out.splitlines()
    assert float(said[0]) < 1e-12
    assert "atom" in said[1]
    assert said[2] == "{'emt': []}"
    assert said[3] == "energy True"


def test_what_is_said_of_an_energy_is_of_the_molecule_that_is_named():
    for group in ("rotations3d:16", "translations3d:2:2"):
        scan = audit({"broken": PullsAlongX()}, few(), group)
        found = next(one for one in violations(scan) if one.quantity == "energy")
        assert found.relative == pytest.approx(found.largest / len(few()[found.sample]), rel=1e-5)
        assert found.relative == float(scan.data["energy_per_atom_vs_consensus"].max())


@pytest.mark.parametrize("spec", ["translations3d:2:2", "se3:8:2"])
def test_elements_are_named_by_their_rotation_and_their_shift(spec):
    scan = audit({"broken": PullsAlongX()}, few()[:1], spec)
    found = next(one for one in violations(scan) if one.quantity == "energy")
    shift = ", ".join(
        f"{scan.group.coords[axis][found.element]:.2f}" for axis in ("dx", "dy", "dz")
    )
    assert found.rotation.endswith(f"shift ({shift}) Å")
    assert ("° about (" in found.rotation) == spec.startswith("se3")


def test_molecules_of_a_file_are_taken_as_they_were_read_with_their_names(tmp_path):
    named = few()
    for one, name in zip(named, ("water", "methane", "ethanol"), strict=True):
        one.info["name"] = name
    ase.io.write(tmp_path / "few.xyz", named, format="extxyz")
    read = ob.datasets.molecules(tmp_path / "few.xyz")
    ob.testing.assert_conservative(EMT(), read)
    ob.testing.assert_equivariant(EMT(), read, group="rotations3d:4", task="atoms")
    for data in (read, read[0], (read, None)):
        scan = audit({"emt": EMT()}, data, "rotations3d:2")
        assert scan.names == ["water", "methane", "ethanol"]
