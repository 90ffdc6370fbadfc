# Two commands matter: `make demo` and `make test`. Everything sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
