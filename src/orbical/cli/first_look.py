"""`orbical view MODEL DATA`: a first look at models on data, without a scan made before."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError
from .arguments import named_models


def first_look(
    models: Sequence[str],
    data: str,
    given: Mapping[str, Any],
    images: dict[str, Any],
    samples: int | None,
    out: Path | None,
) -> Any:
    """Scan a few samples and return a session, behind which more are scanned."""
    sources = named_models(models, "MODEL")
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


def _check_data(data: str) -> None:
    if not Path(data).expanduser().exists():
        raise InputError("DATA", "a folder or a file", f"{data!r}, which does not exist")
