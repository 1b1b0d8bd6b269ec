"""Networks that find the 17 key points of a person, under turns and mirror images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import orbical as ob
from orbical_audits import Outcome, Picture, Table, by_hand, interval, share
from orbical_audits.turned_views import RULE, confirms, drawn, families, share_of

Pose = Callable[[Tensor], Tensor]
"""From images `[N, 3, 256, 256]` in 0..1 to `[N, 17, 3]`: x, y in pixels, confidence."""
VIEW, LARGE = 256, 364
"""Pixels that a network sees, and of the picture in which this window turns."""
RIGHT_OKS = 0.5
ALL = 10**6
INPUTS = (
    "persons of COCO val2017, the largest of each photograph, with at least eight of the 17 key "
    "points labeled, enlarged to 256 x 256 pixels around the middle of its box, whose longer "
    "side is 205 pixels; what lies beyond the photograph is black"
)
SIZES: Mapping[str, Mapping[str, Any]] = {
    "quick": {"persons": 100, "others": 40, "turns": 12},
    "full": {"persons": 150, "others": 100, "turns": 24},
}


def rule(sure: str) -> str:
    """Return the rule in words, with those that say when a network is confident."""
    return RULE.format(
        samples="the persons whose upright pose is right",
        short="persons",
        wrong="A pose is wrong if its similarity to the labels (OKS) is below 0.5.",
        sure=sure,
        moved="the points, moved back, lie within a thousandth of the size of the person of the "
        "upright ones, in the mean over persons at the worst position",
        failures="wrong poses",
        successes="right upright poses",
    )


def persons(count: int, rank: int = 0) -> tuple[Tensor, Tensor]:
    """Return pictures `[N, 3, 364, 364]` of persons, and key points in their middle 256 pixels.

    Args:
        count: the largest number.
        rank: 0 for the largest person of each photograph, 1 for the next.
    """
    margin = 1.25 * LARGE / VIEW
    images, points = ob.datasets.coco_persons(size=LARGE, margin=margin, most=rank + 1)
    if rank:
        larger = ob.datasets.coco_persons(size=LARGE, margin=margin, most=rank)[1]
        known = {row.numpy().tobytes() for row in larger}
        others = [row.numpy().tobytes() not in known for row in points]
        images, points = images[others], points[others]
    points[..., :2] -= (LARGE - VIEW) / 2
    return images[:count], points[:count]


def other_persons(count: int) -> tuple[Tensor, Tensor]:
    """Return all persons but the first `count`: the largest of further photographs, and others."""
    largest, second = (persons(ALL, rank) for rank in (0, 1))
    images, points = (torch.cat([a[count:], b]) for a, b in zip(largest, second, strict=True))
    return images, points


def key_points(view: Any) -> ob.tasks.KeyPoints:
    """Return the task: COCO's 17 points in views of 256 pixels, exchanged by mirrors."""
    return ob.tasks.KeyPoints(
        (VIEW, VIEW),
        input=view,
        swaps=ob.tasks.COCO_SWAPS,
        sigmas=ob.tasks.COCO_SIGMAS,
        edges=ob.tasks.COCO_EDGES,
    )


def scanned(
    networks: Mapping[str, Pose], images: Tensor, points: Tensor, turns: int, store: Path
) -> ob.Scan:
    """Scan rotated and mirrored persons in a window of 256 pixels."""
    return ob.scan(
        networks,
        (images, points),
        group=f"dihedral:{turns}",
        task=key_points(ob.actions.Window(VIEW)),
        out=store,
        batch_size=16,
        progress=False,
    )


def audited(
    networks: Mapping[str, Pose], threshold: float, size: Any, seed: int, folder: Path
) -> Outcome:
    """Scan, and again other persons at quarter turns, which move pixels exactly."""
    images, points = persons(size["persons"])
    scan = scanned(networks, images, points, size["turns"], folder / "poses.zarr")
    more, labels = persons(size["others"], rank=1)
    edge = (LARGE - VIEW) // 2
    exact = ob.scan(
        networks,
        (more[..., edge:-edge, edge:-edge], labels),
        group="dihedral:4",
        task=key_points(ob.actions.Images()),
        batch_size=16,
        progress=False,
    )
    found = {name: measured(scan, name, threshold) for name in networks}
    upright, rows = tabled(scan, points, found, seed)
    again = tabled(exact, labels, {n: measured(exact, n, threshold) for n in networks}, seed)[1]
    tables = {
        "upright": Table(
            "Upright: the share of the persons whose pose is right (OKS of at least 0.5), and of "
            "the right and the wrong poses that the network is confident about.",
            upright,
        ),
        "families": Table(
            "Of persons whose upright pose is right: the share of the positions at which the pose "
            "is wrong, of the persons for whom it is wrong at some, and of the positions where "
            "only left and right are exchanged; how far the points move, in sizes of the person, "
            "at the worst position; and the share of the wrong poses that the network is "
            "confident about.",
            rows,
        ),
        "again": Table(
            "The second largest person of each photograph at quarter turns and their mirror "
            "images, without any interpolation.",
            again,
        ),
    }
    right = {name: part["right"][:, scan.group.identity] for name, part in found.items()}
    wrong = {name: ~part["right"][right[name]] for name, part in found.items()}
    sure = {name: wrong[name] & part["confident"][right[name]] for name, part in found.items()}
    words = ("share of poses that are wrong", "share of the wrong ones it is confident about")
    alt = "How often a pose is wrong, and the network confident about it, at every angle"
    return Outcome(tables, {"angles": Picture(drawn(scan, wrong, sure, words), alt)})


