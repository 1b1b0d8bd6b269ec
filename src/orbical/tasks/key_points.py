"""Key points and pose: points that move with the image, and that mirrors exchange."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree, to_device
from ..actions import ActionTree, Images, PixelPoints, action_matrices, checked_swaps
from ..errors import InputError, real_number
from ..groups import Elements, Group
from . import reading
from .task import SHARE, Reader, Results, Task, Variable, per_element

COCO_SWAPS = [(left, left + 1) for left in range(1, 17, 2)]
"""The pairs of the 17 key points of COCO that a mirror exchanges."""
_HEAD, _LIMBS = (0.026, 0.025, 0.025, 0.035, 0.035), (0.079, 0.072, 0.062, 0.107, 0.087, 0.089)
COCO_SIGMAS = [*_HEAD, *(sigma for sigma in _LIMBS for _ in range(2))]
"""How far human annotators of COCO are apart, for each point, relative to the size of a person."""
COCO_EDGES = [
    *((5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12)),
    *((11, 13), (13, 15), (12, 14), (14, 16), (0, 1), (0, 2), (1, 3), (2, 4)),
]
"""The limbs to draw between COCO's key points."""
CORRECT_OKS = 0.5
SCORES = {"oks": "object key-point similarity", "pck": "share of points close to the true ones"}


