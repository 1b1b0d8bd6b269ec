"""MediaPipe Selfie Segmentation: which pixels are a person, when the picture turns."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import orbical as ob
from orbical_audits import (
    Audit,
    Outcome,
    Package,
    Picture,
    Table,
    Verdict,
    by_hand,
    interval,
    loading,
    share,
    turned_views,
)
from orbical_audits.by_hand import UNKNOWN
from orbical_audits.models._poses import INPUTS, LARGE, VIEW, other_persons, persons
from orbical_audits.models.face_mesh import photograph

NAME, NETWORK = "selfie_segmentation", "general"
FOUND, SAME_IOU, SURE = 0.5, 0.8, 14 / 15
"""Key points in a mask that shows a person, IoU of equal masks, a confident pixel."""
BACK = "tilted and back"


def loaded() -> Any:
    """Return the network as a function from images to the probability of a person, by pixel."""
    with loading("MediaPipe 0.10.14, selfie_segmentation", NAME):
        package = Path(str(find_spec("mediapipe").origin)).parent  # type: ignore[union-attr]
        file = package / "modules/selfie_segmentation/selfie_segmentation.tflite"
        return ob.predictors.TflitePredictor(str(file))


def scanned(network: Any, images: Tensor, labels: Tensor, turns: int, store: Path) -> ob.Scan:
    """Scan rotated and mirrored pictures in a window of 256 pixels."""
    task = ob.tasks.Segmentation(
        input=ob.actions.Window(VIEW),
        outputs="probabilities",
        classes=["background", "person"],
        ignore_index=UNKNOWN,
    )
    return ob.scan(
        {NETWORK: network},
        (images, labels),
        group=f"dihedral:{turns}",
        task=task,
        out=store,
        batch_size=8,
        progress=False,
    )


def own_masks(network: Any, images: Tensor) -> Tensor:
    """Return the network's upright masks as labels of the larger pictures, unknown around them."""
    edge = (LARGE - VIEW) // 2
    inner = torch.cat([network(one) for one in images[..., edge:-edge, edge:-edge].split(16)])
    return F.pad((inner[:, 0] > 0.5).long(), [edge] * 4, value=UNKNOWN)


def at_key_points(points: Tensor) -> Tensor:
    """Return labels that are 1 at visible key points in the view, and unknown elsewhere."""
    edge = (LARGE - VIEW) // 2
    labels = torch.full((len(points), LARGE, LARGE), UNKNOWN)
    for label, rows in zip(labels, points, strict=True):
        for x, y, seen in rows.tolist():
            if seen == 2 and 0 <= x < VIEW and 0 <= y < VIEW:
                label[int(y) + edge, int(x) + edge] = 1
    return labels


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan against the network's own upright masks, and against key points of the persons."""
    network = loaded()
    images, points = persons(size["persons"])
    own = scanned(network, images, own_masks(network, images), size["turns"], folder / "own.zarr")
    known = scanned(network, images, at_key_points(points), size["turns"], folder / "points.zarr")
    covered = known.data["score"].values[0]
    first = covered[:, own.group.identity] >= FOUND
    counted = measured(own, first)
    others = other_persons(size["persons"])
    tables = {
        "upright": Table(
            "Upright: the share of the persons that are found, at least half of whose visible key "
            "points are in the mask; of their visible key points that are; and of all pixels of "
            "these pictures whose class the network is confident about, with a probability "
            "above 0.93.",
            [of_upright(covered[:, own.group.identity], first, counted, own.group.identity, seed)],
        ),
        "families": Table(
            "Of persons found upright: the share of the visible key points in the mask; the "
            "overlap (IoU) of the mask with the upright one, moved along; the share of the "
            "positions at which it is below 0.8, and of the persons for whom it is at some; one "
            "minus the overlap at the worst position; and the share of the changed pixels of these "
            "masks that the network is confident about.",
            rows_of(own, counted, covered[first], seed),
        ),
        "again": Table(
            "The largest persons of further photographs and the second largest of all, mirrored, "
            "tilted by 30 degrees to the left and to the right, and rotated by quarters, by NumPy "
            "and Pillow; and upright pictures that were tilted and tilted back, which are "
            "interpolated twice. The columns are those of the table before, and the verdict that "
            "this confirms.",
            by_hand_rows(network, *others, seed),
        ),
        "graph": Table(
            "The same pictures, given to the graph of the package, "
            "`mediapipe.solutions.selfie_segmentation`, which resizes a picture and rotates "
            "nothing.",
            of_graph(*others, seed),
        ),
    }
    wrong = {NETWORK: counted["wrong"]}
    changed, sure = counted["changed"] * counted["wrong"], counted["confident"] * counted["wrong"]
    with np.errstate(invalid="ignore"):
        part = {NETWORK: np.nan_to_num(sure / changed)}
    words = ("share of masks with IoU below 0.8", "share of changed pixels it is confident about")
    return Outcome(
        tables,
        {
            "pictures": Picture(
                pictured(network), "Masks of one picture, upright, mirrored and rotated"
            ),
            "angles": Picture(
                turned_views.drawn(own, wrong, part, words),
                "How often a mask changes, and how confident the network is of it, at every angle",
            ),
        },
    )


