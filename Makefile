# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What a run needs, and what those need who change the code.
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
# Compiled when the package is installed.
KERNELS := $(wildcard wirelessfl/kernels/*.h wirelessfl/*/kernel.c wirelessfl/*/*/kernel.c wirelessfl/*/*/*.h wirelessfl/*/*/*/kernel.c wirelessfl/*/*/*/*.h)
# A test that does not end fails after half an hour, with its name and the stacks of its threads; the others go on.
PYTEST := $(BIN)/python -m pytest -n auto -o faulthandler_timeout=1800 -o faulthandler_exit_on_timeout=true
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup demo checked test test-all papers-smoke lint docs bench gpu dist clean

setup: $(DEV)

# torch comes first: with it in place nothing else pulls another build of it.
$(RUN): pyproject.toml hatch_build.py $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) 'torch>=2.6,<2.14'
	$(PIP) --editable .
	touch $@

$(DEV): $(RUN)
	$(PIP) --editable '.[dev]'
	touch $@

demo: $(RUN)
	$(BIN)/wirelessfl simulate quickstart --overwrite

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site lies in site/; it needs no network, neither to be built nor to be read.
docs: setup
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict --quiet

# One beside the other: each keeps one core busy.
checked: setup
	$(MAKE) --no-print-directory -j 2 lint docs

# One torch thread a worker: OpenMP barriers suffer when workers share the cores.
# Halves of the list keep the tests of a module together, which prepare things for the module once.
test: checked
	OMP_NUM_THREADS=1 BUILT_SITE=$(CURDIR)/site $(PYTEST) --dist worksteal -m 'not slow'

test-all: checked papers-smoke
	OMP_NUM_THREADS=1 BUILT_SITE=$(CURDIR)/site $(PYTEST) --dist worksteal --ignore tests/publications/test_smoke.py

# Two rounds of every study of every paper in its small size, with all that is made of them.
papers-smoke: setup
	OMP_NUM_THREADS=1 $(PYTEST) tests/publications/test_smoke.py

bench: setup
	$(BIN)/python -m benchmarks

# Takes the interpreter's own CUDA torch and makes no environment: make gpu [PYTHON=python3] [WHEELS=folder] [ARGS=...]
gpu:
	$(PYTHON) -m benchmarks.gpu $(if $(WHEELS),--wheels "$(WHEELS)") $(ARGS)

# Source distribution and wheel in dist/, as an index takes them: the wheel is built from the source, both are checked.
dist: setup
	$(PIP) --editable '.[release]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf build dist site .cache .mypy_cache .ruff_cache .pytest_cache
