#!/bin/sh
# as-version.sh VERSION FOLDER SUITE…: the packages of these sources into FOLDER, as if they were that version, and wheels for
# the Python of Debian 13. Upgrades are tried from them as long as there is no release before this one.
set -eu
cd "$(dirname "$0")/../.."
version=$1 folder=$2; shift 2
here=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tar --create --exclude=callback/target --exclude=__pycache__ \
  agent callback docs/command-line.md docs/configuration.md packaging requirements tools CHANGELOG.md LICENSE README.md pyproject.toml |
  tar --extract --directory "$work"
ln -s "$here/.venv" "$work/.venv"
cd "$work"
sed -i "s/^__version__ = .*/__version__ = \"$version\"/" agent/kquota/__init__.py
# The first version that the file names is the plug-in's own.
sed -i "0,/<version>.*<\/version>/s//<version>$version<\/version>/" callback/pom.xml
tools/maven/mvn -q -B -ntp -f callback/pom.xml package -DskipTests
# Completions are made by the sources here, not by those that .venv leads to.
PYTHONPATH="$work/agent" KQUOTA_DIST="$work/dist" tools/packages/build.sh "$@"
.venv/bin/python -m tools.wheels agent 3.13 "$work/dist/agent-wheels/3.13"

cd "$here"
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work/dist" "$folder"
