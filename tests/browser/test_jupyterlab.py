"""The widget in a real JupyterLab: it appears, it is alive, and it answers a drag."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TOKEN = "only-for-this-test"
CODE = """
import torch
import orbical as ob
from orbical.interface import view

torch.manual_seed(0)
images, labels = ob.datasets.digits()
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
scan = ob.scan({"linear": net}, (images[:60], labels[:60]), group="rotations:12",
               task="classification", keep="inputs", progress=False)
shown = view(scan, models={"linear": net})
shown
"""


def program() -> str:
    """Find JupyterLab: beside this Python, on the path, or where ORBICAL_JUPYTERLAB says."""
    beside = Path(sys.executable).with_name("jupyter-lab")
    given = os.environ.get("ORBICAL_JUPYTERLAB", str(beside))
    found = given if Path(given).is_file() else shutil.which("jupyter-lab")
    if found is None:
        pytest.skip("JupyterLab is not installed (or name it with ORBICAL_JUPYTERLAB)")
    return found


def notebook(code):
    cell = {"cell_type": "code", "id": "one", "source": code, "metadata": {}, "outputs": []}
    kernel = {"name": "orbical-test", "display_name": "orbical-test", "language": "python"}
    return {
        "cells": [{**cell, "execution_count": None}],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    home = tmp_path_factory.mktemp("lab")
    kernels = home / "share" / "kernels" / "orbical-test"
    kernels.mkdir(parents=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": start, "display_name": "orbical-test", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(kernel))
    (home / "work").mkdir()
    (home / "work" / "digits.ipynb").write_text(json.dumps(notebook(CODE)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={home / 'work'}",
    ]
    paths = {"JUPYTER_PATH": str(home / "share"), "HOME": str(home), "OMP_NUM_THREADS": "1"}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [program(), *words], env={**os.environ, **paths}, stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/api/status?token={TOKEN}", timeout=2)
                break
            except OSError:
                assert server.poll() is None, (home / "log").read_text()
                time.sleep(0.5)
        yield f"{address}/lab/tree/digits.ipynb?token={TOKEN}"
    finally:
        server.terminate()
        server.wait(20)


def test_a_widget_is_alive_in_jupyterlab(lab, browser, tmp_path):
    tab = browser.new_page(viewport={"width": 1600, "height": 1200})
    troubles = []
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.goto(lab)
    tab.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    tab.get_by_text("| Idle").first.wait_for(timeout=60_000)
    tab.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor").first.click()
    tab.keyboard.press("Shift+Enter")
    page = tab.locator(".jp-OutputArea .orbical main.main")
    page.wait_for(timeout=90_000)
    handle = tab.locator(".orbical .section.individual [role=slider]").first
    handle.wait_for(timeout=20_000)
    before = handle.get_attribute("aria-valuetext")
    handle.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    tab.wait_for_function(
        "([element, text]) => element.getAttribute('aria-valuetext') !== text",
        arg=[handle.element_handle(), before],
    )
    # The input is moved and answered in the kernel: its picture says where it stands.
    tab.wait_for_function(
        "() => /angle|°/.test(document.querySelector("
        "'.orbical .section.input canvas')?.getAttribute('aria-label') ?? '')"
    )
    folded = tab.locator("details summary", has_text="static figure")
    folded.wait_for(timeout=20_000)
    tab.screenshot(path=str(tmp_path / "jupyterlab.png"), full_page=True)
    assert [text for text in troubles if "orbical" in text] == []
    tab.close()
