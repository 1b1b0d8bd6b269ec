"""`orbical scan`: evaluate models along the orbits of a data set."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._interrupts import end_with_parent, how_to_go_on, stoppable
from .._text import percent
from ..errors import InputError, Interrupted, ModelError, unknown_name
from . import arguments
from .scan_summaries import print_audit, print_positions, print_summary

if TYPE_CHECKING:
    from ..actions import Action
    from ..tasks import Reader

_CONNECT_S = 20
_NOTICE_S = 2


def scan(
    model: Annotated[list[str], typer.Option("--model", "-m", metavar="[NAME=]SOURCE")],
    data: Annotated[str, typer.Option("--data", "-d")],
    group: Annotated[str | None, typer.Option("--group", "-g")] = None,
    out: arguments.Out = None,
    task: Annotated[str, typer.Option("--task", "-t")] = "classification",
    preprocess: arguments.Preprocess = None,
    read: arguments.Read = None,
    keep: Annotated[list[str] | None, typer.Option(metavar="WHAT")] = None,
    device: str = "auto",
    resume: Annotated[bool, typer.Option("--resume/--no-resume")] = True,
    overwrite: arguments.Overwrite = False,
    quiet: arguments.Quiet = False,
    imports: arguments.Import = None,
    size: str | None = None,
    unreadable: str | None = None,
    unlabeled: arguments.Unlabeled = False,
    path_column: str | None = None,
    label_column: str | None = None,
    columns: str | None = None,
    root: str | None = None,
    classes: Annotated[str | None, typer.Option(metavar="FILE")] = None,
    readers: Annotated[int, typer.Option(min=0)] = 0,
    fingerprint: str | None = None,
    input: str | None = None,
    representation: str | None = None,
    per_point: Annotated[bool, typer.Option("--per-point")] = False,
    uncertainty: str | None = None,
    outputs: str | None = None,
    score: str | None = None,
    threshold: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    length: Annotated[int | None, typer.Option(min=1)] = None,
    ignore_index: Annotated[int | None, typer.Option(metavar="LABEL")] = None,
    points: Annotated[str | None, typer.Option(metavar="HxW:PAIRS")] = None,
    quantities: str | None = None,
    workers: Annotated[int, typer.Option(min=1)] = 1,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None,
    part: Annotated[str | None, typer.Option(metavar="I/N")] = None,
    threads: arguments.NumberOrAuto = "auto",
    batch_size: arguments.NumberOrAuto = "auto",
    chunk: arguments.NumberOrAuto = "auto",
    durable: Annotated[bool, typer.Option("--durable")] = False,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS")] = None,
) -> None:
    """Evaluate models along the orbits of a data set.

    \b
    orbical scan -m net=mine.nets:net -d digits.npz -g rotations:72 -o run.zarr
    orbical scan -t atoms -m emt=ase.calculators.emt:EMT -d water.xyz -g rotations3d:64

    Every model is evaluated on every sample, transformed by every element of the group. The saved
    scan contains the outputs, their scores, the consensus along each orbit, and the error of the
    transformation itself. An interrupted scan loses no finished work: run the same command again
    to continue. Several processes share a scan with --workers, --cluster or --part.

    Args:
        model: A model; repeat for more. SOURCE is package.module:attribute (a torch module, a
            scikit-learn estimator, an ASE calculator or a function; a trailing () calls it), a
            file.onnx or file.tflite (a detector's decoding may follow: yolo.onnx:yolov8), a folder
            written by transformers' save_pretrained, a file.pt2 from torch.export or a file.pt
            of TorchScript. Import paths, .pt2 and .pt files run their author's code: use only what
            you trust. A language model is a folder or a file.gguf, FOLDER:likelihood with its
            scoring, or http://host/v1#model.
        data: The data set: a folder of images, with a subfolder for each class or none; a table
            .csv, .tsv or .parquet of image files with labels and metadata, or, also .jsonl and
            .json, of questions with options; an .npz file or a Zarr group with x (or x_NAME for
            each field) and optionally y; an .npy file; package.module:attribute (x, (x, y), a
            torch Dataset); a built-in name, mnist or digits;
            molecules in a file .xyz, .extxyz, .sdf, .mol, .traj, .cif or an ASE database .db; for
            detection, a folder in COCO's format, coco:FOLDER or
            coco:FOLDER:WINDOW:RADIUS:CLASS,CLASS.
        group: The symmetry group, such as rotations:72, translations:64:4, dihedral:4,
            cyclic:4*time_reversal, rotations3d:256, octahedral:full, pointgroup:mmm,
            scales:0.5:2:17 or permutations:5; orbical groups lists them all. For choice, by
            default all orders of up to four options, and 24 orders of more.
        out: Save the scan here, as a Zarr store: a folder, or a URL that fsspec knows.
        task: The task: classification, choice, multilabel, ordinal, segmentation, detection, flow,
            regression, mixed, dense_regression, key_points, point_classification, text or atoms; or
            package.module:attribute of your own task, a class or an object.
        keep: Also save probabilities, flow, outputs (raw), inputs, or a large consensus.
            Repeatable, or several with commas.
        device: The device: auto, cpu, cuda, cuda:1 ...
        resume: Continue an unfinished scan in the store, and add new models to it.
        overwrite: Delete the contents of the store first.
        quiet: Show no progress bar and no tables.

    Data:
        size: For images in files: resize the shorter side to this and crop the center, as
            torchvision does; HEIGHTxWIDTH resizes as they are.
        unreadable: For images in files that cannot be decoded: raise (default) or skip.
        unlabeled: For a folder of images: its subfolders are not classes.
        path_column: For tables: the column of image files. Default: path.
        label_column: For tables: the column of labels. Default: label.
        columns: For tables: the metadata columns to store. Default: all others.
        root: For tables: the folder that the paths of image files are relative to. Default: the
            folder of the table.
        classes: The names of all classes of the models in their order; for images in files only
            if the data lack some of them. A text file with one name per line, or NAME,NAME.
        readers: Processes that read samples ahead; 0 reads in this one.
        fingerprint: A text that identifies the data, such as their version: a scan with the same
            text is continued without reading finished samples again.

    Task and outputs:
        input: How the group acts on the inputs: images, images:bicubic:reflect, volumes, points,
            vectors, signals, signal-window:4000, rows, trivial or window:128; for several fields,
            pos=points,numbers=rows. Default: images, or volumes if x is [N, C, D, H, W] (pairs of
            frames for flow).
        representation: For regression: how the group acts on the outputs: trivial (default),
            vector, position or, in images, position:HEIGHT:WIDTH, positions or positions:STEP in a
            signal, or e3nn irreps such as '1x1o'; for
            dense_regression: trivial, vector or normal; for classification, multilabel and ordinal:
            trivial, or options where class k is the k-th row of the input; for mixed: that of each
            output, such as center=position,energy=trivial.
        per_point: For regression: one output per point.
        uncertainty: For regression: what models return beside the mean: variance, covariance, parts
            (aleatoric and epistemic) or evidential; for dense_regression: variance.
        outputs: For classes of samples, pixels or points: what models return: logits (default) or
            probabilities.
        score: The score. For detection: iou, match_confidence, iou_confidence (default), top_iou,
            precision, recall, f1 or ap; for key_points: oks (default) or pck; for multilabel: f1
            (default), jaccard, label_accuracy or correct; for ordinal: rps (default) or rank_error;
            for text: cer (default) or edit_distance.
        threshold: For detection: the smallest IoU of a match; for multilabel: the smallest
            probability of a predicted label. Default: 0.5.
        length: For text: the maximum number of characters. Default: 64.
        ignore_index: For segmentation: the label of pixels to ignore. Default: 255.
        points: For key_points: height and width of the images, and the pairs of points that mirrors
            exchange, such as 64x48, 64x48:1-2,3-4, 64x48:none or 256x192:coco.
        quantities: For atoms: one or more of energy,forces,dipole,stress. Default: energy,forces,
            if the calculators provide them.

    Processes:
        workers: The number of processes that share the scan; for atoms, per calculator.
        cluster: Run on the workers of a Dask scheduler: tcp://host:8786, or its scheduler file.
        part: Run only part I of N, such as 3/16, into the store that all parts share; auto reads I
            and N from a job array of SLURM, Grid Engine, LSF, PBS or AWS Batch, from an indexed job
            of Kubernetes, from srun or from torchrun.
        threads: CPU threads of each process: a number or auto.
        batch_size: Transformed inputs per forward pass: a number or auto.
        chunk: Samples per unit, the most that a killed scan can lose: a number or auto.
        durable: Wait for the disk after each unit, so that a power failure loses no more.
        timeout: End the scan if a model takes longer than this for a batch. Default: wait.
    """
    with print_when_stopped(out is not None):
        from .. import tasks as known
        from ..scanning import scan as run

        named: dict[str, Any] = dict(arguments.models_from_option(model))
        if task not in known.TASKS and ":" not in task:
            raise unknown_name("--task", task, known.TASKS)
        if out is None and quiet:
            expected = "a folder for the scan, because --quiet prints no tables"
            remedy = "pass --out FOLDER, or leave out --quiet"
            raise InputError("--out", expected, "none", remedy=remedy)
        pictures = arguments.image_options(
            size, unreadable, path_column, label_column, columns, classes, root, unlabeled
        )
        action = None if input is None else known.parse_input(input)
        reader = arguments.reader_from_option(read)
        of_data = arguments.is_image_argument(data)  # which name their own classes
        classes_of_task = None if of_data else pictures.pop("classes", None)
        options = arguments.task_options(
            task,
            {
                "representation": representation,
                "per_point": per_point or None,
                "uncertainty": uncertainty,
                "outputs": outputs,
                "score": score,
                "threshold": threshold,
                "length": length,
                "ignore_index": ignore_index,
                "quantities": quantities,
                "classes": classes_of_task,
            },
        )
        if task in known.TASKS and known.TASKS[task].truth_kind == "quantities":
            named, chosen = _calculators_to_scan(named, quantities, workers, action, reader, score)
            workers = 1  # those of the calculators
        elif task in known.TASKS:
            options |= arguments.key_points_from_option(task, points)
            options |= _size_of_view(task, action, pictures)
            chosen = known.TASKS[task](input=action, read=reader, **options)
        else:
            chosen = arguments.own_task(task)
        of_atoms = chosen.truth_kind == "quantities"
        structures = data.lower().endswith(known.STRUCTURE_SUFFIXES)
        if structures and not of_atoms and action is None and task in known.TASKS:
            remedy = "pass --task atoms, or an action for each field with --input"
            raise InputError("--task", "atoms for molecules", task, remedy=remedy)
        content, names = arguments.load_data_and_classes(data, **pictures)
        if names is not None:
            chosen.classes = names
        arguments.announce_folder(out)
        with executor_of_options(workers, cluster) as executor:
            result = run(
                named,
                content,
                group=group,
                task=chosen,
                out=out,
                resume=resume,
                overwrite=overwrite,
                keep=keep or (),
                batch_size=batch_size,
                chunk=chunk,
                durable=durable,
                timeout=timeout,
                device=device,
                workers=readers,
                fingerprint=fingerprint,
                preprocess=preprocess,
                threads=_threads_of(threads, workers),
                executor=executor,
                part=part,
                progress=not quiet,
            )
        if not quiet and part is not None and not result.complete:
            typer.echo(f"scan    {out}   {percent(result.share_done)} done by all parts so far")
        elif not quiet:
            if result.labeled or not of_atoms:
                print_summary(result)
            if "position" in result.stored:
                print_positions(result)
            if of_atoms:
                print_audit(result)
            if out is not None:
                typer.echo(f"scan    {out}   (orbical view {out})")


def _calculators_to_scan(
    models: Mapping[str, str],
    quantities: str | None = None,
    workers: int = 1,
    action: Action | None = None,
    reader: Reader | None = None,
    score: str | None = None,
) -> tuple[dict[str, Any], Any]:
    """Load the models and build the task with the quantities that all of them offer.

    Without `quantities` these are energy and forces, or the one of them that is offered.
    """
    from ..predictors import CalculatorPredictor, as_predictor
    from ..tasks import DEFAULT_QUANTITIES, Atoms

    loaded = {name: as_predictor(source) for name, source in models.items()}
    calculators = [model for model in loaded.values() if isinstance(model, CalculatorPredictor)]
    for model in calculators:
        model.workers = workers
    if workers > 1 and not calculators:
        raise InputError("--workers", "1 without a calculator among the models", workers)
    if quantities is not None:
        return loaded, Atoms(quantities, score, action, reader)
    offered = [q for q in DEFAULT_QUANTITIES if all(q in one.offers for one in calculators)]
    if not offered:
        name, one = next((n, one) for n, one in loaded.items() if one is calculators[0])
        raise ModelError(
            f"model {name!r}: expected energy or forces, got {', '.join(one.offers) or 'nothing'}; "
            "choose quantities that all models offer with --quantities"
        )
    return loaded, Atoms(offered, score, action, reader)


def _size_of_view(task: str, action: Action | None, pictures: dict[str, Any]) -> dict[str, Any]:
    """Return the size of the view of a detector that sees whole images; a window has its own."""
    from ..tasks import task_takes

    size = pictures.get("size")
    if not task_takes(task, "size") or action is None or size is None or hasattr(action, "size"):
        return {}
    return {"size": (size, size) if isinstance(size, int) else size}


@contextmanager
def executor_of_options(workers: int, cluster: str | None) -> Iterator[object]:
    """Return the executor of `--workers` or `--cluster`, None for neither."""
    if cluster is not None and workers > 1:
        raise InputError("--cluster", "no --workers beside it", "both")
    if cluster is not None:
        with _dask_client_of_scan_command(cluster) as client:
            yield client
    elif workers > 1:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _start_worker) as pool:
            yield pool
    else:
        yield None


def _start_worker() -> None:
    """Leave Ctrl-C to the driver, which ends the pool, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _threads_of(threads: int | str, workers: int) -> int | str:
    """Return the threads of each process: those that were asked for, or an equal share."""
    if threads == "auto" and workers > 1:
        import torch

        return max(1, torch.get_num_threads() // workers)
    return threads


def _dask_client_of_scan_command(address: str) -> Any:
    """Connect to a Dask scheduler, by its address or by the file that it wrote."""
    from .._imports_and_paths import import_extra, words_of

    distributed = import_extra("distributed", "cluster", "--cluster")
    place = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    words = f"waiting for the Dask scheduler {address}, for up to {_CONNECT_S} s"
    notice = Timer(_NOTICE_S, typer.echo, [words], {"err": True})
    notice.start()
    try:
        return distributed.Client(**place, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError) as error:
        expected = "the address of a Dask scheduler, such as tcp://host:8786, or its scheduler file"
        got = f"{address!r} ({words_of(error)[:200]})"
        raise InputError("--cluster", expected, got) from error
    finally:
        notice.cancel()


@contextmanager
def print_when_stopped(kept: bool) -> Iterator[None]:
    """Print how to continue after Ctrl-C, however often it is pressed."""
    with stoppable(kept):
        try:
            yield
        except KeyboardInterrupt as stop:
            text = str(stop) if isinstance(stop, Interrupted) else f"stopped; {how_to_go_on(kept)}"
            typer.echo(f"\n{text}", err=True)
            raise typer.Exit(130) from None
