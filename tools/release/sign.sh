#!/bin/sh
# sign.sh FOLDER: signs FOLDER/SHA256SUMS with the key in the file KQUOTA_RELEASE_KEY: a private key of OpenSSH, or a public one whose
# private key ssh-agent or a token has.
set -eu
[ -n "${KQUOTA_RELEASE_KEY:-}" ] || { echo "KQUOTA_RELEASE_KEY must name the key that signs $1/SHA256SUMS" >&2; exit 1; }
rm -f "$1/SHA256SUMS.sig"
# In the namespace that roles/kquota_release/files/verify.py asks for.
ssh-keygen -q -Y sign -n kquota-release -f "$KQUOTA_RELEASE_KEY" "$1/SHA256SUMS"
