"""Masks of cosmic rays: does the verdict on a pixel depend on how the detector was mounted?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import orbical as ob
from orbical.errors import ModelError
from orbical_audits import Audit, Outcome, Package, Picture, Table, interval, loading
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

NAME = "cosmic_rays"
SIDE = 128
SKY, BRIGHT, READ_NOISE = 60.0, 250.0, 5.0  # electrons
RAYS, LENGTH, DEPOSIT, SPREAD = 20, 8.0, 600.0, 0.8  # a square; pixels; electrons; of its logarithm
NO_CONFIDENCE = "L.A.Cosmic"
FRAMES = {
    "1-m telescope, ground": ("Cosmic-CoNN ground", NO_CONFIDENCE),
    "WFPC2, Hubble": ("Cosmic-CoNN Hubble", "deepCR", NO_CONFIDENCE),
}
"""Real frames, and the methods that are meant for them."""

Masks = Callable[[Tensor], Tensor]


def loaded() -> dict[str, Masks]:
    """Load three networks and one classical method: images in electrons to probabilities."""
    import astroscrappy
    from cosmic_conn import init_model
    from deepCR import deepCR

    ground, hubble = (init_model(name).detect_cr for name in ("ground_imaging", "HST_ACS_WFC"))
    acs = deepCR(mask="ACS-WFC").clean
    return {
        "Cosmic-CoNN ground": each(lambda image: ground(image.copy())),
        "Cosmic-CoNN Hubble": each(lambda image: hubble(image.copy())),
        "deepCR": each(lambda image: acs(image, binary=False)),
        NO_CONFIDENCE: each(lambda image: astroscrappy.detect_cosmics(image, gain=1)[0]),
    }


def each(method: Callable[[np.ndarray], np.ndarray]) -> Masks:
    """Return a function of images [N, 1, H, W] from a function of one array."""

    def masks(images: Tensor) -> Tensor:
        found = [method(np.ascontiguousarray(image)) for image in images[:, 0].numpy()]
        return torch.from_numpy(np.stack(found)).float()[:, None]

    return masks


def scanned(models: Mapping[str, Masks], data: Any, store: Path | None) -> ob.Scan:
    """Scan along quarter turns and mirrors; a mask moves with its image."""
    task = ob.tasks.Segmentation(outputs="probabilities", classes=["sky", "ray"])
    return ob.scan(
        models,
        data,
        group="dihedral:4",
        task=task,
        keep=("inputs", "probabilities"),
        out=store,
        batch_size=8,
        progress=False,
    )


def exposed(scene: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Expose scenes [N, side, side] in 0..1: electrons with noise and rays, and the pixels hit.

    Rays are straight and come from all directions alike, so that no orientation is preferred. A
    pixel counts as hit if its deposit exceeds three standard deviations of the noise there.
    """
    electrons = SKY + BRIGHT * scene**2
    added = np.stack([_rays(generator) for _ in scene])
    noise = np.sqrt(electrons + READ_NOISE**2)
    light = generator.poisson(electrons) + generator.normal(0, READ_NOISE, electrons.shape)
    return (light + added).astype(np.float32), added > 3 * noise


def _rays(generator: np.random.Generator) -> np.ndarray:
    image = np.zeros((SIDE, SIDE))
    for _ in range(generator.poisson(RAYS)):
        start, angle = generator.uniform(0, SIDE, 2), generator.uniform(0, 2 * np.pi)
        steps = np.arange(0, generator.exponential(LENGTH) + 0.25, 0.25)
        track = (start[:, None] + np.outer([np.sin(angle), np.cos(angle)], steps)).astype(int)
        inside = ((track >= 0) & (track < SIDE)).all(0)
        deposit = np.exp(generator.normal(np.log(DEPOSIT), SPREAD))
        np.add.at(image, tuple(track[:, inside]), deposit / 4)
    return image


def deep_field() -> np.ndarray:
    """Return scikit-image's Hubble deep field as squares in 0..1; none overlap."""
    from PIL import Image

    picture = Image.open(_file("skimage", "data/hubble_deep_field.jpg")).convert("L")
    return squares(np.asarray(picture, float) / 255)


