#!/usr/bin/env bash
# What `make test` does after setup: the format, the lints if asked, then every test of the workspace, then one closing line
# with the totals ("N passed, N failed, N skipped"). With arguments, one `cargo test` of the workspace gets them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What a second build would be spared costs the first one time, and gigabytes.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

log=$(mktemp)
running=$(mktemp -d) # what programmes that have not ended have said
again=$(mktemp -d) # what programmes have said that failed and are tried once more
trap 'rm -rf "$log" "$running" "$again"' EXIT
failed=0

# Whoever ends the run from outside wants to know what it was waiting for.
unfinished() {
  for one in "$running"/*; do
    [ -f "$one" ] && { echo "ENDED FROM OUTSIDE:"; head -n 1 "$one"; tail -n 12 "$one"; }
  done
  exit 143
}
trap unfinished TERM INT

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
# The lints compile everything once more, which is a fifth of a cold run: `make test LINTS=1`.
if [ -n "${MILLRACE_TEST_LINTS:-}" ]; then
  opinion lint clippy cargo clippy --workspace --quiet -- --deny warnings
fi

# The proxy that the conformance tests start, and all test programmes.
cargo build --quiet --package millrace || failed=1
# Each programme would ask for it anew.
export MILLRACE_BIN=${MILLRACE_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/debug/millrace}
cargo test --workspace --no-run "$@" || failed=1

# Most tests wait for servers most of the time, so one programme more than there are processors runs at once, the longest first; each is shown when it has ended.
# A programme that is slow is waited for; one that says nothing for so long hangs. The conformance tests name the test that
# does not end (conformance/src/watch.rs), and that is sooner.
programme() {
  local said=$running/$BASHPID pid silent=0 size=0
  echo "running: cargo test --workspace $1" >"$said"
  setsid cargo test --workspace --no-fail-fast $1 >>"$said" 2>&1 &
  pid=$!
  # A group of its own does not hear of Ctrl-C by itself.
  trap 'kill -- -$pid 2>/dev/null' EXIT
  while sleep 5 && kill -0 $pid 2>/dev/null; do
    if [ "$(stat -c %s "$said")" = "$size" ]; then
      silent=$((silent + 5))
    else
      size=$(stat -c %s "$said") silent=0
    fi
    if [ $silent -ge "$SILENT_AT_MOST" ]; then
      echo "it has said nothing for $silent s, and is ended" >>"$said"
      kill -- -$pid 2>/dev/null
      sleep 20
      kill -KILL -- -$pid 2>/dev/null
    fi
  done
  wait $pid || echo "FAILED: cargo test --workspace $1 (exit $?)" >>"$said"
  # The processor's time is the test's own on a machine that has other work, too. A substitution would count its own.
  times >"$said.times"
  echo "took $SECONDS s ($(awk -F'[ms ]' 'END { printf "%d", $1 * 60 + $2 + $4 * 60 + $5 }' "$said.times") s of a core): cargo test --workspace $1" >>"$said"
  rm "$said.times"
  if [ -z "${LAST_TRY:-}" ] && grep -q '^FAILED: ' "$said" && is_tried_again "$said" "$1"; then
    sed 's/ \.\.\. FAILED$/ ... failed, and is tried again/; s/^FAILED: /failed at first: /; s/^test result: FAILED/result at first/' "$said" | flock "$log" cat
    mv "$said" "$again/"
    return
  fi
  flock "$log" tee -a "$log" <"$said"
  rm "$said"
}
# Tests with real servers depend on what else the machine does. A programme of these that fails is tried once more, with
# nothing beside it; if it passes then, it is named as FLAKY: a defect of the test or of Millrace that somebody has to find.
# What looks for rare events (soak, faults, the simulator) is never tried again: there a rare failure is a finding.
is_tried_again() { # what it has said, its arguments
  grep -q '^test .* \.\.\. FAILED$' "$1" && case $2 in
    "--test soak" | "--test faults") return 1 ;;
    "--test "*) [ -e "conformance/tests/${2#--test }.rs" ] || [ -e "conformance/tests/${2#--test }/main.rs" ] ;;
    *) return 1 ;;
  esac
}
FLAKY_AT_MOST=3 # programmes; more are no accident
export -f programme is_tried_again
export log running again SILENT_AT_MOST=${MILLRACE_SILENT_AT_MOST:-1500}
named() { # the programmes in these folders
  ls -d "$@" 2>/dev/null | sed -n 's,^.*/tests/\([a-z_]*\)\(.rs\|/main.rs\)$,--test \1,p'
}
if [ $# -gt 0 ]; then
  printf '%s\n' "$*"
else
  echo "--test transcripts"
  echo --lib --bins $(named crates/*/tests/* crates/*/*/tests/* {sim,xtask}/tests/*)
  echo "--doc"
  # Those that wait for longest, and then all others.
  long='--test \(moves\|limits\|through\|sharing\|group_replication\|partition_transactions\|partition_changes\|acceptance\|full\)$'
  conformance=$(named conformance/tests/*.rs conformance/tests/*/main.rs | grep -v transcripts)
  grep "^$long" <<<"$conformance"
  grep -v "^$long" <<<"$conformance"
fi | xargs -d '\n' -P $(($(nproc) + 1)) -I ONE bash -c 'programme "ONE"'
if [ "$(ls "$again" | wc -l)" -gt $FLAKY_AT_MOST ]; then
  cat "$again"/* >>"$log"
else
  for said in "$again"/*; do
    [ -e "$said" ] || continue
    what=$(sed -n '1s/^running: cargo test --workspace //p' "$said")
    LAST_TRY=1 bash -c "programme '$what'"
    grep -q "^FAILED: cargo test --workspace $what " "$log" ||
      sed -n 's/^test \(.*[^ ]\) *\.\.\. FAILED$/FLAKY: '"$what"' \1/p' "$said" >>"$log"
  done
fi
! grep '^FAILED: ' "$log" || failed=1

echo
grep '^took [0-9]* s (' "$log" | sort -k2,2nr | head -n "${MILLRACE_SLOWEST:-12}" | cut -c1-120
grep -E '^(MISSING|SKIPPED|FLAKY):' "$log" | sort -u
grep -E '^(FAILED: |test .* \.\.\. FAILED)' "$log" | cut -c1-200
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
