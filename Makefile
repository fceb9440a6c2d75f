# The companion's commands. `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Python 3.11, with which the outputs of the book were recorded, or else 3.12 or 3.13; another name or path with make PYTHON=...
PYTHON ?= $(firstword $(shell command -v python3.11 python3.12 python3.13 python3))
BIN := .venv/bin
# What the book and the command line need is installed first; JupyterLab and the tools of the tests when they are asked for.
BOOK := .venv/.installed
LAB := .venv/.installed-for-lab
TESTS := .venv/.installed-for-tests
# Python compiles a module when it is first imported; pip would compile all of them, most of which nothing here imports.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt --editable
# Chapters executed at the same time.
JOBS ?= 2
PROFILE ?= digits
# More for JupyterLab; in a container, whose pages are opened outside: make lab LAB_OPTIONS="--ip=0.0.0.0 --no-browser"
LAB_OPTIONS ?=
# Nothing of the user's own configuration may change what the notebooks do.
export PYTHONNOUSERSITE := 1
# Some containers forbid it, and each of the many processes that tests and chapters start would then compile the whole library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install lab book test power again anywhere try paper shards long pack refresh lint dist serve bench clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(BOOK) ## make .venv with the pinned packages

$(BOOK): pyproject.toml likelihood/pyproject.toml book/companion/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { echo "make: expected Python 3.11, 3.12 or 3.13, got $$($(PYTHON) --version 2>&1); name one with make PYTHON=..."; exit 2; }
	@echo "Installing the pinned packages of the book in .venv (1.6 GB), which takes about a minute."
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[fast]' --editable './likelihood[plot,hdf5,skops,cluster]' --editable './book/companion[book]'
	@touch $@

$(LAB): $(BOOK)
	$(INSTALL) './book/companion[lab]'
	@touch $@

$(TESTS): $(BOOK)
	@echo "Installing the tools of the tests in .venv (1.1 GB), which takes about a minute."
	$(INSTALL) '.[test,lint,gpu]'
	@touch $@

# It serves this folder, not book/, since it shows no picture from above the folder that it serves.
lab: $(LAB) ## open the chapters in JupyterLab
	@$(BIN)/jupyter trust book/*.ipynb > /dev/null  # their players are scripts
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/book $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_OPTIONS)

book: $(BOOK) ## execute every chapter on the digits profile and build the book
	$(BIN)/paperlib reproduce --profile $(PROFILE) --jobs $(JOBS)
	$(BIN)/paperlib book --profile $(PROFILE)

test: $(TESTS) ## unit, statistical and notebook tests
	$(BIN)/python -m pytest -n 2 --dist worksteal
	rm -rf _build/fresh
	PAPERLIB_FIGURES=$(CURDIR)/_build/fresh OMP_NUM_THREADS=1 $(BIN)/python -m pytest --nbval-lax --nbval-current-env --nbval-cell-timeout 3600 -n 2 --dist loadfile book/*.ipynb
	$(BIN)/python -m pytest tests/regression

power: $(TESTS) ## plant mistakes in copies of the library, and see that the tests notice them, and nbval alone (some minutes)
	$(BIN)/python -m pytest -n 2 tests/power

again: $(TESTS) ## make records of the papers' size again, whole or in part, and compare them (needs MNIST)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/paper_size

# torch, oneDNN and numba are told to use fewer instructions than the processor has.
ANYWHERE ?= tests
anywhere: $(TESTS) ## run the tests as on other processors, on one core, and with four threads (an hour; ANYWHERE=tests/test_ais.py)
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 NUMBA_CPU_NAME=haswell $(BIN)/python -m pytest -n 2 $(ANYWHERE)
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 NUMBA_CPU_NAME=generic $(BIN)/python -m pytest -n 2 $(ANYWHERE)
	taskset --cpu-list 0 $(BIN)/python -m pytest $(ANYWHERE)
	OMP_NUM_THREADS=4 $(BIN)/python -m pytest -n 2 $(ANYWHERE)

try: $(TESTS) ## run everything that the chapters suggest under "What to try" (half an hour)
	$(BIN)/python -m pytest -n 2 tests/suggestions

paper: $(BOOK) ## execute every chapter at the papers' size (hours; needs MNIST, see book/running.md)
	$(BIN)/paperlib reproduce --profile paper --jobs $(JOBS)

shards: ## unpack the longest runs of the papers' size, computed already, into data/cache
	mkdir -p data/cache
	for archive in data/shards/*.tar.xz; do tar -xJf $$archive -C data/cache || exit 1; done

long: $(BOOK) ## run what is missing of the longest runs of the papers' size, in idle time; stop with Ctrl-C, go on with make long
	$(BIN)/paperlib long

pack: $(BOOK) ## pack what make long has computed as a new archive in data/shards
	$(BIN)/paperlib long --pack

refresh: $(BOOK) ## execute on digits and record the outputs in the committed chapters
	PAPERLIB_REFRESH=1 $(BIN)/paperlib reproduce --profile digits --jobs $(JOBS)
	$(BIN)/paperlib refresh

lint: $(TESTS) ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# The wheels are built of the source distributions alone. The last lines use what was installed, far from the clone.
dist: $(TESTS) ## build in dist/ what a release uploads, and install it in an empty environment
	rm -rf dist _build/empty
	for folder in . likelihood book/companion; do (cd $$folder && $(CURDIR)/$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("$(CURDIR)/dist")' >/dev/null) || exit 1; done
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz
	$(PYTHON) -m venv _build/empty
	_build/empty/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $$(mktemp -d) && bin=$(CURDIR)/_build/empty/bin && $$bin/python -c "import numpy, paperlib.datasets as d; numpy.save('digits.npy', d.load_digits().test)" && $$bin/paperlib evaluate $$bin/../share/paperlib/data/models/digits-cd25-50.safetensors --data digits.npy --binarize 1 --steps 100

bench: $(TESTS) ## measure speed beside peers (45 minutes; BENCH=--quick: seconds)
	$(BIN)/python -m benchmarks.run $(BENCH)

serve: ## show the built book at http://localhost:8000
	@test -f _build/html/index.html || { echo "make: no book yet; run make book"; exit 2; }
	$(PYTHON) -m http.server --directory _build/html --bind 127.0.0.1 8000

clean: ## remove everything that was built, .venv included
	rm -rf .venv _build dist {.,likelihood,book/companion}/build {.,likelihood,book/companion}/*.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
