#!/usr/bin/env bash
# Every fuzz target for some seconds, starting from its corpus; a finding stays in fuzz/artifacts and fails.
#
#   scripts/fuzz.sh SECONDS [TARGET...]
#
# A stable compiler is enough: libFuzzer's coverage counters are a pass of LLVM, which rustc lets anybody
# ask for; only the address sanitizer would need a nightly one, and there is no unsafe code in the parsers.
# What is found on the way goes into a scratch corpus beside the build, not into the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"

seconds=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
# A folder of its own: the flags differ from everything else's.
build=${CARGO_TARGET_DIR:-$PWD/../target}/fuzz
triple=$(rustc -vV | sed -n 's/^host: //p')
command -v c++ >/dev/null || { echo "fuzz: libFuzzer needs a C++ compiler (apt-get install g++)" >&2; exit 1; }
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing" \
  cargo build --quiet --release --bins --target "$triple" --target-dir "$build"

[ $# -gt 0 ] || set -- $(basename -s .rs fuzz_targets/*.rs)
failed=0
for target in "$@"; do
  scratch=$build/corpus/$target
  mkdir -p "$scratch" "artifacts/$target" "corpus/$target"
  log=$build/$target.log
  if "$build/$triple/release/$target" "$scratch" "corpus/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
      -max_len=65536 -artifact_prefix="artifacts/$target/" -print_final_stats=1 >"$log" 2>&1; then
    printf 'fuzz %-24s ok      %s runs, %s features\n' "$target" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$(grep -oE 'ft: [0-9]+' "$log" | tail -n 1 | cut -d' ' -f2)"
    rmdir "artifacts/$target" 2>/dev/null || true
  else
    printf 'fuzz %-24s FAILED  %s\n' "$target" "$log"
    grep -E 'panicked|ERROR|SUMMARY|artifact_prefix' "$log" | head -n 6
    failed=1
  fi
done
rmdir artifacts 2>/dev/null || true
exit $failed
