"""`orbical why`: the layers of a network at which the symmetry is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._text import percent
from .._warnings import warn
from ..errors import InputError
from . import arguments
from .printing import Cell, Number, Sheet, format_flags, print_results

if TYPE_CHECKING:
    from ..tasks import Task


@format_flags("json", "csv", "markdown")
def why(
    store: arguments.Store,
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME=SOURCE")],
    data: arguments.Data = None,
    layer: Annotated[list[str] | None, typer.Option("--layer", "-l", metavar="NAME")] = None,
    elements: Annotated[int, typer.Option(min=1)] = 6,
    samples: Annotated[int, typer.Option(min=4)] = 64,
    train: Annotated[str | None, typer.Option("--train", "-t")] = None,
    size: arguments.Size = None,
    preprocess: arguments.Preprocess = None,
    read: arguments.Read = None,
    task: arguments.OwnTask = None,
    figure: Path | None = None,
    imports: arguments.Import = None,
    format_: str = "text",
) -> None:
    """Find the layers of a network at which the symmetry is lost.

    \b
    orbical why run.zarr -m net=mine.nets:net
    orbical why run.zarr -m net=mine.nets:net --layer stem --layer layer1 --figure why.png
    orbical why run.zarr -m net=mine.nets:net --train train.npz

    A share is what a layer adds to the error of the predictions, where the error is their change
    along the orbit beyond what the task expects; the error of a layer is that of its features.

    Args:
        store: A saved scan; its group and task are used, and its inputs if it was made with
            --keep inputs.
        model: A torch module, as package.module:attribute (a trailing () calls it). It runs its
            author's code: use only what you trust.
        data: The data set of the scan, if its inputs are not in the scan.
        layer: A module by its name, in the order in which they run. Repeatable. Default: up to 24
            modules, opened from the outside in.
        elements: Elements to try, drawn at random.
        samples: Samples to use, the first ones.
        train: The labeled training data, as the model saw them, with augmentation: says whether
            the errors come from the training data or from the network.
        figure: Write the bars to this file: .png, .pdf or .svg.
    """
    from ..adversarial import searched_scan
    from ..advice import cause
    from ..data import Samples, preprocessing_of_scan, read_rows
    from ..predictors import as_predictor
    from ..store import load
    from ..testing import layer_errors

    scan = load(store)
    ((name, source),) = arguments.models_from_option([model]).items()
    chosen = arguments.task_of_scan(scan, task, read)
    if data is None:
        _, content, _, _ = searched_scan(scan, {scan.models[0]: source}, None, chosen)
    else:
        content = arguments.data_of_scan(scan, data, chosen, size)
    rows = Samples(chosen.take(content))
    inputs = read_rows(rows, slice(0, min(samples, len(rows)))).inputs
    settings: dict[str, Any] = {
        "group": scan.group,
        "task": chosen,
        "preprocess": preprocessing_of_scan(preprocess, scan.record.preprocess),
    }
    found = layer_errors(
        source, inputs, layers=layer or None, elements=elements, samples=samples, **settings
    )
    entry = next((one for one in scan.record.models if one.name == name), None)
    if entry is not None and entry.is_known_not_to_be(as_predictor(source).fingerprint()):
        warn(f"model {name!r} is not the one that was scanned")
    origin = None
    if train is not None:
        parts = (arguments.load_data(train, **arguments.image_options(size)), content)
        origin = cause(source, *(_labeled_data_for_why(chosen, one) for one in parts), **settings)
    if figure is not None:
        from ..figures import layer_errors as draw

        arguments.save_figure(draw(found), figure, "--figure")
    columns = zip(found.titles, found.share, found.error, found.moves, strict=True)
    table: list[list[Cell]] = [
        [title, "-" if share != share else percent(share), Number(error), moves]
        for title, share, error, moves in columns
    ]
    headings = ["layer", "share", "error", "its features move"]
    about = f": error of the predictions {found.total:.3g} under {found.group}"
    keys = ("layers", "kinds", "share", "error", "added", "moves")
    content = {"model": name, **found.to_dict()}
    rows_of = zip(*(content[key] for key in keys), strict=True)
    records = [dict(zip(keys, row, strict=True)) for row in rows_of]
    said = []
    if origin is not None:
        content["cause"] = origin.to_dict()
        said.append(f"Cause: {origin.sentence}.")
    if found.caution:
        said.append(f"Caution: {found.caution}.")
    sheet = Sheet(name, headings, table, about)
    print_results(format_, content, [sheet], "\n".join(said), records)


def _labeled_data_for_why(task: Task, data: object) -> tuple[Any, Any]:
    """Read all inputs and labels of a data set."""
    from ..data import Samples, read_rows

    rows = Samples(task.take(data))
    read = read_rows(rows, slice(0, len(rows)))
    if read.targets is None:
        raise InputError("--train", "data with labels, and a scan of such data", "none")
    return read.inputs, read.targets
