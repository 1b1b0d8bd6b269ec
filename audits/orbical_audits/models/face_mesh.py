"""MediaPipe Face Mesh: the network that finds 468 points of a face, without the graph around it."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation
from torch import Tensor

import orbical as ob
from orbical.errors import ModelError
from orbical_audits import Audit, Outcome, Package, Picture, Table, loading, turned_views
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

NAME, TITLE = "face_mesh", "MediaPipe Face Mesh"
VIEW, LARGE = 192, 272
"""Pixels that the network sees, and of the picture in which this window turns."""
MIDDLE, EYES = (225, 122), ((204, 101), (247.4, 103))
"""The middle of the face and its irises in the photograph, in pixels, read off by eye."""
SIDES, SHIFTS, LIGHT = (120, 140, 160), ((0, 0), (8, 0), (-8, 0), (0, 8), (0, -8)), (1.0, 0.6)
"""Sides of the squares in pixels of the photograph, shifts of their middles, and brightness."""
CORNERS, ANCHORS = (33, 263), ((33, 263, 61, 291, 1, 152, 10), (263, 33, 291, 61, 1, 152, 10))
"""Outer corners of the eyes; and some points with their mirror images: eyes, mouth, middle line."""
WRONG, PRESENT = 0.1, 0.5
"""In distances of the outer corners of the eyes; and the package's own threshold."""

FINDING = """
The mesh follows a mirror but not a rotation, and **upside down the network is wrong and
confident**: it draws an upright mesh onto the face, {{ families[3]['moved by'] | cell }} eye
distances off, with a presence of {{ families[3].presence | cell }}. In a mirror left stays left,
and the mesh is {{ families[0]['moved by'] | cell }} off.

Tilted by 30°, it is {{ families[1]['moved by'] | cell }} off and stays confident (presence
{{ families[1].presence | cell }}); at a quarter turn it is {{ again[1]['moved by'] | cell }} off,
and its presence is low ({{ again[1].presence | cell }}).

The network alone breaks no promise: it is made for level eyes. The graph of the package levels them
first and follows this face to 90°, but upside down it returns a mesh that is
{{ graph[6]['moved by'] | number }} eye distances off, too. All of this is one face.
"""
CONFIRMED = """
In other squares of the photograph, rotated by NumPy without interpolation, the mesh is
{{ again[2]['moved by'] | cell }} eye distances off upside down, with a presence of
{{ again[2].presence | cell }}. The graph of the package, on the whole photograph rotated by Pillow,
gives at 150° and 180° a mesh that is {{ graph[5]['moved by'] | number }} and
{{ graph[6]['moved by'] | number }} eye distances from its upright one, at 120° none, and up to 90°
one that is at most {{ graph[3]['moved by'] | number }} off. That the upright prediction is
right was
checked with the irises, read off by eye: the middles of the network's eyes are
{{ upright[0]['eyes off by'] | cell }} eye distances from them.
"""


def loaded() -> Any:
    """Return the network as a function from images to points x, y, z and the presence of a face."""
    with loading("MediaPipe 0.10.14, face_landmark", NAME):
        package = Path(str(find_spec("mediapipe").origin)).parent  # type: ignore[union-attr]
        network = ob.predictors.TflitePredictor(
            str(package / "modules/face_landmark/face_landmark.tflite")
        )

    def mesh(images: Tensor) -> tuple[Tensor, Tensor]:
        points, flag = network(images)
        return points.reshape(len(images), 468, 3), flag.reshape(len(images), 1).sigmoid()

    return mesh


def scanned(mesh: Any, images: Tensor, turns: int, store: Path) -> ob.Scan:
    """Scan a rotated and mirrored face, against the network's own prediction upright."""
    edge = (LARGE - VIEW) // 2
    upright, _ = mesh(images[..., edge:-edge, edge:-edge])
    return ob.scan(
        {"face mesh": lambda views: answered(*mesh(views))},
        (images, upright[..., :2]),
        group=f"dihedral:{turns}",
        task=ob.tasks.KeyPoints(input=ob.actions.Window(VIEW), swaps=pairs(upright[0].numpy())),
        keep="inputs",
        out=store,
        batch_size=16,
        progress=False,
    )


