#!/bin/sh
# release.sh: a release into dist/release, built twice; fails where the two differ, or where a checker finds something.
set -eu
cd "$(dirname "$0")/../.."
[ -z "$(git status --porcelain)" ] || { echo "There are changes that are not committed: a release is built from commits." >&2; exit 1; }
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py)
if grep -q "^## \[$version\] - unreleased" CHANGELOG.md; then
  echo "note: $version is unreleased in CHANGELOG.md" >&2
fi

# At two places with names of different lengths, so that neither can be in the results.
first=dist/release second=dist/release-built-again
rm -rf $first $second
tools/release/build.sh $first
tools/release/check.sh $first
echo "Everything again"
tools/release/build.sh $second
if ! diff $first/SHA256SUMS $second/SHA256SUMS; then
  echo "The two builds differ, see above; they are in $first and $second." >&2
  exit 1
fi
rm -rf $second
if [ -n "${KQUOTA_RELEASE_KEY:-}" ]; then
  tools/release/sign.sh $first
else
  echo "note: KQUOTA_RELEASE_KEY names no key, so that $first/SHA256SUMS is not signed" >&2
fi
echo "The same bytes twice. In $first:"
(cd $first && stat --format='%10s  %n' ./* | sed 's,\./,,')
echo "To verify it, there: sha256sum --check SHA256SUMS, and the signature as in docs/packages.md"
