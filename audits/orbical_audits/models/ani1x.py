"""The ANI-1x ensemble: does its spread say how wrong it is?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

import orbical as ob
from orbical.figures import style
from orbical_audits import Audit, Outcome, Package, Picture, Table, interval, loading
from orbical_audits.verdicts import Verdict, verdict_of

HARTREE = 27.211386245988  # eV
RESOURCES = ("rHCNO-5.2R_16-3.5A_a4-8.params", "sae_linfit.dat", "train")
TASK = ob.tasks.Regression(
    input={"pos": ob.actions.Points(), "numbers": ob.actions.Rows()}, uncertainty="variance"
)


def ensemble() -> Any:
    """Load the eight networks; the wheel's list of its own files is empty, and is written here."""
    import torchani

    info = Path(torchani.__file__).parent / "resources" / "ani-1x_8x.info"
    info.write_text("".join(f"ani-1x_8x/{name}\n" for name in RESOURCES) + "8\n", "utf-8")
    return torchani.models.ANI1x(periodic_table_index=True)


def scanned(ani: Any, molecules: Any, group: Any, store: Path | None = None) -> ob.Scan:
    """Scan the mean of the networks' energies and their variance, in eV."""

    def energies(batch: Any) -> tuple[Any, Any]:
        pair = batch["numbers"], batch["pos"].float()
        members = HARTREE * ani.members_energies(pair).energies.double()
        return members.mean(0), members.var(0)

    return ob.scan({"ANI-1x": energies}, molecules, group=group, task=TASK, out=store,
                   progress=False)  # fmt: skip


