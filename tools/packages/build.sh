#!/bin/sh
# build.sh [DISTRIBUTION…]: builds the package of the agent for each distribution (bookworm, trixie, noble, el9, el10), and those of the
# plug-in, into dist/, or the folder that KQUOTA_DIST names; for machines of the kind of this one, or with KQUOTA_ARCH=arm64 (or amd64).
# Without arguments for the suite of this machine. What another suite has to compile is compiled in its root directory, by root.
set -eu
cd "$(dirname "$0")/../.."

own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
suites=${*:-$own}
also="" # what they need more than a package for this machine's suite
for suite in $suites; do
  case $suite in el9) compiled_in=bookworm ;; noble | el10) compiled_in=$own ;; *) compiled_in=$suite ;; esac
  [ "$compiled_in" = "$own" ] || also="$also other-suites"
  case $suite in el*) also="$also rpm" ;; esac
done
# shellcheck disable=SC2086  # words
tools/system-packages.sh packages $also
nfpm=$(pwd)/.venv/bin/nfpm

KQUOTA_JAR_VERSION=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py)
KQUOTA_JAR="callback/target/kquota-callback-$KQUOTA_JAR_VERSION.jar"
KQUOTA_ARCH=${KQUOTA_ARCH:-$(dpkg --print-architecture)}
case $KQUOTA_ARCH in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) machine=$(uname -m) ;; esac
# The same sources give the same packages: everything bears the time of the last change.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
of_project() { .venv/bin/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print($1)"; }
KQUOTA_HOME=$(of_project "p['urls']['Homepage']")
KQUOTA_MAINTAINER=$(of_project "'{name} <{email}>'.format_map(p['authors'][0])")
export KQUOTA_JAR_VERSION KQUOTA_JAR KQUOTA_ARCH SOURCE_DATE_EPOCH KQUOTA_HOME KQUOTA_MAINTAINER
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dist=${KQUOTA_DIST:-dist}
mkdir -p "$dist"

wheel() {
  .venv/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir "$1" .
}

changes() { # PACKAGE VERSION: prints the change log that Debian asks for
  printf '%s (%s) stable; urgency=medium\n\n  * See %s\n\n -- %s  %s\n' "$1" "$2" "$KQUOTA_HOME" "$KQUOTA_MAINTAINER" \
    "$(LC_ALL=C date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")" | gzip -9n
}

texts() {
  tools/packages/manual.sh "$work/man"
  mkdir -p "$1/usr/share/man/man1" "$1/usr/share/man/man5" "$1/completions"
  gzip -9nc "$work/man/kquota.1" > "$1/usr/share/man/man1/kquota.1.gz"
  gzip -9nc "$work/man/kquota-agent.yml.5" > "$1/usr/share/man/man5/kquota-agent.yml.5.gz"
  env _KQUOTA_COMPLETE=source_bash .venv/bin/kquota > "$1/completions/kquota"
  env _KQUOTA_COMPLETE=source_zsh .venv/bin/kquota > "$1/completions/_kquota"
}

agent() { # DISTRIBUTION
  # The format, the release, the Python and the next one, the Debian suite that compiles for it (- if none has that Python), and where the
  # distribution has its own python3-systemd (- if not for that Python).
  case $1 in
    bookworm) set -- deb 1~deb12 3.11 3.12 bookworm /usr/lib/python3/dist-packages/systemd ;;
    trixie) set -- deb 1~deb13 3.13 3.14 trixie /usr/lib/python3/dist-packages/systemd ;;
    noble) set -- deb 1~ubuntu24.04 3.12 3.13 - /usr/lib/python3/dist-packages/systemd ;;
    el9) set -- rpm 1.el9 3.11 3.12 bookworm - ;;
    el10) set -- rpm 1.el10 3.12 3.13 - /usr/lib64/python3.12/site-packages/systemd ;;
    *) echo "kquota is packaged for bookworm, trixie, noble, el9 and el10 (Debian, Ubuntu, RHEL and its kin), not for '$1'" >&2; exit 2 ;;
  esac
  format=$1 KQUOTA_RELEASE=$2 KQUOTA_PYTHON=$3 next=$4 suite=$5 systemd=$6
  KQUOTA_VERSION=$KQUOTA_JAR_VERSION
  here="$work/$KQUOTA_RELEASE"
  KQUOTA_STAGE="$here/stage"
  if [ "$suite" != - ] && [ "$machine" = "$(uname -m)" ]; then
    systemd=""
    case $format in deb) KQUOTA_SYSTEMD=libsystemd0 ;; rpm) KQUOTA_SYSTEMD=systemd-libs ;; esac
  elif [ "$systemd" != - ]; then
    # For that python3 alone; the next one ends it.
    case $format in deb) KQUOTA_SYSTEMD="python3-systemd, python3 (<< $next~)" ;; rpm) KQUOTA_SYSTEMD=python3-systemd ;; esac
  else
    echo "$KQUOTA_RELEASE has no python3-systemd for Python $KQUOTA_PYTHON: build its package for $machine on such a machine" >&2; exit 2
  fi
  export KQUOTA_STAGE KQUOTA_VERSION KQUOTA_RELEASE KQUOTA_PYTHON KQUOTA_SYSTEMD
  echo "Building kquota $KQUOTA_VERSION-$KQUOTA_RELEASE for $machine"
  mkdir -p "$here"
  # systemd-python is there only as sources, which the suite's own compiler builds later; or it is the distribution's.
  sed "${systemd:+/^systemd-python==/,/[^\\\\]\$/d}" requirements/agent.txt > "$here/agent.txt"
  MACHINE=$machine tools/packages/download.sh "$KQUOTA_PYTHON" "$here/agent" "$here/agent.txt" --no-binary=systemd-python
  tools/packages/download.sh "$KQUOTA_PYTHON" "$here/build" requirements/build.txt
  wheel "$here/agent"
  # To where the suite sees them.
  cp tools/packages/build-wheels.sh tools/packages/stage-agent.sh tools/packages/target.sh packaging/nfpm/agent/left-out.txt "$work/"
  in_suite=""
  [ "$suite" = - ] || in_suite="tools/packages/in-suite.sh $suite $work"
  $in_suite "$work/build-wheels.sh" "$here" "$here/wheels"
  $in_suite "$work/stage-agent.sh" "$here" "$KQUOTA_STAGE" "$KQUOTA_PYTHON" "$machine" "$systemd"
  texts "$KQUOTA_STAGE"
  changes kquota "$KQUOTA_VERSION-$KQUOTA_RELEASE" > "$KQUOTA_STAGE/changelog.gz"
  find "$KQUOTA_STAGE" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
  "$nfpm" package --config packaging/nfpm/agent.yml --packager "$format" --target "$dist/"
}

formats=""
for suite in $suites; do
  agent "$suite"
  case " $formats " in *" $format "*) ;; *) formats="$formats $format" ;; esac
done

unset KQUOTA_RELEASE
export KQUOTA_VERSION="$KQUOTA_JAR_VERSION" KQUOTA_CHANGES="$work/changelog.gz"
changes kquota-callback "$KQUOTA_VERSION" > "$KQUOTA_CHANGES"
touch --date "@$SOURCE_DATE_EPOCH" "$KQUOTA_CHANGES"
for format in $formats; do "$nfpm" package --config packaging/nfpm/callback.yml --packager "$format" --target "$dist/"; done
