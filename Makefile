# Every target sets up what it needs in .venv; the second call is quick.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup validate lint test test-slow clean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $@

setup: $(STAMP)

validate: setup
	$(BIN)/gpu-validation run quick --out results

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile

test-slow: setup
	$(BIN)/python -m pytest -m slow -n auto

clean:
	rm -rf $(VENV) build dist results .mypy_cache .pytest_cache .ruff_cache .hypothesis
