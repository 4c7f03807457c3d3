#!/bin/sh
# pipeline-wheels.sh PYTHON_VERSION FOLDER: what the role kquota_pipeline installs, into FOLDER/pipeline-wheels (the locked
# wheels for that Python, kquota's own among them, and what they are built with) and FOLDER/pipeline-jars.
set -eu
cd "$(dirname "$0")/../.."
python_version=$1 folder=$2
wheels="$folder/pipeline-wheels"
machine=$(uname -m)
rm -rf "$wheels" "$folder/pipeline-jars"
for lock in build pipeline; do
  .venv-pipeline/bin/python -m pip --disable-pip-version-check download --quiet --no-deps --require-hashes \
    --no-build-isolation --only-binary=:all: --no-binary=pyspark \
    --python-version "$python_version" --implementation cp --abi "cp$(echo "$python_version" | tr -d .)" \
    --abi abi3 --abi none --platform any \
    --platform "manylinux_2_34_$machine" --platform "manylinux_2_28_$machine" \
    --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --dest "$wheels/$lock" --requirement "requirements/$lock.txt"
done
.venv-pipeline/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
  --wheel-dir "$wheels/pipeline" .
.venv-pipeline/bin/kquota-pipeline jars --to "$folder/pipeline-jars" >/dev/null
