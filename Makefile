# `make demo` and `make test` are all that is needed: each builds .venv first where it is missing or stale.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?= -n 2 --dist worksteal

# tests start hundreds of processes: all of them use the bytecode of the first
unexport PYTHONDONTWRITEBYTECODE

.PHONY: venv demo test test-all test-spark lint format hooks bench accuracy curves experiments experiments-check audit docs lock release-check clean
.DEFAULT_GOAL := test

venv: $(STAMP)

# hatchling comes first, pinned like the rest, so that building the package fetches nothing else
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt hatchling
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	touch $@

demo: $(STAMP)
	$(BIN)/discreet demo

# what one runs while working: a test of every promise; kernels are compiled before the workers start
test: $(STAMP)
	$(BIN)/python -m tests.compile
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not thorough"

# everything: all combinations, planted bugs, kills and statistics
test-all: test
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m thorough

# the tests on a real local Spark, a job of its own: pyspark brings 450 MB, and needs Java
test-spark: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[spark]"
	$(BIN)/python -m pytest -q -m "" -k spark tests/curator

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# what `make format` does, for the files of each commit
hooks: $(STAMP)
	$(BIN)/pre-commit install

bench: $(STAMP)
	$(BIN)/python -m benchmarks speed

# the comparison of models as they come, on public tables in DATA: every solver at one budget, the default at all; goes on
# where it stopped. PEERS are files that benchmarks/methods/peers.py wrote
CURVES = -e 0.5 -e 1 -e 4 --seeds 4 --large-seeds 1 --out build/curves
curves: $(STAMP)  # needs interpret-core
	$(BIN)/python -m benchmarks accuracy --data $(or $(DATA),data) --export build/tables --seeds 4
	$(BIN)/python benchmarks/methods/peers.py dp_ebm --tables build/tables --out build/dp_ebm.json --seeds 2 \
	  --epsilon 0.5 --epsilon 1 --epsilon 4
	$(BIN)/python -m benchmarks accuracy --data $(or $(DATA),data) --solver lines --solver curves $(CURVES) \
	  --peers build/dp_ebm.json --curves docs/measured/curves.md --compared-curves docs/compared.md

accuracy: $(STAMP) curves
	$(BIN)/python -m benchmarks accuracy --data $(or $(DATA),data) --epsilon 1 --relation zero_out
	$(BIN)/python -m benchmarks accuracy --data $(or $(DATA),data) --solver auto --widen 3 $(addprefix --peers ,$(PEERS)) \
	  --page docs/measured/accuracy.md --compared docs/compared.md

# the sources' experiments: results are files in build/, figures and tables are made from them; goes on where it stopped
experiments: $(STAMP)
	DISCREET_DATA=$(DATA) $(BIN)/python -m benchmarks experiments --figures docs/figures --page docs/measured/experiments.md

# every claim of their figures on fresh seeds
experiments-check: $(STAMP)
	DISCREET_DATA=$(DATA) $(BIN)/python -m benchmarks experiments --check

# every solver under every relation, into the documentation; small audits are part of `make test-all`
audit: $(STAMP)
	$(BIN)/discreet audit replay
	$(BIN)/discreet audit gradient --epsilon 1 --runs 1000000
	$(BIN)/python -m tests.promises.surface
	mkdir -p build
	$(BIN)/discreet audit table --runs $(or $(RUNS),2000) --json > build/audits.json
	$(BIN)/python -m benchmarks audits build/audits.json --page docs/measured/audits.md

# the documentation into site/, with warnings as errors; pages open from disk, without a network
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# newest versions that the bounds in pyproject.toml allow; run `make lint test-all` afterwards, then commit
lock:
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet hatchling
	build/lock/bin/python -m pip install --quiet --no-build-isolation --editable ".[dev]"
	{ echo "# The versions that were tested together. Refresh with: make lock"; \
	  build/lock/bin/python -m pip freeze --exclude-editable; } > build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/lock

# wheel and sdist in bare environments; PYTHONS="python3.11 python3.12", LOWEST=1 for the lowest declared versions
release-check: $(STAMP)
	.ci/release-check

clean:
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
