#!/bin/sh
# system-packages.sh [PURPOSE…]: installs the Debian packages that the make targets need and that are missing here; reports them and
# stops where it may not. Purposes: fleet, for throw-away hosts with systemd; browser, to look at pages and photograph them; packages, to build
# the .deb of this machine's Debian suite; other-suites, also those of others; rpm, to read and install an .rpm; release, to check packages.
set -eu

# Tests run in parallel, and apt serves one at a time. Its callers here hold this lock.
exec 9<"$0"
flock 9

missing=""
need() { missing="$missing $1"; }
# Of root's commands, whose directories an ordinary user may not have on PATH.
have() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

# Checked by the needed program, not by package name: a JDK or Python from elsewhere serves as well.
command -v gcc >/dev/null || need gcc
command -v pkg-config >/dev/null || need pkg-config
pkg-config --exists libsystemd 2>/dev/null || need libsystemd-dev
command -v python3 >/dev/null || need python3
python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
python3 -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
  2>/dev/null || need python3-dev
command -v javac >/dev/null || need default-jdk-headless
command -v mvn >/dev/null || need maven
have mkfs.ext4 || need e2fsprogs
have mkfs.xfs || need xfsprogs
have losetup || need mount
command -v strace >/dev/null || need strace

need_fleet() {
  have debootstrap || need debootstrap
  have systemd-nspawn || need systemd-container
  have ip || need iproute2
  have nsenter || need util-linux
  have zstd || need zstd
  have ssh || need openssh-client
  have ssh-keygen || need openssh-client
  have xfs_io || need xfsprogs
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || need debian-archive-keyring
}

need_packages() {
  # The agent runs on Debian's own Python, whatever else is on PATH.
  [ -x /usr/bin/python3 ] || need python3
  /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
  /usr/bin/python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || need python3-dev
  have mandoc || need mandoc
  have lowdown || need lowdown
}

for purpose; do
  case $purpose in
    fleet) need_fleet ;;
    browser) command -v chromium >/dev/null || need chromium ;;
    packages) need_packages ;;
    other-suites) have debootstrap || need debootstrap ;;
    rpm) have rpm || need rpm ;;
    release) for checker in lintian rpmlint; do have $checker || need $checker; done ;;
    *) echo "usage: $0 [fleet] [browser] [packages] [other-suites] [rpm] [release]" >&2; exit 2 ;;
  esac
done

if [ -n "$missing" ]; then
  line="apt-get install -y --no-install-recommends$missing"
  if ! command -v apt-get >/dev/null; then
    echo "kquota needs these Debian packages, or what they contain:$missing" >&2
    exit 1
  elif [ "$(id -u)" = 0 ]; then
    as_root=""
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo"
  else
    echo "Something is missing here. As root, run this one line, then the same make target again:" >&2
    echo "  apt-get update && $line" >&2
    exit 1
  fi
  echo "Installing from Debian:$missing"
  $as_root apt-get update -q >/dev/null
  # shellcheck disable=SC2086  # a list of words on purpose
  $as_root env DEBIAN_FRONTEND=noninteractive $line >/dev/null 9<&- # the processes that it starts need not hold the lock
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "python3 is $(python3 -V 2>&1), kquota needs Python 3.11 or later" >&2
  exit 1
}