def squares(frame: np.ndarray) -> np.ndarray:
    """Cut a frame into squares [N, side, side]."""
    rows, columns = (size // SIDE for size in frame.shape)
    cut = frame[: rows * SIDE, : columns * SIDE].reshape(rows, SIDE, columns, SIDE)
    return cut.swapaxes(1, 2).reshape(-1, SIDE, SIDE)


def real_frames() -> dict[str, np.ndarray]:
    """Read two frames of telescopes, in electrons, as squares."""
    from astropy.io import fits

    with fits.open(_file("ccdproc", "tests/data/a8280271.fits")) as opened:
        raw, gain = opened[0].data.astype(float), float(opened[0].header["GAIN"])
    ground = gain * (raw[:, 16:528] - np.median(raw[:, 3:13]))  # its overscan is the zero
    with fits.open(_file("stsci", "tools/tests/data/u40x010hm_c0f.fits")) as opened:
        raw, gain = opened[0].data.astype(float), float(opened[0].header["ATODGAIN"])
    hubble = gain * raw[1:, 80:720, 80:720]  # without the shadows at two edges
    whole = {"1-m telescope, ground": squares(ground),
             "WFPC2, Hubble": np.concatenate([squares(chip) for chip in hubble])}  # fmt: skip
    return {name: cut.astype(np.float32) for name, cut in whole.items()}


def _file(package: str, path: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModelError(
            f"{package}: expected the package with {path}, got none installed; install it with: "
            f"make audit NAME={NAME}"
        )
    return Path(next(iter(found.submodule_search_locations))) / path


def home(scan: ob.Scan) -> np.ndarray:
    """Return the probability of a ray at each pixel, moved back: [model, sample, element, ...]."""
    action = ob.actions.Images()
    found = scan.data["probabilities"].values[:, :, :, 1:]
    back = [action.move(scan.group.inverse(), torch.from_numpy(one).transpose(0, 1))
            for one in found]  # fmt: skip
    return torch.stack(back)[:, :, :, 0].transpose(1, 2).numpy()


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan rays whose places are known, then real frames, and repeat without orbical."""
    with loading("Cosmic-CoNN 0.6.1, deepCR 0.3.1 or astroscrappy 1.3.0", NAME):
        models = loaded()
    generator = np.random.default_rng(seed)
    scene = deep_field()
    chosen = generator.permutation(len(scene))
    images, hit = exposed(scene[chosen[: size["squares"]]], generator)
    scan = scanned(models, _data(images, hit), folder / "scan.zarr")
    found = home(scan)
    rows = [measured(name, p, hit, seed) for name, p in zip(models, found, strict=True)]
    others, other_hit = exposed(scene[chosen[-size["again"] :]], generator)
    again = [{"method": name, **changes(by_hand(model, others), other_hit, seed)}
             for name, model in models.items()]  # fmt: skip
    tables = {
        "methods": Table(METHODS_CAPTION, rows),
        "again": Table(AGAIN_CAPTION, again),
        "real": Table(REAL_CAPTION, on_real_frames(models, size["real"], seed)),
    }
    alt = "Pixels of rays whose verdict changes along the eight orientations, by method"
    return Outcome(tables, {"rays": Picture(drawn(images, hit, found, [*models]), alt)})


def _data(images: np.ndarray, hit: np.ndarray) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(images)[:, None], torch.from_numpy(hit).long()


def by_hand(model: Masks, images: np.ndarray) -> np.ndarray:
    """Return probabilities [sample, element, ...] along D4, rotated by NumPy without orbical."""
    found = []
    for turns in range(4):
        for mirror in (False, True):
            given = np.rot90(images, turns, (1, 2))
            given = (given[..., ::-1] if mirror else given).copy()
            answer = model(torch.from_numpy(given)[:, None])[:, 0].numpy()
            found.append(np.rot90(answer[..., ::-1] if mirror else answer, -turns, (1, 2)))
    return np.stack(found, 1)


def measured(name: str, found: np.ndarray, hit: np.ndarray, seed: int) -> dict[str, Any]:
    """Return one row from probabilities [sample, element, ...] and the pixels hit."""
    flagged = found > 0.5
    overlap = np.stack([_counts(one, hit) for one in flagged.swapaxes(0, 1)], 1)
    mean = _counts(found.mean(1) > 0.5, hit)[:, None]
    gap = np.ptp(found, axis=1).max((1, 2)).astype(float)
    return {
        "method": name,
        "IoU upright": interval(overlap[:, :1], _iou, seed=seed),
        "IoU, all": interval(overlap, _iou, seed=seed),
        "IoU of the average": interval(mean, _iou, seed=seed),
        **changes(found, hit, seed),
        "largest change": interval(gap, seed=seed),
        "confidence minus accuracy where changed": too_sure(name, found, hit, seed),
    }


def changes(found: np.ndarray, hit: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the share of the hit pixels whose verdict changes, and those that turn completely."""
    changed = undecided(found, 1)
    turned = (found.max(1) > 0.9) & (found.min(1) < 0.1)
    parts = {"verdict changes": changed, "from below 0.1 to above 0.9": turned}
    return {
        key: interval(_by_square((part & hit, hit)), _ratio, seed=seed)
        for key, part in parts.items()
    }


def undecided(found: np.ndarray, axis: int) -> np.ndarray:
    """Return where the verdict changes along an axis of probabilities."""
    return np.asarray((found.max(axis) > 0.5) & (found.min(axis) <= 0.5))


def too_sure(name: str, found: np.ndarray, hit: np.ndarray, seed: int) -> Any:
    """Return confidence minus accuracy at all pixels whose verdict changes; None without any."""
    changed = undecided(found, 1)[:, None]
    if name == NO_CONFIDENCE or not changed.any():
        return None
    surplus = np.maximum(found, 1 - found) - ((found > 0.5) == hit[:, None])
    pairs = _by_square((surplus * changed, np.broadcast_to(changed, found.shape)))
    return interval(pairs, _ratio, seed=seed)


def _counts(flagged: np.ndarray, hit: np.ndarray) -> np.ndarray:
    return _by_square((flagged & hit, flagged | hit))


def _by_square(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return sums over all but the first axis, side by side."""
    return np.stack([part.reshape(len(part), -1).sum(1).astype(float) for part in parts], -1)


def _ratio(rows: np.ndarray) -> float:
    return float(rows[..., 0].sum() / max(rows[..., 1].sum(), 1e-9))


def _iou(rows: np.ndarray) -> float:
    """Return the mean over orientations of the IoU of all squares together."""
    return float((rows[..., 0].sum(0) / np.maximum(rows[..., 1].sum(0), 1e-9)).mean())


def on_real_frames(models: Mapping[str, Masks], most: int, seed: int) -> list[Any]:
    """Return how many of the pixels that the average flags change, without a truth."""
    rows = []
    for frame, cut in real_frames().items():
        chosen = cut[np.linspace(0, len(cut) - 1, min(most, len(cut))).astype(int)]
        asked = {name: models[name] for name in FRAMES[frame]}
        scan = scanned(asked, torch.from_numpy(chosen)[:, None], None)
        for name, found in zip(asked, home(scan), strict=True):
            flagged = found.mean(1) > 0.5
            if not flagged.any():
                rows.append({"frame": frame, "method": name, "squares": len(cut), "flagged": 0})
                continue
            row = {"frame": frame, "method": name, "squares": len(chosen)}
            row["flagged"] = int(flagged.sum())
            rows.append({**row, **changes(found, flagged, seed)})
    return rows


def drawn(images: np.ndarray, hit: np.ndarray, found: np.ndarray, models: list[str]) -> Any:
    """Draw one square, and for each method the pixels that it flags always and sometimes."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    changed, always = undecided(found, 2), np.asarray(found.min(2) > 0.5)
    place = int((changed & hit).sum((2, 3)).mean(0).argmax())
    colors = ["white", ob.figures.MODELS[0], ob.figures.MODELS[1]]
    with ob.figures.styled():
        fig = ob.figures.figure(1.4 * ob.figures.PAGE, 2.5)
        axes = fig.subplots(1, 1 + len(models))
        shown = np.log(images[place] - images[place].min() + 30)
        axes[0].imshow(shown, cmap="gray")
        axes[0].set_title("a square with rays")
        for panel, name, all_of, some in zip(
            axes[1:], models, always[:, place], changed[:, place], strict=True
        ):
            panel.imshow(all_of + 2 * some, cmap=ListedColormap(colors), vmin=0, vmax=2)
            panel.set_title(name)
        for panel in axes:
            panel.set(xticks=[], yticks=[])
        words = ("flagged at all orientations", "at some only")
        patches = [Patch(color=c, label=w) for c, w in zip(colors[1:], words, strict=True)]
        fig.legend(handles=patches, loc="outside lower center", ncols=2)
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each method."""
    return {row["method"]: _decide(row) for row in tables["methods"]}


def _decide(row: Any) -> Verdict:
    confident = stays_confident(row["confidence minus accuracy where changed"], high=0.10, low=0.05)
    exact = row["largest change"]["high"] < 1e-4
    return verdict_of(row["verdict changes"], 0.01, exact=exact, confident=confident)


METHODS_CAPTION = (
    "Rays at known places. IoU of the mask with the pixels hit: upright, in the mean over the "
    "eight orientations, and of the average of the eight probabilities. Then, of the pixels hit, "
    "the share whose verdict (probability above 0.5) changes with the orientation, and the share "
    "whose probability goes from below 0.1 to above 0.9; the largest change of a probability in a "
    "square; and confidence minus accuracy where the verdict changes. L.A.Cosmic states none."
)
AGAIN_CAPTION = "Other squares and rays, rotated and mirrored by NumPy, without orbical."
REAL_CAPTION = (
    "Real frames, whose rays are not marked: of the pixels that the average of the eight "
    "orientations flags, the share whose verdict changes."
)

audit = Audit(
    title="Masks of cosmic rays: Cosmic-CoNN, deepCR, L.A.Cosmic",
    question="Does rotating the camera change which pixels are masked as cosmic rays?",
    group="quarter turns and mirrors (D4), which move pixels exactly",
    inputs="squares of 128 x 128 pixels of the Hubble deep field in scikit-image as the sky, with "
    f"photon noise, read noise and about {RAYS} straight rays a square from all directions; the "
    "brightness of the sky was chosen so that all four methods work upright. And two real frames, "
    "of a 1-m telescope (SAAO, in `ccdproc`) and of WFPC2 on Hubble (in `stsci.tools`)",
    packages=(
        Package("cosmic_conn", "0.6.1"),
        Package("deepCR", "0.3.1"),
        Package("astroscrappy", "1.3.0"),
        Package("scikit-image", "0.26.0", dependencies=False),
        Package("ccdproc", "2.5.1", dependencies=False),
        Package("stsci.tools", "4.3.1", dependencies=False),
    ),
    license="Cosmic-CoNN GPL-3.0, deepCR and astroscrappy BSD-3-Clause; the Hubble deep field and "
    "WFPC2 are in the public domain",
    promise="Nothing about orientation. The training code of Cosmic-CoNN rotates and mirrors its "
    "images at random (`dataloader.py`), that of deepCR does not. L.A.Cosmic is a sequence of "
    "filters; its median filter is by default separable, rows before columns.",
    promised="Cosmic-CoNN: trained on all 8; others nothing",
    rule="A pixel is flagged if its probability is above 0.5. **Invariant** if no probability "
    "of a square changes by 1e-4, in the mean over squares (upper limit). **Within "
    "tolerance** if the verdict changes with the orientation for less than 1 % of the "
    "pixels that a ray hit (upper limit). Otherwise, at all pixels whose verdict changes: "
    "**not invariant and confident** if confidence exceeds accuracy by more than 0.10 "
    "(lower limit), **not invariant, low confidence there** if by less than 0.05 (upper "
    "limit), else **not invariant**; a method without a confidence is **not invariant**. "
    "The IoU, which averages over pixels, decides nothing. A first look before this rule "
    "had found 4 and 13 % of the hit pixels to change for the two networks of Cosmic-CoNN.",
    decide=decide,
    finding="For Cosmic-CoNN it does, and it stays confident: the orientation changes the "
    "verdict on {{ methods[0]['verdict changes'] | percent }} (ground) and {{ "
    "methods[1]['verdict changes'] | percent }} (Hubble) of the pixels that a ray hit, "
    "and confidence exceeds accuracy there by {{ methods[0]['confidence minus accuracy "
    "where changed'] | cell }} and {{ methods[1]['confidence minus accuracy where "
    "changed'] | cell }}.\n\nThe mean hides it: the IoU is {{ methods[0]['IoU upright'] | "
    "cell }} upright and {{ methods[0]['IoU, all'] | cell }} over all orientations.\n\n"
    "deepCR changes its verdict on {{ methods[2]['verdict changes'] | percent }} of "
    "the pixels, too close to the tolerance of 1 % to decide; L.A.Cosmic, which is not a "
    "network, on {{ methods[3]['verdict changes'] | percent }}. Training on rotated images is "
    "not a guarantee: the code of Cosmic-CoNN does it, that of deepCR does not.",
    advice="Mask at all eight orientations and take the mean of the probabilities, or treat pixels "
    "on which they disagree as uncertain: an average IoU does not show them. L.A.Cosmic can "
    "be used as it is.",
    confirmed="With other squares and rays, rotated by NumPy without orbical, the shares are "
    "{{ again[0]['verdict changes'] | percent }}, {{ again[1]['verdict changes'] | percent }}, "
    "{{ again[2]['verdict changes'] | percent }} and {{ again[3]['verdict changes'] | percent }}, "
    "in the order of the table. In the real frame of a 1-m telescope Cosmic-CoNN ground flags "
    "{{ real[0].flagged }} pixels and changes {{ real[0]['verdict changes'] | percent }} of them: "
    "too few pixels to confirm or to exclude the share above. In the frame of WFPC2, a globular "
    "cluster whose stars are as sharp as rays and for which neither network was trained, they flag "
    "many stars, and change {{ real[2]['verdict changes'] | percent }} (Cosmic-CoNN) and "
    "{{ real[3]['verdict changes'] | percent }} (deepCR) of the flagged pixels, L.A.Cosmic "
    "{{ real[4]['verdict changes'] | percent }}.",
    sizes={
        "quick": {"squares": 24, "again": 12, "real": 16},
        "full": {"squares": 30, "again": 12, "real": 75},
    },
    run=run,
    shown=(loaded, scanned),
    shareable="the Hubble deep field, in the public domain, with generated rays",
)
