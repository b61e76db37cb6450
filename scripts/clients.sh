#!/usr/bin/env bash
# Builds one of the client programmes under conformance/clients, with its locked dependencies, in the
# cache, and prints the folder that holds what was built.
#
#   scripts/clients.sh python|go|node|java
#
# The folder is named by the content of the client's own folder: unchanged sources are built once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"
client=${1:?usage: clients.sh python|go|node|java}
source=$here/../conformance/clients/$client
[ -d "$source" ] || { echo "clients: there is no $source" >&2; exit 2; }
source=$(cd "$source" && pwd)

tool() { command -v "$1" >/dev/null || { echo "clients: $1 is not installed" >&2; exit 1; }; }
case $client in
  python) tool python3; version=$(python3 --version) ;;
  go) tool go; version=$(go version) ;;
  node) tool node; tool npm; version=$(node --version) ;;
  java) tool javac; tool mvn; version=$(javac -version 2>&1) ;;
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
      go) (cd "$source" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -o "$folder/client" .) ;;
      node)
        cp "$source"/package.json "$source"/package-lock.json "$source"/*.js "$folder/" &&
          (cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts)
        ;;
      java)
        mvn --batch-mode --quiet --file "$source/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" &&
          javac -encoding UTF-8 -cp "$folder/lib/*" -d "$folder/classes" "$source"/*.java
        ;;
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
