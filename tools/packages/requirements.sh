#!/bin/sh
# Installs the missing prerequisites of building the packages; reports them and stops if it may not.
# Suites that are not this machine's own are named as arguments.
set -eu

# apt serves one at a time; see there.
exec 9<"$(dirname "$0")/../system-packages.sh"
flock 9

own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
missing=""
need() { missing="$missing $1"; }
# The agent runs on Debian's own Python, whatever else is on PATH.
[ -x /usr/bin/python3 ] || need python3
/usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
/usr/bin/python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ||
  need python3-dev
command -v mandoc >/dev/null || need mandoc
command -v lowdown >/dev/null || need lowdown
for suite in "$@"; do
  [ "$suite" = "$own" ] || command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] || need debootstrap
done

if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "Something is missing here. As root, run this one line, then make packages again:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
  fi
  echo "Installing from Debian:$missing"
  apt-get update -q >/dev/null
  # shellcheck disable=SC2086  # a list of words on purpose
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >/dev/null 9<&-
fi
