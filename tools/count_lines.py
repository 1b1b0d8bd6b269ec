"""Count lines of code, without docstrings, comments and blank lines: `python tools/count_lines.py`.

Prints a line for each module or folder directly inside `src/orbical` and `studies/orbical_studies`,
and the totals.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("src/orbical", "studies/orbical_studies")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Return the number of lines that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def main() -> None:
    """Print the counts."""
    for package in PACKAGES:
        base, counts = ROOT / package, Counter[str]()
        for path in base.rglob("*.py"):
            counts[path.relative_to(base).parts[0]] += code_lines(path.read_text(encoding="utf-8"))
        print(package)
        for name, lines in sorted(counts.items()):
            print(f"{lines:8,}  {name}")
        print(f"{counts.total():8,}  total\n")


if __name__ == "__main__":
    main()
