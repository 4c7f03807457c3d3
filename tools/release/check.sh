#!/bin/sh
# check.sh FOLDER: fails where one of the field's own checkers, or a first use of what is in the folder, finds something.
set -eu
cd "$(dirname "$0")/../.."
out=$(cd "$1" && pwd)
here=$(pwd)
tools=$here/.venv-release/bin
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# quietly COMMAND…: what it prints appears only if it fails.
quietly() { "$@" >"$work/printed" 2>&1 || { cat "$work/printed" >&2; echo "$*: failed, see above" >&2; exit 1; }; }

echo "Packages: lintian, rpmlint"
# What stays of their findings has its reason in packaging/lintian and in rpmlint.toml. malformed-deb-archive: lintian of Debian 12 does
# not know the compression that dpkg of Debian 12 reads.
quietly lintian --allow-root --fail-on error,warning --suppress-tags malformed-deb-archive "$out"/*.deb
quietly rpmlint --strict --config tools/release/rpmlint.toml "$out"/*.rpm

echo "Wheels and sources: twine, check-wheel-contents, and an empty environment"
quietly "$tools/twine" check --strict "$out"/*.whl "$out/kquota-$version.tar.gz" "$out/kquota_pipeline-$version.tar.gz"
quietly "$tools/check-wheel-contents" "$out"/*.whl
# With the locked requirements, as the metadata asks for them.
installed() { # LOCK PROGRAM WHEEL: installs the wheel, and asks the program and each of its commands for help
  quietly .venv/bin/python -m pip --disable-pip-version-check wheel --no-deps --no-build-isolation --require-hashes \
    --wheel-dir "$work/$1" --requirement "requirements/$1.txt"
  cp "$out"/kquota-"$version"-*.whl "$work/$1/"
  python3 -m venv "$work/$1-environment"
  quietly "$work/$1-environment/bin/pip" --disable-pip-version-check install --no-index --find-links "$work/$1" "$3"
  program="$work/$1-environment/bin/$2"
  quietly "$program" --help
  commands=$(sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' "$work/printed")
  [ -n "$commands" ] || { echo "$2 --help lists no commands" >&2; exit 1; }
  for command in $commands; do quietly "$program" "$command" --help; done
}
installed agent kquota "$out"/kquota-"$version"-*.whl
installed pipeline kquota-pipeline "$out"/kquota_pipeline-"$version"-*.whl

echo "Collection: galaxy-importer, and each play by its full name"
printf '[galaxy-importer]\nRUN_ANSIBLE_LINT = False\n' > "$work/importer.cfg" # make lint runs it, with the tests' roles
export ANSIBLE_HOME="$work/ansible" ANSIBLE_COLLECTIONS_PATH="$work/collections"
PATH="$tools:$PATH"
cd "$work"
GALAXY_IMPORTER_CONFIG="$work/importer.cfg" quietly "$tools/python" -m galaxy_importer.main "$out/kquota-kquota-$version.tar.gz"
quietly ansible-galaxy collection install --offline -p "$work/collections" "$out/kquota-kquota-$version.tar.gz"
for play in "$work"/collections/ansible_collections/kquota/kquota/playbooks/*.yml; do
  quietly ansible-playbook --inventory localhost, --syntax-check "kquota.kquota.$(basename "$play" .yml)"
done
