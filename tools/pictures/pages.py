"""Pages as a browser shows them, without a network."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

_SECONDS = 120


def photograph_page(page: Path, file: Path, *, width: int = 1200, height: int = 900) -> None:
    """Save what Chromium shows of a local page.

    Raises:
        RuntimeError: there is no Chromium, or it takes no picture.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("chromium is missing: tools/system-packages.sh browser")
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND"]
        command += [f"--window-size={width},{height}", f"--screenshot={file}", page.resolve().as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0 or not file.exists():
        raise RuntimeError(f"{page}: no picture: {done.stderr[-2000:]}")
