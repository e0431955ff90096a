# `make` lists what there is. Everything runs in .venv, which is set up on first use.
.DEFAULT_GOAL := help
.PHONY: help setup prolog demo test quick conformance check fault soak bench bench-peers bench-guard docs pictures bundle clean
SHELL := /bin/sh

PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)
BIN := .venv/bin
READY := .venv/.ready

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

setup: $(READY) ## make .venv with KB and its tools

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "KB needs Python 3.11 or newer on the PATH." >&2; exit 1; }
	@$(PYTHON) -m venv .venv
	@echo "Setting up .venv (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

prolog: $(READY) ## install the WebAssembly engine of Prolog for the tests, in .venv; `kb prolog install` does for you
	@$(BIN)/python -m tests.support.logic.engines

demo: $(READY) ## set up and run the main job on an example project
	@$(BIN)/kb demo

test: $(READY) prolog ## set up and pass the quick tests, and of the others a slice: another one each day
	@$(BIN)/python -m pytest -q -n auto $(ARGS)

quick: $(READY) prolog ## pass the tests that are quick: for every day, before each commit
	@$(BIN)/python -m pytest -q -n auto -m 'not slow' $(ARGS)

fault: $(READY) prolog ## pass the tests that are not quick whole, hold all laws at length, and hurt the store in every known way: many minutes
	@KB_FAULT=merge $(BIN)/python -m pytest -q -n auto -m 'fault or hypothesis or slow' $(ARGS)

soak: $(READY) prolog ## hurt it again and again, in other ways each time: make soak MINUTES=60
	@$(BIN)/python -m tests.support.effort.soak $(or $(MINUTES),60)

conformance: $(READY) ## hold server, exports, indexes, clients' files and plugins against the programs of others (needs npm)
	@$(BIN)/python -m tests.conformance.tools
	@$(BIN)/python -m tests.conformance.indexers
	@$(BIN)/python -m tests.conformance $(ARGS)
	@$(BIN)/python -m tests.conformance.clients
	@$(BIN)/python -m tests.conformance.agent_files

check: $(READY) ## format, lint, types, and what KB says of its own requirements
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/kb sync --strict
	@$(BIN)/kb check --fail-on warning

bench: $(READY) prolog ## measure KB against its floors and other tools, as ratios
	@$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(READY) ## install those other tools in .venv/bench-peers
	@$(BIN)/python -m benchmarks --set-up-peers $(ARGS)

bench-guard: $(READY) prolog ## fail when a ratio is more than 40 % worse than the stored one, three times
	@$(BIN)/python -m benchmarks --guard $(ARGS)

docs: $(READY) ## regenerate the generated parts of the documentation
	@$(BIN)/python -m tests.support.docs.regenerate_docs

pictures: $(READY) ## take the pictures of docs/see.md again (needs Chromium)
	@$(BIN)/python -m tests.support.docs.pictures

bundle: $(READY) ## pack dist/kb-memory.mcpb, which Claude Desktop and others install
	@$(BIN)/python -m tests.support.docs.agent_files dist/kb-memory.mcpb

clean: ## remove .venv and what the tools left
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
