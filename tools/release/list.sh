#!/bin/sh
# list.sh FOLDER: FOLDER/SHA256SUMS, with the checksum of each file below the folder, but of no release in it. A signature of the former
# list is removed.
set -eu
cd "$1"
rm -f SHA256SUMS.sig
find . -type f ! -path './SHA256SUMS*' ! -path './release*/*' -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum > SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
