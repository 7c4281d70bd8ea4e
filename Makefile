# Everything a developer runs. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

BIN := .venv/bin
ARGS ?=

# Most of the long tests wait for other processes, so there are more test processes than cores.
CORES := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
WORKERS ?= $(shell echo $$(( $(CORES) < 2 ? 3 : $(CORES) > 3 ? 8 : $(CORES) * 2 )))

# Folders that hold Python today; some arrive later than others.
TREES = $(foreach tree,src tests scripts benchmarks,$(if $(wildcard $(tree)/*.py $(tree)/*/*.py),$(tree)))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: environment-runtime ## start the gateway on its defaults; ARGS="…" adds options
	@exec $(BIN)/koboshi run --supervise $(ARGS)

.PHONY: run-cluster
run-cluster: environment-dev ## PostgreSQL and two gateways behind one page, to see a failover
	@scripts/system_packages.sh
	@exec $(BIN)/python -m scripts.run_cluster $(ARGS)

# Python that is compiled again by every test process costs them a minute.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: test
test: ## lint and run all tests; ARGS="…" goes to pytest, WORKERS=n to xdist
	@$(MAKE) -j2 environment-dev system-packages
	@$(MAKE) -j3 lint environment-side test-all

# Beside lint, which takes one core for a minute, and environments that single tests need and else
# make themselves. Where files have changed they are compiled first, once instead of once in each
# process.
.PHONY: test-all
test-all: build/.collected
	@scripts/in_memory.sh $(BIN)/pytest -n $(WORKERS) --dist=worksteal $(ARGS)

build/.collected: $(shell find src tests -name '*.py')
	@$(BIN)/pytest --collect-only -qq $(ARGS) >/dev/null || true
	@mkdir -p build && touch $@

# Decisions, the store on SQLite, the loops on virtual time and the contracts; no test that starts a
# gateway or a server.
QUICK = $(addprefix tests/,agent commands config conformance control domain kernel runtime sqlite) \
	$(addprefix tests/,test_logs.py test_tidy.py $(TELEGRAM_CODEC:%=channels/test_telegram_%.py))
TELEGRAM_CODEC = codec hostile outcomes said

.PHONY: quick
quick: environment-dev ## the daily loop, less than a minute: domain, store, runtime and contracts
	@scripts/in_memory.sh $(BIN)/pytest -n $(CORES) --dist=worksteal -m "not slow and not crash" -k "not postgres" $(QUICK) $(ARGS)

.PHONY: test-systemd
test-systemd: environment-dev ## all tests under a real systemd, as root; `make test` has the quick ones
	@scripts/system_packages.sh
	@KOBOSHI_TEST_SYSTEMD=1 $(BIN)/pytest -n $(WORKERS) -m systemd $(ARGS)

.PHONY: torture
torture: environment-dev ## every campaign once, added to the tally of the commit; PORTION=kills ROUNDS=20 for more of one; takes long
	@scripts/system_packages.sh
	@scripts/in_memory.sh $(BIN)/python -m scripts.torture $(if $(PORTION),--portion $(PORTION)) --rounds $(or $(ROUNDS),1) -n $(WORKERS) --dist=worksteal $(ARGS)

.PHONY: soak
soak: environment-dev ## a virtual day and a real hour of ordinary work: memory and descriptors stay flat; ARGS="--hours 6 --minutes 5"
	@$(BIN)/python -m scripts.soak $(ARGS)

# So many quiet rounds and so many loaded ones; a process test that fails once in thirty is a fault.
LOAD ?= both

.PHONY: flakes
flakes: environment-dev ## repeat the process tests, shuffled, quiet and loaded, and count; ROUNDS=n LOAD=quiet|loaded|both ARGS="…"
	@scripts/system_packages.sh
	@$(BIN)/python -m scripts.flakes --rounds $(or $(ROUNDS),5) --load $(LOAD) --workers $(WORKERS) -- $(ARGS)