def answered(points: Tensor, presence: Tensor) -> dict[str, Tensor]:
    """Return what the task reads; the confidence of every point is the presence of the face."""
    return {"keypoints": points[..., :2], "scores": presence.expand(-1, points.shape[1])}


def pairs(mesh: np.ndarray) -> list[tuple[int, int]]:
    """Return the points that a mirror exchanges, from the symmetry of one upright mesh `[n, 3]`."""
    mirrored = mesh * [-1, 1, 1]
    given, wanted = mirrored[[*ANCHORS[0]]], mesh[[*ANCHORS[1]]]
    turn, _ = Rotation.align_vectors(wanted - wanted.mean(0), given - given.mean(0))
    laid = turn.apply(mirrored - given.mean(0)) + wanted.mean(0)
    apart = cdist(laid, mesh)
    partner = linear_sum_assignment(apart**2)[1]
    every = np.arange(len(mesh))
    off = apart[every, partner].mean() / mesh.std()
    if off > 0.1 or (partner[partner] != every).any():
        raise ModelError(
            "mesh: expected an upright mesh that is nearly its own mirror image, got one that is "
            f"{off:.2f} of its size off"
        )
    return [(first, int(second)) for first, second in enumerate(partner) if first < second]


def photograph() -> Image.Image:
    """Return the astronaut of scikit-image, which is in the public domain."""
    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise ModelError(
            "scikit-image: expected the package with its photographs, got none installed; install "
            "it with: make audit NAME=face_mesh"
        )
    return Image.open(Path(found.origin).parent / "data/astronaut.png").convert("RGB")


def faces(shift: float = 0.0) -> Tensor:
    """Return squares `[30, 3, 272, 272]` around the face: sizes, places and brightness differ.

    Args:
        shift: moves all of them, in pixels of the photograph.
    """
    picture, views = photograph(), []
    for side, (right, down), light in product(SIDES, SHIFTS, LIGHT):
        half = side / 2 * LARGE / VIEW
        x, y = MIDDLE[0] + right + shift, MIDDLE[1] + down
        box = (x - half, y - half, x + half, y + half)
        size, how = (LARGE, LARGE), Image.Resampling.BICUBIC
        cut = picture.transform(size, Image.Transform.EXTENT, box, how)
        views.append(light * torch.from_numpy(np.asarray(cut, np.float32) / 255).permute(2, 0, 1))
    return torch.stack(views)


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan the views of the face; then other views, at exact quarter turns, and the graph."""
    mesh, images = loaded(), faces()
    scan = scanned(mesh, images, size["turns"], folder / "scan.zarr")
    moved, presence = measured(scan)
    tables = {
        "upright": Table(
            "Upright: how far the irises, read off by eye, are from the middle of the corners of "
            "the network's eyes, in eye distances, and how confident it is of the face.",
            [of_upright(mesh, images)],
        ),
        "families": Table(
            "Over 30 views of one face, the mean and in parentheses the smallest and largest: how "
            "far the mesh is from the upright one moved along, in eye distances, at the worst "
            "position; the share of positions where it is wrong, more than a tenth off, and of "
            "these where it is confident, with a presence of at least 0.5; and the mean presence.",
            rows_of(scan, moved, presence),
        ),
        "again": Table(
            "Other places of the square, moved by four pixels of the photograph, at quarter turns "
            "and mirror images without interpolation, by NumPy.",
            by_hand(mesh, faces(4.0)),
        ),
        "graph": Table(
            "The graph of the package, `mediapipe.solutions.face_mesh.FaceMesh`, which first finds "
            "the face and rotates it upright, on the whole photograph, rotated by Pillow.",
            of_graph(photograph()),
        ),
    }
    alt = "Meshes on a face that is upright, mirrored and rotated, with the presence it states"
    return Outcome(tables, {"faces": Picture(drawn(mesh, images[10]), alt)})


def measured(scan: ob.Scan) -> tuple[np.ndarray, np.ndarray]:
    """Return distances `[view, element]` in eye distances, and the presence."""
    eyes = scan.data["true_points"].values[:, [*CORNERS], :2]
    apart = np.linalg.norm(eyes[:, 0] - eyes[:, 1], axis=-1)
    part = scan.data.sel(model="face mesh")
    return part["distance"].values / apart[:, None], part["confidence"].values


def spread(values: np.ndarray) -> dict[str, float]:
    """Return the mean of values of the views, with the smallest and the largest."""
    low, high = float(values.min()), float(values.max())
    return {"value": float(values.mean()), "low": low, "high": high, "n": len(values)}


def rows_of(scan: ob.Scan, moved: np.ndarray, presence: np.ndarray) -> list[dict[str, Any]]:
    """Return a row for each family of positions."""
    return [
        {"family": family, **judged(moved[:, chosen], presence[:, chosen])}
        for family, chosen in turned_views.families(scan).items()
    ]


def judged(moved: np.ndarray, presence: np.ndarray) -> dict[str, Any]:
    """Return the columns for distances and presences `[view, position]`."""
    wrong, sure = moved > WRONG, presence >= PRESENT
    return {
        "positions": moved.shape[1],
        "moved by": spread(moved.max(1)),
        "wrong": spread(wrong.mean(1)),
        "confident where wrong": float((wrong & sure).sum() / wrong.sum()) if wrong.any() else None,
        "presence": spread(presence.mean(1)),
    }


def of_upright(mesh: Any, images: Tensor) -> dict[str, Any]:
    """Return how far the network's eyes are from those read off by eye, and its presence."""
    edge = (LARGE - VIEW) // 2
    points, presence = mesh(images[..., edge:-edge, edge:-edge])
    away = []
    for (side, (right, down), _), found in zip(product(SIDES, SHIFTS, LIGHT), points, strict=True):
        corner = np.array([MIDDLE[0] + right - side / 2, MIDDLE[1] + down - side / 2])
        places = found[:, :2].numpy() * side / VIEW + corner
        middles = places[[33, 362]] / 2 + places[[133, 263]] / 2
        apart = np.linalg.norm(places[CORNERS[0]] - places[CORNERS[1]])
        away.append(np.linalg.norm(middles - EYES, axis=-1).mean() / apart)
    return {
        "views": len(images),
        "eyes off by": spread(np.array(away)),
        "presence": spread(presence[:, 0].numpy()),
    }


