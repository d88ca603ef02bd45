# Two commands: `make run` sets up and runs the benchmark on embedded data, `make test` sets up and runs the tests.
PYTHON ?= python3
EXTRAS ?= light
VENV   := .venv
BIN    := $(VENV)/bin

ifeq ($(EXTRAS),light)
DEV := dev
else
DEV := dev,$(EXTRAS)
endif
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(DEV))

.PHONY: run test lint clean
run: $(VENV)/.installed
	$(BIN)/readbench run --suite quick
	$(BIN)/readbench report runs/quick

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(DEV)]'
	touch $@ $(VENV)/.installed
