#!/bin/sh
# collection.sh SOURCE FOLDER: the Ansible collection of the sources in SOURCE, into FOLDER; needs SOURCE_DATE_EPOCH.
set -eu
cd "$(dirname "$0")/../.."
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv-fleet/bin/ansible-galaxy collection build --output-path "$work" "$1" >/dev/null
name=$(basename "$work"/*.tar.gz)
mkdir "$work/collection"
tar --extract --gzip --file "$work/$name" --directory "$work/collection"
python3 tools/release/collection.py "$work/collection"
# Named one by one: ansible-galaxy looks for MANIFEST.json, and finds no ./MANIFEST.json.
(cd "$work/collection" && ls -A) | tools/release/archive.sh "$work/collection" --files-from=- > "$2/$name"
