"""The demonstration prints no warning of Java, Spark or Python, and hides none by a level."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import kquota_pipeline

PATIENCE_SECONDS = 1800.0
PROGRESS = re.compile(r" *\d+ s  \S.*|/\S+ is written")
SILENCED = Path(kquota_pipeline.__file__).with_name("log4j2.properties")
# Each level is set for its own loggers: one that a program sets for all, as a session can, changes none.
EVERY_WARNING = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = LOGGED %p %c: %replace{%m}{\\\\s+}{ }%n%ex
logger.org.name = org
logger.org.level = warn
logger.io.name = io
logger.io.level = warn
logger.com.name = com
logger.com.level = warn
"""


def run(folder: Path, *options: str) -> list[str]:
    """Run the demonstration; return what it prints for people."""
    done = subprocess.run(
        [sys.executable, "-m", "kquota_pipeline", "demo", f"--to={folder}", *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (folder / "report.html").exists()
    lines = done.stderr.splitlines()
    assert any(line.endswith(f"done: open {folder}/report.html") for line in lines)
    return lines


@pytest.mark.long
@pytest.mark.timeout(2000)
def test_it_prints_its_progress_and_nothing_else(tmp_path: Path) -> None:
    others = [
        line for line in run(tmp_path / "demo", "--days=14", "--brokers=5") if not PROGRESS.fullmatch(line)
    ]
    assert others == []


@pytest.mark.long
@pytest.mark.timeout(2000)
def test_whatever_level_it_sets_only_warnings_without_a_cause_in_it_are_logged(tmp_path: Path) -> None:
    """Those that the pipeline's own settings of logs leave out, each with its reason there."""
    settings = tmp_path / "log4j2.properties"
    settings.write_text(EVERY_WARNING, "utf-8")
    java = f"--spark=spark.driver.extraJavaOptions=-Dlog4j2.configurationFile={settings}"
    lines = run(tmp_path / "demo", java)
    logged = Counter(match[1] for line in lines if (match := re.match(r"LOGGED [A-Z]+ (\S+):", line)))
    assert logged, "Spark itself warns at its start: the settings have no effect"
    assert set(logged) <= set(re.findall(r"^logger\.\w+\.name = (\S+)$", SILENCED.read_text("utf-8"), re.M))
    others = [line for line in lines if not line.startswith("LOGGED ") and not PROGRESS.fullmatch(line)]
    assert others == []
