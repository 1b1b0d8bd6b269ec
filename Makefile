# `make demo` and `make test` make the environment that they need by themselves.
# Two stamps, because the demo needs none of the developer's tools; the developer's
# environment contains the demo's, so it stamps both.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.demo-ready
DEV_READY := $(VENV)/.dev-ready
WEB_READY := node_modules/.ready
INSTALL := $(BIN)/python tools/install_packages.py -c constraints.txt
PEERS := $(VENV)-peers
PEERS_READY := $(PEERS)/.ready
WORKERS ?= 2

.DEFAULT_GOAL := help
PARTS := test test-browser test-docs test-system test-studies test-peers test-slow
.PHONY: help venv demo fuzz $(PARTS) test-all test-versions release-check lint style types docs review vulnerabilities lock bench studies study audits audit clean

help: ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

venv: $(DEV_READY) ## make .venv with everything a developer needs

demo: $(DEMO_READY) ## scan two digit networks along the circle and open the view (ARGS="--help" lists more)
	@$(BIN)/orbical demo $(ARGS)

# Each test belongs to one part; conftest.py says to which. The tests of a file run in one process, which
# makes their browser and their scans once. Bytecode is kept whatever the shell says: tests start Python
# some forty times.
RUN := OMP_NUM_THREADS=1 MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE= ORBICAL_SITE=site
STUDIES := studies/tests studies/orbical_studies audits/tests audits/orbical_audits
PYTEST := $(RUN) $(BIN)/pytest -n $(WORKERS) --dist loadfile --max-worker-restart 0 $(ARGS)

test: $(DEV_READY) ## linters, types, unit tests, a few journeys with a browser: five minutes on two cores
	@$(MAKE) --no-print-directory --jobs $(WORKERS) types style
	@echo "Unit tests"
	@$(PYTEST) --part unit tests src/orbical

test-all: ## every part: make test, then those below, each of which can be run alone
	@$(MAKE) --no-print-directory --keep-going $(PARTS)

test-browser: $(DEV_READY) ## all tests that drive Chromium
	@echo "Browser tests"
	@$(PYTEST) --part browser tests/browser

test-docs: docs ## build the documentation; run its pages, guides, examples and demos
	@echo "Tests of the documentation"
	@$(PYTEST) --part docs tests

test-system: $(DEV_READY) ## processes that are killed, clusters, servers under load, packages
	@echo "System tests"
	@$(PYTEST) --part system tests

test-studies: $(DEV_READY) ## the studies and the audits
	@echo "Tests of the studies and the audits"
	@$(PYTEST) --part studies $(STUDIES)

test-peers: $(PEERS_READY) ## comparisons with other libraries and a server of S3, in an environment of their own
	@echo "Peers"
	@$(RUN) $(PEERS)/bin/pytest --part peers $$(grep -rl --include='*.py' mark.peers tests) $(ARGS)

test-slow: docs ## tests of more than ten seconds, of the built documentation too (about ten minutes on two cores)
	@echo "Slow tests"
	@$(PYTEST) --part slow

HOURS ?= 1
fuzz: $(DEV_READY) ## attack every reader with what atheris finds, for HOURS; the corpus is kept in .fuzzing
	@$(INSTALL) -e '.[fuzzing]'
	@$(RUN) $(BIN)/python tests/hostile/fuzz.py --hours $(HOURS) $(ARGS)

test-versions: ## the lowest and the newest versions of all dependencies, each in an environment of its own (GBs)
	@$(PYTHON) tools/try_versions.py

release-check: docs ## build what would be published and install it in clean environments (ARGS="3.11" for one Python)
	@$(PYTHON) tools/release_check.py $(ARGS)

lint: style types ## ruff, mypy, the layers, and the front end where node is installed

types: $(DEV_READY)
	@echo "Types"
	@$(BIN)/mypy --no-error-summary

