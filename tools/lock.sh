#!/bin/sh
# Locks every Python requirement, and all that Maven resolves, with version and hashes, without download addresses.
set -eu
cd "$(dirname "$0")/.."
compile() {
  out=$1; shift
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-emit-index-url --no-emit-find-links --no-annotate "$@" --output-file "requirements/$out"
}
compile build.txt requirements/build.in
compile agent.txt pyproject.toml --extra agent
compile dev.txt pyproject.toml --extra agent --group dev
compile fleet.txt --group fleet
compile docs.txt requirements/docs.in
compile release.txt requirements/release.in
compile prose.txt requirements/prose.in
compile mutants.txt pyproject.toml requirements/mutants.in --extra agent
# kquota itself comes from these sources.
compile pipeline.txt spark/pyproject.toml --no-emit-package kquota
compile pipeline-dev.txt pyproject.toml spark/pyproject.toml --extra agent --group spark/pyproject.toml:dev --no-emit-package kquota
tools/maven/lock.sh
