"""What the detection study trains, at which levels, and what it keeps of a scan."""

from __future__ import annotations

from pathlib import Path

from orbical.actions import Window
from orbical.tasks import Detection

PAGE = Path("docs/studies/detection.md")
RESULTS = Path("results/detection")
WINDOW, RADIUS = 128, 32
SCENES_JOB = "scenes"
JITTERS = (0, 25, 50, 75, 100)
STEPS = 8_000
SCENES = 4_000
SCENE_STEPS = 8_000
STEP = 2
STORED = (
    "iou",
    "match_confidence",
    "precision",
    "recall",
    "f1",
    "ap",
    "box_label",
    "box_score",
    "box_correct",
    "count",
    "score_vs_consensus",
    "consensus",
    "consensus_vs_truth",
    "invariance_gap",
)
TASK = Detection(Window(WINDOW), score="iou_confidence")
