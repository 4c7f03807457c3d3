#!/bin/sh
# build.sh FOLDER: everything that a release consists of, into FOLDER. The same sources give the same bytes.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bom_of_python() { # LOCK NAME: what an environment made from the lock consists of
  .venv-release/bin/cyclonedx-py requirements "requirements/$1.txt" --output-reproducible --of JSON \
    --output-file "$out/$2.cdx.json" >/dev/null
}

bom_of_java() { # FOLDER_OF_POM NAME
  mkdir "$work/$2"
  cp "$1/pom.xml" "$work/$2/"
  tools/maven/mvn -q -B -ntp -f "$work/$2/pom.xml" org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom \
    -DincludeBomSerialNumber=false -DoutputFormat=json -DoutputName=bom \
    -Dproject.build.outputTimestamp="$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
  cp "$work/$2/target/bom.json" "$out/$2.cdx.json"
}

# All that is committed, and nothing else.
mkdir "$work/source"
git archive HEAD | tar --extract --directory "$work/source"

echo "The plug-in"
tools/maven/mvn -q -B -ntp -f callback/pom.xml clean package -DskipTests
cp "callback/target/kquota-callback-$version.jar" "$out/"

echo "The packages"
KQUOTA_DIST=$out tools/packages/build.sh bookworm trixie noble el9 el10

echo "The sources and the wheels"
hatchling="$(pwd)/.venv/bin/hatchling"
for folder in . spark; do (cd "$work/source/$folder" && "$hatchling" build --directory "$out" >/dev/null); done

echo "The collection"
tools/release/collection.sh "$work/source" "$out"

echo "The documentation"
make --no-print-directory docs >/dev/null
tools/release/archive.sh build --transform "s,^site,kquota-$version-docs," --exclude .buildinfo site > "$out/kquota-$version-docs.tar.gz"

echo "The bills of materials"
bom_of_python agent kquota-agent
bom_of_python pipeline kquota-pipeline
bom_of_java callback kquota-callback
bom_of_java spark/kquota_pipeline/jars kquota-pipeline-jars

tools/release/list.sh "$out"
