# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TOOLS := .venv-tools
TOOLS_READY := $(TOOLS)/.ready
SECONDS ?= 60
MUTATION := .venv-mutants
MUTATION_READY := $(MUTATION)/.ready
MUTANTS ?= 25
SEED ?= 1
ROOMS ?=
EXTRAS := $(addprefix --extra ,boosting images report parquet excel fast cluster docs dev)

.PHONY: venv demo test lint docs bench fuzz mutants lock audit release clean help

help: ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

venv: $(READY) ## a virtual environment with everything the other targets use

# Every file is compared with the digest in the lock, but for torch, of which every machine has a build of its own.
$(READY): pyproject.toml requirements.lock constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --require-hashes --requirement requirements.lock
	$(PIP) --constraint constraints.txt torch
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(READY)

$(TOOLS_READY): tools.lock
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement tools.lock
	@touch $(TOOLS_READY)

$(MUTATION_READY): tools/mutants.lock
	$(PYTHON) -m venv $(MUTATION)
	$(MUTATION)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/mutants.lock
	@touch $(MUTATION_READY)

demo: $(READY) ## five parties, handwritten digits, about half a minute
	$(BIN)/fedkt demo

test: $(READY) ## the whole test suite
	$(BIN)/python -m pytest -q -n auto

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY) ## the documentation as a site in site/
	$(BIN)/zensical build --strict

bench: $(READY) ## what fedkt costs beside bare loops of the same models, in short; docs/benchmarks.md has the long form
	$(BIN)/fedkt bench adult cod-rna --parties 5 --repeats 1
	$(BIN)/fedkt bench growth --repeats 1

fuzz: $(READY) ## coverage-guided search for files that break a reader; SECONDS=60 for all readers together
	$(PIP) --no-deps --require-hashes --requirement fuzz/requirements.lock
	$(BIN)/python -m fuzz --seconds $(SECONDS)

mutants: $(READY) $(MUTATION_READY) ## faults put into the source: do tests notice? MUTANTS=25 a room, SEED=1, ROOMS=privacy,plan
	$(MUTATION)/bin/python tools/mutants.py --python $(BIN)/python --mutants $(MUTANTS) --seed $(SEED) \
		$(if $(ROOMS),--rooms $(ROOMS))

LOCK = $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --custom-compile-command 'make lock'

lock: $(TOOLS_READY) ## the lock files anew, from constraints.txt and tools.in
	printf 'hatchling\neditables\n' | $(LOCK) --constraint constraints.txt $(EXTRAS) --output-file requirements.lock \
		pyproject.toml -
	$(LOCK) --output-file tools.lock tools.in
	echo atheris==3.0.0 | $(LOCK) --output-file fuzz/requirements.lock -
	echo cosmic-ray==8.7.0 | $(LOCK) --output-file tools/mutants.lock -

audit: $(TOOLS_READY) ## known advisories against the locked versions; needs the internet
	$(TOOLS)/bin/python tools/audit.py requirements.lock tools.lock fuzz/requirements.lock tools/mutants.lock

release: $(TOOLS_READY) ## what is published, in dist/: source, wheel, a bill of materials (CycloneDX), checksums
	rm -rf dist
	$(TOOLS)/bin/python -m build --no-isolation --outdir dist
	$(TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-format JSON \
		--output-file dist/fedkt.cdx.json requirements.lock
	cd dist && sha256sum * > SHA256SUMS

clean: ## remove what the targets made
	rm -rf $(VENV) $(TOOLS) $(MUTATION) .mutants dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
