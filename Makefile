# Two commands matter: `make demo` and `make test`. Everything sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: bin
bin:  ## Build (once) or find the programs of the test control plane; prints their folder.
	@cd tests && $(PYTHON) -m world.controlplane bin
