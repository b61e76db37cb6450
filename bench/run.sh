#!/usr/bin/env bash
# Brings up a MariaDB and everything that can stand before it, and prints one table: CPU per query,
# throughput and p99 of each at several numbers of connections, and the memory of idle sessions.
# What may be chosen: bench/run.sh --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for word in "$@"; do
  [ "$word" != --help ] && [ "$word" != -h ] || exec python3 bench/bench.py --help
done
echo "Building Millrace and the raw relay ..." >&2
cargo build --quiet --release --package millrace
cargo build --quiet --release --package rt --example relay 2>/dev/null || echo "(no raw relay to compare with)" >&2
. scripts/cache.sh
exec python3 bench/bench.py --target "${CARGO_TARGET_DIR:-target}" --cache "$(millrace_cache)" "$@"
