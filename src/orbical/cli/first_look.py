"""`orbical view MODEL DATA`: a first look at models on data, without a scan made before."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .._imports import existing_file
from ..errors import InputError

_FILES = (".onnx", ".tflite", ".pt2")


def first_look(
    models: Sequence[str],
    data: str,
    given: Mapping[str, Any],
    images: dict[str, Any],
    samples: int | None,
    out: Path | None,
) -> Any:
    """Scan a few samples and return a session, behind which more are scanned."""
    sources = named_sources(models)
    _check_data(data)
    from ..groups import as_group
    from ..interface import PREVIEW_GROUPS, PREVIEW_SAMPLES, Preview, proposed
    from ..predictors import as_predictor

    # The page's own libraries load while the models are tried, which mostly runs C code.
    threading.Thread(target=import_module, args=("orbical.interface.server",), daemon=True).start()
    if given.get("group") is not None and given["group"] not in PREVIEW_GROUPS:
        as_group(given["group"])
    predictors = {name: as_predictor(source) for name, source in sources.items()}
    for predictor in predictors.values():
        module = getattr(predictor, "module", None)
        if module is not None:
            module.eval()  # the scan and the page use it at the same time
    proposal = proposed(predictors, data, given, **images)
    preview = Preview(
        sources, predictors, data, proposal, samples or PREVIEW_SAMPLES, out, given.get("classes")
    )
    return preview.open()


def named_sources(models: Sequence[str]) -> dict[str, str]:
    """Return models by name: `NAME=SOURCE`, or the name of the file or of the attribute.

    >>> named_sources(["nets/plain.onnx", "b=mine.nets:net"])
    Traceback (most recent call last):
    orbical.errors.InputError: MODEL: expected a file, got 'nets/plain.onnx', which does not exist
    >>> named_sources(["mine.nets:net()"])
    {'net': 'mine.nets:net()'}
    """
    from ..predictors import model_path

    named: dict[str, str] = {}
    for text in models:
        name, separator, source = text.rpartition("=")
        path = model_path(source)
        if path is not None:
            found = path if path.is_dir() else existing_file("MODEL", path)
            name = name if separator else found.stem
        elif ":" in source:
            name = name if separator else source.rpartition(":")[2].removesuffix("()")
        else:
            raise InputError(
                "MODEL",
                f"a file ending in {', '.join(_FILES)}, a folder of save_pretrained or "
                "package.module:attribute, before the data",
                repr(source),
            )
        if name in named:
            raise InputError("MODEL", "each name once", f"{name!r} twice", remedy="use NAME=SOURCE")
        named[name] = source
    return named


def _check_data(data: str) -> None:
    if not Path(data).expanduser().exists():
        raise InputError("DATA", "a folder or a file", f"{data!r}, which does not exist")
