#!/bin/sh
# download.sh PYTHON_VERSION FOLDER LOCK [OPTION…]: the locked requirements for that Python into FOLDER, as wheels. The options are pip's.
# Uses .venv, or the Python that PYTHON names.
set -eu
python_version=$1 folder=$2 lock=$3; shift 3
machine=$(uname -m)
exec "${PYTHON:-$(dirname "$0")/../../.venv/bin/python}" -m pip --disable-pip-version-check download --quiet --no-deps --require-hashes \
  --no-build-isolation --only-binary=:all: "$@" \
  --python-version "$python_version" --implementation cp --abi "cp$(echo "$python_version" | tr -d .)" \
  --abi abi3 --abi none --platform any \
  --platform "manylinux_2_34_$machine" --platform "manylinux_2_28_$machine" \
  --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
  --dest "$folder" --requirement "$lock"