def molecules(count: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Read 3BPA at 300 K: inputs, energies in eV and forces from DFT."""
    stored = np.load(ob.datasets.data_file("botnet_3BPA_train_300K.npz", None, "atoms"))
    atoms = int(stored["n_atoms"][0])
    rows = np.linspace(0, len(stored["n_atoms"]) - 1, count).astype(int)
    pos = stored["positions"].reshape(-1, atoms, 3)[rows].astype(float)
    numbers = stored["numbers"].reshape(-1, atoms)[rows].astype(int)
    forces = stored["forces"].reshape(-1, atoms, 3)[rows]
    return {"pos": pos, "numbers": numbers}, stored["energy"][rows], forces


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Compare errors with the spread, upright and at every element."""
    with loading("ANI-1x in torchani 2.2.4", "ani1x"):
        ani = ensemble()
    inputs, energy, forces = molecules(size["samples"])
    turns = ob.groups.o3(size["turns"])
    scan = scanned(ani, (inputs, energy[:, None]), turns, folder / "scan.zarr")
    data = scan.data.isel(model=0)
    mean, atoms = data["mean"].values[..., 0], inputs["numbers"].shape[1]
    error = mean - energy[:, None]
    error -= error.mean()  # only differences of energies matter, of one molecule
    spread = np.sqrt(data["variance"].values[..., 0])
    rows = [calibrated("upright", error[:, :1], spread[:, :1], seed)]
    rows += [calibrated("all of the orbit", error, spread, seed)]
    places = [calibrated(f"element {k}", error[:, [k]], spread[:, [k]], seed)
              for k in range(error.shape[1])]  # fmt: skip
    worst = max(places, key=lambda row: row["error / spread"]["value"])
    moved, slopes, known = by_forces(ani, inputs, forces, size)
    change = 1e3 * float(np.ptp(mean, axis=1).max()) / atoms
    symmetry = [
        {"quantity": "energy along O(3), meV/atom", "largest": change},
        {"quantity": "energy, other order of atoms, meV/atom", "largest": reordered(ani, inputs)},
        {"quantity": "forces along O(3), meV/Å", "largest": moved},
        {"quantity": "forces minus gradient, meV/Å", "largest": slopes.largest("forces") * 1e3},
        {"quantity": "precision of the gradient, meV/Å", "largest":
         1e3 * float(slopes.limits["forces"].max())},
    ]  # fmt: skip
    caption = (
        "Root mean square error of relative energies against DFT and root mean square spread of "
        "the eight networks (meV per molecule), their ratio, the share of energies within 1.96 "
        "spreads (0.95 if calibrated), the rank correlation of spread and error, and the expected "
        "normalized calibration error (ENCE, 0 if calibrated)."
    )
    tables = {
        "spread": Table(caption, [*rows, {**worst, "where": "at the worst element"}]),
        "symmetry": Table("Changes along the orbit, and forces against the gradient.", symmetry),
        "other": Table("The same question for two other quantities: force components, and relative "
                       "energies with the spread of the networks' relative energies.",
                       [force_spread(ani, inputs, known, seed),
                        relative_spread(ani, inputs, energy, seed)]),
    }  # fmt: skip
    alt = "Error of each energy against the spread of the ensemble, with the 95 % band"
    return Outcome(tables, {"spread": Picture(drawn(error[:, 0], spread[:, 0]), alt)})


def calibrated(where: str, error: np.ndarray, spread: np.ndarray, seed: int) -> dict[str, Any]:
    """Return one row: errors against spreads over samples; all elements of one go together."""
    from scipy.stats import spearmanr

    both = np.stack([error, spread], -1)
    ence = ob.calibration.ence(np.zeros(error.size), spread.ravel() ** 2, error.ravel())

    def ratio(rows: np.ndarray) -> float:
        return float(np.sqrt((rows[..., 0] ** 2).mean() / (rows[..., 1] ** 2).mean()))

    def ranks(rows: np.ndarray) -> float:
        return float(spearmanr(np.abs(rows[..., 0]).mean(1), rows[..., 1].mean(1)).statistic)

    return {
        "where": where,
        "error": interval(both, lambda rows: 1e3 * np.sqrt((rows[..., 0] ** 2).mean()), seed=seed),
        "spread": interval(both, lambda rows: 1e3 * np.sqrt((rows[..., 1] ** 2).mean()), seed=seed),
        "error / spread": interval(both, ratio, seed=seed),
        "within 1.96 spreads": interval((np.abs(error) < 1.96 * spread).mean(1), seed=seed),
        "rank correlation": interval(both, ranks, resamples=500, seed=seed),
        "ENCE": float(ence),
    }


def forces_of(ani: Any, batch: Any, members: bool = False) -> Any:
    """Return energies in eV and forces in eV/Å, of the mean or of each network."""
    pos = torch.as_tensor(batch["pos"]).float().requires_grad_()
    numbers = torch.as_tensor(batch["numbers"])
    energies = HARTREE * ani.members_energies((numbers, pos)).energies.double()
    if members:
        return torch.stack([-torch.autograd.grad(one.sum(), pos, retain_graph=True)[0]
                            for one in energies])  # fmt: skip
    energy = energies.mean(0)
    return {"energy": energy.detach(), "forces": -torch.autograd.grad(energy.sum(), pos)[0]}


def by_forces(ani: Any, inputs: Any, forces: np.ndarray, size: Any) -> tuple[float, Any, Any]:
    """Return the change of forces along the orbit, their distance from gradients, and the error."""
    few = {name: values[: size["forces"]] for name, values in inputs.items()}

    def model(batch: Any) -> Any:
        with torch.inference_mode(False), torch.enable_grad():  # a scan runs without gradients
            return forces_of(ani, {name: values.clone() for name, values in batch.items()})

    scan = ob.scan({"ANI-1x": model}, few, group=ob.groups.o3(size["turns"]), task="atoms",
                   progress=False)  # fmt: skip
    moved = 1e3 * float(scan.data["atom_vs_consensus"].max())
    slopes = ob.testing.conservativity_error(
        model, {k: v[:4] for k, v in few.items()}, directions=4
    )
    return moved, slopes, forces[: size["forces"]]


def reordered(ani: Any, inputs: Any) -> float:
    """Return the largest change of an energy by another order of the atoms, in meV/atom."""
    few = {name: values[:4] for name, values in inputs.items()}
    atoms = few["numbers"].shape[1]
    scan = scanned(ani, few, ob.groups.permutations(atoms, 8))
    return 1e3 * float(np.ptp(scan.data["mean"].values, axis=2).max()) / atoms


def force_spread(ani: Any, inputs: Any, known: Any, seed: int) -> dict[str, Any]:
    """Compare force errors with the spread of forces, over molecules."""
    few = {name: values[: len(known)] for name, values in inputs.items()}
    found = forces_of(ani, few, members=True).double().numpy()
    error = (found.mean(0) - known).reshape(len(known), -1)
    spread = found.std(0, ddof=1).reshape(len(known), -1)
    return calibrated("forces, upright (meV/Å)", error, spread, seed)


def relative_spread(ani: Any, inputs: Any, energy: np.ndarray, seed: int) -> dict[str, Any]:
    """Remove the mean over molecules from the truth and from every network."""
    pos, numbers = torch.as_tensor(inputs["pos"]).float(), torch.as_tensor(inputs["numbers"])
    with torch.no_grad():
        members = HARTREE * ani.members_energies((numbers, pos)).energies.double().numpy()
    members = members - members.mean(1, keepdims=True)
    error = members.mean(0) - (energy - energy.mean())
    spread = members.std(0, ddof=1)
    return calibrated("relative energies (meV)", error[:, None], spread[:, None], seed)


def drawn(error: np.ndarray, spread: np.ndarray) -> Any:
    """Draw errors against spreads; 95 % of a calibrated ensemble's points lie in the band."""
    with style.styled():
        fig = style.figure(style.PAGE, 3.4)
        axes = fig.subplots()
        line = np.array([0, 1e3 * spread.max() * 1.05])
        axes.fill_between(line, -1.96 * line, 1.96 * line, color=style.FAINT, label="95 %")
        inside = np.abs(error) < 1.96 * spread
        for kept, color, name in ((inside, style.MODELS[0], "inside"),
                                  (~inside, style.MODELS[1], "outside")):  # fmt: skip
            axes.plot(1e3 * spread[kept], 1e3 * error[kept], ".", color=color, label=name)
        axes.set_xlabel("spread of the eight networks, meV")
        axes.set_ylabel("error of the relative energy, meV")
        axes.set_xlim(0, line[1])
        axes.legend(loc="lower center", ncols=3, bbox_to_anchor=(0.5, 1))
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule; how well the spread fits the error is no change, and gets no verdict."""
    turned, reordered, force = (row["largest"] for row in tables["symmetry"][:3])
    energy = max(turned, reordered)
    beyond = max(energy / 0.1, force / 1)  # in units of what is tolerated
    exact = energy < 0.01 and force < 0.01
    return {"ANI-1x": verdict_of({"low": beyond, "high": beyond}, 1, exact=exact)}


audit = Audit(
    title="The ANI-1x ensemble",
    question="Is the spread of its eight networks as large as its error, upright and rotated?",
    group="rotations and inversion, O(3); orders of the atoms",
    inputs="conformations of the molecule 3BPA at 300 K with energies and forces from DFT "
    "(Kovács et al. 2021)",
    packages=(Package("torchani", "2.2.4"), Package("setuptools", "79.0.1")),
    license="MIT",
    promise="Energies from distances and angles, which no rotation, mirror or reordering changes. "
    "torchani offers the spread (`energies_qbcs`, query by committee) for analysis and active "
    "learning; it promises no calibrated error.",
    promised="E(3); spread not calibrated",
    rule="**Invariant** if no rotation, inversion or reordering of the atoms changes an "
    "energy by 0.01 meV/atom nor a rotation or inversion a force by 0.01 meV/Å, **within "
    "tolerance** below 0.1 meV/atom and 1 meV/Å, else **not invariant**. How well the spread fits "
    "the error is measured over the whole orbit and gets no verdict: it is no change.",
    decide=decide,
    finding="On average, almost: the root mean square error is "
    "{{ spread[1]['error / spread'] | cell }} times the spread, and "
    "{{ spread[1]['within 1.96 spreads'] | percent }} of the energies lie within 1.96 spreads. But "
    "the spread does not show which conformations are wrong: its rank correlation with the error "
    "is {{ spread[1]['rank correlation'] | cell }}. Rotations change energies by at most "
    "{{ symmetry[0].largest | cell }} meV/atom and another order of the atoms by "
    "{{ symmetry[1].largest | cell }}, so the spread is calibrated in the same way at every "
    "orientation.",
    advice="Do not rank conformations by the spread of the ensemble: it tells how large errors "
    "are, not which energies are wrong. Rotated copies add nothing, so test-time averaging "
    "over rotations is not needed.",
    confirmed="By other quantities (last table). For relative energies, with the spread of "
    "relative energies, the size is right (ratio {{ other[1]['error / spread'] | cell }}) and the "
    "rank correlation is {{ other[1]['rank correlation'] | cell }}; for forces, which are local, "
    "it is {{ other[0]['rank correlation'] | cell }}. Forces are gradients to the precision of "
    "finite differences.",
    sizes={
        "quick": {"samples": 200, "turns": 4, "forces": 40},
        "full": {"samples": 500, "turns": 32, "forces": 200},
    },
    run=run,
    shown=(ensemble, scanned),
)
