# Two commands matter: `make demo` and `make test`. Everything sets itself up.
PYTHON ?= python3
VENV := .venv
RUN := $(CURDIR)/$(VENV)/bin
PYTEST := $(RUN)/pytest -q

.PHONY: help
help:  ## List the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1|/' | awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(VENV)/.runtime  ## The main job for real, on this machine: no GPU and no cluster needed.
	@cd tests && PATH="$(RUN):$$PATH" $(RUN)/python -m world.demo

.PHONY: test
test: check  ## All that CI runs: check, all on the real control plane, the real engine.
	@$(MAKE) -s bin >/dev/null
	$(PYTEST) -n 2 --dist loadfile -m "plane or thorough"
	@$(MAKE) -s test-engine

.PHONY: test-engine
test-engine: $(VENV)/.dev  ## The real vLLM for CPUs (2.5 GB to download, once) in the pods of the test world.
	@$(MAKE) -s bin >/dev/null
	@cd tests && $(RUN)/python -m real_engine.environment >/dev/null
	$(PYTEST) tests/real_engine

.PHONY: check
check: $(VENV)/.dev  ## Lint, types, contracts and the tests without a control plane: for every edit.
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(PYTEST) -n 2 --dist loadfile -m "not plane and not thorough"

.PHONY: format
format: $(VENV)/.dev  ## Format, and fix what a linter can.
	$(RUN)/ruff format . && $(RUN)/ruff check --fix .

.PHONY: golden
golden: $(VENV)/.dev  ## Rewrite golden files, CRDs and generated docs; read the diff.
	$(RUN)/python -m shipfitter.api.crd
	@cd tests && $(RUN)/python -m contract.generated
	$(PYTEST) tests/golden --update-golden

.PHONY: accuracy
accuracy: $(VENV)/.dev  ## Predictions against observed runs: print and write docs/accuracy.md.
	@cd tests && $(RUN)/python -m accuracy.report

.PHONY: oracle
oracle: $(VENV)/.dev  ## Ask releases of vLLM's own planner anew (3 GB to download; not part of CI).
	@cd tests && $(RUN)/python -m oracle.generate $(RELEASES)

.PHONY: oracle-activation
oracle-activation: $(VENV)/.dev  ## Ask the newest vLLM for activation peaks that its file lacks.
	@cd tests && $(RUN)/python -m oracle.generate activation

.PHONY: bench
bench: $(VENV)/.dev  ## Speed and size, as ratios in one run; not pass or fail.
	@$(MAKE) -s bin >/dev/null
	@cd tests && $(RUN)/python ../benchmarks/run.py

.PHONY: bin
bin:  ## Build (once) or find the programs of the test control plane; prints their folder.
	@cd tests && $(PYTHON) -m world.controlplane bin

.PHONY: lock
lock: $(VENV)/.dev  ## Pin all dependencies with hashes anew, from pyproject.toml.
	$(RUN)/pip install -q uv
	$(RUN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.txt
	$(RUN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml --group dev -c requirements.txt -o requirements-dev.txt

.PHONY: clean
clean:  ## Remove what these commands made here; the cached programs stay.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Shipfitter needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Making $(VENV) ..." >&2
	@$(PYTHON) -m venv $(VENV)

# What runs in the image, and nothing else: enough for the demo.
$(VENV)/.runtime: $(VENV)/bin/python requirements.txt
	@echo "Installing what Shipfitter runs on (about 20 s the first time) ..." >&2
	@$(RUN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.txt
	@site=$$($(RUN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  echo "$(CURDIR)/operator" > "$$site/shipfitter-source.pth"
	@$(RUN)/python -m compileall -q operator tests/world  # also where Python may write no bytecode
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt pyproject.toml
	@echo "Installing the tools of the tests (about 40 s the first time) ..." >&2
	@$(RUN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(RUN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@rm -f $$($(RUN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shipfitter-source.pth
	@touch $@
