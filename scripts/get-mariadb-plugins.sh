#!/usr/bin/env bash
# Brings the server's side of MariaDB's client_ed25519 to a machine that has mariadb-server-core alone. Debian has it in
# the package mariadb-server, which would start a server of its own: only this file is taken out of it.
#
# The second call is quick, and nothing but the cache is written. Exit status: 0 it is there, or here; 1 it cannot be had.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"
plugin=auth_ed25519.so
dest=$(millrace_cache)/mariadb-plugins
[ ! -e "/usr/lib/mysql/plugin/$plugin" ] && [ ! -e "$dest/$plugin" ] || exit 0
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || { echo "get-mariadb-plugins: $tool is not on this machine (not a Debian?)" >&2; exit 1; }
done

mkdir -p "$dest"
exec 9>"$dest/.lock"
flock 9
[ ! -e "$dest/$plugin" ] || exit 0
work=$(mktemp -d "$dest/.get.XXXXXX")
trap 'rm -rf "$work"' EXIT
# That of the server that is here: one of another version is not loaded.
version=$(dpkg-query -W -f '${Version}' mariadb-server-core 2>/dev/null || true)
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download "mariadb-server${version:+=$version}" >&2 || apt-get -qq -o APT::Sandbox::User=root download mariadb-server >&2
dpkg-deb -x mariadb-server_*.deb unpacked
mv "unpacked/usr/lib/mysql/plugin/$plugin" "$dest/"
