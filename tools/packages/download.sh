#!/bin/sh
# download.sh PYTHON_VERSION FOLDER LOCK [OPTION…]: the locked requirements for that Python into FOLDER, as wheels. The options are pip's.
# Uses .venv, or the Python that PYTHON names. For machines of the kind of this one, or of the one that MACHINE names.
set -eu
version=$1 folder=$2 lock=$3; shift 3
here=$(dirname "$0")
# shellcheck disable=SC2046  # options without spaces
exec "${PYTHON:-$here/../../.venv/bin/python}" -m pip --disable-pip-version-check download --quiet --no-deps --require-hashes \
  --no-build-isolation $("$here/target.sh" "$version" "${MACHINE:-$(uname -m)}") "$@" --dest "$folder" --requirement "$lock"
