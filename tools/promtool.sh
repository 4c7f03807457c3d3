#!/bin/sh
# Prints the path of promtool, out of Debian's package of Prometheus. The package is not installed: that would start
# a server on this machine.
set -eu
command -v promtool && exit 0
# apt serves one at a time, and so does this: see tools/system-packages.sh.
exec 9<"$(dirname "$0")/system-packages.sh"
flock 9
folder="${KQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kquota}/promtool"
if [ ! -x "$folder/promtool" ]; then
  echo "Fetching promtool" >&2
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (
    cd "$work"
    # A machine whose package lists were never fetched, or are old, needs them first.
    apt-get download -q prometheus >&2 || { apt-get update -q >&2 && apt-get download -q prometheus >&2; }
    dpkg-deb --extract prometheus_*.deb root
  )
  mv "$work/root/usr/bin/promtool" "$folder/promtool"
fi
echo "$folder/promtool"
