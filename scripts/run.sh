#!/usr/bin/env bash
# What `make run` does after setup: builds Millrace and starts it with the embedded SQLite backend in
# hostgroup 0 and the user demo/demo. Its data stays in ./.millrace between runs; `--initial` forgets it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "Building Millrace (the first time takes a few minutes) ..." >&2
cargo build --quiet --profile quick --package millrace
target=${CARGO_TARGET_DIR:-target}
mkdir -p .millrace
exec "$target/quick/millrace" -f --sqlite3-server -c etc/demo.cnf -D .millrace "$@"
