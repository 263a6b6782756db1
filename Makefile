# Set-up and every routine command. `make demo` and `make test` need only Python 3.11 or newer and make.
# `make PYTHON=/path/to/python3.13` names the Python that .venv is made with; without it, the first of these that runs
# and is new enough. The versions in constraints.txt are tried with 3.11.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
NAMES      := python3.11 python3 python3.12 python3.13 python3.14 python
PYTHON     ?= $(shell for name in $(NAMES); do $$name -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$name && break; done)
VENV       ?= .venv
BIN        := $(VENV)/bin

.PHONY: demo test docs lint format bench fuzz release-check python clean
.DEFAULT_GOAL := demo

define check_python
chosen="$(PYTHON)"; \
if [ -z "$$chosen" ]; then \
  echo "No Python 3.11 or newer was found (tried $(NAMES)). Install one, or name it: make PYTHON=/path/to/python3.11"; \
  exit 1; \
elif ! $$chosen -c '$(NEW_ENOUGH)' 2>/dev/null; then \
  echo "$$chosen is no Python 3.11 or newer ($$($$chosen --version 2>/dev/null || echo it does not run))." \
    "Name another: make PYTHON=/path/to/python3.11"; \
  exit 1; \
fi
endef

python:  ## say which Python .venv would be made with
	@$(check_python); echo "$$chosen"

# The stamp is rebuilt only when what is installed would change.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(check_python)
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

# NO_MKDOCS_2_WARNING: Material prints an announcement about another version of MkDocs, which is no warning of this site.
docs: $(VENV)/.installed  ## build the site into site/: strict, offline, with executed notebooks and checked links
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	$(BIN)/python -m docsite.links site

lint: $(VENV)/.installed  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed  ## time the solver against the loop it replaces
	$(BIN)/python benchmarks/solver.py

release-check: $(VENV)/.installed  ## build wheel and sdist, try each in a fresh environment, check contents and size
	$(BIN)/python .ci/release_check.py

MINUTES ?= 10
fuzz: $(VENV)/.installed  ## hostile input for so many minutes, on all cores; what is found is kept in fuzz-findings/
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(FUZZ_ARGS)

clean:
	rm -rf $(VENV) build dist site demo .pytest_cache .ruff_cache fuzz-findings
	find src -name '*.nb[ic]' -delete
