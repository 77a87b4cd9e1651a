# Each target sets up what it needs, in .venv, from pyproject.toml.
PYTHON ?= python3
VENV = .venv
RUN = $(VENV)/bin/python

.PHONY: demo test test-slow bench doc lint format stubs clean

demo: $(VENV)/.demo  ## the main job on real data, in under three minutes
	$(RUN) examples/demo.py

TEST = OMP_NUM_THREADS=1 $(RUN) -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

test: $(VENV)/.test  ## all tests but the slow ones; a process for each core
	$(TEST) -m "not slow"

test-slow: $(VENV)/.test  ## the others: long chains, many seeds, compilation
	$(TEST) -m slow

bench: $(VENV)/.bench  ## every benchmark, one after the other; QUICK=1 for a taste
	for script in benchmarks/bench_*.py; do $(RUN) $$script $(if $(QUICK),--quick) || exit 1; done

doc: $(VENV)/.doc  ## the documentation, in doc/_build/html
	$(RUN) -m sphinx -W --keep-going -b html doc doc/_build/html

lint: $(VENV)/.dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

format: $(VENV)/.dev
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

$(VENV)/.%: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --no-compile --editable ".[$*]"
	touch $@

stubs: $(VENV)/.test  ## the types of the public names, from docstrings
	$(RUN) .ci/make_stubs.py

clean:
	rm -rf $(VENV) doc/_build doc/auto_examples doc/generated doc/benchmarks doc/whats_new.rst
