# polybody. `make run` and `make test` each do everything on a machine that has Python 3.11 or newer, and make.
#   make run       install, then show a model
#   make test      install, run every test, lint among them; what this machine lacks (a browser, a C compiler) is skipped
#   make test-all  the same with every extra installed, and a skipped test is a failure: needs Chromium, gcc and g++
#   make lint      ruff, pyright, import-linter; lines of code by folder
#   make docs      write the reference pages, then run the code blocks of README and docs/
#   make site      the documentation as a web site in site/
#   make bench     compare speed with other engines
#   make fuzz      hostile files for every reader, MINUTES=1
#   make clean     forget the environment and all caches
# PYTHON=python3.13 picks the interpreter, VENV=path the environment, JOBS=4 how many tests run at a time.

VENV ?= .venv
JOBS ?= 2

# The first interpreter that polybody supports; python3 itself if it is one.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c "$(SUPPORTED)" >/dev/null 2>&1 && echo $$p && break; done)
endif

ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
STAMP := $(VENV)/.installed
RUNNING := $(VENV)/.running

.PHONY: site run test test-all lint bench docs fuzz clean
.DEFAULT_GOAL := run

# The environment, once.
define environment
	@test -n "$(PYTHON)" && $(PYTHON) -c "$(SUPPORTED)" || \
	  { echo "polybody needs Python 3.11 to 3.14, found none: make PYTHON=/path/to/python3.x"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make environments (on Debian and Ubuntu: apt install python3-venv)"; rm -rf $(VENV); exit 1; }
endef

# What tests, lint and benchmarks need; repeated only when pyproject.toml changes. Bytecode is written for what is
# imported, not for all that is installed: that saves a third of pip's processor time.
$(STAMP): pyproject.toml
	$(call environment)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".[dev]"
	@touch $@

# Only what running needs: no linters, no other engines.
$(RUNNING): pyproject.toml
	$(call environment)
	@echo "== installing polybody and what it needs to run"
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".[viewer]"
	@touch $@

run: $(RUNNING)
	@$(BIN)/polybody demo --output runs --force

# The linters are tests too (tests/test_lint.py): they run beside the others.
test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS)

# The extra `all` names every other one (tests/test_package.py).
test-all: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".[all,dev]"
	$(BIN)/python -m pytest -n $(JOBS) -rs --no-skips

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python tools/lines.py

# Each benchmark is a script of its own that prints its table.
bench: $(STAMP)
	@set -e; for script in benchmarks/bench_*.py; do \
	  test -e "$$script" || { echo "no benchmarks yet"; break; }; \
	  echo "== $$script"; $(BIN)/python "$$script"; done

MINUTES ?= 1
fuzz: $(STAMP)
	PYTHONPATH=src $(BIN)/python tests/fuzz/run.py --minutes $(MINUTES)

docs: $(STAMP)
	$(BIN)/python tools/reference.py
	$(BIN)/python -m pytest tests/test_docs.py

site: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "the site is in site/: open site/index.html"

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
