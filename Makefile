# make test   everything that must pass: format, lints, tests, documentation tests, the
#             vendors' clients against the server, the Python package
# make clients  the server with the vendors' own clients (OpenAI's in Python and JavaScript, Anthropic's, Ollama's), and under load
# make python  the Python package alone: built into .venv, its tests, types and style
# make python-hosts  the same with hosts that are built from source: llama-cpp-python
# make python-free-threaded FREE_THREADED=python3.14t  the Python package on an interpreter without a global lock
# make bench  coverage and speed on public collections, beside other engines; writes benches/RESULTS.md. Needs the data
#             folder (BENCH_DATA), and fetches the other engines. Steps: bench-coverage, bench-masks, bench-peers,
#             bench-suite, bench-decode, bench-report
# make microbench  criterion benches
# make fixtures  tokenizers and models that the tests use, into the user's cache

CARGO ?= cargo
PYTHON ?= python3
FIXTURES ?= $(or $(MASKWRIGHT_FIXTURES),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/maskwright/fixtures)
export MASKWRIGHT_FIXTURES := $(FIXTURES)

BENCH_DATA ?= $(or $(MASKWRIGHT_DATA),../shared/data)
BENCH_OUT ?= target/bench
BENCH_PYTHON = $(BENCH_OUT)/python/bin/python
BENCH_TOKENIZER = $(FIXTURES)/tokenizers/llama3_1/tokenizer.json
BENCH_MODEL = $(FIXTURES)/models/SmolLM2-135M-Instruct.Q4_1.gguf
# Schemas of the run beside other engines, and CPU seconds that each engine has for one of them.
BENCH_SAMPLE ?= 1000
BENCH_TIMEOUT ?= 2
BENCH_THREADS ?= 1 2
BENCH_JOBS ?= 2
MASKWRIGHT ?= $(or $(CARGO_TARGET_DIR),target)/release/maskwright
BENCH_MASKS = $(MASKWRIGHT) bench masks --data $(BENCH_DATA)/maskbench --tokenizer $(BENCH_TOKENIZER)

VENV ?= .venv
VENV_PYTHON = $(VENV)/bin/python
FREE_THREADED ?= python3.14t
FREE_THREADED_VENV = $(or $(CARGO_TARGET_DIR),target)/free-threaded
WHEELS = $(or $(CARGO_TARGET_DIR),target)/wheels

.PHONY: test lint fixtures clients python python-lint python-build python-test python-hosts python-free-threaded microbench bench bench-build bench-coverage bench-masks bench-peers bench-suite bench-decode bench-report

test: lint fixtures
	MASKWRIGHT_REQUIRE_FIXTURES=1 $(CARGO) test --release --locked --lib --bins --tests --no-fail-fast
	$(CARGO) test --release --locked --doc
	$(MAKE) clients python
	@echo "make test: all passed"

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --release --locked --no-default-features --lib -- -D warnings

# The command that the tests have built is the one that serves.
clients: fixtures $(VENV)/clients
	$(VENV_PYTHON) -m pytest -q tests/clients

$(VENV)/clients: tests/clients/requirements.txt tests/clients/package.json | $(VENV_PYTHON)
	$(VENV_PYTHON) -m pip install --quiet --requirement tests/clients/requirements.txt
	if command -v npm > /dev/null; then npm install --prefix tests/clients --no-audit --no-fund --no-package-lock --silent; fi
	touch $@

python: fixtures python-build python-lint python-test

# As `pip install ./python` builds it, but with the maturin that is there. Profile and folder are those of everything else.
python-build: $(VENV_PYTHON)
	$(VENV)/bin/maturin build --quiet --release --locked --manifest-path python/Cargo.toml \
		--interpreter $(VENV_PYTHON) --out $(WHEELS)
	$(VENV_PYTHON) -m pip install --quiet --force-reinstall --no-deps $(WHEELS)/maskwright-*-abi3-*.whl

python-lint: $(VENV_PYTHON)
	cd python && ../$(VENV)/bin/ruff check . && ../$(VENV)/bin/ruff format --check . && ../$(VENV)/bin/mypy

