#!/usr/bin/env bash
# Builds one of the client programmes under conformance/clients, with its locked dependencies, in the
# cache, and prints the folder that holds what was built.
#
#   scripts/clients.sh python|go|node|java|php|c|ruby|perl|odbc|r2dbc|chdb
#
# chdb is no client: it is the engine of a current ClickHouse as a library, without what it needs for tables of Python.
#
# The folder is named by the content of the client's own folder: unchanged sources are built once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"
client=${1:?usage: clients.sh python|go|node|java|php|c|ruby|perl|odbc|r2dbc}
source=$here/../conformance/clients/$client
[ -d "$source" ] || { echo "clients: there is no $source" >&2; exit 2; }
source=$(cd "$source" && pwd)

tool() { command -v "$1" >/dev/null || { echo "clients: $1 is not installed" >&2; exit 1; }; }
library() { # its name, and what succeeds where it is there
  local name=$1
  shift
  "$@" >/dev/null 2>&1 || { echo "clients: $name is not installed" >&2; exit 1; }
}
case $client in
  python | chdb) tool python3; version=$(python3 --version) ;;
  go) tool go; version=$(go version) ;;
  node) tool node; tool npm; version=$(node --version) ;;
  java | r2dbc) tool javac; tool mvn; version=$(javac -version 2>&1) ;;
  php) tool php; library "PHP's mysqli and pdo_mysql" php -r 'exit(extension_loaded("mysqli") && extension_loaded("pdo_mysql") ? 0 : 1);'; version=$(php --version) ;;
  c) tool cc; tool mariadb_config; version=$(cc --version; mariadb_config --version) ;;
  odbc) tool cc; library "MariaDB's driver for ODBC" odbcinst -q -d -n "MariaDB Unicode"; version=$(cc --version) ;;
  ruby) tool ruby; library mysql2 ruby -rmysql2 -e ''; version=$(ruby --version) ;;
  perl) tool perl; library "DBD::mysql or DBD::MariaDB" perl -MDBD::mysql -MDBD::MariaDB -e ''; version=$(perl --version) ;;
esac
hash=$( (cd "$source" && find . -type f ! -path './node_modules/*' ! -name '*.pyc' | LC_ALL=C sort | xargs sha256sum
  sha256sum <"$here/clients.sh"; echo "$version") | sha256sum | cut -c1-16)
folder=$(millrace_cache)/clients/$client-$hash
mkdir -p "$(dirname "$folder")"

exec 9>"$folder.lock"
flock 9
if [ ! -e "$folder/.complete" ]; then
  rm -rf "$folder"
  mkdir "$folder"
  log=$folder/.log
  build() {
    case $client in
      python)
        python3 -m venv "$folder/venv" &&
          "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r "$source/requirements.txt"
        ;;
      chdb)
        python3 -m venv "$folder/venv" &&
          "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r "$source/requirements.txt"
        ;;
      go) (cd "$source" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -o "$folder/client" .) ;;
      node)
        cp "$source"/package.json "$source"/package-lock.json "$source"/*.js "$folder/" &&
          (cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts)
        ;;
      java | r2dbc)
        mvn --batch-mode --quiet --file "$source/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" &&
          javac -encoding UTF-8 -cp "$folder/lib/*" -d "$folder/classes" "$source"/*.java
        ;;
      # shellcheck disable=SC2046  # words
      c) cc -std=c17 -O1 -Wall -Wextra -Werror $(mariadb_config --cflags) -o "$folder/client" "$source/client.c" $(mariadb_config --libs) ;;
      odbc) cc -std=c17 -O1 -Wall -Wextra -Werror -o "$folder/client" "$source/client.c" -lodbc ;;
      php | ruby | perl) cp "$source"/* "$folder/" ;;
    esac
  }
  if ! build >"$log" 2>&1 9>&-; then
    echo "clients: the $client client does not build:" >&2
    tail -n 15 "$log" >&2
    exit 1
  fi
  touch "$folder/.complete"
fi
echo "$folder"
