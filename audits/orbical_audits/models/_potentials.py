"""What the audits of interatomic potentials share: crystals, scans, tables and the rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import orbical as ob
from orbical.figures import style
from orbical_audits import Outcome, Picture, Table, interval
from orbical_audits.verdicts import CHANGES, Verdict, verdict_of

ENERGY, FORCE = 0.1, 1.0  # tolerances: meV/atom, meV/Å
ROUNDING = 0.01  # of energies in single precision, both units
HEXAGONAL = (90, 90, 120)

# Symbols, places, space group, cell. The mirror image of 152 is 154, of 92 it is 96.
CHIRAL: Mapping[str, tuple[list[str], list[tuple[float, ...]], int, list[float]]] = {
    "Se": (["Se"], [(0.2254, 0, 1 / 3)], 152, [4.366, 4.366, 4.954, *HEXAGONAL]),
    "Te": (["Te"], [(0.2636, 0, 1 / 3)], 152, [4.456, 4.456, 5.921, *HEXAGONAL]),
    "SiO2, quartz": (
        ["Si", "O"],
        [(0.4697, 0, 2 / 3), (0.4135, 0.2669, 0.7858)],
        154,
        [4.916, 4.916, 5.405, *HEXAGONAL],
    ),
    "GeO2, quartz": (
        ["Ge", "O"],
        [(0.4513, 0, 2 / 3), (0.397, 0.302, 0.7574)],
        154,
        [4.987, 4.987, 5.652, *HEXAGONAL],
    ),
    "HgS, cinnabar": (
        ["Hg", "S"],
        [(0.7198, 0, 1 / 3), (0.4889, 0, 5 / 6)],
        152,
        [4.149, 4.149, 9.495, *HEXAGONAL],
    ),
    "SiO2, cristobalite": (
        ["Si", "O"],
        [(0.3003, 0.3003, 0), (0.2392, 0.1044, 0.1787)],
        92,
        [4.972, 4.972, 6.922, 90, 90, 90],
    ),
    "TeO2, paratellurite": (
        ["Te", "O"],
        [(0.0268, 0.0268, 0), (0.1386, 0.2576, 0.1862)],
        92,
        [4.808, 4.808, 7.612, 90, 90, 90],
    ),
    "FeSi": (["Fe", "Si"], [(0.137,) * 3, (0.842,) * 3], 198, [4.489] * 3 + [90] * 3),
    "CoSi": (["Co", "Si"], [(0.14,) * 3, (0.843,) * 3], 198, [4.447] * 3 + [90] * 3),
}
MATES = {152: 154, 154: 152, 92: 96}


def chiral(name: str, mirrored: bool = False) -> Any:
    """Build a crystal that differs from its mirror image; the other hand by its own space group."""
    from ase.spacegroup import crystal

    symbols, places, group, cell = CHIRAL[name]
    if mirrored:
        places, group = [tuple(-value for value in place) for place in places], MATES[group]
    made = crystal(symbols, places, spacegroup=group, cellpar=cell)
    made.info = {"name": name}
    return made


def achiral() -> list[Any]:
    """Build crystals that equal their mirror image."""
    from ase.build import bulk

    kinds = {
        "Si": bulk("Si", cubic=True),
        "Cu": bulk("Cu", cubic=True),
        "NaCl": bulk("NaCl", "rocksalt", 5.64, cubic=True),
        "ZnO": bulk("ZnO", "wurtzite", 3.25, c=5.207, u=0.382),
    }
    for name, made in kinds.items():
        made.info = {"name": name}
    return list(kinds.values())


def scanned(
    calculators: Mapping[str, Any], crystals: list[Any], store: Path, turns: int
) -> ob.Scan:
    """Scan along O(3): every rotation once as it is, and once with an inversion."""
    return ob.scan(
        calculators, crystals, group=ob.groups.o3(turns), task="atoms", keep="inputs",
        out=store, progress=False,
    )  # fmt: skip


def handed(scan: ob.Scan) -> tuple[np.ndarray, np.ndarray]:
    """Return by model and crystal: right minus left hand, and the largest change by a rotation."""
    data = scan.data
    counts = (data["input_numbers"].values > 0).sum(1)
    energy = 1e3 * data["energy"].values / counts[:, None]  # meV/atom
    left, right = energy[..., data["inversion"] < 0], energy[..., data["inversion"] > 0]
    turned = np.maximum(np.ptp(left, axis=-1), np.ptp(right, axis=-1))
    return right.mean(-1) - left.mean(-1), turned


def drawn(scan: ob.Scan) -> Any:
    """Draw for each crystal by how much the energies of its two hands differ."""
    gaps = np.abs(handed(scan)[0]).clip(1e-4)
    with style.styled():
        fig = style.figure(style.PAGE, 3.6)
        axes = fig.subplots()
        places = np.arange(len(scan.data["name"]))
        for model, gap, color in zip(scan.models, gaps, style.MODELS, strict=False):
            axes.plot(gap, places, "o", color=color, label=model, clip_on=False)
        axes.axvline(ENERGY, color=style.SOFT, linestyle=":")
        axes.text(ENERGY, -1, " tolerance", color=style.SOFT, va="center")
        axes.axhline(len(CHIRAL) - 0.5, color=style.FAINT)
        axes.text(20, len(CHIRAL), "equal to their mirror image", color=style.SOFT, ha="right")
        axes.set_yticks(places, scan.data["name"].values)
        axes.set(xscale="log", xlim=(1e-4, 20), ylim=(len(places) - 0.5, -1.5))
        axes.set_xlabel("difference of the energies of left and right hand, meV/atom (1e-4: less)")
        axes.legend(loc="lower center", ncols=3, bbox_to_anchor=(0.5, 1))
    return fig


def from_dft(count: int) -> list[Any]:
    """Read crystals at finite temperature or strain, with energies and forces from DFT."""
    from ase import Atoms
    from ase.calculators.singlepoint import SinglePointCalculator

    crystals = []
    for element in ("Ge", "Li", "Mo", "Si"):
        stored = np.load(ob.datasets.data_file(f"mlearn_{element}_test.npz", None, "atoms"))
        counts, ends = stored["n_atoms"], np.cumsum(stored["n_atoms"])
        usable = np.flatnonzero(stored["group"] == "AIMD-NVT")
        for row in usable[np.linspace(0, len(usable) - 1, count).astype(int)]:
            atoms = slice(ends[row] - counts[row], ends[row])
            made = Atoms([element] * counts[row], stored["positions"][atoms].astype(float),
                         cell=stored["cell"][row], pbc=True, info={"name": element})  # fmt: skip
            known = {"energy": stored["energy"][row], "forces": stored["forces"][atoms]}
            made.calc = SinglePointCalculator(made, **known)
            crystals.append(made)
    return crystals


def against_dft(calculators: Mapping[str, Any], count: int, store: Path, seed: int) -> list[Any]:
    """Return for each model the errors against DFT beside the change by an inversion."""
    crystals = from_dft(count)
    scan = ob.scan(calculators, crystals, group="inversion", task="atoms", out=store,
                   progress=False)  # fmt: skip
    elements = np.array([one.info["name"] for one in crystals])
    counts = np.array([len(one) for one in crystals])
    truth = np.array([one.calc.results["energy"] for one in crystals])
    rows = []
    for model in scan.models:
        data = scan.data.sel(model=model)
        energy = data["energy"].values
        error = 1e3 * (energy[:, 0] - truth) / counts
        for element in set(elements):  # potentials and DFT may count energies from other zeros
            error[elements == element] -= error[elements == element].mean()
        gap = 1e3 * np.abs(energy[:, 1] - energy[:, 0]) / counts
        cells = {
            "energy error, meV/atom": np.abs(error),
            "force error, meV/Å": 1e3 * data["forces_vs_truth"].values[:, 0],
            "energy changes by mirroring, meV/atom": gap,
        }
        rows.append({"model": model, **{k: interval(v, seed=seed) for k, v in cells.items()}})
    return rows


def rewritten(calculator: Any, crystals: list[Any], seed: int) -> tuple[float, float]:
    """Return the largest change in meV/atom by another order of atoms, and by another cell.

    A supercell changes the number of atoms, so it is no group element of a scan: the same crystal
    is written with other cell vectors, as a supercell, and shifted, and calculated directly.
    """
    from ase.build import make_supercell

    generator = np.random.default_rng(seed)
    orders, cells = [0.0], [0.0]
    for crystal in crystals:
        group = ob.groups.permutations(len(crystal), 3, seed)
        scan = ob.scan({"model": calculator}, [crystal], group=group, task="atoms", progress=False)
        orders.append(1e3 * float(np.ptp(scan.data["energy"].values)) / len(crystal))
        shifted = crystal.copy()
        shifted.positions += generator.normal(size=3)
        sheared = make_supercell(crystal, np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))
        others = [crystal.repeat((2, 1, 1)), sheared, shifted]
        energies = [energy_per_atom(calculator, one) for one in (crystal, *others)]
        cells.append(float(np.abs(np.subtract(energies, energies[0])).max()))
    return max(orders), max(cells)


def energy_per_atom(calculator: Any, crystal: Any) -> float:
    """Return the energy in meV/atom, without orbical."""
    copy = crystal.copy()
    copy.calc = calculator
    return 1e3 * float(copy.get_potential_energy()) / len(copy)


def run_all(calculators: Mapping[str, Any], size: Any, seed: int, folder: Path) -> Outcome:
    """Run every part of the audit of these calculators."""
    crystals = [*map(chiral, CHIRAL), *achiral()]
    scan = scanned(calculators, crystals, folder / "scan.zarr", size["turns"])
    gaps, turned = handed(scan)
    rattled = achiral()
    for one in rattled:
        one.rattle(0.05, seed=seed)
    moved = ob.scan(calculators, rattled, group=ob.groups.rotations3d(size["turns"]), task="atoms",
                    out=folder / "rattled.zarr", progress=False)  # fmt: skip
    by_forces = 1e3 * moved.data["atom_vs_consensus"].max(["sample", "element", "atom"]).values
    summary, hands = [], []
    for k, (name, calculator) in enumerate(calculators.items()):
        orders, cells = rewritten(calculator, [chiral("Te"), achiral()[2]], seed)
        slopes = ob.testing.conservativity_error(
            calculator, rattled[: size["slopes"]], directions=2, seed=seed
        )
        row = {
            "model": name,
            "rotations: energy, meV/atom": float(turned[k].max()),
            "rotations: forces, meV/Å": float(by_forces[k]),
            "order of atoms, meV/atom": orders,
            "other cell, meV/atom": cells,
            "mirror, chiral: largest, meV/atom": float(np.abs(gaps[k, : len(CHIRAL)]).max()),
            "mirror, chiral: mean, meV/atom": interval(np.abs(gaps[k, : len(CHIRAL)]), seed=seed),
            "mirror, achiral: largest, meV/atom": float(np.abs(gaps[k, len(CHIRAL) :]).max()),
            "forces minus gradient, meV/Å": 1e3 * slopes.largest("forces"),
            "its precision, meV/Å": 1e3 * float(slopes.limits["forces"].max()),
        }
        summary.append(row)
        for crystal in ("Se", "Te", "TeO2, paratellurite"):
            left, right = (energy_per_atom(calculator, chiral(crystal, m)) for m in (True, False))
            place = list(CHIRAL).index(crystal)
            found = {
                "right minus left, meV/atom": right - left,
                "by the scan": float(gaps[k, place]),
            }
            hands.append({"model": name, "crystal": crystal, **found})
    each = [
        {"crystal": str(name), **{m: float(gaps[k, i]) for k, m in enumerate(scan.models)}}
        for i, name in enumerate(scan.data["name"].values)
    ]
    tables = {
        "summary": Table("The largest change of the prediction by each kind of transformation.",
                         transposed(summary)),
        "crystals": Table("Energy of the right-handed form minus that of the left-handed one, "
                          "meV/atom.", each),
        "hands": Table("The same without orbical: both forms built from their own space groups.",
                       hands),
        "dft": Table("Mean errors against DFT over crystals at finite temperature (energies after "
                     "removing the mean of each element, forces as root mean square), beside the "
                     "change by an inversion.",
                     against_dft(calculators, size["dft"], folder / "dft.zarr", seed)),
    }  # fmt: skip
    alt = "Difference of the energies of left- and right-handed crystals, by crystal and model"
    return Outcome(tables, {"mirror": Picture(drawn(scan), alt)})


def transposed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn a wide table: a column for each model."""
    names = [key for key in rows[0] if key != "model"]
    return [{"quantity": name, **{row["model"]: row[name] for row in rows}} for name in names]


