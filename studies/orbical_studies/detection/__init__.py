"""Detectors under shifts: how far the key object was moved in training decides where it is found.

Five detectors of one architecture, data set and budget differ in one thing: how far the key object
was moved away from the center of the view in training (0 to 100 % of 64 pixels). Each is scanned
over 31 x 31 shifts of the view on objects that none of them has seen, with three seeds.

15 trainings side by side (--workers 15) take five minutes on a large GPU and days on a laptop. The
step `train` needs only torch, NumPy, safetensors and Pillow, and what `pack` wrote into the folder
--work. The step `published` copies the tables of the audits of published detectors; `order` looks
for dark spots of one of them; `pack-published`, `fine-tune` and `collect-fine-tuned` train it
further.

Sections 3.1 and 3.4 of Zhao et al., "Evaluating Machine Learning Models with NERO".
"""

from __future__ import annotations

from ..framework import Study
from .training import Settings

STEPS = {
    "pack": "images:pack",
    "train": "training:train",
    "collect": "tables:collect",
    "published": "published:copy_audits",
    "order": "published:order_boxes",
    "pack-published": "fine_tuning:pack_published",
    "fine-tune": "fine_tuning:fine_tune",
    "collect-fine-tuned": "fine_tuning:collect_fine_tuned",
}
study = Study.of_package(__name__, "detection", Settings(), STEPS, palette=256)
