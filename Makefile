# `make run` sets up and runs the benchmark on embedded data, `make test` sets up and runs the tests; `make report` writes
# the site of a run (RUN=runs/NAME), by default of the embedded data; `make demo` opens a case library to the browser
# (PORT=8000).
# `make test-all` also runs notebooks, installs wheels in clean environments and tests the lowest versions.
# `make check` is for while one works: lint, types and the fast tests; `make test-random` draws other examples each time.
PYTHON ?= python3
EXTRAS ?= light
RUN    ?= runs/quick
VENV   := .venv
BIN    := $(VENV)/bin

ifeq ($(EXTRAS),light)
DEV := dev
else
DEV := dev,$(EXTRAS)
BROWSER := browser database servers
endif
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(DEV))

.PHONY: run report demo demo-live docs test test-changes test-all test-everything test-lowest test-torch test-exports check test-random wheels audit submissions browser database servers lint web clean
run: $(VENV)/.installed
	$(BIN)/readbench run --suite quick
	$(BIN)/readbench report runs/quick

report: $(VENV)/.installed
	test -e $(RUN)/run.json || $(BIN)/readbench run --suite quick --out $(RUN)
	$(BIN)/readbench report $(RUN)

PORT ?= 8000
demo: $(VENV)/.installed-service
	$(BIN)/readbench cases serve --demo --port $(PORT)

# The documentation as a site, in build/docs/index.html; a warning is an error.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict # not --quiet, under which warnings are no errors
	@echo "build/docs/index.html"

# Prometheus scrapes a simulated plant, a fault begins, and the notice arrives; ends with Ctrl-C.
demo-live: $(VENV)/.installed-service servers
	$(BIN)/python -m research.live_demo --port $(PORT)

# Lint, above all the types, runs beside the tests: each alone leaves a core idle at times. What imports of our sources
# compile is kept, since hundreds of processes import them.
test test-all: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP) $(BROWSER)
	$(MAKE) -j 2 lint test-changes

test-all: $(STAMP) $(BROWSER)
	$(MAKE) -j 2 lint test-everything
	$(MAKE) test-lowest

test-changes:
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long" --junit-xml build/tests.xml

test-everything:
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The lowest versions that pyproject.toml allows, which uv computes, in an environment of their own.
LOWEST := .venv-lowest
test-lowest:
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
	  --editable '.[service,postgres,llm,sources,dev]'
	$(LOWEST)/bin/python -m tools.lowest
	$(LOWEST)/bin/python -m pytest -n 2 --dist worksteal -m "not slow and not long"

# Wheel and sdist in dist/, and the tests that install them where nothing else is.
wheels: $(STAMP)
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m pytest tests/test_release.py

# Licences of all dependencies, and which of them have known vulnerabilities; the latter are looked up on the network.
audit: $(STAMP)
	$(BIN)/python -m tools.licences
	test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet pip-audit; }
	.venv-audit/bin/pip-audit --format json --path $$($(BIN)/python $(PURELIB)) | $(BIN)/python -m tools.audit

submissions: $(VENV)/.installed
	$(BIN)/readbench leaderboard submissions --check

check: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# The property tests alone, with examples of their own each time: for every night. `make test-random SEED=...` repeats
# a run; a failure also prints the line that repeats it alone.
SEED ?= $(shell date +%s)
test-random: $(STAMP)
	@echo "make test-random SEED=$(SEED)"
	READBENCH_EXAMPLES=random $(BIN)/python -m pytest -n 2 --dist worksteal -m hypothesis --hypothesis-seed=$(SEED)

# The tests of networks with another torch, over the other packages of $(VENV): `make test-torch EXTRAS=models` takes the
# oldest that pyproject.toml allows, TORCH=2.15.0 another. Its plain wheels bring CUDA along: 5 GB.
TORCH ?= 2.6.0
OTHER := .venv-torch-$(TORCH)
PURELIB := -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
NETWORKS := mantis chronos tirex timesfm ts2vec programs weights sonde
test-torch: $(STAMP)
	test -x $(OTHER)/bin/python || $(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/pip install --quiet torch==$(TORCH)
	$(BIN)/python $(PURELIB) > $$($(OTHER)/bin/python $(PURELIB))/beneath.pth
	PYTHONPATH=src:. $(OTHER)/bin/python -m pytest $(NETWORKS:%=tests/engine/encoders/test_%.py)

# MOMENT and TSPulse, exported in environments of their own and run in ours (docs/encoders.md).
test-exports: $(STAMP)
	test -x .venv-moment/bin/python || $(PYTHON) -m venv .venv-moment
	test -x .venv-tspulse/bin/python || $(PYTHON) -m venv .venv-tspulse
	.venv-moment/bin/pip install --quiet torch==2.13.0 momentfm
	.venv-tspulse/bin/pip install --quiet torch==2.13.0 transformers datasets deprecated scikit-learn pandas accelerate
	.venv-tspulse/bin/pip install --quiet --no-deps granite-tsfm  # it asks for an older torch, and runs with this one
	READBENCH_MOMENT_PYTHON=.venv-moment/bin/python READBENCH_TSPULSE_PYTHON=.venv-tspulse/bin/python \
	  $(BIN)/python -m pytest tests/research/test_exports.py

# For the tests of pages, on a machine that lets us install one; elsewhere they skip and say so.
browser:
	command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq -y install chromium; } \
	  >/dev/null 2>&1 || true

# For the tests of a library in PostgreSQL, likewise; they start servers of their own.
database:
	ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || command -v pg_ctl >/dev/null || { test "$$(id -u)" = 0 \
	  && apt-get -qq update && apt-get -qq -y install postgresql; } >/dev/null 2>&1 || true

# For the tests of sources of signals, likewise.
servers:
	command -v prometheus >/dev/null && command -v influxd >/dev/null || { test "$$(id -u)" = 0 && apt-get -qq update \
	  && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install prometheus victoria-metrics influxdb \
	  mosquitto prometheus-alertmanager; } >/dev/null 2>&1 || true

# Ends with what the project holds and what that adds to a revision: `make lint AGAINST=main`.
AGAINST ?= $(shell git rev-parse --quiet --verify HEAD)
lint: $(STAMP) web
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@$(BIN)/python -m tools.count --short --against "$(AGAINST)"

# The scripts of the pages. Python alone is enough to work here: without Node this says so and goes on.
ifneq ($(shell command -v npm >/dev/null && node -p 'Number(process.versions.node.split(".")[0]) >= 20' 2>/dev/null),true)
web:
	@echo "No Node.js 20 or later with npm here: the scripts of the pages are neither linted nor tested."
else
web:
	npm test --silent
	test node_modules/.package-lock.json -nt package-lock.json || npm ci --silent || true
	@if test -x node_modules/.bin/eslint; then npm run lint --silent; \
	  else echo "ESLint cannot be fetched here: the scripts of the pages are tested, not linted."; fi
endif

clean:
	rm -rf $(VENV) node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-service: pyproject.toml
	@echo "installing readbench[service] into $(VENV); this takes a minute or two"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[service]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@ $(VENV)/.installed

$(STAMP): pyproject.toml constraints-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt --editable '.[$(DEV)]'
	touch $@ $(VENV)/.installed
