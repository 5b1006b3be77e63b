# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
# The tests of torch are skipped without it: continuous integration (CI=true) installs it as well.
EXTRA := $(if $(filter true,$(CI)),ci,dev)
DEV := $(VENV)/.$(EXTRA)
JOBS ?= 2
# Each worker has one thread of BLAS: two of them on two cores must not wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q
# Bytecode is kept, also where a container says otherwise: each worker and every process that a test
# starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: chromium help demo test fast test-all bench lint format types clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "featurestep needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "could not make $(VENV); on Debian: apt-get install python3-venv" >&2; exit 1; }

# The demonstration needs the package alone; the tests everything it can work with.
$(DEMO): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRA)]'
	@touch $(DEMO) $@

demo: $(DEMO)  ## predicted errors of the two published settings: a table and demo/*.png
	$(BIN)/featurestep demo --output demo

# Types and documentation beside the tests: they take the cores while a test waits for a process.
test: $(DEV) chromium lint  ## format check, lint, types, documentation and the fast tests
	@$(MAKE) --no-print-directory -j 2 fast types examples site

fast: $(DEV)
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not slow"

test-all: test  ## everything, slow statistical tests included
	$(PYTEST) -m slow

# The live page is tested in a real browser; whoever may install packages gets it here.
chromium:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } || \
		echo "no chromium: the live page's browser tests cannot run; on Debian: apt-get install chromium" >&2

bench: $(DEV)  ## speed, as ratios and rates
	$(BIN)/python -m benchmarks

lint: $(DEV)  ## ruff: format check and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEV)  ## mypy, strict
	$(BIN)/mypy

format: $(DEV)  ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove everything the targets made
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

include docs/docs.mk