style: $(DEV_READY)
	@echo "Lint, format, layers"
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --check --quiet . || { echo "To format: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/lint-imports --no-logo
	@{ command -v node && command -v npm; } >/dev/null && \
		$(MAKE) --silent --no-print-directory $(WEB_READY) 2>/dev/null || true
	@[ -x node_modules/.bin/tsc ] || { echo "Front end not checked: node or its linters are not installed"; exit 0; }; \
	set -e; \
	node_modules/.bin/eslint --max-warnings 0 src/orbical/interface/web tests/web; \
	node_modules/.bin/prettier --check --log-level warn . || { echo "To format: npx prettier --write ."; exit 1; }; \
	node_modules/.bin/tsc

# Not --quiet, which hides warnings from --strict as well.
docs: $(DEV_READY) ## build the documentation into site/, warnings as errors
	@echo "Documentation"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

review: $(DEV_READY) ## check the repository against the Scientific Python guide (sp-repo-review)
	@$(BIN)/repo-review . --show errskip

vulnerabilities: $(DEV_READY) ## look up known vulnerabilities of what is installed and locked (asks a server)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	@$(BIN)/pip-audit --skip-editable
	@$(BIN)/pip-audit --requirement requirements-dev.lock --require-hashes --disable-pip

# Not torch: which build of it, and so what it needs, is a choice. uv asks the index in UV_INDEX_URL.
lock: $(DEV_READY) ## pin the versions of .venv, with the hashes of their files, in requirements-dev.lock
	@$(BIN)/python -m pip freeze --exclude-editable --exclude torch --exclude triton | sed 's/+.*//' | \
		$(BIN)/uv pip compile --quiet --no-deps --generate-hashes --no-annotate --python $(BIN)/python \
		--custom-compile-command 'make lock' --output-file requirements-dev.lock -

studies: $(DEV_READY) ## list the studies
	@$(BIN)/orbical-study

study: $(DEV_READY) ## repeat a study: make study NAME=swiss-roll (ARGS="--help" lists its options)
	@$(BIN)/orbical-study $(NAME) $(ARGS)

audits: $(DEV_READY) ## repeat every audit of a published model (slow; FULL=1 for the full sizes)
	@PYTHONPATH=audits $(BIN)/python -m orbical_audits --all $(if $(FULL),--full)

audit: $(DEV_READY) ## repeat one: make audit NAME=digits (without NAME, list them; FULL=1 for the full size)
	@PYTHONPATH=audits $(BIN)/python -m orbical_audits $(NAME) $(if $(FULL),--full)

bench: $(DEV_READY) ## run every benchmark (minutes; on a machine that does nothing else)
	@set -e; for file in $(wildcard benchmarks/[!_]*.py); do echo "$$file"; $(BIN)/python $$file; done

clean: ## remove what the other targets made, except .venv
	@rm -rf build dist site orbical-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src studies audits tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEV_READY): pyproject.toml studies/pyproject.toml constraints.txt
	$(make-venv)
	@echo "Installing orbical with the developer's tools into $(VENV) (the first time takes about a minute)"
	@UV_COMPILE_BYTECODE=1 $(INSTALL) -e '.[dev]' -e studies  # once, not in each of the tests' many processes
	@touch $(DEMO_READY) $(DEV_READY)

$(DEMO_READY): pyproject.toml constraints.txt
	$(make-venv)
	@echo "Installing orbical into $(VENV) (the first time takes about a minute)"
	@$(INSTALL) -e '.[demo,equivariant,flow,umap]'
	@touch $(DEMO_READY)

$(PEERS_READY): pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(PEERS)
	@echo "Installing the libraries to compare with into $(PEERS)"
	@$(PEERS)/bin/python tools/install_packages.py -c constraints.txt -e '.[benchmarks,cluster,remote]' \
		hypothesis pytest pytest-timeout 'triton; platform_system == "Linux"'
	@touch $(PEERS_READY)

$(WEB_READY): package.json package-lock.json
	@npm ci --silent --no-audit --no-fund --fetch-retries 1
	@touch $@

# An environment whose making was interrupted has no pip; making it again completes it.
define make-venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "orbical needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
endef
