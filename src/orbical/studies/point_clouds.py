"""Point clouds under rotations: with and without rotated training, and flat by construction.

    orbical study point-clouds                  # train, ask, write CSV, tables and figures
    orbical study point-clouds report           # the page again, from the CSV files alone

On another machine, with torch alone: `pack` the data sets here, `train` there, `collect` the
answers here.

Section 3.3 and Fig. 11 of Zhao et al., "Evaluating Machine Learning Models with NERO".
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from orbical.errors import OrbicalError
from orbical.zoo.pointnet import NAMES as NETWORKS

from .point_clouds_runs import DATA_SETS, Settings, pack, run

PAGE = Path("docs/studies/point-clouds.md")
RESULTS = Path("results/point-clouds")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study or a step of it, and write its page."""
    defaults = Settings()
    parser = argparse.ArgumentParser(
        prog="orbical study point-clouds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    steps = ["all", "pack", "train", "collect", "report"]
    parser.add_argument("step", nargs="?", choices=steps, default="all")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"default {PAGE}")
    parser.add_argument("--data", type=Path, help="packed data sets; default: the public files")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"answers; default {RESULTS}")
    parser.add_argument("--seeds", type=int, default=defaults.seeds)
    parser.add_argument("--steps", type=int, default=defaults.steps, help="of each training")
    parser.add_argument("--points", type=int, default=defaults.points, help="of a test cloud")
    parser.add_argument("--most", type=int, default=defaults.most, help="test clouds of a class")
    parser.add_argument("--slices", default=dict(defaults.groups)["slices"])
    parser.add_argument("--ball", default=dict(defaults.groups)["ball"])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--data-sets", nargs="+", choices=DATA_SETS, default=list(DATA_SETS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="networks at a time")
    options = parser.parse_args(arguments)
    try:
        if options.step == "pack":
            for path in pack(options.data or Path("carry")):
                print(f"wrote {path}")
            return
        if options.step in ("all", "train"):
            settings = Settings(
                seeds=options.seeds,
                steps=options.steps,
                points=options.points,
                most=options.most,
                groups=(("slices", options.slices), ("ball", options.ball)),
            )
            for path in run(
                *(options.out, options.data, settings, options.device),
                *(options.networks, options.data_sets, options.workers),
            ):
                print(f"wrote {path}", flush=True)
        if options.step in ("all", "collect"):
            from .point_clouds_tables import collect

            for path in collect(options.out, options.page.with_suffix("")):
                print(f"wrote {path}")
        if options.step in ("all", "collect", "report"):
            from .point_clouds_page import report

            for path in report(options.page):
                print(f"wrote {path}")
    except OrbicalError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
