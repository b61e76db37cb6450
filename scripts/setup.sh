#!/usr/bin/env bash
# Installs what Millrace needs on a Debian 12 machine that has a Rust toolchain and nothing else.
#
#   scripts/setup.sh build    what compiling needs
#   scripts/setup.sh run      that, and a client for the first query
#   scripts/setup.sh topology what compiling needs, and servers
#   scripts/setup.sh test     that, and the servers and client libraries of the conformance tests
#   scripts/setup.sh bench    what compiling needs, a load generator and the peers to compare with
#   scripts/setup.sh pgo      that of bench, and what merges the counts of a build that counts
#   scripts/setup.sh fuzz     what compiling needs, and a C++ compiler for libFuzzer
#   scripts/setup.sh dist     what compiling needs, and what packages are made with and tried in
#
# It asks for what is missing and installs only that, so it is quick (a fraction of a second) when
# all is there, and several at once wait for each other. Everything comes from package registries.
#
# A tool that only some tests need and that cannot be had is said in one line that begins with
# MISSING; those tests then count as skipped. What compiling needs is an error.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"
mode=${1:-test}
case $mode in build|run|topology|test|suites|bench|pgo|fuzz|dist) ;; *) echo "usage: setup.sh build|run|topology|test|suites|bench|pgo|fuzz|dist" >&2; exit 2 ;; esac
cache=$(millrace_cache)
say() { printf 'setup: %s\n' "$*" >&2; }
missing() { printf 'MISSING: %s\n' "$*" >&2; }

# What shows that it is there (a program on PATH, or a file), and Debian's package for it.
needs_build="cc:gcc /usr/include/stdio.h:libc6-dev pkg-config:pkg-config /usr/include/openssl/ssl.h:libssl-dev make:make"
needs_run="mysql-client?:mariadb-client-core"
needs_servers="mariadbd:mariadb-server-core mariadb:mariadb-client-core setpriv:util-linux openssl:openssl"
needs_galera="/usr/lib/galera/libgalera_smm.so:galera-4"
needs_clickhouse="clickhouse-server:clickhouse-server clickhouse-client:clickhouse-client"
needs_etcd="etcd:etcd-server"
needs_prometheus="prometheus:prometheus promtool:prometheus"
needs_clients="python3:python3 python3-venv?:python3-venv go:golang-go node:nodejs npm:npm javac:default-jdk-headless mvn:maven /etc/ssl/certs/ca-certificates.crt:ca-certificates"
needs_php="php:php-cli php-mysql?:php-mysql"
needs_c="/usr/include/mariadb/mysql.h:libmariadb-dev"
needs_ruby="ruby:ruby ruby-mysql2?:ruby-mysql2"
needs_perl="perl:perl dbd-mysql?:libdbd-mysql-perl dbd-mariadb?:libdbd-mariadb-perl"
needs_odbc="/usr/include/sqlext.h:unixodbc-dev odbcinst:odbcinst odbc-mariadb?:odbc-mariadb"
needs_count="valgrind:valgrind"
needs_bench="sysbench:sysbench haproxy:haproxy mariadb-slap:mariadb-client python3:python3 valgrind:valgrind"
needs_fuzz="c++:g++"
needs_dist="dpkg-deb:dpkg objdump:binutils perl:perl python3:python3 python3-venv?:python3-venv"
needs_rpm="rpmbuild:rpm"
needs_fresh="debootstrap:debootstrap unshare:util-linux mariadb:mariadb-client-core"

