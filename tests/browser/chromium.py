"""One Chromium for all processes of a test run: the first starts it, and it ends with the last.

    python chromium.py FOLDER PROGRAM FLAG...

serves a browser, writes its address to `FOLDER/address`, and waits for the lock of `FOLDER/users`,
which every process that uses the browser shares. The system takes a lock from a process that ends,
however it ends, so that no browser is left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def shared_chromium(folder: Path, program: str, flags: list[str]) -> Iterator[str]:
    """Yield the address of the browser of a test run, which keeps its files in a folder."""
    folder.mkdir(exist_ok=True)
    address = folder / "address"
    with (folder / "users").open("w") as users:
        with FileLock(folder / "start.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)  # waits for a browser that is ending
            if not address.exists():
                words = [sys.executable, __file__, str(folder), program, *flags]
                pipe = subprocess.PIPE
                server = subprocess.Popen(words, stdout=pipe, text=True, start_new_session=True)
                assert server.stdout is not None
                assert server.stdout.readline(), "Chromium could not be started"
        yield address.read_text()


def serve(folder: Path, program: str, flags: list[str]) -> None:
    """Serve a browser until no process uses it."""
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"executablePath": program, "args": flags, "headless": True}))
    words = ["-m", "playwright", "launch-server", "--browser=chromium", f"--config={settings}"]
    with (
        (folder / "users").open("w") as users,
        subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        (folder / "address").write_text(server.stdout.readline().strip())
        print("ready", flush=True)
        fcntl.flock(users, fcntl.LOCK_EX)
        (folder / "address").unlink()
        os.killpg(os.getpgrp(), signal.SIGTERM)  # with the programs that serve, and this one


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
