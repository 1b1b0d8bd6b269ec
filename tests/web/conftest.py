"""Modules of the front end, run by node on numbers that Python made."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

WEB = Path(__file__).resolve().parents[2] / "src" / "orbical" / "interface" / "web"


@pytest.fixture
def in_node(tmp_path: Path) -> Any:
    """Give a function that runs JavaScript: `given` is its data, and what it returns comes back."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")

    def run(imports: dict[str, str], body: str, given: Any) -> Any:
        lines = [
            f"import {{ {names} }} from {json.dumps((WEB / path).as_uri())};"
            for path, names in imports.items()
        ]
        (tmp_path / "given.json").write_text(json.dumps(given))
        (tmp_path / "main.mjs").write_text(
            "\n".join(
                [
                    'import { readFileSync } from "node:fs";',
                    *lines,
                    f"const given = JSON.parse(readFileSync({str(tmp_path / 'given.json')!r}));",
                    f"const answer = await (async () => {{ {body} }})();",
                    "const plain = (_, v) => (ArrayBuffer.isView(v) ? Array.from(v) : v);",
                    "console.log(JSON.stringify(answer, plain));",
                ]
            )
        )
        done = subprocess.run(
            [program, str(tmp_path / "main.mjs")], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def report_answers(in_node: Any) -> Any:
    """Give a function that answers requests as a report does, from the parts it would hold."""

    def answers(parts: dict[str, str], requests: list[dict]) -> list[dict]:
        modules = {
            "hosts/static_answers.js": "createAnswers",
            "hosts/static_pack.js": "createPack",
        }
        body = """
            const answer = createAnswers(createPack((name) => given.parts[name]));
            const found = [];
            for (const request of given.requests) found.push(await answer(request));
            return found;
        """
        found: list[dict] = in_node(modules, body, {"parts": parts, "requests": requests})
        return found

    return answers
