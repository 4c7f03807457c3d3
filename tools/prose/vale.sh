#!/bin/sh
# vale.sh ARGUMENTS: runs Vale. The first time, builds the version that go.mod and go.sum lock, into the user's cache.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
locked=$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-16)
vale="${KQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kquota}/vale/$locked"

build() {
  scratch=$(mktemp -d)
  trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
  export GOPATH="$scratch/path" GOCACHE="$scratch/cache" GOTOOLCHAIN=local GOFLAGS=-mod=readonly
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
  mkdir -p "${vale%/*}"
  # One builds, others wait.
  exec 9>"${vale%/*}/lock"
  flock 9
  [ -x "$vale" ] || (build)
  exec 9<&-
fi
exec "$vale" "$@"
