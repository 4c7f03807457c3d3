#!/bin/sh
# build.sh [SUITE…]: builds the .deb of the agent for each Debian suite, and the one of the plug-in, into
# dist/, or the folder that KQUOTA_DIST names.
# Without arguments for the suite of this machine; others are built in a root directory of their own, by root.
set -eu
cd "$(dirname "$0")/../.."

own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
suites=${*:-$own}
others="" # of another suite than this machine's
for suite in $suites; do [ "$suite" = "$own" ] || others=other-suites; done
# shellcheck disable=SC2086  # one word or none
tools/system-packages.sh packages $others
nfpm=$(pwd)/.venv/bin/nfpm

KQUOTA_JAR_VERSION=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py)
KQUOTA_JAR="callback/target/kquota-callback-$KQUOTA_JAR_VERSION.jar"
KQUOTA_ARCH=$(dpkg --print-architecture)
# The same sources give the same packages: everything bears the time of the last change.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export KQUOTA_JAR_VERSION KQUOTA_JAR KQUOTA_ARCH SOURCE_DATE_EPOCH
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dist=${KQUOTA_DIST:-dist}
mkdir -p "$dist"

wheel() {
  .venv/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir "$1" .
}

texts() {
  tools/packages/manual.sh "$work/man"
  mkdir -p "$1/usr/share/man/man1" "$1/usr/share/man/man5" "$1/completions"
  gzip -9nc "$work/man/kquota.1" > "$1/usr/share/man/man1/kquota.1.gz"
  gzip -9nc "$work/man/kquota-agent.yml.5" > "$1/usr/share/man/man5/kquota-agent.yml.5.gz"
  env _KQUOTA_COMPLETE=source_bash .venv/bin/kquota > "$1/completions/kquota"
  env _KQUOTA_COMPLETE=source_zsh .venv/bin/kquota > "$1/completions/_kquota"
}

agent() {
  suite=$1
  case $suite in
    bookworm) debian=12 KQUOTA_PYTHON=3.11 KQUOTA_NEXT_PYTHON=3.12 ;;
    trixie) debian=13 KQUOTA_PYTHON=3.13 KQUOTA_NEXT_PYTHON=3.14 ;;
    *) echo "kquota is packaged for Debian 12 (bookworm) and 13 (trixie), not for '$suite'" >&2; exit 2 ;;
  esac
  KQUOTA_STAGE="$work/$suite/stage"
  KQUOTA_VERSION=$KQUOTA_JAR_VERSION
  KQUOTA_RELEASE="1~deb$debian"
  export KQUOTA_STAGE KQUOTA_VERSION KQUOTA_RELEASE KQUOTA_PYTHON KQUOTA_NEXT_PYTHON
  echo "Building kquota $KQUOTA_VERSION for Debian $debian"
  # Source distributions are built later, by the suite's own compiler.
  for lock in build agent; do
    tools/packages/download.sh "$KQUOTA_PYTHON" "$work/$suite/$lock" "requirements/$lock.txt" --no-binary=systemd-python
  done
  wheel "$work/$suite/agent"
  # To where the suite sees them.
  cp tools/packages/build-wheels.sh tools/packages/stage-agent.sh packaging/nfpm/agent/left-out.txt "$work/"
  in_suite="tools/packages/in-suite.sh $suite $work"
  $in_suite "$work/build-wheels.sh" "$work/$suite" "$work/$suite/wheels"
  $in_suite "$work/stage-agent.sh" "$work/$suite" "$KQUOTA_STAGE"
  texts "$KQUOTA_STAGE"
  find "$KQUOTA_STAGE" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
  "$nfpm" package --config packaging/nfpm/agent.yml --packager deb --target "$dist/"
}

for suite in $suites; do agent "$suite"; done

unset KQUOTA_RELEASE
export KQUOTA_VERSION="$KQUOTA_JAR_VERSION"
"$nfpm" package --config packaging/nfpm/callback.yml --packager deb --target "$dist/"