there() { # is it?
  case $1 in
    /*) [ -e "$1" ] ;;
    mysql-client\?) command -v mysql >/dev/null 2>&1 ;; # the lines that are printed call it so
    python3-venv\?) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    php-mysql\?) php -r 'exit(extension_loaded("mysqli") && extension_loaded("pdo_mysql") ? 0 : 1);' >/dev/null 2>&1 ;;
    ruby-mysql2\?) ruby -rmysql2 -e '' 2>/dev/null ;;
    dbd-mysql\?) perl -MDBD::mysql -e '' 2>/dev/null ;;
    dbd-mariadb\?) perl -MDBD::MariaDB -e '' 2>/dev/null ;;
    odbc-mariadb\?) odbcinst -q -d -n "MariaDB Unicode" >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] ;;
  esac
}

absent() { # of these needs, the packages whose sign is not there
  local need
  for need in $1; do
    there "${need%%:*}" || printf '%s ' "${need#*:}"
  done
}

install() { # the packages for these needs
  local packages as_root=()
  packages=$(absent "$1")
  [ -n "$packages" ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "please install with this system's own means: $packages"
    return 1
  fi
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "please run as root: apt-get install $packages"
      return 1
    fi
    as_root=(sudo)
  fi
  (
    flock 9
    packages=$(absent "$1")
    [ -n "$packages" ] || exit 0
    say "installing $packages"
    export DEBIAN_FRONTEND=noninteractive
    quiet=(-qq -y -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3)
    # The list may be older than what the archive holds: refresh it once a day, and again if the first try fails.
    [ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mtime -1 2>/dev/null | head -n 1)" ] ||
      "${as_root[@]}" apt-get "${quiet[@]}" update >&2 || true
    # Tests start their servers themselves: a package shall not start its service here.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
      trap '"${as_root[@]}" rm -f "$policy"' EXIT
      printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null && "${as_root[@]}" chmod 755 "$policy"
    fi
    # shellcheck disable=SC2086  # one word a package
    "${as_root[@]}" apt-get "${quiet[@]}" install --no-install-recommends $packages >"$cache/apt.log" 2>&1 || {
      "${as_root[@]}" apt-get "${quiet[@]}" update >>"$cache/apt.log" 2>&1 || true
      "${as_root[@]}" apt-get "${quiet[@]}" install --no-install-recommends $packages >>"$cache/apt.log" 2>&1
    } || { tail -n 20 "$cache/apt.log" >&2; exit 1; }
  ) 9>"$cache/.setup.lock" || return 1
  packages=$(absent "$1")
  [ -z "$packages" ] || { say "still not there after installing: $packages"; return 1; }
}

zig() ( # a linker that knows older C libraries, and its way into cargo, from Python's packages
  exec 9>"$cache/.zig.lock"
  flock 9
  versions="ziglang==0.17.1 cargo-zigbuild==0.24.1"
  [ "$(cat "$cache/zig/.complete" 2>/dev/null)" != "$versions" ] || exit 0
  say "installing $versions"
  rm -rf "$cache/zig"
  python3 -m venv "$cache/zig" || exit 1
  # shellcheck disable=SC2086  # one word a package
  "$cache/zig/bin/pip" install --quiet --disable-pip-version-check $versions >"$cache/zig.log" 2>&1 || { tail -n 5 "$cache/zig.log" >&2; exit 1; }
  echo "$versions" > "$cache/zig/.complete"
)

if ! command -v cargo >/dev/null && [ ! -x "$HOME/.cargo/bin/cargo" ]; then
  say "there is no Rust toolchain: install rustup (stable, 1.95 or later) first"
  exit 1
fi
install "$needs_build" || exit 1
if ! cargo clippy --version >/dev/null 2>&1 && [ "$mode" = test ]; then
  rustup component add clippy >/dev/null 2>&1 || missing "clippy, so the bans of crates/*/clippy.toml are not checked"
fi

case $mode in
  run)
    install "$needs_run" || missing "a client for MySQL, so the printed lines need one from elsewhere"
    ;;
  test)
    install "$needs_servers" || missing "MariaDB, so the conformance tests against it are skipped"
    install "$needs_galera" || missing "Galera, so the conformance tests of a cluster of it are skipped"
    install "$needs_clickhouse" || missing "ClickHouse, so the conformance tests in front of it fail"
    install "$needs_etcd" || missing "etcd, so the conformance tests of a fleet fail"
    install "$needs_prometheus" || missing "Prometheus, so the conformance tests of metrics fail"
    "$here/get-mariadb-plugins.sh" || missing "MariaDB's auth_ed25519, so no server asks for it"
    install "$needs_clients" || missing "some client languages, so their conformance tests are skipped"
    install "$needs_php" || missing "PHP with mysqli and PDO, so their conformance tests are skipped"
    install "$needs_c" || missing "libmariadb to compile with, so its conformance tests are skipped"
    install "$needs_ruby" || missing "Ruby with mysql2, so its conformance tests are skipped"
    install "$needs_perl" || missing "Perl with DBD::mysql and DBD::MariaDB, so their conformance tests are skipped"
    install "$needs_count" || missing "valgrind, so instructions are not counted"
    install "$needs_odbc" || missing "unixODBC with MariaDB's driver, so its conformance tests are skipped"
    "$here/get-mysql.sh" || missing "MySQL, so the conformance tests against it and with its client are skipped"
    for client in python go node java php c ruby perl odbc r2dbc chdb; do
      "$here/clients.sh" "$client" >/dev/null || missing "the $client clients, so their conformance tests are skipped"
    done
    ;;
  topology)
    install "$needs_servers $needs_galera" || exit 1
    "$here/get-mysql.sh" || missing "MySQL, so there is no T=group"
    ;;
  suites)
    install "$needs_servers $needs_clients" || exit 1
    "$here/get-mysql.sh" || missing "MySQL, so the suites do not meet it"
    ;;
  fuzz)
    install "$needs_fuzz" || exit 1
    ;;
  dist)
    install "$needs_dist" || exit 1
    install "$needs_rpm" || missing "rpmbuild, so there is no RPM"
    install "$needs_fresh" || missing "debootstrap, so packages are not tried in a fresh system"
    zig || missing "cargo-zigbuild, so the binary is for this machine's glibc and OpenSSL"
    rustup target add x86_64-unknown-linux-gnu >/dev/null 2>&1 || true
    ;;
  pgo)
    install "$needs_servers $needs_bench $needs_c" || exit 1
    llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    ls "$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata >/dev/null 2>&1 || install "llvm-profdata-$llvm:llvm-$llvm" ||
      missing "llvm-profdata of LLVM $llvm, so a build cannot learn from traffic"
    ;;
  bench)
    install "$needs_servers $needs_bench $needs_c" || exit 1
    "$here/get-mysql.sh" || missing "mysqlrouter, so it is left out of the table"
    ;;
esac
