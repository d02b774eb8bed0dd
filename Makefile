# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: venv demo test lint docs bench clean help

help: ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

venv: $(READY) ## a virtual environment with everything the other targets use

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[boosting,neural,images,report,parquet,docs,dev]'
	@touch $(READY)

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

bench: $(READY) ## what fedkt costs beside plain scikit-learn, and what stacks of networks save
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/neural.py

clean: ## remove what the targets made
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