def by_hand(mesh: Any, images: Tensor) -> list[dict[str, Any]]:
    """Return rows for quarter turns and mirror images, moved without orbical."""
    edge = (LARGE - VIEW) // 2
    views = images[..., edge:-edge, edge:-edge].numpy()
    upright = mesh(torch.from_numpy(views))[0].numpy()
    apart = np.linalg.norm(upright[:, CORNERS[0], :2] - upright[:, CORNERS[1], :2], axis=-1)
    partner = np.arange(upright.shape[1])
    for first, second in pairs(upright[0]):
        partner[first], partner[second] = second, first
    rows = []
    for name, turns, mirror in (
        ("mirrored", 0, True),
        ("a quarter turn", 1, False),
        ("upside down", 2, False),
        ("upside down, mirrored", 2, True),
    ):
        moved = np.rot90(views[..., ::-1] if mirror else views, turns, (2, 3)).copy()
        points, presence = (part.numpy() for part in mesh(torch.from_numpy(moved)))
        place = points[..., :2] - VIEW / 2
        for _ in range(turns):  # back, clockwise: y points down
            place = np.stack([-place[..., 1], place[..., 0]], -1)
        if mirror:
            place = (place * [-1, 1])[:, partner]
        away = np.linalg.norm(place + VIEW / 2 - upright[..., :2], axis=-1).mean(1) / apart
        rows.append({"position": name, **judged(away[:, None], presence)})
    return rows


def of_graph(picture: Image.Image) -> list[dict[str, Any]]:
    """Return how far the whole graph is from its own upright prediction, at some angles."""
    import mediapipe

    side, rows, upright = picture.width, [], None
    with mediapipe.solutions.face_mesh.FaceMesh(static_image_mode=True) as graph:
        for angle in (0, 30, 60, 90, 120, 150, 180):
            turned = picture.rotate(angle, Image.Resampling.BICUBIC)  # counter-clockwise
            answer = graph.process(np.asarray(turned)).multi_face_landmarks
            away = None
            if answer:
                place = np.array([(p.x, p.y) for p in answer[0].landmark]) * side - side / 2
                turn = np.deg2rad(angle)
                back = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
                place = place @ np.transpose(back)
                upright = place if upright is None else upright
                apart = np.linalg.norm(upright[CORNERS[0]] - upright[CORNERS[1]])
                away = float(np.linalg.norm(place - upright, axis=-1).mean() / apart)
            rows.append({"angle": angle, "face": "found" if answer else "none", "moved by": away})
    return rows


