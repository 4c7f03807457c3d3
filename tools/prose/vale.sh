#!/bin/sh
# vale.sh ARGUMENTS: runs Vale. The first time, builds the version that go.mod and go.sum lock, into the user's cache.
# Debian does not package it, the Python package of its name downloads a program without a hash, and no locked wheel has it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache="${KQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kquota}/vale"
vale="$cache/$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-16)"

build() {
  scratch="$cache/building"
  rm -rf "$scratch" # of a build that was killed
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' HUP INT TERM
  mkdir "$scratch"
  export GOPATH="$scratch/path" GOCACHE="$scratch/cache" GOTOOLCHAIN=local GOFLAGS="-mod=readonly -modcacherw"
  go=go
  # Debian 12 and 13 have a Go that is older than go.mod allows, or none.
  if ! (cd "$here" && go list -m >/dev/null 2>&1); then
    "$here/../../.venv/bin/python" -m pip --disable-pip-version-check install --quiet --require-hashes \
      --target "$scratch" -r "$here/../../requirements/prose.txt"
    go="$scratch/go/bin/go"
  fi
  echo "Building Vale from its locked sources" >&2
  (cd "$here" && "$go" build -trimpath -o "$vale.part" github.com/vale-cli/vale/v3/cmd/vale 2>"$scratch/log") ||
    { cat "$scratch/log" >&2; exit 1; }
  mv "$vale.part" "$vale"
}

if [ ! -x "$vale" ]; then
  mkdir -p "$cache"
  # One builds, others wait.
  exec 9>"$cache/lock"
  flock 9
  [ -x "$vale" ] || (build)
  exec 9<&-
fi
exec "$vale" "$@"
