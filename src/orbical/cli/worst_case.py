"""`orbical worst-case`: search between the elements of a scan for those that hurt most."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._lazy import xr
from .._text import number
from ..errors import InputError
from . import arguments
from .printing import Cell, Sheet, print_results, with_interval
from .scan import print_when_stopped

_WHERE = ("at the identity", "at the worst scanned element", "at the worst element found")


def worst_case(
    store: arguments.Store,
    model: Annotated[list[str], typer.Option("--model", "-m", metavar="NAME=SOURCE")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE")],
    data: arguments.Data = None,
    size: arguments.Size = None,
    starts: Annotated[int, typer.Option(min=1)] = 3,
    rounds: Annotated[int, typer.Option(min=1)] = 16,
    preprocess: arguments.Preprocess = None,
    read: arguments.Read = None,
    device: str = "auto",
    batch_size: arguments.NumberOrAuto = "auto",
    task: arguments.OwnTask = None,
    imports: arguments.Import = None,
    overwrite: arguments.Overwrite = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Search between the elements of a scan for the worst ones.

    \b
    orbical worst-case run.zarr -m net=mine.nets:net -o worst.nc
    orbical view run.zarr --worst worst.nc

    For each sample, the search starts at the worst elements of the scan and, if the group is
    continuous, looks between them for the element with the worst score. The table shows the mean
    score at the identity, at the worst scanned element of each sample, and at its worst element.
    The model is at least this bad; worse elements may exist. For rotations of the plane the last
    row is a bound from the other side, which assumes that the score varies along the circle no
    faster than the scan shows; it is the mean over those samples that have one.

    Args:
        store: The saved scan; its group and task are used, and its inputs if it was made with
            --keep inputs.
        model: A model of the scan, by its name there; repeat for more. SOURCE is
            package.module:attribute (a trailing () calls it), a file.onnx or a file.pt2. Import
            paths, .pt2 and .pt files run their author's code: use only what you trust.
        out: The netCDF file to write, which xarray opens and orbical view --worst shows.
        data: The data set of the scan, if its inputs are not in the scan.
        starts: Elements to start from, for each sample.
        rounds: Steps of each search.
        device: The device: auto, cpu, cuda, cuda:1 ...
        batch_size: Inputs per forward pass: a number or auto.
        overwrite: Replace the file.
        quiet: Show no progress bar and no table.
    """
    with print_when_stopped(kept=False):
        from ..adversarial import worst_case as search
        from ..data import preprocessing_of_scan
        from ..store import load

        if out.suffix.lower() != ".nc":
            raise InputError("--out", "a name that ends in .nc", repr(str(out)))
        arguments.check_out_is_free(out, overwrite)
        scan = load(store)
        chosen = arguments.task_of_scan(scan, task, read)
        found = search(
            arguments.models_from_option(model),
            scan if data is None else arguments.data_of_scan(scan, data, chosen, size),
            group=scan.group,
            task=chosen,
            starts=starts,
            rounds=rounds,
            device=device,
            batch_size=batch_size,
            preprocess=preprocessing_of_scan(preprocess, scan.record.preprocess),
            progress=not quiet,
        )
        _write_worst_case_netcdf(found, out)
        if not quiet:
            _print_worst_case_means(found)
            typer.echo(f"worst   {out}   (orbical view {store} --worst {out})")


def _write_worst_case_netcdf(found: xr.Dataset, out: Path) -> None:
    """Write the file at once, so that no half of it is left."""
    arguments.announce_folder(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    try:
        found.to_netcdf(part)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _print_worst_case_means(found: xr.Dataset) -> None:
    """Print a column a model: the mean score at the three places, with intervals."""
    models = [str(model) for model in found["model"].values]
    parts = [found.sel(place=place) for place in found["place"].values]
    means_of = [*((words, part, "mean") for words, part in zip(_WHERE, parts, strict=True))]
    means_of.append(("missed by the scan", found, "mean_missed"))
    rows: list[list[Cell]] = [
        [words, *(with_interval(part.sel(model=model), name) for model in models)]
        for words, part, name in means_of
    ]
    if "bound" in found:
        counts = found["bound"].notnull().sum("sample")
        means = found["bound"].mean("sample")
        cells = [
            f"{number(float(mean))} ({int(count)} samples)" if count else "-"
            for mean, count in zip(means.values, counts.values, strict=True)
        ]
        rows.append(["beyond which no angle is, if the spectrum holds", *cells])
    title = f"{found.sizes['sample']:,} samples, searched {found.attrs['searched']}"
    print_results("text", None, [Sheet(title, [f"mean {found.attrs['metric']}", *models], rows)])
    if found.attrs["scope"]:
        typer.echo(found.attrs["scope"])
