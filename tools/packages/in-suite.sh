#!/bin/sh
# in-suite.sh SUITE FOLDER COMMAND…: runs a command in that Debian suite's root directory, where there is nothing of this
# machine but FOLDER, at the same place; or right here, on a machine of that suite.
set -eu
here=$(dirname "$0")
suite=$1 folder=$2; shift 2
if [ "$suite" = "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" ]; then
  exec "$@"
fi
root=$("$here/suite-root.sh" "$suite" build)
mkdir -p "$root$folder"
unshare --mount sh -c 'mount --bind "$2" "$1$2" && root=$1 && shift 2 && exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin "$@"' \
  sh "$root" "$folder" "$@"
rmdir "$root$folder"
