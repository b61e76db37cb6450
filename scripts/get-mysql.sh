#!/usr/bin/env bash
# Brings a real MySQL (mysqld, mysql, mysqlrouter) to a Debian machine whose own
# release has none, without touching what is installed there.
#
#   scripts/get-mysql.sh [DEST]     DEST: $MILLRACE_CACHE/mysql by default; its programs land in DEST/bin
#
# How: apt itself is asked where this machine gets Debian from; a private apt (lists, cache and dpkg
# status of its own) resolves mysql-server-core, mysql-client-core and mysql-router in the suite
# sid (with testing if sid alone does not resolve that day), down to sid's own libc; the packages are
# unpacked with dpkg-deb -x, so no maintainer script runs; and every program gets a wrapper that
# starts it through the unpacked dynamic linker with the unpacked libraries.
#
# The second call is quick, several at once wait for each other, and nothing but DEST is written.
# The wrappers hold DEST's path, so DEST cannot be moved.
# Exit status: 0 there it is; 1 it cannot be had here (the reason is on stderr).
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"
dest=${1:-$(millrace_cache)/mysql}
say() { printf 'get-mysql: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
runs() { "$dest/bin/$1" --version >/dev/null 2>&1; }

mkdir -p "$dest"
dest=$(cd "$dest" && pwd -P)
case $dest in *[!A-Za-z0-9/._+-]*) die "the path '$dest' holds characters that wrappers cannot carry" ;; esac

exec 9>"$dest/.lock"
flock 9
if [ -s "$dest/.complete" ] && runs mysqld; then
  exit 0
fi
rm -rf "$dest/root" "$dest/bin" "$dest/ld" "$dest/.complete" "$dest"/.apt.*

for tool in apt-get dpkg-deb gpgv; do
  command -v "$tool" >/dev/null || die "$tool is not on this machine (not a Debian?)"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || die "the package debian-archive-keyring is not installed"

# The archive: the first 'main' of a suite that is neither a security nor an update one.
archive=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk '$3 == "main" && $2 ~ /^[a-z]+$/ && $1 !~ /security/ { print $1; exit }')
[ -n "$archive" ] || die "apt on this machine names no Debian archive"

apt=$(mktemp -d "$dest/.apt.XXXXXX")
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt"/{lists/partial,archives/partial,none,log}
arch=$(dpkg --print-architecture)
# Only two helper scripts of the server want perl; a stand-in saves fetching sid's.
cat >"$apt/status" <<STATUS
Package: perl
Status: install ok installed
Maintainer: nobody <root@localhost>
Architecture: $arch
Multi-Arch: allowed
Version: 99:0
Provides: perl-base (= 99:0)
Description: stand-in
STATUS

private_apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
    -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
    -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" \
    -o Dir::Cache::pkgcache="$apt/pkgcache.bin" -o Dir::Cache::srcpkgcache="$apt/srcpkgcache.bin" \
    -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" \
    -o Dir::Etc::preferences="$apt/none/none" -o Dir::Etc::preferencesparts="$apt/none" \
    -o Dir::Log="$apt/log" -o APT::Sandbox::User="$(id -un)" \
    -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Default-Release="" \
    -o APT::Install-Recommends=false -o APT::Update::Error-Mode=any -o APT::Keep-Downloaded-Packages=true \
    -o Acquire::Languages=none -o Acquire::PDiffs=false -o Acquire::Retries=3 \
    "$@" 9>&-
}

wanted=(mysql-server-core mysql-client-core mysql-router)
found=no
for suites in "sid" "sid testing"; do
  for suite in $suites; do
    echo "deb [arch=$arch target=Packages signed-by=$keyring] $archive $suite main"
  done >"$apt/sources.list"
  private_apt update || die "the package index of '$suites' cannot be read from here"
  if private_apt -s install "${wanted[@]}" >/dev/null 2>"$apt/why"; then found=yes; break; fi
done
[ "$found" = yes ] || die "apt cannot resolve ${wanted[*]}: $(head -n 3 "$apt/why" | tr '\n' ' ')"

say "fetching MySQL into $dest (about 150 MB unpacked to 400 MB)"
private_apt --download-only install "${wanted[@]}" >/dev/null || die "the download failed"
mkdir "$dest/root"
for deb in "$apt"/archives/*.deb; do
  dpkg-deb -x "$deb" "$dest/root" || die "$(basename "$deb") does not unpack"
done
rm -rf "$dest"/root/usr/share/{doc,man,lintian,locale}

libc=$(find "$dest/root" -name libc.so.6 -print -quit)
[ -n "$libc" ] || die "no libc came with the packages"
libdir=${libc%/*}
linker=$(find "$libdir" -maxdepth 1 -name 'ld-linux*.so.*' -print -quit)
[ -n "$linker" ] || die "no dynamic linker came with the packages"
libraries=$libdir:$dest/root/lib/${libdir##*/}:$dest/root/usr/lib/mysql-router:$dest/root/usr/lib/mysqlrouter/plugin

# A wrapper each. ld/NAME is a link to the linker, so that ps shows NAME; --inhibit-cache, so that a
# missing library is an error and never the machine's own; what mysqld was built to find under /usr comes last.
mkdir "$dest/bin" "$dest/ld"
wrap() { # NAME ELF OPTION-BEFORE OPTIONS-AFTER
  ln -s "$linker" "$dest/ld/$1"
  cat >"$dest/bin/$1" <<WRAPPER
#!/bin/sh
# $1 of the MySQL beside this folder; written by get-mysql.sh.
unset LD_PRELOAD LD_LIBRARY_PATH
: "\${LIBMYSQL_PLUGIN_DIR:=$dest/root/usr/lib/mysql/plugin}"; export LIBMYSQL_PLUGIN_DIR
exec '$dest/ld/$1' --inhibit-cache --library-path '$libraries' --argv0 '$2' '$2' $3 "\$@" $4
WRAPPER
  chmod 755 "$dest/bin/$1"
}
share=$dest/root/usr/share/mysql
for elf in "$dest"/root/usr/sbin/mysqld "$dest"/root/usr/bin/mysql{,admin,dump,router}; do
  [ -f "$elf" ] || die "${elf##*/} did not come with the packages"
  case ${elf##*/} in
    mysqld) wrap mysqld "$elf" "" "--basedir='$dest/root/usr' --lc-messages-dir='$share' --character-sets-dir='$share/charsets' --plugin-dir='$dest/root/usr/lib/mysql/plugin'" ;;
    mysqlrouter) wrap mysqlrouter "$elf" "--DEFAULT.plugin_folder='$dest/root/usr/lib/mysqlrouter/plugin'" "" ;;
    *) wrap "${elf##*/}" "$elf" "" "--character-sets-dir='$share/charsets'" ;;
  esac
done

for program in mysqld mysql mysqlrouter; do
  runs "$program" || die "$program does not run here: $("$dest/bin/$program" --version 2>&1 | head -n 1)"
done
"$dest/bin/mysqld" --version >"$dest/.complete"
say "ready: $(sed 's/^.* Ver/Ver/' "$dest/.complete")"
