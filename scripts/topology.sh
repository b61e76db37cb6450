#!/usr/bin/env bash
# Brings up three servers with Millrace in front of them, and says how to talk to them, until Ctrl-C.
#
#   scripts/topology.sh galera|group|replication
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
# The servers end a moment after the programme that started them.
trap 'sleep 1; rm -rf "$folder"' EXIT
TMPDIR=$folder cargo run --quiet --package conformance --bin topology -- "$@"
