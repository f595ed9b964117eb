# One command each; `make help` lists them. The only needs: Python 3.11 or newer, make, and a package index.

PYTHON ?= python3.13 python3.12 python3.11 python3
VENV ?= .venv
DATA ?= data
PYTEST_ARGS ?= -m "not slow"

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev test lint bench lock clean

help: ## Say what can be made
	@sed -nE 's/^([a-z]+):[^#]*## (.*)/make \1	\2/p' $(MAKEFILE_LIST)
	@echo 'Variables: PYTHON (interpreters to try), VENV, DATA (data directory), PYTEST_ARGS'

run: $(VENV)/run.stamp ## Ingest the bundled sample into ./data and show a leaderboard
	$(BIN)/kernelhouse ingest sample --data $(DATA)
	$(BIN)/kernelhouse leaderboard grouped_gemm_fp8_fp4_m_masked_g4_n2048_k2048 --data $(DATA)

# The limit of the pool is set before anything can be queued: the default in dagster.yaml holds from the second run on.
dev: export DAGSTER_HOME = $(abspath $(DATA))/dagster
dev: export KERNELHOUSE_DATA = $(abspath $(DATA))
dev: $(VENV)/dev.stamp ## Open the Dagster UI on the bundled sample, with its history in ./data/dagster
	mkdir -p $(DAGSTER_HOME)
	cp deploy/dev/dagster.yaml $(DAGSTER_HOME)
	$(BIN)/dagster instance concurrency set writer 1
	$(BIN)/python -m pipeline.defs
	$(BIN)/dagster dev --module-name pipeline.defs.definitions

test: $(VENV)/dev.stamp ## Run the tests (all of them: make test PYTEST_ARGS=)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/dev.stamp ## Check style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/run.stamp ## Measure ingests of 10^4, 10^5 and 10^6 synthetic records (others: BENCH_ARGS=10000000)
	$(BIN)/python -m bench $(BENCH_ARGS)

clean: ## Remove what make and the tools made; ./data stays
	rm -rf $(VENV) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# The first of the interpreters in PYTHON that is new enough. A name alone proves nothing: it may be a shim.
$(BIN)/python:
	@for python in $(PYTHON); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        exec "$$python" -m venv $(VENV); \
	    fi; \
	done; \
	echo 'No Python 3.11 or newer among: $(PYTHON). Install one, or name it: make PYTHON=/path/to/python3 ...' >&2; \
	exit 1

# Build tools are pinned in run.txt too, so installing the project itself downloads nothing.
$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	$(PIP) install --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

# Locked on the oldest Python that is supported: what a newer one needs is a subset of that.
LOCK := CUSTOM_COMPILE_COMMAND='make lock' $(VENV)-lock/bin/pip-compile --quiet --upgrade --generate-hashes \
    --allow-unsafe --strip-extras --build-deps-for editable --annotation-style line \
    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

lock: ## Pin the newest versions in requirements/ (needs python3.11)
	python3.11 -m venv --clear $(VENV)-lock
	$(VENV)-lock/bin/python -m pip --disable-pip-version-check --quiet install pip-tools
	$(LOCK) --output-file requirements/run.txt pyproject.toml
	$(LOCK) --output-file requirements/dagster.txt --constraint requirements/run.txt --extra dagster pyproject.toml
	$(LOCK) --output-file requirements/dev.txt --constraint requirements/dagster.txt \
	    --extra dagster --extra test --extra lint pyproject.toml
	rm -rf $(VENV)-lock
