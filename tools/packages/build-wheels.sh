#!/bin/sh
# build-wheels.sh DOWNLOADS WHEELS [PYTHON]: wheels of all that is in DOWNLOADS/agent into WHEELS. Those of source
# distributions are made by PYTHON, /usr/bin/python3 by default, with the content of DOWNLOADS/build. Uses no network.
set -eu
export PIP_ROOT_USER_ACTION=ignore
# No trace of the folder, of another name each time, in which the compiler runs.
export CFLAGS="-O2 -g0" LDFLAGS="-s -Wl,--build-id=none"
downloads=$1 wheels=$2 python=${3:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
pip install --no-index --no-deps "$downloads"/build/*.whl
mkdir -p "$wheels"
for source in "$downloads"/agent/*.tar.gz; do
  [ ! -e "$source" ] || pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$wheels" "$source"
done
cp "$downloads"/agent/*.whl "$wheels/"
