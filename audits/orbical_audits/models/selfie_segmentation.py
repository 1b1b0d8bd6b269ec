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
    interval,
    loading,
    share,
    turned_views,
)
from orbical_audits.models._poses import INPUTS, LARGE, VIEW, persons
from orbical_audits.models.face_mesh import photograph

NAME, NETWORK = "selfie_segmentation", "general"
FOUND, SAME_IOU, UNKNOWN = 0.5, 0.8, 255
"""Share of the key points in a mask that shows a person, IoU of equal masks, unjudged pixels."""


def loaded() -> Any:
    """Return the network as a function from images to the probability of a person, by pixel."""
    with loading("MediaPipe 0.10.14, selfie_segmentation", NAME):
        package = Path(str(find_spec("mediapipe").origin)).parent  # type: ignore[union-attr]
        file = package / "modules/selfie_segmentation/selfie_segmentation.tflite"
        return ob.predictors.TflitePredictor(str(file))


def scanned(network: Any, images: Tensor, labels: Tensor, turns: int, store: Path) -> ob.Scan:
    """Scan pictures that turn and are mirrored in a window of 256 pixels."""
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
    more, labels = persons(size["others"], rank=1)
    edge = (LARGE - VIEW) // 2
    inner = more[..., edge:-edge, edge:-edge]
    tables = {
        "upright": Table(
            "Upright: the share of the persons that are found, at least half of whose visible key "
            "points are in the mask; of their visible key points that are; and of all pixels of "
            "these pictures whose class the network is sure of, with a probability above 0.93.",
            [of_upright(covered[:, own.group.identity], first, counted, own.group.identity, seed)],
        ),
        "families": Table(
            "Of persons found upright: the share of the visible key points in the mask; the "
            "overlap (IoU) of the mask with the upright one, moved along; the share of the "
            "positions at which it is below 0.8, and of the persons for whom it is at some; one "
            "minus the overlap at the worst position; and the share of the changed pixels of these "
            "masks that the network is sure of.",
            rows_of(own, counted, covered[first], seed),
        ),
        "again": Table(
            "The second largest person of each photograph, turned by quarters and mirrored "
            "by NumPy.",
            by_hand(network, inner, labels, seed),
        ),
        "graph": Table(
            "The graph of the package, `mediapipe.solutions.selfie_segmentation`, on the pictures "
            "of the table before: it resizes a picture and turns nothing.",
            of_graph(inner, labels, seed),
        ),
    }
    wrong = {NETWORK: counted["wrong"]}
    changed, sure = counted["changed"] * counted["wrong"], counted["sure"] * counted["wrong"]
    with np.errstate(invalid="ignore"):
        part = {NETWORK: np.nan_to_num(sure / changed)}
    words = ("share of masks with IoU below 0.8", "share of changed pixels it is sure of")
    return Outcome(
        tables,
        {
            "pictures": Picture(
                pictured(network), "Masks of one picture, upright, mirrored and turned"
            ),
            "angles": Picture(
                turned_views.drawn(own, wrong, part, words),
                "How often a mask changes, and how sure the network is of it, at every angle",
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
        "sure": (count - correct)[..., -1],
        "pixels": count.sum(-1),
        "all sure": count[..., -1],
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
        "sure where right": turned_views.share_of(
            counted["all sure"][:, [place]], counted["pixels"][:, [place]], seed
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
            "sure where wrong": turned_views.share_of(
                (counted["sure"] * counted["wrong"])[:, chosen],
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


def turned_masks(network: Any, images: Tensor) -> dict[str, np.ndarray]:
    """Return masks `[N, row, column]` of pictures turned and mirrored by NumPy, moved back."""
    masks = {}
    for turns in range(4):
        turned = torch.from_numpy(np.rot90(images.numpy(), turns, (2, 3)).copy())
        masks[f"{90 * turns}°"] = np.rot90(network(turned)[:, 0].numpy() > 0.5, -turns, (1, 2))
    masks["mirrored"] = network(images.flip(-1))[:, 0].numpy()[..., ::-1] > 0.5
    return masks


def compared(masks: dict[str, np.ndarray], points: Tensor, seed: int) -> list[dict[str, Any]]:
    """Return overlaps with the upright masks, over persons whose key points these cover."""
    edge = (LARGE - VIEW) // 2
    labels = at_key_points(points)[:, edge:-edge, edge:-edge].numpy() == 1
    upright = masks["0°"]
    count = labels.sum((1, 2))
    kept = (upright & labels).sum((1, 2)) >= np.maximum(FOUND * count, 1)
    rows = []
    for name, mask in masks.items():
        both, either = (mask & upright).sum((1, 2)), (mask | upright).sum((1, 2))
        iou = (both / np.maximum(either, 1))[kept]
        rows.append({"position": name, "persons": int(kept.sum()), **overlaps(iou[:, None], seed)})
    return rows[1:]


def by_hand(network: Any, images: Tensor, points: Tensor, seed: int) -> list[dict[str, Any]]:
    """Return rows for the network's masks."""
    return compared(turned_masks(network, images), points, seed)


def of_graph(images: Tensor, points: Tensor, seed: int) -> list[dict[str, Any]]:
    """Return rows for the masks of the graph of the package."""
    import mediapipe

    with mediapipe.solutions.selfie_segmentation.SelfieSegmentation(0) as graph:

        def masks(batch: Tensor) -> Tensor:
            pictures = (255 * batch).round().byte().permute(0, 2, 3, 1).numpy()
            found = [graph.process(picture).segmentation_mask for picture in pictures]
            return torch.from_numpy(np.stack(found))[:, None]

        return compared(turned_masks(masks, images), points, seed)


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
    question="Does the mask of a person turn with the picture, and does the network know when not?",
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
    "than two meters from the camera; nothing about turned pictures. The graph around this network "
    "resizes a picture and turns nothing, unlike those of MediaPipe Pose and Face Mesh. Many of "
    "the persons here are farther away than two meters.",
    promised="persons in front of a camera; turns not mentioned",
    rule=turned_views.RULE.format(
        samples="the persons that are found upright, with at least half of their visible key "
        "points in the mask",
        short="persons",
        wrong="A mask is wrong if its overlap (IoU) with the upright one, moved along, is below "
        "0.8.",
        sure="The network is sure of a pixel if the probability of its class is above 14/15, the "
        "last of 15 bins.",
        moved="masks overlap to a thousandth, in the mean over persons at the worst position",
        failures="pixels that change in wrong masks",
        successes="pixels of upright masks",
    ),
    decide=decide,
    finding="The masks do not turn with the picture. In a mirror they overlap with the upright "
    "ones to {{ families[0].IoU | cell }} (IoU), tilted by 30 degrees to "
    "{{ families[1].IoU | cell }}, and turned further to {{ families[2].IoU | cell }}. A mask is "
    "wrong (below 0.8) for {{ families[0].wrong | percent }} of the persons in a mirror, in "
    "{{ families[1].wrong | percent }} of the tilted and {{ families[2].wrong | percent }} of the "
    "turned views. Turned, the network is sure of "
    "{{ families[2]['sure where wrong'] | percent }} of the pixels that change in wrong masks (of "
    "all pixels upright: {{ upright[0]['sure where right'] | percent }}). In a mirror and tilted "
    "the interval of that share includes a half, so that these are called broken and no more. "
    "Nobody promises turned pictures.",
    confirmed="The second largest person of each photograph, turned by NumPy without orbical and "
    "without interpolation: {{ again[0].wrong | percent }} of the masks are wrong at 90 degrees, "
    "{{ again[1].wrong | percent }} at 180 and {{ again[3].wrong | percent }} in a mirror. The "
    "graph of the package, on the same pictures: {{ graph[0].wrong | percent }}, "
    "{{ graph[1].wrong | percent }} and {{ graph[3].wrong | percent }}; pictures of 256 pixels "
    "need no resizing, so that it gives what the network gives. Tilts, and how sure the network "
    "is, were not repeated in another way.",
    sizes={
        "quick": {"persons": 100, "others": 60, "turns": 12},
        "full": {"persons": 150, "others": 100, "turns": 24},
    },
    run=run,
    shown=(loaded, scanned),
)