PROPER = ("rotations: energy", "order of atoms", "other cell")
MIRRORS = ("mirror, chiral: largest", "mirror, achiral: largest")


def decide(tables: Any, moves: tuple[str, ...] = PROPER + MIRRORS) -> dict[str, Verdict]:
    """Apply the rule to each model."""
    rows = {row["quantity"]: row for row in tables["summary"]}
    names = [key for key in tables["summary"][0] if key != "quantity"]
    energies = {name: max(rows[f"{move}, meV/atom"][name] for move in moves) for name in names}
    forces = {name: rows["rotations: forces, meV/Å"][name] for name in names}
    return {name: _decide(energies[name], forces[name]) for name in names}


def decide_without_mirrors(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to models whose authors exclude mirrors: what only mirrors change is meant."""
    proper, every = decide(tables, PROPER), decide(tables)
    return {
        name: Verdict.BY_DESIGN if every[name] in CHANGES and proper[name] not in CHANGES else found
        for name, found in every.items()
    }


def _decide(energy: float, force: float) -> Verdict:
    beyond = max(energy / ENERGY, force / FORCE)
    exact = energy < ROUNDING and force < ROUNDING
    return verdict_of({"low": beyond, "high": beyond}, 1, exact=exact)


RULE = (
    "**Invariant** if no rotation, inversion, reordering of atoms or rewriting of the cell "
    f"changes an energy by {ROUNDING} meV/atom nor a rotation a force by {ROUNDING} meV/Å. "
    f"**Within tolerance** if the changes stay below {ENERGY} meV/atom (a tenth of what DFT "
    f"energies are usually converged to) and {FORCE:.0f} meV/Å. Otherwise **not invariant**. "
    "These potentials state no confidence, so the two verdicts about it cannot be given. The "
    "numbers are deterministic; intervals are given where a mean over crystals is."
)
GROUP = "rotations and inversion, O(3); orders of the atoms; other cells and supercells"
INPUTS = (
    f"{len(CHIRAL)} crystals that differ from their mirror image and 4 that do not, built with ase "
    "from published cells; crystals of Ge, Li, Mo and Si with energies and forces from DFT "
    "(Zuo et al. 2020)"
)
SHAREABLE = "crystals built with ase"
SIZES = {
    "quick": {"turns": 3, "slopes": 2, "dft": 2},
    "full": {"turns": 16, "slopes": 4, "dft": 10},
}