.PHONY: lint
lint: environment-dev ## check formatting, style, types and the allowed imports
	@$(BIN)/ruff format --quiet --check $(TREES)
	@$(BIN)/ruff check --quiet $(TREES)
	@$(BIN)/mypy $(TREES)
	@$(BIN)/lint-imports --no-logo

.PHONY: format
format: environment-dev ## format the code and fix what can be fixed
	@$(BIN)/ruff check --quiet --fix-only $(TREES)
	@$(BIN)/ruff format $(TREES)

.PHONY: coverage
coverage: environment-dev ## run the tests in one process and show the lines they miss
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

.PHONY: bench
bench: environment-dev ## run the benchmarks and print the ratios
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: profile
profile: environment-dev ## look where the time goes, by py-spy and perf: tables, and flame graphs in build/profile/
	@scripts/side_environment.sh profile
	@$(BIN)/python -m benchmarks.profile $(ARGS)

.PHONY: bench-peers
bench-peers: environment-dev ## the same turn on the peers and on ours, in one run, from an environment of their own
	@$(BIN)/python -m benchmarks --only peers $(ARGS)

.PHONY: docs-generated
docs-generated: environment-dev ## write the docs that are made from the code's tables
	@$(BIN)/python scripts/state_diagrams.py
	@$(BIN)/python scripts/rules_table.py
	@$(BIN)/python scripts/approvals_page.py
	@$(BIN)/python scripts/dashboard_json.py
	@$(BIN)/python -m scripts.reference_tables

.PHONY: docs
docs: docs-generated ## write the generated pages, then check links, examples and commands of all
	@$(BIN)/python -m scripts.check_docs

.PHONY: pictures
pictures: environment-dev ## make docs/pictures from a real run, with a browser: a kill in the middle of a job
	@$(BIN)/python -m scripts.pictures

.PHONY: lock
lock: ## write requirements/*.txt from pyproject.toml; UPGRADE=1 takes newer versions
	@scripts/lock.sh

.PHONY: audit
audit: environment-dev ## look for known vulnerabilities in what is locked; says so where no database can be reached
	@scripts/side_environment.sh audit
	@$(BIN)/python -m scripts.audit $(ARGS)

.PHONY: sbom
sbom: environment-dev ## write the list of parts, build/koboshi-*.cdx.json (CycloneDX), from the locked requirements
	@$(BIN)/python -m scripts.sbom

# The wheel is built by the locked hatchling, without asking an index for another one.
.PHONY: dist
dist: environment-dev sbom ## build the wheel into dist/, with the list of parts beside it
	@mkdir -p dist
	@$(BIN)/python -m hatchling build --target wheel --clean >/dev/null
	@cp build/koboshi-*.cdx.json dist/
	@ls dist

.PHONY: clean
clean: ## remove the environments and everything the tools left behind
	@rm -rf .venv .venv-audit .venv-bench .venv-discord-clients .venv-ptb .venv-openapi .venv-profile
	@rm -rf .venv-synapse .venv-tools .venv-whisper .bench
	@rm -f .venv.lock .venv-audit.lock .venv-discord-clients.lock .venv-ptb.lock .venv-openapi.lock
	@rm -f .venv-profile.lock .venv-synapse.lock .venv-whisper.lock .venv-packages.lock
	@rm -rf .npm-neighbours .npm-neighbours.lock build dist htmlcov .coverage .coverage.* .hypothesis
	@rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests scripts $(wildcard benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: system-packages
system-packages:
	@scripts/system_packages.sh

.PHONY: environment-runtime environment-dev environment-side
environment-runtime:
	@scripts/environment.sh runtime

environment-dev:
	@scripts/environment.sh dev

# Programs of others that something of ours is checked with. Without npm the last one has none.
environment-side: environment-dev
	@scripts/side_environment.sh synapse
	@scripts/npm_environment.sh 2>/dev/null || true
