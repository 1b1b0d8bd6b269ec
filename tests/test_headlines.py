"""The sentence of a scan: one for every task, and the same wherever it is said."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import orbical as ob
from orbical.interface import open_session
from orbical.nero import headline_words

ANGLES = 4


def bright(images: torch.Tensor) -> torch.Tensor:
    """Name the half of an image that is brighter: right upright, and wrong if it is turned."""
    left, right = images[..., :4].mean((1, 2, 3)), images[..., 4:].mean((1, 2, 3))
    return 9 * torch.stack([left, right], 1)


@pytest.fixture(scope="module")
def halves() -> tuple[torch.Tensor, torch.Tensor]:
    """Images whose left or right half is bright, with the label of the half."""
    labels = torch.arange(20) % 2
    images = torch.zeros(20, 1, 8, 8)
    images[labels == 0, ..., :4] = 1
    images[labels == 1, ..., 4:] = 1
    return images, labels


def scanned(model, data, **settings) -> ob.Scan:
    about = {"group": f"cyclic:{ANGLES}", "task": "classification", "progress": False}
    return ob.scan(model, data, **{**about, **settings})


def test_accuracy_is_stated_at_three_places_with_the_confidence(halves):
    scan = scanned(bright, halves)
    assert ob.nero.headline(scan) == (
        "model: 100.0 % (83–100 %) correct upright, 50.0 % over all rotations and "
        "0.0 % (0–22 %) rotated by 180°, "
        "still 100.0 % confident there (20 samples)."
    )


def test_without_labels_it_is_how_many_predictions_change(halves):
    said = ob.nero.headline(scanned(bright, halves[0]))
    assert said == "model: prediction changes for 100.0 % (20 samples)."


def test_a_model_that_does_not_change_is_said_to_be_the_same_everywhere(halves):
    def fixed(images):
        return torch.tensor([[4.0, 0.0]]).expand(len(images), 2)

    said = ob.nero.headline(scanned(fixed, halves))
    assert said == "model: 50.0 % (27–73 %) correct upright and over all rotations (20 samples)."


def test_a_model_that_is_worst_upright_is_said_to_be(halves):
    said = ob.nero.headline(scanned(lambda images: -bright(images), halves))
    assert said.startswith(
        "model: 0.0 % (0–22 %) correct upright, where it is worst, and 50.0 % over all"
    )


def test_confidence_is_that_of_what_was_found_and_the_rest_is_counted():
    """A detector that missed half of its objects, and was right about the others, was "still" sure.

    Confidence was compared with an accuracy that counts what was missed.
    """
    right, sure = np.ones((1, 8, ANGLES)), np.full((1, 8, ANGLES), 0.75)
    right[:, :6, 1], sure[:, :6, 1] = 0, np.nan
    group, dims = ob.groups.rotations(ANGLES), ("model", "sample", "element")
    values = {"score": right, "score_vs_consensus": right, "correct": right, "confidence": sure}
    data = xr.Dataset(
        {name: (dims, one, {"units": "share"}) for name, one in values.items()},
        coords={"model": ["net"], "angle": ("element", group.coords["angle"])},
        attrs={"group": group.spec, "score": "the score"},
    )
    missed = "rotated by 90°, no prediction to score in 6 of 8"
    assert f"{missed}, and 75.0 % confident in the others (8" in ob.nero.headline(data)
    right[:, 6, 1] = 0
    assert f"{missed}, and still 75.0 % confident in the others (8" in ob.nero.headline(data)
    right[:, :, 1], sure[:, :, 1] = 0, np.nan
    said = ob.nero.headline(data)
    assert "rotated by 90°, no prediction to score in 8 of 8 (8" in said


@pytest.mark.parametrize("place", ["worst", "identity"])
def test_the_intervals_are_those_of_a_check(halves, place):
    """At the worst element, chosen by looking at all, the headline had that of one element."""
    scan = scanned(bright, halves)
    (row,) = ob.check(scan, **{f"min_{place}_accuracy": 0.5})
    stated = f"{100 * row.value:.1f} % ({100 * row.low:.0f}–{100 * row.high:.0f} %)"
    assert stated in ob.nero.headline(scan)


def test_of_many_models_the_worst_and_the_best_are_named(halves):
    def certain(images):
        return torch.tensor([[4.0, 0.0]]).expand(len(images), 2)

    models = {"first": bright, "second": certain, "third": lambda images: -bright(images)}
    said = ob.nero.headline(scanned(models, halves))
    assert said.startswith("Of 3 models, ")
    assert said.count(":") == 2


def test_it_is_the_same_in_the_summary_on_the_page_and_in_a_report(halves, tmp_path, capsys):
    from orbical.cli.scan_summaries import print_summary

    models = {"plain": bright, "other": lambda images: -bright(images)}
    scan = scanned(models, halves, keep="inputs", out=tmp_path / "run.zarr")
    said = ob.nero.headline(scan)
    assert ob.nero.summary(scan).attrs["headline"] == said
    about, _ = open_session(scan).handle({"kind": "headline", "sequence": 1, "selection": {}})
    assert about["text"] == said
    print_summary(scan)
    assert capsys.readouterr().out.splitlines()[0] == said


def test_the_page_begins_where_the_models_differ(halves):
    scores = {"plain": bright, "still": lambda images: bright(images).sort(1).values}
    scan = scanned(scores, halves)
    about, _ = open_session(scan).handle({"kind": "headline", "sequence": 1, "selection": {}})
    score = scan.data["score"].values[:, about["sample"], about["element"]]
    apart = np.ptp(scan.data["score"].values[:, :, about["element"]], 0)
    assert np.ptp(score) == pytest.approx(apart.max())


@pytest.mark.parametrize("name", ob.tasks.TASKS)
def test_the_direction_is_that_of_the_task(name):
    """The worst element of every task is the lowest score, or the largest error."""
    task = ob.tasks.TASKS[name]
    group = ob.groups.rotations(ANGLES)
    values = np.full((1, 3, ANGLES), 0.5)
    values[..., 1], values[..., 2] = 0.25, 0.75
    about = {"higher_is_better": int(task.higher_is_better), "units": ""}
    dims = ("model", "sample", "element")
    data = xr.Dataset(
        dict.fromkeys(("score", "score_vs_consensus"), (dims, values, about)),
        coords={"model": ["net"], "angle": ("element", group.coords["angle"])},
        attrs={"group": group.spec, "score": "the score"},
    )
    place, worst = ("90°", "0.25") if task.higher_is_better else ("180°", "0.75")
    assert ob.nero.headline(data) == (
        f"net: the score 0.5 upright, 0.5 over all rotations and {worst} rotated by {place} "
        "(3 samples)."
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rotations:8", ("upright", "over all rotations", "rotated by 45°")),
        ("translations:2:2", ("in place", "over all shifts", "shifted by (0, 2)")),
        ("scales:0.5:2:3", ("in full size", "over all scales", "scaled by 1")),
        ("dihedral:4", ("as they are", "over the orbit", "at angle 90, flip plain")),
    ],
)
def test_places_have_the_words_of_their_group(spec, words):
    assert headline_words(ob.groups.parse(spec), 1) == words


def test_a_segmentation_is_judged_by_its_pixels():
    images = torch.rand(4, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    data = (images, images.argmax(1))
    said = ob.nero.headline(scanned(lambda batch: 9 * batch, data, task="segmentation"))
    assert said == (
        "model: share of correct pixels 100.0 % upright and over all rotations (4 samples)."
    )


def test_a_model_that_is_always_wrong_is_said_to_be(halves):
    """An accuracy of 0 everywhere was read as an error of 0: "the same, up to rounding"."""
    first = torch.tensor([[4.0, 0.0]])
    data = (halves[0], torch.ones_like(halves[1]))
    said = ob.nero.headline(scanned(lambda images: first.expand(len(images), 2), data))
    assert said == "model: 0.0 % (0–17 %) correct upright and over all rotations (20 samples)."


def test_every_quantity_of_atoms_is_judged_as_the_audit_judges_it():
    """The forces were right, so an energy that depends on handedness was called the same."""
    pytest.importorskip("ase", reason="ase is not installed")
    from ase.build import molecule
    from ase.calculators.calculator import Calculator, all_changes

    class Handed(Calculator):
        implemented_properties = ("energy", "forces")

        def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
            super().calculate(atoms, properties, system_changes)
            first, *others = self.atoms.positions[:4]
            volume = np.linalg.det(np.stack([one - first for one in others]))
            self.results = {"energy": volume, "forces": np.zeros_like(self.atoms.positions)}

    some = molecule("CH3OH")
    some.rattle(0.1, seed=0)
    scan = ob.scan(Handed(), [some], group="inversion", task="atoms", progress=False)
    energy, forces = ob.nero.violations(scan)
    assert (energy.equivariant, forces.equivariant) == (False, True)
    said = f"model: energy {energy.finding} (1 sample)."
    assert "not invariant, off by up to" in said
    assert ob.nero.headline(scan) == ob.nero.headline(scan.data) == said
    assert max(row.value for row in ob.check(scan, max_gap=1e-6)) > 1e-6


def test_failed_samples_are_not_counted_and_rounding_is_not_an_error():
    pytest.importorskip("ase", reason="ase is not installed")
    from ase.build import molecule
    from ase.calculators.emt import EMT

    molecules = [molecule(name) for name in ("H2O", "SiH4", "CH4")]
    with pytest.warns(UserWarning, match="No EMT-potential for Si"):
        scan = ob.scan(EMT(), molecules, group="rotations3d:16", task="atoms", progress=False)
    said = ob.nero.headline(scan)
    assert said == "model: predictions are the same over all rotations, up to rounding (2 samples)."
    about, _ = open_session(scan).handle({"kind": "headline", "sequence": 1, "selection": {}})
    assert about["text"] == said


def test_maps_say_how_many_points_change():
    maps = torch.zeros(3, 4, 4, dtype=torch.long)
    scan = scanned(
        lambda images: torch.cat([images, images.flip(-1)], 1),  # the brighter of two halves
        (torch.arange(48.0).reshape(3, 1, 4, 4) / 48, maps),
        task="segmentation",
    )
    changed = float(ob.nero.consistency(scan)["changed"][0])
    assert changed > 0
    said = f"{100 * changed:.1f} % of pixels change their class"
    assert said in ob.nero.headline(scan)


@pytest.mark.filterwarnings("error")
def test_of_one_element_nothing_is_said_to_change():
    images = torch.arange(48.0).reshape(3, 1, 4, 4) / 48
    found = ob.scan(
        {"model": lambda images: torch.cat([1 - images, images], 1)},
        (images, (images[:, 0] > 0.5).long()),
        group="rotations:1",
        task="segmentation",
        progress=False,
    )
    said = ob.nero.headline(found)
    assert not {"change", "nan"} & {*said.split()}
