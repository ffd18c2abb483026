# `make demo` and `make test` are all a newcomer needs: both build .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

.PHONY: demo test proofs soak lint bench bench-full docs clean

demo: $(VENV)/base.stamp
	$(BIN)/tallytree demo --out demo-release --overwrite

test: $(VENV)/test.stamp
	$(PYTEST) -m "not proof and not soak"

proofs: $(VENV)/test.stamp
	$(PYTEST) -m "proof and not soak"

soak: $(VENV)/test.stamp
	$(PYTEST) -m soak

lint: $(VENV)/lint.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks --full

docs: $(VENV)/docs.stamp
	$(BIN)/python -m docs.cli_reference
	$(BIN)/python -m docs.kinds_table
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	@echo "Open site/index.html"

$(VENV)/base.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/test.stamp: $(VENV)/base.stamp
	$(PIP) --editable '.[test,solvers,postgres,spark]'
	touch $@

$(VENV)/lint.stamp: $(VENV)/base.stamp
	$(PIP) --editable '.[lint]'
	touch $@

$(VENV)/bench.stamp: $(VENV)/base.stamp
	$(PIP) --editable '.[bench,solvers]'
	touch $@

$(VENV)/docs.stamp: $(VENV)/base.stamp
	$(PIP) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) demo-release site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
