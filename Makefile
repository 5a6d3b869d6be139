# Two commands do everything: `make demo` and `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
export TOPICSTEER_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: demo test check bench paper clean

demo: .venv/demo.stamp  ## fit the built-in corpus and show its topics
	$(BIN)/topicsteer demo

test: check  ## everything that must hold
	$(BIN)/pytest -q -n 2 --dist loadfile

check: .venv/dev.stamp  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp  ## speed and memory, as ratios against other tools in the same run
	$(BIN)/python benchmarks/run.py

paper: .venv/dev.stamp  ## the paper's experiments and their page; QUICK=1 for a few minutes' worth
	$(BIN)/python -m experiments.paper $(if $(QUICK),--quick)

clean:
	rm -rf .venv build dist

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/demo.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[all,dev]"
	touch $@ .venv/demo.stamp
