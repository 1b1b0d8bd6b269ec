"""Run the notebooks of `docs/tutorials` and show them as pages, as a hook of mkdocs.

Pages and pictures exist in the site only; the repository has the notebooks without their outputs.
An error in a cell ends the build. Results are kept in `.cache`, by the notebook and the package.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
SHOWN = ["image/png", "text/plain"]  # of a table the plain text, which is set like code
CACHE = ROOT / ".cache" / "tutorials"


def on_files(files: Any, config: Any) -> Any:
    """Add the page and the pictures of each notebook."""
    from mkdocs.structure.files import File

    notebooks = [file for file in files if file.src_uri.endswith(".ipynb")]
    with ThreadPoolExecutor(2) as threads:  # kernels are processes of their own
        executed = list(threads.map(lambda file: _executed(Path(file.abs_src_path)), notebooks))
    for file, notebook in zip(notebooks, executed, strict=True):
        name = file.src_uri.removesuffix(".ipynb")
        text, pictures = _rendered(notebook, name)
        files.append(File.generated(config, f"{name}.md", content=text))
        for picture, content in pictures.items():
            files.append(
                File.generated(config, f"{name.rpartition('/')[0]}/{picture}", content=content)
            )
    return files


def _executed(path: Path) -> Any:
    kept = CACHE / f"{path.stem}-{_fingerprint(path)}.ipynb"
    if kept.is_file():
        return nbformat.read(kept, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    CACHE.mkdir(parents=True, exist_ok=True)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(CACHE)}})
    client.execute(env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
    for old in CACHE.glob(f"{path.stem}-*.ipynb"):
        old.unlink()
    nbformat.write(notebook, kept)
    return notebook


def _fingerprint(path: Path) -> str:
    """Hash a notebook with the sources it runs."""
    sources = [path, *sorted((ROOT / "src").rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]


def _rendered(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """Convert to Markdown, with a link to the notebook under the heading."""
    stem = name.rpartition("/")[2]
    settings = {
        "NbConvertBase": {"display_data_priority": SHOWN},
        "CoalesceStreamsPreprocessor": {"enabled": True},  # no blank lines between slow prints
    }
    exporter = MarkdownExporter(config=Config(settings))
    text, resources = exporter.from_notebook_node(notebook, {"unique_key": stem})
    # A result follows what is printed before it.
    text = re.sub(r"(\n    [^\n]*)\n{4,}(?=    \S)", r"\1\n", text)
    title, _, rest = _described(text).lstrip().partition("\n")
    return f"{title}\n\n[Download this notebook]({stem}.ipynb)\n{rest}", resources["outputs"]


def _described(text: str) -> str:
    """Describe each picture, which nbconvert calls "png", by the heading above it."""
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    heading = re.compile(r"## (?:\d+\. )?(.*)")
    return "".join(
        section.replace("![png]", f"![Figure: {found[1]}]")
        if (found := heading.match(section))
        else section
        for section in sections
    )