def tilted_again(
    network: Pose, images: Tensor, points: Tensor, threshold: float, seed: int
) -> list[dict[str, Any]]:
    """Return rows for persons tilted by Pillow, and for pictures that were tilted back."""
    pictures = by_hand.as_bytes(images)
    angles = (by_hand.TILT, -by_hand.TILT)
    views = {
        "upright": [(pictures, 0)],
        "tilted": [(by_hand.tilted(angle)(pictures), angle) for angle in angles],
        "tilted and back": [(by_hand.tilted_and_back(pictures), 0)],
    }
    right, sure = {}, {}
    for family, given in views.items():
        found = [_asked(network, moved) for moved, _ in given]
        turned = zip(found, given, strict=True)
        right[family] = np.stack([similar(f[..., :2], points, a, VIEW) for f, (_, a) in turned], 1)
        sure[family] = np.stack([f[..., 2].mean(1) >= threshold for f in found], 1)
    first = right.pop("upright")[:, 0]
    rows = []
    for family, good in right.items():
        wrong = ~good[first]
        rows.append(
            {
                "family": family,
                "wrong": interval(wrong.mean(1), seed=seed),
                "wrong somewhere": share(wrong.any(1)),
                "confident where wrong": share_of(wrong & sure[family][first], wrong, seed),
            }
        )
    rows[0]["confirms"] = confirms(*rows)
    return rows


def _asked(network: Pose, pictures: np.ndarray) -> Tensor:
    views = by_hand.as_images(by_hand.middle(pictures, VIEW))
    return torch.cat([network(few) for few in views.split(16)])


def similar(found: Tensor, points: Tensor, degrees: float, side: int) -> np.ndarray:
    """Return whether points `[N, 17, 2]` are right (OKS) for labels rotated by an angle.

    Args:
        found: x and y in pixels of the rotated view.
        points: labels in the upright view, `[N, 17, 3]`.
        degrees: counter-clockwise.
        side: of the view.
    """
    place = points[..., :2].where(points[..., 2:] > 0, torch.nan)
    extent = place.nan_to_num(-torch.inf).amax(1) - place.nan_to_num(torch.inf).amin(1)
    area = extent.prod(-1).maximum(extent.amax(-1) ** 2 / 4)
    truth = by_hand.tilted_points(place, degrees, side)
    seen = ((truth >= 0) & (truth < side)).all(-1)
    away = (found - truth).norm(dim=-1).where(seen, torch.nan)
    width = 2 * torch.tensor(ob.tasks.COCO_SIGMAS)
    oks = (-(away**2) / (2 * area[:, None] * width**2)).exp().nanmean(-1)
    return ~(oks < RIGHT_OKS).numpy()  # a view without any labeled point has nothing wrong


def measured(scan: ob.Scan, network: str, threshold: float) -> dict[str, np.ndarray]:
    """Return where `[sample, element]` a pose is right, and where the network is confident."""
    part = scan.data.sel(model=network)
    # A view that no labeled point is in has nothing that could be wrong.
    right = ~(part["oks"].values < RIGHT_OKS)
    return {"right": right, "confident": part["confidence"].values >= threshold}


def tabled(
    scan: ob.Scan, points: Tensor, found: Mapping[str, dict[str, np.ndarray]], seed: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of upright views, and those of families of positions."""
    upright, rows = [], []
    for name, part in found.items():
        right, sure = part["right"], part["confident"]
        first = right[:, scan.group.identity]
        still = [scan.group.identity]
        upright.append(
            {
                "network": name,
                "persons": len(right),
                "right": share(first),
                "confident where right": share_of((right & sure)[:, still], right[:, still], seed),
                "confident where wrong": share_of(
                    (~right & sure)[:, still], ~right[:, still], seed
                ),
            }
        )
        wrong, sure = ~right[first], sure[first]
        moved, exchanged = (values[first] for values in distances(scan, name, points))
        for family, chosen in families(scan).items():
            if not chosen.any():
                continue
            rows.append(
                {
                    "network": name,
                    "family": family,
                    "positions": int(chosen.sum()),
                    "wrong": interval(wrong[:, chosen].mean(1), seed=seed),
                    "wrong somewhere": share(wrong[:, chosen].any(1)),
                    "sides exchanged": interval((exchanged & wrong)[:, chosen].mean(1), seed=seed),
                    "moved by": interval(moved[:, chosen].max(1), seed=seed),
                    "confident where wrong": share_of(
                        (wrong & sure)[:, chosen], wrong[:, chosen], seed
                    ),
                }
            )
    return upright, rows


def distances(scan: ob.Scan, network: str, points: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return how far labeled points move, and where they would be right with sides exchanged.

    Both are `[sample, element]`; distances are in sizes of a person, the longer side of the box
    around its labeled points.
    """
    action = ob.actions.PixelPoints(VIEW, VIEW, ob.tasks.COCO_SWAPS)
    found = torch.from_numpy(scan.data["points"].sel(model=network).values).transpose(0, 1)
    back = action.move(scan.group.inverse(), found)
    seen = points[..., 2] > 0
    place = points[..., :2].where(seen[..., None], torch.nan)
    high, low = place.nan_to_num(-torch.inf).amax(1), place.nan_to_num(torch.inf).amin(1)
    away = (back - back[scan.group.identity]).norm(dim=-1).where(seen, torch.nan)
    moved = away.nanmean(-1) / (high - low).amax(-1)
    order = np.arange(found.shape[2])
    for pair in ob.tasks.COCO_SWAPS:
        order[[*pair]] = order[[*pair[::-1]]]
    truth = torch.cat([place, points[..., 2:]], -1)
    reference = action.apply(scan.group, truth)
    similar = key_points(ob.actions.Images()).score(found[:, :, order], reference, None)
    return moved.T.numpy(), (similar >= RIGHT_OKS).T.numpy()
