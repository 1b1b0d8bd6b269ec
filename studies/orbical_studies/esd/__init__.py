"""Training for calibration: the ESD paper on MNIST and CIFAR-10, with six losses.

134 trainings take about two hours on a large GPU, less with --workers 10. On a processor,
--data mnist --images 2000 --epochs 3 --seeds 1 tries everything out in minutes. `ablation` chooses
lambda from the trainings of `train`. To train on another machine: `pack` here, copy the work
folder, `train`, `ablation`, `cost`, `fronts`, `time-fronts` there, copy it back, then `collect` and
`collect-fronts` here. `fronts` trains on all images of CIFAR-10 and CIFAR-100.

Yoon et al., "ESD: Expected Squared Difference as a Tuning-Free Trainable Calibration Measure".
"""

from __future__ import annotations

from ..framework import Study
from .cumulative import write_curves
from .fronts import collect_fronts, time_fronts, train_fronts
from .packing import pack
from .settings import Settings
from .timing import cost
from .training import ablation, collect, train

steps = {"pack": pack, "train": train, "ablation": ablation, "cost": cost, "collect": collect}
steps |= {"cumulative": write_curves}
steps |= {"fronts": train_fronts, "time-fronts": time_fronts, "collect-fronts": collect_fronts}
study = Study("esd", __doc__, Settings(), steps, report=f"{__name__}.report", palette=64)
