# What a person or CI asks of this repository. Needs make and Python 3.11 or later, nothing else.
PYTHON ?= python3
BIN := .venv/bin
# Two more than two cores: tests that wait for real processes leave a fifth of each idle.
WORKERS ?= 4
# Tests that run beside their like wait for nine tenths of their time.
CALM_WORKERS ?= 6
# What is done about tests that failed: nothing here, .ci/again in CI.
AGAIN ?= false

.PHONY: demo help test thorough check interop soak mutants mutants-table promises conformance pages bench approve-sim lock clean

demo: .venv/.installed-all ## run the example, a growth of six hours, in half a minute
	$(BIN)/labharness run examples/mos2-monolayer.json

help: ## list what there is
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

# A file's tests stay in one process, because they share what they grew. Files run in the order of
# their own names, whatever the folder: what computes then stands beside what waits. Each process
# reads every file, so those are left out whose tests all have another block's mark. Python is started
# hundreds of times, and is not to compile our modules each time. `make check` has the tidy tests.
# Only files that hold a mark are read for tests that run beside their like, or alone.
FILES := find tests -name 'test_*.py' -not -name test_tidy.py -not -path '*/interop/*'
MAIN := $(FILES) | xargs grep -L '^pytestmark = .*mark\.\(soak\|thorough\|calm\|serial\)'
BY_NAME := sed 's|.*/\(.*\)|\1 &|' | sort | cut -d' ' -f2
TESTS := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest
test: .venv/.installed-dev build/.tests-compiled ## what is asked of every change, in minutes
	$(TESTS) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak and not thorough and not calm and not serial" \
	  --junitxml build/junit.xml $$($(MAIN) | $(BY_NAME)) || $(AGAIN)
	$(TESTS) -n $(CALM_WORKERS) --dist worksteal -m "calm and not soak" --junitxml build/junit-calm.xml \
	  $$($(FILES) | xargs grep -l "mark.calm") || $(AGAIN)
	$(TESTS) -m "serial and not soak" --junitxml build/junit-serial.xml \
	  $$($(FILES) | xargs grep -l "mark.serial") || $(AGAIN)

# Test files that have changed are compiled first, half of them on each core: four processes would
# each do it for themselves, 10 s long. pytest has a compiler of its own, which only reading calls.
build/.tests-compiled: .venv/.installed-dev $(shell $(FILES))
	for half in a-g h-z; do \
	  echo $(filter tests/%,$?) | tr ' ' '\n' | grep "/test_[$$half]" | xargs -r $(TESTS) -q --collect-only > /dev/null & \
	done; wait
	mkdir -p build && touch $@

thorough: .venv/.installed-dev ## the dearer tests, which a change must pass before it lands
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n $(WORKERS) --dist loadfile -m "thorough and not soak" \
	  --junitxml build/junit-thorough.xml $$($(FILES) | xargs grep -l "mark.thorough") || $(AGAIN)

check: .venv/.installed-dev ## format, lint, types, imports, tidy rules
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/house/test_tidy.py

interop: build/interop/.installed build/interop-newer/.installed ## clients that others wrote, on the served simulators
	build/interop/bin/python -m pytest -q tests/interop

build/interop/.installed: pyproject.toml
	$(PYTHON) -m venv build/interop
	build/interop/bin/python -m pip install --quiet --disable-pip-version-check -e '.[interop]'
	touch $@

# For a client that takes Python 3.13 or later, where there is one; its test is skipped elsewhere. The
# environment is made beside its place and moved there whole (its scripts are not used), so that what
# was not installed to its end is not taken for it.
NEWER ?= python3.14 python3.13 $(PYTHON)
build/interop-newer/.installed: Makefile
	rm -rf build/interop-newer build/interop-newer.part
	for each in $(NEWER); do \
	  $$each -c 'import sys; sys.exit(sys.version_info < (3, 13))' 2> /dev/null || continue; \
	  $$each -m venv build/interop-newer.part \
	  && build/interop-newer.part/bin/python -m pip install --quiet --disable-pip-version-check 'alicatlib>=0.3' \
	  && mv build/interop-newer.part build/interop-newer && touch $@; exit; \
	done; echo 'no Python 3.13 or later: alicatlib is left out'

soak: .venv/.installed-dev ## the long proofs
	$(BIN)/pytest -m soak -s

# One room, or more of the mutants: make mutants ROOM=kernel SHARE=1. SEED says which of them.
SHARE ?= 0.05
SEED ?= 1
mutants: .venv/.installed-dev ## planted bugs, and a share of the mutants; ROOM=kernel SHARE=1
	$(BIN)/python tests/mutants.py --room "$(ROOM)" --share $(SHARE) --seed $(SEED)

mutants-table: .venv/.installed-dev ## what mutants left of each file, in build/pages
	$(BIN)/python tests/mutants.py --table

promises: .venv/.installed-dev ## the tests and planted bugs of each promise, in build/pages
	$(BIN)/python tests/promised.py

conformance: .venv/.installed-dev ## the counts of the document of conformance
	$(BIN)/python tests/conformance.py

pages: promises ## the numbers and tables that the documents show, from what makes them; lists in build/pages
	$(BIN)/python tests/pages.py
	WRITE_PAGES=1 $(BIN)/pytest -q -m "" tests/house/test_docs.py -k every_command
	WRITE_PAGES=1 $(BIN)/pytest -q tests/work/task/test_task_states.py -k page_of_states

bench: .venv/.installed-benchmark ## speed, against peers
	$(BIN)/python benchmarks/run.py

approve-sim: .venv/.installed-all ## sign the approvals of the simulated labs again
	.venv/bin/python -m labharness.lab.wiring.approve_sim
	.venv/bin/python -m labharness.lab.wiring.approve_sim tests/short_line.toml
	.venv/bin/python -m labharness.lab.wiring.approve_sim envelopes/labharness_envelopes/labs/annealing_furnace/lab.toml

# The newest of everything that pyproject.toml allows, each file by its hash.
LOCK := CUSTOM_COMPILE_COMMAND='make lock' build/lock/bin/pip-compile --quiet --no-config --upgrade \
	--all-build-deps --allow-unsafe --generate-hashes --strip-extras \
	--no-emit-find-links --no-emit-index-url --no-emit-options --no-emit-trusted-host

lock: ## pin the newest libraries
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(LOCK) --extra dev --output-file requirements/dev.txt pyproject.toml
	$(LOCK) --extra all --constraint requirements/dev.txt --output-file requirements/all.txt pyproject.toml

clean: ## remove what was installed and cached
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	  .labharness-failures

# One stamp for each set of extras: a repeated call only compares two dates. Where there is a pinned
# set it is taken, so that a checkout works next year as it works today. A Python that the set was
# not made for takes what pyproject.toml allows, and so does `make PINNED=no ...`.
PINNED ?= yes
MADE_FOR := (3, 11), (3, 12), (3, 13), (3, 14)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.venv/.installed-%: pyproject.toml $(wildcard requirements/*.txt)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	if test $(PINNED) = yes && test -f requirements/$*.txt \
	  && $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] not in ($(MADE_FOR)))'; \
	then $(PIP) --require-hashes -r requirements/$*.txt && $(PIP) --no-deps --no-build-isolation -e .; \
	else $(PIP) -e '.[$*]'; fi
	touch $@
