#!/bin/sh
# target.sh PYTHON_VERSION MACHINE: prints the options with which pip chooses wheels for that Python on such machines.
set -eu
version=$1 machine=$2
printf ' %s' --only-binary=:all: --python-version "$version" --implementation cp --abi "cp$(echo "$version" | tr -d .)" --abi abi3 --abi none \
  --platform any --platform "manylinux_2_34_$machine" --platform "manylinux_2_28_$machine" \
  --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" --platform "linux_$machine"
