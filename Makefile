# Set-up and every routine command. `make demo` and `make test` need only Python 3.11 or newer and make.
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint format bench clean
.DEFAULT_GOAL := demo

# The stamp is rebuilt only when what is installed would change.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	touch $@

demo: $(VENV)/.installed  ## upsample the embedded scene, leave a picture and a report
	$(BIN)/dada demo

test: $(VENV)/.installed  ## run the test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

lint: $(VENV)/.installed  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed  ## time the solver against the loop it replaces
	$(BIN)/python benchmarks/solver.py

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .ruff_cache
	find src -name '*.nb[ic]' -delete