class KeyPoints(Task):
    """Predict points in an image, such as the joints of a person; they move with the image.

    A model returns `[N, n, 2]`, (x, y) in pixels from the upper left corner of its view, or
    `[N, n, 3]` with a confidence in 0..1, or a dictionary of `keypoints [N, n, 2 or 3]` and
    `scores [N, n]`.
    The truth is `[N, n, 3]`, (x, y, visibility) as in COCO, in the view at the identity: a
    visibility of 0 marks unlabeled points. In `[N, n, 2]` NaN marks them. A labeled point that
    leaves the view is not judged there.

    The size of a sample is the longer side of the box around its labeled points. Stored are

    - `oks`, the mean of `exp(-d^2 / (2 s^2 (2 sigma)^2))` over judged points, at a distance d from
      the truth, where `s^2` is the area of that box (at least a quarter of its longer side
      squared);
    - `pck`, the share of judged points within `radius` times the size; `distance`, the mean in
      pixels;
    - with a confidence: `point_confidence` and `point_correct` for
      `orbical.calibration.pairs_within`, and for whole poses `confidence`, the mean of their
      points, and `correct`, an OKS of at least 0.5.

    A mirror shows the left hand where the right one was. `swaps` names the pairs that it exchanges,
    in targets and in un-transformed outputs alike; without it, a group with mirrors is refused.

    Args:
        size: height and width of the view; not needed where the input is a `Window`.
        input: the action on the inputs; `Images()` by default.
        swaps: pairs of points that mirrors exchange, `[]` for none; `COCO_SWAPS` for COCO's.
        score: `"oks"` or `"pck"`.
        sigmas: the tolerance of each point for the OKS, or one for all; `COCO_SIGMAS` for COCO's.
        radius: the largest distance of a correct point, as a share of the size.
        edges: pairs of points to connect in the view; `COCO_EDGES` for COCO's.
        read: a function that picks the outputs from a raw model output.

    Raises:
        InputError: if an argument is not one of these, or the size of the view is not known.

    Example:
        >>> import orbical as ob
        >>> task = ob.tasks.KeyPoints((8, 8), swaps=[(0, 1)])
        >>> truth = torch.tensor([[[1.0, 4.0, 2.0], [6.0, 4.0, 2.0]]])
        >>> scan = ob.scan(lambda images: truth[:, :, :2].expand(len(images), -1, -1),
        ...                (torch.zeros(1, 1, 8, 8), truth), group="flips", task=task,
        ...                progress=False)
        >>> scan.data["distance"].values.ravel().round(2).tolist()
        [0.0, 1.0, 5.0, 5.0]
    """

    name: ClassVar[str] = "key_points"
    primary_output: ClassVar[str | None] = "points"
    higher_is_better: ClassVar[bool] = True
    score_unit = "share"
    truth_name: ClassVar[str] = "true_points"
    truth_kind: ClassVar[str] = "points"
    truth_dims = ("point", "coordinate_visibility")
    detail_view: ClassVar[str] = "key_points"

    def __init__(
        self,
        size: Sequence[int] | None = None,
        input: ActionTree | None = None,
        swaps: Iterable[Sequence[int]] | None = None,
        score: str = "oks",
        sigmas: float | Sequence[float] = 0.05,
        radius: float = 0.1,
        edges: Iterable[Sequence[int]] = (),
        read: Reader | None = None,
    ) -> None:
        given = Images() if input is None else input
        self.size = reading.read_task_view_size(size, given)
        super().__init__(given, PixelPoints(*self.size, swaps), read)
        self.choose_score(score, SCORES)
        self.swaps = None if swaps is None else checked_swaps(swaps)
        many = sigmas if isinstance(sigmas, Iterable) else [sigmas]
        self.sigmas = [float(real_number("sigmas", sigma, "> 0")) for sigma in many]
        self.radius = float(real_number("radius", radius, "> 0"))
        self.edges = [[int(first), int(second)] for first, second in edges]

    def check_group(self, group: Group, x: Tree) -> None:
        """Raise for mirrors unless `swaps` states which points they exchange."""
        super().check_group(group, x)
        assert isinstance(self.output, PixelPoints)
        self.output.check_mirrors(group)

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read `{"points": [N, n, 2]}`, and the `confidence [N, n]` if there is one."""
        given = self.picked(raw)
        scores = None
        if isinstance(given, Mapping):
            scores = given.get("scores", given.get("keypoint_scores"))
            given = given.get("keypoints", given)
        given = reading.read_precision(
            reading.read_output(given, "points", "sample", "point", "2 or 3")
        )
        scores = given[..., 2] if scores is None and given.shape[-1] == 3 else scores
        found = {"points": given[..., :2]}
        if scores is not None:
            if not reading.is_real(scores) or scores.shape != given.shape[:2]:
                expected = f"a confidence of each point, {tuple(given.shape[:2])}"
                raise reading.wrong_output(expected, reading.described_value(scores))
            found["confidence"] = reading.read_precision(scores)
        self._check_predicted(given.shape[1])
        return found

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Check that the images are as large as the view that points are moved in."""
        if isinstance(moved, Tensor) and moved.ndim == 5 and moved.shape[3:] != self.size:
            raise InputError("size", f"that of the images, {tuple(moved.shape[3:])}", self.size)
        return outputs

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark outputs that are not finite, and confidences outside 0 .. 1."""
        found = super().faults(outputs)
        if "confidence" in outputs:
            sure = outputs["confidence"]
            found["a confidence outside 0 .. 1"] = ((sure < 0) | (sure > 1 + 1e-6)).any(-1)
        return found

    def check_target(self, target: object, count: int) -> Tensor:
        """Check points, and return (x, y, visibility), NaN where they are not labeled."""
        points = reading.read_truth(target, count)
        points = points if points.is_floating_point() else points.double()
        if points.ndim != 3 or points.shape[-1] not in (2, 3):
            expected = "points [sample, point, 3] (x, y, visibility) or [sample, point, 2]"
            raise reading.wrong_truth(expected, points)
        place = points[..., :2]
        if points.shape[-1] == 3:
            seen = points[..., 2]
            if not bool(torch.isin(seen, torch.tensor([0.0, 1.0, 2.0]).to(seen)).all()):
                raise InputError(
                    "labels",
                    "a visibility of 0 (unlabeled), 1 (hidden) or 2 (visible)",
                    f"{float(seen.min()):g} .. {float(seen.max()):g}",
                )
        else:
            seen = 2.0 * place.isfinite().all(-1)
        if not bool(place[seen > 0].isfinite().all()):
            raise InputError("labels", "finite places of labeled points", "NaN or infinity")
        count = points.shape[1]
        if len(self.sigmas) not in (1, count):
            raise InputError("sigmas", f"one, or one for each of {count} points", len(self.sigmas))
        if self._largest() >= count:
            raise InputError("swaps", f"indices of the {count} points", self._largest())
        place = place.where(seen[..., None] > 0, torch.nan)
        return torch.cat([place, seen[..., None]], -1).float()

    def _check_predicted(self, count: int) -> None:
        """Check the number of points of a model against the settings."""
        if len(self.sigmas) not in (1, count):
            raise reading.wrong_output(f"{len(self.sigmas)} points, one for each of sigmas=", count)
        if self._largest() >= count:
            expected = f"at least {self._largest() + 1} points, which swaps= or edges= name"
            raise reading.wrong_output(expected, count)

    def _largest(self) -> int:
        """Return the largest index of a point that the settings name, -1 if none do."""
        return max((max(pair) for pair in [*(self.swaps or ()), *self.edges]), default=-1)

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check that truth and outputs have as many points."""
        predicted, true = outputs["points"].shape[1], target.shape[1]
        reading.check_as_predicted(true, predicted, f"{predicted} points")

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the points, their distances and scores, and what their confidence is worth."""
        about = self.common_variables(labeled, ("point", "coordinate"))
        about["points"] = per_element("predicted points", "point", "coordinate")
        about["point_confidence"] = per_element("confidence of a point", "point", unit="share")
        about["confidence"] = per_element("mean confidence of the points", unit="share")
        if labeled:
            about |= {
                "distance": per_element(
                    "mean distance from the true points", unit="px", higher_is_better=False
                ),
                "point_distance": per_element("distance from the true point in pixels", "point"),
                "point_correct": per_element("1 if close, 0 if not, NaN if not judged", "point"),
                "correct": per_element("whether the similarity is at least 0.5", **SHARE),
            }
        return about

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score points `[K, B, n, 2]` against a reference `[K, B, n, 2 or 3]` moved along.

        The size of a sample is then that of the reference as it is moved.
        """
        found = self._measured(outputs, reference, *_extent(reference[..., :2]))
        return found[self.chosen]

    def isometric(self, group: Group) -> bool:
        """Return True: sizes move with the points."""
        return True

    def summarize(
        self, outputs: Tree, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> Results:
        """Return the variables of a scan from the points along the orbits of a batch."""
        points = self.primary(outputs)
        home = self.output.move(elements.inverse(), points)
        share = weights.to(home)[:, None, None, None].expand(*home.shape[:3], 1)
        # A view that a point has left cannot show where it is, and does not count. Where it has
        # left, a median knows, which no wild guess moves.
        agreed = home.median(0).values
        inside = self._inside(self.output.move(elements, agreed[None]))[..., None]
        inside = self._unswapped(inside, elements)
        kept = share * inside
        total = kept.sum(0)
        agreed = torch.where(total > 0, (kept * home).sum(0) / total.clamp_min(1e-12), agreed)
        apart = (home - agreed[None]).square().sum(-1).double()
        gap = ((kept[..., 0] * apart).sum((0, 2)) / kept.sum((0, 2, 3)).clamp_min(1e-12)).sqrt()
        against = self._against(points, agreed, elements)
        summary = {
            "consensus": agreed,
            "invariance_gap": gap.float(),
            "score_vs_consensus": against[self.chosen].nan_to_num(1.0),
            **self.extras(outputs, target, elements),
        }
        if target is not None:
            summary["score"] = summary[self.chosen]
            alone = self._measured(agreed[None], target[None], *_extent(target[None, ..., :2]))
            summary["consensus_vs_truth"] = alone[self.chosen][0]
        return self._sample_first(summary, target is not None)

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return points and confidences, and with a truth all scores."""
        points, sure = self.primary(outputs), outputs.get("confidence")
        extras = {"points": points}
        if sure is not None:
            extras |= {"point_confidence": sure, "confidence": sure.mean(-1)}
        if target is None:
            return extras
        found = self._against(points, target, elements)
        extras |= {name: found[name] for name in (*SCORES, "distance", "point_distance")}
        if sure is not None:
            judged = found["point_correct"].isfinite()
            unknown = ~judged.any(-1)
            mean = sure.where(judged, 0).sum(-1) / judged.sum(-1)
            extras["confidence"] = mean.masked_fill(unknown, torch.nan)
            right = (found["oks"] >= CORRECT_OKS).float()
            extras["correct"] = right.masked_fill(unknown, torch.nan)
        extras["point_correct"] = found["point_correct"]
        return extras

    def _against(self, points: Tensor, still: Tensor, elements: Elements) -> Results:
        """Measure points `[K, B, n, 2]` against points `[B, n, 2 or 3]` moved along."""
        length, area = _extent(still[None, ..., :2])
        size = np.abs(np.linalg.det(elements.linear("plane"))) if "plane" in elements.parts else 1.0
        factor = action_matrices(np.sqrt(size) * np.ones(len(elements)), points)[:, None]
        moved = self.output.move(elements, still[None])
        return self._measured(points, moved, length * factor, area * factor**2)

    def _measured(self, points: Tensor, moved: Tensor, length: Tensor, area: Tensor) -> Results:
        """Return the measures `[K, B]` and `[K, B, n]` against a reference in the same view."""
        judged = self._inside(moved)
        away = (points - moved[..., :2]).norm(dim=-1).where(judged, torch.nan)
        sigma = to_device(torch.tensor(self.sigmas, dtype=away.dtype), away.device)
        similar = (-(away**2) / (2 * area[..., None] * (2 * sigma) ** 2)).exp()
        close = (away <= self.radius * length[..., None]).to(away).where(judged, torch.nan)
        return {
            "oks": similar.nanmean(-1),
            "pck": close.nanmean(-1),
            "distance": away.nanmean(-1),
            "point_distance": away,
            "point_correct": close,
        }

    def _inside(self, moved: Tensor) -> Tensor:
        """Return whether points `[..., n, 2 or 3]` are known and in the view."""
        height, width = self.size
        x, y = moved[..., 0], moved[..., 1]
        return (x >= 0) & (x <= width) & (y >= 0) & (y <= height)  # NaN is not

    def _unswapped(self, marks: Tensor, elements: Elements) -> Tensor:
        """Return marks `[K, B, n, 1]` of moved points in the order of the upright ones."""
        columns = torch.cat([torch.zeros_like(marks), torch.zeros_like(marks), marks], -1)
        upright: Tensor = self.output.move(elements.inverse(), columns.float())
        return upright[..., 2:]


def _extent(points: Tensor) -> tuple[Tensor, Tensor]:
    """Return the longer side and the area `[...]` of the box around known points `[..., n, 2]`."""
    low = points.nan_to_num(torch.inf).amin(-2)
    high = points.nan_to_num(-torch.inf).amax(-2)
    side = (high - low).clamp_min(1.0)
    longer = side.amax(-1)
    return longer, side.prod(-1).maximum(longer**2 / 4)
