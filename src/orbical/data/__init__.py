"""Data of any kind, read as samples with names, labels and metadata columns.

`orbical.scan` takes arrays, torch data sets, Hugging Face data sets and paths as they are. The
classes here configure how images are read, and wrap streams and your own sources:

    photos = orbical.data.ImageFolder("photos/", size=224)
    orbical.scan(net, photos, group="rotations:72", task="classification")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .hugging_face_data import HuggingFace
    from .image_files import ImageFolder
    from .preprocessing import ImagePreprocessing
    from .saved_outputs import read_outputs
    from .source import Source
    from .sources import open_path
    from .streams import Stream
    from .tables import Table

_HOMES = {
    "HuggingFace": "hugging_face_data",
    "ImageFolder": "image_files",
    "ImagePreprocessing": "preprocessing",
    "Source": "source",
    "Stream": "streams",
    "Table": "tables",
    "open_path": "sources",
    "read_outputs": "saved_outputs",
}

__all__ = [
    "HuggingFace", "ImageFolder", "ImagePreprocessing", "Source", "Stream", "Table",
    "open_path", "read_outputs",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Loaded on first use: commands that only read an array file need not wait for torch.
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
