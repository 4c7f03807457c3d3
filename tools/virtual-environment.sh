#!/bin/sh
# Makes .venv from the locked requirements; does nothing when it is already made from these very locks.
set -eu
cd "$(dirname "$0")/.."

locks="requirements/build.txt requirements/dev.txt"
# shellcheck disable=SC2086  # a list of words on purpose
wanted=$( (python3 -V; cat $locks pyproject.toml) | sha256sum | cut -d' ' -f1)
[ "$(cat .venv/.made-from 2>/dev/null || true)" = "$wanted" ] && exit 0

echo "Making .venv from the locked requirements"
python3 -m venv --clear .venv
pip=".venv/bin/python -m pip --disable-pip-version-check install --quiet"
$pip --require-hashes -r requirements/build.txt
# Source distributions among them are built with the locked build tools, not with what is newest today.
$pip --require-hashes --no-build-isolation -r requirements/dev.txt
$pip --no-deps --no-build-isolation --editable .
echo "$wanted" > .venv/.made-from