def measured(scan: ob.Scan, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Return for the chosen samples, by element: IoU, and counts of pixels that change."""
    part = scan.data.sel(model=NETWORK).isel(sample=np.flatnonzero(chosen))
    count, correct = part["pixel_count"].values, part["pixel_correct"].values
    iou = part["class_iou"].values[..., 1]
    iou = np.where(np.isnan(iou), 1.0, iou)  # no person in either mask
    return {
        "iou": iou,
        "wrong": iou < SAME_IOU,
        "changed": (count - correct).sum(-1),
        "confident": (count - correct)[..., -1],
        "pixels": count.sum(-1),
        "all confident": count[..., -1],
    }


def of_upright(
    covered: np.ndarray, first: np.ndarray, counted: dict[str, np.ndarray], place: int, seed: int
) -> dict[str, Any]:
    """Return the row of upright views."""
    return {
        "network": NETWORK,
        "persons": len(first),
        "found": share(first),
        "key points in the mask": interval(covered[first], seed=seed),
        "confident where right": turned_views.share_of(
            counted["all confident"][:, [place]], counted["pixels"][:, [place]], seed
        ),
    }


def rows_of(
    scan: ob.Scan, counted: dict[str, np.ndarray], covered: np.ndarray, seed: int
) -> list[dict[str, Any]]:
    """Return a row for each family of positions."""
    return [
        {
            "network": NETWORK,
            "family": family,
            "positions": int(chosen.sum()),
            "key points in the mask": interval(np.nanmean(covered[:, chosen], 1), seed=seed),
            **overlaps(counted["iou"][:, chosen], seed),
            "confident where wrong": turned_views.share_of(
                (counted["confident"] * counted["wrong"])[:, chosen],
                (counted["changed"] * counted["wrong"])[:, chosen],
                seed,
            ),
        }
        for family, chosen in turned_views.families(scan).items()
    ]


def overlaps(iou: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the columns that come from overlaps `[sample, position]`."""
    wrong = iou < SAME_IOU
    return {
        "IoU": interval(iou.mean(1), seed=seed),
        "wrong": interval(wrong.mean(1), seed=seed),
        "wrong somewhere": share(wrong.any(1)),
        "moved by": interval((1 - iou).max(1), seed=seed),
    }


def by_hand_rows(network: Any, images: Tensor, points: Tensor, seed: int) -> list[dict[str, Any]]:
    """Return rows for pictures moved by NumPy and Pillow, over persons that are found upright."""
    pictures = by_hand.as_bytes(images)

    def asked(arrays: np.ndarray) -> np.ndarray:
        views = by_hand.as_images(by_hand.middle(arrays, VIEW))
        return np.concatenate([network(few)[:, 0].numpy() for few in views.split(16)])

    upright = asked(pictures) > 0.5
    edge = (LARGE - VIEW) // 2
    around = [(0, 0), (edge, edge), (edge, edge)]
    labels = np.pad(upright.astype(np.uint8), around, constant_values=UNKNOWN)
    key = by_hand.middle(at_key_points(points).numpy(), VIEW) == 1
    kept = (upright & key).sum((1, 2)) >= np.maximum(FOUND * key.sum((1, 2)), 1)
    views = {
        family: [(move(pictures), move(labels)) for move in moves]
        for family, moves in by_hand.FAMILIES.items()
    }
    views[BACK] = [(by_hand.tilted_and_back(pictures), labels)]
    rows = {}
    for family, given in views.items():
        found = [overlap(asked(moved), by_hand.middle(own, VIEW)) for moved, own in given]
        iou, changed, sure = (np.stack(column, 1)[kept] for column in zip(*found, strict=True))
        wrong = iou < SAME_IOU
        rows[family] = {
            "family": family,
            "persons": int(kept.sum()),
            **overlaps(iou, seed),
            "confident where wrong": turned_views.share_of(sure * wrong, changed * wrong, seed),
        }
    for family, row in rows.items():
        if family != BACK:
            control = rows[BACK] if family == "tilted" else None
            row["confirms"] = turned_views.confirms(row, control)
    return [*rows.values()]


def overlap(mask: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare probabilities with labels, both `[N, row, column]`, where these are known.

    Returns:
        The IoU `[N]`, the number of pixels that differ, and of those that the network is
        confident about.
    """
    known, person = own != UNKNOWN, mask > 0.5
    both, either = (person & (own == 1)), (person & known) | (own == 1)
    differs = known & (person != (own == 1))
    sure = differs & (np.maximum(mask, 1 - mask) > SURE)
    count = either.sum((1, 2))
    iou = np.where(count, both.sum((1, 2)) / np.maximum(count, 1), 1.0)  # neither has a person
    return iou, differs.sum((1, 2)), sure.sum((1, 2))


def of_graph(images: Tensor, points: Tensor, seed: int) -> list[dict[str, Any]]:
    """Return rows for the masks of the graph of the package."""
    import mediapipe

    with mediapipe.solutions.selfie_segmentation.SelfieSegmentation(0) as graph:

        def masks(batch: Tensor) -> Tensor:
            found = [graph.process(one).segmentation_mask for one in by_hand.as_bytes(batch)]
            return torch.from_numpy(np.stack(found))[:, None]

        return by_hand_rows(masks, images, points, seed)


def pictured(network: Any) -> Any:
    """Draw the outline of the mask on one picture, whose license allows to show it."""
    picture = torch.from_numpy(np.asarray(photograph(), np.float32) / 255).permute(2, 0, 1)
    large = F.interpolate(picture[None], (LARGE, LARGE), mode="bilinear", antialias=True)
    places = {"upright": 0, "mirrored": 12, "30°": 1, "60°": 2, "90°": 3, "120°": 4, "180°": 6}
    views = ob.actions.Window(VIEW).apply(ob.groups.dihedral(12), large)[[*places.values()], 0]
    masks = network(views)[:, 0]
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 1.4)
        grid = fig.subplots(1, len(places))
        for axes, name, view, mask in zip(grid, places, views, masks, strict=True):
            axes.imshow(view.permute(1, 2, 0).clamp(0, 1).numpy())
            cover = np.zeros((VIEW, VIEW, 4), np.float32)
            cover[..., :3], cover[..., 3] = 1.0, 0.85 * (mask.numpy() <= 0.5)
            axes.imshow(cover)
            axes.set(xticks=[], yticks=[], title=name)
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule."""
    return turned_views.decide("Selfie Segmentation {}", tables)


audit = Audit(
    title="MediaPipe Selfie Segmentation",
    question="Does the mask of a person rotate with the picture, and does the network know when "
    "not?",
    group=turned_views.GROUP,
    inputs=INPUTS + ". The figure shows the public-domain astronaut of scikit-image instead, which "
    "is in no number",
    packages=(
        Package("mediapipe", "0.10.14", dependencies=False),
        Package("protobuf", "4.25.8"),
        Package("absl-py", "2.5.1"),
        Package("scikit-image", "0.26.0", dependencies=False),
    ),
    license="Apache-2.0, code and weights; the photographs are COCO's and are not shown",
    promise="The prominent humans of a scene, for selfies and video calls, with the person less "
    "than two meters from the camera; nothing about rotated pictures. The graph around this "
    "network "
    "resizes a picture and rotates nothing, unlike those of MediaPipe Pose and Face Mesh. Many of "
    "the persons here are farther away than two meters.",
    promised="persons in front of a camera; rotations not mentioned",
    rule=turned_views.RULE.format(
        samples="the persons that are found upright, with at least half of their visible key "
        "points in the mask",
        short="persons",
        wrong="A mask is wrong if its overlap (IoU) with the upright one, moved along, is below "
        "0.8.",
        sure="The network is confident about a pixel if the probability of its class is above "
        "14/15, the "
        "last of 15 bins.",
        moved="masks overlap to a thousandth, in the mean over persons at the worst position",
        failures="pixels that change in wrong masks",
        successes="pixels of upright masks",
    )
    + turned_views.SECOND_WAY.format(failures="pixels that change in wrong masks"),
    decide=decide,
    finding="The masks do not rotate with the picture. In a mirror they overlap with the upright "
    "ones to {{ families[0].IoU | cell }} (IoU), tilted by 30 degrees to {{ "
    "families[1].IoU | cell }}, and rotated further to {{ families[2].IoU | cell }}. A "
    "mask is wrong (below 0.8) for {{ families[0].wrong | percent }} of the persons in "
    "a mirror, in {{ families[1].wrong | percent }} of the tilted and {{ "
    "families[2].wrong | percent }} of the rotated views.\n\nRotated, the network is confident "
    "about {{ families[2]['confident where wrong'] | percent }} of the pixels that change in "
    "wrong masks (about all pixels upright: {{ upright[0]['confident where right'] | percent "
    "}}). In a mirror and tilted the interval of that share includes a half, so that "
    "these are called not invariant and no more. The authors do not promise rotated pictures.",
    advice="Rotate pictures upright first, and average a picture with its mirror image where masks "
    "must be steady. A high probability is not evidence for a pixel in a rotated picture.",
    main_table="families",
    confirmed="All three verdicts are confirmed on other persons, moved by NumPy and Pillow "
    "without orbical: {{ again[0].wrong | percent }} of the masks are wrong in a mirror, {{ "
    "again[1].wrong | percent }} tilted and {{ again[2].wrong | percent }} rotated by quarters, "
    "and of the pixels that change in wrong masks when rotated the network is confident about {{ "
    "again[2]['confident where wrong'] | percent }}. Interpolation is not the cause: of pictures "
    "that were tilted and tilted back {{ again[3].wrong | percent }} of the masks are wrong. "
    "The graph of the package gives the same masks: pictures of 256 pixels need no resizing.",
    sizes={
        "quick": {"persons": 100, "turns": 12},
        "full": {"persons": 150, "turns": 24},
    },
    run=run,
    shown=(loaded, scanned),
)
