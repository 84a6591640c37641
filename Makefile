# make demo    build, then analyse a sample capture
# make test    cargo test and pytest
# make lint    ruff, mypy, rustfmt, clippy
# make bench   time the engine beside other programs, an analysis, a corpus and the models (minutes)
# make validate simulate flows from the models' assumptions: intervals, verdicts, the papers' claims (minutes)
# make ratchet check that what was right is right, and record what has become so
# make fuzz    fuzz every target for MINUTES minutes, and mutate captures through the command
# make lines   which lines the tests run, of the engine and of the Python (needs LLVM's tools; minutes)
# make mutants whether the tests notice changed rules and models: SAMPLE of each, drawn by SEED (an hour)
# make docs    the pages that are made from the code, and the site
# make site    the documentation as a static site, build/site, with reports of sample captures
# make wheel   build the wheel into dist/
# make clean   remove what was built

PYTHON ?= python3
CAPTURE ?= sample-traces/newreno-loss.pcap.gz

VENV := .venv
BIN := $(VENV)/bin
CRATE := tcpfit/engine/Cargo.toml
RUST := $(CRATE) tcpfit/engine/Cargo.lock $(shell find tcpfit/engine/src -name '*.rs' 2>/dev/null)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

MINUTES ?= 10

.PHONY: demo test lint bench fuzz lines mutants ratchet wheel docs site tools tshark chromium clean accuracy coverage validate

demo: $(VENV)/built
	$(BIN)/tcpfit analyze $(CAPTURE)

# The virtual environment, with the package installed in place. Built again when the engine or the packaging changes.
$(VENV)/built: setup.cfg pyproject.toml $(RUST)
	@command -v cargo >/dev/null || { echo 'tcpfit builds its engine with Rust: install Rust 1.88 or newer (cargo was not found), or install a wheel, which needs none.' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'tcpfit needs Python 3.11 or newer: say which with make PYTHON=python3.12' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'building tcpfit into $(VENV) (a minute or two the first time)'
	@$(PIP) --editable .
	@touch $@

$(VENV)/tools: $(VENV)/built
	@$(PIP) --editable '.[test,lint,docs]'
	@touch $@

tools: $(VENV)/tools

test: $(VENV)/tools tshark chromium
	cargo test --quiet --locked --no-default-features --manifest-path $(CRATE)
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile

# Some tests need a program that pip does not bring; without it they are skipped and say so.
tshark:
	@command -v tshark >/dev/null || $(call debian,tshark,the tests of the tshark reader)

chromium:
	@command -v chromedriver >/dev/null || $(call debian,chromium chromium-driver fonts-dejavu-core,the tests of reports in a browser)

define debian
{ \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo 'installing $(1) for $(2)'; \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null; \
  else false; fi; } || echo '$(1) could not be installed: $(2) will be skipped' >&2
endef

lint: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --check --manifest-path $(CRATE)
	cargo clippy --quiet --locked --all-targets --manifest-path $(CRATE) -- -D warnings

bench: $(VENV)/tools
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/analyze.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/corpus.py

# New inputs stay out of the repository; what is found is kept as tcpfit/engine/fuzz/crash-*.
fuzz: $(VENV)/tools
	tcpfit/engine/fuzz/run.sh $(MINUTES)
	$(BIN)/python tests/mutations.py 1000

lines: $(VENV)/tools
	$(BIN)/python benchmarks/lines.py

SAMPLE ?= 100
SEED ?= 1

mutants: $(VENV)/tools
	$(BIN)/python benchmarks/mutants.py models --sample $(SAMPLE) --seed $(SEED)
	$(BIN)/python benchmarks/mutants.py engine --sample $(SAMPLE) --seed $(SEED)

# Adds to tests/ratchet.json what has become right; names what no longer is.
ratchet: $(VENV)/built
	$(BIN)/python tests/ratchet.py --tighten

# Pages that are made from the code.
docs: $(VENV)/tools
	$(BIN)/python docs/make_tables.py
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_compare.py
	$(BIN)/python docs/make_findings.py
	$(BIN)/python docs/make_causes.py
	$(BIN)/python docs/models/make_values.py
	$(BIN)/python docs/models/make_figures.py
	$(BIN)/python docs/models/make_pages.py
	$(BIN)/python docs/make_screenshot.py
	$(MAKE) site

site: $(VENV)/tools
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo 'build/site/index.html; to search in it: python3 -m http.server --directory build/site'

# docs/accuracy.md, from captures with recorded truth: make accuracy GRADER=grade.py TRACES='dir dir'
accuracy: $(VENV)/built
	$(BIN)/python docs/make_accuracy.py $(if $(GRADER),--grader $(GRADER)) $(if $(TRACES),--traces $(TRACES))

# docs/coverage.md: make coverage REPLICAS='dir dir' TRACES='dir dir', folders of runs with recorded truth
coverage: $(VENV)/built
	$(BIN)/python benchmarks/intervals.py --markdown docs/coverage.md $(if $(REPLICAS),--replicas $(REPLICAS)) $(if $(TRACES),--traces $(TRACES))

# docs/validation.md and its figures: make validate TRACES='dir dir' measures recorded flows again too
validate: $(VENV)/tools
	$(BIN)/python benchmarks/validate.py $(if $(TRACES),--traces $(TRACES))

wheel: $(VENV)/built
	rm -rf dist build
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist tcpfit.egg-info tcpfit/engine/target tcpfit/engine/_engine*.so
