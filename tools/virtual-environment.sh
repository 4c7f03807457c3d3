#!/bin/sh
# virtual-environment.sh [fleet|pipeline|docs|mutants|release]: makes .venv, or the environment of that name, from the
# locked requirements; does nothing when it is already made from these very locks.
set -eu
cd "$(dirname "$0")/.."

# Ansible, Spark, Sphinx and others have environments of their own: their requirements are not the agent's.
ours="" # the distributions of this repository that are installed there, by folder
case ${1:-} in
  '') venv=.venv lock=requirements/dev.txt ours=. ;;
  fleet) venv=.venv-fleet lock=requirements/fleet.txt ;;
  pipeline) venv=.venv-pipeline lock=requirements/pipeline-dev.txt ours=". ./spark" ;;
  docs) venv=.venv-docs lock=requirements/docs.txt ;;
  mutants) venv=.venv-mutants lock=requirements/mutants.txt ours=. ;;
  release) venv=.venv-release lock=requirements/release.txt ;;
  *) echo "usage: $0 [fleet|pipeline|docs|mutants|release]" >&2; exit 2 ;;
esac

# Tests run in parallel, and each make target needs its environment: one makes it, the others wait.
exec 9<"$lock"
flock 9

made_from() { # the inputs of the environment
  python3 -V
  cat requirements/build.txt "$lock"
  for folder in $ours; do cat "$folder/pyproject.toml"; done
}
wanted=$(made_from | sha256sum | cut -d' ' -f1)
[ "$(cat $venv/.made-from 2>/dev/null || true)" = "$wanted" ] && exit 0

# The target of a link belongs to another copy of the sources, and would be emptied.
[ ! -L $venv ] || { echo "$venv is a link, and not made from these locks: remove it, then run this again" >&2; exit 1; }

echo "Making $venv from the locked requirements"
python3 -m venv --clear $venv
pip="$venv/bin/python -m pip --disable-pip-version-check install --quiet"
$pip --require-hashes -r requirements/build.txt
# Source distributions among them are built with the locked build tools, not with the newest ones.
$pip --require-hashes --no-build-isolation -r "$lock"
for folder in $ours; do $pip --no-deps --no-build-isolation --editable "$folder"; done
echo "$wanted" > $venv/.made-from
