# What a person or CI asks of this repository. Needs make and Python 3.11 or later, nothing else.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: demo test check soak mutants mutants-kernel bench approve-sim clean

demo: .venv/.installed-all
	$(BIN)/labharness run examples/mos2-monolayer.json

# Exit code 5 says that no test carries the mark, which is no failure.
test: .venv/.installed-dev
	$(BIN)/pytest -n $(WORKERS) -m "not soak and not serial"
	$(BIN)/pytest -m serial || test $$? -eq 5

check: .venv/.installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_tidy.py

soak: .venv/.installed-dev
	$(BIN)/pytest -m soak -s

mutants: .venv/.installed-dev
	$(BIN)/python tests/mutants.py

mutants-kernel: .venv/.installed-dev
	$(BIN)/python tests/mutants_kernel.py

bench: .venv/.installed-benchmark
	$(BIN)/python benchmarks/run.py

approve-sim: .venv/.installed-all
	.venv/bin/python -m labharness.lab.approve_sim
	.venv/bin/python -m labharness.lab.approve_sim tests/short_line.toml

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# One stamp for each set of extras: a repeated call only compares two dates.
.venv/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@
