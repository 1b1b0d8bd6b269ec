"""Who runs a scan: this process, several of them, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import typer

from .._interrupts import end_with_parent
from ..errors import InputError

_CONNECT_S = 20
_NOTICE_S = 2


@contextmanager
def executor_of(workers: int, cluster: str | None) -> Iterator[Any]:
    """Return the executor of `--workers` or `--cluster`, None for neither."""
    if cluster is not None and workers > 1:
        raise InputError("--cluster", "no --workers beside it", "both")
    if cluster is not None:
        with _client(cluster) as client:
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


def threads_of(threads: str, workers: int) -> int | str:
    """Return the threads of each process: those that were asked for, or an equal share."""
    if threads == "auto" and workers > 1:
        import torch

        return max(1, torch.get_num_threads() // workers)
    return int(threads) if threads.isdigit() else threads


def _client(address: str) -> Any:
    """Connect to a Dask scheduler, by its address or by the file that it wrote."""
    from .._imports import import_extra, words_of

    distributed = import_extra("distributed", "cluster", "--cluster")
    place = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    words = f"waiting for the Dask scheduler {address}, for up to {_CONNECT_S} s"
    notice = Timer(_NOTICE_S, typer.echo, [words], {"err": True})
    notice.start()
    try:
        return distributed.Client(**place, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            "--cluster",
            "the address of a Dask scheduler, such as tcp://host:8786, or its scheduler file",
            f"{address!r} ({words_of(error)[:200]})",
        ) from error
    finally:
        notice.cancel()
