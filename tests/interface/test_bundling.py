"""Bundling: several modules become one that runs alike, and unknown forms raise."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import pytest

from orbical.errors import InputError
from orbical.interface.bundling import bundle, web_sources, web_style

MODULES = {
    "app.js": """import { area, SIDE as side } from "./draw/shapes.js";
import * as format from "./draw/format.js";
import {
  Counter,
  later,
} from "./core/counter.js";

const local = "app";

export default {
  async render() {
    const counter = new Counter();
    counter.add(area(side));
    return [format.text(counter.total), local, await later(3)].join(" ");
  },
};
""",
    "draw/shapes.js": """import { text as write } from "./format.js";
const local = write(2);
export const SIDE = 3;
export function area(length) {
  return length * length * Number(local);
}
""",
    "draw/format.js": """// import nothing; this line is a comment
export function text(value) { return String(value); }
""",
    "core/counter.js": """class Counter {
  total = 0;
  add(value) { this.total += value; }
}
async function soon(value) { return value + 1; }
export { Counter, soon as later };
""",
}


def run(text, tmp_path, call):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "bundle.mjs").write_text(text)
    (tmp_path / "main.mjs").write_text(f'import app from "./bundle.mjs";\n{call}\n')
    done = subprocess.run(
        [node, str(tmp_path / "main.mjs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_bundle_runs_as_its_modules_would(tmp_path):
    text = bundle("app.js", MODULES)
    assert run(text, tmp_path, "console.log(await app.render());") == "18 app 4"


def test_names_of_two_files_do_not_clash_and_each_file_stands_once():
    text = bundle("app.js", MODULES)
    assert text.count("const local") == 2
    assert text.count("function text(") == 1
    assert "import" not in text.replace("// import nothing", "")


def test_a_default_can_be_taken_by_name(tmp_path):
    sources = {
        "page.js": 'import { default as app } from "./app.js";\nexport default { twice: 2 * app };',
        "app.js": "export default 21;",
    }
    assert run(bundle("page.js", sources), tmp_path, "console.log(app.twice);") == "42"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('const a = 1;\nimport app from "./two.js";', 2),
        ('import "./two.js";', 1),
        ("import { two } from './two.js';", 1),
        ("\n\nexport let changing = 1;", 3),
        ("export const { a, b } = c;", 1),
        ('export * from "./two.js";', 1),
        ('export { two } from "./two.js";', 1),
        ('const late = await import("./two.js");', 1),
        ("const here = import.meta.url;", 1),
        ("import { two,\n  three four } from './two.js';", 1),
        ('  import { two } from "./two.js"; two();', 1),
    ],
)
def test_other_forms_are_refused_with_file_and_line(text, line):
    with pytest.raises(InputError, match=rf"draw/one\.js:{line}: expected import"):
        bundle("draw/one.js", {"draw/one.js": text, "draw/two.js": "export const two = 2;"})


@pytest.mark.parametrize("target", ["./absent.js", "two", "../../outside.js", "/two.js"])
def test_a_module_that_is_not_there_is_named(target):
    with pytest.raises(InputError, match=r"one\.js:1: expected a relative path to a module"):
        bundle("one.js", {"one.js": f'import {{ two }} from "{target}";', "two.js": ""})


def test_a_name_that_is_not_exported_is_refused():
    sources = {"one.js": 'import { three } from "./two.js";', "two.js": "export const two = 2;"}
    with pytest.raises(InputError, match=r"one\.js:1: two\.js exports no 'three'"):
        bundle("one.js", sources)


def test_a_circle_of_imports_is_refused():
    sources = {
        "one.js": 'import { two } from "./two.js";\nexport const one = 1;',
        "two.js": 'import { one } from "./one.js";\nexport const two = 2;',
    }
    with pytest.raises(InputError, match=r"one\.js: circular import one\.js > two\.js"):
        bundle("one.js", sources)


def test_an_unknown_entry_is_named():
    with pytest.raises(InputError, match=r"expected the path of a module, got 'absent\.js'"):
        bundle("absent.js", {})


def test_every_module_of_the_front_end_can_be_joined(tmp_path):
    sources = web_sources()
    for path in sources:
        bundle(path, sources)


def test_the_joined_style_holds_every_file_of_styles_once():
    joined = web_style()
    kept = [*(files("orbical.interface") / "web" / "styles").iterdir()]
    assert len(kept) > 1
    assert all(joined.count(part.read_text("utf-8")) == 1 for part in kept)
