"""``python -m tools.audit``: checks of the dependencies that need no network.

Every locked requirement has a version and hashes and no address; the installed packages match the locks, and
their files match their own lists; every licence is one that an Apache-2.0 product may go with.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[1]
# The lock that this environment is made from. Of the others only the locks are read.
INSTALLED_FROM = ("agent.txt", "build.txt", "dev.txt")
_REQUIREMENT = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)( ; [^\n]+?)?(?P<hashes>( \\\n +--hash=sha256:[0-9a-f]+)+)$",
    re.MULTILINE,
)
_ALLOWED_LICENCES = re.compile(
    r"apache|bsd|mit\b|isc\b|mpl|mozilla|psf|python software|lgpl|lesser general|zope",
    re.IGNORECASE,
)
# Not from a lock: the virtual environment's own, and this very project.
_NOT_LOCKED = {"pip", "kquota"}


def read_lock(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return name and version of each requirement of a lock file, and the lines that are none with hashes."""
    found = [
        (str(canonicalize_name(entry["name"])), entry["version"]) for entry in _REQUIREMENT.finditer(text)
    ]
    left = (line.strip() for line in _REQUIREMENT.sub("", text).splitlines())
    return found, [line for line in left if line and not line.startswith("#")]


def compare(installed: Iterable[Distribution], locked: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the packages that are installed and not locked, or of another version."""
    for distribution in installed:
        name = canonicalize_name(distribution.name)
        if name in _NOT_LOCKED:
            continue
        versions = locked.get(name)
        if versions is None:
            yield f"{name} {distribution.version} is installed and not locked"
        elif distribution.version not in versions:
            yield f"{name} {distribution.version} is installed, {', '.join(sorted(versions))} is locked"


def altered_files(distribution: Distribution) -> Iterator[str]:
    """Yield the files that differ from the package's own list, as installed."""
    for file in distribution.files or ():
        if file.hash is None or file.hash.mode != "sha256":
            continue
        path = Path(str(distribution.locate_file(file)))
        if not path.is_file():
            yield f"{file} is missing"
        else:
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
            if digest.rstrip(b"=").decode() != file.hash.value:
                yield f"{file} was altered"


def licence_of(distribution: Distribution) -> str:
    """Return a package's own statement of its licence, in one line; empty without one."""
    said = distribution.metadata
    classifiers = [text for text in said.get_all("Classifier", []) if text.startswith("License :: OSI")]
    stated = [*said.get_all("License-Expression", []), *classifiers, *said.get_all("License", [])]
    first = next((text.strip() for text in stated if text and text.strip()), "")
    return first.rpartition("::")[2].strip().partition("\n")[0][:60]


def main(repository: Path = REPOSITORY) -> int:
    """Print the checked files and the defects; return 1 if there are any."""
    problems: list[str] = []
    locked: dict[str, set[str]] = {}
    for path in sorted((repository / "requirements").glob("*.txt")):
        text = path.read_text("utf-8")
        entries, wrong = read_lock(text)
        problems += [f"requirements/{path.name}: {line} is no version with hashes" for line in wrong]
        for name, version in entries if path.name in INSTALLED_FROM else ():
            locked.setdefault(name, set()).add(version)
        hashes = text.count("--hash=sha256:")
        print(f"requirements/{path.name}: {len(entries)} requirements, {hashes} hashes")
    installed = sorted(distributions(), key=lambda d: canonicalize_name(d.name))
    problems += compare(installed, locked)
    for distribution in installed:
        licence = licence_of(distribution)
        print(f"  {distribution.name} {distribution.version}: {licence or 'no licence stated'}")
        if canonicalize_name(distribution.name) in _NOT_LOCKED:
            continue
        problems += [f"{distribution.name}: {problem}" for problem in altered_files(distribution)]
        if not _ALLOWED_LICENCES.search(licence):
            problems.append(f"{distribution.name}: its licence ({licence or 'not stated'}) is not known here")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(installed)} packages, {len(problems)} problems; known vulnerabilities need a database")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
