"""Write the public address of the project wherever it stands: for the person who publishes it.

python tools/set_address.py --repository URL --site URL
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKOUT = "pip install ."


def with_address(name: str, text: str, repository: str, site: str) -> str:
    """Return a file with the addresses in it, whether or not it had others before."""
    if name == "pyproject.toml":
        text = re.sub(r"\[project\.urls\]\n(?:.+\n)*\n", "", text)
        urls = f'[project.urls]\nDocumentation = "{site}"\nRepository = "{repository}"\n\n'
        return text.replace("[project.scripts]", f"{urls}[project.scripts]", 1)
    if name == "mkdocs.yml":
        text = re.sub(r"^(site_url|repo_url): .*\n", "", text, flags=re.MULTILINE)
        return f"site_url: {site}\nrepo_url: {repository}\n{text}"
    if name == "CITATION.cff":
        text = re.sub(r"^(repository-code|url): .*\n", "", text, flags=re.MULTILINE)
        return f"{text}repository-code: {repository}\nurl: {site}\n"
    text = text.replace(f"{CHECKOUT}  # in a checkout of this repository", "pip install orbical")
    return _with_absolute_links(text, repository, site) if name == "README.md" else text


def _with_absolute_links(text: str, repository: str, site: str) -> str:
    """Return the README with addresses that work on the page of a package index.

    >>> _with_absolute_links("[a](docs/faq.md#b) ![p](docs/images/p.png) [l](LICENSE)", "r", "s")
    '[a](s/faq/#b) ![p](s/images/p.png) [l](r/blob/HEAD/LICENSE)'
    """
    text = re.sub(r"\]\(docs/([\w/-]+?)(?:/?index)?\.md", rf"]({site}/\1/", text)
    text = re.sub(r"\]\(docs/([^)]+)\)", rf"]({site}/\1)", text)
    text = re.sub(r"\]\((?!https?:|#)([A-Z][\w.]+)\)", rf"]({repository}/blob/HEAD/\1)", text)
    return text.replace('src="src/orbical/interface/web/icon.svg"', f'src="{site}/images/icon.svg"')


FILES = (
    "pyproject.toml",
    "mkdocs.yml",
    "CITATION.cff",
    "README.md",
    "docs/install.md",
    "docs/index.md",
)


def main() -> None:
    """Rewrite the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--site", required=True)
    given = parser.parse_args()
    for name in FILES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        path.write_text(with_address(name, text, given.repository, given.site), encoding="utf-8")


if __name__ == "__main__":
    main()