def drawn(mesh: Any, image: Tensor) -> Any:
    """Draw the points on the face at some positions."""
    group = ob.groups.dihedral(12)
    places = {"upright": 0, "mirrored": 12, "30°": 1, "60°": 2, "90°": 3, "120°": 4, "180°": 6}
    views = ob.actions.Window(VIEW).apply(group, image[None])[:, 0]
    points, presence = mesh(views[[*places.values()]])
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 1.5)
        for axes, (name, place), found, sure in zip(
            fig.subplots(1, len(places)), places.items(), points, presence, strict=True
        ):
            axes.imshow(views[place].permute(1, 2, 0).clamp(0, 1).numpy())
            axes.plot(*found[:, :2].T.numpy(), ".", ms=1.2, color=ob.figures.MODELS[1])
            axes.set(xlim=(0, VIEW), ylim=(VIEW, 0), xticks=[], yticks=[], title=name)
            axes.set_xlabel(f"presence {float(sure[0]):.2f}")
    return fig


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each family."""
    return {
        f"{TITLE}, {row['family']}": _decide(row)
        for row in tables["families"]
        if row["family"] in turned_views.JUDGED
    }


def _decide(row: Any) -> Verdict:
    sure = row["confident where wrong"]
    confident = sure is not None and stays_confident(
        {"low": sure, "high": sure}, high=turned_views.SURE, low=turned_views.KNOWS
    )
    exact = row["moved by"]["high"] < turned_views.EXACT
    return verdict_of(row["moved by"], WRONG, exact=exact, confident=confident)


audit = Audit(
    title="MediaPipe Face Mesh, the network inside",
    question="Does the mesh rotate with the face, does left stay left in a mirror, and does the "
    "network know when not?",
    group=turned_views.GROUP,
    inputs="one face: 30 squares of the public-domain photograph of an astronaut in scikit-image, "
    "three sizes at five places with two levels of brightness, enlarged to 192 x 192 pixels. What "
    "other faces would show is not known",
    intervals="Parentheses hold the smallest and the largest value of the views, not an interval: "
    "one face says nothing about the spread over faces.",
    packages=(
        Package("mediapipe", "0.10.14", dependencies=False),
        Package("protobuf", "4.25.8"),
        Package("absl-py", "2.5.1"),
        Package("scikit-image", "0.26.0", dependencies=False),
    ),
    license="Apache-2.0, code and weights; the photograph is in the public domain",
    promise="Nothing about rotated faces for this network alone. MediaPipe Face Mesh is a graph: a "
    "detector first finds the face, and the picture is cut out and rotated so that the line "
    "between "
    "the eyes is level before this network sees it. The audit leaves that out on purpose; the "
    "table of the graph shows what the whole does.",
    promised="level eyes; the graph rotates the picture first",
    rule="By families of positions: **mirrored** (left and right exchanged), **tilted** (by up "
    "to 30°), **rotated** (by more), over all views of the one face, against the network's "
    "own prediction for the upright view, moved along. A mesh is wrong if its points are off "
    "by more than a tenth of the distance of the outer corners of the eyes, in the mean. "
    "The network is confident if it states a presence of at least 0.5, the package's default "
    "of `min_tracking_confidence`, below which its graph gives no face. **Invariant** if "
    "no mesh is off by more than a thousandth; **within tolerance** if none is wrong; "
    "otherwise **not invariant and confident** if it is confident about more than half of the "
    "wrong meshes, **not invariant, low confidence there** if of less than a fifth, else "
    "**not invariant**. There are no intervals, because there is one face: **open** if "
    "some of its views are wrong and some are not.",
    decide=decide,
    finding=FINDING,
    advice="Level the eyes before this network, as its package does, and do not take a high "
    "presence as evidence upside down: also run the detector at 180° and compare.",
    main_table="families",
    confirmed=CONFIRMED,
    sizes={"quick": {"turns": 12}, "full": {"turns": 72}},
    run=run,
    shown=(loaded, scanned),
    shareable="a photograph by NASA in the public domain, as scikit-image carries it",
)
