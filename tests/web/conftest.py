"""Modules of the front end, run by node on numbers that Python made."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WEB = Path(__file__).resolve().parents[2] / "src" / "orbical" / "interface" / "web"


# Runs the modules named on its input one after the other, and answers each with a line.
RUNNER = """
import { createInterface } from "node:readline";
const plain = (_, v) => (ArrayBuffer.isView(v) ? Array.from(v) : v);
for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = { answer: await (await import(line)).answer };
  } catch (error) {
    said = { error: `${error.stack}` };
  }
  console.log(JSON.stringify(said, plain));
}
"""


@pytest.fixture(scope="session")
def node() -> Iterator[subprocess.Popen[str]]:
    """A running node, because it takes longer to start than to compute."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    with subprocess.Popen(
        [program, "--input-type=module", "--eval", RUNNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        yield started
        assert started.stdin is not None
        started.stdin.close()


@pytest.fixture
def in_node(node: subprocess.Popen[str], tmp_path: Path) -> Any:
    """Give a function that runs JavaScript: `given` is its data, and what it returns comes back."""
    count = itertools.count()

    def run(imports: dict[str, str], body: str, given: Any) -> Any:
        data, program = (tmp_path / f"{next(count)}.{ending}" for ending in ("json", "mjs"))
        lines = [
            f"import {{ {names} }} from {json.dumps((WEB / path).as_uri())};"
            for path, names in imports.items()
        ]
        data.write_text(json.dumps(given))
        program.write_text(
            "\n".join(
                [
                    'import { readFileSync } from "node:fs";',
                    *lines,
                    f"const given = JSON.parse(readFileSync({str(data)!r}));",
                    f"export const answer = (async () => {{ {body} }})();",
                ]
            )
        )
        assert node.stdin is not None
        assert node.stdout is not None
        print(program.as_uri(), file=node.stdin, flush=True)
        said = json.loads(node.stdout.readline())
        assert "error" not in said, said["error"]
        return said.get("answer")

    return run


@pytest.fixture
def report_answers(in_node: Any) -> Any:
    """Give a function that answers requests as a report does, from the parts it would hold."""

    def answers(parts: dict[str, str], requests: list[dict]) -> list[dict]:
        modules = {
            "hosts/static_answers.js": "createAnswers, createPack",
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
