"""`orbical scan`: evaluate models along the orbits of data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError, Interrupted, OrbicalError
from . import atoms
from .arrays import read_npz

_MODEL = (
    "Once for each model. SOURCE is package.module:attribute (a torch module, an "
    "sklearn estimator, an ASE calculator or a function; a trailing () calls it), a file.onnx, or "
    "a file.pt2 of "
    "torch.export. Import paths and .pt2 files run their author's code: name only what you trust."
)
_DATA = (
    "An .npz file with x (or x_NAME for each field) and optional y, package.module:attribute (x or "
    "(x, y)), a built-in name: mnist, digits; molecules as .xyz, .extxyz, .sdf, .traj, .cif or an "
    "ASE database .db; for detection a folder in COCO's format, "
    "coco:FOLDER or coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS."
)
_GROUP = (
    "For example rotations:72, translations:64:4, cyclic:4, dihedral:4*time_reversal, "
    "rotations3d:256, slices3d:72:13, flips, scales:0.5:2:17, permutations:5."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scan")(scan)


def scan(
    model: Annotated[list[str], typer.Option("--model", "-m", metavar="NAME=SOURCE", help=_MODEL)],
    data: Annotated[str, typer.Option("--data", "-d", metavar="DATA", help=_DATA)],
    group: Annotated[str, typer.Option("--group", "-g", metavar="GROUP", help=_GROUP)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where the result goes (Zarr); without it only tables are printed.",
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option("--task", "-t", help="classification, detection, flow, regression or atoms."),
    ] = "classification",
    input: Annotated[
        str | None,
        typer.Option(
            help="How the inputs move: images, images:bicubic:reflect, points, vectors, rows, "
            "trivial, window:128; for fields pos=points,numbers=rows. Default: images (pairs of "
            "frames for flow)."
        ),
    ] = None,
    representation: Annotated[
        str, typer.Option(help="For regression: trivial, vector, or e3nn irreps such as '1x1o'.")
    ] = "trivial",
    per_point: Annotated[
        bool, typer.Option("--per-point", help="For regression: one answer a point.")
    ] = False,
    uncertainty: Annotated[
        str | None,
        typer.Option(
            help="For regression: what models answer beside the mean: variance, covariance, parts "
            "(aleatoric, epistemic) or evidential."
        ),
    ] = None,
    outputs: Annotated[
        str, typer.Option(help="For classification: what models answer, logits or probabilities.")
    ] = "logits",
    score: Annotated[
        str,
        typer.Option(
            help="For detection: iou, match_confidence, iou_confidence, precision, recall, f1, ap."
        ),
    ] = "iou_confidence",
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="For detection: the least IoU of a match.")
    ] = 0.5,
    quantities: Annotated[
        str | None,
        typer.Option(
            help="For atoms: some of energy,forces,dipole,stress. Default: energy,forces, or what "
            "calculators offer of it."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="For atoms: processes to spread a calculator's work over.")
    ] = 1,
    read: Annotated[
        str | None,
        typer.Option(
            help="package.module:function that takes what the task expects from a raw output."
        ),
    ] = None,
    preprocess: Annotated[
        str | None,
        typer.Option(
            help="package.module:function applied to transformed batches before the models."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Also store: probabilities, flow, outputs (raw), inputs. Repeatable.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = "auto",
    batch_size: Annotated[
        str, typer.Option(help="Transformed inputs in one forward pass, or auto.")
    ] = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume",
            help="Continue a store that holds a part of this scan; new models are added to it.",
        ),
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete what the store holds first.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress bar, no closing table.")
    ] = False,
) -> None:
    """Evaluate models along the orbits of data and store the results.

    \b
    orbical scan -m net=mine.nets:net -d digits.npz -g rotations:72 -o run.zarr
    orbical scan -t atoms -m emt=ase.calculators.emt:EMT -d water.xyz -g rotations3d:64

    Every model is asked about every sample at every element of the group. What it answers, how
    good that is, the consensus along each orbit and what the transformation itself loses are
    stored together. A run that is stopped or killed loses nothing that was finished: give the
    same command again, and it goes on.
    """
    from .._imports import import_attribute
    from ..scanning.engine import scan as run

    named: dict[str, Any] = dict(_split_model(text) for text in model)
    if len(named) < len(model):
        raise InputError("--model: a name is given twice")
    if out is None and quiet:
        raise InputError("--out: not given, but with --quiet nothing is printed either")
    if task == "atoms":
        named, chosen = atoms.prepare(named, quantities, workers, input, read)
    else:
        chosen = _make_task(
            task, input, representation, per_point, uncertainty, outputs, score, threshold, read
        )
    content = atoms.load(data) if task == "atoms" else None
    classes = None
    if content is None:
        content, classes = _load_with_classes(data)
    if task == "detection":
        chosen.classes = classes
    try:
        result = run(
            named,
            content,
            group=group,
            task=chosen,
            out=out,
            resume=resume,
            overwrite=overwrite,
            keep=keep or (),
            batch_size=int(batch_size) if batch_size.isdigit() else batch_size,
            device=device,
            preprocess=None if preprocess is None else import_attribute(preprocess, "--preprocess"),
            progress=not quiet,
        )
    except Interrupted as stop:
        typer.echo(f"\n{stop}", err=True)
        raise typer.Exit(130) from None
    if not quiet:
        from .tables import print_summary

        if task != "atoms" or result.labeled:  # of an audit without truth the worst says it all
            print_summary(result)
        if task == "atoms":
            atoms.print_audit(result)
        if out is not None:
            typer.echo(f"scan    {out}   (orbical view {out})")


def _split_model(text: str) -> tuple[str, str]:
    name, equals, source = text.partition("=")
    if not equals or not name or not source:
        raise InputError(f"--model: expected NAME=SOURCE, got {text!r}")
    return name, source


def load_data(text: str) -> Any:
    """Read data named on the command line: a file, an import path or a built-in name."""
    return _load_with_classes(text)[0]


def _load_with_classes(text: str) -> tuple[Any, list[str] | None]:
    """Read data, and the names of their classes where they come with names."""
    if text.startswith("coco:"):
        found = _read_coco(text)
        return (found["images"], found["objects"]), found["classes"]
    return _load_unnamed(text), None


def _load_unnamed(text: str) -> Any:
    from .._imports import import_attribute
    from ..datasets import BUILT_IN, molecules
    from ..datasets.molecule_files import SUFFIXES
    from ..errors import unknown_name

    if text in BUILT_IN:
        return BUILT_IN[text]()
    if text.endswith(".npz"):
        return _load_npz(text)
    if text.lower().endswith(SUFFIXES):
        return molecules(text)
    if ":" in text:
        found = import_attribute(text, "--data")
        return _called(found, text) if callable(found) and not hasattr(found, "shape") else found
    raise unknown_name(
        "--data", text, [*BUILT_IN, "FILE.npz", "FILE.xyz", "package.module:attribute"]
    )


def _called(function: Callable[[], Any], name: str) -> Any:
    """Call what the user named as the source of data; a failure there is named as such."""
    try:
        return function()
    except OrbicalError:
        raise
    except Exception as error:
        raise InputError(f"--data: {name} raised {type(error).__name__}: {error}") from error


def _read_coco(text: str) -> Any:
    """Read key objects of a folder in COCO's format: coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS."""
    from ..datasets import coco

    folder, *settings = text.removeprefix("coco:").split(":")
    numbers = settings[:2]
    if len(settings) > 3 or not all(number.isdigit() for number in numbers):
        raise InputError(
            f"--data: {text!r} given, coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS expected, of which the "
            "last ones may be left out"
        )
    classes = settings[2].split(",") if len(settings) == 3 else None
    return coco(folder, classes, *(int(number) for number in numbers))


