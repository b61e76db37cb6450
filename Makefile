# Millrace's chores. `make run` and `make test` are all that a newcomer needs; each installs what it
# needs on a fresh Debian 12 machine with a Rust toolchain (scripts/setup.sh), and only what is missing.

# Built things may be shared between checkouts, so that a second one is warm; nothing depends on it.
# $MILLRACE_TARGET says where; else /work/.millrace-target where there is a /work to write to; else ./target.
ifndef CARGO_TARGET_DIR
export CARGO_TARGET_DIR := $(or $(MILLRACE_TARGET),$(shell [ -w /work ] && echo /work/.millrace-target || echo $(CURDIR)/target))
endif
export PATH := $(HOME)/.cargo/bin:$(PATH)

# How long the endless ones go on: `make soak MINUTES=30`, `make fuzz SECONDS=60`.
MINUTES ?= 10
SECONDS ?= 20
# Passed on as they are: `make bench ARGS="--seconds 10 --only direct,millrace"`.
ARGS ?=

.PHONY: help run test lint bench stress soak fuzz setup clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

run: ## build Millrace and start it with an embedded backend, so that the first query works at once
	@scripts/setup.sh run
	@scripts/run.sh $(ARGS)

test: ## every test: units, tidy, lints, simulator, conformance with real servers and clients
	@scripts/setup.sh test
	@scripts/test.sh $(ARGS)

lint: ## the formatter's, the compiler's and clippy's opinion, warnings denied
	@scripts/setup.sh build
	cargo fmt --all -- --check
	cargo clippy --workspace --quiet -- --deny warnings

bench: ## rules, fast routing and digests alone; CPU per query, throughput and p99 beside HAProxy, mysqlrouter and raw relays; memory of idle sessions; other tables: ARGS=--rules, --paste, --loads, --bulk, --help
	@scripts/setup.sh bench
	@bench/run.sh $(ARGS)

stress: ## the tests under load for longer: 9,000 clients, 16 GB for a slow reader, dozens of kill -9, 50,000 schemas, a million users
	@scripts/setup.sh test
	cargo build --release --package millrace
	MILLRACE_STRESS=1 cargo test --release --package conformance --test load -- --nocapture $(ARGS)
	MILLRACE_STRESS=1 cargo test --release --package conformance --test shards -- --nocapture $(ARGS)

soak: ## the simulator with fresh seeds, and real servers with faults, for MINUTES each
	@scripts/setup.sh test
	cargo run --release --package sim -- --minutes $(MINUTES) $(ARGS)
	cargo build --release --package millrace
	MILLRACE_SOAK_MINUTES=$(MINUTES) cargo test --release --package conformance --test soak -- --nocapture whatever

fuzz: ## every fuzz target for SECONDS, starting from its corpus
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $(SECONDS) $(ARGS)

setup: ## install what building and testing need
	@scripts/setup.sh test

clean: ## remove what was built here (not the cache of servers and clients)
	cargo clean --quiet
	rm -rf bench/out
