#!/bin/sh
# suite-root.sh SUITE PURPOSE: prints the path of a root directory of that Debian suite; makes it the first time.
# PURPOSE is build (with what the agent is built with) or run (with what its package depends on, and no more).
set -eu
suite=$1 purpose=$2
case $purpose in
  build) packages=systemd,python3,python3-venv,python3-dev,gcc,libc6-dev,pkg-config,libsystemd-dev ;;
  run) packages=systemd,python3 ;;
  *) echo "PURPOSE is build or run, not $purpose" >&2; exit 2 ;;
esac
root="${KQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kquota}/suites/$suite-$purpose"
if [ ! -d "$root" ]; then
  [ "$(id -u)" = 0 ] || { echo "A root directory of $suite can be made by root only" >&2; exit 1; }
  echo "Making a root directory of Debian $suite" >&2
  mkdir -p "$(dirname "$root")"
  rm -rf "$root.part"
  # shellcheck disable=SC2086  # no mirror named: debootstrap's own default
  PATH="$PATH:/usr/sbin" debootstrap --variant=minbase --include="$packages" \
    "$suite" "$root.part" ${KQUOTA_DEBIAN_MIRROR:-} >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; exit 1; }
  mv "$root.part" "$root"
fi
echo "$root"
