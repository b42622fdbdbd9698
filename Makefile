# Every target sets up what it needs in .venv, loops compiled; the second call is quick.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
RUNS   := $(VENV)/.installed-for-runs

# Studies whose seconds count run alone; the others, on one core each, two at a time.
TIMED    := adacomm speed-up tau-star joint straggler wire all-reduce overlap
UNTIMED  := compressors error-feedback byzantine layerwise gtopk

.PHONY: setup validate gpu wheel studies lint test test-rest test-all test-nightly test-oldest docs docs-test clean
.DEFAULT_GOAL := test

# Compiled once, not in each of the some hundred processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[test,docs]"
	$(BIN)/python -m operators.precompile
	touch $(RUNS) $@

# What real runs need, without tests, documentation and browser; loops of the operators in `quick` only.
QUICK_OPERATORS = from gpu_validation.studies.quick import PRESET as P; print(*{o.name for c in P.cells for o in c.operators or P.operators})
$(RUNS): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[validate]"
	$(BIN)/python -m operators.precompile $$($(BIN)/python -c "$(QUICK_OPERATORS)")
	touch $@

setup: $(STAMP)

validate: $(RUNS)
	$(BIN)/ratedist run quick --out results

# On a machine with one GPU, without a network: kernels, hook and training there against the CPU, at most 8 minutes.
# Runs in .venv if it is there, else in PYTHON with what is installed.  Without a GPU the record says "not run".
gpu:
	mkdir -p results
	PYTHONPATH=. $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) docs/measure.py benchmarks/gpu.py > results/gpu.json

# For those who install: on x86-64 with the loops' code, for every processor of its levels 3 and 4.
wheel: $(RUNS)
	rm -f operators/compilation/code/*.x86-64-v*.bin
	if test "$$(uname -m)" = x86_64; then $(BIN)/python -m operators.precompile --portable; fi
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

studies: setup
	for name in $(TIMED); do $(BIN)/ratedist run $$name --seed 0 || exit $$?; done
	printf '%s\n' $(UNTIMED) | OMP_NUM_THREADS=1 xargs -P 2 -I{} $(BIN)/ratedist run {} --seed 0

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# mypy takes a minute of one core the first time: it runs beside the tests.
PROFILE ?= quick
test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy > $(VENV)/mypy.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n auto --dist loadfile --tier quick --hypothesis-profile=$(PROFILE); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/mypy.log; test $$tests = 0 && test $$types = 0

# What "test" leaves of the full tier, "docs-test" included.
test-rest: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --tier rest --hypothesis-profile=ci --durations=20

test-all: lint
	$(BIN)/python -m pytest -n auto --dist loadfile --tier full --hypothesis-profile=ci --durations=20

# Cases that the commit did not draw, long sweeps, kills, journeys, wheels, Flower, Dask: before a release, every night.
test-nightly: setup
	$(BIN)/python -m pytest --tier nightly -n auto --dist loadfile --hypothesis-profile=nightly --durations=20

# The oldest Python, numpy, torch and others that pyproject.toml allows, in an environment of their own.  This matplotlib
# calls what a later pyparsing deprecates, and a warning is an error in the tests.  One guide shows figures drawn by numpy 2.
OLDEST        := .venv-oldest
OLDEST_PYTHON ?= python3.11
OLDEST_TESTS  ?= tests/bounds tests/operators
test-oldest:
	test -x $(OLDEST)/bin/python || $(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --disable-pip-version-check -c tests/oldest.txt -e ".[laws,validate,pep]" pytest-timeout constriction "pyparsing<3.2"
	$(OLDEST)/bin/python tests/oldest.py
	$(OLDEST)/bin/python -m pytest -p no:cacheprovider -m "not slow and not thorough" $(OLDEST_TESTS) \
		--deselect tests/operators/laws/test_guide.py::test_first_block_passes_the_honest_function_and_accuses_the_wrong_one_as_shown
	$(OLDEST)/bin/ratedist run smoke --out $(OLDEST)/results

docs: setup
	$(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build/html

# Of the full tier, the built site in a browser and the pages that take long.
docs-test: setup
	$(BIN)/python -m pytest tests/docs -m slow -n auto --dist loadfile

clean:
	rm -rf $(VENV) operators/compilation/code build dist docs/_build results .mypy_cache .pytest_cache .ruff_cache .hypothesis
