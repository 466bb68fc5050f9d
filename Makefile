# make test   everything that must pass: format, lints, tests, documentation tests
# make bench  criterion benches
# make fixtures  tokenizers and models that the tests use, into the user's cache

CARGO ?= cargo
PYTHON ?= python3
FIXTURES ?= $(or $(MASKWRIGHT_FIXTURES),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/maskwright/fixtures)
export MASKWRIGHT_FIXTURES := $(FIXTURES)

.PHONY: test lint fixtures bench

test: lint fixtures
	MASKWRIGHT_REQUIRE_FIXTURES=1 $(CARGO) test --release --locked --lib --bins --tests --no-fail-fast
	$(CARGO) test --release --locked --doc
	@echo "make test: all passed"

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	$(CARGO) clippy --release --locked --no-default-features --lib -- -D warnings

fixtures:
	$(PYTHON) tests/fetch_fixtures.py

bench: fixtures
	$(CARGO) bench --locked
