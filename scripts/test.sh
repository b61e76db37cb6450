#!/usr/bin/env bash
# What `make test` does after setup: lints, then every test of the workspace, then one closing line
# with the totals ("N passed, N failed, N skipped"). Arguments go to cargo test.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

# The formatter's and the lints' opinions count as a test each, where these tools are installed.
opinion() { # its name, the tool, what asks it
  local name=$1 tool=$2
  shift 2
  if ! cargo "$tool" --version >/dev/null 2>&1; then
    echo "SKIPPED: $tool is not installed, so the $name is not checked" | tee -a "$log"
    echo "test result: ok. 0 passed; 0 failed; 1 ignored" >>"$log"
  elif "$@"; then
    echo "test $name ... ok"
    echo "test result: ok. 1 passed; 0 failed; 0 ignored" >>"$log"
  else
    echo "test $name ... FAILED"
    echo "test result: FAILED. 0 passed; 1 failed; 0 ignored" >>"$log"
  fi
}
opinion format fmt cargo fmt --all -- --check
opinion lint clippy cargo clippy --workspace --quiet -- --deny warnings

# The proxy that the conformance tests start.
cargo build --quiet --package millrace || failed=1
cargo test --workspace --no-fail-fast "$@" 2>&1 | tee -a "$log" || failed=1
# The simulator must see bugs that are planted in the pool; they are in no other build.
cargo test --package sim --features planted --test planted 2>&1 | tee -a "$log" || failed=1

echo
grep -E '^(MISSING|SKIPPED):' "$log" | sort -u
awk -v failed="$failed" '
  /^test result:/ {
    for (i = 2; i <= NF; i++) {
      if ($i ~ /^passed/) passed += $(i - 1)
      if ($i ~ /^failed/) bad += $(i - 1)
      if ($i ~ /^ignored/) ignored += $(i - 1)
    }
  }
  END {
    if (failed && !bad) bad = 1   # did not build, or was killed
    printf "%d passed, %d failed, %d skipped\n", passed, bad, ignored
    exit bad > 0
  }' "$log"
