# Sourced by the other scripts: where things that are worth keeping between runs live.

# The cache folder, made if it is not there: $MILLRACE_CACHE, else /var/cache/millrace where that can
# be written (root, CI), else ~/.cache/millrace.
millrace_cache() {
  local folder=${MILLRACE_CACHE:-}
  if [ -z "$folder" ]; then
    if mkdir -p /var/cache/millrace 2>/dev/null && [ -w /var/cache/millrace ]; then
      folder=/var/cache/millrace
    else
      folder=${HOME:?}/.cache/millrace
    fi
  fi
  mkdir -p "$folder"
  (cd "$folder" && pwd -P)
}
