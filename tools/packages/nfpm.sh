#!/bin/sh
# Prints the path of nfpm in the one version that the packages are built with; builds it the first time.
set -eu
# The newest that can be installed with `go install`: later ones replace modules of theirs.
version=2.44.0
folder="${KQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kquota}/nfpm-$version"
if [ ! -x "$folder/nfpm" ]; then
  echo "Building nfpm $version" >&2
  mkdir -p "$folder"
  GOBIN="$folder" go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@v$version" >&2
fi
echo "$folder/nfpm"
