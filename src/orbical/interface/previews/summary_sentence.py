"""What a first look found, in one sentence; and the command that repeats it in full."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..._text import percent
from ...data import ImageFiles, ImageFolder
from ...groups import Group
from ...store import Scan
from ...tasks import takes
from .proposals import Proposal
from .settings import FOLDERS, PREVIEW_GROUPS

ANGLE = 30.0
"""The rotation that the sentence is about, in degrees."""


def found(scan: Scan, images: bool) -> str:
    """Return one sentence about the finished samples of a scan.

    With labels it is about accuracy, otherwise about agreement with the answer upright.
    """
    group = scan.group
    if "predicted" not in scan.stored:
        scores, score = _read(scan, "score_vs_consensus"), scan.record.score
        seen = np.isfinite(scores)
        means = np.where(seen, scores, 0).sum(1) / np.maximum(seen.sum(1), 1)
        return score_sentence(means, scan.models, group, score.meaning, score.higher_is_better)
    finished = np.isfinite(_read(scan, "score_vs_consensus")).all(2)
    answers = _read(scan, "predicted")
    place = element_to_name(group)
    noun = "photographs" if images else "samples"
    parts = []
    for model, name in enumerate(scan.models):
        rows = finished[model]
        predicted = answers[model][rows]
        count = len(predicted)
        if not count:
            continue
        upright = predicted[:, [group.identity]]
        if scan.labeled:
            right = predicted == _read(scan, "label")[rows][:, None]
            before, after = (right[:, at].mean() for at in (group.identity, place))
            parts.append(
                f"{name} is right for {percent(before)} of {count} {noun} as they are and for "
                f"{percent(after)} {words_for(group, place)}".replace("%", " %")
            )
        else:
            kept = (predicted == upright)[:, place].mean()
            parts.append(
                f"{name} keeps its answer for {percent(kept)} of {count} {noun} "
                f"{words_for(group, place)}".replace("%", " %")
            )
    own = "" if scan.labeled else "; without labels this is agreement with itself"
    return f"{', '.join(parts)}{own}." if parts else ""


def score_sentence(
    values: np.ndarray, models: Sequence[str], group: Group, meaning: str, higher_is_better: bool
) -> str:
    """Describe how far scores `[M, K]` against the consensus agree with it, or differ from it.

    >>> from orbical.groups import rotations
    >>> values = np.array([[1.0, 0.79] + 10 * [0.9]])
    >>> score_sentence(values, ["net"], rotations(12), "share of correct pixels", True)
    'net agrees with its average over the orbit to 0.79 when turned by 30° and to 1 as they are ...'
    """
    how, to = ("agrees with", "to") if higher_is_better else ("differs from", "by")
    place = element_to_name(group)
    each = [
        f"{name} {how} its average over the orbit {to} {row[place]:.3g} {words_for(group, place)} "
        f"and {to} {row[group.identity]:.3g} as they are"
        for name, row in zip(models, values, strict=True)
    ]
    return f"{', '.join(each)} ({meaning})."


def _read(scan: Scan, name: str) -> np.ndarray:
    return np.asarray(scan.arrays[name][:])


def element_to_name(group: Group) -> int:
    """Return the element that the sentence is about: a turn by 30 degrees, or the first other."""
    if [*group.coords] == ["angle"]:
        return int(np.abs(group.coords["angle"] - ANGLE).argmin())
    return next((k for k in range(len(group)) if k != group.identity), group.identity)


def words_for(group: Group, place: int) -> str:
    """Return where an element is, in words.

    >>> from orbical.groups import rotations
    >>> words_for(rotations(12), 1)
    'when turned by 30°'
    """
    if [*group.coords] == ["angle"]:
        return f"when turned by {group.coords['angle'][place]:.3g}°"
    return f"at {group.name(place)}"


def full_command(
    proposal: Proposal, models: Mapping[str, str], data: str, classes: str | None = None
) -> str:
    """Return the `orbical scan` command that evaluates all samples at the full group."""
    words = ["orbical", "scan"]
    for name, source in models.items():
        words += ["-m", f"{name}={source}"]
    words += ["-d", data, "-t", proposal["task"], "-g", groups_of(proposal["group"])[2]]
    size = proposal.size
    if size is not None:
        words += ["--size", str(size) if isinstance(size, int) else f"{size[0]}x{size[1]}"]
    if isinstance(proposal.source, ImageFiles) and proposal.source.unreadable == "skip":
        words += ["--unreadable", "skip"]
    if proposal.preprocess is not None:
        words += ["--preprocess", str(proposal.preprocess)]
    if takes(proposal["task"], "size"):
        words += ["--input", "images"]
    if proposal["outputs"] == "probabilities":
        words += ["--outputs", "probabilities"]
    nested = any("/" in name for name in proposal.source.names or ())
    unlabeled = proposal["labels"] != FOLDERS and nested
    if classes is not None and takes(proposal["task"], "classes"):
        words += ["--classes", classes]
    if isinstance(proposal.source, ImageFolder) and unlabeled:
        words.append("--unlabeled")
    out = Path(data).name.removesuffix(".npz") or "run"
    return shlex.join([*words, "-o", f"{out}.zarr"])


def groups_of(name: str) -> tuple[str, str, str]:
    """Return a group of the choices, or one given by its text: coarse, fine and full.

    >>> groups_of("dihedral")[0], groups_of("rotations:24")[1]
    ('dihedral:4', 'rotations:24')
    """
    return PREVIEW_GROUPS.get(name, (name, name, name))
