"""Verify files against a list of checksums and its signature: `verify.py SIGNERS LIST FILE…`.

LIST is the output of sha256sum, with its signature in LIST.sig; SIGNERS is a file of allowed signers as
ssh-keygen reads it. A directory stands for all files in it. Only the standard library of Python 3.10: it runs
in the Python of the control host's Ansible.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMESPACE = "kquota-release"
_BLOCK_BYTES = 1 << 20


class NotOfTheRelease(Exception):
    """A file or the list is not what a signer has signed; the message is the sentence for the operator."""


def signed_checksums(signers: Path, checksums: Path) -> dict[str, str]:
    """Return the checksums of a list by path, after the verification of its signature.

    Raises:
        NotOfTheRelease: there is no list or no signature, or it is of none of the signers.
    """
    signature = checksums.with_name(f"{checksums.name}.sig")
    for needed, variable in ((signers, "kquota_release_signers"), (checksums, "kquota_release_list")):
        if not needed.is_file():
            raise NotOfTheRelease(f"{needed} does not exist on the control host: correct {variable}")
    if not signature.is_file():
        raise NotOfTheRelease(f"{checksums} has no signature {signature}: copy that of the release")
    content = checksums.read_bytes()
    trusted = ("-f", signers, "-s", signature)
    done = _ssh_keygen("find-principals", *trusted, content=content)
    if principals := done.stdout.decode().splitlines():
        done = _ssh_keygen("verify", "-n", NAMESPACE, "-I", principals[0], *trusted, content=content)
    if not principals or done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
        raise NotOfTheRelease(
            f"{signature} is not a valid signature of {checksums} in the namespace {NAMESPACE} by a signer in"
            f" {signers} ({said}): get list and signature from their builder again"
        )
    lines = (line.split(maxsplit=1) for line in content.decode().splitlines())
    return {name.removeprefix("*"): checksum for checksum, name in lines}


def _ssh_keygen(action: str, *options: str | Path, content: bytes) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", "-Y", action, *options]
    try:
        return subprocess.run(command, input=content, capture_output=True, check=False)
    except FileNotFoundError:
        raise NotOfTheRelease("ssh-keygen is missing on the control host: install OpenSSH's client") from None


def files_in(path: Path) -> Iterator[Path]:
    """Yield a file itself, or all files below a directory, as Ansible copies them."""
    if not path.is_dir():
        yield path
    for folder, _folders, names in os.walk(path, followlinks=True):
        yield from (Path(folder, name).resolve() for name in sorted(names))


def verify(signers: Path, checksums: Path, paths: list[Path]) -> None:
    """Return if every file is one of the list.

    Raises:
        NotOfTheRelease: one is not, or the list is not signed.
    """
    wanted = signed_checksums(signers, checksums)
    for file in (file for path in paths for file in files_in(path.resolve())):
        name = os.path.relpath(file, checksums.resolve().parent)
        if name not in wanted:
            raise NotOfTheRelease(f"{file} is not in {checksums}, which names what may be installed")
        digest = hashlib.sha256()
        try:
            with file.open("rb") as opened:
                while block := opened.read(_BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            raise NotOfTheRelease(f"{file} cannot be read: {error.strerror}") from None
        if digest.hexdigest() != wanted[name]:
            raise NotOfTheRelease(
                f"{file} is not the file of the release: {checksums} wants the SHA-256 {wanted[name]}, but"
                f" it has {digest.hexdigest()}"
            )


if __name__ == "__main__":
    signers, checksums, *paths = map(Path, sys.argv[1:])
    try:
        verify(signers, checksums, paths)
    except NotOfTheRelease as error:
        sys.exit(str(error))
