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
# `make test EVERYTHING=1` also proves what other tests prove already: every test on both drivers, every client everywhere.
ifdef EVERYTHING
export MILLRACE_TEST_EVERYTHING := 1
endif
# `make test LINTS=1` has the lints' opinion, too, which `make lint` asks alone.
ifdef LINTS
export MILLRACE_TEST_LINTS := 1
endif
# Which servers `make topology` brings up.
T ?= replication

.PHONY: help run topology test suites lint bench cost pgo stress soak fuzz dist dist-test setup clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 16

run: ## build Millrace and start it with an embedded backend, so that the first query works at once
	@scripts/setup.sh run
	@scripts/run.sh $(ARGS)

topology: ## three servers as T=galera, T=group (Group Replication) or T=replication, Millrace in front, and how to talk to them, until Ctrl-C
	@scripts/setup.sh topology
	@scripts/topology.sh $(T)

test: ## every test: units, tidy, simulator, conformance with real servers and clients
	@scripts/setup.sh test
	@scripts/test.sh $(ARGS)

lint: ## the formatter's, the compiler's and clippy's opinion, warnings denied; licences of what is linked; cargo-deny's if it is there
	@scripts/setup.sh build
	cargo fmt --all -- --check
	cargo clippy --workspace --quiet -- --deny warnings
	cargo run --quiet --package xtask -- sbom >/dev/null
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --offline check bans licenses sources; fi

bench: ## rules, fast routing and digests alone; CPU per query, throughput and p99 beside HAProxy, mysqlrouter and raw relays; memory of idle sessions; other tables: ARGS=--rules, --paste, --loads, --bulk, --windows, --monitor, --scripts, --shards, --clickhouse, --help
	@scripts/setup.sh bench
	@bench/run.sh $(ARGS)

cost: ## instructions of a statement of each kind, and the code that it touches (callgrind, no machine changes them): ARGS="--haproxy --only select"
	@scripts/setup.sh bench
	cargo build --quiet --release --package millrace
	@python3 bench/cost.py --target $(CARGO_TARGET_DIR) $(ARGS)

pgo: ## a release that has learnt from traffic which of its code runs: where it is stands in the last line; three builds of time
	@scripts/setup.sh pgo
	@scripts/pgo.sh

suites: ## the suites of Django and SQLAlchemy, directly and through Millrace: each test must end the same way; two hours, ARGS="--only sqlalchemy" one
	@scripts/setup.sh suites
	cargo build --quiet --package millrace
	@. scripts/cache.sh && python3 scripts/suites.py --target $(CARGO_TARGET_DIR) --cache "$$(millrace_cache)" $(ARGS)

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

dist: ## a release: Debian package, RPM, tarball, and a root file system for containers, in $MILLRACE_DIST (else dist/ beside what cargo builds)
	@scripts/setup.sh dist
	@scripts/setup.sh pgo
	@if [ -z "$$MILLRACE_DIST_BIN$${MILLRACE_DIST_PROFILE+given}" ]; then export MILLRACE_DIST_PROFILE=$$(scripts/pgo.sh --profile); fi; scripts/dist.sh $(ARGS)

dist-test: dist ## the packages in a fresh Debian: install, first query, upgrade, remove, purge; the container's root
	@scripts/dist-test.sh $(ARGS)

setup: ## install what building and testing need
	@scripts/setup.sh test

clean: ## remove what was built here (not the cache of servers and clients)
	cargo clean --quiet
	rm -rf bench/out
