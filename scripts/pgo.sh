#!/usr/bin/env bash
# Builds Millrace as a release that has learnt which of its code runs (profile-guided optimisation): a build that counts,
# traffic for it (bench/train.py), and a build by what was counted.
#
#   scripts/pgo.sh            the last line is the path of the binary, $CARGO_TARGET_DIR/pgo/TRIPLE/release/millrace
#   scripts/pgo.sh --profile  stops before the last build: the last line is the path of what was counted, for scripts/dist.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
triple=$(rustc -vV | sed -n 's/^host: //p')
profile=$target/millrace.profdata
say() { printf 'pgo: %s\n' "$*" >&2; }

# Counts are read by LLVM's tool of the compiler's own version.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
merge=$(rustc --print sysroot)/lib/rustlib/$triple/bin/llvm-profdata
[ -x "$merge" ] || merge=$(command -v "llvm-profdata-$llvm") || { say "llvm-profdata of LLVM $llvm is not there: it is in Debian's llvm-$llvm"; exit 1; }

# Always the same place: flags with another one would have everything built anew.
counts=$target/pgo-raw
rm -rf "$counts"
# With --target, programs of the build itself count nothing.
build() { # FOLDER FLAGS
  CARGO_TARGET_DIR=$1 RUSTFLAGS=$2 cargo build --quiet --release --package millrace --target "$triple"
}
say "building one that counts"
build "$target/pgo-counts" "-Cprofile-generate=$counts"
python3 bench/train.py --target "$target/pgo-counts/$triple" >&2
"$merge" merge -o "$profile" "$counts"
if [ "${1:-}" = --profile ]; then
  echo "$profile"
  exit
fi
say "building by what was counted"
build "$target/pgo" "-Cprofile-use=$profile"
echo "$target/pgo/$triple/release/millrace"
