#!/usr/bin/env bash
# Brings up a MariaDB and everything that can stand before it, and prints one table: CPU per query,
# throughput and p99 of each at several numbers of connections, and the memory of idle sessions.
# Without arguments, and with `--seeds` among them, the tables of the documents that Millrace grew from come first: decisions with 10 to 20,000 rules, fast
# routing with 10 to 200,000 rows, their memory, digests. `--rules` prints these alone, `--loads` what clients notice of LOADs, `--bulk` what 2 GB at
# once cost, `--requests` what applications cost that connect for each request, `--paste` what long scripts pasted into the admin port take, and decisions under real traffic.
# `--windows` is how long clients get no answer when their server dies, hangs or hands over, `--monitor` what checks of 2,000 servers cost,
# `--clickhouse` what a ClickHouse behind the proxy is beside its own HTTP.
# What else may be chosen: bench/run.sh --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seeds() {
  cargo build --quiet --release --package plan --example seeds
  cargo build --quiet --release --package sql --example digest_speed
  "${CARGO_TARGET_DIR:-target}/release/examples/seeds"
  echo
  "${CARGO_TARGET_DIR:-target}/release/examples/digest_speed"
}

with_seeds=$([ $# = 0 ] && echo yes || echo no)
for word in "$@"; do
  case "$word" in
    --help | -h) exec python3 bench/bench.py --help ;;
    --rules)
      seeds
      exit
      ;;
    --seeds) with_seeds=yes ;;
  esac
done
if [ "$with_seeds" = yes ]; then
  seeds
  echo
fi
echo "Building Millrace and the raw relay ..." >&2
cargo build --quiet --release --package millrace
for word in "$@"; do
  [ "$word" != --loads ] || exec python3 bench/loads.py "${CARGO_TARGET_DIR:-target}"
  [ "$word" != --paste ] || exec python3 bench/paste.py --target "${CARGO_TARGET_DIR:-target}" "$@"
  [ "$word" != --clickhouse ] || exec python3 bench/clickhouse.py --target "${CARGO_TARGET_DIR:-target}" "$@"
  [ "$word" != --monitor ] || exec python3 bench/monitor.py --target "${CARGO_TARGET_DIR:-target}" "$@"
  [ "$word" != --requests ] || exec python3 bench/requests.py --target "${CARGO_TARGET_DIR:-target}" "$@"
  [ "$word" != --shards ] || exec python3 bench/shards.py --target "${CARGO_TARGET_DIR:-target}" "$@"
  [ "$word" != --scripts ] || exec python3 bench/scripts.py --target "${CARGO_TARGET_DIR:-target}" "$@"
  [ "$word" != --bulk ] || exec python3 bench/bulk.py --target "${CARGO_TARGET_DIR:-target}" "$@"
done
cargo build --quiet --release --package rt --example relay 2>/dev/null || echo "(no raw relay to compare with)" >&2
. scripts/cache.sh
for word in "$@"; do
  [ "$word" != --windows ] || exec python3 bench/windows.py --target "${CARGO_TARGET_DIR:-target}" --cache "$(millrace_cache)" "$@"
done
exec python3 bench/bench.py --target "${CARGO_TARGET_DIR:-target}" --cache "$(millrace_cache)" "$@"