def _load_npz(text: str) -> Any:
    arrays = read_npz(Path(text), "--data")
    fields = {name.removeprefix("x_"): array for name, array in arrays.items() if name[:2] == "x_"}
    if "x" not in arrays and not fields:
        raise InputError(
            f"--data: {text!r} holds {', '.join(arrays) or 'nothing'}; an array x (or x_NAME for "
            "each field) expected, and y where the truth is known"
        )
    return arrays.get("x", fields or None), arrays.get("y")


def _make_task(
    name: str,
    input: str | None,
    representation: str,
    per_point: bool,
    uncertainty: str | None,
    outputs: str,
    score: str,
    threshold: float,
    read: str | None,
) -> Any:
    from .._imports import import_attribute
    from ..errors import unknown_name
    from ..tasks import TASKS, Classification, Detection, Flow, Regression, parse_input

    reader = None if read is None else import_attribute(read, "--read")
    action = None if input is None else parse_input(input)
    makers = {
        "classification": lambda: Classification(action, outputs, reader),
        "detection": lambda: Detection(action, score, threshold, read=reader),
        "regression": lambda: Regression(action, representation, per_point, reader, uncertainty),
        "flow": lambda: Flow(action, read=reader),
    }
    if name in makers:
        return makers[name]()
    raise unknown_name("--task", name, TASKS)
