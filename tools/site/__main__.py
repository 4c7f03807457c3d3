"""``python -m tools.site``: make the site in build/site; any warning of Sphinx is an error,
and so is anything that a page would load from elsewhere.

Runs in the environment of the documentation (.venv-docs), which knows nothing of kquota.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.site.elsewhere import loaded_from_elsewhere

if __name__ == "__main__":
    site = Path("build/site")
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    command += ["--conf-dir", "tools/site", "--doctree-dir", "build/site-doctrees", ".", str(site)]
    if failed := subprocess.run(command, check=False).returncode:
        sys.exit(failed)
    if elsewhere := loaded_from_elsewhere(site):
        sys.exit("\n".join(["Pages load these from elsewhere:", *elsewhere]))
    print(site / "docs/index.html")