python-test:
	MASKWRIGHT_REQUIRE_FIXTURES=1 $(VENV_PYTHON) -m pytest -q python/tests
	$(VENV_PYTHON) -m mypy.stubtest maskwright._maskwright

python-hosts: python-build
	$(VENV_PYTHON) -m pip install --quiet --requirement python/requirements-hosts.txt
	$(MAKE) python-test

# Tests of hosts that have no wheels for such an interpreter are skipped.
python-free-threaded: fixtures
	$(FREE_THREADED) -m venv $(FREE_THREADED_VENV)
	$(FREE_THREADED_VENV)/bin/pip install --quiet ./python jsonschema numpy pydantic pytest rfc3339-validator
	cd $(FREE_THREADED_VENV) && PYTHON_GIL=0 bin/python -X faulthandler -m pytest -q --config-file $(CURDIR)/python/pyproject.toml \
		--rootdir . $(CURDIR)/python/tests

fixtures:
	$(PYTHON) tests/fetch_fixtures.py

microbench: fixtures
	$(CARGO) bench --locked

bench: bench-coverage bench-masks bench-peers bench-suite bench-decode bench-report

bench-build: fixtures
	$(CARGO) build --release --locked
	mkdir -p $(BENCH_OUT)

# Every schema; no times, so that threads may run side by side.
bench-coverage: bench-build
	$(BENCH_MASKS) --engine maskwright --engine maskwright-any --engine llguidance --jobs $(BENCH_JOBS) \
		--json $(BENCH_OUT)/coverage.json

# Times on one thread, first and second pass, and masks compared bit by bit.
bench-masks: bench-build
	$(BENCH_MASKS) --engine maskwright --engine maskwright-any --engine llguidance --engine llguidance-shared \
		--sample $(BENCH_SAMPLE) --twice --verify --json $(BENCH_OUT)/masks.json

PEER = --peer $(1)="$(BENCH_PYTHON) benches/peers/worker.py $(1) $(BENCH_TOKENIZER)"
bench-peers: bench-build $(BENCH_PYTHON)
	$(BENCH_MASKS) --engine maskwright --engine maskwright-any --engine llguidance --sample $(BENCH_SAMPLE) \
		$(foreach peer,xgrammar xgrammar-compliant outlines-core lm-format-enforcer llama.cpp,$(call PEER,$(peer))) \
		--no-forced --timeout $(BENCH_TIMEOUT) --jobs $(BENCH_JOBS) --times --json $(BENCH_OUT)/peers.json

bench-suite: bench-build
	$(MASKWRIGHT) bench suite --data $(BENCH_DATA)/json-schema-test-suite --tokenizer $(BENCH_TOKENIZER) \
		--draft 2020-12 --draft 7 --draft 6 --draft 4 --json $(BENCH_OUT)/suite.json

bench-decode: bench-build $(BENCH_PYTHON)
	for threads in $(BENCH_THREADS); do \
		$(MASKWRIGHT) bench decode --model $(BENCH_MODEL) --threads $$threads \
			--json $(BENCH_OUT)/decode-$$threads.json || exit; \
		$(BENCH_PYTHON) benches/peers/decode.py $(BENCH_MODEL) --maskwright $(MASKWRIGHT) --threads $$threads \
			--json $(BENCH_OUT)/peer-decode-$$threads.json || exit; \
	done

bench-report: $(BENCH_PYTHON)
	$(BENCH_PYTHON) benches/report.py $(BENCH_OUT)

$(VENV_PYTHON): python/requirements-test.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV_PYTHON) -m pip install --quiet --no-compile --requirement python/requirements-test.txt
	touch $@

$(BENCH_PYTHON): benches/peers/requirements.txt
	$(PYTHON) -m venv $(BENCH_OUT)/python
	$(BENCH_PYTHON) -m pip install --quiet --requirement benches/peers/requirements.txt
	$(BENCH_PYTHON) -m pip install --quiet --no-deps xgrammar==0.2.9
	touch $@
