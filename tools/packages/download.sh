#!/bin/sh
# download.sh PYTHON_VERSION FOLDER: the locked requirements of the agent for that Python into FOLDER/agent, and what they
# are built with into FOLDER/build.
# Wheels where there are any; source distributions are built later, by the suite's own compiler.
set -eu
cd "$(dirname "$0")/../.."
python_version=$1 folder=$2
machine=$(uname -m)
for lock in build agent; do
  .venv/bin/python -m pip --disable-pip-version-check download --quiet --no-deps --require-hashes \
    --no-build-isolation --only-binary=:all: --no-binary=systemd-python \
    --python-version "$python_version" --implementation cp --abi "cp$(echo "$python_version" | tr -d .)" \
    --abi abi3 --abi none --platform any \
    --platform "manylinux_2_34_$machine" --platform "manylinux_2_28_$machine" \
    --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --dest "$folder/$lock" --requirement "requirements/$lock.txt"
done
