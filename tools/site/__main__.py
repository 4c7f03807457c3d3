"""``python -m tools.site``: make the site below build/site; any warning is an error,
and so is anything that a page would load from elsewhere.

Runs in the environment of the documentation (.venv-docs), which knows nothing of kquota.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.site.elsewhere import loaded_from_elsewhere
from tools.site.staging import NotInTheNavigation, stage

REPOSITORY = Path(__file__).resolve().parents[2]
NAVIGATION = Path(__file__).with_name("navigation.yml")
SITE = REPOSITORY / "build/site"


def main(site: Path = SITE) -> int:
    """Make the site; return 0 when all is well."""
    source = site.with_name("site-source")
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        stage(REPOSITORY, source, NAVIGATION)
    except NotInTheNavigation as error:
        print(error, file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going"]
    command += ["--quiet", "--conf-dir", str(Path(__file__).parent), "--doctree-dir", f"{source}-doctrees"]
    done = subprocess.run([*command, str(source), str(site)], check=False)
    if done.returncode == 0:
        if elsewhere := loaded_from_elsewhere(site):
            print("loaded from elsewhere:", *elsewhere, sep="\n", file=sys.stderr)
            return 1
        print(f"{(site / 'docs/index.html').relative_to(REPOSITORY)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
