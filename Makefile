# Every target sets itself up: .venv is made from nothing, with the versions of constraints.txt and the extras of
# pyproject.toml that the target needs.

PYTHON ?= python3
BIN := .venv/bin

export OPENBLAS_NUM_THREADS := 1
unexport PYTHONDONTWRITEBYTECODE  # some hundred processes of the tests would each parse every package again

.PHONY: help reproduce serve test lint types unit soak bench docs constraints clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

INSTALL = scripts/install.sh $(BIN)
EXTRAS_reproduce := cli,frames,plot
EXTRAS_serve := service
EXTRAS_dev := dev
EXTRAS_docs := docs

.venv/%.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) '.[$(EXTRAS_$*)]'
	touch $@

# reproduce and serve are content with the dev extra, which has everything, where that is installed already.
DEV := .venv/dev.installed
HAS_DEV := $(wildcard $(DEV))

reproduce: $(or $(HAS_DEV),.venv/reproduce.installed)  ## the paper's figures and the report, in report/
	$(BIN)/latecomer reproduce --out report

serve: $(or $(HAS_DEV),.venv/serve.installed)  ## the decision service on 127.0.0.1:8080, in latecomer.db
	$(BIN)/latecomer serve

test: lint  ## lint, types and every test: what CI runs
	$(MAKE) --no-print-directory --jobs 2 types unit  # the type checker has one process, and the machine more

lint: $(DEV)  ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(DEV)  ## mypy --strict over source, tests and benches
	$(BIN)/mypy

.venv/chromium.tried: | $(DEV)
	scripts/install_chromium.sh
	touch $@

.venv/promtool.tried: | $(DEV)
	scripts/install_promtool.sh $(BIN)
	touch $@

unit: $(DEV) .venv/chromium.tried .venv/promtool.tried  ## every test, executed documentation included
# A process more than there are cores: tests with servers and databases spend a part of their time waiting for them.
	$(BIN)/pytest --forks $$(($$(nproc 2>/dev/null || echo 2) + 1))

soak: $(DEV)  ## the tests of faults in their long form
	$(BIN)/pytest -m soak tests

bench: $(DEV)  ## the table of speeds, as ratios from one run
	-$(INSTALL) '.[peers]'
	$(BIN)/python bench/run.py

docs: $(DEV) .venv/docs.installed  ## the HTML pages, in docs/_build
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

constraints: $(DEV)  ## record the versions that this .venv has
	$(BIN)/python -m pip freeze --exclude-editable | grep -v '@' > constraints.txt

clean:  ## remove what the targets made
	rm -rf .venv .code_cache .hypothesis .mypy_cache .ruff_cache docs/_build docs/jupyter_execute
